package rpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/result/run"
)

// TestStatus looks at two workers in a run, of which one falls silent and is lost, while the other goes on.
func TestStatus(t *testing.T) {
	virtual(t, 1, func(t *testing.T, f *fleet) {
		cpu := time.Second
		f.join("w0", func(c *rpc.JoinConfig) {
			c.Metrics = "127.0.0.1:9465"
			c.CPU = func() time.Duration { return cpu }
		})
		members := f.members()
		for _, s := range f.server.Status() {
			require.True(t, s.Up)
		}
		cfg := config(t, `duration = "20s"`, members)
		var soFar []run.Completeness
		cfg.Progress = func(u run.Update) { soFar = append(soFar, u.Verdict.Completeness) }
		done := make(chan *run.Run, 1)
		go func() { done <- coord.Run(context.Background(), cfg) }()
		time.Sleep(1500 * time.Millisecond)
		status := f.server.Status()
		require.Len(t, status, 2)
		require.Equal(t, "w0", status[0].Name)
		require.Equal(t, "127.0.0.1:9465", status[0].Metrics)
		require.Equal(t, time.Second, status[0].CPU)
		require.Equal(t, "w1", status[1].Name)
		require.Empty(t, status[1].Metrics)
		require.Zero(t, status[1].CPU)
		for _, s := range status {
			require.Less(t, s.Silent, time.Second)
		}

		f.nodes[0].cable.set(func(c *cable) { c.deafUp = true })
		time.Sleep(5 * time.Second)
		status = f.server.Status()
		require.True(t, status[1].Up, "suspected, not lost")
		require.Greater(t, status[1].Silent, 4*time.Second)
		require.Less(t, status[0].Silent, time.Second)
		time.Sleep(8 * time.Second)
		require.False(t, f.server.Status()[1].Up)
		require.True(t, f.server.Status()[0].Up)
		r := <-done
		require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
		require.Equal(t, run.Complete, soFar[0])
		require.Equal(t, run.Degraded, soFar[len(soFar)-1])
		f.server.Close()
		require.Empty(t, f.server.Status())
	})
}

// TestClockOfAWorkerThatCameLater: the offset in heartbeats is the difference of the clocks, each of which starts at its own process.
func TestClockOfAWorkerThatCameLater(t *testing.T) {
	virtual(t, 0, func(t *testing.T, f *fleet) {
		time.Sleep(7 * time.Second)
		f.join("w1")
		f.members()
		time.Sleep(3 * time.Second)
		s := f.server.Status()[0]
		require.InDelta(t, -7*time.Second, s.Offset, float64(s.Uncertainty+time.Millisecond))
	})
}

// TestMetricsElsewhereAreRefused: a Prometheus that asks the coordinator for workers must not be led to other machines, or to something that is not an
// address.
func TestMetricsElsewhereAreRefused(t *testing.T) {
	virtual(t, 0, func(t *testing.T, f *fleet) {
		for _, address := range []string{"192.0.2.1:9465", "example.org:9465", "localhost:9465", "127.0.0.1", "127.0.0.1:0", "[::1%lo]:9465", "127.0.0.1:9465/x", "0.0.0.0:9465"} {
			bye := f.hello(t, &pb.Hello{Protocol: 6, Name: "w", Incarnation: "x", Metrics: address}).GetGoodbye()
			require.True(t, bye.GetForGood(), address)
			require.Contains(t, bye.GetReason(), "that has to be the address that it comes from, 127.0.0.1 here, and a port")
		}
		require.NotNil(t, f.hello(t, &pb.Hello{Protocol: 6, Name: "v4", Incarnation: "x", Metrics: "127.0.0.1:9465"}).GetWelcome())
		require.NotNil(t, f.hello(t, &pb.Hello{Protocol: 6, Name: "v6", Incarnation: "x", Metrics: "[::1]:9465"}).GetWelcome())
	})
}
