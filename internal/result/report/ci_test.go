package report

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// TestCasesForCI: an assert, a phase, a search, a gate and a run each have a case, whose name is no other's; what cannot be told is an error.
func TestCasesForCI(t *testing.T) {
	var all []timeline.Source
	for _, r := range []*run.Run{good(), good(), overloaded(), unreachable(), levels()} {
		all = append(all, timeline.Source{Run: r})
	}
	all[1].Run.Phase["get"].Op["get"].Checks = map[string]run.Check{"body": {}, "json $.a": {Failed: 3}}
	for decision, text := range map[run.Decision]string{run.GateFailed: "B is worse", run.GatePassed: "B is not worse", run.GateUndecided: "Cannot tell: 50% more,\nor so"} {
		x := compared()
		x.Gate = &run.Gate{Metric: "cpu_per_op", Phase: string(decision), Decision: decision, Text: text}
		x.Runs = []run.ExperimentRun{
			{Variant: "w2", Repetition: 1, Verdict: run.Verdict{Completeness: run.Complete, Validity: run.Valid, Assertions: run.Pass}},
			{Variant: "w2", Repetition: 2, Verdict: run.Verdict{Completeness: run.Failed, Validity: run.Valid, Reasons: []string{"connection refused"}}},
		}
		all = append(all, timeline.Source{Study: timeline.NewStudy(x)})
	}
	var junit, github strings.Builder
	require.NoError(t, JUnit(&junit, all))
	var read testSuites
	require.NoError(t, xml.Unmarshal([]byte(junit.String()), &read))
	seen, kinds := map[string]bool{}, map[string]int{}
	for _, suite := range read.Suites {
		for _, c := range suite.Cases {
			require.False(t, seen[c.Class+"\n"+c.Name], c.Name)
			seen[c.Class+"\n"+c.Name] = true
			if c.Failure != nil {
				kinds[c.Failure.Type+" fails"]++
			}
			if c.Error != nil {
				kinds[c.Error.Type]++
			}
		}
	}
	require.Len(t, seen, read.Tests)
	require.Equal(t, map[string]int{
		"aborted": 3, "assert fails": 1, "cannot_tell": 1, "check fails": 1, "failed": 1 + 3, "gate fails": 1, "invalid": 3, "limit fails": 2, "undecided": 1,
	}, kinds)
	require.NoError(t, GitHub(&github, all))
	require.LessOrEqual(t, strings.Count(github.String(), "::error "), mostNoted)
	require.Contains(t, github.String(), "::notice title=hydra-m4::")

	var one, gate strings.Builder
	require.NoError(t, JUnit(&one, all[2:3]))
	golden(t, "junit.xml", one.String())
	x := compared()
	x.Runs, x.Verdict.Reasons, x.Gate = nil, nil, &run.Gate{Metric: "rate", Text: "Cannot tell: 50% more,\nor so"}
	require.NoError(t, GitHub(&gate, []timeline.Source{{Study: timeline.NewStudy(x)}}))
	require.Equal(t, "::error title=hydra-m4%3A gate%3A rate::cannot be told: Cannot tell: 50%25 more,%0Aor so\n", strings.SplitAfter(gate.String(), "\n")[0])
}
