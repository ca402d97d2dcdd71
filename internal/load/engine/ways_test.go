package engine

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// keyless are checked values too small to name their key. Servers that lose replies hold such, as each way notices another key's value at a different
// reply: runs look at the first of a write.
const keyless = "size = 24\nchecked = true"

// wayCase is a load that both ways of carrying out its ops have to carry out alike.
type wayCase struct {
	name      string
	endpoints int
	target    string
	values    string
	phase     string
	script    func(b *bench)
}

// plainMix and quorumMix are the ops of most cases.
const (
	plainMix  = "ops = { get = 3, put = 2, delete = 1 }\nmax_bad = 1\n"
	quorumMix = "ops = { get = 1, put = 3, delete = 1 }\nmax_bad = 1\n"
)

// plainCases are loads of plain ops, with everything that can happen to them.
func plainCases() []wayCase {
	const closed = plainMix + `
		closed {
			sessions = 3
			duration = "1300ms"
			pipeline = 5
		}`
	short := strings.Replace(closed, "1300ms", "400ms", 1)
	slow := func(n int, d time.Duration) func(b *bench) {
		return func(b *bench) { b.server(0).latency = every(n, d) }
	}
	return []wayCase{
		{name: "closed", endpoints: 1, phase: closed},
		{name: "a long pipeline", endpoints: 1, phase: plainMix + "closed {\n sessions = 2\n duration = \"300ms\"\n pipeline = 150\n}"},
		{name: "checked values", endpoints: 1, values: "size = 40\n checked = true", phase: short},
		{name: "values that compress", endpoints: 1, values: "size = 200\n compressibility = 0.3", phase: short},
		{name: "values of many sizes", endpoints: 1, values: "size = \"uniform(24B, 200B)\"", phase: short},
		{name: "values that expire", endpoints: 1, values: "size = 100\n ttl = \"30s\"", phase: short},
		{name: "values of 1 KiB", endpoints: 1, values: "size = \"1KiB\"", phase: short},
		{
			name: "checked values of 1 KiB in a long pipeline", endpoints: 1, values: "size = \"1KiB\"\n checked = true",
			phase: plainMix + "closed {\n sessions = 2\n duration = \"100ms\"\n pipeline = 150\n}",
		},
		{name: "several endpoints", endpoints: 3, phase: closed},
		{name: "iterations end", endpoints: 1, phase: plainMix + "closed {\n sessions = 4\n iterations = 333\n pipeline = 7\n}"},
		{name: "large values", endpoints: 2, values: "size = \"20KiB\"", phase: short},
		{name: "large values on broken connections", endpoints: 2, values: "size = \"9KiB\"", phase: short, script: func(b *bench) {
			for _, at := range []time.Duration{100, 200} {
				b.net.at(time.Duration(b.net.clock.t)+at*time.Millisecond, b.server(0).sever)
			}
		}},
		{name: "large checked values", endpoints: 1, values: "size = \"9KiB\"\n checked = true", phase: short},
		{name: "large values of many sizes", endpoints: 1, values: "size = \"uniform(8KiB, 9KiB)\"", phase: short},
		{name: "large values that compress", endpoints: 1, values: "size = \"9KiB\"\n compressibility = 0.5", phase: short},
		{name: "replies in pieces", endpoints: 1, phase: short, script: func(b *bench) { b.server(0).piece = 7 }},
		{name: "replies byte by byte", endpoints: 1, phase: short, script: func(b *bench) { b.server(0).piece = 1 }},
		{name: "large values in pieces", endpoints: 2, values: "size = \"200KiB\"", phase: short, script: func(b *bench) {
			b.server(0).piece, b.server(1).piece = 1000, 50_000
		}},
		{name: "large checked values in pieces", endpoints: 1, values: "size = \"200KiB\"\n checked = true", phase: short, script: func(b *bench) {
			b.server(0).piece = 50_000
		}},
		{name: "late replies in pieces", endpoints: 1, target: `timeout = "20ms"`, phase: closed, script: func(b *bench) {
			b.server(0).piece = 40
			b.server(0).latency = every(100, 20*time.Millisecond-2*time.Microsecond)
		}},
		{name: "replies in pieces on broken connections", endpoints: 1, phase: short, script: func(b *bench) {
			b.server(0).piece = 40
			for at := range 50 {
				b.net.at(time.Duration(b.net.clock.t)+time.Duration(at)*5*time.Millisecond+time.Duration(at)*100*time.Nanosecond, b.server(0).sever)
			}
		}},
		{name: "ramp and think time", endpoints: 2, phase: plainMix + "closed {\n sessions = 4\n duration = \"2s\"\n pipeline = 3\n think = \"3ms\"\n ramp = \"1s\"\n}"},
		{name: "a hit ratio", endpoints: 1, phase: "ops = { get = 1 }\nhit_ratio = \"60%\"\nclosed {\n sessions = 3\n duration = \"1s\"\n pipeline = 5\n}"},
		{name: "open", endpoints: 2, phase: plainMix + "open {\n rate = 3000\n duration = \"2s\"\n arrivals = \"poisson\"\n sessions = 4\n pipeline = 2\n}"},
		{name: "open without room", endpoints: 1, phase: plainMix + "open {\n rate = 3000\n duration = \"2s\"\n sessions = 2\n pipeline = 2\n in_flight = 3\n drain = \"100ms\"\n}"},
		{name: "shedding", endpoints: 1, phase: plainMix + "open {\n rate = 3000\n duration = \"2s\"\n sessions = 2\n on_full = \"shed\"\n}"},
		{name: "late replies", endpoints: 1, target: `timeout = "20ms"`, phase: closed, script: slow(100, 30*time.Millisecond)},
		{name: "silence", endpoints: 1, values: keyless, target: `timeout = "20ms"`, phase: closed, script: slow(100, -1)},
		{
			name: "so many replies lost that there is no room", endpoints: 2, values: keyless, target: `timeout = "20ms"`, script: slow(5, -1),
			phase: strings.Replace(closed, "pipeline = 5", "pipeline = 40", 1),
		},
		{name: "broken connections", endpoints: 2, phase: closed, script: func(b *bench) {
			for _, at := range []time.Duration{200, 300, 900} {
				b.net.at(time.Duration(b.net.clock.t)+at*time.Millisecond, b.server(0).sever)
			}
		}},
		{name: "a dead target", endpoints: 2, phase: closed, script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+500*time.Millisecond, func() {
				b.server(0).down = true
				b.server(0).sever()
			})
		}},
		{name: "error replies", endpoints: 2, phase: closed, script: func(b *bench) {
			b.server(0).words = []byte("-OOM command not allowed when used memory > 'maxmemory'.\r\n")
		}},
		{name: "garbage", endpoints: 2, phase: closed, script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+500*time.Millisecond, func() { b.server(0).words = []byte("HTTP/1.1 400 Bad Request\r\n\r\n") })
		}},
		{name: "unasked replies", endpoints: 1, phase: closed, script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+500*time.Millisecond, func() { b.server(0).words = []byte("$1\r\nv\r\n$1\r\nw\r\n") })
		}},
		{name: "lease", endpoints: 1, phase: closed, script: func(b *bench) { b.e.SetLease(700 * time.Millisecond) }},
	}
}

// Loads of one verb only: nothing of another verb comes between.
const (
	getsOnly = "ops = { get = 1 }\nmax_bad = 1\n"
	putsOnly = "ops = { put = 1 }\nmax_bad = 1\n"
)

// TestRunsAreTheProgram carries plain ops out in runs and by their program, through everything that can happen to them: each snapshot has the same
// bytes, and the servers hold the same values. Every second case has its puts alone as well, the others their gets.
func TestRunsAreTheProgram(t *testing.T) {
	for i, c := range plainCases() {
		mixes := map[string]string{"": plainMix}
		if servertest.Whole() { // one goroutine does it all
			if i%2 == 0 {
				mixes["gets only: "] = getsOnly
			} else {
				mixes["puts only: "] = putsOnly
			}
		}
		for name, mix := range mixes {
			t.Run(name+c.name, func(t *testing.T) {
				phase := strings.Replace(c.phase, plainMix, mix, 1)
				values := cmp.Or(c.values, "size = 100")
				if !servertest.Whole() {
					values = strings.Replace(values, "200KiB", "20KiB", 1)
				}
				p := redisPlanOf(t, c.endpoints, values, c.target, phase)
				require.Equal(t, playWay(t, p, c.script, false), playWay(t, p, c.script, true))
			})
		}
	}
}

// Ops whose staleness is measured are carried out in runs, too, and what is counted is what is counted by their program: of servers that forget writes,
// do not answer, or lose their connections. No op begins at the very time of a reply: whether that comes first, the ways see differently.
func TestFollowedRunsAreTheProgram(t *testing.T) {
	for name, script := range map[string]func(b *bench, s *virtualServer){
		"as they are":  func(*bench, *virtualServer) {},
		"in pieces":    func(_ *bench, s *virtualServer) { s.piece = 7 },
		"late replies": func(_ *bench, s *virtualServer) { s.latency = every(50, 30*time.Millisecond) },
		"silence":      func(_ *bench, s *virtualServer) { s.latency = every(50, -1) },
		"error replies": func(b *bench, s *virtualServer) {
			b.after(300*time.Millisecond, func() { s.words = []byte("-OOM no room\r\n") })
		},
		"broken":          func(b *bench, s *virtualServer) { b.after(200*time.Millisecond, s.sever) },
		"broken, in time": func(b *bench, s *virtualServer) { s.latency = every(50, -1); b.after(200*time.Millisecond, s.sever) },
	} {
		for _, load := range []string{
			"closed {\n sessions = 3\n pipeline = 20\n think = \"1300us\"\n duration = \"500ms\"\n}",
			"open {\n rate = 3000\n duration = \"500ms\"\n arrivals = \"poisson\"\n sessions = 3\n pipeline = 2\n on_full = \"shed\"\n}",
		} {
			t.Run(name+", "+load[:strings.Index(load, " ")], func(t *testing.T) {
				text := verifyPlan(20, "ops = { get = 3, put = 2, delete = 1 }\nstaleness {}\n"+load)
				text = strings.Replace(text, "size = 40", "size = 24", 1) // see keyless
				text = strings.Replace(text, fmt.Sprintf(`["127.0.0.1:%d"]`, firstPort), fmt.Sprintf("[\"127.0.0.1:%d\", \"127.0.0.1:%d\"]\ntimeout = \"20ms\"", firstPort, firstPort+1), 1)
				p := parsePlan(t, text)
				forget := func(b *bench) {
					for i := range 2 {
						s := b.server(i)
						s.deletes = true
						script(b, s)
						for at := range 20 {
							var before map[string][]byte
							b.after(time.Duration(25*at)*time.Millisecond, func() { before = maps.Clone(s.keys) })
							b.after(time.Duration(25*at+15)*time.Millisecond, func() { maps.Copy(s.keys, before) })
						}
					}
				}
				want := playWay(t, p, forget, false)
				require.Positive(t, want.staleness.Stale)
				require.Equal(t, want, playWay(t, p, forget, true))
			})
		}
	}
}

// wordedOps are ops in a plan's words: two that are laid out as the driver's own are, and one whose requests differ in length.
const wordedOps = `op "look" {
	request { command = ["GET", "{key}"] }
}
op "keep" {
	request { command = ["SET", "{key}", "{value}"] }
}
op "count" {
	request { command = ["SET", "{key}", "{n}"] }
}
op "delete" {
	request { command = ["DEL", "{key}"] }
	expect { miss = ["0"] }
}`

// Ops in a plan's words take the same ways as the driver's own, with the same result.
func TestOwnOpsRunAsTheProgram(t *testing.T) {
	const closed = "max_bad = 1\nclosed {\n sessions = 3\n duration = \"200ms\"\n pipeline = 5\n}"
	for name, ops := range map[string]string{
		"mixed": "look = 3, keep = 2, count = 1, put = 1, delete = 1", "look": "look = 1", "keep": "keep = 1", "count": "count = 1",
	} {
		if !servertest.Whole() && name != "mixed" {
			continue // one goroutine does it all
		}
		for values, piece := range map[string]int{"size = 100": 7, "size = 100\n checked = true": 40, "size = \"9KiB\"": 0, "size = \"uniform(24B, 200B)\"": 0} {
			t.Run(name+" of "+values, func(t *testing.T) {
				p := redisPlanOf(t, 2, values, wordedOps, "ops = { "+ops+" }\n"+closed)
				script := func(b *bench) {
					b.server(0).piece = piece
					b.net.at(time.Duration(b.net.clock.t)+100*time.Millisecond, b.server(0).sever)
				}
				require.Equal(t, playWay(t, p, script, false), playWay(t, p, script, true))
			})
		}
	}
}

// quorumCases are loads of quorum ops on at least three endpoints.
func quorumCases() []wayCase {
	const closed = quorumMix + "closed {\n sessions = 3\n duration = \"1s\"\n pipeline = 20\n}"
	replicated := func(w int, timeout string) string {
		return fmt.Sprintf("replication {\n coordinate = \"client\"\n n = 3\n w = %d\n r = 2\n timeout = %q\n}", w, timeout)
	}
	after := func(b *bench, d time.Duration, do func()) { b.net.at(time.Duration(b.net.clock.t)+d, do) }
	return []wayCase{
		{name: "closed", target: nwr321, phase: closed},
		{name: "all three", target: replicated(3, "1s"), phase: closed},
		{name: "a long pipeline", target: nwr321, phase: quorumMix + "closed {\n sessions = 2\n duration = \"300ms\"\n pipeline = 150\n}"},
		{name: "iterations end", target: nwr321, phase: quorumMix + "closed {\n sessions = 2\n iterations = 333\n pipeline = 7\n}"},
		{name: "open", target: nwr321, phase: quorumMix + "open {\n rate = 3000\n duration = \"1s\"\n arrivals = \"poisson\"\n sessions = 4\n pipeline = 2\n}"},
		{name: "late replies", target: "timeout = \"20ms\"\n" + nwr321, phase: closed, script: func(b *bench) { b.server(1).latency = every(50, 30*time.Millisecond) }},
		// One session: with several, the order in which op deadlines are checked depends on places in tables, and so does who is served first.
		{name: "the op's deadline", target: replicated(3, "10ms"), phase: strings.Replace(closed, "sessions = 3", "sessions = 1", 1), script: func(b *bench) {
			b.server(1).latency = every(50, 30*time.Millisecond)
		}},
		{name: "one is silent", target: "timeout = \"300ms\"\n" + nwr321, phase: closed, script: func(b *bench) { b.server(2).latency = every(1, -1) }},
		{name: "all are silent", values: keyless, target: "timeout = \"300ms\"\n" + nwr321, phase: closed, script: func(b *bench) {
			for i := range 3 {
				b.server(i).latency = every(100, -1)
			}
		}},
		{name: "broken connections", target: nwr321, phase: closed, script: func(b *bench) {
			for at := range 9 {
				after(b, time.Duration(100+50*at)*time.Millisecond, b.server(at%3).sever)
			}
		}},
		{name: "a dead server, then two", target: nwr321, phase: closed, script: func(b *bench) {
			for i := range 2 {
				after(b, time.Duration(300+400*i)*time.Millisecond, func() {
					b.server(i).down = true
					b.server(i).sever()
				})
			}
		}},
		{name: "error replies", target: replicated(3, "1s"), phase: closed, script: func(b *bench) { b.server(0).words = []byte("-OOM no room\r\n") }},
		{name: "foreign values", target: nwr321, phase: "ops = { get = 1 }\nexpect_hits = 0\nclosed {\n sessions = 2\n iterations = 200\n pipeline = 5\n}", script: func(b *bench) {
			b.server(0).words = []byte("$5\r\nhello\r\n")
		}},
		{name: "garbage", target: nwr321, phase: closed, script: func(b *bench) {
			after(b, 500*time.Millisecond, func() { b.server(0).words = []byte("HTTP/1.1 400 Bad Request\r\n\r\n") })
		}},
		{name: "lease", target: nwr321, phase: closed, script: func(b *bench) { b.e.SetLease(700 * time.Millisecond) }},
	}
}

// TestQuorumsAreTheProgram does the same with quorum ops on as many endpoints as a key lives on. Each case is also played in one of three other ways, in
// turn: on more endpoints, with gets only, with puts only.
func TestQuorumsAreTheProgram(t *testing.T) {
	others := []struct {
		name, mix string
		endpoints int
	}{{"", quorumMix, 5}, {"gets only: ", getsOnly, 3}, {"puts only: ", putsOnly, 3}}
	for i, c := range quorumCases() {
		play := func(name, mix string, endpoints int) {
			t.Run(fmt.Sprintf("%s%s, %d endpoints", name, c.name, endpoints), func(t *testing.T) {
				p := redisPlanOf(t, endpoints, cmp.Or(c.values, "size = 100"), c.target, strings.Replace(c.phase, quorumMix, mix, 1))
				require.Equal(t, playWay(t, p, c.unequal(endpoints), false), playWay(t, p, c.unequal(endpoints), true))
			})
		}
		if !servertest.Whole() && i%2 > 0 {
			continue // one goroutine does it all
		}
		play("", quorumMix, 3)
		if servertest.Whole() {
			o := others[i%len(others)]
			play(o.name, o.mix, o.endpoints)
		}
	}
}

// unequal is the case's script, with endpoints that take 1 ms, 2 ms and so on.
func (c *wayCase) unequal(endpoints int) func(b *bench) {
	return func(b *bench) {
		for i := range endpoints {
			b.server(i).latency = every(1, time.Duration(i+1)*time.Millisecond)
		}
		if c.script != nil {
			c.script(b)
		}
	}
}

// Plain ops and quorums have ways of their own where these do what the program does.
func TestWhichWayOpsTake(t *testing.T) {
	const closed = "\nclosed {\n sessions = 1\n iterations = 5\n}"
	const one = "replication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 1\n read_fanout = \"r\"\n}"
	for _, tt := range []struct {
		target, phase string
		way           way
	}{
		{"", "ops = { get = 1 }", new(runs)},
		{onBlocking, "ops = { get = 1 }", new(runs)},
		{"cluster = true", "ops = { get = 1 }", new(programs)},
		{"", "ops = { get = 1 }\nbatch = 2", new(programs)},
		{"", "scenario \"one\" { \n step \"get\" {}\n}", new(scenes)},
		{nwr321, "ops = { get = 1, put = 1 }", new(quorum)},
		{nwr321 + onBlocking, "ops = { get = 1, put = 1 }", new(programs)},
		{one, "ops = { get = 1, put = 1 }", new(programs)},
		{one, "ops = { put = 1 }", new(quorum)},
		{one + onBlocking, "ops = { put = 1 }", new(programs)},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			p := redisPlan(t, 3, tt.target, tt.phase+closed)
			b := &bench{t: t, net: newVirtualNet(0)}
			var c clock = b.net.clock
			if p.Targets[0].Executor == plan.Blocking {
				c = &wallClock{zero: time.Now(), nap: time.Sleep}
			}
			require.NoError(t, b.connect(p, "load", 0, c))
			b.equip(worker.Load)
			require.IsType(t, tt.way, b.l.way, "%+v", tt)
			b.l.tr.close()
			time.Sleep(time.Minute) // until servers have found that nobody listens any more
		})
	}
}

// What a step is carried out with depends on the step, and not on those before it.
func TestEachStepIsCarriedOutInItsOwnWay(t *testing.T) {
	plain := func(more string) *bench {
		return newBench(t, redisPlan(t, 1, "", "ops = { put = 1 }\nclosed {\n iterations = 5\n}\n"+more), "load", 0)
	}
	traced := newReplayBench(t, "", "1,key:1,5,1,1,get,0\n", 1, 0)
	for _, tt := range []struct {
		name     string
		b        *bench
		way      way
		ordinals uint64
		sampled  bool
		exact    bool // the codec makes each request
	}{
		{"plain", plain(""), new(runs), 0, false, false},
		{"sampled", plain("samples = 1"), new(runs), 0, true, false},
		{"grows", plain("growth {}"), new(programs), 1, false, false},
		{"replayed", traced, new(programs), 0, false, true},
	} {
		l := tt.b.l
		for _, kind := range []worker.StepKind{worker.Load, worker.Setup} {
			source, err := workload.New(tt.b.g.plan, tt.b.g.phase, workload.Step{Kind: workload.Kind(worker.Load)})
			require.NoError(t, err)
			tt.b.g.choose(l, source, stepOf(tt.b.g.phase, kind))
			if kind == worker.Setup {
				tt.way, tt.ordinals, tt.sampled, tt.exact = new(runs), 0, false, false
			}
			require.IsType(t, tt.way, l.way, "%s, %v", tt.name, kind)
			require.Equal(t, tt.ordinals, l.ordinals, "%s, %v", tt.name, kind)
			require.Equal(t, tt.sampled, l.sampling != nil, "%s, %v", tt.name, kind)
			require.Equal(t, tt.exact, l.tr.(*wire).writer.exact, "%s, %v", tt.name, kind)
		}
	}
}

// Puts into two datasets on a target are each asked for with their own TTL.
func TestPutsOfTwoDatasetsKeepTheirTTLs(t *testing.T) {
	p := redisPlan(t, 1, "", "scenario \"both\" { \n step \"put\" {}\n step \"put\" {}\n}\nclosed {\n iterations = 3\n}")
	lasting := *p.Datasets[0]
	lasting.Name, lasting.Values.TTL = "e", 200*time.Second
	p.Datasets = append(p.Datasets, &lasting)
	p.Phases[0].Scenarios[0].Steps[1].Dataset = "e"
	b := newBench(t, p, "load", time.Millisecond)
	b.run(worker.Load)
	const put, expires = len("*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000000\r\n$100\r\n\r\n") + 100, len("$2\r\nEX\r\n$3\r\n200\r\n")
	require.Equal(t, 6*put+3*expires, b.server(0).told)
}

// every is the latency of a server that lets each n-th request wait for so long, and the others for a millisecond.
func every(n int, d time.Duration) func(int) time.Duration {
	return func(i int) time.Duration {
		if i%n == 0 {
			return d
		}
		return time.Millisecond
	}
}

// played is the result of a phase: its snapshots, what the servers hold in the end, and the staleness if that was measured.
type played struct {
	snapshots [][]byte
	held      []map[string][]byte
	staleness measure.Staleness
}

// playWay carries out a phase.
func playWay(t *testing.T, p *plan.Plan, script func(b *bench), direct bool) (got played) {
	b := newBench(t, p, "load", time.Millisecond)
	defer b.g.close()
	if script != nil {
		script(b)
	}
	b.indirect = !direct
	b.seen = func(s *measure.Snapshot) { got.snapshots = append(got.snapshots, bytesOf(t, s)) }
	total := b.run(worker.Load)
	require.Equal(t, direct, b.l.way != way(b.l.programs))
	due := uint64(0)
	for _, o := range total.Ops {
		due += o.Ledger().Due
	}
	require.Positive(t, due)
	if total.Versions != nil {
		got.staleness = total.Versions.Staleness
	}
	for i := range b.g.endpoints {
		got.held = append(got.held, b.server(i).keys)
	}
	return got
}

func bytesOf(t testing.TB, x interface {
	AppendBinary([]byte) ([]byte, error)
},
) []byte {
	b, err := x.AppendBinary(nil)
	require.NoError(t, err)
	return b
}
