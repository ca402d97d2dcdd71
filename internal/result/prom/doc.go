// Package prom exports a run to Prometheus: counters, gauges and histograms made from the totals merged so far.
//
// # A view, not a second count
//
// Nothing is observed here per op. A [Collector] holds the cumulative totals as last set, once a second; a scrape turns them into a page. [Watch]
// wraps the worker that a coordinator drives, and feeds the Collector from its snapshots once they are stored. So the page agrees with the result:
// after the last snapshot, raw counters are equal to it. A worker's page is made the same way from the snapshots that it sends, so the pages of all
// workers add up to the coordinator's.
//
// # Series
//
// All names begin with loadgen_, all units are base units: seconds, bytes. Labels come from the plan: run, phase, op, target, scenario, step, and the
// closed sets outcome, class, result and k, and assert, observe and field; an endpoint is n0, n1, … by its place in the plan. Only loadgen_worker_*
// has the worker's name. Keys, addresses and error texts are not exported. Every series exists from the start, at 0, so that a rate over the first
// interval is right.
//
// Their number is bounded. These are samples of the text page, which is what a Prometheus without native histograms stores:
//
//	                            at most
//	run                               4   1 of them on a worker's page
//	assert                            2   on the coordinator's page only
//	observation                      30   on the coordinator's page only; a field each
//	phase                            40   9, 8 more with a setup, and 2 for each endpoint
//	phase and op                    100   16 counters and gauges, 7 histograms of 9, an ack of 3 for each of the first 7; logs have 2 more histograms, and no acks
//	further target of a phase        22   2 for each endpoint; 5 more for each op there
//	scenario of a phase              36   9 counters and gauges, 3 histograms of 9; a phase has at most 32
//	step of a scenario               36   9 counters and gauges, 3 histograms of 9
//	worker                            5
//
// [Series] and [PartSeries] add them up for a plan. With more than 7 endpoints, those from the 7th on share the name "other".
//
// # Histograms
//
// Response (also of scenarios and their steps), service, its parts write and sync, and lag are classic (6 bounds and +Inf) and native histograms at the same time, in one
// family; acks are native, with their sum and count. A bucket of pkg/hist counts in the first exported bucket whose bound is not below its own upper
// bound, which is where its largest value belongs. The choice depends only on the bucket, so counts add up exactly: the workers' histograms sum to
// the coordinator's bucket by bucket.
//
// Native buckets have schema 5: bounds in seconds at powers of 2^(1/32), 2.2 % apart. Bounds in nanoseconds at powers of two and bounds in seconds
// nest in no schema, so a value just below a bound may be counted above it: at most 1/128 = 0.78 % below. A quantile estimated from native buckets is
// at most 2.2 % + 0.8 % off. The report's quantiles are not affected; they come from pkg/hist.
package prom
