package engine

import (
	"errors"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/policy"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

// A policy is checked against everything that an interval did: the ops of all verbs, however they ended, the bytes both ways, and the time since the
// beginning of the step.
func TestAPolicyIsAskedAboutAllThatWasDone(t *testing.T) {
	const begin = int64(5 * time.Second)
	done := func(lasts time.Duration, put, get measure.Op) measure.Interval {
		t := measure.NewTotals(begin, 1)
		t.Ops[driver.Put], t.Ops[driver.Get] = &put, &get
		return measure.Interval{From: begin, To: begin + int64(lasts), Delta: t}
	}
	ops := func(outcome driver.Outcome, n uint64) (o measure.Op) {
		o.Outcomes[outcome] = n
		return o
	}
	none := measure.Op{}
	rate, bytes, duration := &policy.Policy{Rate: 60}, &policy.Policy{Bytes: 60}, &policy.Policy{Duration: time.Second}
	for name, c := range map[string]struct {
		of    *policy.Policy
		joint measure.Interval
		want  string
	}{
		"no policy":           {nil, done(time.Second, ops(driver.OK, 1e9), none), ""},
		"ops of one verb":     {rate, done(time.Second, ops(driver.OK, 50), none), ""},
		"of the other":        {rate, done(time.Second, none, ops(driver.Timeout, 50)), ""},
		"of both":             {rate, done(time.Second, ops(driver.OK, 50), ops(driver.Timeout, 50)), "rate: 100 ops in 1s"},
		"of both, in more":    {rate, done(2*time.Second, ops(driver.OK, 50), ops(driver.Timeout, 50)), ""},
		"bytes in":            {bytes, done(time.Second, measure.Op{In: 50}, none), ""},
		"bytes out":           {bytes, done(time.Second, none, measure.Op{Out: 50}), ""},
		"both ways":           {bytes, done(time.Second, measure.Op{In: 50, Out: 50}, none), "bytes_per_second: 100B in 1s"},
		"of both verbs":       {bytes, done(time.Second, measure.Op{In: 50}, measure.Op{In: 50}), "bytes_per_second: 100B in 1s"},
		"as long as it may":   {duration, done(time.Second, none, none), ""},
		"long after it ended": {duration, done(time.Hour, none, none), "duration: the load was not over after 1s"},
	} {
		err := watch(c.of, c.joint, begin)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
	}
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
