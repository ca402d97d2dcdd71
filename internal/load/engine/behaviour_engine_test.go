package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// moods says how often a scripted client, or a session of scripted files, does what, in thousandths of requests.
type moods struct {
	miss, err, fail, panic int
	hang, late, stick      int              // until the deadline, a little longer, and so long that the call is given up
	down                   [2]time.Duration // since the driver was made: nobody can be reached meanwhile
}

// moody carries requests out by moods. What becomes of a request, and how many nanoseconds it takes, depends on it and its endpoint alone. So two
// hardly ever end at the same time, and it does not matter which goroutine is first.
type moody struct {
	moods
	wired   bool // its clients have connections
	timeout time.Duration
	began   time.Time
	mu      sync.Mutex
	got     map[string]*heard // by endpoint
	took    func()            // when set, is told of every request
}

// isDown reports whether nobody can be reached now.
func (m *moody) isDown() bool {
	since := time.Since(m.began)
	return m.down[0] <= since && since < m.down[1]
}

// carry carries a request out.
func (m *moody) carry(ctx context.Context, endpoint string, req *driver.Request, reply *driver.Reply) error {
	endpoint = strings.TrimSuffix(endpoint, ":1")
	h := crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %v %s %d.%d", endpoint, req.Verb, req.Key, req.Stream, req.N))
	takes := 300*time.Microsecond + time.Duration(h%1_000_003)
	m.take(endpoint, req)
	rest := int(h / 1_000_003 % 1000)
	of := func(share int) bool {
		rest -= share
		return rest < 0 && rest >= -share
	}
	if m.isDown() {
		time.Sleep(takes / 100)
		return errors.New("nobody is there")
	}
	switch {
	case of(m.hang):
		<-ctx.Done()
		return ctx.Err()
	case of(m.late):
		time.Sleep(m.timeout)
	case of(m.stick):
		time.Sleep(m.timeout + time.Duration(overtime))
	case of(m.fail):
		time.Sleep(takes / 2)
		return errors.New("gone")
	case of(m.panic):
		time.Sleep(takes / 2)
		panic("blown")
	case of(m.err):
		reply.Outcome, reply.Message = driver.Error, []byte("no room")
	case of(m.miss):
		reply.Outcome = driver.Miss
	case req.Verb == driver.Get:
		reply.Value = (&driver.Value{Size: driver.HeaderSize + int(h%7), Checked: true, Version: uint64(1 + h%3)}).AppendTo(nil)
	}
	time.Sleep(takes)
	return nil
}

// heard is what an endpoint was asked for, by verb.
type heard [driver.NumVerbs]struct {
	requests int
	sum      uint32 // of keys and values
}

// take counts a request.
func (m *moody) take(endpoint string, req *driver.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.took != nil {
		m.took()
	}
	if m.got[endpoint] == nil {
		m.got[endpoint] = new(heard)
	}
	of := &m.got[endpoint][req.Verb]
	of.requests++
	of.sum += crc32.ChecksumIEEE(req.Key)
	if req.Value != nil {
		of.sum += crc32.ChecksumIEEE(req.Value.AppendTo(nil))
	}
}

func (h *heard) tell() string {
	out := "got"
	for v, of := range h {
		if of.requests > 0 {
			out += fmt.Sprintf(" %d %v %x", of.requests, driver.Verb(v), of.sum)
		}
	}
	return out
}

// moodyClients is a driver whose clients block, and have moods.
type moodyClients struct {
	driver.Driver // of whose other methods it has those of null
	*moody
}

func (moodyClients) Name() string { return "moody" }

func (d moodyClients) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	time.Sleep(37 * time.Microsecond)
	c := &moodyClient{d.moody, link.Endpoint, nil}
	if d.wired {
		conn, err := link.Dial(ctx)
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	if d.isDown() { // which leaves the connection to the executor
		return nil, errors.New("nobody is there")
	}
	return c, nil
}

type moodyClient struct {
	*moody
	endpoint string
	conn     net.Conn // nil: it needs none
}

func (c *moodyClient) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	err := c.carry(ctx, c.endpoint, req, reply)
	if err != nil || c.conn == nil {
		return err
	}
	out := append([]byte{0, 0}, req.Key...)
	if req.Value != nil {
		out = req.Value.AppendTo(out)
	}
	out[0], out[1] = byte(len(out)), byte(5+len(reply.Value))
	if _, err := c.conn.Write(out); err != nil {
		return err
	}
	_, err = io.ReadFull(c.conn, make([]byte, out[1]))
	return err
}

func (*moodyClient) Close() error { return nil } // which leaves the connection to whoever made it

// echo answers on a connection with as many bytes as it is asked for. A request begins with its length and that of the reply.
func echo(conn net.Conn) {
	var head [2]byte
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, make([]byte, head[0]-2)); err != nil {
			return
		}
		if _, err := conn.Write(make([]byte, head[1])); err != nil {
			return
		}
	}
}

// moodyFiles is a driver of local files that are not there. Its sessions have moods.
type moodyFiles struct{ *moody }

func (moodyFiles) Name() string   { return "paper" }
func (moodyFiles) NewConfig() any { return new(struct{}) }
func (moodyFiles) Outcomes(driver.Verb) []driver.Outcome {
	return []driver.Outcome{driver.OK, driver.Miss}
}
func (moodyFiles) Check(any, driver.Verb) error { return nil }
func (moodyFiles) Verify([]byte) (localfile.Proof, error) {
	return localfile.Proof{}, nil
}

func (moodyFiles) Need(any, localfile.Site) (localfile.Need, error) { return localfile.Need{}, nil }

func (d moodyFiles) Open(context.Context, any, localfile.Site) (localfile.Store, error) {
	return paperStore(d), nil
}

type paperStore struct{ *moody }

func (s paperStore) Session(i int) (localfile.Session, error) { return paperSession{s.moody, i}, nil }
func (paperStore) Log() localfile.Log                         { return localfile.Log{} }
func (paperStore) Close() ([]byte, error)                     { return nil, nil }
func (paperStore) Remove() error                              { return nil }

type paperSession struct {
	*moody
	number int
}

func (s paperSession) Prepare(req *driver.Request) error {
	time.Sleep(11 * time.Microsecond)
	return nil
}

func (s paperSession) Do(req *driver.Request, reply *driver.Reply) error {
	return s.carry(context.Background(), fmt.Sprint("session ", s.number), req, reply)
}

// busily is a program that takes the loop a while each time.
type busily struct{ op.Program }

func (p busily) On(dst []driver.Request, ev op.Event) ([]driver.Request, op.Step) {
	time.Sleep(60 * time.Microsecond)
	return p.Program.On(dst, ev)
}

// engineCase is a load of scripted clients or files, on an engine of its own.
type engineCase struct {
	name      string
	loops     int // 0: one
	endpoints int // of clients; 0: it is files
	moods     moods
	target    string
	phase     string
	kind      worker.StepKind // "": a load
	busy      bool            // its programs take time
	meanwhile func(e *Engine, cancel func())
	from, to  int    // the sessions of this worker; 0: all
	other     string // a second target
	trace     bool   // the phase replays one
	wired     bool   // its clients have connections
	again     bool   // it is carried out twice
}

// owner is a transport that knows its own time.
type owner interface{ own(wall int64) int64 }

// timekeeper is a transport that remembers what its own time was.
type timekeeper struct {
	transport
	inner owner
	took  int64
}

func (o *timekeeper) own(wall int64) int64 {
	o.took = o.inner.own(wall)
	return o.took
}

// play carries the load out and writes down what it did.
func (c engineCase) play(t *testing.T) (told string) {
	servertest.Bubble(t, func(t *testing.T) {
		m := &moody{moods: c.moods, wired: c.wired, began: time.Now(), got: map[string]*heard{}}
		m.timeout = 1_123_457
		d, reach := driver.Driver(moodyFiles{m}), ""
		if c.endpoints > 0 {
			m.timeout = 20_123_457
			d, reach = moodyClients{null.Driver{}, m}, onBlocking+"endpoints = ["+strings.Join([]string{`"e0:1"`, `"e1:1"`, `"e2:1"`, `"e3:1"`}[:c.endpoints], ", ")+"]"
		}
		p := parsePlanFor(t, []driver.Driver{d, null.Driver{}}, fmt.Sprintf(`
			target "t" {
				driver  = %q
				timeout = "%dns"
				%s
				%s
			}
			%s
			dataset "d" {
				keys { count = 200 }
				values { size = 100 }
			}
			phase "load" {
				target  = target.t
				dataset = dataset.d
				%s
			}`, d.Name(), m.timeout, reach, c.target, c.other, c.phase))
		draw(p, cmp.Or(c.kind, worker.Load))
		dir := ""
		if c.trace {
			_, text := recorded(800)
			dir = keepTrace(t, p.Phases[0].Trace(), text)
		}
		e := assigned(t, Config{
			Loops: max(1, c.loops), Drivers: []driver.Driver{d, null.Driver{}}, Sleep: time.Sleep, Open: in(dir),
			LogRoot: func() (string, error) { return "/", nil },
		}, p)
		e.resolve = nil
		e.dial = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go echo(there)
			return here, nil
		}
		step := stepOf(p.Phase("load"), cmp.Or(c.kind, worker.Load))
		if c.to > 0 {
			step.From, step.To = c.from, c.to
		}
		var out strings.Builder
		began := time.Now()
		if c.again {
			step.Last = false
			c.carryOut(t, e, m, step, &out)
			step.Seq, step.Last = 1, true
		}
		c.carryOut(t, e, m, step, &out)
		e.Close()
		fmt.Fprintf(&out, "\tclosed after %v\n", time.Since(began).Round(time.Microsecond))
		told = lineNumbers.ReplaceAllString(out.String(), ".go")
	})
	return told
}

// carryOut carries a step out and writes down what it did.
func (c engineCase) carryOut(t *testing.T, e *Engine, m *moody, step worker.Step, out io.Writer) {
	ready := prepared(t, e, step)
	var owners []*timekeeper
	for _, l := range e.group.loops {
		if c.busy {
			l.programs.Program = busily{l.programs.Program}
		}
		if keeps, ok := l.tr.(owner); ok && c.endpoints > 0 {
			o := &timekeeper{transport: l.tr, inner: keeps}
			l.tr = o
			owners = append(owners, o)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := e.now()
	if c.meanwhile != nil {
		time.AfterFunc(500_500_500, func() { c.meanwhile(e, cancel) })
	}
	var snaps []string
	final, err := e.Run(ctx, e.now()+time.Millisecond, func(s *measure.Snapshot) (func() error, error) {
		snaps = append(snaps, fmt.Sprintf("%s up to %v", tellSamples(s.Samples.Ops(), e.wall+s.Delta.Origin), micros(s.To-s.From)))
		return s.CheckValid, nil
	})
	took := e.now() - began
	fmt.Fprintf(out, "\tready: %d sessions, %d connections, %d ops, %d loops, %s\n", ready.Sessions, ready.Connections, ready.Ops, ready.Loops, ready.Executor)
	fmt.Fprint(out, tell(nil, final.Totals))
	for _, at := range slices.Sorted(maps.Keys(m.got)) {
		fmt.Fprintf(out, "\t%s %s\n", at, m.got[at].tell())
	}
	for i, o := range owners {
		fmt.Fprintf(out, "\tloop %d was busy for %v\n", i, micros(o.took))
	}
	if c.endpoints == 0 { // elsewhere it is processor time, which is no virtual one
		fmt.Fprintf(out, "\tbusy %.4f, productive %v\n", final.Generator.Busy, micros(int64(final.Generator.ProductiveSeconds*1e9)))
	}
	if err != nil {
		fmt.Fprintf(out, "\tfailed: %v\n", err)
	}
	fmt.Fprintf(out, "\tover after %v, stopped %v, expired %v: %s\n", micros(int64(took)), final.Stopped, final.Expired, strings.Join(snaps, ", "))
}

// lineNumbers are those of the code.
var lineNumbers = regexp.MustCompile(`\.go:\d+`)

// engineCases are loads of clients that block, and of files.
func engineCases() (all []engineCase) {
	const closed = plainMix + "expect_hits = 0\nclosed {\n sessions = 3\n duration = \"1s\"\n pipeline = 2\n}"
	const open = plainMix + "expect_hits = 0\nopen {\n rate = 2000\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 8\n pipeline = 2\n}"
	mostly := moods{miss: 100, err: 50}
	for _, c := range []engineCase{
		{name: "closed", phase: closed},
		{name: "one at a time", phase: plainMix + "closed {\n sessions = 1\n iterations = 300\n}"},
		{name: "think time", phase: plainMix + "closed {\n sessions = 4\n duration = \"1s\"\n think = \"5ms\"\n ramp = \"300ms\"\n}"},
		{name: "iterations", phase: plainMix + "closed {\n sessions = 4\n iterations = 100\n pipeline = 3\n}"},
		{name: "a share of the sessions", phase: plainMix + "closed {\n sessions = 9\n iterations = 50\n}", from: 2, to: 6},
		{name: "open", phase: open},
		{name: "a share of the schedule", phase: open, from: 3, to: 8},
		{name: "open without room", phase: plainMix + "open {\n rate = 4000\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 3\n drain = \"100ms\"\n}"},
		{name: "open within a bound", phase: plainMix + "open {\n rate = 4000\n duration = \"1s\"\n arrivals = \"poisson\"\n sessions = 6\n pipeline = 2\n in_flight = 5\n drain = \"100ms\"\n}"},
		{name: "shedding", phase: plainMix + "open {\n rate = 6000\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 3\n on_full = \"shed\"\n}"},
		{name: "samples", phase: "samples = 40\n" + closed},
		{name: "growth", phase: "ops = { put = 1 }\nmax_bad = 1\ngrowth {}\nclosed {\n sessions = 2\n iterations = 200\n}"},
		{name: "populate", phase: "populate {\n sessions = 2\n pipeline = 3\n}", kind: worker.Populate},
		{name: "drained", phase: closed, meanwhile: func(e *Engine, _ func()) { e.Drain() }},
		{name: "a schedule that is drained", phase: open, meanwhile: func(e *Engine, _ func()) { e.Drain() }},
		{name: "abandoned", phase: closed, meanwhile: func(_ *Engine, cancel func()) { cancel() }},
		{name: "a lease that ends", phase: closed, meanwhile: func(e *Engine, _ func()) { e.SetLease(e.now()) }},
		{name: "a schedule whose lease ends", phase: open, meanwhile: func(e *Engine, _ func()) { e.SetLease(e.now() + 7*time.Millisecond) }},
		{name: "stopped after errors", phase: "stop_after = 40\n" + closed},
	} {
		c.moods = mostly
		files, clients := c, c
		files.name = "files: " + c.name
		clients.name, clients.endpoints = "clients: "+c.name, 2
		all = append(all, files, clients)
	}
	with := func(m moods) moods {
		m.miss, m.err = 50, 20
		return m
	}
	for name, m := range map[string]moods{
		"fail":                 {fail: 15},
		"panic":                {panic: 15},
		"hang":                 {hang: 10},
		"answer late":          {late: 10},
		"stick":                {stick: 5},
		"do it all":            {fail: 5, panic: 1, hang: 5, late: 5, stick: 1},
		"are down for a while": {down: [2]time.Duration{300 * time.Millisecond, 600 * time.Millisecond}},
	} {
		m = with(m)
		all = append(all,
			engineCase{name: "clients that " + name, endpoints: 2, moods: m, phase: closed},
			engineCase{name: "clients that " + name + ", in a schedule", endpoints: 3, moods: m, phase: open, wired: true},
			engineCase{name: "a quorum of clients that " + name, endpoints: 4, moods: m, target: nwr321, phase: closed, wired: name == "do it all"})
		if m.hang == 0 && m.stick == 0 && m.down[1] == 0 {
			all = append(all,
				engineCase{name: "files that " + name, moods: m, phase: closed},
				engineCase{name: "files that " + name + ", in a schedule", moods: m, phase: open})
		}
	}
	all = append(all,
		engineCase{name: "clients: a replay", endpoints: 2, moods: mostly, trace: true, phase: "max_bad = 1\nexpect_hits = 0\nopen {\n trace { file = \"trace.csv\" }\n sessions = 2\n}"},
		engineCase{name: "clients: a rerun", endpoints: 2, moods: mostly, trace: true, phase: "max_bad = 1\nexpect_hits = 0\nclosed {\n trace { file = \"trace.csv\" }\n sessions = 4\n pipeline = 2\n}"},
	)
	const copying = `max_bad = 1
		expect_hits = 0
		scenario "copy" {
			step "get" {}
			step "put" {
				target = target.u
				key    = "same"
				as     = "write"
				times  = 2
			}
		}
		`
	for name, body := range map[string]string{
		"clients":  "driver = \"moody\"\n endpoints = [\"f0:1\", \"f1:1\"]\n timeout = \"20123457ns\"",
		"no wires": "driver = \"null\"\n endpoints = [\"f0\"]\n timeout = \"1123457ns\"\n latency = \"600us\"\n spread = \"exponential\"\n miss_every = 9\n error_every = 20",
	} {
		other := "target \"u\" {\n" + body + onBlocking + "}"
		all = append(all,
			engineCase{name: "clients: copies to " + name, endpoints: 2, moods: with(moods{fail: 5, hang: 3}), other: other, phase: copying + "closed {\n sessions = 3\n duration = \"1s\"\n pipeline = 2\n}"},
			engineCase{name: "clients: copies to " + name + ", in a schedule", endpoints: 2, moods: with(moods{fail: 5, hang: 3}), other: other, phase: copying + "open {\n rate = 900\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 6\n}"},
			engineCase{name: "clients: copies to " + name + " on a busy loop", endpoints: 2, moods: mostly, other: other, busy: true, phase: copying + "closed {\n sessions = 3\n duration = \"500ms\"\n}"},
		)
	}
	return append(all,
		engineCase{name: "clients: with connections", endpoints: 2, moods: mostly, phase: closed, wired: true, again: true},
		engineCase{name: "clients: twice", endpoints: 2, moods: with(moods{fail: 5, hang: 2}), phase: open, busy: true, again: true},
		engineCase{name: "clients: a quorum twice", loops: 2, endpoints: 3, moods: with(moods{fail: 5, hang: 2}), target: nwr321, phase: closed, again: true},
		engineCase{name: "files: twice", moods: with(moods{}), phase: open, again: true},
		engineCase{name: "files: a closed load twice", moods: with(moods{}), phase: closed, again: true},
		engineCase{name: "clients: two loops", loops: 2, endpoints: 2, moods: mostly, phase: closed},
		engineCase{name: "clients: four loops and a schedule", loops: 4, endpoints: 2, moods: mostly, phase: open},
		engineCase{name: "clients: a busy loop", endpoints: 1, moods: mostly, phase: closed, busy: true},
		engineCase{name: "clients: a quorum on a busy loop", endpoints: 3, moods: mostly, target: nwr321, phase: closed, busy: true},
		engineCase{
			name: "clients: reads from one copy at a time", endpoints: 3, moods: with(moods{fail: 5, hang: 5}), phase: closed,
			target: "replication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 1\n read_fanout = \"r\"\n read_from = \"random\"\n}",
		},
		engineCase{name: "clients: scenarios", endpoints: 2, moods: with(moods{fail: 5}), phase: checkout + "max_bad = 1\nclosed {\n sessions = 4\n duration = \"1s\"\n}"},
		engineCase{name: "clients: scenarios in a schedule", endpoints: 2, moods: with(moods{fail: 5}), phase: checkout + "max_bad = 1\nopen {\n rate = 700\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 6\n}"},
	)
}

// phases is a plan whose steps one engine carries out, one after another.
func phases(scope string, order ...worker.StepKind) func(t *testing.T) string {
	return func(t *testing.T) string {
		populate, setup := "phase \"populate\" {\n target = target.t\n dataset = dataset.d\n populate { sessions = 5 }\n}", ""
		if scope == "session" {
			populate, setup = "", "setup { ops = { put = 1 } }"
		}
		p := parsePlan(t, fmt.Sprintf(`
			target "t" {
				driver     = "null"
				endpoints  = ["e0:1", "e1:1"]
				timeout    = "2ms"
				latency    = "500us"
				spread     = "exponential"
				miss_every = 7
			}
			dataset "d" {
				keys {
					count = 50
					scope = %q
				}
				values { size = 100 }
			}
			%s
			phase "load" {
				target      = target.t
				dataset     = dataset.d
				ops         = { get = 2, put = 1 }
				max_bad     = 1
				expect_hits = 0
				%s
				closed {
					sessions = 6
					duration = "1500ms"
					pipeline = 2
				}
			}
			phase "clear" {
				target  = target.t
				dataset = dataset.d
				clear {}
			}`, scope, populate, setup))
		e := assigned(t, Config{Loops: 1}, p)
		e.clock = &virtualClock{tick: 10}
		var out strings.Builder
		for i, kind := range order {
			phase := p.Phase(string(kind))
			if kind == worker.Setup {
				phase = p.Phase("load")
			}
			step := stepOf(phase, kind)
			step.Seq, step.Last = i, kind != worker.Setup && (i+1 == len(order) || order[i+1] != kind)
			if phase.Sessions() > 1 {
				step.From++ // the first is another worker's
			}
			engineCase{endpoints: 2}.carryOut(t, e, &moody{}, step, &out)
		}
		return out.String()
	}
}
