package ticket

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// serve starts a server on the loopback, which ends with the test.
func serve(t *testing.T) (dial func() (net.Conn, error)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, all := new(Server), sync.WaitGroup{}
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { _ = s.Serve(conn) }) // tests end connections as they like
		}
	})
	t.Cleanup(func() {
		require.NoError(t, listener.Close())
		all.Wait()
	})
	return func() (net.Conn, error) { return net.Dial("tcp", listener.Addr().String()) }
}

func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{Driver: Driver{}, Dial: serve(t), MaxKey: 250, TextKeys: true})
}

// FuzzParse answers requests with any bytes: Parse takes only bytes that are there, and only whole replies.
func FuzzParse(f *testing.F) {
	for _, reply := range []string{"1 ok\n", "2 miss\n", "3 value 4\nfour", "4 value 99999999999\n", "5 error no\n", "x", "6 value 1\x00\nz"} {
		f.Add([]byte(reply))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		codec{}.Tag(b)
		for _, v := range []driver.Verb{driver.Get, driver.Put, driver.Delete} {
			var reply driver.Reply
			n, err := codec{}.Parse(b, v, &reply)
			require.LessOrEqual(t, n, len(b))
			if n == 0 || err != nil {
				continue
			}
			var again driver.Reply
			m, err := codec{}.Parse(b[:n], v, &again)
			require.NoError(t, err)
			require.Equal(t, n, m)
			require.Equal(t, reply, again)
		}
	})
}
