package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// If every get was to hit, one miss is too many, even though chance is allowed one miss otherwise.
func TestOneMissOfAllThatWereToHit(t *testing.T) {
	for _, c := range []struct {
		asked float64
		ok    uint64
		miss  uint64
		want  run.Validity
	}{
		{1, 1_000_000, 0, run.Valid},
		{1, 999_999, 1, run.Suspect},
		{1, 2, 1, run.Suspect},
		{1, 6, 1, run.Suspect},
		{1, 9_999_999, 1, run.Suspect},
		{0.5, 500_001, 499_999, run.Valid},
		{0.5, 502_400, 497_600, run.Valid},   // 4.8 standard deviations
		{0.5, 502_600, 497_400, run.Suspect}, // 5.2
		{0.5, 497_400, 502_600, run.Suspect}, // below as above
		{0.5, 53, 11, run.Valid},             // 5 · 0.5 / 8 + 1 / 64 = 21 / 64, exactly
		{0.5, 54, 10, run.Suspect},
		{0.5, 11, 53, run.Valid},
		{0.5, 10, 54, run.Suspect},
	} {
		ratio := float64(c.ok) / float64(c.ok+c.miss)
		o := &run.Op{HitRatio: &ratio}
		o.OK, o.Miss = c.ok, c.miss
		p := &phase{}
		p.Phase = &run.Phase{Validity: run.Valid, Op: map[string]*run.Op{"get": o}}
		p.judgeHits(&plan.Phase{HitRatio: &c.asked})
		require.Equal(t, c.want, p.Validity, "%+v", c)
	}
}

// Hits are compared with a ratio only if one was asked for, for gets, and if some were answered.
func TestHitsThatAreNotHeld(t *testing.T) {
	asked, ratio := 1.0, 0.5
	for name, c := range map[string]struct {
		asked *float64
		op    map[string]*run.Op
		want  run.Validity
	}{
		"as they are":     {&asked, map[string]*run.Op{"get": {HitRatio: &ratio}}, run.Suspect},
		"nothing asked":   {nil, map[string]*run.Op{"get": {HitRatio: &ratio}}, run.Valid},
		"no gets":         {&asked, map[string]*run.Op{"put": {HitRatio: &ratio}}, run.Valid},
		"none answered":   {&asked, map[string]*run.Op{"get": {}}, run.Valid},
		"neither of them": {nil, map[string]*run.Op{}, run.Valid},
	} {
		for _, o := range c.op {
			o.OK, o.Miss = 5, 5
		}
		p := &phase{Phase: &run.Phase{Validity: run.Valid, Op: c.op}}
		p.judgeHits(&plan.Phase{HitRatio: c.asked})
		require.Equal(t, c.want, p.Validity, name)
	}
}
