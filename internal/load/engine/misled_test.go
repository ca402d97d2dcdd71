package engine

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// holds makes a server hold a value.
func (s *virtualServer) holds(key string, v driver.Value) {
	s.keys[key] = append(v.AppendTo(appendDollar(nil, v.Size)), "\r\n"...)
}

// One reply of a pipeline is lost: all later ones would be those to other requests. The connection ends at the first that says so, in each way of
// carrying out gets, and with each kind of value that says whose it is.
func TestALostReplyEndsItsConnection(t *testing.T) {
	for _, checked := range []bool{false, true} {
		for _, indirect := range []bool{false, true} {
			for _, lost := range []uint64{0, 1} {
				t.Run(fmt.Sprint(checked, indirect, lost), func(t *testing.T) {
					b := newBench(t, redisPlanOf(t, 1, fmt.Sprintf("size = 100\nchecked = %t", checked), "timeout = \"10s\"",
						"ops = { get = 1 }\nclosed {\n sessions = 1\n pipeline = 16\n iterations = 5000\n}"), "load", time.Millisecond)
					b.indirect = indirect
					s, n := b.server(0), 0
					for i := range 100 {
						key := fmt.Sprintf("key:%012d", i)
						s.holds(key, driver.Value{Size: 100, Seed: uint64(i) << 30, Checked: checked, Version: 1, Key: driver.KeyHash([]byte(key))})
					}
					s.latency = func(int) time.Duration {
						if n++; n == 1000 && lost > 0 {
							return -1
						}
						return time.Millisecond
					}
					got := b.run(worker.Load)
					require.Equal(t, []uint64{lost, lost, 0, 0}, []uint64{got.Misplaced, got.Reconnects, got.Foreign, got.AnotherRun})
				})
			}
		}
	}
}

// A server answers some keys with values of others, which were put later. What was acknowledged of those keys is lost, not newer.
func TestVerifyTakesNoOtherKeysValues(t *testing.T) {
	b := newBench(t, parsePlan(t, verifyPlan(1000, "ops = { put = 1 }\nclosed {\n sessions = 7\n iterations = 1000\n}")), "load", time.Millisecond)
	b.run(worker.Load)
	s, mixed := b.server(0), uint64(0)
	for i := range 37 {
		to, from := s.keys[fmt.Sprintf("key:%012d", i)], s.keys[fmt.Sprintf("key:%012d", 500+i)]
		if to == nil || from == nil {
			continue
		}
		s.holds(fmt.Sprintf("key:%012d", i), driver.Value{Size: 40, Checked: true, Version: 1 << 62, Key: driver.KeyHash(fmt.Appendf(nil, "key:%012d", 500+i))})
		mixed++
	}
	got := b.verify()
	v := got.Versions.Verified
	require.Positive(t, mixed)
	require.Positive(t, v.Missing)
	require.Zero(t, v.Newer+v.Older+got.Foreign)
	require.Equal(t, got.Misplaced, v.Missing)
	require.GreaterOrEqual(t, v.Missing+v.Unread, mixed, "a connection that mixed answers up ends, with what was in flight on it")
}

// A server loses puts, and has again what an earlier run put by a clock an hour ahead. Those are lost, not newer.
func TestVerifyTakesNoOtherRunsValues(t *testing.T) {
	b := newBench(t, parsePlan(t, verifyPlan(1000, "ops = { put = 1 }\nclosed {\n sessions = 7\n iterations = 1000\n}")), "load", time.Millisecond)
	b.e.run.RunID = "this run"
	require.NoError(t, b.enter("load", 0))
	b.run(worker.Load)
	s, lost := b.server(0), uint64(0)
	for key := range s.keys {
		if key[len(key)-1] == '3' {
			s.holds(key, driver.Value{Size: 40, Checked: true, Version: uint64(b.e.wall) + uint64(time.Hour) + 1<<60, Run: 9, Key: driver.KeyHash([]byte(key))})
			lost++
		}
	}
	got := b.verify()
	v := got.Versions.Verified
	require.Positive(t, lost)
	require.Equal(t, []uint64{lost, 0, 0, 0, lost}, []uint64{v.Missing, v.Older, v.Newer, v.Unread, got.AnotherRun})
	require.Zero(t, got.Misplaced+got.Foreign+got.Reconnects)
}

// Another run puts keys that this one populates, or puts to: this run's gets find its values, in each way of carrying out gets. Where this run put only
// some of the keys, what the other put before may be there.
func TestAnotherRunOnTheSameKeys(t *testing.T) {
	ops := []plan.Weight{{Op: "put", Weight: 1}}
	for before, phases := range map[string][]*plan.Phase{
		"populate": {{Name: "before", Target: "t", Dataset: "d", Ops: ops, Populate: &plan.Clients{}}},
		"puts":     {{Name: "before", Target: "t", Dataset: "d", Ops: ops, Closed: &plan.Closed{}}},
		"nothing":  {},
	} {
		for _, indirect := range []bool{false, true} {
			p := redisPlanOf(t, 1, "size = 40\nchecked = true", "", "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 500\n}")
			p.Phases = append(phases, p.Phases...)
			b := newBench(t, p, "load", time.Millisecond)
			b.e.run.RunID = "this run"
			require.NoError(t, b.enter("load", 0))
			b.indirect = indirect
			for i := range 100 {
				key, version := fmt.Sprintf("key:%012d", i), uint64(b.e.wall)
				if i >= 50 {
					version--
				}
				b.server(0).holds(key, driver.Value{Size: 40, Checked: true, Version: version, Run: 9, Key: driver.KeyHash([]byte(key))})
			}
			got := b.run(worker.Load)
			switch before {
			case "populate":
				require.EqualValues(t, 1000, got.AnotherRun)
			case "puts":
				require.InDelta(t, 500, got.AnotherRun, 100)
			default:
				require.Zero(t, got.AnotherRun)
			}
			require.Zero(t, got.Misplaced+got.Foreign+got.Reconnects)
		}
	}
}

// A blocking client that gives each get the answer to the one before is made anew.
func TestAClientThatMixesAnswersUp(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		made := 0
		dial := func(context.Context, string) (driver.Session, error) {
			made++
			var last []byte
			return doing(func(_ context.Context, req *driver.Request, reply *driver.Reply) error {
				if last == nil || made > 1 {
					last = req.Key
				}
				v := driver.Value{Size: 20, Key: driver.KeyHash(last)}
				reply.Value = v.AppendTo(nil)
				return nil
			}), nil
		}
		got, err := driveClients(t, 1, 1, dial, "", "closed {\n sessions = 1\n iterations = 100\n}")
		require.NoError(t, err)
		require.Equal(t, 2, made)
		require.EqualValues(t, 1, got.Totals.Misplaced)
	})
}

// In a batch, a value of a key that is not in it is misplaced.
func TestBatchesTakeNoOtherKeysValues(t *testing.T) {
	for _, checked := range []bool{false, true} {
		for _, wrong := range []int{-1, 42} {
			b := newBench(t, redisPlanOf(t, 1, fmt.Sprintf("size = 100\nchecked = %t", checked), "",
				"ops = { get = 1 }\nbatch = 4\nclosed {\n sessions = 1\n iterations = 200\n}"), "load", time.Millisecond)
			for i := range 100 {
				key := fmt.Sprintf("key:%012d", i)
				v := driver.Value{Size: 100, Seed: 1 << 40, Checked: checked, Version: 1, Key: driver.KeyHash([]byte(key))}
				if i == wrong {
					v.Key = driver.KeyHash([]byte("another"))
				}
				b.server(0).holds(key, v)
			}
			got := b.run(worker.Load)
			require.Equal(t, wrong >= 0, got.Misplaced > 0)
			require.LessOrEqual(t, got.Reconnects, got.Misplaced)
			require.Equal(t, wrong >= 0, got.Reconnects > 0)
		}
	}
}

// A web server has one page for all keys, which is the value of one of them. It comes in two pieces.
func TestPagesOfOtherKeys(t *testing.T) {
	const owner = "key:000000000007"
	value := driver.Value{Size: 100, Key: driver.KeyHash([]byte(owner))}
	page := value.AppendTo(nil)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(page[:5])
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write(page[5:])
		}
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	for _, name := range []string{"web", "http2"} {
		text := strings.Replace(webPlan(server.Listener.Addr().String(), "", "100B", "closed {\n sessions = 1\n iterations = 200\n}"), `"web"`, strconv.Quote(name), 1)
		_, final, err := driveLines(t, Config{Loops: 1, Drivers: drivers.All(), Open: openAny}, text)
		require.NoError(t, err)
		gets := final.Totals.Ops[driver.Get].Outcomes[driver.OK]
		require.Greater(t, gets, uint64(20))
		require.Less(t, final.Totals.Misplaced, gets+1, name)
		require.Greater(t, final.Totals.Misplaced, gets*8/10, name)
		require.Zero(t, final.Totals.Foreign)
	}
}
