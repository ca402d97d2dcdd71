// Package timeline reads what runs store besides their results, for charts: the histograms in a run's snapshots, over time and in total ([Run]), and
// those of an experiment's repetitions together ([Study]).
package timeline
