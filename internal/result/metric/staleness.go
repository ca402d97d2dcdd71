package metric

import "github.com/loadgen/loadgen/internal/result/run"

// stalenessFigures lists the figures of stale gets.
func stalenessFigures() []Of[run.Phase] {
	of := within(func(p *run.Phase) *run.Staleness { return p.Staleness })
	return []Of[run.Phase]{
		{
			Name: "staleness.gets", Unit: "gets", Float: of(func(s *run.Staleness) *float64 { return number(s.Gets) }),
			Says: "gets that ended ok or miss, of keys with a write that had been acknowledged before they began",
		},
		{
			Name: "staleness.stale", Unit: "gets", Float: of(func(s *run.Staleness) *float64 { return number(s.Stale) }),
			Says: "those of these gets that returned a version older than one that had been acknowledged, or nothing",
		},
		{
			Name: "staleness.ratio", Unit: "share", Kind: Share, Float: of(func(s *run.Staleness) *float64 { return s.Ratio }),
			Says: "stale / gets",
		},
		{
			Name: "staleness.low", Unit: "share", Kind: Share, Float: of(func(s *run.Staleness) *float64 { return s.Low }),
			Says: "lower end of the ratio's 95 % confidence interval, by how much seconds differ, since stale gets come in bursts; null if fewer than ten seconds had any",
		},
		{
			Name: "staleness.high", Unit: "share", Kind: Share, Float: of(func(s *run.Staleness) *float64 { return s.High }),
			Says: "its upper end",
		},
		{
			Name: "staleness.by_one", Unit: "gets", Float: of(func(s *run.Staleness) *float64 { return number(s.ByOne) }),
			Says: "stale by one acknowledged version",
		},
		{
			Name: "staleness.by_two", Unit: "gets", Float: of(func(s *run.Staleness) *float64 { return number(s.ByTwo) }),
			Says: "stale by two",
		},
		{
			Name: "staleness.by_three", Unit: "gets", Float: of(func(s *run.Staleness) *float64 { return number(s.ByThree) }),
			Says: "stale by three",
		},
		{
			Name: "staleness.by_more", Unit: "gets", Float: of(func(s *run.Staleness) *float64 { return number(s.ByMore) }),
			Says: "stale by more",
		},
		{
			Name: "staleness.backwards", Unit: "gets", Float: of(func(s *run.Staleness) *float64 { return number(s.Backwards) }),
			Says: "gets that returned a version older than one that their session had read of the key before they began: reads were not monotonic",
		},
		{
			Name: "staleness.age_mean", Unit: "s", Kind: Time, Float: of(func(s *run.Staleness) *float64 { return s.AgeMean }),
			Says: "how long before a stale get began the first newer version had been acknowledged: mean",
		},
		{
			Name: "staleness.age_p50", Unit: "s", Kind: Time, Float: of(func(s *run.Staleness) *float64 { return s.AgeP50 }),
			Says: "median of that",
		},
		{
			Name: "staleness.age_p99", Unit: "s", Kind: Time, Float: of(func(s *run.Staleness) *float64 { return s.AgeP99 }),
			Says: "99 % were no older",
		},
		{
			Name: "staleness.age_max", Unit: "s", Kind: Time, Float: of(func(s *run.Staleness) *float64 { return s.AgeMax }),
			Says: "the oldest",
		},
	}
}

// ofGets returns a count of a second's gets, or nil if none was compared in it.
func ofGets(r *run.Row, n uint64) *float64 {
	if r.Compared == 0 {
		return nil
	}
	return number(n)
}
