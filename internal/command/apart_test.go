package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
)

// throughPlan reads from a fast target, where every second key is missing, and from a slow one, and writes to the fast one alone.
const throughPlan = `
plan "through" {}
target "cache" {
	driver     = "null"
	endpoints  = ["c"]
	latency    = "1ms"
	miss_every = 2
}
target "database" {
	driver    = "null"
	endpoints = ["d"]
	latency   = "90ms"
}
dataset "d" {
	keys { count = 100 }
	values { size = 10 }
}
phase "p" {
	target  = target.cache
	dataset = dataset.d
	scenario "through" {
		step "get" { as = "cached" }
		step "get" {
			as     = "stored"
			target = target.database
		}
		step "put" {}
	}
	LOAD
}
assert "pooled" { that = phase.p.op.get.response.p50 < duration("1s") }
`

// TestAnOpOfSeveralTargetsHasNoFigures: a hit ratio or a median over a cache and a database is that of neither.
func TestAnOpOfSeveralTargetsHasNoFigures(t *testing.T) {
	t.Parallel()
	const why = "several targets: see its steps"
	l := begin(t, strings.Replace(throughPlan, "LOAD", "closed { iterations = 40 }", 1))
	r := l.result(time.Minute)
	p := r.Phase["p"]
	require.Contains(t, p.Op, "get")
	require.Nil(t, p.Op["get"])
	require.Equal(t, why, p.Nulls["op.get"])
	require.Equal(t, reason.Code("several_targets"), p.NullCodes["op.get"])
	require.EqualValues(t, 40, p.Op["put"].OK)
	steps := p.Scenario["through"].Step
	require.EqualValues(t, []uint64{20, 20, 40, 0}, []uint64{steps["cached"].OK, steps["cached"].Miss, steps["stored"].OK, steps["stored"].Miss})
	require.Less(t, *steps["cached"].Response.P50, *steps["stored"].Response.P50, "each is of its own target")
	require.Contains(t, r.Asserts[0].Reason, "phase.p.op.get is null: "+why)
	require.Equal(t, exit.Undecided, r.ExitCode)
	require.Regexp(t, `\n +get +`+why+`\n`, l.stdout.String())
	require.Regexp(t, `\n +step +through, stored: get to database\n`, l.stdout.String())

	l = begin(t, strings.Replace(throughPlan, "LOAD", "expect_hits = 0.9\nsearch {\nfrom = 20\nto = 20\nbudget = \"5s\"\nstep_duration = \"1s\"\nslo {\nop = \"get\"\nresponse_p50 = \"50ms\"\n}\n}", 1))
	p = l.result(time.Minute).Phase["p"] // whose first level is the closed load that a search begins with
	require.Nil(t, p.Levels[1].Op["get"])
	require.Equal(t, why, p.Nulls["levels.1.op.get"])
	require.Regexp(t, `^scenario through, step stored: p50 response [0-9.]+ ms`, p.Levels[1].Why)
	require.Equal(t, reason.ExpectHits, p.Levels[1].Reasons[0].Code)
	require.Regexp(t, `^scenario through, step cached: 50 % were hits`, p.Levels[1].Reasons[0].Text)
}
