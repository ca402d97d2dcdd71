package command_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const sampledPlan = `plan "sampled" {}
variable "endpoint" {}
variable "samples" { default = 300 }
target "server" {
	driver    = "web"
	endpoints = [var.endpoint]
	timeout   = "10s"
}
dataset "items" {
	keys { count = 20 }
	values { size = 500 }
}
phase "fill" {
	target  = target.server
	dataset = dataset.items
	populate {}
}
phase "closed" {
	target  = target.server
	dataset = dataset.items
	samples = var.samples
	ops     = { get = 2, put = 1 }
	closed {
		sessions   = 4
		iterations = 200
	}
}
phase "open" {
	target      = target.server
	dataset     = dataset.items
	samples     = 10000
	ops         = { get = 2, delete = 1 }
	expect_hits = 0
	open {
		rate     = "400/s"
		duration = "1s"
	}
}
`

// output runs a command that goes well and returns what it prints.
func output(t *testing.T, stdin []byte, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	var words bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &words
	b, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", program, args, &words)
	return b
}

// only returns the one run in a directory.
func only(t *testing.T, runs string) string {
	t.Helper()
	all, err := os.ReadDir(runs)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].Name()
}

// attack is what vegeta reports, as JSON.
type attack struct {
	Latencies struct {
		Total, Mean, Max int64
		P50              int64 `json:"50th"`
	}
	BytesIn     struct{ Total int64 } `json:"bytes_in"`
	BytesOut    struct{ Total int64 } `json:"bytes_out"`
	Requests    int
	Success     float64
	StatusCodes map[string]int `json:"status_codes"`
	Errors      []string
}

// TestSamplesForVegeta samples a real server's answers, on two loops: a bounded number in one phase, all in another. vegeta reports the same for each
// of its three formats: what the samples say and, if all ops were sampled, what the run has counted.
func TestSamplesForVegeta(t *testing.T) {
	t.Parallel()
	vegeta := servertest.Vegeta(t)
	server := servertest.Nginx(t, 0, nil)
	l := begin(t, sampledPlan, "-var", "endpoint="+server.Addr, "--loops", "2")
	r := l.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	id := only(t, l.runs)
	samples := func(args ...string) []byte {
		return output(t, nil, "loadgen", append([]string{"runs", "samples", id, "--runs", l.runs}, args...)...)
	}
	rows := func(phase string) [][]string {
		all, err := csv.NewReader(bytes.NewReader(samples("--phase", phase))).ReadAll()
		require.NoError(t, err)
		require.Equal(t, []string{"phase", "op", "due_unix_ns", "start_unix_ns", "latency_ns", "outcome", "code", "bytes_in", "bytes_out", "error"}, all[0])
		return all[1:]
	}
	require.Len(t, rows("closed"), 300)
	open := rows("open")
	counts, codes, service, response, in := map[string]uint64{}, map[string]int{}, int64(0), int64(0), int64(0)
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		return n
	}
	for _, row := range open {
		counts[row[1]+" "+row[5]]++
		codes[row[6]]++
		service += number(row[4])
		response += number(row[3]) - number(row[2]) + number(row[4])
		in += number(row[7])
		at := time.Unix(0, number(row[2]))
		require.WithinRange(t, at, r.StartedAt.Add(-time.Second), r.StartedAt.Add(time.Minute))
	}
	for verb, o := range r.Phase["open"].Op {
		require.Equal(t, o.OK, counts[verb+" ok"])
		require.Equal(t, o.Miss, counts[verb+" miss"])
		require.Zero(t, o.Error+o.Timeout)
	}
	for latency, total := range map[string]int64{"service": service, "response": response} {
		for _, form := range []string{"vegeta-csv", "vegeta-json", "vegeta-gob"} {
			var a attack
			results := samples("--phase", "open", "--latency", latency, "--format", form)
			require.NoError(t, json.Unmarshal(output(t, results, vegeta, "report", "-type=json"), &a))
			require.Equal(t, len(open), a.Requests, form)
			require.Equal(t, total, a.Latencies.Total, form)
			require.Equal(t, in, a.BytesIn.Total, form)
			require.Positive(t, a.BytesOut.Total)
			require.Equal(t, codes, a.StatusCodes, form)
			require.InDelta(t, float64(codes["200"]+codes["204"])/float64(len(open)), a.Success, 1e-9)
			if codes["404"] > 0 {
				require.Equal(t, []string{"miss"}, a.Errors)
			}
		}
	}
	require.Contains(t, string(output(t, samples("--phase", "open", "--format", "vegeta-gob"), vegeta, "report")), "Success")
}

// TestSamplesOfThreeWorkers merges what three workers have sampled: as many as the plan wants or, if there are fewer, every op once.
func TestSamplesOfThreeWorkers(t *testing.T) {
	t.Parallel()
	server := servertest.Nginx(t, 0, nil)
	tm := beginTeam(t, 3, func(args ...string) *load { return begin(t, sampledPlan, args...) }, "-var", "endpoint="+server.Addr)
	r := tm.result(60 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	id := only(t, tm.runs)
	counts, seen := map[string]uint64{}, map[string]bool{}
	all, err := csv.NewReader(bytes.NewReader(output(t, nil, "loadgen", "runs", "samples", id, "--runs", tm.runs, "--phase", "open"))).ReadAll()
	require.NoError(t, err)
	for _, row := range all[1:] {
		counts[row[1]+" "+row[5]]++
		require.False(t, seen[strings.Join(row, ",")], "twice: %v", row)
		seen[strings.Join(row, ",")] = true
	}
	for verb, o := range r.Phase["open"].Op {
		require.Equal(t, o.OK, counts[verb+" ok"])
		require.Equal(t, o.Miss, counts[verb+" miss"])
	}
	some, err := csv.NewReader(bytes.NewReader(output(t, nil, "loadgen", "runs", "samples", id, "--runs", tm.runs, "--phase", "closed"))).ReadAll()
	require.NoError(t, err)
	require.Len(t, some, 1+300)
}

// TestSamplesTravelWithTheirRun to another machine in a pack; asking for missing samples is an error.
func TestSamplesTravelWithTheirRun(t *testing.T) {
	t.Parallel()
	const plan = `plan "nothing" {}
target "n" { driver = "null" }` + tenSmall + `
phase "load" {
	target  = target.n
	dataset = dataset.d
	samples = 50
	ops     = { get = 1 }
	closed { iterations = 1000 }
}
phase "other" {
	target  = target.n
	dataset = dataset.d
	ops     = { get = 1 }
	closed { iterations = 10 }
}
`
	l := begin(t, plan)
	l.result(60 * time.Second)
	id := only(t, l.runs)
	dir := t.TempDir()
	pack, there := filepath.Join(dir, "run.tar.gz"), filepath.Join(dir, "there")
	output(t, nil, "loadgen", "runs", "export", id, "--runs", l.runs, "-o", pack)
	output(t, nil, "loadgen", "runs", "import", pack, "--runs", there)
	here := output(t, nil, "loadgen", "runs", "samples", "--runs", l.runs)
	require.Equal(t, 51, bytes.Count(here, []byte{'\n'}))
	require.Equal(t, string(here), string(output(t, nil, "loadgen", "runs", "samples", id, "--runs", there)))
	file, err := os.ReadFile(filepath.Join(there, id, "samples.csv"))
	require.NoError(t, err)
	require.Equal(t, string(here), string(file))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--phase", "other"}, "--phase other: run " + id + " has samples of load"},
		{[]string{"--latency", "lag"}, "--latency lag: write service or response"},
		{[]string{"--format", "xml"}, "--format xml: write csv, vegeta-csv, vegeta-json or vegeta-gob"},
	} {
		p := start(t, command(t, append([]string{"runs", "samples", id, "--runs", there}, c.args...)...))
		require.Equal(t, 2, p.wait(60*time.Second))
		require.Contains(t, p.stderr.String(), c.says)
	}
	lines := bytes.SplitAfter(file, []byte{'\n'})
	for _, c := range []struct {
		file []byte
		says string
	}{
		{nil, "a samples file without samples"},
		{[]byte("a,b\n"), "line 1 names other columns"},
		{slices.Concat(lines[0], []byte("load,get,5,4,1,ok,,,,\n")), "line 2: it starts before it is due"},
		{slices.Concat(lines[0], lines[1], []byte("load,get,-5,4,1,ok,,,,\n")), "line 3: due_unix_ns"},
		{slices.Concat(lines[0], []byte("load,get,1,4,1,ok,,,,\x1b[31m\n")), "line 2: error has a control character"},
		{slices.Concat(lines[0], bytes.Repeat([]byte("x"), 5000)), "line 2: more than 4096 bytes"},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(there, id, "samples.csv"), c.file, 0o600))
		p := start(t, command(t, "runs", "samples", id, "--runs", there))
		require.NotEqual(t, exit.OK, p.wait(60*time.Second))
		require.Contains(t, p.stderr.String(), c.says)
	}
	require.NoError(t, os.Remove(filepath.Join(there, id, "samples.csv")))
	p := start(t, command(t, "runs", "samples", id, "--runs", there))
	require.Equal(t, 2, p.wait(60*time.Second))
	require.Contains(t, p.stderr.String(), "no samples were kept: write samples = 10000")
}

// TestSamplesOfARunThatWasCutOff are made from what was kept, along with its result.
func TestSamplesOfARunThatWasCutOff(t *testing.T) {
	t.Parallel()
	const plan = `plan "cut" {}
target "n" { driver = "null" }` + tenSmall + `
phase "load" {
	target  = target.n
	dataset = dataset.d
	samples = 40
	ops     = { get = 1 }
	open {
		rate     = 1000
		duration = "60s"
	}
}
`
	l := begin(t, plan)
	l.until(func() bool { return len(readAll(t, l)) >= 2 })
	l.signal(syscall.SIGKILL)
	l.wait(60 * time.Second)
	id := only(t, l.runs)
	p := start(t, command(t, "runs", "recover", id, "--runs", l.runs))
	require.Equal(t, exit.Degraded, p.wait(60*time.Second), "%s", &p.stderr)
	require.Equal(t, 41, bytes.Count(output(t, nil, "loadgen", "runs", "samples", id, "--runs", l.runs), []byte{'\n'}))
}
