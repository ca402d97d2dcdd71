// Package runner is what a run of a plan is, from its directory to its result: [Run] carries a plan out once, and [Experiment] every variant as
// often as the plan's experiment says.
//
// A run makes a directory, finds out about the machine, gets its workers (package fleet), serves metrics if asked to, has package coord hand
// out the steps, with built-in nodes and probes at its service, evaluates the asserts, and keeps the result. Whatever goes wrong once the directory
// is there is in the result. In an experiment, a hook may start the targets anew before each run.
//
// The package reads no flags and shows no results: the command says in a [Config] what is wanted, and reports on what is returned.
package runner
