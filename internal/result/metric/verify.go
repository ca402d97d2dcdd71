package metric

import "github.com/loadgen/loadgen/internal/result/run"

// verifyFigures lists the figures of a verify.
func verifyFigures() []Of[run.Phase] {
	of := within(func(p *run.Phase) *run.Verify { return p.Verify })
	return []Of[run.Phase]{
		{
			Name: "verify.keys", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Keys) }),
			Says: "keys that were put and acknowledged, each read once",
		},
		{
			Name: "verify.lost", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Lost) }),
			Says: "keys whose last acknowledged write is gone: missing + older",
		},
		{
			Name: "verify.missing", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Missing) }),
			Says: "keys that are not there, but should be",
		},
		{
			Name: "verify.older", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Older) }),
			Says: "keys whose value is older than the last write that was acknowledged",
		},
		{
			Name: "verify.newer", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Newer) }),
			Says: "keys that are not lost: their value is from a later put that was never acknowledged",
		},
		{
			Name: "verify.unread", Unit: "keys", Float: of(func(v *run.Verify) *float64 { return number(v.Unread) }),
			Says: "keys whose get failed, so that it is not known whether they are lost",
		},
	}
}
