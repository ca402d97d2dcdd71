// Package detail reads what runs have kept beside their results, for those who draw it: the histograms in a run's snapshots, over time and
// in all ([Run]), and those of an experiment's repetitions together ([Study]).
package detail
