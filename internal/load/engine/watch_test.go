package engine

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
)

// webServer serves HTTP by a function that answers one request, over TLS if secure is not nil.
func webServer(t *testing.T, secure *tls.Config, answer func(c net.Conn)) (addr string) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if secure != nil {
		at = tls.NewListener(at, secure)
	}
	t.Cleanup(func() { at.Close() })
	go func() {
		for c, err := at.Accept(); err == nil; c, err = at.Accept() {
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; answer(c) {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
				}
			}()
		}
	}()
	return at.Addr().String()
}

// A web server that answers twice: at once, the answer counts; later, the answers are those to other requests, which shows between two requests, or
// after the last.
func TestWebAnswersNobodyAskedFor(t *testing.T) {
	const whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	const ops = 8
	target, secure := "", (*tls.Config)(nil)
	run := func(load string, answer func(net.Conn)) worker.Final {
		_, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All(), Open: openAny}, webPlan(webServer(t, secure, answer), target, "10B", load))
		require.NoError(t, err)
		ok, sent := uint64(0), uint64(0)
		for _, v := range []driver.Verb{driver.Get, driver.Put, driver.Delete} {
			if o := final.Totals.Ops[v]; o != nil {
				ok, sent = ok+o.Outcomes[driver.OK], sent+o.Due
			}
		}
		require.EqualValues(t, [2]uint64{ops, ops}, [2]uint64{ok, sent})
		return final
	}
	const closed = "closed {\n sessions = 1\n iterations = 8\n"
	late := func(c net.Conn) {
		time.Sleep(5 * time.Millisecond)
		_, _ = c.Write([]byte(whole))
		time.Sleep(time.Millisecond)
		_, _ = c.Write([]byte(whole))
	}
	a := servertest.NewAuthority(t)
	shown := a.Issue("127.0.0.1", time.Hour)
	pair, err := tls.LoadX509KeyPair(shown.Cert, shown.Key)
	require.NoError(t, err)
	for range 2 {
		for _, behind := range []string{whole, "JUNK"} {
			final := run(closed+"}", func(c net.Conn) { _, _ = c.Write([]byte(whole + behind)) })
			require.Equal(t, measure.Unasked{Behind: ops}, final.Generator.Unasked)
			require.EqualValues(t, ops-1, final.Totals.Reconnects)
		}
		for _, think := range []string{"", " think = \"20ms\"\n"} {
			for run(closed+think+"}", late).Generator.Unasked.Alone == 0 { // on a machine so busy that the server stood still
			}
		}
		require.Zero(t, run(closed+"}", func(c net.Conn) { _, _ = c.Write([]byte(whole)) }).Generator.Unasked)
		target, secure = fmt.Sprintf("tls {\n ca = %q\n}", a.CA), &tls.Config{Certificates: []tls.Certificate{pair}}
	}
}

// A Redis server that answers one get twice: all later answers are shifted, and one comes after the last.
func TestAnAnswerIsLeftOver(t *testing.T) {
	for twice, want := range map[int]uint64{0: 0, 1: 1} {
		b := newBench(t, redisPlan(t, 1, `timeout = "10s"`, "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 50\n}"), "load", time.Millisecond)
		b.server(0).words = []byte("$1\r\nv\r\n")
		b.net.at(time.Duration(b.net.clock.t)+10*time.Millisecond, func() {
			for range twice {
				fd := len(b.net.socks) - 1
				b.net.socks[fd].in = append(b.net.socks[fd].in, b.server(0).words...)
				b.net.wake(fd)
			}
		})
		got := b.run(worker.Load)
		require.EqualValues(t, 50, got.Ops[driver.Get].Outcomes[driver.OK])
		b.net.happen(b.net.clock.t + int64(time.Millisecond))
		b.e.watch(b.g, &got)
		require.Equal(t, measure.Unasked{Alone: want}, b.g.unasked())
	}
}
