// Package judge turns counts into a result and says how far that can be trusted.
//
// [NewPhase] turns the merged totals of a phase, a [Measured], into ledgers, rates and latencies, and judges them: each doubt is a reason that names
// the figures it affects. [FindWarmUp] decides how much of a load's beginning to leave out of its figures, [Measured.AddLevel] adds one stage or one
// try of a search, and [Shortfall] says how a step that must succeed completely fell short. [Series] and [Observation] collect a result's time series
// while the load runs.
//
// The output is plain data, described in package run.
package judge
