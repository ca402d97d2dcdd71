package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/policy"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// What a worker's part of a phase needs is known before it begins, and the policy is asked about all of it. A worker without sessions needs nothing.
func TestAPolicyIsAskedAboutWhatAPhaseNeeds(t *testing.T) {
	const closed = "closed {\n sessions = 8\n duration = \"10s\"\n}"
	const open = "open {\n rate = 100\n duration = \"10s\"\n sessions = 8\n}"
	for name, c := range map[string]struct {
		of   policy.Policy
		load string
		want string
	}{
		"sessions":       {policy.Policy{Sessions: 3}, closed, "sessions: 4 is more than 3"},
		"as many as may": {policy.Policy{Sessions: 4, Connections: 8, Duration: 10 * time.Second, Rate: 50}, open, ""},
		"connections":    {policy.Policy{Connections: 7}, closed, "connections: 8 is more than 7"},
		"a closed load":  {policy.Policy{Duration: 9 * time.Second}, closed, "duration: 10s is more than 9s"},
		"an open load":   {policy.Policy{Duration: 9 * time.Second}, open, "duration: 10s is more than 9s"},
		"rate":           {policy.Policy{Rate: 49}, open, "rate: 50/s is more than 49/s"},
		"no rate":        {policy.Policy{Rate: 1}, closed, ""},
	} {
		p := redisPlan(t, 2, "", "ops = { get = 1 }\n"+c.load)
		g := &group{plan: p, phase: p.Phase("load"), sessions: 4}
		g.target, g.driver, g.clients = p.Target("t"), redis.Driver{}, 1
		require.NoError(t, g.locate(nil))
		err := g.checkPolicy(&c.of)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.EqualError(t, err, "this worker's policy: "+c.want, name)
		}
		require.NoError(t, g.checkPolicy(nil))
		g.sessions = 0
		require.NoError(t, g.checkPolicy(&c.of))
	}
}

// A name is as good as the addresses that it stands for, and a Unix socket is one by its path.
func TestThePolicyIsAskedOfWhatANameStandsFor(t *testing.T) {
	s := serveTickets(t, nil)
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer listener.Close()
	for _, c := range []struct{ allowed, network, addr, want string }{
		{"127.0.0.1:" + port, "tcp4", "localhost:" + port, ""},
		{"127.0.0.2:" + port, "tcp4", "localhost:" + port, "targets: 127.0.0.1:" + port + " is not among them"},
		{"unix://" + path, "unix", path, ""},
		{"unix://" + path + "2", "unix", path, "targets: "},
	} {
		place, err := policy.ParsePlace(c.allowed)
		require.NoError(t, err)
		conn, err := New(Config{Policy: &policy.Policy{Targets: []policy.Place{place}}}).dial(t.Context(), c.network, c.addr)
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	all, err := policy.ParsePlace("0.0.0.0/0:1-65535")
	require.NoError(t, err)
	e := New(Config{Policy: &policy.Policy{Targets: []policy.Place{all}}})
	require.ErrorContains(t, e.admit(t.Context(), "tcp4", "localhost:7001", nil), "localhost", "the check is of addresses")
}

// A load that goes on for longer than it may, which nobody could know before, is ended.
func TestALoadBeyondThePolicyEnds(t *testing.T) {
	t.Parallel()
	s := serveTickets(t, nil)
	there, err := policy.ParsePlace(s.addr)
	require.NoError(t, err)
	for want, of := range map[string]policy.Policy{
		"":           {Targets: []policy.Place{there}},
		"duration: ": {Targets: []policy.Place{there}, Rate: 100, Duration: time.Second},
		"memory: ":   {Targets: []policy.Place{there}, Rate: 100, Memory: 1 << 20},
		"this worker's policy: targets: " + s.addr + " is not among them": {},
	} {
		for _, executor := range []string{plan.EventLoop, plan.Blocking} {
			began := time.Now()
			err := runUnder(t, &of, ticketPlan(s.addr, fmt.Sprintf("executor = %q\ntimeout = \"30s\"", executor), "closed {\n sessions = 2\n iterations = 1100\n think = \"1ms\"\n}"))
			if want == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, want)
			require.Less(t, time.Since(began), 30*time.Second)
		}
	}
}

// runUnder carries a plan's phase out under a policy.
func runUnder(t *testing.T, of *policy.Policy, text string) error {
	t.Helper()
	p := parsePlanFor(t, []driver.Driver{ticket.Driver{}}, text)
	e := assigned(t, Config{Drivers: []driver.Driver{ticket.Driver{}}, Loops: 1, Policy: of}, p)
	defer e.Close()
	if _, err := e.Prepare(t.Context(), stepOf(p.Phase("load"), worker.Load)); err != nil {
		return err
	}
	final, err := e.Run(t.Context(), e.now(), takeAll)
	require.Equal(t, err != nil, final.Stopped)
	return err
}

// The watch of the machine reports what it saw, or why it saw nothing.
func TestWhyNeighboursAreNotKnown(t *testing.T) {
	var g measure.Generator
	(*neighbours)(nil).enter(&g)
	require.Equal(t, measure.Generator{}, g, "nobody watched")

	why := errors.New("no list of sockets")
	watchNeighbours(os.DirFS("/"), hosted{err: why}).enter(&g)
	require.Nil(t, g.Machine)
	require.Equal(t, why.Error(), g.MachineUnknown)

	g = measure.Generator{}
	watchNeighbours(fstest.MapFS{}, hosted{}).enter(&g)
	require.Nil(t, g.Machine)
	require.NotEmpty(t, g.MachineUnknown, "there is no /proc")

	g = measure.Generator{}
	watchNeighbours(os.DirFS("/"), hosted{}).enter(&g)
	require.Equal(t, g.Machine == nil, g.MachineUnknown != "", "one or the other")

	require.NotContains(t, findServers([]sockets.Endpoint{{Text: "127.0.0.1:1"}}).pids, os.Getpid(), "the generator is no server")
	require.Empty(t, findServers([]sockets.Endpoint{{Text: "a name"}}).pids)
}
