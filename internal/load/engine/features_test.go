package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// features are what workloads can be made of. None of them deletes, so that a get of a key of the dataset is a hit.
var features = []struct {
	name, keys, values, phase string
	alone                     bool // not with several keys in a quorum op
	traced                    bool
}{
	{name: "gets", phase: "ops = { get = 1 }"},
	{name: "a mix", phase: "ops = { get = 2, put = 1 }"},
	{name: "a hit ratio", phase: "ops = { get = 3, put = 1 }\nhit_ratio = \"90%\""},
	{name: "a low hit ratio", phase: "ops = { get = 1 }\nhit_ratio = \"20%\""},
	{name: "zipf", keys: "pick = \"zipf(0.99)\"", phase: "ops = { get = 2, put = 1 }\nhit_ratio = \"80%\""},
	{name: "zipf as in YCSB", keys: "pick = \"zipf(0.99, ycsb)\"", phase: "ops = { get = 1 }\nhit_ratio = \"80%\""},
	{name: "hotspot", keys: "pick = \"hotspot(80% on 20%)\"", phase: "ops = { get = 2, put = 1 }\nhit_ratio = \"80%\""},
	{name: "latest", keys: "pick = \"latest(0.99)\"", phase: "ops = { get = 2, put = 1 }"},
	{name: "sequence", keys: "pick = \"sequence\"", phase: "ops = { get = 1 }"},
	{name: "checked values", values: "checked = true", phase: "ops = { get = 1, put = 1 }\nhit_ratio = \"70%\""},
	{name: "values that expire", values: "ttl = \"1h\"", phase: "ops = { get = 1, put = 1 }\nhit_ratio = \"70%\""},
	{name: "batches", phase: "ops = { get = 1, put = 1 }\nbatch = 4", alone: true},
	{name: "scenarios", phase: "scenario \"modify\" {\n step \"get\" {}\n step \"put\" { key = \"same\" }\n step \"get\" {}\n}\n"},
	{name: "a trace", traced: true},
}

// Every request goes to an endpoint that holds its key, whatever the workload is made of. So every get of an existing key is a hit, and no other is.
func TestKeysAreAskedForWhereTheyLive(t *testing.T) {
	for _, f := range features {
		for _, endpoints := range []int{1, 4} {
			for _, n := range []int{0, 1, 2} {
				for _, indirect := range []bool{false, true} {
					if f.alone && n > 0 || n > endpoints {
						continue
					}
					if !servertest.Whole() && (endpoints == 1 || indirect) {
						continue
					}
					t.Run(fmt.Sprintf("%s/endpoints=%d/n=%d/indirect=%v", f.name, endpoints, n, indirect), func(t *testing.T) {
						askEverywhere(t, featurePlan(t, f.keys, f.values, f.phase, f.traced, endpoints, n), f.traced, n, indirect)
					})
				}
			}
		}
	}
}

// featurePlan is a plan of a feature on so many endpoints, n of which hold a key; n = 0 means no replication.
func featurePlan(t *testing.T, keys, values, phase string, traced bool, endpoints, n int) *plan.Plan {
	t.Helper()
	var list []string
	for i := range endpoints {
		list = append(list, strconv.Quote(fmt.Sprintf("127.0.0.1:%d", firstPort+i)))
	}
	target := ""
	if n > 0 {
		target = fmt.Sprintf("replication {\n coordinate = \"client\"\n n = %d\n w = %d\n r = 1\n}", n, n)
	}
	load := "closed {\n sessions = 3\n duration = \"100ms\"\n pipeline = 4\n}"
	if traced {
		load = "open {\n trace {\n file = \"trace.csv\"\n }\n sessions = 3\n}"
	}
	return parsePlan(t, fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = [%s]
			%s
		}
		dataset "d" {
			keys {
				count = 500
				%s
			}
			values {
				size = 100
				%s
			}
		}
		phase "load" {
			target      = target.t
			dataset     = dataset.d
			%s
			%s
		}`, strings.Join(list, ", "), target, keys, values, phase, load))
}

// askEverywhere carries a plan's load out on servers that hold the dataset, and compares the requests that they get with the placement.
func askEverywhere(t *testing.T, p *plan.Plan, traced bool, n int, indirect bool) {
	t.Helper()
	b := newBench(t, p, "load", 100*time.Microsecond)
	b.indirect = indirect
	if traced {
		const lines = 2000
		_, trace := recorded(lines)
		p.Phases[0].Open.Trace.Lines, p.Phases[0].Open.Duration = lines, time.Minute
		b.g.trace = opened(trace)
	}
	n = max(1, n)
	value := make([]byte, 100)
	for i := range 500 {
		key := fmt.Appendf(nil, "key:%012d", i)
		for _, e := range b.g.placement.Place(nil, key, n) {
			b.server(e).store(key, value)
		}
	}
	strays, absent := 0, 0
	for i := range b.g.endpoints {
		b.server(i).heard = func(command, key []byte) {
			if !slices.Contains(b.g.placement.Place(nil, key, n), i) {
				strays++
			}
			if string(command) == "GET" && len(key) > len("key:000000000000") {
				absent++
			}
		}
	}
	got := b.run(worker.Load)
	require.Zero(t, strays, "requests went to endpoints that do not hold their keys")
	if traced {
		return
	}
	get := got.Ops[driver.Get]
	answered := get.Outcomes[driver.OK] + get.Outcomes[driver.Miss]
	require.Greater(t, answered, uint64(100))
	require.Equal(t, get.Due, answered)
	require.EqualValues(t, absent/n, get.Outcomes[driver.Miss], "a get of a key that nobody puts is a miss, and no other")
}

// No two values of a stream have the same version, and later ones have larger ones, even if they were put at the same time.
func TestVersionsAreOfOnePutEach(t *testing.T) {
	for name, phase := range map[string]string{
		"puts": "ops = { put = 1 }", "a mix": "ops = { get = 1, put = 1 }", "batches": "ops = { put = 1 }\nbatch = 4",
		"scenarios": "scenario \"s\" {\n step \"put\" {}\n step \"put\" {}\n}",
	} {
		for _, endpoints := range []int{1, 4} {
			for _, n := range []int{0, 1} {
				for _, indirect := range []bool{false, true} {
					if name == "batches" && n > 0 {
						continue
					}
					if !servertest.Whole() && (endpoints == 1 || indirect) {
						continue
					}
					t.Run(fmt.Sprintf("%s/endpoints=%d/n=%d/indirect=%v", name, endpoints, n, indirect), func(t *testing.T) {
						b := newBench(t, featurePlan(t, "", "checked = true", phase, false, endpoints, n), "load", 100*time.Microsecond)
						b.indirect = indirect
						puts, versions := 0, map[[2]uint64]bool{}
						for i := range b.g.endpoints {
							b.server(i).put = func(value []byte) {
								h, ok := (&driver.Reply{Value: value}).Header()
								require.True(t, ok)
								puts++
								versions[[2]uint64{uint64(h.Writer), h.Version}] = true
							}
						}
						b.run(worker.Load)
						require.Greater(t, puts, 1000)
						require.Equal(t, puts, len(versions))
					})
				}
			}
		}
	}
}

// Keys of a batch end as their requests do: those whose server answers too late have timed out, and the others not.
func TestKeysOfABatchTimeOut(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		b := newBench(t, redisPlan(t, 2, `timeout = "20ms"`, "ops = { get = 1 }\nbatch = 4\nclosed {\n sessions = 2\n iterations = 200\n}"), "load", time.Millisecond)
		b.indirect = indirect
		late := 0
		b.server(1).latency = func(int) time.Duration {
			if late++; late%5 == 0 {
				return 30 * time.Millisecond
			}
			return time.Millisecond
		}
		totals := b.run(worker.Load)
		get := totals.Ops[driver.Get]
		require.Positive(t, totals.LateReplies)
		require.Zero(t, totals.Request(0, driver.Get).Timeout)
		require.Positive(t, get.Outcomes[driver.Timeout])
		keys := get.Keys.Outcomes
		require.Equal(t, get.Keys.Due, keys[driver.OK]+keys[driver.Miss]+keys[driver.Timeout])
		require.LessOrEqual(t, keys[driver.Timeout], 4*get.Outcomes[driver.Timeout])
		require.GreaterOrEqual(t, keys[driver.Timeout], get.Outcomes[driver.Timeout])
		require.Zero(t, get.Outcomes[driver.Error])
	}
}

// A reply that comes after its op has timed out is one reply, however many pieces it comes in.
func TestLateRepliesInPieces(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		b := newBench(t, redisPlan(t, 1, `timeout = "20ms"`, "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 100\n}"), "load", time.Millisecond)
		b.indirect = indirect
		for i := range 100 {
			b.server(0).keys[fmt.Sprintf("key:%012d", i)] = []byte("$30\r\n" + strings.Repeat("x", 30) + "\r\n")
		}
		b.server(0).piece = 7
		n := 0
		b.server(0).latency = func(int) time.Duration {
			if n++; n%5 == 0 {
				return 30 * time.Millisecond
			}
			return time.Millisecond
		}
		totals := b.run(worker.Load)
		get := totals.Ops[driver.Get]
		require.Greater(t, get.Outcomes[driver.Timeout], uint64(20))
		require.EqualValues(t, 200, get.Outcomes[driver.OK]+get.Outcomes[driver.Timeout])
		require.InDelta(t, get.Outcomes[driver.Timeout], totals.LateReplies, 2, "but the last")
		require.Zero(t, totals.Reconnects)
	}
}

// inOrder is a driver whose codecs have state: each connection's knows the keys whose values it is owed.
type inOrder struct {
	driver.Wire
	read *int // replies, whether they came in time or not
}

func (d inOrder) NewCodec(link driver.Link) (driver.Codec, error) {
	c, err := d.Wire.NewCodec(link)
	return &owedCodec{Codec: c, read: d.read}, err
}

type owedCodec struct {
	driver.Codec
	owed []string
	read *int
}

func (c *owedCodec) Connection(string, int) (driver.Codec, error) {
	return &owedCodec{Codec: c.Codec, read: c.read}, nil
}

func (c *owedCodec) AppendRequest(dst []byte, req *driver.Request) []byte {
	c.owed = append(c.owed, string(req.Key))
	return c.Codec.AppendRequest(dst, req)
}

func (c *owedCodec) Parse(b []byte, v driver.Verb, reply *driver.Reply) (int, error) {
	n, err := c.Codec.Parse(b, v, reply)
	if n == 0 || err != nil {
		return n, err
	}
	if len(c.owed) == 0 || string(reply.Value) != c.owed[0] {
		return 0, fmt.Errorf("the reply to %q, where those to %q are owed", reply.Value, c.owed)
	}
	c.owed = c.owed[1:]
	*c.read++
	return n, nil
}

// A codec with state is asked for requests in the order of their replies, and is shown each of these once, also those that come too late.
func TestCodecsWithStateSeeRepliesInOrder(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		for _, load := range []string{"closed {\n sessions = 2\n pipeline = 4\n iterations = 200\n}", "open {\n sessions = 2\n pipeline = 4\n rate = 1000\n duration = \"1s\"\n}"} {
			read := 0
			b := &bench{t: t, net: newVirtualNet(10), indirect: indirect, drives: func(d driver.Wire) driver.Wire { return inOrder{d, &read} }}
			p := redisPlan(t, 2, `timeout = "20ms"`, "ops = { get = 1 }\nmax_bad = 1\n"+load)
			require.NoError(t, b.connect(p, "load", time.Millisecond, b.net.clock))
			late := 0
			for i := range 2 {
				for k := range 100 {
					key := fmt.Sprintf("key:%012d", k)
					b.server(i).keys[key] = fmt.Appendf(nil, "$%d\r\n%s\r\n", len(key), key)
				}
				b.server(i).piece = 11
				b.server(i).latency = func(int) time.Duration {
					if late++; late%50 == 0 {
						return 30 * time.Millisecond
					}
					return time.Millisecond
				}
			}
			totals := b.run(worker.Load)
			get := totals.Ops[driver.Get]
			require.Zero(t, get.Outcomes[driver.Error])
			require.Positive(t, totals.LateReplies)
			require.EqualValues(t, get.Outcomes[driver.OK]+totals.LateReplies, read)
		}
	}
}

// A pipeline of large values takes more parts than the kernel takes in one call: they leave in several, in order and whole.
func TestMoreLargeValuesThanOneWriteTakes(t *testing.T) {
	const depth = 2 * mostParts
	b := newBench(t, redisPlanOf(t, 1, "size = 20000", "", fmt.Sprintf("ops = { put = 1 }\nclosed {\n sessions = 1\n pipeline = %d\n iterations = %d\n}", depth, 3*depth)), "load", time.Millisecond)
	b.server(0).put = func(value []byte) { require.Len(t, value, 20000) }
	totals := b.run(worker.Load)
	put := totals.Ops[driver.Put]
	require.EqualValues(t, 3*depth, put.Outcomes[driver.OK])
	require.EqualValues(t, 3*depth, *b.server(0).got["SET"])
	require.EqualValues(t, b.server(0).told, put.Out)
	require.Zero(t, totals.Reconnects)
}

// The bytes of ops are those that the servers got and sent, without greetings, in each way that ops are carried out.
func TestBytesAreThoseOfTheServers(t *testing.T) {
	const mixed = "ops = { get = 2, put = 2, delete = 1 }\nexpect_hits = 0\n"
	for name, c := range map[string]struct{ values, target, phase string }{
		"plain":   {"size = 100", "", mixed},
		"checked": {"size = 100\n checked = true", "", mixed},
		"large":   {"size = 20000", "", mixed},
		"batches": {"size = 100", "", "ops = { get = 1, put = 1 }\nexpect_hits = 0\nbatch = 4\n"},
		"copies":  {"size = 100", "replication {\n coordinate = \"client\"\n n = 2\n w = 2\n r = 2\n}", mixed},
		"puts":    {"size = 100", "replication {\n coordinate = \"client\"\n n = 3\n w = 3\n r = 1\n}", "ops = { put = 1 }\n"},
		"steps":   {"size = 100", "", "expect_hits = 0\nscenario \"s\" {\n step \"put\" {}\n step \"get\" { key = \"same\" }\n}\n"},
	} {
		for _, indirect := range []bool{false, true} {
			b := newBench(t, redisPlanOf(t, 3, c.values, c.target, c.phase+"closed {\n sessions = 3\n pipeline = 4\n iterations = 200\n}"), "load", time.Millisecond)
			b.indirect = indirect && name != "steps"
			totals := b.run(worker.Load)
			var in, out, said, told uint64
			for _, o := range totals.Ops {
				if o != nil {
					in, out = in+o.In, out+o.Out
				}
			}
			for i := range 3 {
				said, told = said+uint64(b.server(i).said), told+uint64(b.server(i).told)
			}
			require.Positive(t, out)
			require.Equal(t, [2]uint64{said, told}, [2]uint64{in, out}, "%s, indirect=%t", name, indirect)
		}
	}
}
