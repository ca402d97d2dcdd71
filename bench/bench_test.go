package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// built has all tests use one build of loadgen.
var built = options{program: filepath.Join(os.TempDir(), fmt.Sprintf("loadgen-bench-test-%d", os.Getpid()))}

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(built.program) // temporary
	os.Exit(status)
}

// TestQuick runs one small cell with the real clients and checks the form of the output, not the figures.
func TestQuick(t *testing.T) {
	for _, program := range []string{"redis-server", "redis-benchmark"} {
		_, err := exec.LookPath(program)
		servertest.Require(t, "redis", err)
	}
	var out strings.Builder
	require.NoError(t, compare(t.Context(), built, []string{"-quick", "-cells", "redis/get/32/16", "-ops", "2000"}, &out))
	t.Logf("%s", &out)
	for _, line := range []string{
		`machine: .+, \d+ processors, Linux .+`,
		`processors: .+`,
		`version: loadgen .+`,
		`version: Redis server .+`,
		`version: redis-benchmark .+`,
		`program: \d+\.\d MB without symbols and debugging data`,
		`start: a whole run of one op on the null target takes \d+\.\d{3} \(.* to .*\) times as long as loadgen version, in 2 pairs`,
		`redis/get/32/16: get, values of 32 B, 50 connections, pipeline 16; 2400 ops, 1 rounds`,
		`  loadgen +\d+ ns +(-|\d+\.\d{3}) +\d+/s +100\.00 %`,
		`  floor +\d+ ns +(-|\d+\.\d{3}) +\d+/s +100\.00 %   \d+\.\d{3} \(.* to .*\) +\d+\.\d{3} \(.* to .*\)`,
		`  replay +\d+ ns +(-|\d+\.\d{3}) +\d+/s +100\.00 %   \d+\.\d{3} \(.* to .*\) +\d+\.\d{3} \(.* to .*\)`,
		`  redis-benchmark +\d+ ns +(-|\d+\.\d{3}) +\d+/s +100\.00 %   \d+\.\d{3} \(.* to .*\) +\d+\.\d{3} \(.* to .*\)`,
		`  \$ .*redis-server --port \d+ --bind 127\.0\.0\.1 --save '' --appendonly no .*`,
		`  \$ .*loadgen coordinator run plans/bench\.hcl .* -var pipeline=16 -var op=get -var ops=2400`,
		`  \$ .*loadgen selfcheck floor 127\.0\.0\.1:\d+ .* --pipeline 16 --ops 2400`,
		`  \$ .*redis-benchmark -p \d+ -t get -n 2400 -c 50 -P 16 -r 100000 -d 32 -q`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, out.String())
	}
}

// TestWebQuick runs a cell of files that nginx serves. For clients that run for a time, the processor time is divided by the ops done.
func TestWebQuick(t *testing.T) {
	_, err := exec.LookPath(nginxProgram())
	servertest.Require(t, "nginx", err)
	servertest.Vegeta(t)
	var out strings.Builder
	require.NoError(t, compare(t.Context(), built, []string{"-quick", "-cells", "web/get/1024", "-ops", "1000"}, &out))
	t.Logf("%s", &out)
	for _, line := range []string{
		`version: nginx version: nginx/.+`,
		`version: vegeta v12.+, go.+`,
		`web/get/1024/1: get, values of 1024 B, 50 connections, pipeline 1; 1000 ops, 1 rounds`,
		`  loadgen +\d+ ns +(-|\d+\.\d{3}) +\d+/s +100\.00 %`,
		`  vegeta +\d+ ns +(-|\d+\.\d{3}) +\d+/s +100\.00 %   \d+\.\d{3} \(.* to .*\) +\d+\.\d{3} \(.* to .*\)`,
		`  \$ .*loadgen coordinator run plans/bench\.hcl .* -var driver=web -var keys=1000 -var size=1024 .* -var ops=1000`,
		`  \$ .*vegeta attack -targets=.*/targets -rate=0 -max-workers=50 -workers=50 -duration=100ms -output=.*`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, out.String())
	}
}

// TestWebCountsHits checks that a server's figures tell hits from misses, and from requests that are not gets or are bench's own.
func TestWebCountsHits(t *testing.T) {
	_, err := exec.LookPath(nginxProgram())
	servertest.Require(t, "nginx", err)
	s, err := startServer(t.Context(), "web", t.TempDir(), nil)
	require.NoError(t, err)
	defer s.stop()
	url := "http://127.0.0.1:" + s.port + "/" + keyName(1)
	for _, method := range []string{"GET", "PUT", "GET", "GET", "HEAD"} {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	for range 2 {
		hits, misses, err := s.hits()
		require.NoError(t, err)
		require.Equal(t, []float64{2, 1}, []float64{hits, misses})
	}
}

// TestProgramIsSmall builds loadgen and checks its size as shipped against what the page says. The libraries for PostgreSQL and HTTP take 2.6 MB of it, those for packets 2.3 MB.
func TestProgramIsSmall(t *testing.T) {
	b, err := newBench(t.Context(), io.Discard, built)
	require.NoError(t, err)
	defer b.close()
	size, err := stripped(b.clients[0].exe)
	require.NoError(t, err)
	t.Logf("%d bytes", size)
	page, err := os.ReadFile("../docs/performance.md")
	require.NoError(t, err)
	bound := regexp.MustCompile(`a test keeps it below (\d+) MB`).FindSubmatch(page)
	require.NotNil(t, bound)
	most, err := strconv.ParseInt(string(bound[1]), 10, 64)
	require.NoError(t, err)
	require.Less(t, size, most*1e6)
	require.Greater(t, size, int64(5e6), "that is no program")
}

// TestOpenQuick checks the form of -open's output.
func TestOpenQuick(t *testing.T) {
	for _, program := range []string{"redis-server", "taskset"} {
		_, err := exec.LookPath(program)
		servertest.Require(t, "redis", err)
	}
	if runtime.NumCPU() < 2 {
		require.ErrorContains(t, compare(t.Context(), built, []string{"-open"}, new(strings.Builder)), "two processors")
		return
	}
	var out strings.Builder
	require.NoError(t, compare(t.Context(), built, []string{"-open", "-pairs", "1", "-for", "1s", "-ops", "20000", "-spin", "20us"}, &out))
	t.Logf("%s", &out)
	const figures = `( +(\d+\.\d|NaN) µs){3} +(\d+\.\d\d|NaN)( +(\d+\.\d|NaN) µs){2} +\d\.\d\d( +(\d+\.\d|NaN) µs){2}`
	for _, line := range []string{
		`closed load, 50 connections, pipeline 1: \d+/s, \d+\.\d\d µs of processor time an op`,
		`open load, constant arrivals at 60 % of it: \d+/s, 50 connections, pipeline 64, 1s a run`,
		`open load, poisson arrivals at 50 % of it: \d+/s, 50 connections, pipeline 64, 1s a run`,
		`  1 ` + figures + `  (valid|suspect|invalid)`,
		`  median` + figures,
		`  \$ taskset -c \d+ .*loadgen coordinator run .* --pin \d+ --spin 20µs .* -var arrivals=poisson .*`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, out.String())
	}
}

func TestMiddle(t *testing.T) {
	require.Equal(t, lateness{2, 0, 5}, middle([]lateness{{1, 0, 5}, {3, 0, 4}, {2, 0, 9}}))
}

func TestChoose(t *testing.T) {
	all, err := choose(allCells(), "", "")
	require.NoError(t, err)
	require.Len(t, all, 28)
	some, err := choose(allCells(), "redis/get/32/*,memcached/*/*/1", "")
	require.NoError(t, err)
	require.Equal(t, []cell{
		{"redis", "get", 32, 1},
		{"redis", "get", 32, 16},
		{"redis", "get", 32, 64},
		{"memcached", "get", 32, 1},
	}, some)
	for pattern, words := range map[string]string{
		"redis/gets": `-cells "redis/gets" matches none: write it so`,
		"redis/[/32": `-cells "redis/[/32": syntax error in pattern`,
	} {
		_, err := choose(allCells(), pattern, "it so")
		require.EqualError(t, err, words)
	}
	some, err = choose(allCells(), "web,postgres/*/32", "")
	require.NoError(t, err)
	require.Len(t, some, 5)
	files, err := choose(logCells(), "mashona/*/*/*/disk", "")
	require.NoError(t, err)
	require.Len(t, files, 3)
}

// TestLogsQuick checks the form of -logs's output.
func TestLogsQuick(t *testing.T) {
	_, missing := mashonaClasses()
	servertest.Require(t, "mashona", missing)
	var out strings.Builder
	require.NoError(t, compare(t.Context(), built, []string{"-logs", "-pairs", "1", "-for", "50ms", "-cells", "*/*/msync/1801/memory,fio/raw/clwb/1024/*"}, &out))
	t.Logf("%s", &out)
	cells := map[string]string{
		"Mashona 1.1.0": `mashona/append/msync/1801/memory: entries of 1801 B to a file of 64 MiB, one thread; 1 rounds, tmpfs`,
		"fio":           `fio/raw/clwb/1024/memory: entries of 1024 B to a file of 64 MiB, one thread; 1 rounds, tmpfs`,
	}
	commands := []string{`  \$ java -cp .*mashona-logwriting-1\.1\.0\.jar.* bench/Appends\.java /dev/shm/.*/bench\.log 67108864 1801 0\.05`}
	if _, err := exec.LookPath("fio"); err != nil {
		cells["fio"] = `fio/raw/clwb/1024/memory: left out: .*`
	} else {
		commands = append(commands, `  by all time: loadgen \d+/s \(.*\), fio \d+/s \(.*\), loadgen's / its .*`,
			`  \$ PMEM_IS_PMEM_FORCE=1 .*fio --ioengine=libpmem --sync=1 --rw=write --bs=1024 --size=67108864 .*`)
	}
	for peer, line := range cells {
		require.Regexp(t, `(?m)^`+line+`$`, out.String())
		if !strings.Contains(line, "left out") {
			require.Regexp(t, `(?m)^  by the time of a write: loadgen \d+/s \(\d+\.\d MB/s\), `+peer+` \d+/s \(\d+\.\d MB/s\), loadgen's / its \d+\.\d{3} \(.* to .*\)$`, out.String())
		}
	}
	for _, line := range append(commands,
		`  \$ .*loadgen coordinator run bench/logs\.hcl --log-root /dev/shm/.* -var sync=msync -var size=1801 -var seconds=0\.05`) {
		require.Regexp(t, `(?m)^`+line+`$`, out.String())
	}
}

// TestAgainst compares a build with itself, and checks the form of the output.
func TestAgainst(t *testing.T) {
	_, err := exec.LookPath("redis-server")
	servertest.Require(t, "redis", err)
	b, err := newBench(t.Context(), io.Discard, built)
	require.NoError(t, err)
	defer b.close()
	exe := b.clients[0].exe
	var out strings.Builder
	require.NoError(t, compare(t.Context(), built, []string{"-against", exe, "-pairs", "2", "-cells", "redis/*/32/16", "-ops", "2000"}, &out))
	t.Logf("%s", &out)
	const beside = `CPU per op beside that of the other build: \d+\.\d{3} \(95 %: \d+\.\d{3} to \d+\.\d{3}\)`
	for _, line := range []string{
		`against: ` + exe + `, loadgen .+`,
		`  against +\d+ ns +(-|\d+\.\d{3}) +\d+/s +100\.00 %   \d+\.\d{3} \(.* to .*\) +\d+\.\d{3} \(.* to .*\)`,
		`  ` + beside,
		`all cells: ` + beside,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, out.String())
	}
	require.NotContains(t, out.String(), "redis-benchmark")

	out.Reset()
	require.NoError(t, compare(t.Context(), built, []string{"-logs", "-against", exe, "-pairs", "2", "-for", "50ms", "-cells", "fio/raw/none/1024/memory"}, &out))
	require.Regexp(t, `(?m)^  by all time: loadgen \d+/s \(.*\), against \d+/s \(.*\), loadgen's / its .*$`, out.String())

	require.ErrorContains(t, compare(t.Context(), built, []string{"-against", exe, "-pairs", "1"}, &out), "an interval takes 2 or more")
	require.ErrorContains(t, compare(t.Context(), built, []string{"-against", t.TempDir()}, &out), "-against: ")
}

// TestWithin has a known interval: the ratios are 1, times and by 1.1, so their logarithms' standard deviation is log 1.1.
func TestWithin(t *testing.T) {
	require.Equal(t, "1.000 (95 %: 0.789 to 1.267)", within([]float64{1 / 1.1, 1, 1.1}))
}

// TestCount uses a client's own count of ops, if the client was not given a number.
func TestCount(t *testing.T) {
	timed := wrk(time.Second).client
	done, err := timed.count("  7813 requests in 1.00s, 2.03MB read\n", 50)
	require.NoError(t, err)
	require.InDelta(t, 7813, done, 0)
	_, err = timed.count("  0 requests in 1.00s, 0.00B read\n", 50)
	require.ErrorContains(t, err, "wrk has done nothing")
	told := redisBenchmark().client
	done, err = told.count("", 50)
	require.NoError(t, err)
	require.InDelta(t, 50, done, 0)
}

func TestRefuses(t *testing.T) {
	require.ErrorContains(t, compare(t.Context(), built, []string{"-pairs", "0"}, new(strings.Builder)), "write numbers above 0")
	require.ErrorContains(t, compare(t.Context(), built, []string{"-cells", "x"}, new(strings.Builder)), "matches none")
}

// TestRates parses the clients' output.
func TestRates(t *testing.T) {
	for _, tt := range []struct {
		client client
		output string
		want   float64
	}{
		{redisBenchmark().client, "GET: rps=0.0 (overall: nan)\rGET: 896860.94 requests per second, p50=0.447 msec\n", 896860.94},
		{memtier().client, "Type    Ops/sec  Hits/sec\n----\nSets  0.00  ---\nGets  96.50  96.50\nTotals  99.25  96.50  0.00\n", 99.25},
		{goYCSB().client, "READ   - Takes(s): 1.0, Count: 1000, OPS: 1007.5, Avg(us): 990\n", 1007.5},
		{wrk(time.Second).client, "  7813 requests in 1.00s, 2.03MB read\nRequests/sec:   7812.64\nTransfer/sec: 2.03MB\n", 7812.64},
		{floorOf(""), "  ops                      1000     in 0.003 s, 306190/s\n", 306190},
	} {
		got, err := tt.client.rate(tt.output)
		require.NoError(t, err, tt.client.name)
		require.InDelta(t, tt.want, got, 1e-9, tt.client.name)
		_, err = tt.client.rate("it failed")
		require.EqualError(t, err, `it printed no rate: "it failed"`)
	}
}

// TestOnlyTheSameWork checks that no client does what it cannot, and that all have the same connections, ops and depth.
func TestOnlyTheSameWork(t *testing.T) {
	able := func(c cell) (names []string) {
		for _, p := range peers("", time.Second) {
			if p.args(&c, "1", 100) != nil {
				names = append(names, p.name)
			}
		}
		return names
	}
	require.Equal(t, []string{"redis-benchmark", "memtier_benchmark", "go-ycsb"}, able(cell{"redis", "get", 32, 1}))
	require.Equal(t, []string{"redis-benchmark", "memtier_benchmark"}, able(cell{"redis", "put", 32, 16}))
	require.Equal(t, []string{"memtier_benchmark"}, able(cell{"memcached", "get", 32, 16}))
	require.Equal(t, []string{"pgbench"}, able(cell{"postgres", "get", 32, 16}))
	require.Equal(t, []string{"vegeta", "wrk"}, able(cell{"web", "get", 32, 1}))
}

func TestPaceOfFio(t *testing.T) {
	got, err := paceOfFio("note\n{\n\"jobs\": [{\"write\": {\"iops\": 400000.0, \"lat_ns\": {\"mean\": 1500.0}}, \"sync\": {\"lat_ns\": {\"mean\": 500.0}}}]}")
	require.NoError(t, err)
	require.InDelta(t, 500_000, got.op, 1e-6)
	require.InDelta(t, 400_000, got.whole, 1e-6)
	_, err = paceOfFio("it failed")
	require.ErrorContains(t, err, "it printed no times")
}

func TestRatios(t *testing.T) {
	cpu := func(f figures) float64 { return f.cpu }
	a := &entrant{rounds: []figures{{cpu: 10}, {cpu: 30}, {cpu: 20}, {cpu: 40}}}
	b := &entrant{rounds: []figures{{cpu: 20}, {cpu: 40}, {cpu: 20}, {cpu: 50}}}
	require.Equal(t, []float64{0.5, 0.75, 1, 0.8}, ratios(a, b, cpu))
	require.Equal(t, "0.775 (0.500 to 1.000)", spread(ratios(a, b, cpu)))
	require.InDelta(t, 25, median(a.of(cpu)), 0)
}

func TestQuoted(t *testing.T) {
	require.Equal(t, `redis-server --save '' 'it'\''s' key:1`, quoted([]string{"redis-server", "--save", "", "it's", "key:1"}))
}
