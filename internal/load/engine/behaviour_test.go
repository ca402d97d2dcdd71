package engine

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// behaviour is a load in virtual time, which writes down what it did.
type behaviour struct {
	name string
	play func(t *testing.T) string
}

// onBench is a load on a loop of its own.
func onBench(name string, play func(t *testing.T) (*bench, measure.Totals)) behaviour {
	return behaviour{name, func(t *testing.T) string {
		b, totals := play(t)
		return tell(b, &totals)
	}}
}

// of is a load on scripted Redis servers, and the same load once more unless the first was made to end early.
func (c wayCase) of(name string, kind worker.StepKind) behaviour {
	return behaviour{name + c.name, func(t *testing.T) string {
		p := redisPlanOf(t, c.endpoints, cmp.Or(c.values, "size = 100"), c.target, c.phase)
		draw(p, kind)
		b := newBench(t, p, "load", time.Millisecond)
		t.Cleanup(b.g.close)
		if c.script != nil {
			c.script(b)
		}
		first := b.run(kind)
		told := tell(b, &first)
		if b.e.halt.Load() != goOn || b.l.lapsed {
			return told
		}
		b.snaps = nil
		second := b.run(kind)
		return told + tell(b, &second)
	}}
}

// draw has a load keep some of its ops.
func draw(p *plan.Plan, kind worker.StepKind) {
	if ph := p.Phase("load"); kind == worker.Load && ph.Samples == 0 {
		ph.Samples = 40
	}
}

// behaviours are loads of every kind that a loop carries out, with what can happen to them.
func behaviours() (all []behaviour) {
	for _, c := range plainCases() {
		all = append(all, c.of("plain: ", worker.Load))
	}
	for _, c := range quorumCases() {
		for _, endpoints := range []int{3, 5} {
			on := c
			on.endpoints, on.script = endpoints, c.unequal(endpoints)
			all = append(all, on.of(fmt.Sprintf("quorum of %d: ", endpoints), worker.Load))
		}
	}
	const closed = "closed {\n sessions = 3\n duration = \"1s\"\n pipeline = 5\n}"
	const hits = "max_bad = 1\nexpect_hits = 0\nops = { get = 2, put = 1 }\n"
	late := func(b *bench) { b.server(0).latency = every(7, 30*time.Millisecond) }
	dies := func(b *bench) {
		b.net.at(time.Duration(b.net.clock.t)+300*time.Millisecond, func() {
			b.server(0).down = true
			b.server(0).sever()
		})
		b.net.at(time.Duration(b.net.clock.t)+700*time.Millisecond, func() { b.server(0).down = false })
	}
	abandoned := func(b *bench) {
		b.net.at(time.Duration(b.net.clock.t)+400*time.Millisecond, func() { b.e.halt.Store(abandon) })
	}
	for _, c := range []wayCase{
		{name: "batches", endpoints: 3, phase: hits + "batch = 4\n" + closed},
		{name: "late batches", endpoints: 2, target: `timeout = "20ms"`, phase: hits + "batch = 4\n" + closed, script: late},
		{name: "batches on a node that dies", endpoints: 2, phase: hits + "batch = 4\n" + closed, script: dies},
		{name: "batches in pieces", endpoints: 2, values: "size = 3000", phase: hits + "batch = 4\n" + closed, script: func(b *bench) { b.server(0).piece = 700 }},
		{name: "a node that dies and comes back", endpoints: 2, phase: plainMix + closed, script: dies},
		{name: "a node that falls silent", endpoints: 2, target: `timeout = "20ms"`, phase: "max_bad = 1\nexpect_hits = 0\nops = { get = 1 }\n" + closed, script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+300*time.Millisecond, func() { b.server(0).latency = every(1, -1) })
		}},
		{name: "a server that does not greet", endpoints: 2, target: `timeout = "1500ms"`, phase: plainMix + "closed {\n sessions = 3\n duration = \"6s\"\n think = \"10ms\"\n}", script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+200*time.Millisecond, func() {
				b.server(0).mute = true
				b.server(0).sever()
			})
			b.net.at(time.Duration(b.net.clock.t)+700*time.Millisecond, b.server(1).sever)
			b.net.at(time.Duration(b.net.clock.t)+4*time.Second, func() { b.server(0).mute = false })
		}},
		{name: "a server that is no longer allowed", endpoints: 2, phase: plainMix + closed, script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+300*time.Millisecond, func() {
				b.g.connect.Allow = func(to netip.AddrPort, _ string) error {
					if to.Port() == firstPort+1 {
						return errors.New("not here")
					}
					return nil
				}
				b.server(1).sever()
			})
		}},
		{name: "abandoned", endpoints: 2, phase: plainMix + closed, script: abandoned},
		{name: "abandoned batches", endpoints: 2, phase: hits + "batch = 4\n" + closed, script: abandoned},
		{name: "an abandoned quorum", endpoints: 3, target: nwr321, phase: plainMix + closed, script: abandoned},
		{name: "abandoned scenarios", endpoints: 2, phase: checkout + "max_bad = 1\n" + closed, script: abandoned},
		{name: "drained batches", endpoints: 2, phase: hits + "batch = 4\n" + closed, script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+400*time.Millisecond, func() {
				b.server(0).latency = every(1, -1)
				b.e.Drain()
			})
		}},
		{name: "late garbage", endpoints: 2, target: `timeout = "20ms"`, phase: plainMix + closed, script: func(b *bench) {
			b.server(0).latency = every(1, 30*time.Millisecond)
			b.net.at(time.Duration(b.net.clock.t)+300*time.Millisecond, func() { b.server(0).words = []byte("HTTP/1.1 400 Bad Request\r\n\r\n") })
		}},
		{name: "a ramp", endpoints: 2, phase: plainMix + "open {\n rate = 2000\n duration = \"2s\"\n ramp = \"1s\"\n arrivals = \"constant\"\n sessions = 8\n}"},
		{name: "think time", endpoints: 1, phase: plainMix + "closed {\n sessions = 4\n duration = \"2s\"\n think = \"10ms\"\n}"},
		{name: "a loop that stands still", endpoints: 2, phase: plainMix + "open {\n rate = 2000\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 10\n pipeline = 2\n drain = \"1s\"\n}", script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+400*time.Millisecond, func() { b.net.clock.t += int64(30 * time.Millisecond) })
			b.net.at(time.Duration(b.net.clock.t)+600*time.Millisecond, func() { b.net.clock.t += int64(300 * time.Millisecond) })
		}},
		{name: "a closed loop that stands still", endpoints: 1, phase: plainMix + closed, script: func(b *bench) {
			b.net.at(time.Duration(b.net.clock.t)+400*time.Millisecond, func() { b.net.clock.t += int64(260 * time.Millisecond) })
		}},
		{name: "waiting for room", endpoints: 1, phase: plainMix + "open {\n rate = 4000\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 10\n pipeline = 4\n in_flight = 3\n drain = \"500ms\"\n}"},
		{name: "shedding for want of room", endpoints: 1, phase: plainMix + "open {\n rate = 4000\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 10\n pipeline = 4\n in_flight = 3\n on_full = \"shed\"\n}"},
		{name: "scenarios", endpoints: 2, phase: "samples = 40\n" + checkout + "closed {\n sessions = 4\n duration = \"1s\"\n}"},
		{name: "scenarios in a schedule", endpoints: 2, phase: checkout + "open {\n rate = 500\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 6\n}"},
		{name: "scenarios that find no room", endpoints: 2, phase: checkout + "max_bad = 1\nopen {\n rate = 3000\n duration = \"1s\"\n arrivals = \"constant\"\n sessions = 3\n on_full = \"shed\"\n}"},
		{name: "late scenarios", endpoints: 2, target: `timeout = "20ms"`, phase: checkout + "max_bad = 1\n" + closed, script: late},
		{name: "scenarios on a node that dies", endpoints: 2, phase: checkout + "max_bad = 1\n" + closed, script: dies},
		{name: "ops by number", endpoints: 1, phase: "ops = { put = 1 }\nclosed {\n iterations = 500\n}\ngrowth {}"},
		{name: "samples", endpoints: 2, phase: "samples = 50\n" + plainMix + closed, script: late},
		{name: "sixteen copies", endpoints: 17, target: "replication {\n coordinate = \"client\"\n n = 16\n w = 16\n r = 16\n}", phase: quorumMix + "closed {\n sessions = 2\n iterations = 50\n}"},
		{name: "reads from one copy at a time", endpoints: 3, target: "timeout = \"20ms\"\nreplication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 1\n read_fanout = \"r\"\n read_from = \"random\"\n}", phase: plainMix + closed, script: late},
	} {
		all = append(all, c.of("others: ", worker.Load))
	}
	for _, c := range []wayCase{
		{name: "plain", endpoints: 2},
		{name: "late", endpoints: 2, target: `timeout = "20ms"`, script: late},
		{name: "quorum", endpoints: 3, target: nwr321, script: dies},
	} {
		c.phase = "populate {\n sessions = 2\n pipeline = 5\n}"
		all = append(all, c.of("populate: ", worker.Populate))
	}
	_, text := recorded(2000)
	replayed := func(name string, prepare func(t *testing.T) *bench) {
		all = append(all, onBench(name, func(t *testing.T) (*bench, measure.Totals) {
			b := prepare(t)
			_, totals := b.replay()
			return b, totals
		}))
	}
	const takes = 700 * time.Microsecond
	for name, halted := range map[string]int32{"drained": drain, "abandoned": abandon} {
		replayed("replay: "+name, func(t *testing.T) *bench {
			b := newReplayBench(t, "sessions = 2", text, 2000, takes)
			b.net.at(time.Duration(b.net.clock.t)+200*time.Millisecond, func() { b.e.halt.Store(halted) })
			return b
		})
		replayed("rerun: "+name, func(t *testing.T) *bench {
			b := newRerunBench(t, "loop = true", "sessions = 5\n pipeline = 2\n iterations = 9000", text, takes)
			b.net.at(time.Duration(b.net.clock.t)+200*time.Millisecond, func() { b.e.halt.Store(halted) })
			return b
		})
	}
	for name, load := range map[string]string{
		"as it was": "sessions = 4\n pipeline = 4", "without room": "sessions = 2\n drain = \"100ms\"", "shed": "sessions = 1\n on_full = \"shed\"",
	} {
		replayed("replay: "+name, func(t *testing.T) *bench { return newReplayBench(t, load, text, 2000, takes) })
	}
	replayed("replay: twice as fast", func(t *testing.T) *bench {
		b := newReplayBench(t, "sessions = 4\n pipeline = 4", text, 2000, takes)
		b.g.phase.Open.Trace.Speed = 2
		return b
	})
	for name, load := range map[string][2]string{
		"as fast as it goes": {"", "sessions = 4\n pipeline = 4"},
		"thinking":           {"", "sessions = 3\n think = \"2ms\"\n ramp = \"100ms\""},
		"again and again":    {"loop = true", "sessions = 5\n pipeline = 2\n iterations = 900"},
	} {
		replayed("rerun: "+name, func(t *testing.T) *bench { return newRerunBench(t, load[0], load[1], text, takes) })
	}
	for name, words := range map[string]string{"as it is": "", "moved": "-MOVED 7 127.0.0.1:%d\r\n", "asked": "-ASK 7 127.0.0.1:%d\r\n"} {
		all = append(all, onBench("cluster: "+name, func(t *testing.T) (*bench, measure.Totals) {
			if words == "" {
				return clusterLoad(t, nil)
			}
			return clusterLoad(t, map[int]string{0: fmt.Sprintf(words, firstPort+2)})
		}))
	}
	for _, program := range replicated {
		for name, feed := range map[string]string{
			"closed": "closed {\n sessions = 3\n iterations = 300\n pipeline = 2\n think = \"1ms\"\n}", "open": "open {\n rate = 2000\n duration = \"1s\"\n arrivals = \"constant\"\n}",
		} {
			all = append(all, onBench(fmt.Sprintf("null: %s, %s", program.name, name), func(t *testing.T) (*bench, measure.Totals) {
				target := program.target + "\n timeout = \"2ms\"\n latency = \"500us\"\n spread = \"exponential\"\n miss_every = 7\n error_every = 50"
				totals, _ := execute(t, Config{Loops: 1}, nullPlan(t, 4, target, mixed+feed), &virtualClock{})
				return nil, totals
			}))
		}
	}
	all = append(all,
		behaviour{"phases: keys that all share", phases("shared", worker.Populate, worker.Load, worker.Load, worker.Clear, worker.Load)},
		behaviour{"phases: keys of each session", phases("session", worker.Setup, worker.Load, worker.Load, worker.Clear)},
	)
	for _, c := range engineCases() {
		all = append(all, behaviour{c.name, c.play})
	}
	slices.SortFunc(all, func(a, b behaviour) int { return strings.Compare(a.name, b.name) })
	return all
}

// TestBehaviour holds what loads of every kind do, in virtual time, against what they did: what was due and how it ended, how long it took, what the
// servers got, and when it was over. A change of one of these is meant, or an error that tests which compare one way with another cannot see.
func TestBehaviour(t *testing.T) {
	const path = "testdata/behaviour.golden"
	held, err := os.ReadFile(path)
	require.True(t, err == nil || *update, err)
	want := map[string]string{}
	for _, part := range strings.Split(string(held), "\n\n") {
		name, told, _ := strings.Cut(strings.TrimRight(part, "\n"), "\n")
		want[name] = told
	}
	var file strings.Builder
	for i, c := range behaviours() {
		if !servertest.Whole() && !*update && i%4 > 0 {
			delete(want, c.name)
			continue // one goroutine does it all
		}
		t.Run(c.name, func(t *testing.T) {
			told := strings.TrimRight(c.play(t), "\n")
			fmt.Fprintf(&file, "%s\n%s\n\n", c.name, told)
			if !*update {
				require.Equal(t, want[c.name], told)
			}
		})
		delete(want, c.name)
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(file.String()), 0o644))
		return
	}
	delete(want, "")
	require.Empty(t, want, "loads that the file has and the test has not")
}

// tell writes down what a load did; b is nil without scripted servers.
func tell(b *bench, t *measure.Totals) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, "\t"+format+"\n", args...) }
	for v, o := range t.Ops {
		if o != nil {
			line("%v %s", driver.Verb(v), tellOp(o))
		}
	}
	for i, s := range t.Scenarios {
		if s != nil {
			line("scenario %d %s", i, tellOp(s))
		}
	}
	for at, r := range t.Requests {
		if r != (measure.Requests{}) {
			line("%d.%v: sent %d, answered %d, timeout %d, error %d, refused %d, moved %d, ask %d, in flight %d",
				at/driver.NumVerbs, driver.Verb(at%driver.NumVerbs), r.Sent, r.Answered, r.Timeout, r.Error, r.Refused, r.Moved, r.Ask, r.InFlight)
		}
	}
	line("opened again %d, late %d, foreign %d, stalls %d, waited %s, ops %x", t.Reconnects, t.LateReplies, t.Foreign, t.Stalls, tellTimes(&t.Waited), t.Digest)
	line("%s; away %s, lost %v", tellSpan(&t.Span, t.Origin), tellAway(t.Away), micros(int64(t.Lost.Total())))
	for text, n := range t.Errors.All() {
		line("error %d × %s", n, text)
	}
	if b == nil {
		return out.String()
	}
	for _, port := range slices.Sorted(maps.Keys(b.net.servers)) {
		s := b.net.servers[port]
		sum := uint32(0)
		for _, key := range slices.Sorted(maps.Keys(s.keys)) {
			sum = crc32.Update(crc32.Update(sum, crc32.IEEETable, []byte(key)), crc32.IEEETable, s.keys[key])
		}
		got := ""
		for _, command := range slices.Sorted(maps.Keys(s.got)) {
			if n := *s.got[command]; n > 0 {
				got += fmt.Sprintf(" %d %s", n, command)
			}
		}
		line("server %d got%s in %d bytes, said %d, holds %d keys %x", port, got, s.told, s.said, len(s.keys), sum)
	}
	var drawn []measure.DrawnOp
	for i := range b.snaps {
		drawn = append(drawn, b.snaps[i].Samples.Ops()...)
	}
	line("over after %v in %d snapshots with %s", micros(b.net.clock.t-b.l.origin), len(b.snaps), tellSamples(drawn, b.e.wall+t.Origin))
	return out.String()
}

// tellSamples is what is known of single ops: how many bytes they got and sent, and a sum of all of it.
func tellSamples(drawn []measure.DrawnOp, begin int64) string {
	var received, sent int64
	sum := uint32(0)
	for _, o := range drawn {
		received, sent = received+o.In, sent+o.Out
		why := lineNumbers.ReplaceAllString(o.Error, ".go")
		sum += crc32.ChecksumIEEE(fmt.Appendf(nil, "%v %v %v %d %d %d %v %v %s", micros(o.Due-begin), micros(o.Start-begin), micros(o.End-begin), o.In, o.Out, o.Code, o.Verb, o.Outcome, why))
	}
	return fmt.Sprintf("%d samples in %d out %d: %x", len(drawn), received, sent, sum)
}

func tellSpan(s *measure.Span, begin int64) string {
	at := func(ns int64) time.Duration { return micros(ns - begin) }
	out := fmt.Sprintf("%d sessions from %v and %v to %v and %v, busy until %v, turns of %v", s.Sessions, at(s.First), at(s.LastFirst), at(s.FirstLast), at(s.Last), at(s.FirstOut), micros(s.Turn))
	if s.Losers > 0 {
		out += fmt.Sprintf(", %d lose time from %v on", s.Losers, at(s.LostFrom))
	}
	return out
}

func tellAway(away []uint64) string {
	var all []string
	for _, ns := range away {
		all = append(all, micros(int64(ns)).String())
	}
	return strings.Join(all, " + ")
}

func tellOp(o *measure.Op) string {
	out := fmt.Sprintf("due %d:", o.Due)
	for outcome, n := range o.Outcomes {
		if n > 0 {
			out += fmt.Sprintf(" %v %d,", driver.Outcome(outcome), n)
		}
	}
	for cause, n := range o.Causes {
		if n > 0 {
			out += fmt.Sprintf(" for %v %d,", op.EventKind(cause), n)
		}
	}
	out += fmt.Sprintf(" in flight %d, in %d, out %d; lag %s", o.InFlight, o.In, o.Out, tellTimes(&o.Lag))
	for class := range o.Service {
		if o.Service[class].Count() > 0 {
			out += fmt.Sprintf("; class %d service %s response %s", class, tellTimes(&o.Service[class]), tellTimes(&o.Response[class]))
		}
	}
	for k := range o.Acks {
		out += fmt.Sprintf("; ack %d %s", k+1, tellTimes(&o.Acks[k]))
	}
	if o.Keys.Due > 0 {
		out += fmt.Sprintf("; keys %d %v, in flight %d", o.Keys.Due, o.Keys.Outcomes, o.Keys.InFlight)
	}
	for i, step := range o.Steps {
		out += fmt.Sprintf("; step %d due %d %v", i, step.Due, step.Outcomes)
	}
	if o.Growth != nil {
		out += fmt.Sprintf("; growth %d bins of 2^%d", len(o.Growth.Bins), o.Growth.Shift)
	}
	return out
}

// tellTimes is how many times a histogram has, their mean, and the longest.
func tellTimes(h *hist.Hist) string {
	if h.Count() == 0 {
		return "none"
	}
	return fmt.Sprintf("%d of %v up to %v", h.Count(), micros(int64(h.Mean())), micros(h.Max()))
}

// micros is a time without its nanoseconds, which depend on how often the clock was read.
func micros(ns int64) time.Duration { return time.Duration(ns).Round(time.Microsecond) }
