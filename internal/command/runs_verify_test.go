package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/pkg/plan"
)

// verifiedAs runs loadgen runs verify, which ends with an exit code, and returns what it says.
func verifiedAs(t *testing.T, code int, runs, id string) string {
	t.Helper()
	p := start(t, command(t, "runs", "verify", "--runs", runs, id))
	require.Equal(t, code, p.wait(60*time.Second), "%s%s", &p.stdout, &p.stderr)
	return p.stdout.String() + p.stderr.String()
}

// TestVerifyWhatIsUntouched: the results of runs that ended in every way are what the runs have kept.
func TestVerifyWhatIsUntouched(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(t *testing.T) *load{
		"every kind of step": func(t *testing.T) *load {
			l := begin(t, killedPlan)
			l.result(60 * time.Second)
			return l
		},
		"recovered": func(t *testing.T) *load {
			l := begin(t, killedPlan)
			l.underWay()
			send(l.process, syscall.SIGKILL)
			l.wait(60 * time.Second)
			l.requireRecovered()
			return l
		},
		"aborted": func(t *testing.T) *load {
			l := begin(t, closedPlan, "-var", "duration=20s")
			l.underWay()
			l.signal(syscall.SIGINT)
			l.result(60 * time.Second)
			return l
		},
		"ended at once": func(t *testing.T) *load {
			l := begin(t, closedPlan, "-var", "duration=20s")
			l.underWay()
			l.signal(syscall.SIGINT)
			l.signal(syscall.SIGINT)
			l.result(60 * time.Second)
			return l
		},
		"timed out": func(t *testing.T) *load {
			l := begin(t, closedPlan, "-var", "duration=20s", "--timeout", "1500ms")
			l.result(60 * time.Second)
			return l
		},
		"failed before any load": func(t *testing.T) *load {
			l := begin(t, openPlan, "-var", nodes("127.0.0.1:1"))
			l.wait(60 * time.Second)
			return l
		},
		"a worker beside it": func(t *testing.T) *load {
			l := begin(t, killedPlan, "--worker-process")
			l.result(60 * time.Second)
			return l
		},
		"files": func(t *testing.T) *load {
			l := beginOfFiles(t)
			l.result(60 * time.Second)
			return l
		},
		"logs": func(t *testing.T) *load {
			l := begin(t, briefLog, "--log-root", t.TempDir())
			l.result(60 * time.Second)
			return l
		},
		"a search": func(t *testing.T) *load {
			l := begin(t, briefSearch)
			l.result(60 * time.Second)
			return l
		},
		"observed": func(t *testing.T) *load {
			l := begin(t, shortObserved(t, "200ms"))
			l.wait(60 * time.Second)
			return l
		},
		"observed by a hook": func(t *testing.T) *load {
			l := begin(t, nothing+heapObserved, "--allow-exec", "jmap=echo live_bytes 4096")
			l.wait(60 * time.Second)
			return l
		},
		"a worker was lost": func(t *testing.T) *load {
			tm := invite(t, 2, func(all ...string) *load { return begin(t, closedPlan, all...) }, "--lease", "6s", "-var", "duration=8s")
			tm.join(tm.addr)
			tm.join(tm.addr)
			tm.underWay()
			send(tm.workers[1], syscall.SIGKILL)
			require.Len(t, tm.result(60*time.Second).Losses, 1)
			return tm.load
		},
		"an experiment": func(t *testing.T) *load {
			l := begin(t, briefExperiment+briefTable)
			l.wait(60 * time.Second)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := of(t)
			for _, dir := range l.directoriesOfAll() {
				require.Contains(t, verifiedAs(t, exit.OK, l.runs, filepath.Base(dir)), ": verified")
			}
		})
	}
}

// directoriesOfAll lists those of runs and experiments.
func (l *load) directoriesOfAll() []string {
	l.t.Helper()
	all, err := filepath.Glob(filepath.Join(l.runs, "*"))
	require.NoError(l.t, err)
	require.NotEmpty(l.t, all)
	return all
}

// TestVerifyFindsWhatWasChanged in a kept result: verify names it, and import refuses it. A run of another version is imported as not verified, and
// says so wherever it is shown.
func TestVerifyFindsWhatWasChanged(t *testing.T) {
	t.Parallel()
	l := begin(t, killedPlan+"\nassert \"fast\" { that = phase.gets.op.get.rate > 1e9 }")
	l.result(60 * time.Second)
	id := only(t, l.runs)
	object := func(of map[string]any, names ...string) map[string]any {
		for _, name := range names {
			of = of[name].(map[string]any)
		}
		return of
	}
	for name, c := range map[string]struct {
		change func(r map[string]any)
		says   string
	}{
		"a rate": {func(r map[string]any) {
			get := object(r, "phase", "gets", "op", "get")
			for _, name := range []string{"rate", "answered", "rate_per_minute"} {
				get[name] = 10 * get[name].(float64)
			}
		}, "phase.gets.op.get.rate: "},
		"a latency": {func(r map[string]any) { object(r, "phase", "own", "op", "get", "response")["sd"] = 1e-6 }, "phase.own.op.get.response.sd: 0.000001, not "},
		"an assert": {func(r map[string]any) {
			r["asserts"].([]any)[0].(map[string]any)["ok"] = true
			object(r, "verdict")["assertions"] = "pass"
			if r["exit_code"] == float64(exit.Assert) {
				r["exit_code"] = exit.OK
			}
			verdict := object(r, "verdict")
			last := len(verdict["reasons"].([]any)) - 1
			verdict["reasons"], verdict["codes"] = verdict["reasons"].([]any)[:last], verdict["codes"].([]any)[:last]
		}, "asserts[0].ok: true, not false"},
		"how far it got": {func(r map[string]any) {
			object(r, "verdict")["completeness"] = "capped"
		}, `verdict.completeness: "capped", not "complete"`},
		"where it ran":   {func(r map[string]any) { object(r, "environment")["cpu_model"] = "Z80" }, `environment.cpu_model: "Z80", not `},
		"what it loaded": {func(r map[string]any) { object(r, "phase", "gets", "target")["name"] = "other" }, `phase.gets.target.name: "other", not "t"`},
		"who loaded":     {func(r map[string]any) { r["fleet"].([]any)[0].(map[string]any)["sessions"] = 99 }, "fleet[0].sessions: 99, not "},
		"how long":       {func(r map[string]any) { r["seconds"] = 1 }, "seconds: 1, not "},
		"a label":        {func(r map[string]any) { r["labels"] = map[string]any{"branch": "main"} }, `labels.branch: "main", not null`},
		"a death":        {func(r map[string]any) { r["recovered"] = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			runs := changed(t, l.runs, id, c.change)
			require.Contains(t, verifiedAs(t, exit.Failed, runs, id), c.says)
			pack, there := filepath.Join(runs, "pack.tar.gz"), filepath.Join(runs, "there")
			output(t, nil, "loadgen", "runs", "export", id, "--runs", runs, "-o", pack)
			p := start(t, command(t, "runs", "import", pack, "--runs", there))
			require.Equal(t, exit.Failed, p.wait(60*time.Second))
			require.Contains(t, p.stderr.String(), c.says)
			require.NoDirExists(t, filepath.Join(there, id))
		})
	}

	runs := changed(t, l.runs, id, func(r map[string]any) { r["loadgen"] = "v0.9.1" })
	require.Contains(t, verifiedAs(t, exit.Failed, runs, id), "not verified: it was made by loadgen v0.9.1")
	pack, there := filepath.Join(runs, "pack.tar.gz"), filepath.Join(runs, "there")
	output(t, nil, "loadgen", "runs", "export", id, "--runs", runs, "-o", pack)
	require.Contains(t, string(output(t, nil, "loadgen", "runs", "import", pack, "--runs", there)), "NOT VERIFIED")
	for _, args := range [][]string{{"runs", "list"}, {"runs", "show", id}, {"report", id, "--format", "markdown"}, {"report", id, "--format", "html"}, {"report", id, "--format", "json"}} {
		require.Regexp(t, "NOT VERIFIED|\"unverified\": \"it was made by", string(output(t, nil, "loadgen", append(args, "--runs", there)...)), args)
	}
}

// changed copies a run, with its result changed.
func changed(t *testing.T, runs, id string, change func(r map[string]any)) string {
	t.Helper()
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(copied, id), os.DirFS(filepath.Join(runs, id))))
	path := filepath.Join(copied, id, "result.json")
	var r map[string]any
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &r))
	before := slices.Sorted(maps.Keys(r))
	change(r)
	require.Equal(t, before, slices.Sorted(maps.Keys(r)))
	b, err = json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return copied
}

// TestNoLeafOfAnExperimentIsTaken: whichever kind of value of an experiment is changed, or of its lists cut or turned, verify names it. Import refuses it, too.
func TestNoLeafOfAnExperimentIsTaken(t *testing.T) {
	t.Parallel()
	l := begin(t, nothing+`
experiment {
	variant "one" { sessions = 1 }
	variant "two" { sessions = 2 }
	variant "three" { sessions = 3 }
	repeat   = 3
	matters  = "1%"
	compare  = ["rate", "response.p50"]
	cap      = "10m"
	when     = var.sessions < 3
}
table "rates" {
	column "rate" { value = phase.load.op.get.rate }
	column "misses" { value = phase.load.op.get.latency.miss.response.p50 }
}
chart "rates" {
	over = "var.sessions"
	line "rate" { value = phase.load.op.get.rate }
	line "misses" { value = phase.load.op.get.latency.miss.response.p50 }
}
assert "fast" { that = phase.load.op.get.rate > 1e9 }`, "--label", "branch=main")
	l.wait(60 * time.Second)
	x := onlyExperiment(t, l.runs)
	there := filepath.Join(t.TempDir(), "there")
	require.NoError(t, os.CopyFS(there, os.DirFS(l.runs)))
	read := func(name string) (text []byte, of map[string]any) {
		text, err := os.ReadFile(filepath.Join(there, x.ID, name))
		require.NoError(t, err)
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber()
		require.NoError(t, numbers.Decode(&of))
		return text, of
	}
	settings, told := read("settings.json")
	_, whole := read("experiment.json")
	kinds, all := map[string]string{}, []string{x.ID}
	keep := func(kind string, settings []byte) {
		id := fmt.Sprintf("%s-%03d", x.ID, len(all))
		text, err := json.Marshal(whole)
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(filepath.Join(l.runs, id), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(l.runs, id, "experiment.json"), text, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(l.runs, id, "settings.json"), settings, 0o600))
		kinds[kind], all = id, append(all, id)
	}
	var walk func(path string, at any, set func(any))
	walk = func(path string, at any, set func(any)) {
		change := func(kind string, to any) {
			if kinds[kind] == "" && !reflect.DeepEqual(at, to) {
				set(to)
				keep(kind, settings)
				set(at)
			}
		}
		switch at := at.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(at)) {
				walk(path+"."+name, at[name], func(v any) { at[name] = v })
			}
		case []any:
			for i := range at {
				walk(path+"[]", at[i], func(v any) { at[i] = v })
			}
			turned := slices.Clone(at)
			slices.Reverse(turned)
			change(path+"[] turned", turned)
			change(path+"[] cut", at[:max(len(at)-1, 0)])
		case json.Number:
			f, err := at.Float64()
			require.NoError(t, err)
			change(path, 2*f+1)
		case string:
			change(path, at+"x")
		case bool:
			change(path, !at)
		default:
			change(path, 1)
		}
	}
	walk("", whole, nil)
	told["seed"] = 99
	other, err := json.Marshal(told)
	require.NoError(t, err)
	keep("other settings", other)
	whole["plan_digest"] = plan.Digest(other)
	keep("other settings, with their digest", other)
	p := start(t, command(t, append([]string{"runs", "verify", "--runs", l.runs}, all...)...))
	require.Equal(t, exit.Failed, p.wait(5*time.Minute))
	t.Logf("%d changes", len(kinds))
	require.Greater(t, len(kinds), 81)
	require.Contains(t, p.stdout.String(), x.ID+": verified\n")
	for kind, id := range kinds {
		require.NotContains(t, p.stdout.String(), id, kind)
		require.Contains(t, p.stderr.String(), id+": ", kind)
	}

	changed, err := os.ReadFile(filepath.Join(l.runs, kinds[".variants[] turned"], "experiment.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(there, x.ID, "experiment.json"), changed, 0o600))
	pack := filepath.Join(there, "pack.tar.gz")
	output(t, nil, "loadgen", "runs", "export", x.ID, "--runs", there, "-o", pack)
	imported := start(t, command(t, "runs", "import", pack, "--runs", t.TempDir()))
	require.Equal(t, exit.Failed, imported.wait(60*time.Second))
	require.Contains(t, imported.stderr.String(), `variants[0].name: "two", not "one"`)
}
