package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// watchedRedis is the driver for Redis, and counts how often its codec is asked to look at bytes, and at how many.
type watchedRedis struct {
	redis.Driver
	*looks
}

type looks struct{ times, bytes atomic.Int64 }

func (d watchedRedis) NewCodec(link driver.Link) (driver.Codec, error) {
	c, err := d.Driver.NewCodec(link)
	return &watchedCodec{c, d.looks}, err
}

type watchedCodec struct {
	driver.Codec
	*looks
}

func (l *looks) add(n int) {
	l.bytes.Add(int64(n))
	l.times.Add(1)
}

func (c *watchedCodec) Parse(b []byte, v driver.Verb, reply *driver.Reply) (int, error) {
	c.add(len(b))
	return c.Codec.Parse(b, v, reply)
}

func (c *watchedCodec) Resume(b []byte, p *driver.Progress) (bool, error) {
	c.add(len(b) - p.At)
	return c.Codec.(driver.Resumer).Resume(b, p)
}

// serveLong answers each LRANGE with the same array, in pieces: each piece is sent once the one before has been read, as over a slow link.
func serveLong(t *testing.T, reply string, seen *looks) (addr string) {
	t.Helper()
	return servertest.Serve(t, nil, func(conn net.Conn) { answerLong(conn, reply, seen) })
}

// answerLong reads commands until the connection ends.
func answerLong(conn net.Conn, reply string, seen *looks) {
	for in := bufio.NewReader(conn); ; {
		head, err := in.ReadString('\n')
		if err != nil {
			return
		}
		words, _ := strconv.Atoi(strings.TrimSpace(head[1:]))
		command := ""
		for i := range 2 * words {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if i == 1 {
				command = strings.TrimSpace(line)
			}
		}
		if command != "LRANGE" {
			_, err = io.WriteString(conn, "-ERR unknown command\r\n")
		}
		for rest := reply; command == "LRANGE" && rest != "" && err == nil; {
			n, before := min(64<<10, len(rest)), seen.times.Load()
			_, err = io.WriteString(conn, rest[:n])
			rest = rest[n:]
			for deadline := time.Now().Add(time.Second); seen.times.Load() == before && time.Now().Before(deadline); {
				time.Sleep(50 * time.Microsecond)
			}
		}
		if err != nil {
			return
		}
	}
}

// TestLongRepliesAreReadOnce has replies of 200,000 values come in many pieces. Each piece is scanned as it comes, and the whole reply once more
// when it is complete. Starting over with every piece would take as many times longer as there are pieces.
func TestLongRepliesAreReadOnce(t *testing.T) {
	const values = 200_000
	reply := fmt.Sprintf("*%d\r\n%s", values, strings.Repeat("$1\r\nv\r\n", values))
	for _, executor := range []string{plan.EventLoop, plan.Blocking} {
		t.Run(executor, func(t *testing.T) {
			d := watchedRedis{looks: new(looks)}
			addr := serveLong(t, reply, d.looks)
			_, final, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{d}}, fmt.Sprintf(`
				target "t" {
					driver    = "redis"
					endpoints = [%q]
					executor  = %q
					timeout   = "60s"
					op "range" {
						request { command = ["LRANGE", "{key}", "0", "-1"] }
					}
				}
				dataset "d" {
					keys { count = 1 }
					values { size = 1 }
				}
				phase "load" {
					target  = target.t
					dataset = dataset.d
					ops     = { range = 1 }
					closed { iterations = 2 }
				}`, addr, executor))
			require.NoError(t, err)
			var ok uint64
			for _, o := range final.Totals.Ops {
				if o != nil {
					ok += o.Outcomes[driver.OK]
				}
			}
			require.EqualValues(t, 2, ok)
			require.Zero(t, final.Totals.Reconnects)
			require.Less(t, d.bytes.Load(), int64(2*3*len(reply)))
		})
	}
}
