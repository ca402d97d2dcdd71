package rpc

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/servertest"
)

// silent is a stream on which nothing comes.
type silent struct {
	grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]
}

func (silent) Context() context.Context       { return context.Background() }
func (silent) Send(*pb.FromCoordinator) error { return io.EOF }

// door is a coordinator that workers come to without a connection.
type door struct {
	*Server
	n int
}

// come sends a worker's hello and returns the resulting member, or why it was refused.
func (d *door) come(name string) (m *member, refused string) {
	d.n++
	m, bye := d.admit(&pb.Hello{Protocol: protocol, Name: name, Incarnation: fmt.Sprint(d.n)}, &conn{stream: silent{}})
	if bye != nil {
		return nil, bye.GetReason()
	}
	return m, ""
}

func atDoor(t *testing.T, spares bool, test func(t *testing.T, d *door)) {
	servertest.Bubble(t, func(t *testing.T) {
		d := &door{Server: newServer(Config{Timing: DefaultTiming(), Logger: slog.New(slog.DiscardHandler), Spares: spares})}
		test(t, d)
		for _, m := range d.members {
			m.dismiss("the test is over")
		}
	})
}

// TestWhoMayComeInARun: nobody, unless there are spares; then as many as the run has workers, minus those already waiting.
func TestWhoMayComeInARun(t *testing.T) {
	atDoor(t, false, func(t *testing.T, d *door) {
		for _, name := range []string{"a", "b", "c"} {
			_, refused := d.come(name)
			require.Empty(t, refused)
		}
		require.Len(t, d.gather(4), 3, "too few")
		require.False(t, d.begun)
		two := d.gather(2)
		require.Equal(t, []string{"a", "b"}, []string{two[0].name, two[1].name})
		_, refused := d.come("d")
		require.Contains(t, refused, "it has the workers it needs")
		require.Len(t, d.members, 2, "who is not wanted is sent home")
		two[0].lose("it is gone")
		_, refused = d.come("a")
		require.Contains(t, refused, `another worker is called "a"`)
		require.Nil(t, d.takeSpare())
	})
	atDoor(t, true, func(t *testing.T, d *door) {
		for _, name := range []string{"a", "b", "c"} {
			_, refused := d.come(name)
			require.Empty(t, refused)
		}
		two := d.gather(2)
		require.Len(t, d.members, 3, "who is not wanted yet stays")
		e, refused := d.come("e")
		require.Empty(t, refused, "two are wanted, and one waits")
		_, refused = d.come("f")
		require.Contains(t, refused, "it has the workers it needs", "two wait")
		_, refused = d.come("a")
		require.Contains(t, refused, `another worker is called "a"`, "which has a part")
		_, refused = d.come("c")
		require.Contains(t, refused, `another worker is called "c"`, "which waits")

		e.lose("it is gone")
		require.NotContains(t, d.members, "e", "who had no part is forgotten")
		_, refused = d.come("f")
		require.Empty(t, refused)
		two[0].lose("it is gone")
		require.Contains(t, d.members, "a", "who had a part is not")
		d.takeSpare()
		again, refused := d.come("a")
		require.Empty(t, refused, "but its name is free")
		require.NotSame(t, two[0], again)
	})
}

// TestSparesAreHandedOut by their names, each once, and those alone that are there.
func TestSparesAreHandedOut(t *testing.T) {
	atDoor(t, true, func(t *testing.T, d *door) {
		for _, name := range []string{"m", "z", "c", "b", "a"} {
			_, refused := d.come(name)
			require.Empty(t, refused)
		}
		d.gather(3) // a, b and c
		m := d.members["m"]
		m.detach(m.conn)
		z, err := d.Spare(t.Context())
		require.NoError(t, err)
		require.Equal(t, "z", z.Name)
		require.NotNil(t, z.Attend)

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("nobody for a minute"))
		defer cancel()
		began := time.Now()
		time.AfterFunc(5*time.Second, func() {
			_, _ = d.come("y")
			_, _ = d.come("x")
			poke(d.changed)
		})
		x, err := d.Spare(ctx)
		require.NoError(t, err)
		require.Equal(t, "x", x.Name, "the first by its name")
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// TestLoserKeepsNobodysPlace: forgetting a lost worker does not remove a later one of the same name.
func TestLoserKeepsNobodysPlace(t *testing.T) {
	atDoor(t, true, func(t *testing.T, d *door) {
		old, _ := d.come("a")
		old.detach(old.conn)
		_, refused := d.come("a")
		require.Empty(t, refused, "its stream had ended, and the run has not begun")
		d.forget(old)
		require.NotNil(t, d.members["a"])
		require.NotSame(t, old, d.members["a"])
		old.lose("long gone")
		require.NotNil(t, d.members["a"])
	})
}
