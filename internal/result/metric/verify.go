package metric

import "github.com/loadgen/loadgen/internal/result/run"

// verifyFigures lists the figures of a verify.
func verifyFigures() []Of[run.Phase] {
	of := within(func(p *run.Phase) *run.Verify { return p.Verify })
	return []Of[run.Phase]{
		{
			Name: "verify.keys", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Keys) }),
			Says: "that were put and acknowledged, each read once",
		},
		{
			Name: "verify.lost", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Lost) }),
			Says: "whose last acknowledged write is gone: missing + older",
		},
		{
			Name: "verify.missing", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Missing) }),
			Says: "that are not there, and should be",
		},
		{
			Name: "verify.older", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Older) }),
			Says: "whose value is older than the last write that was acknowledged",
		},
		{
			Name: "verify.newer", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Newer) }),
			Says: "not lost: whose value was put after that, by a put that was never acknowledged",
		},
		{
			Name: "verify.unread", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Unread) }),
			Says: "whose get failed, so that it is not known whether they are lost",
		},
	}
}
