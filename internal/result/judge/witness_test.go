package judge

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestTheTableIsExplained compares docs/truth.md with the table of invariants.
func TestTheTableIsExplained(t *testing.T) {
	page, err := os.ReadFile("../../../docs/truth.md")
	require.NoError(t, err)
	var want strings.Builder
	want.WriteString("| must hold | else | silent if |\n|---|---|---|\n")
	for _, row := range invariants() {
		want.WriteString("| " + row.holds + " | [" + string(row.code) + "](reasons.md#" + string(row.code) + ") | " + row.silent + " |\n")
	}
	require.Contains(t, string(page), want.String(), "paste it")
}

// Loads that never reached the source are not loads.
func TestLoadsBeyondThoseSent(t *testing.T) {
	for sent, broken := range map[uint64]bool{0: false, 252_798: true, 261_000: false, 270_000: false} {
		p := &phase{Phase: &run.Phase{}, counts: &counts{phase: &plan.Phase{Batch: 1}, plan: &plan.Plan{Targets: []*plan.Target{{Name: "cached", Source: "db"}, {Name: "db"}}}}}
		p.Target, p.Others, p.Cache = run.Target{Name: "cached"}, []run.Target{{Name: "db"}}, &run.Cache{Loads: 261_730}
		p.Requests = []run.Requests{{Target: "db", Verb: "get", Sent: sent}, {Target: "db", Verb: "put", Sent: 9_000}}
		got := p.loadsUnsent()
		require.Equal(t, broken, len(got) > 0, sent)
		if broken {
			require.Equal(t, "cache.loads is 261,730, but db was sent 252,798 gets: the others did not reach it", got[0].text)
		}
	}
}

// The slots of a lost worker have ended, not hung.
func TestLostWorkersHangNoSlots(t *testing.T) {
	for lost, want := range map[int]int{0: 1, 1: 0} {
		p := &phase{Phase: &run.Phase{}, counts: &counts{}, rates: rates{stall: stall{byTime: 50, byEnds: 60}}}
		p.counts.Losses = make([]worker.Loss, lost)
		d := &doubts{}
		p.judgeStall(d)
		require.Len(t, *d, want)
	}
}
