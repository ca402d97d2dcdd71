package selfcheck

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/hist"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// TestSojourns compares Lindley's recursion with a simulation of the server, one visit after another.
func TestSojourns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var visits []Visit
		var want []int64
		arrival, free := int64(0), int64(0)
		for range rapid.IntRange(0, 50).Draw(t, "visits") {
			arrival += rapid.Int64Range(0, 100).Draw(t, "gap")
			service := rapid.Int64Range(0, 100).Draw(t, "service")
			free = max(free, arrival) + service
			visits = append(visits, Visit{arrival, service})
			want = append(want, free-arrival)
		}
		require.Len(t, Sojourns(visits), len(want))
		for i, got := range Sojourns(visits) {
			require.Equal(t, want[i], got)
		}
	})
}

func TestParseVisits(t *testing.T) {
	text := "# Queue\r\nvisits:2\r\nvisits_not_logged:0\r\nvisit_0:arrival_ns=5,service_ns=7\r\nvisit_1:arrival_ns=6,service_ns=8\r\n"
	visits, err := ParseVisits([]byte(text))
	require.NoError(t, err)
	require.Equal(t, []Visit{{5, 7}, {6, 8}}, visits)
	visits, err = ParseVisits([]byte("# Queue\r\nvisits:0\r\n"))
	require.NoError(t, err)
	require.Empty(t, visits)
	for _, tt := range []struct{ old, new, words string }{
		{"not_logged:0", "not_logged:3", "the node has had 5 visits, and lists 2"},
		{"visit_1:", "visit_2:", "visit 2 follows visit 0"},
		{"visits:2", "visits:4", "the node has had 4 visits, and lists 2"},
		{"arrival_ns=6", "arrival_ns=x", "the node has had 2 visits, and lists 1"},
	} {
		_, err := ParseVisits([]byte(strings.Replace(text, tt.old, tt.new, 1)))
		require.EqualError(t, err, tt.words)
	}
}

func FuzzParseVisits(f *testing.F) {
	f.Add([]byte("visits:1\r\nvisits_not_logged:0\r\nvisit_0:arrival_ns=5,service_ns=7\r\n"))
	f.Add([]byte("visits:-1\nvisit_0:"))
	f.Fuzz(func(t *testing.T, b []byte) {
		visits, err := ParseVisits(b)
		if err == nil {
			require.Len(t, Sojourns(visits), len(visits))
		}
	})
}

// TestAbove adds a floor of few values to a few times.
func TestAbove(t *testing.T) {
	var floor hist.Hist
	floor.Record(10)
	floor.Record(30)
	sum := Above([]int64{100, 200}, &floor)
	require.EqualValues(t, 2*points, sum.Count())
	var values []int64
	for upper, count := range sum.Buckets() {
		values = append(values, upper)
		require.EqualValues(t, points/2, count)
	}
	require.Equal(t, []int64{110, 130, 210, 230}, values)
	require.EqualValues(t, 2, Above([]int64{100, 200}, nil).Count())
}

func TestCompare(t *testing.T) {
	at := func(d time.Duration) *hist.Hist {
		var h hist.Hist
		h.Record(int64(d))
		return &h
	}
	for _, tt := range []struct {
		measured, expected time.Duration
		ok                 bool
	}{
		{100 * time.Microsecond, 100 * time.Microsecond, true},
		{119 * time.Microsecond, 100 * time.Microsecond, true},
		{121 * time.Microsecond, 100 * time.Microsecond, false},
		{79 * time.Microsecond, 100 * time.Microsecond, false},
		{10150 * time.Microsecond, 10 * time.Millisecond, true},
		{10250 * time.Microsecond, 10 * time.Millisecond, false},
	} {
		c := Compare("x", at(tt.measured), at(tt.expected), 0.02)
		require.Equal(t, tt.ok, c.OK, "%v of %v", tt.measured, tt.expected)
		require.Len(t, c.Figures, 3)
	}
	count := NewCheck("x", Figure{Measured: 3, Expected: 4})
	require.False(t, count.OK)
}

// TestAttempts keeps checks that succeeded once.
func TestAttempts(t *testing.T) {
	var r Result
	r.Conclude()
	require.False(t, r.OK, "nothing has been compared")
	r.Enter(1, []Check{{Name: "a", OK: true}, {Name: "b"}})
	r.Conclude()
	require.False(t, r.OK)
	r.Enter(2, []Check{{Name: "a"}, {Name: "b", OK: true}})
	r.Conclude()
	require.True(t, r.OK)
	require.Equal(t, []Check{{Name: "a", OK: true, Attempt: 1}, {Name: "b", OK: true, Attempt: 2}}, r.Answers)
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestLook(t *testing.T) {
	m := Machine{Governor: "powersave"}
	m.Look(fstest.MapFS{
		"sys/devices/system/cpu/smt/active": file("1\n"),
		"proc/meminfo":                      file("MemTotal: 100 kB\nMemAvailable:     50 kB\nSwapTotal:  20 kB\nSwapFree: 5 kB\n"),
	})
	require.Equal(t, "powersave", m.Governor)
	require.True(t, *m.SMT)
	require.EqualValues(t, 50<<10, *m.AvailableBytes)
	require.EqualValues(t, 15<<10, *m.SwappedBytes)

	var bare Machine
	bare.Look(fstest.MapFS{})
	require.Equal(t, Machine{}, bare)
}

// TestTicks: four processors are busy for 100 of 400 ticks, half of it with the check itself, and 8 ticks are stolen.
func TestTicks(t *testing.T) {
	read := func(line string) Ticks {
		ticks, err := ReadTicks(fstest.MapFS{"proc/stat": file(line)})
		require.NoError(t, err)
		return ticks
	}
	m := Machine{CPUs: 4}
	m.Between(read("cpu  10 0 0 1000 0 0 0 0 0 0\ncpu0 1\n"), read("cpu  80 10 10 1290 2 5 5 8 7 0\n"), 0.5)
	require.InDelta(t, 0.5, *m.OtherCPUs, 1e-9)
	require.InDelta(t, 0.02, *m.StolenShare, 1e-9)

	m.Between(read("cpu 1 0 0 1 0 0 0 0"), read("cpu 1 0 0 1 0 0 0 0"), 0)
	require.InDelta(t, 0.5, *m.OtherCPUs, 1e-9, "no time has passed: nothing is known")
	for _, line := range []string{"", "cpu 1 2 3\n", "cpu a b c d e f g h i\n", "intr 1 2 3 4 5 6 7 8 9\n"} {
		_, err := ReadTicks(fstest.MapFS{"proc/stat": file(line)})
		require.ErrorContains(t, err, "proc/stat begins with", line)
	}
	_, err := ReadTicks(fstest.MapFS{})
	require.Error(t, err)
}

// TestTicksHere reads this machine's.
func TestTicksHere(t *testing.T) {
	ticks, err := ReadTicks(os.DirFS("/"))
	require.NoError(t, err)
	require.Positive(t, ticks.busy)
	require.Greater(t, ticks.all, ticks.busy)
}

// TestLagsHere measures this machine's; any size is fine.
func TestLagsHere(t *testing.T) {
	l := MeasureLags()
	require.Positive(t, l.ClockNS)
	require.LessOrEqual(t, l.TimerP50, l.TimerP99)
	require.GreaterOrEqual(t, l.Taken, 0.0)
	require.LessOrEqual(t, l.LongestTaken, l.Taken*0.5*1.5+1e-3)
}

func TestWorse(t *testing.T) {
	a, b := Lags{1, 20, 3, 40, 5}, Lags{10, 2, 30, 4, 50}
	require.Equal(t, Lags{10, 20, 30, 40, 50}, a.Worse(b))
	require.Equal(t, a.Worse(b), b.Worse(a))
}

// disturbed is a result with everything wrong that can be.
func disturbed() *Result {
	yes, quota, files, space, swapped, others, stolen, periods := true, 1.5, int64(1024), int64(100<<20), int64(3<<20), 0.83, 0.012, uint64(7)
	r := &Result{
		Machine: Machine{
			CPUModel: "Example 9000", CPUs: 1, Kernel: "6.1.0", ClockSource: "hpet", Governor: "powersave", SMT: &yes, CgroupCPUs: &quota,
			FDSoft: &files, AvailableBytes: &space, SwappedBytes: &swapped, OtherCPUs: &others, StolenShare: &stolen, Throttled: &periods,
		},
		Lags:   Lags{ClockNS: 1200, TimerP50: 61e-6, TimerP99: 4.2e-3, Taken: 0.21, LongestTaken: 12e-3},
		Floors: Floors{GeneratorNS: 271, P50: 57.32e-6, P99: 101.4e-6},
	}
	r.Enter(1, []Check{NewCheck("a node that works for 100 µs, and the floor",
		Figure{Name: "p50", Measured: 161e-6, Expected: 158e-6, Within: 20e-6, Time: true},
		Figure{Name: "p99", Measured: 12.34e-3, Expected: 201e-6, Within: 20e-6, Time: true},
	), {Name: "a node that stands still", Queued: 0.3}})
	wrong := r.Answers[0]
	wrong.Queued = 0.034
	r.Enter(2, []Check{wrong, NewCheck("a node that stands still", Figure{Name: "by service", Measured: 4, Expected: 4})})
	r.Doubt()
	r.Conclude()
	return r
}

// calm is a result with nothing wrong.
func calm() *Result {
	r := &Result{
		Machine: Machine{CPUModel: "Example 9000", CPUs: 8, Kernel: "6.1.0", ClockSource: "tsc", Governor: "performance"},
		Lags:    Lags{ClockNS: 47, TimerP50: 52e-6, TimerP99: 61e-6},
		Floors:  Floors{GeneratorNS: 110, P50: 21.3e-6, P99: 30e-6},
	}
	r.Enter(1, []Check{NewCheck("no target, replies after 100 µs", Figure{Name: "p50", Measured: 100e-6, Expected: 100e-6, Within: 20e-6, Time: true})})
	r.Doubt()
	r.Conclude()
	return r
}

func TestText(t *testing.T) {
	for name, r := range map[string]*Result{"calm": calm(), "disturbed": disturbed()} {
		var text strings.Builder
		require.NoError(t, r.Text(&text))
		path := filepath.Join("testdata", name+".golden")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), text.String(), name)
	}
}

// TestDoubtsAreOfOneThingEach leaves one thing wrong at a time, which must raise its own doubt only.
func TestDoubtsAreOfOneThingEach(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range disturbed().Doubts {
		require.NotEmpty(t, d.Remedy)
		require.False(t, seen[d.What], fmt.Sprint(d))
		seen[d.What] = true
	}
	require.Len(t, seen, 14)
	require.Empty(t, calm().Doubts)
}
