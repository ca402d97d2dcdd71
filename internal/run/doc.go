// Package run is a run as data: which one it was, what it counted and measured, and how far that may be believed.
//
// A [Run] is the one form of a result. It is written to disk and to --out as JSON, printed by reports and looked into by
// asserts, always by the same paths: `.phase.get.op.get.response.p99` in jq is phase.get.op.get.response.p99 in a plan.
// docs/result.md lists every path.
//
// # Conventions
//
// Times are seconds, sizes bytes, shares lie between 0 and 1, rates are per second unless the name says otherwise. A number that
// is not to be had is null, never zero, and the nearest `nulls` object above it holds the reason under its path, or under the
// path of an object whose numbers are all null for one reason.
//
// # The verdict
//
// Package judge makes a [Phase] of what was counted. [Run.Add] collects phases, [Run.Conclude] and [Run.SetAsserts] say how far the run got and what
// became of its asserts; the verdict and the exit code follow from these, and [Run.CheckValid] holds a result that was read against that.
package run
