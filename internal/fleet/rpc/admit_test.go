package rpc_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/servertest"
)

// dial opens a stream to the coordinator without a worker behind it.
func (f *fleet) dial(t *testing.T) grpc.BidiStreamingClient[pb.FromWorker, pb.FromCoordinator] {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.lis.DialContext(ctx) }))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = cc.Close() // nothing is outstanding
	})
	stream, err := pb.NewControlClient(cc).Join(ctx)
	require.NoError(t, err)
	return stream
}

// hello says hello and returns the answer.
func (f *fleet) hello(t *testing.T, h *pb.Hello) *pb.FromCoordinator {
	t.Helper()
	stream := f.dial(t)
	require.NoError(t, stream.Send(&pb.FromWorker{Hello: h}))
	msg, err := stream.Recv()
	require.NoError(t, err)
	return msg
}

func TestRefused(t *testing.T) {
	inBubble := func(name string, test func(t *testing.T, f *fleet)) {
		t.Run(name, func(t *testing.T) { virtual(t, 1, test) })
	}
	inBubble("version", func(t *testing.T, f *fleet) {
		bye := f.hello(t, &pb.Hello{Protocol: 7, Name: "w9", Incarnation: "x", Version: "v9"}).GetGoodbye()
		require.True(t, bye.GetForGood())
		require.Equal(t, "the coordinator speaks protocol 6 (loadgen v1), this worker protocol 7 (loadgen v9): run the same version on both sides", bye.GetReason())
	})
	inBubble("name", func(t *testing.T, f *fleet) {
		for _, name := range []string{"", "a b", "../x", string(make([]byte, 65))} {
			require.True(t, f.hello(t, &pb.Hello{Protocol: 6, Name: name}).GetGoodbye().GetForGood())
		}
	})
	inBubble("host", func(t *testing.T, f *fleet) {
		for _, text := range []string{"a\nb", "a\tb", "\x1b[2J", "a\u202eb", "a\u2028b", "a\u200bb", "\xff", strings.Repeat("x", 256)} {
			for _, h := range []*pb.Hello{{Host: text, Version: "v1"}, {Host: "here", Version: text}} {
				h.Protocol, h.Name, h.Incarnation = 6, "w1", "x"
				stream := f.dial(t)
				if err := stream.Send(&pb.FromWorker{Hello: h}); err != nil {
					require.ErrorContains(t, err, "invalid UTF-8")
					continue
				}
				msg, err := stream.Recv()
				require.NoError(t, err, "%q", text)
				bye := msg.GetGoodbye()
				require.True(t, bye.GetForGood(), "%q", text)
				require.Contains(t, bye.GetReason(), "a worker's host and version are a line of up to 255 bytes each")
			}
		}
	})
	inBubble("duplicate", func(t *testing.T, f *fleet) {
		f.members()
		bye := f.hello(t, &pb.Hello{Protocol: 6, Name: "w1", Incarnation: "another"}).GetGoodbye()
		require.False(t, bye.GetForGood())
		require.Equal(t, `another worker is called "w1"; it may be the one that ran here before`, bye.GetReason())
	})
	inBubble("late", func(t *testing.T, f *fleet) {
		f.members()
		bye := f.hello(t, &pb.Hello{Protocol: 6, Name: "w2", Incarnation: "x"}).GetGoodbye()
		require.False(t, bye.GetForGood())
		require.Equal(t, "a run is under way, and it has the workers it needs: wait for the next", bye.GetReason())
	})
	inBubble("another state", func(t *testing.T, f *fleet) {
		bye := f.hello(t, &pb.Hello{Protocol: 6, Name: "w2", Incarnation: "x", Received: 3}).GetGoodbye()
		require.Contains(t, bye.GetReason(), "what this worker remembers does not fit the run")
	})
	inBubble("no hello", func(t *testing.T, f *fleet) {
		stream, began := f.dial(t), time.Now()
		_, err := stream.Recv()
		require.ErrorContains(t, err, "no hello came")
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// TestOtherDrivers: a worker whose own drivers differ from the coordinator's, of those that the plan uses, is refused before any load.
func TestOtherDrivers(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		f := newTimedFleet(t, rpc.DefaultTiming(), "etcd", "mill")
		defer f.close()
		same := map[string]string{"etcd": "etcd.example/driver@v1 h1:one", "mill": "mill.example/driver@v1 h1:one", "unused": "x"}
		const here = `the plan uses driver "mill", which the coordinator has from mill.example/driver@v1 h1:one, and this worker `
		for is, has := range map[string]string{
			"does not have it": "", "has it from mill.example/driver@v2 h1:two": "mill.example/driver@v2 h1:two", "has it from a\ufffdb": "a\nb",
		} {
			other := maps.Clone(same)
			other["mill"] = has
			n := f.join("w1", func(c *rpc.JoinConfig) { c.Drivers = other })
			<-n.done
			require.EqualError(t, n.err, "refused by the coordinator: "+here+is+": run the same program on both sides (docs/drivers.md)")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.server.Wait(ctx, 1)
		require.ErrorContains(t, err, "of 1 wanted; worker w1 was refused: "+here)
		require.NotNil(t, f.hello(t, &pb.Hello{Protocol: 6, Name: "w2", Incarnation: "x", Drivers: same}).GetWelcome())
	})
}

// TestUnknownDriver: the run says which worker does not know the plan's driver, and that worker does not end as if all were well.
func TestUnknownDriver(t *testing.T) {
	virtual(t, 0, func(t *testing.T, f *fleet) {
		n := f.join("w1", func(c *rpc.JoinConfig) {
			c.New = func() rpc.Local { return engine.New(engine.Config{Loops: 1, Logger: slog.New(slog.DiscardHandler)}) }
		})
		r := coord.Run(context.Background(), config(t, `duration = "5s"`, f.members()))
		const says = `plan of run r: decode plan: target "t": unknown driver "mill": this program has . A program can bring its own: docs/drivers.md says how.`
		require.Equal(t, []string{"worker w1: " + says}, r.Verdict.Reasons)
		f.server.Close()
		<-n.done
		require.ErrorContains(t, n.err, says)
	})
}

// TestDuplicateNameWaits starts a second worker of the same name: the first is not disturbed, the second takes part in nothing.
func TestDuplicateNameWaits(t *testing.T) {
	virtual(t, 1, func(t *testing.T, f *fleet) {
		members := f.members()
		second := f.join("w1")
		r := coord.Run(context.Background(), config(t, `duration = "5s"`, members))
		requireComplete(t, r)
		got, _ := second.mill.seen()
		require.Zero(t, got)
		require.NotEmpty(t, f.said.with(`not admitted; waiting why=another worker is called "w1"`))
	})
}

// TestLateJoinerIsInTheNextRun keeps a worker that comes too late waiting, and takes it into the next run together with the one
// that stayed.
func TestLateJoinerIsInTheNextRun(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		stay := func(c *rpc.JoinConfig) { c.Once = false }
		f := newFleet(t)
		f.join("w1", stay)
		members := f.members()
		f.join("w2", stay)
		r := coord.Run(context.Background(), config(t, `duration = "5s"`, members))
		require.Equal(t, []string{"w1"}, r.Workers)
		f.server.Close()

		next := newFleet(t)
		defer next.close()
		next.nodes = f.nodes
		for _, n := range f.nodes {
			n.cable.set(func(c *cable) { c.lis = next.lis })
		}
		r = coord.Run(context.Background(), config(t, `duration = "5s"`, next.members()))
		requireComplete(t, r)
		require.Equal(t, []string{"w1", "w2"}, r.Workers)
		require.Len(t, f.said.with("not admitted; waiting why=a run is under way"), 1, "it is said once")
		require.Len(t, f.said.with("run over why=the run has ended"), 1, "of w1")
	})
}

// TestWorkerThatIsCutOffGoesOn waiting for another run, and says so.
func TestWorkerThatIsCutOffGoesOn(t *testing.T) {
	virtual(t, 0, func(t *testing.T, f *fleet) {
		f.join("w1", func(c *rpc.JoinConfig) { c.Once = false })
		n := f.nodes[0]
		members := f.members()
		n.after(1500*time.Millisecond, cut)
		n.after(40*time.Second, mend)
		r := coord.Run(context.Background(), config(t, `duration = "5s"`, members))
		require.Len(t, r.Losses, 1)
		time.Sleep(20 * time.Second)
		require.Len(t, f.said.with("run cut off err=coordinator at coordinator: not reached for longer than the lease, the run is given up"), 1)
		require.Empty(t, f.said.with("not admitted"))
		time.Sleep(20 * time.Second)
		require.Len(t, f.said.with(`not admitted; waiting why=another worker is called "w1"`), 1, "it has come back as another one")
		select {
		case <-n.done:
			t.Fatal("it has ended")
		default:
		}
	})
}

// TestWaitSaysWhoIsMissing waits for three workers, of whom two come.
func TestWaitSaysWhoIsMissing(t *testing.T) {
	virtual(t, 0, func(t *testing.T, f *fleet) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		failed := make(chan error)
		go func() {
			_, err := f.server.Wait(ctx, 3)
			failed <- err
		}()
		time.Sleep(30 * time.Second)
		f.join("b")
		f.join("a")
		err := <-failed
		require.EqualError(t, err, "only 2 of 3 workers have come to bufconn: a, b")
	})
	virtual(t, 0, func(t *testing.T, f *fleet) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := f.server.Wait(ctx, 3)
		require.EqualError(t, err, "no worker has come to bufconn, of 3 wanted")
	})
}

// TestWorkerSaysThatItWaits once, while there is no coordinator: a user who mistyped the address sees nothing else.
func TestWorkerSaysThatItWaits(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		said := &said{began: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, rpc.Join(ctx, rpc.JoinConfig{
			Place: rpc.Trusting("127.0.0.1:7464", nil, func(context.Context) (net.Conn, error) { return nil, errors.New("nobody is there") }),
			Name:  "w1", Version: "v1", Logger: slog.New(said),
		}))
		told := 0
		for _, line := range said.with("no coordinator there; trying until there is one") {
			require.Contains(t, line, "coordinator=127.0.0.1:7464")
			require.Contains(t, line, "nobody is there")
			if !strings.Contains(line, "level=DEBUG") {
				told++
			}
		}
		require.Equal(t, 1, told)
	})
}
