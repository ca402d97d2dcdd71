package report

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// visible returns a page's visible text, without tags.
func visible(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(regexp.MustCompile(`<(style|script)>(?s:.*?)</(style|script)>|<[^>]*>`).ReplaceAllString(page, " "))), " ")
}

// TestFirstScreenOfAnExperiment answers what people ask, with the table's digits.
func TestFirstScreenOfAnExperiment(t *testing.T) {
	s := studied(t, 12, "w2", "w1", "w3")
	x := s.Study.Experiment
	page := visible(pageOf(t, s))
	rate := x.Tables[0]
	require.Contains(t, rate.Title, "phase mixed, get: rate")
	require.Contains(t, page, "The baseline w2 sustained "+rate.Rows[0].Cells[0].Text+"! a second.", "less was sustained than offered")
	require.Contains(t, page, "Is it different from the baseline? That cannot be told: the figures are INVALID.")
	require.Regexp(t, `mixed, get: rate higher: w1 \(`+regexp.QuoteMeta(rate.Rows[1].Cells[2].Text)+`! ×, spread [0-9.]+ %\), w3 \(`, page)
	require.Contains(t, page, "May I believe it?")
	require.Contains(t, page, "Offered: open, 2,000/s poisson, 12.0 s", "once, for all variants")
	require.Equal(t, 2, strings.Count(page, "Offered: "), "for get and put")
	require.Contains(t, page, "All runs had this one.")

	for i := range x.Runs {
		x.Runs[i].Verdict.Reasons = []string{"phase mixed: waited " + quantity.Thousands(i) + " % of the time"}
		x.Verdict.Reasons = append(x.Verdict.Reasons, x.Runs[i].Variant+", repetition "+quantity.Thousands(x.Runs[i].Repetition)+": "+x.Runs[i].Verdict.Reasons[0])
		x.ReasonRuns = append(x.ReasonRuns, i+1)
	}
	x.Verdict.Reasons = append(x.Verdict.Reasons, "w3: not run as often as planned: its cap is used up")
	x.ReasonRuns = append(x.ReasonRuns, 0)
	x.Verdict.Validity = run.Invalid
	s.Study.Runs[4].Environment.Kernel = "another"
	page = visible(pageOf(t, s))
	require.Contains(t, page, "May I believe it? No.")
	require.Contains(t, page, "w3: not run as often as planned: its cap is used up")
	require.Contains(t, page, "all 15 runs, mixed: waited 0 to 14 % of the time")
	require.NotContains(t, page, "repetition 2: phase mixed: waited")
	require.Contains(t, page, "w1, repetition 2: system is linux another amd64")
}

// TestUnfinishedExperiments have a page of what there is: of an experiment that ran nothing, or lost the directories of its runs.
func TestUnfinishedExperiments(t *testing.T) {
	x := run.NewExperiment("x")
	x.Baseline, x.Variants = "a", []run.Variant{{Name: "a"}, {Name: "b"}}
	page := visible(pageOf(t, timeline.Source{Study: timeline.NewStudy(x)}))
	require.Contains(t, page, "There is nothing to compare yet.")
	require.Contains(t, page, "UNFINISHED")

	s := studied(t, 3, "a", "b")
	lost := timeline.NewStudy(s.Study.Experiment)
	page = visible(pageOf(t, timeline.Source{Study: lost}))
	require.Contains(t, page, "The baseline a sustained")
	require.NotContains(t, page, "Variants over each other")
}

// If many variants differ, a sentence says how many and by how much; the tables name each.
func TestManyDifferencesAreCounted(t *testing.T) {
	x := matrix()
	x.Figures[5].RatioHi, x.Figures[5].Spread = nil, nil
	require.Contains(t, visible(pageOf(t, timeline.Source{Study: timeline.NewStudy(x)})), "higher: 11 variants (4! to 14 ×)")
}
