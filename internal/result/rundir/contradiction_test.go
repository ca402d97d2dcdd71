package rundir

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// A result that contradicts itself is not imported, since loadgen cannot have written it.
func TestPacksThatContradictThemselves(t *testing.T) {
	good := parts(t)
	pack := func(change func(r *run.Run, o *run.Op)) []byte {
		var r run.Run
		require.NoError(t, json.Unmarshal([]byte(good[2].text), &r))
		o := &run.Op{Figures: run.Figures{Ledger: run.Ledger{Due: 3, OK: 2, Miss: 1}, Sent: 3}}
		r.PhaseOrder = []string{"get"}
		r.Phase = map[string]*run.Phase{"get": {
			Kind: worker.Load, Validity: run.Valid, Op: map[string]*run.Op{"get": o}, Requests: []run.Requests{{Verb: "get", Requests: measure.Requests{Sent: 3, Answered: 3}}},
		}}
		r.Verdict = run.Verdict{Completeness: run.Complete, Validity: run.Valid, Assertions: r.Verdict.Assertions}
		r.ExitCode = exit.OK
		change(&r, o)
		text, err := json.Marshal(&r)
		require.NoError(t, err)
		return forged(t, "", with(good, 2, member{name: good[2].name, text: string(text)})...)
	}
	_, _, err := Import(t.TempDir(), bytes.NewReader(pack(func(*run.Run, *run.Op) {})), plenty, trusting)
	require.NoError(t, err)

	const wraps = 1 << 63
	for name, test := range map[string]struct {
		want   string
		change func(r *run.Run, o *run.Op)
	}{
		"id":                    {`its result is that of "another"`, func(r *run.Run, _ *run.Op) { r.ID = "another" }},
		"schema":                {"result of schema", func(r *run.Run, _ *run.Op) { r.Schema++ }},
		"plan digest":           {"its plan is not the one", func(r *run.Run, _ *run.Op) { r.PlanDigest = "" }},
		"exit code":             {"exit code 2, but that of the verdict is 0", func(r *run.Run, _ *run.Op) { r.ExitCode = 2 }},
		"exit code, negative":   {"exit code -1", func(r *run.Run, _ *run.Op) { r.ExitCode = -1 }},
		"completeness":          {`completeness is "perfect"`, func(r *run.Run, _ *run.Op) { r.Verdict.Completeness = "perfect" }},
		"complete, with losses": {"complete, though worker w2 was lost", func(r *run.Run, _ *run.Op) { r.Losses = []worker.Loss{{Worker: "w2", Why: "gone"}} }},
		"failed, exit code 0":   {"exit code 0", func(r *run.Run, _ *run.Op) { r.Verdict.Completeness = run.Failed }},
		"validity":              {"verdict: suspect, but the worst phase is valid", func(r *run.Run, _ *run.Op) { r.Verdict.Validity = run.Suspect }},
		"assertions":            {"assertions are fail", func(r *run.Run, _ *run.Op) { r.Verdict.Assertions = run.Fail }},
		"phase, no reason":      {"judged invalid, but the worst of its reasons is valid", func(r *run.Run, _ *run.Op) { r.Phase["get"].Validity = run.Invalid }},
		"phase out of order":    {"phase_order", func(r *run.Run, _ *run.Op) { r.PhaseOrder = nil }},
		"phase, null":           {`phase "get" is null`, func(r *run.Run, _ *run.Op) { r.Phase["get"] = nil }},

		"too many steps":    {"2 steps of 0 levels", func(r *run.Run, _ *run.Op) { r.Phase["get"].Steps = []int{0, 1} }},
		"a step before all": {"the steps [-1] are not in the order of a run", func(r *run.Run, _ *run.Op) { r.Phase["get"].Steps = []int{-1} }},
		"steps out of order": {"the steps [1 1] are not in the order of a run", func(r *run.Run, _ *run.Op) {
			r.Phase["get"].Steps, r.Phase["get"].Levels = []int{1, 1}, make([]run.Level, 2)
		}},

		"more ended":           {"due 3, but 4 ended", func(_ *run.Run, o *run.Op) { o.OK++ }},
		"counts that wrap":     {"a count of 9223372036854775810", func(_ *run.Run, o *run.Op) { o.OK += wraps; o.Miss += wraps }},
		"a histogram's count":  {"a count of 9223372036854775808", func(_ *run.Run, o *run.Op) { o.Response.Count, o.Latency.OK.Response.Count = wraps, wraps }},
		"requests that wrap":   {"a count of", func(r *run.Run, _ *run.Op) { r.Phase["get"].Requests[0].Sent += wraps }},
		"causes that wrap":     {"a count of", func(_ *run.Run, o *run.Op) { o.Causes.Reply, o.Causes.Lost = wraps, wraps }},
		"in flight, negative":  {"get: -1 in flight", func(_ *run.Run, o *run.Op) { o.OK++; o.InFlight = -1 }},
		"keys, negative":       {"get: keys: -1 in flight", func(_ *run.Run, o *run.Op) { o.Keys.OK++; o.Keys.InFlight = -1 }},
		"requests, negative":   {"get at : -1 in flight", func(r *run.Run, _ *run.Op) { q := &r.Phase["get"].Requests[0]; q.Answered++; q.InFlight = -1 }},
		"in flight, the least": {"-9223372036854775808 in flight", func(_ *run.Run, o *run.Op) { o.InFlight = math.MinInt64 }},
		"nobody was asked":     {"which takes 3 answered requests, and 0 were", func(r *run.Run, _ *run.Op) { r.Phase["get"].Requests = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			_, _, err := Import(root, bytes.NewReader(pack(test.change)), plenty, trusting)
			require.ErrorContains(t, err, test.want)
			require.Empty(t, treeOf(t, root))
		})
	}
}
