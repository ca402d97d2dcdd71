package judge

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/stretchr/testify/require"
)

// nullPaths returns the steps to every null in r's JSON.
func nullPaths(t *testing.T, r *run.Run) (paths [][]string) {
	t.Helper()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(b, &v))
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case nil:
			paths = append(paths, slices.Clone(path))
		case map[string]any:
			for k, inner := range v {
				walk(inner, append(path, k))
			}
		case []any:
			for i, inner := range v {
				walk(inner, append(path, strconv.Itoa(i)))
			}
		}
	}
	walk(v, nil)
	return paths
}

func TestJSONRoundTrip(t *testing.T) {
	r := run.New(run.Header{ID: "x", StartedAt: time.Date(2026, 11, 20, 17, 34, 38, 0, time.UTC)}, nowhere())
	r.Add("get", newPhase(closedPhase(), openLoad(1000, 0)))
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var back run.Run
	require.NoError(t, json.Unmarshal(b, &back))
	again, err := json.Marshal(&back)
	require.NoError(t, err)
	require.JSONEq(t, string(b), string(again))
	require.NoError(t, back.CheckValid())
}

// doubt adds a reason to a phase that has been judged.
// doubt adds a reason to a phase.
func doubt(p *run.Phase, v run.Validity, why string) {
	(&phase{Phase: p}).judged(append(doubts(p.Reasons), run.Reason{Validity: v, Text: why}))
}

func TestCheckValid(t *testing.T) {
	good := func() *run.Run {
		r := run.New(run.Header{}, machine.Environment{})
		r.Add("get", newPhase(closedPhase(), closedLoad(1000, ms, 0, always(driver.OK))))
		return r
	}
	require.NoError(t, good().CheckValid())
	for name, tt := range map[string]struct {
		spoil func(*run.Run)
		want  string
	}{
		"schema":   {func(r *run.Run) { r.Schema = 9 }, "result of schema 9, this loadgen reads 2"},
		"order":    {func(r *run.Run) { r.PhaseOrder = nil }, "phase_order does not name each phase once: []"},
		"name":     {func(r *run.Run) { r.PhaseOrder[0] = "put" }, `phase_order does not name each phase once: ["put"]`},
		"due":      {func(r *run.Run) { r.Phase["get"].Op["get"].Due++ }, `phase "get" is judged valid: get: due 2001, but 2000 ended and 0 in flight`},
		"sent":     {func(r *run.Run) { r.Phase["get"].Op["get"].Sent-- }, `phase "get" is judged valid: get: sent 1999, but due 2000 and shed 0`},
		"requests": {func(r *run.Run) { r.Phase["get"].Requests[0].Sent++ }, `phase "get" is judged valid: get at 127.0.0.1:7001: sent 2001, but 2000 ended and 0 in flight`},
		"setup": {
			func(r *run.Run) {
				r.Phase["get"].Setup = &run.Ledgers{Op: map[string]*run.Op{"put": {Figures: run.Figures{Ledger: run.Ledger{Due: 1}}}}}
			},
			`phase "get" is judged valid: setup: put: due 1, but 0 ended and 0 in flight`,
		},
		"keys": {func(r *run.Run) { r.Phase["get"].Op["get"].Keys.Due++ }, `phase "get" is judged valid: get: keys: due 2001, but 2000 ended and 0 in flight`},
		"requests that were not made": {
			func(r *run.Run) { r.Phase["get"].Requests[0].Sent, r.Phase["get"].Requests[0].Answered = 1999, 1999 },
			`phase "get" is judged valid: get: 2,000 ops ended ok or miss, which takes 2,000 answered requests, and 1,999 were`,
		},
		"causes":    {func(r *run.Run) { r.Phase["get"].Op["get"].Causes.Lost++ }, `phase "get" is judged valid: get: 1 causes of 0 ops that went wrong`},
		"samples":   {func(r *run.Run) { r.Phase["get"].Op["get"].Response.Count-- }, `phase "get" is judged valid: get: response: 1,999 samples, of 2000 ok and miss`},
		"lags":      {func(r *run.Run) { r.Phase["get"].Op["get"].Lag.Count++ }, `phase "get" is judged valid: get: lag: 2,001 samples, of 2000 what was sent`},
		"quantiles": {func(r *run.Run) { r.Phase["get"].Op["get"].Response.P50 = number(7) }, `phase "get": get: a latency whose quantiles fall from 7 to 0.001`},
		"hits":      {func(r *run.Run) { r.Phase["get"].Op["get"].HitRatio = number(0.5) }, `phase "get": get: hit_ratio 0.5, but 2000 of 2000 keys that were answered hit`},
		"rate":      {func(r *run.Run) { r.Phase["get"].Op["get"].Rate = number(2) }, `phase "get": get: a rate of 2/s, and of `},
		"stalls":    {func(r *run.Run) { r.Phase["get"].Stalls = 1 }, `phase "get" is judged valid: 1 stall, but the longest is 0 s`},
		"phase":     {func(r *run.Run) { r.Phase["get"].Validity = run.Suspect }, `phase "get": judged suspect, but the worst of its reasons is valid`},
		"better":    {func(r *run.Run) { doubt(r.Phase["get"], run.Suspect, "why") }, `verdict: valid, but the worst phase is suspect`},
		"worse":     {func(r *run.Run) { r.Verdict.Validity = run.Invalid }, `verdict: invalid, but the worst phase is valid`},
		"unknown":   {func(r *run.Run) { doubt(r.Phase["get"], "fine", "why") }, `phase "get": a reason is judged "fine"`},
		"exit code": {func(r *run.Run) { r.ExitCode = exit.Invalid }, `exit code 4, but that of the verdict is 0`},
		"strict": {func(r *run.Run) {
			r.Strict = true
			doubt(r.Phase["get"], run.Suspect, "why")
			r.Conclude(run.Complete)
			r.ExitCode = 0
		}, `exit code 0, but that of the verdict is 4`},
		"asserts": {func(r *run.Run) { r.Asserts = []run.AssertResult{{Name: "a", Reason: "null"}} }, `verdict: assertions are none, but by the asserts they are undecided`},
		"kept silent": {func(r *run.Run) {
			doubt(r.Phase["get"], run.Suspect, "why")
			r.Conclude(run.Complete)
			r.Verdict.Reasons, r.Verdict.Codes = nil, nil
		}, `verdict: a reason is not among its own: phase get: why`},
		"codes": {func(r *run.Run) {
			doubt(r.Phase["get"], run.Suspect, "why")
			r.Conclude(run.Complete)
			r.Verdict.Reasons = nil
		}, `verdict: 1 codes of 0 reasons`},
		"complete": {func(r *run.Run) { r.Losses = []worker.Loss{{Worker: "w1"}} }, `verdict: complete, though worker w1 was lost`},
		"loss backwards": {
			func(r *run.Run) {
				r.Losses = []worker.Loss{{Worker: "w1", Phase: "get", KnownSeconds: 2, LoadedSeconds: 1}}
			},
			`losses[0]: worker w1 is known up to 2 s, and had ended by 1 s`,
		},
		"unseen": {
			func(r *run.Run) { r.Losses = []worker.Loss{{Worker: "w1", UnseenEstimated: true}} },
			`losses[0]: worker w1 may have sent an estimated 0 ops when it had no load to send`,
		},
		"incomplete": {func(r *run.Run) { r.Verdict.Completeness = "done" }, `verdict: completeness is "done"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			tt.spoil(r)
			require.ErrorContains(t, r.CheckValid(), tt.want)
			if p := r.Phase["get"]; name == "due" {
				doubt(p, run.Invalid, "the ledgers do not balance")
				r.Conclude(run.Complete)
				require.NoError(t, r.CheckValid(), "an invalid phase may say what it is")
			}
		})
	}
}
