package main

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func number(n int) string { return strconv.Itoa(n) }

var (
	validity = []word{{"valid", "green"}, {"suspect", "orange"}, {"invalid", "red"}}
	goesOn   = words(0, word{"", "transparent"}, word{"active", "blue"})
)

// runs returns the dashboard of the offered load and its outcome.
func runs() *dashboard.DashboardBuilder {
	return ofOneRun("loadgen-run", "Run", "What a run offers, and what comes of it.").
		WithPanel(figure("Run", "The run's state; the counts are final once it has ended.", 4, words(0, word{"ended", "text"}, word{"goes on", "blue"}), q(`max(loadgen_run_active{})`, "run"))).
		WithPanel(figure("Complete", "How much of the plan was carried out; it can only get worse until the run ends.", 4,
			words(0, word{"complete", "green"}, word{"degraded", "orange"}, word{"aborted", "red"}, word{"failed", "red"}), q(`max(loadgen_run_completeness{})`, "completeness"))).
		WithPanel(figure("Valid", "Whether the figures can be believed: the worst phase that has ended decides.", 4, words(0, validity...), q(`max(loadgen_run_validity{})`, "validity"))).
		WithPanel(states("Phases", "A bar shows when its phase was under way.", 12, goesOn, q(`max by (phase) (loadgen_phase_active{})`, "{{phase}}")).Height(4)).
		WithPanel(asserted(series("Offered and sustained", "What the schedule of an open phase wants, what became due, and what ended ok: where ok stays below offered, the target is overloaded.", "ops", 12,
			q(`sum by (phase) (loadgen_phase_offered_ops_per_second{}) > 0`, "offered {{phase}}"),
			q(`sum by (phase, op) (rate(loadgen_ops_due_total{}[$__rate_interval]))`, "due {{phase}} {{op}}"),
			q(`sum by (phase, op) (rate(loadgen_ops_total{,outcome="ok"}[$__rate_interval]))`, "ok {{phase}} {{op}}"),
			q(`sum by (phase, scenario) (rate(loadgen_scenarios_total{,outcome="ok"}[$__rate_interval]))`, "ok {{phase}} scenario {{scenario}}")),
			`phase[.][^ .*/+]+[.](achieved|offered)_rate|`+ofAnOp+`(rate|answered|rate_wall|rate_peak)`)).
		WithPanel(asserted(series("Response and service", "Response counts from when an op was due, service from its start: the gap between them is waiting. Quantiles are up to 3 % off; the report's are exact.", "s", 12,
			q(quantile("0.5", "op", "loadgen_response_seconds", good), "response p50 {{op}}"),
			q(quantile("0.99", "op", "loadgen_response_seconds", good), "response p99 {{op}}"),
			q(quantile("0.5", "op", "loadgen_service_seconds", good), "service p50 {{op}}"),
			q(quantile("0.99", "op", "loadgen_service_seconds", good), "service p99 {{op}}"),
			q(quantile("0.99", "scenario", "loadgen_scenario_response_seconds", good), "response p99 scenario {{scenario}}")).ScaleDistribution(logarithmic()),
			ofAnOp+`(latency[.](ok|miss)[.])?(response|service)`+latency)).
		WithPanel(density("Response, all of it", "Each column is a moment and each cell a range of response times: the brighter, the more ops; two bands are two kinds of answers.", 12,
			`sum(rate(loadgen_response_seconds`+good+`[$__rate_interval]))`)).
		WithPanel(series("Outcomes", "Ops per second by outcome; shed ops were due and never started.", "ops", 12,
			q(`sum by (op, outcome) (rate(loadgen_ops_total{}[$__rate_interval])) > 0`, "{{op}} {{outcome}}"))).
		WithPanel(asserted(limit(series("Bad ops", "The share of ops that ended neither ok nor miss: above the line, at 1 %, a phase is suspect.", "percentunit", 8,
			q(share(`loadgen_ops_total{,outcome!~"ok|miss"}`, `loadgen_ops_total{}`, "phase"), "{{phase}}")), 0.01),
			`[(]?phase.+[.](error|timeout|conflict|quorum_failed|shed)[)]? ?/ ?phase[^ ]+[.](due|sent)`)).
		WithPanel(asserted(limit(series("Lag", "How late ops started, at p99. An open phase is suspect beyond 1 ms, and beyond 10 ms its load is not the one that was planned.", "s", 8,
			q(quantile("0.99", "op", "loadgen_lag_seconds", "{}"), "{{op}}")).ScaleDistribution(logarithmic()), 0.001, 0.01),
			path+"lag"+latency)).
		WithPanel(series("In flight", "What was started and has not ended: in an open phase, a line that climbs is a queue.", "short", 8,
			q(`sum by (op) (loadgen_ops_in_flight{})`, "ops {{op}}"),
			q(`sum by (target, op) (loadgen_requests_in_flight{})`, "requests {{target}} {{op}}"))).
		WithPanel(asserted(series("k-th acks", "The p99 from the start of a replicated op to its k-th good answer: what other W and R would cost at this rate. Empty without client-side replication.", "s", 12,
			q(quantile("0.99", "op, k", "loadgen_ack_seconds", "{}"), "{{op}} k={{k}}")).ScaleDistribution(logarithmic()),
			path+`acks[^ */+]*`+latency)).
		WithPanel(asserted(series("Write and sync", "The p99 of both parts of service, of ops that store in logs: sync is the wait for the device, write all the rest, such as waiting for other sessions. Empty without such logs.", "s", 12,
			q(quantile("0.99", "op", "loadgen_write_seconds", "{}"), "write {{op}}"),
			q(quantile("0.99", "op", "loadgen_sync_seconds", "{}"), "sync {{op}}")).ScaleDistribution(logarithmic()),
			ofAnOp+`(write|sync)`+latency)).
		WithPanel(asserted(series("Steps", "The p99 of each step of each scenario, from when it was due: a scenario takes as long as its steps and the think times between them.", "s", 12,
			q(quantile("0.99", "scenario, step, target", "loadgen_step_response_seconds", good), "{{scenario}} {{step}} at {{target}}")).ScaleDistribution(logarithmic()),
			path+`step[.[][^ */+]+[.](response|service)`+latency)).
		WithPanel(series("Outcomes of steps", "Ops of each step that end each second, by outcome.", "ops", 12,
			q(`sum by (scenario, step, outcome) (rate(loadgen_steps_total{}[$__rate_interval])) > 0`, "{{scenario}} {{step}} {{outcome}}"))).
		WithPanel(states("Asserts", "Open until the run ends; then green holds, and red does not.", 12,
			words(-1, word{"open", "text"}, word{"fails", "red"}, word{"holds", "green"}), q(`max by (assert) (loadgen_assert{})`, "{{assert}}"))).
		WithPanel(series("Limits of asserts", "The constants that asserts compare figures with, in the figures' units. Those of rates, latencies and shares are also dashed lines in their own charts.", "short", 12,
			q(`max by (assert, figure) (loadgen_assert_limit{})`, "{{assert}}: {{figure}}")))
}

// fleet returns the dashboard of the workers.
func fleet() *dashboard.DashboardBuilder {
	return ofOneRun("loadgen-fleet", "Fleet", "Whether the workers do what they should, so that the figures are the target's.").
		WithPanel(figure("Take part", "Workers that take part now.", 3, nil, q(`sum(loadgen_worker_up{})`, "workers")).Height(8)).
		WithPanel(figure("Lost", "Workers that are away while the run goes on. The others continue with their own load, or the run ends, as on_worker_loss says.", 3, nil,
			q(`count(loadgen_worker_up{} == 0 and on (run) loadgen_run_active{} == 1) or vector(0)`, "workers")).Height(8).Thresholds(steps(1))).
		WithPanel(states("Workers", "A bar turns red where its worker was lost or released.", 18, words(0, word{"away", "red"}, word{"takes part", "green"}),
			q(`max by (worker) (loadgen_worker_up{})`, "{{worker}}"))).
		WithPanel(limit(series("Last seen", "Time since a worker's last heartbeat; one comes each second. The lines are at 3 s, where doubt begins, and at 10 s, where the worker is lost.", "s", 12,
			q(`max by (worker) (loadgen_worker_last_seen_seconds{})`, "{{worker}}")), 3, 10)).
		WithPanel(series("Busy", "Processors that each worker's process keeps busy. At the number of its event loops it can do no more, and slow responses may be its fault.", "short", 12,
			q(`sum by (worker) (rate(loadgen_worker_cpu_seconds_total{}[$__rate_interval]))`, "{{worker}}"))).
		WithPanel(series("Shares", "Ops per second of each worker, from the workers' own pages: lines far apart mean uneven work. Empty if only the coordinator is scraped.", "ops", 8,
			q(`sum by (instance) (rate(loadgen_ops_total{job="loadgen-workers",run="$run"}[$__rate_interval]))`, "{{instance}}"))).
		WithPanel(series("Skew of clocks", "How far each worker's clock has moved against the coordinator's in the time shown. A slope is drift, which is corrected; a jump is a fault.", "s", 8,
			q(`max by (worker) (loadgen_worker_clock_offset_seconds{} - min_over_time(loadgen_worker_clock_offset_seconds{}[$__range]))`, "{{worker}}"))).
		WithPanel(series("Uncertainty of clocks", "By how much each offset may be off: half of the fastest exchange between worker and coordinator.", "s", 8,
			q(`max by (worker) (loadgen_worker_clock_uncertainty_seconds{})`, "{{worker}}"))).
		WithPanel(asserted(limit(series("Lag", "How late ops started, at p99. If the workers are busy at the same time, there are too few of them.", "s", 8,
			q(quantile("0.99", "op", "loadgen_lag_seconds", "{}"), "{{op}}")).ScaleDistribution(logarithmic()), 0.001, 0.01),
			path+"lag"+latency)).
		WithPanel(density("Lag, all of it", "The same as a heatmap. A bright band at the bottom is good; a second band above it shows ops that waited for a free slot.", 8,
			`sum(rate(loadgen_lag_seconds{}[$__rate_interval]))`)).
		WithPanel(limit(series("Stalls", "How often an event loop stalled for more than 250 ms, and for how long at most. Any stall makes the latencies of that second doubtful.", "short", 8,
			q(`sum(rate(loadgen_stalls_total{}[$__rate_interval]))`, "stalls per second"),
			q(`max(loadgen_max_stall_seconds{})`, "longest, in seconds")), 0.25)).
		WithPanel(series("Losses", "What should not happen, per second: connections lost, replies after their timeout, values that nobody wrote, errors.", "short", 24,
			q(`sum(rate(loadgen_reconnects_total{}[$__rate_interval]))`, "reconnects"),
			q(`sum(rate(loadgen_late_replies_total{}[$__rate_interval]))`, "late replies"),
			q(`sum(rate(loadgen_foreign_values_total{}[$__rate_interval]))`, "foreign values"),
			q(`sum(rate(loadgen_errors_total{}[$__rate_interval]))`, "errors")))
}

// target returns the dashboard of the target's side, beside the load.
func target() *dashboard.DashboardBuilder {
	return ofOneRun("loadgen-target", "Target", "What the target does, on the time axis of the load.").
		WithPanel(series("Load", "Ops per second that were due, and that ended ok. Compare the moment when the lines part with the moment when the figures below bend.", "ops", 12,
			q(`sum by (phase) (rate(loadgen_ops_due_total{}[$__rate_interval]))`, "due {{phase}}"),
			q(`sum by (phase) (rate(loadgen_ops_total{,outcome="ok"}[$__rate_interval]))`, "ok {{phase}}"))).
		WithPanel(asserted(series("Response", "The p99 of response, from when ops were due.", "s", 12,
			q(quantile("0.99", "op", "loadgen_response_seconds", good), "{{op}}")).ScaleDistribution(logarithmic()),
			ofAnOp+`(latency[.](ok|miss)[.])?response`+latency)).
		WithPanel(asserted(series("Observations", "What the plan's observations last read at the target, each in its own unit. Click a series in the legend to see it alone.", "short", 12,
			q(`max by (observe, field) (loadgen_observed{})`, "{{observe}} {{field}}")),
			path+`observe[.[][^ */+]+`+reading)).
		WithPanel(asserted(series("Observations, how fast", "How the same figures change per second: of a counter, such as evicted_keys, this is its rate.", "short", 12,
			q(`max by (observe, field) (deriv(loadgen_observed{}[$__rate_interval]))`, "{{observe}} {{field}}")),
			path+`observe[.[][^ */+]+[.]rate`)).
		WithPanel(asserted(series("Hit ratio", "The share of gets that found their key: by the target's own count, by the caches that loadgen keeps, and by the replies to gets. Where they differ, others use the target, too.", "percentunit", 8,
			q(share(`loadgen_observed{,field=~"keyspace_hits|get_hits"}`, `loadgen_observed{,field=~"keyspace_(hits|misses)|get_(hits|misses)"}`, "observe"), "{{observe}}"),
			q(share(`loadgen_cache_gets_total{,result="hit"}`, `loadgen_cache_gets_total{}`, "phase"), "caches of {{phase}}"),
			q(share(`loadgen_ops_total{,op="get",outcome="ok"}`, `loadgen_ops_total{,op="get",outcome=~"ok|miss"}`, "phase"), "gets of {{phase}}")),
			path+"hit_ratio")).
		WithPanel(asserted(series("Evictions", "Items per second that were evicted or expired. A target that evicts has less memory than the plan's items need.", "ops", 8,
			q(`sum by (observe, field) (rate(loadgen_observed{,field=~"evicted_keys|evictions|expired_keys"}[$__rate_interval]))`, "{{observe}} {{field}}"),
			q(`sum by (phase) (rate(loadgen_cache_evictions_total{}[$__rate_interval]))`, "caches of {{phase}}")),
			path+`(evicted_keys|evictions|expired_keys)[.]rate`)).
		WithPanel(series("Loads", "Gets per second that missed a cache and asked the source, and how many of them are under way, which climbs in a stampede.", "short", 8,
			q(`sum by (phase) (rate(loadgen_cache_loads_total{}[$__rate_interval]))`, "loads per second, {{phase}}"),
			q(`sum by (phase) (rate(loadgen_cache_load_seconds_total{}[$__rate_interval]))`, "under way, {{phase}}"))).
		WithPanel(asserted(series("Memory", "What the items take, by the target's own count, with its limit if it has one, and in the caches that loadgen keeps.", "bytes", 8,
			q(`sum by (observe, field) (loadgen_observed{,field=~"used_memory|used_memory_rss|maxmemory|bytes|limit_maxbytes"})`, "{{observe}} {{field}}"),
			q(`sum by (phase) (loadgen_cache_bytes{}) > 0`, "caches of {{phase}}")),
			path+`(used_memory|used_memory_rss|bytes)`+reading)).
		WithPanel(asserted(series("Items", "How many items are in the target, and in the caches that loadgen keeps. A line that stays flat while puts go on is a full cache.", "short", 8,
			q(`sum by (observe) (loadgen_observed{,field=~"curr_items|db[0-9]+_keys"})`, "{{observe}}"),
			q(`sum by (phase) (loadgen_cache_entries{}) > 0`, "caches of {{phase}}")),
			path+`(curr_items|db[0-9]+_keys)`+reading)).
		WithPanel(asserted(series("Memory of an item", "The target's memory divided by its items. That includes what an empty target takes; loadgen size tells the two apart.", "bytes", 8,
			q(`sum by (observe) (loadgen_observed{,field=~"used_memory|bytes"}) / (sum by (observe) (loadgen_observed{,field=~"curr_items|db[0-9]+_keys"}) > 0)`, "{{observe}}"),
			q(`sum by (phase) (loadgen_cache_bytes{}) / (sum by (phase) (loadgen_cache_entries{}) > 0)`, "caches of {{phase}}")),
			path+"per_item")).
		WithPanel(series("Requests by endpoint", "Requests per second. An endpoint is named by its place in the plan; failed requests timed out, ended in an error or were refused.", "reqps", 12,
			q(`sum by (target, endpoint, result) (rate(loadgen_endpoint_requests_total{}[$__rate_interval]))`, "{{target}} {{endpoint}} {{result}}"))).
		WithPanel(series("Connections away", "How many connections to each endpoint are lost and not yet made again: while a node is down, all of them.", "short", 12,
			q(`sum by (target, endpoint) (rate(loadgen_endpoint_away_seconds_total{}[$__rate_interval]))`, "{{target}} {{endpoint}}"))).
		WithPanel(series("Bytes", "Payload bytes on sockets per second. Of a driver whose own client does not count what it sends, only what it receives is shown.", "binBps", 12,
			q(`sum by (op) (rate(loadgen_received_bytes_total{}[$__rate_interval]))`, "received {{op}}"),
			q(`sum by (op) (rate(loadgen_sent_bytes_total{}[$__rate_interval]))`, "sent {{op}}"))).
		WithPanel(states("Events", "A bar lasts as long as an event of the plan, such as a killed node.", 12, goesOn,
			q(`max by (phase, event) (loadgen_event{})`, "{{phase}} {{event}}")))
}
