package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// nullPlan is a plan with a phase "load" on n endpoints of the null driver.
func nullPlan(t testing.TB, n int, target, phase string) *plan.Plan {
	list := ""
	for i := range n {
		list += fmt.Sprintf("\"10.0.0.%d:1\", ", 1+i)
	}
	return parsePlan(t, fmt.Sprintf(`
		target "t" {
			driver    = "null"
			endpoints = [%s]
			%s
		}
		dataset "d" {
			keys { count = 1000 }
			values { size = 100 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			max_bad = 1
			%s
		}`, list, target, phase))
}

// logged writes down how ops ended, in order.
type logged struct {
	op.Program
	lines     []string
	anyWriter bool // it does not matter whose value was read
}

func (p *logged) On(dst []driver.Request, ev op.Event) ([]driver.Request, op.Step) {
	dst, step := p.Program.On(dst, ev)
	timeless := step
	timeless.Version = 0 // it holds the time of a put to the nanosecond
	if p.anyWriter {
		timeless.Writer = 0
	}
	p.lines = append(p.lines, fmt.Sprintf("%d/%d %v %v from %d: %+v", ev.Op.Stream, ev.Op.N, ev.Op.Verb, ev.Kind, ev.Endpoint, timeless))
	return dst, step
}

// execute runs the phase "load" of a plan on an engine and returns what it counted, and the bytes of its snapshots.
func execute(t testing.TB, cfg Config, p *plan.Plan, c clock) (measure.Totals, []byte) {
	totals, sealed, _ := executeLogged(t, cfg, p, c)
	return totals, sealed
}

// executeLogged is execute with the events of the first loop's program.
func executeLogged(t testing.TB, cfg Config, p *plan.Plan, c clock) (measure.Totals, []byte, []string) {
	t.Helper()
	cfg.Sleep = time.Sleep
	e := assigned(t, cfg, p)
	defer e.Close()
	if c != nil {
		e.clock = c
	}
	loaded(t, e)
	events := &logged{Program: e.group.loops[0].programs.Program}
	e.group.loops[0].programs.Program = events
	var sealed []byte
	final, err := e.Run(t.Context(), e.now(), func(s *measure.Snapshot) (keep func() error, err error) {
		sealed, err = s.AppendBinary(sealed)
		return s.CheckValid, err
	})
	require.NoError(t, err)
	require.NoError(t, final.Totals.CheckValid())
	return *final.Totals, sealed, events.lines
}

const mixed = `
	ops = {
		get    = 3
		put    = 2
		delete = 1
	}
`

// mixedVerbs is how many verbs mixed has; they are the first.
const mixedVerbs = 3

var replicated = []struct{ name, target string }{
	{"plain", ""},
	{"nwr", nwr321},
	{"nwr all", "replication {\n coordinate = \"client\"\n n = 3\n w = 3\n r = 3\n}"},
	{"nwr read one", "replication {\n coordinate = \"client\"\n n = 3\n w = 2\n r = 1\n read_fanout = \"r\"\n read_from = \"random\"\n}"},
}

// TestLoopsShareTheOps runs the same plan on 1, 2 and 4 loops: the multiset of ops is the same.
func TestLoopsShareTheOps(t *testing.T) {
	for _, feed := range []string{
		"closed {\n sessions = 9\n iterations = 100\n}",
		"open {\n rate = 5000\n duration = \"200ms\"\n arrivals = \"poisson\"\n}",
		"open {\n rate = 5000\n duration = \"200ms\"\n arrivals = \"constant\"\n}",
	} {
		p := nullPlan(t, 1, "", mixed+feed)
		one, _ := execute(t, Config{Loops: 1}, p, nil)
		for _, loops := range []int{2, 4} {
			many, _ := execute(t, Config{Loops: loops}, p, nil)
			require.Equal(t, one.Digest, many.Digest)
			for v, o := range one.Ops[:mixedVerbs] {
				require.Equal(t, o.Due, many.Ops[v].Due)
			}
		}
	}
}

// onBlocking puts a target on the blocking executor.
const onBlocking = "\n executor = \"blocking\"\n"

// TestExecutorsAgree runs every program over the same replies on both executors, in virtual time: the same events come in the same order with the
// same result. The think time lets every straggler come in before the session's next op: a blocking client carries out one request at a time, while a
// connection of the event loop has many outstanding.
func TestExecutorsAgree(t *testing.T) {
	const feed = "closed {\n sessions = 3\n iterations = 300\n think = \"30ms\"\n}"
	for _, program := range replicated {
		t.Run(program.name, func(t *testing.T) {
			target := program.target + "\n latency = \"500us\"\n spread = \"exponential\"\n miss_every = 7\n error_every = 10"
			loop, _, want := executeLogged(t, Config{Loops: 1}, nullPlan(t, 4, target, mixed+feed), &virtualClock{})
			servertest.Bubble(t, func(t *testing.T) {
				blocking, _, got := executeLogged(t, Config{Loops: 1}, nullPlan(t, 4, target+onBlocking, mixed+feed), nil)
				require.Equal(t, want, got)
				require.Equal(t, loop.Digest, blocking.Digest)
				require.Equal(t, loop.Requests, blocking.Requests)
				for v, o := range loop.Ops[:mixedVerbs] {
					require.Equal(t, o.Ledger(), blocking.Ops[v].Ledger(), driver.Verb(v))
					require.Equal(t, o.Causes, blocking.Ops[v].Causes, driver.Verb(v))
					a, b := o.ResponseAll().Answered, blocking.Ops[v].ResponseAll().Answered
					require.Equal(t, a.Quantile(0.5), b.Quantile(0.5))
				}
			})
		})
	}
}

// TestTimeoutsOnBothExecutors has replies that come too late. A blocking client is unusable after one, so what follows differs between executors. On
// both, requests time out after the timeout, and nothing is lost.
func TestTimeoutsOnBothExecutors(t *testing.T) {
	const feed = "closed {\n sessions = 3\n iterations = 300\n think = \"20ms\"\n}"
	const target = "timeout = \"2ms\"\n latency = \"1ms\"\n spread = \"exponential\""
	check := func(t *testing.T, got measure.Totals) {
		for v, o := range got.Ops[:mixedVerbs] {
			require.Greater(t, o.Outcomes[driver.Timeout], o.Due/12, driver.Verb(v)) // e^-2 is 0.135
			require.Equal(t, o.Due, o.Outcomes[driver.OK]+o.Outcomes[driver.Timeout], driver.Verb(v))
			require.InDelta(t, 2e6, o.Service[measure.ClassBad].Quantile(0.5), 2e4)
		}
	}
	loop, _ := execute(t, Config{Loops: 1}, nullPlan(t, 1, target, mixed+feed), &virtualClock{})
	check(t, loop)
	require.Positive(t, loop.LateReplies)
	servertest.Bubble(t, func(t *testing.T) {
		blocking, _ := execute(t, Config{Loops: 1}, nullPlan(t, 1, target+onBlocking, mixed+feed), nil)
		check(t, blocking)
	})
}

// TestIdleWorker has no session in a step: it is ready, runs and is empty.
func TestIdleWorker(t *testing.T) {
	p := nullPlan(t, 1, "", mixed+"closed {\n iterations = 5\n}")
	e := assigned(t, Config{Loops: servertest.Loops()}, p)
	ready := prepared(t, e, worker.Step{Phase: "load", Kind: worker.Load, Last: true, From: 1, To: 1})
	require.Zero(t, ready.Sessions)
	snapshots := 0
	final, err := e.Run(t.Context(), 0, func(s *measure.Snapshot) (func() error, error) {
		snapshots++
		require.True(t, s.Final)
		return s.CheckValid, nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, snapshots)
	require.Nil(t, final.Totals.Ops[driver.Get])
	_, err = e.Run(t.Context(), 0, nil)
	require.ErrorIs(t, err, errUnprepared, "a step is carried out once")
}
