// Package judge makes a result of what was counted, and says how far it may be believed.
//
// [NewPhase] turns the merged totals of a phase, a [Measured], into ledgers, rates and latencies, and judges them: each doubt is a reason that
// names the figures it touches. [FindWarmUp] says what of a load's beginning its figures leave out, [Measured.AddLevel] enters one stage or one
// try of a search, and [Shortfall] what a step that must succeed whole lacks. [Series] and [Observation] gather, while the load is on, what a
// result has second by second.
//
// What comes out is plain data, described in package run.
package judge
