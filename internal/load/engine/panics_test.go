package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	logdriver "github.com/loadgen/loadgen/internal/target/drivers/log"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// fuse panics at the calls with these numbers, counted from 1 over all sessions.
type fuse struct {
	calls atomic.Int64
	at    map[int64]bool
}

func (f *fuse) burn() {
	if f != nil && f.at[f.calls.Add(1)] {
		panic("blown")
	}
}

// requireBlown checks the result of a load during which a driver panicked a number of times: each panic is one op that ended as an error, whose text
// says where, and all other ops are answered.
func requireBlown(t *testing.T, final worker.Final, due, times uint64) {
	t.Helper()
	require.NoError(t, final.Totals.CheckValid())
	require.Equal(t, due, dueIn(final.Totals))
	var bad, refused uint64
	for _, o := range final.Totals.Ops {
		if o != nil {
			bad += o.Outcomes[driver.Error]
			refused += o.Causes[op.Refused] // some while another client was connected
		}
	}
	n, text := panicsOf(final.Totals)
	require.Equal(t, times, n, "%v", final.Totals.Errors.All())
	require.GreaterOrEqual(t, bad, times)
	require.LessOrEqual(t, bad, times+refused)
	require.Contains(t, text, "panics_test.go:")
	require.Contains(t, text, "blown")
}

// nullBefore is the null driver, with something to do before each reply.
type nullBefore struct {
	null.Driver
	do func(*driver.Request)
}

func (d nullBefore) Reply(config any, req *driver.Request, reply *driver.Reply) time.Duration {
	d.do(req)
	return d.Driver.Reply(config, req, reply)
}

// fuseSession is a client of log files whose preparation or work panics.
type fuseSession struct {
	localfile.Session
	prepare, do *fuse
}

func (s fuseSession) Prepare(req *driver.Request) error {
	s.prepare.burn()
	return s.Session.Prepare(req)
}

func (s fuseSession) Do(req *driver.Request, reply *driver.Reply) error {
	s.do.burn()
	return s.Session.Do(req, reply)
}

type fuseStore struct {
	localfile.Store
	prepare, do *fuse
}

func (s fuseStore) Session(i int) (localfile.Session, error) {
	session, err := s.Store.Session(i)
	return fuseSession{session, s.prepare, s.do}, err
}

type localFuse struct {
	logdriver.Driver
	prepare, do *fuse
}

func (d localFuse) Open(ctx context.Context, config any, site localfile.Site) (localfile.Store, error) {
	store, err := d.Driver.Open(ctx, config, site)
	return fuseStore{store, d.prepare, d.do}, err
}

// carryOutOf carries the load of a plan out by a driver.
func carryOutOf(t *testing.T, loops int, d driver.Driver, p *plan.Plan) worker.Final {
	t.Helper()
	root := t.TempDir()
	e := assigned(t, Config{
		Loops: loops, Drivers: []driver.Driver{d}, Sleep: time.Sleep, LogRoot: func() (string, error) { return root, nil },
		Verify: func(context.Context, string, []byte) (localfile.Proof, error) { return localfile.Proof{}, nil },
	}, p)
	loaded(t, e)
	return ran(t, e)
}

// A panic of a driver that has no transport is an error of the current op.
func TestPanicOfATimedDriver(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			f := &fuse{at: map[int64]bool{7: true, 400: true}}
			d := nullBefore{do: func(*driver.Request) { f.burn() }}
			final := carryOutOf(t, loops, d, nullPlan(t, 1, `latency = "100us"`, "ops = { get = 1 }\nclosed {\n sessions = 4\n iterations = 250\n}"))
			requireBlown(t, final, 1000, 2)
		})
	}
}

// A panic of a client that blocks is an error of its current request, and costs the session that client.
func TestPanicOfABlockingClient(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			f := &fuse{at: map[int64]bool{7: true, 400: true}}
			client := doing(func(context.Context, *driver.Request, *driver.Reply) error {
				f.burn()
				return nil
			})
			final, err := driveClients(t, loops, 1, always(client), "", "closed {\n sessions = 4\n iterations = 250\n}")
			require.NoError(t, err)
			requireBlown(t, final, 1000, 2)
			require.EqualValues(t, 2, final.Totals.Reconnects)
		})
	}
}

// A panic while a client connects is the reason why it does not.
func TestPanicOfADial(t *testing.T) {
	_, err := driveClients(t, 1, 1, func(context.Context, string) (driver.Session, error) { panic("blown") }, `timeout = "100ms"`,
		"closed {\n sessions = 1\n iterations = 1\n}")
	require.ErrorContains(t, err, "driver panicked at panics_test.go:")
	require.ErrorContains(t, err, "blown")
}

// A panic of a driver of files is an error of the current op, whether in preparing it or in carrying it out. It ends the session, as any error of a
// log does: the second one ends the load.
func TestPanicOfALocalDriver(t *testing.T) {
	for name, d := range map[string]localFuse{
		"prepare": {prepare: &fuse{at: map[int64]bool{7: true, 90: true}}},
		"do":      {do: &fuse{at: map[int64]bool{7: true, 90: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := logPlan(t, "", logPhase("load", "ops = { append = 1 }\n closed {\n sessions = 2\n iterations = 100\n}"))
			final := carryOutOf(t, 1, d, p)
			requireBlown(t, final, 90, 2)
		})
	}
}

// A timed driver that owes too many replies gets no more requests, as a connection would: those are refused.
func TestBacklogOfATimedDriver(t *testing.T) {
	const beyond = 20
	p := nullPlan(t, 1, "latency = \"1h\"\ntimeout = \"2ms\"", fmt.Sprintf("ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = %d\n}", backlog+1+beyond))
	final := carryOutOf(t, 1, null.Driver{}, p)
	get := final.Totals.Ops[driver.Get]
	require.EqualValues(t, backlog+1, get.Outcomes[driver.Timeout])
	require.EqualValues(t, beyond, get.Outcomes[driver.Error])
	require.EqualValues(t, beyond, get.Causes[op.Refused])
	require.Equal(t, measure.Requests{Sent: backlog + 1, Timeout: backlog + 1, Refused: beyond}, *final.Totals.Request(0, driver.Get))
}
