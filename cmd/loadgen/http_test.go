package main_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
)

// TestMetricsOfARun scrapes a run until it ends: the last page counts what the result counts.
func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan, "-var", "duration=3s", "--http", "127.0.0.1:0")
	address := regexp.MustCompile(`http://\S+/metrics`)
	require.Eventually(t, func() bool { return address.MatchString(l.stderr.String()) }, 10*time.Second, 5*time.Millisecond)
	url := address.FindString(l.stderr.String())
	var page string
	client := http.Client{Timeout: 5 * time.Second}
	require.Eventually(t, func() bool {
		reply, err := client.Get(url)
		if err != nil {
			return true // it has ended
		}
		defer reply.Body.Close()
		b, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		page = string(b)
		return false
	}, 30*time.Second, 50*time.Millisecond)
	r := l.clean(10 * time.Second)
	require.Contains(t, page, fmt.Sprintf("loadgen_ops_total{op=\"get\",outcome=\"ok\",phase=\"gets\",run=%q} %d\n", r.ID, r.Phase["gets"].Op["get"].OK))
	require.Contains(t, page, fmt.Sprintf("loadgen_ops_total{op=\"put\",outcome=\"ok\",phase=\"fill\",run=%q} 100\n", r.ID))
}

// TestMetricsStayOnThisMachine refuses to serve them to others, before any load.
func TestMetricsStayOnThisMachine(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan, "--http", "0.0.0.0:0")
	r := l.result(10 * time.Second)
	require.Equal(t, run.ExitFailed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "--http")
	require.Empty(t, r.PhaseOrder)
}
