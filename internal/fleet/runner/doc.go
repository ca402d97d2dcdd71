// Package runner runs plans, from a run's directory to its result: everything around the steps, which package coord carries out. [Run] runs a plan
// once, and [Experiment] runs every variant as often as the plan's experiment says.
//
// A run creates a directory, examines the machine, gets its workers ([Fleet]: one in this process, one in a child process, or workers that come from
// elsewhere, all used alike) and serves metrics if asked to. Package coord then hands out the steps, with built-in nodes and probes at its disposal.
// Last, the run evaluates the asserts and keeps the result. Once the directory exists, every failure is recorded in the result. In an experiment, a
// hook may restart the targets before each run.
//
// The package reads no flags and shows no results. The command passes a [Config] and shows what is returned.
package runner
