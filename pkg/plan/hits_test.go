package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

func TestExpectedHits(t *testing.T) {
	fill, setup := "  populate {}", "  setup { ops = { put = 1 } }\n"
	cases := []struct {
		name   string
		phases string
		want   float64 // of the last phase; −1 for nothing
	}{
		{"nothing put", phase("x", "plain", "shared", gets), -1},
		{"populated", phase("a", "plain", "shared", fill) + phase("x", "plain", "shared", gets), 0.99},
		{"populated elsewhere", phase("a", "nodes", "shared", fill) + phase("x", "plain", "shared", gets), -1},
		{"another dataset populated", phase("a", "plain", "other", fill) + phase("x", "plain", "shared", gets), -1},
		{"only put", phase("a", "plain", "shared", puts) + phase("x", "plain", "shared", gets), -1},
		{"own setup", phase("x", "plain", "pool", setup+gets), 0.99},
		{"own setup of steps", phase("x", "plain", "pool", "  setup {\n    step \"put\" {}\n  }\n"+gets), -1},
		{"another's setup", phase("a", "plain", "pool", setup+gets) + phase("x", "plain", "pool", gets), -1},
		{"deletes", phase("a", "plain", "shared", fill) + phase("x", "plain", "shared", deletes), -1},
		{"deletes after setup", phase("x", "plain", "pool", setup+deletes), -1},
		{"deleted between", phase("a", "plain", "shared", fill) + phase("b", "plain", "shared", deletes) + phase("x", "plain", "shared", gets), -1},
		{"deleted elsewhere", phase("a", "plain", "shared", fill) + phase("b", "plain", "other", deletes) + phase("x", "plain", "shared", gets), 0.99},
		{"cleared between", phase("a", "plain", "shared", fill) + phase("b", "plain", "shared", "  clear {}") + phase("x", "plain", "shared", gets), -1},
		{"flushed between", phase("a", "nodes", "shared", fill) + phase("b", "nodes", "other", "  clear {}") + phase("x", "nodes", "shared", gets), -1},
		{"populated again", phase("a", "plain", "shared", "  clear {}") + phase("b", "plain", "shared", fill) + phase("x", "plain", "shared", gets), 0.99},
		{"populate skipped", phase("a", "plain", "shared", fill+"\n  when = false") + phase("x", "plain", "shared", gets), -1},
		{"written", phase("x", "plain", "shared", gets+"\n  expect_hits = \"50%\""), 0.5},
		{"written as zero", phase("a", "plain", "shared", fill) + phase("x", "plain", "shared", gets+"\n  expect_hits = 0"), 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			phases := good(t, caches+c.phases, plan.Vars{}).Phases
			got := phases[len(phases)-1].ExpectHits
			if c.want < 0 {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			require.InDelta(t, c.want, *got, 1e-15)
		})
	}
}
