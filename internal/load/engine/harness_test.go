package engine

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// parsePlan resolves the text of a plan without its plan block.
func parsePlan(t testing.TB, text string) *plan.Plan {
	t.Helper()
	return parsePlanFor(t, drivers.All(), text)
}

// parsePlanFor is parsePlan for a test's own drivers.
func parsePlanFor(t testing.TB, all []driver.Driver, text string) *plan.Plan {
	t.Helper()
	servertest.Deadline(t)
	file, diags := plan.Parse([]byte("plan \"test\" { seed = 7 }\n"+text), "test.hcl", all)
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	return p
}

// bench is one loop over a scripted network, in virtual time.
type bench struct {
	t     testing.TB
	net   *virtualNet
	e     *Engine
	g     *group
	l     *loop
	snaps []measure.Snapshot
	use   joined // of the last step

	seen     func(*measure.Snapshot)     // when set, is shown each snapshot; what its pointers lead to is only valid until it returns
	indirect bool                        // plain ops are left to their program
	wrap     func(op.Program) op.Program // when set, what programs are wrapped in
	log      *logged                     // when set, how ops ended is written to it; they are indirect then
	refusal  string                      // when set, how servers answer the greeting
	silent   int                         // so many endpoints, the last ones, do not answer the greeting
	slotless int                         // so many endpoints of a cluster, the last ones, have no slots

	drives func(driver.Wire) driver.Wire // when set, what to use in place of the plan's driver
}

// firstPort is where the scripted servers begin.
const firstPort = 7001

// newBench prepares the sessions of a plan's phase. The target's endpoints are 127.0.0.1:7001 and so on; its servers answer after latency.
func newBench(t testing.TB, p *plan.Plan, phase string, latency time.Duration) *bench {
	t.Helper()
	b := &bench{t: t, net: newVirtualNet(10)}
	require.NoError(t, b.connect(p, phase, latency, b.net.clock))
	return b
}

// newPipedBench is newBench for a target on the blocking executor, in a bubble of virtual time.
func newPipedBench(t testing.TB, p *plan.Plan, phase string, latency time.Duration) *bench {
	t.Helper()
	b := &bench{t: t, net: newVirtualNet(0)}
	require.NoError(t, b.connect(p, phase, latency, &wallClock{zero: time.Now(), nap: time.Sleep}))
	return b
}

// connect opens the connections of the phase's sessions.
func (b *bench) connect(p *plan.Plan, phase string, latency time.Duration, c clock) error {
	t := b.t
	t.Helper()
	b.e = New(Config{Drivers: drivers.All(), Loops: 1, Spin: -1, Logger: slog.New(slog.DiscardHandler)})
	b.e.newPoller = func() (sockets.Poller, error) { return b.net, nil }
	b.e.resolve = nil
	b.e.dial = b.net.dial
	b.e.clock, b.e.plan, b.e.wall = c, p, int64(time.Hour)
	b.e.written = map[[2]string]*written{}
	return b.enter(phase, latency)
}

// enter begins a phase, on the servers that are there.
func (b *bench) enter(phase string, latency time.Duration) error {
	t, p := b.t, b.e.plan
	t.Helper()
	b.g = &group{plan: p, phase: p.Phase(phase), sessions: p.Phase(phase).Sessions(), parts: 1, written: b.e.writtenBy(p.Phase(phase))}
	b.g.target = p.Target(b.g.phase.Target)
	b.g.forms = b.g.target.Forms(p.Words())
	b.g.connect = sockets.Connector{Dial: b.e.dial}
	var err error
	b.g.driver, err = b.e.driver(b.g.target.Driver)
	require.NoError(t, err)
	if b.drives != nil {
		b.g.driver = b.drives(b.g.driver.(driver.Wire))
	}
	b.g.executor = b.g.target.Executor
	require.NoError(t, b.g.locate(nil))
	for i := range b.g.endpoints {
		server := b.server(i)
		if server == nil {
			server = b.net.server(uint16(firstPort+i), latency)
		}
		server.far.refusal = b.refusal
		server.mute = i >= len(b.g.endpoints)-b.silent
		b.g.endpoints[i].Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+i))
	}
	if c, ok := clustered(b.g.target, b.g.driver); ok {
		b.divide(c)
	}
	for i, name := range b.g.phase.Targets()[1:] {
		x := &side{target: p.Target(name), number: i + 1, clients: 1, connect: b.g.connect}
		x.driver, err = b.e.driver(x.target.Driver)
		require.NoError(t, err)
		require.NoError(t, x.locate(nil))
		for i := range x.endpoints {
			x.endpoints[i].Addr = netip.MustParseAddrPort(x.endpoints[i].Text)
			b.net.server(x.endpoints[i].Addr.Port(), latency)
		}
		b.g.others = append(b.g.others, x)
	}
	b.l, err = b.g.newLoop(b.e, 0)
	require.NoError(t, err)
	b.g.loops = []*loop{b.l}
	b.g.number(0)
	return b.l.tr.open(b.e.clock.now() + int64(time.Second))
}

// divide makes the endpoints a cluster whose slots are in turn those of each.
func (b *bench) divide(d driver.Cluster) {
	c := newCluster(&b.g.side, d)
	slots := op.NewSlots(len(b.g.endpoints))
	for i, end := range b.g.endpoints {
		c.name(i, end.Text)
	}
	for slot := range op.NumSlots {
		slots.Set(slot, slot%(len(b.g.endpoints)-b.slotless))
	}
	c.newest.Store(slots)
	b.g.cluster = c
}

func (b *bench) server(i int) *virtualServer { return b.net.servers[uint16(firstPort+i)] }

// stepOf is the only step of a kind that a phase has, for one worker.
func stepOf(ph *plan.Phase, kind worker.StepKind) worker.Step {
	step := worker.Step{Phase: ph.Name, Kind: kind, Last: true, To: ph.Sessions()}
	if ph.Open != nil && kind.Timed() {
		step.Shape = pace.Shape(ph.Open.Shape())
	}
	return step
}

// usePrograms has programs carry out the ops of the current step, as [thread] and [scenes] do.
func (l *loop) usePrograms() {
	if w, ok := l.tr.(*wire); ok && l.scenes == nil {
		w.use(l.programs)
		w.writer.exact = true // the codec itself is what writers are held against
		l.way = l.programs
	}
}

// equip readies a step that starts now.
func (b *bench) equip(kind worker.StepKind) <-chan part {
	b.t.Helper()
	return b.equipStep(stepOf(b.g.phase, kind))
}

func (b *bench) equipStep(step worker.Step) <-chan part {
	b.t.Helper()
	source, err := workload.New(b.g.plan, b.g.phase, workload.Step{Kind: workload.Kind(step.Kind), Level: step.Level, Shape: step.Shape})
	require.NoError(b.t, err)
	b.g.equip(b.l, source, step)
	if b.indirect || b.log != nil {
		b.l.usePrograms()
	}
	if b.log != nil {
		b.log.Program = b.l.programs.Program
		b.l.programs.Program = b.log
	}
	if b.wrap != nil {
		b.l.programs.Program = b.wrap(b.l.programs.Program)
	}
	parts := make(chan part, 10_000)
	b.l.begin(b.e.clock.now(), parts)
	return parts
}

// run carries a step out and returns what was counted.
func (b *bench) run(kind worker.StepKind) measure.Totals {
	b.t.Helper()
	return b.runStep(stepOf(b.g.phase, kind))
}

func (b *bench) runStep(step worker.Step) measure.Totals {
	b.t.Helper()
	parts := b.equipStep(step)
	b.l.run()
	seq, number, sum := uint64(0), uint64(0), measure.Counters{}
	c := collector{g: b.g, begin: b.l.origin, seq: &seq, sink: func(s *measure.Snapshot) {
		number++
		sum.Add(&s.Delta)
		require.Equal(b.t, [2]uint64{number, number}, [2]uint64{s.SeqFirst, s.SeqLast})
		require.Equal(b.t, sum, s.Running)
		b.snaps = append(b.snaps, *s)
		if b.seen != nil {
			b.seen(s)
		}
	}}
	totals := c.collect(parts)
	b.use = c.use
	require.NoError(b.t, totals.CheckValid())
	return totals
}

// redisPlan is a plan with one phase, "load", on a number of scripted servers.
func redisPlan(t testing.TB, endpoints int, target, phase string) *plan.Plan {
	return redisPlanOf(t, endpoints, "size = 100", target, phase)
}

// redisPlanOf is redisPlan with values of a kind.
func redisPlanOf(t testing.TB, endpoints int, values, target, phase string) *plan.Plan {
	list := ""
	for i := range endpoints {
		list += fmt.Sprintf("%q, ", fmt.Sprintf("127.0.0.1:%d", firstPort+i))
	}
	return parsePlan(t, fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = [%s]
			%s
		}
		dataset "d" {
			keys { count = 100 }
			values {
				%s
			}
		}
		phase "load" {
			target      = target.t
			dataset     = dataset.d
			%s
		}`, list, target, values, phase))
}
