// Package run holds a run's result as data: its identity, its counts and measurements, and how far those can be trusted. Package rundir keeps a
// result on disk, and package runner carries a run out.
//
// A [Run] is the only form of a result. It is written as JSON to disk and to --out, printed by reports and read by asserts, always under the same
// paths: `.phase.get.op.get.response.p99` in jq is phase.get.op.get.response.p99 in a plan. metric/paths.tsv lists every path.
//
// # Conventions
//
// Times are seconds, sizes bytes, shares are between 0 and 1, and rates are per second unless the name says otherwise. An unavailable number is null,
// never zero. The nearest `nulls` object above it holds the reason under its path, or under the path of an object whose numbers are all null for one
// reason.
//
// # Conditions
//
// [Target], [Dataset] and [Load] describe what a phase ran against and was asked to do. Results can only be compared if these are equal.
//
// # The verdict
//
// Package judge turns counts into a [Phase]. [Run.Add] collects phases, [Run.Conclude] and [Run.SetAsserts] record how far the run got and the
// results of its asserts. The verdict and the exit code follow from these, and [Run.CheckValid] checks them in a result that was read.
package run
