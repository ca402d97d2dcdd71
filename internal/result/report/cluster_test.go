package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/report/page"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestRequestsOfACluster: redirects are shown with what was sent, and unused nodes are only counted.
func TestRequestsOfACluster(t *testing.T) {
	p, r := samplePlan(), run.New(header, environment)
	p.Targets[0] = &plan.Target{Name: "space", Driver: "redis", Placement: plan.Slots}
	s := simulate(6).closed(driver.Put, 1, 1000)
	for i := range 6 {
		*s.totals.Request(i, driver.Put) = measure.Requests{}
	}
	*s.totals.Request(0, driver.Put) = measure.Requests{Sent: 6030, Answered: 6000, Moved: 20, Ask: 10}
	*s.totals.Request(2, driver.Put) = measure.Requests{Sent: 4000, Answered: 4000}
	r.Add("put", judge.NewPhase(p, p.Phases[0], judge.Measured{Endpoints: endpoints(6), Load: s.totals, Generators: []measure.Generator{event}}))
	var text, html strings.Builder
	require.NoError(t, Text(&text, r, Options{}))
	require.Contains(t, text.String(), "space: redis, a cluster of 6 nodes\n")
	require.Contains(t, text.String(), "put 6,030 sent, 20 moved, 10 ask\n")
	require.Contains(t, text.String(), "put 4,000 sent\n")
	require.NotContains(t, text.String(), "put 0 sent")
	require.Contains(t, text.String(), "none to 4 other nodes\n")
	require.NoError(t, page.Write(&html, []timeline.Source{{Run: r}}))
	require.Contains(t, html.String(), "<th>answered</th><th>moved</th><th>ask</th>")
	require.Contains(t, html.String(), "<td>6030</td><td>6000</td><td>20</td><td>10</td>")
}
