// Package prom shows a run to Prometheus: counters, gauges and histograms made from what has been merged so far.
//
// # A view, not a second count
//
// Nothing is observed here per op. A [Collector] holds the cumulative totals as they were last set, once a second; a scrape turns them
// into a page. [Watch] stands between a coordinator and a worker and feeds it from the snapshots that pass, once they are kept. What the
// page shows is therefore what the result will show: raw counters are equal to it after the last snapshot. A worker's page is made the
// same way from the snapshots that it sends, so the pages of all workers add up to the coordinator's.
//
// # Series
//
// All names begin with loadgen_, all units are base units: seconds, bytes. Labels come from the plan: run, phase, op, scenario, and the closed
// sets outcome, class, result and k; an endpoint is n0, n1, … by its place in the plan. A worker's name stands on loadgen_worker_*
// only. Keys, addresses and texts of errors are not shown. Every series is there from the start, at 0, so that a rate over the first
// interval is right.
//
// The numbers are bounded, counted as samples of the text page, which is what a Prometheus without native histograms stores:
//
//	                            at most
//	run                               4   1 of them on a worker's page
//	phase                            40   9, 8 more with a setup, and 2 for each endpoint
//	phase and op                    100   16 counters and gauges, 7 histograms of 9, an ack of 3 for each of the first 7
//	scenario of a phase              36   9 counters and gauges, 3 histograms of 9; a phase has at most 32
//	worker                            5
//
// [Series] and [PartSeries] add them up for a plan. When there are more than 11 endpoints, those from the 11th on share the name "other".
//
// # Histograms
//
// Response, of scenarios too, service and lag are classic (6 bounds and +Inf) and native histograms at the same time, in one family; acks are native
// with their sum and count. A bucket of pkg/hist counts in the first exported bucket whose bound is not below the upper bound
// of its own, which is where its largest value belongs. The choice depends on the bucket alone, so counts add up exactly: the
// histograms of workers sum to that of the coordinator bucket by bucket.
//
// Native buckets have schema 5: bounds in seconds at powers of 2^(1/32), 2.2 % apart. Nanoseconds on a binary scale and seconds on
// another do not nest in any schema, so a value just below a bound may be counted above it: at most 1/128 = 0.78 % below. A
// quantile estimated from native buckets is at most 2.2 % + 0.8 % off; those of the report are not, they come from pkg/hist.
package prom
