package workload

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// keys returns a dataset's keys with the default format.
func keys(pick, scope string, count int64) plan.Keys {
	return plan.Keys{Pick: pick, Skew: 0.99, Count: count, Scope: scope, Format: "key:%012d"}
}

// hot returns the keys of a hotspot.
func hot(ops, share float64, count int64) plan.Keys {
	return plan.Keys{Pick: "hotspot", HotOps: ops, HotKeys: share, Count: count, Scope: "shared", Format: "key:%012d"}
}

// ycsbKeys returns keys picked as YCSB does.
func ycsbKeys(count int64) plan.Keys {
	k := keys("zipf", "shared", count)
	k.Form = "ycsb"
	return k
}

// onePlan returns a plan with one dataset, "data", and the given phases over it.
func onePlan(k plan.Keys, phases ...*plan.Phase) *plan.Plan {
	for _, ph := range phases {
		ph.Dataset = "data"
	}
	return &plan.Plan{
		Seed:     1,
		Datasets: []*plan.Dataset{{Name: "data", Keys: k, Values: plan.Values{Size: 200, Checked: true}}},
		Phases:   phases,
	}
}

func ops(weights ...float64) []plan.Weight {
	var w []plan.Weight
	for i, weight := range weights {
		w = append(w, plan.Weight{Op: driver.Verb(i).String(), Weight: weight})
	}
	return w
}

func closed(name string, sessions int, iterations int64) *plan.Phase {
	return &plan.Phase{Name: name, Ops: ops(8, 1, 1), Closed: &plan.Closed{Clients: plan.Clients{Sessions: sessions, Pipeline: 1}, Iterations: iterations}}
}

func open(name string, sessions, streams int) *plan.Phase {
	return &plan.Phase{Name: name, Ops: ops(8, 1, 1), Open: &plan.Open{
		Schedule: plan.Schedule{Clients: plan.Clients{Sessions: sessions}, Streams: streams, Arrivals: "poisson"}, Rate: 1000, Duration: 10 * time.Second,
	}}
}

func withSetup(ph *plan.Phase) *plan.Phase {
	ph.Setup = ops(0, 1)
	return ph
}

func populate(name string, sessions int) *plan.Phase {
	return &plan.Phase{Name: name, Ops: ops(0, 1), Populate: &plan.Clients{Sessions: sessions, Pipeline: 1}}
}

func clearing(name string, sessions int) *plan.Phase {
	return &plan.Phase{Name: name, Ops: ops(0, 0, 1), Clear: &plan.Clients{Sessions: sessions, Pipeline: 1}}
}

// source makes the source of a step of the plan's phase with the given index.
func source(t require.TestingT, p *plan.Plan, phase int, kind Kind) *Source {
	step := Step{Kind: kind}
	if o := p.Phases[phase].Open; o != nil {
		step.Shape = pace.Shape(o.Shape())
	}
	s, err := New(p, p.Phases[phase], step)
	require.NoError(t, err)
	return s
}

// next draws an op of which there must be one. It is called a million times, and require takes longer than a draw.
func next(t require.TestingT, st *Stream, o *op.Op) {
	if !st.Next(o) {
		require.Fail(t, "no op is left")
	}
}

// drain returns the keys of up to limit ops of a stream, and checks the invariants of every op.
func drain(t require.TestingT, s *Source, i, limit int) []string {
	st := s.Stream(i)
	var got []string
	var o op.Op
	for len(got) < limit && st.Next(&o) {
		valued := o.Value.Size == 200 && o.Value.Checked
		if o.Stream != uint32(i) || o.N != uint64(len(got)) || o.Verb == driver.Put && !valued || o.Verb != driver.Put && o.Value != (driver.Value{}) {
			require.Fail(t, "another op", "%d of stream %d: %+v", len(got), i, o)
		}
		got = append(got, string(o.Key))
	}
	if n, bounded := s.Ops(i); bounded {
		require.Len(t, got, min(int(n), limit))
		require.Equal(t, len(got) == limit && int(n) > limit, st.Next(&o))
	} else {
		require.Len(t, got, limit)
	}
	return got
}

func drainAll(t require.TestingT, s *Source) []string {
	var got []string
	for i := range s.Streams() {
		got = append(got, drain(t, s, i, math.MaxInt)...)
	}
	return got
}

// numbered returns the default format's keys of [0, count).
func numbered(count int) []string {
	var want []string
	for i := range count {
		want = append(want, fmt.Sprintf("key:%012d", i))
	}
	return want
}

// poolKeys returns the keys of session i's pool, in order, as a setup on as many sessions puts them.
func poolKeys(t require.TestingT, k plan.Keys, i int) []string {
	p := onePlan(k, withSetup(closed("elsewhere", i+1, 1)))
	return drain(t, source(t, p, 0, Setup), i, math.MaxInt)
}

func TestSequenceOfSharedKeysIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 3000).Draw(t, "count")
		sessions := rapid.IntRange(1, 70).Draw(t, "sessions")
		streams := sessions * rapid.IntRange(1, 30).Draw(t, "streams per session")
		p := onePlan(keys("sequence", "shared", int64(count)),
			closed("closed", sessions, 0), open("open", sessions, streams), populate("populate", sessions), clearing("clear", sessions))
		for phase, kind := range []Kind{Load, Load, Populate, Clear} {
			require.Equal(t, numbered(count), drainAll(t, source(t, p, phase, kind)), p.Phases[phase].Name)
		}
	})
}

func TestPopulateAndClearIgnoreThePick(t *testing.T) {
	for _, pick := range []string{"uniform", "zipf", "sequence"} {
		p := onePlan(keys(pick, "shared", 100), populate("populate", 7), clearing("clear", 3))
		require.Equal(t, numbered(100), drainAll(t, source(t, p, 0, Populate)))
		require.Equal(t, numbered(100), drainAll(t, source(t, p, 1, Clear)))
	}
}

func TestSequenceOfPoolsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Int64Range(1, 300).Draw(t, "count")
		sessions := rapid.IntRange(1, 40).Draw(t, "sessions")
		streams := rapid.IntRange(sessions, 10*sessions).Draw(t, "streams")
		k := keys("sequence", "session", count)
		p := onePlan(k, withSetup(closed("closed", sessions, 0)), open("open", sessions, streams))
		byLoad, bySetup, byOpen := source(t, p, 0, Load), source(t, p, 0, Setup), source(t, p, 1, Load)
		seen := map[string]bool{}
		for i := range sessions {
			pool := drain(t, bySetup, i, math.MaxInt)
			require.Equal(t, poolKeys(t, k, i), pool, "a pool does not depend on the number of sessions")
			require.Equal(t, pool, drain(t, byLoad, i, math.MaxInt))
			var parts []string
			for stream := i; stream < streams; stream += sessions {
				parts = append(parts, drain(t, byOpen, stream, math.MaxInt)...)
			}
			require.Equal(t, pool, parts)
			for _, key := range pool {
				require.False(t, seen[key], "%s is in two pools", key)
				seen[key] = true
			}
		}
		require.Len(t, seen, sessions*int(count))
	})
}

func TestClearOfPoolsDeletesThoseOfEveryLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.Int64Range(1, 50).Draw(t, "count")
		loading, clears := rapid.IntRange(1, 40).Draw(t, "loading"), rapid.IntRange(1, 40).Draw(t, "clearing")
		k := keys("uniform", "session", count)
		p := onePlan(k, clearing("clear", clears), closed("few", 1, 1), withSetup(closed("load", loading, 1)))
		var want []string
		for i := range loading {
			want = append(want, poolKeys(t, k, i)...)
		}
		require.Equal(t, want, drainAll(t, source(t, p, 0, Clear)))
		p.Phases = p.Phases[:1]
		require.Empty(t, drainAll(t, source(t, p, 0, Clear)), "no load has used a pool")
	})
}

func TestLoadPicksFromThePoolsThatSetupPut(t *testing.T) {
	for _, pick := range []string{"uniform", "zipf"} {
		k := keys(pick, "session", 20)
		p := onePlan(k, withSetup(closed("one", 5, 2000)), open("two", 5, 1025))
		setup := source(t, p, 0, Setup)
		for i := range 5 {
			pool := slices.Sorted(slices.Values(drain(t, setup, i, math.MaxInt)))
			for phase, stream := range []int{i, i + 1000} {
				got := slices.Sorted(slices.Values(drain(t, source(t, p, phase, Load), stream, 2000)))
				require.Equal(t, pool, slices.Compact(got), "%s, stream %d", pick, stream)
			}
		}
	}
}

func TestIterationsEndAStream(t *testing.T) {
	p := onePlan(keys("uniform", "shared", 50), closed("load", 3, 17), closed("by time", 3, 0))
	require.Len(t, drainAll(t, source(t, p, 0, Load)), 3*17)
	_, bounded := source(t, p, 1, Load).Ops(0)
	require.False(t, bounded)
	p = onePlan(keys("sequence", "shared", 50), closed("load", 3, 10), closed("longer", 3, 17))
	require.Len(t, drainAll(t, source(t, p, 0, Load)), 3*10)
	require.Len(t, drainAll(t, source(t, p, 1, Load)), 50, "a sequence does not start again")
}

func TestStreamsAndSessions(t *testing.T) {
	p := onePlan(keys("uniform", "session", 50), withSetup(open("load", 16, 1040)), clearing("clear", 4))
	load, setup, clears := source(t, p, 0, Load), source(t, p, 0, Setup), source(t, p, 1, Clear)
	require.Equal(t, []int{1040, 16, 16, 16, 4, 4}, []int{
		load.Streams(), load.Sessions(), setup.Streams(), setup.Sessions(), clears.Streams(), clears.Sessions(),
	})
}

// digest folds the ops of a source into a commutative digest, taking streams in the given order, a few ops at a time.
func digest(s *Source, order []int, atATime, ops int) uint64 {
	streams := make([]Stream, len(order))
	for at, i := range order {
		streams[at] = s.Stream(i)
	}
	var sum uint64
	var o op.Op
	for done := 0; done < ops; done += atATime {
		for at := range streams {
			for range atATime {
				streams[at].Next(&o)
				sum += digestOf(&o)
			}
		}
	}
	return sum
}

func digestOf(o *op.Op) uint64 {
	h := fnv.New64a()
	for _, x := range []uint64{uint64(o.Stream), o.N, uint64(o.Verb), o.Value.Seed, uint64(o.Value.Size)} {
		h.Write(binary.LittleEndian.AppendUint64(nil, x))
	}
	h.Write(o.Key)
	return h.Sum64()
}

func TestOpsAreTheSameInAnyOrder(t *testing.T) {
	for _, k := range []plan.Keys{keys("uniform", "shared", 1000), keys("zipf", "session", 30), hot(0.9, 0.1, 1000), ycsbKeys(1000), keys("latest", "shared", 10), keys("sequence", "shared", 64*40)} {
		p := onePlan(k, closed("load", 64, 0), closed("other", 64, 0))
		s := source(t, p, 0, Load)
		order := rand.New(rand.NewPCG(1, 1)).Perm(64)
		want := digest(s, order, 40, 40)
		slices.Sort(order)
		require.Equal(t, want, digest(s, order, 1, 40))
		require.Equal(t, want, digest(s, order[:20], 5, 40)+digest(s, order[20:], 8, 40), "divided between two workers")
		require.NotEqual(t, want, digest(source(t, p, 1, Load), order, 1, 40), "another phase")
		p.Seed = 2
		require.NotEqual(t, want, digest(source(t, p, 0, Load), order, 1, 40), "another seed")
	}
}

func TestEveryPutHasAFreshSeed(t *testing.T) {
	ph := closed("put", 4, 1000)
	ph.Ops = ops(0, 1)
	s := source(t, onePlan(keys("uniform", "shared", 3), ph), 0, "load")
	seeds := map[uint64]bool{}
	for i := range s.Streams() {
		st := s.Stream(i)
		var o op.Op
		for st.Next(&o) {
			seeds[o.Value.Seed] = true
		}
	}
	require.Len(t, seeds, 4000)
}

func TestPacerFollowsThePlan(t *testing.T) {
	ph := open("load", 16, 1024)
	p := onePlan(keys("uniform", "shared", 10), ph, closed("closed", 16, 0))
	due := func(phase, stream int) []int64 {
		pacer := source(t, p, phase, Load).Pacer(stream)
		var got []int64
		for d, ok := pacer.Next(); ok; d, ok = pacer.Next() {
			got = append(got, d)
		}
		return got
	}
	require.NotEqual(t, due(0, 0), due(0, 1))
	total := 0
	for i := range 1024 {
		total += len(due(0, i))
	}
	require.InDelta(t, 10_000, total, 500)
	ph.Open.Arrivals = "constant"
	require.Equal(t, []int64{3e6, 1027e6, 2051e6}, due(0, 3)[:3])
	ph.Open.Ramp = 8 * time.Second
	require.Len(t, due(0, 0), 6, "6,000 ops in all")
	require.Empty(t, due(1, 0), "a closed phase has no schedule")
	p.Phases[0].Setup = ops(0, 1)
	p.Datasets[0].Keys.Scope = "session"
	setup := source(t, p, 0, Setup).Pacer(0)
	_, ok := setup.Next()
	require.False(t, ok, "nor has a setup")
}

// Each level of a phase has its own ops and arrivals; those of the first are the same as in a phase with one level.
func TestLevelsDiffer(t *testing.T) {
	ph := open("load", 4, 1024)
	p := onePlan(keys("uniform", "shared", 1_000_000), ph)
	level := func(n int) *Source {
		s, err := New(p, ph, Step{Kind: "load", Level: n, Shape: pace.Shape(ph.Open.Shape())})
		require.NoError(t, err)
		return s
	}
	first := func(s *Source) (int64, string) {
		pacer, stream := s.Pacer(3), s.Stream(3)
		due, _ := pacer.Next()
		var o op.Op
		next(t, &stream, &o)
		return due, string(o.Key)
	}
	due, key := first(source(t, p, 0, Load))
	dueAgain, keyAgain := first(level(0))
	require.Equal(t, due, dueAgain)
	require.Equal(t, key, keyAgain)
	for n := 1; n < 5; n++ {
		otherDue, otherKey := first(level(n))
		require.NotEqual(t, due, otherDue)
		require.NotEqual(t, key, otherKey)
		againDue, againKey := first(level(n))
		require.Equal(t, otherDue, againDue)
		require.Equal(t, otherKey, againKey)
	}
}

func TestNewRefuses(t *testing.T) {
	broken := func(change func(p *plan.Plan)) *plan.Plan {
		p := onePlan(keys("uniform", "session", 50), withSetup(closed("load", 10, 1)))
		change(p)
		return p
	}
	tests := []struct {
		kind   Kind
		says   string
		change func(p *plan.Plan)
	}{
		{Populate, `phase "load" has no populate step`, func(*plan.Plan) {}},
		{Clear, `phase "load" has no clear step`, func(*plan.Plan) {}},
		{"verify", `phase "load" has no verify step`, func(*plan.Plan) {}},
		{Setup, "has no setup step", func(p *plan.Plan) { p.Phases[0].Setup = nil }},
		{Load, "has no load step", func(p *plan.Plan) { p.Phases[0].Closed = nil }},
		{Load, `dataset "other", which the plan does not have`, func(p *plan.Plan) { p.Phases[0].Dataset = "other" }},
		{Load, `op "store" is not known`, func(p *plan.Plan) { p.Phases[0].Ops[0].Op = "store" }},
		{Load, "add up to 0", func(p *plan.Plan) { p.Phases[0].Ops = nil }},
		{Load, "add up to 0", func(p *plan.Plan) { p.Phases[0].Ops = ops(0) }},
		{Load, `weight of op "get" is NaN`, func(p *plan.Plan) { p.Phases[0].Ops = ops(math.NaN()) }},
		{Load, `weight of op "get" is -1`, func(p *plan.Plan) { p.Phases[0].Ops = ops(-1, 2) }},
		{Load, "add up to +Inf", func(p *plan.Plan) { p.Phases[0].Ops = ops(math.MaxFloat64, math.MaxFloat64) }},
		{Load, "key format", func(p *plan.Plan) { p.Datasets[0].Keys.Format = "key" }},
		{Load, "a count of 0 keys", func(p *plan.Plan) { p.Datasets[0].Keys.Count = 0 }},
		{Load, `picked by "random"`, func(p *plan.Plan) { p.Datasets[0].Keys.Pick = "random" }},
		{Load, "hotspot(80% on 0.1%) of 50 keys", func(p *plan.Plan) { p.Datasets[0].Keys = hot(0.8, 0.001, 50) }},
		{Load, "hotspot(NaN% on 20%) of 50 keys", func(p *plan.Plan) { p.Datasets[0].Keys = hot(math.NaN(), 0.2, 50) }},
		{Load, "zipf(0)", func(p *plan.Plan) { p.Datasets[0].Keys.Pick, p.Datasets[0].Keys.Skew = "zipf", 0 }},
		{Load, "zipf(NaN)", func(p *plan.Plan) { p.Datasets[0].Keys.Pick, p.Datasets[0].Keys.Skew = "zipf", math.NaN() }},
		{Load, "latest(0)", func(p *plan.Plan) { p.Datasets[0].Keys.Pick, p.Datasets[0].Keys.Skew = "latest", 0 }},
		{Load, "10 pools of 100000000001 keys", func(p *plan.Plan) { p.Datasets[0].Keys.Count = 1e11 + 1 }},
		{Setup, "a shared key range is put by a populate phase", func(p *plan.Plan) { p.Datasets[0].Keys.Scope = "shared" }},
		{Populate, "pools are put by a phase's setup", func(p *plan.Plan) { p.Phases[0] = populate("load", 2); p.Phases[0].Dataset = "data" }},
	}
	for _, tt := range tests {
		p := broken(tt.change)
		_, err := New(p, p.Phases[0], Step{Kind: tt.kind})
		require.ErrorContains(t, err, tt.says)
	}
	p := broken(func(p *plan.Plan) { p.Datasets[0].Keys.Count = 1e11 })
	_, err := New(p, p.Phases[0], Step{Kind: "load"})
	require.NoError(t, err, "pools may take all the numbers there are")
}

// kinds holds the ways of picking keys, by name.
func kinds() map[string]plan.Keys {
	return map[string]plan.Keys{
		"keys=uniform":           keys("uniform", "shared", 1e6),
		"keys=uniform/pool":      keys("uniform", "session", 50),
		"keys=zipf/count=1e3":    keys("zipf", "shared", 1e3),
		"keys=zipf/count=1e8":    keys("zipf", "shared", 1e8),
		"keys=hotspot/count=1e3": hot(0.8, 0.2, 1e3),
		"keys=hotspot/count=1e8": hot(0.8, 0.2, 1e8),
		"keys=ycsb/count=1e3":    ycsbKeys(1e3),
		"keys=ycsb/count=1e8":    ycsbKeys(1e8),
		"keys=latest/count=1e3":  keys("latest", "shared", 1e3),
		"keys=latest/count=1e8":  keys("latest", "shared", 1e8),
		"keys=sequence":          keys("sequence", "shared", 1e15),
		"keys=sequence/pool=1e8": keys("sequence", "session", 1e8),
	}
}

// A change of the golden file changes every load ever published: it needs a reason.
func TestGolden(t *testing.T) {
	var b strings.Builder
	all := kinds()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := source(t, onePlan(all[name], closed("load", 10, 0)), 0, "load")
		for _, i := range []int{0, 1, 9} {
			fmt.Fprintf(&b, "%s, stream %d\n", name, i)
			st := s.Stream(i)
			var o op.Op
			for range 6 {
				st.Next(&o)
				fmt.Fprintf(&b, "  %-6s %s %016x\n", o.Verb, o.Key, o.Value.Seed)
			}
		}
	}
	path := filepath.Join("testdata", "ops.golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestNextAllocatesNothing(t *testing.T) {
	for name, k := range kinds() {
		st := source(t, onePlan(k, closed("load", 10, 0)), 0, "load").Stream(3)
		o := op.Op{Key: make([]byte, 0, 32)}
		require.Zero(t, testing.AllocsPerRun(1000, func() { st.Next(&o) }), name)
	}
}

// A loop holds thousands of streams and touches one per op: they stay within two and a half cache lines.
func TestStreamIsSmall(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[Stream]().Size(), uintptr(160))
}

func BenchmarkNext(b *testing.B) {
	all := kinds()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			st := source(b, onePlan(all[name], closed("load", 10, 0)), 0, "load").Stream(3)
			var o op.Op
			b.ReportAllocs()
			for b.Loop() {
				st.Next(&o)
			}
		})
	}
}
