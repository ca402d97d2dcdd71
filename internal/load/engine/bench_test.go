package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// BenchmarkLoop is everything that an op costs the event loop, without the kernel and the server. path=program leaves plain ops to their program;
// nodes=3 has plain ops spread over three nodes, cluster=3 has them on the nodes of a cluster, nwr=321 asks all three.
func BenchmarkLoop(b *testing.B) {
	for _, verb := range []driver.Verb{driver.Get, driver.Put} {
		for _, path := range []string{"direct", "program"} {
			for _, pipeline := range []int{1, 16, 64} {
				b.Run(fmt.Sprintf("op=%s/load=closed/path=%s/pipeline=%d", verb, path, pipeline), func(b *testing.B) {
					benchmarkLoop(b, path == "program", verb, 1, "", closedOf(pipeline))
				})
			}
		}
		b.Run(fmt.Sprintf("op=%s/load=closed/nodes=3/pipeline=16", verb), func(b *testing.B) { benchmarkLoop(b, false, verb, 3, "", closedOf(16)) })
		b.Run(fmt.Sprintf("op=%s/load=closed/cluster=3/pipeline=16", verb), func(b *testing.B) { benchmarkLoop(b, false, verb, 3, "cluster = true", closedOf(16)) })
		for _, pipeline := range []int{16, 64} {
			b.Run(fmt.Sprintf("op=%s/load=closed/nwr=321/pipeline=%d", verb, pipeline), func(b *testing.B) {
				benchmarkLoop(b, false, verb, 3, nwr321, closedOf(pipeline))
			})
		}
	}
	b.Run("op=put/load=closed/size=1024/pipeline=64", func(b *testing.B) { benchmarkValues(b, false, driver.Put, 1, 1024, "", closedOf(64)) })
	for _, arrivals := range []string{"constant", "poisson"} {
		b.Run("op=get/load=open/arrivals="+arrivals, func(b *testing.B) {
			const load = "open {\n rate = 100000\n duration = \"1000h\"\n arrivals = %q\n sessions = 50\n pipeline = 16\n}"
			benchmarkLoop(b, false, driver.Get, 1, "", fmt.Sprintf(load, arrivals))
		})
	}
}

func closedOf(pipeline int) string {
	return fmt.Sprintf("closed {\n sessions = 50\n duration = \"1000h\"\n pipeline = %d\n}", pipeline)
}

func benchmarkLoop(b *testing.B, indirect bool, verb driver.Verb, nodes int, target, load string) {
	benchmarkValues(b, indirect, verb, nodes, 100, target, load)
}

func benchmarkValues(b *testing.B, indirect bool, verb driver.Verb, nodes, size int, target, load string) {
	v := newBench(b, redisPlanOf(b, nodes, fmt.Sprintf("size = %d", size), target, fmt.Sprintf("ops = { %s = 1 }\n%s", verb, load)), "load", 0)
	v.indirect = indirect
	w := v.l.tr.(*wire)
	net := newCannedNet(v.net, w.codec.codec, verb, size)
	w.poll = net
	if v.g.phase.Open != nil {
		v.net.clock.tick = int64(time.Microsecond) // waits are short and spent looking
	}
	v.equip(worker.Load)
	v.l.enter()
	for net.answered < 100_000 {
		v.l.cycle()
	}
	require.Positive(b, v.l.rec.Ops[verb].Outcomes[driver.OK])
	replies := 1
	if target == nwr321 {
		replies = nodes
	}
	from, writes := net.answered, net.writes
	b.ReportAllocs()
	b.ResetTimer()
	for net.answered-from < b.N*replies {
		v.l.cycle()
	}
	b.ReportMetric(float64(net.writes-writes)/float64(b.N), "writes/op")
}

// cannedNet answers every request at once, without looking into it.
type cannedNet struct {
	*virtualNet
	request  int    // length of each
	reply    int    // and of its reply
	replies  []byte // to many
	owed     []int  // bytes, by descriptor
	waiting  []int  // descriptors with bytes to be read
	answered int
	writes   int
}

// newCannedNet takes over connections that are made.
func newCannedNet(n *virtualNet, codec driver.Codec, verb driver.Verb, size int) *cannedNet {
	value := driver.Value{Size: size, Checked: true, Writer: 1, Version: 1}
	one := stored
	if verb != driver.Put {
		one = fmt.Appendf(nil, "$%d\r\n%s\r\n", value.Size, value.AppendTo(nil))
	}
	return newCannedReplies(n, codec, verb, &value, one)
}

// newCannedReplies is newCannedNet for a reply in any protocol.
func newCannedReplies(n *virtualNet, codec driver.Codec, verb driver.Verb, value *driver.Value, one []byte) *cannedNet {
	req := driver.Request{Verb: verb, Key: []byte("key:000000000001")}
	if verb == driver.Put {
		req.Value = value
	}
	return &cannedNet{
		virtualNet: n, request: len(codec.AppendRequest(nil, &req)), reply: len(one), replies: bytes.Repeat(one, readSize/len(one)),
		owed: make([]int, len(n.socks)),
	}
}

func (n *cannedNet) Write(fd int, p []byte) (int, error) {
	if n.owed[fd] == 0 {
		n.waiting = append(n.waiting, fd)
	}
	n.writes++
	n.owed[fd] += len(p) / n.request * n.reply
	return len(p), nil
}

func (n *cannedNet) Read(fd int, p []byte) (int, error) {
	if n.owed[fd] == 0 {
		return 0, unix.EAGAIN
	}
	got := copy(p, n.replies[:n.owed[fd]])
	n.owed[fd] -= got
	n.answered += got / n.reply
	return got, nil
}

func (n *cannedNet) Wait(ready []sockets.Readiness, d time.Duration) (int, error) {
	if len(n.waiting) == 0 {
		n.clock.t += int64(d)
	}
	count := min(len(ready), len(n.waiting))
	for i, fd := range n.waiting[:count] {
		ready[i] = sockets.Readiness{Token: n.socks[fd].token, Read: true}
	}
	n.waiting = n.waiting[:copy(n.waiting, n.waiting[count:])]
	return count, nil
}
