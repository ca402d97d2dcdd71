package prom

import (
	"slices"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric name with its type, help text and labels.
type family struct {
	name   string
	kind   dto.MetricType
	help   string
	labels []string
}

// id is the index of a family.
type id int

const (
	runActive id = iota
	runCompleteness
	runValidity
	runAssertions

	assertHolds
	assertLimit
	eventOn
	observed

	phaseActive
	phaseValidity
	phaseOffered
	phaseReconnects
	phaseLateReplies
	phaseForeign
	phaseErrors
	phaseStalls
	phaseMaxStall
	setupDue
	setupOps
	endpointRequests
	endpointAway

	cacheGets
	cacheHitRatio
	cacheLoads
	cacheLoadTime
	cacheCoalesced
	cacheUnavailable
	cacheUncached
	cacheEvictions
	cacheCleared
	cacheEntries
	cacheBytes

	opsDue
	opsEnded
	opsInFlight
	keysDue
	keysEnded
	requestsEnded
	requestsInFlight
	received
	sent
	response
	service
	writePart
	syncPart
	lag
	ack

	scenariosDue
	scenariosEnded
	scenariosInFlight
	scenarioResponse

	stepsDue
	stepsEnded
	stepsInFlight
	stepResponse

	workerUp
	workerLastSeen
	workerOffset
	workerUncertainty
	workerCPU

	numFamilies int = iota
)

const (
	counter   = dto.MetricType_COUNTER
	gauge     = dto.MetricType_GAUGE
	histogram = dto.MetricType_HISTOGRAM
)

var (
	ofRun      = []string{"run"}
	ofAssert   = []string{"run", "assert"}
	ofPhase    = []string{"run", "phase"}
	ofOp       = []string{"run", "phase", "op"}
	ofClass    = []string{"run", "phase", "op", "class"}
	ofScenario = []string{"run", "phase", "scenario"}
	ofStep     = []string{"run", "phase", "scenario", "step", "target"}
	ofWorker   = []string{"run", "worker"}
)

var families = [numFamilies]family{
	runActive:       {"loadgen_run_active", gauge, "1 while the run goes on, 0 once it has ended.", ofRun},
	runCompleteness: {"loadgen_run_completeness", gauge, "How much of the plan was carried out, so far: 0 complete, or capped (the cap of its experiment ended it, as planned), 1 degraded, 2 aborted, 3 failed.", ofRun},
	runValidity:     {"loadgen_run_validity", gauge, "Validity of the worst phase that has ended: 0 valid, 1 suspect, 2 invalid.", ofRun},
	runAssertions:   {"loadgen_run_assertions", gauge, "The plan's asserts: 0 not evaluated, 1 all pass, 2 some fail, 3 some could not be decided and none fails.", ofRun},

	assertHolds: {"loadgen_assert", gauge, "An assert of the plan: 1 it holds, 0 it does not; -1 until the end of the run, where asserts are evaluated, or if it could not be decided.", ofAssert},
	assertLimit: {"loadgen_assert_limit", gauge, "The constant that an assert compares a figure with, in the figure's unit; absent if it compares two figures or joins several conditions.", []string{"run", "assert", "figure"}},
	eventOn:     {"loadgen_event", gauge, "1 from when an event of a phase happened until it is undone or the phase is over, else 0; only on the coordinator's page, and not for flushes of caches that workers keep.", []string{"run", "phase", "event"}},
	observed:    {"loadgen_observed", gauge, "The last value of a field of an observation, in its own unit, even if it is a counter; NaN before the first, and after a probe that did not get it.", []string{"run", "observe", "field"}},

	phaseActive:      {"loadgen_phase_active", gauge, "1 while the phase is under way.", ofPhase},
	phaseValidity:    {"loadgen_phase_validity", gauge, "Whether the phase's figures can be believed: 0 valid, 1 suspect, 2 invalid; -1 before it has ended.", ofPhase},
	phaseOffered:     {"loadgen_phase_offered_ops_per_second", gauge, "Ops per second that the schedule of an open phase wants now, counting all ops of its scenarios as if none failed; 0 in a closed phase.", ofPhase},
	phaseReconnects:  {"loadgen_reconnects_total", counter, "Connections opened again after a loss.", ofPhase},
	phaseLateReplies: {"loadgen_late_replies_total", counter, "Replies to requests that had timed out already; discarded.", ofPhase},
	phaseForeign:     {"loadgen_foreign_values_total", counter, "Values read that loadgen had not written.", ofPhase},
	phaseErrors:      {"loadgen_errors_total", counter, "Errors with a text; the texts are in the result.", ofPhase},
	phaseStalls:      {"loadgen_stalls_total", counter, "Times that an event loop stalled for more than 250 ms.", ofPhase},
	phaseMaxStall:    {"loadgen_max_stall_seconds", gauge, "The longest time that an event loop stalled.", ofPhase},
	setupDue:         {"loadgen_setup_ops_due_total", counter, "Ops of the setup, before the load, that were due; in a phase with a setup.", ofPhase},
	setupOps:         {"loadgen_setup_ops_total", counter, "Ops of the setup that have ended, by outcome.", []string{"run", "phase", "outcome"}},
	endpointRequests: {"loadgen_endpoint_requests_total", counter, "Requests of all ops, by endpoint: answered, or failed (timeout, error and refused).", []string{"run", "phase", "target", "endpoint", "result"}},
	endpointAway:     {"loadgen_endpoint_away_seconds_total", counter, "Time for which connections that were lost had not been made again, summed over connections: its rate is how many are away.", []string{"run", "phase", "target", "endpoint"}},

	cacheGets:        {"loadgen_cache_gets_total", counter, "Gets that read through a cache and have ended, by result: hit or miss.", []string{"run", "phase", "result"}},
	cacheHitRatio:    {"loadgen_cache_hit_ratio", gauge, "Share of the phase's gets so far whose value the cache had; NaN before the first.", ofPhase},
	cacheLoads:       {"loadgen_cache_loads_total", counter, "Gets that missed and asked the source.", ofPhase},
	cacheLoadTime:    {"loadgen_cache_load_seconds_total", counter, "Time that all loads took together: its rate is how many are under way.", ofPhase},
	cacheCoalesced:   {"loadgen_cache_coalesced_total", counter, "Gets that missed and waited for another get's load.", ofPhase},
	cacheUnavailable: {"loadgen_cache_unavailable_total", counter, "Gets that the cache did not answer; they count as neither hit nor miss.", ofPhase},
	cacheUncached:    {"loadgen_cache_uncached_total", counter, "Values that the cache refused.", ofPhase},
	cacheEvictions:   {"loadgen_cache_evictions_total", counter, "Entries that made room for others.", ofPhase},
	cacheCleared:     {"loadgen_cache_cleared_total", counter, "Times that a cache was emptied.", ofPhase},
	cacheEntries:     {"loadgen_cache_entries", gauge, "Entries in the caches that loadgen keeps.", ofPhase},
	cacheBytes:       {"loadgen_cache_bytes", gauge, "Bytes of their keys and values.", ofPhase},

	opsDue:           {"loadgen_ops_due_total", counter, "Ops that the schedule wanted; one that waits for a slot is counted when it starts or is shed.", ofOp},
	opsEnded:         {"loadgen_ops_total", counter, "Ops that have ended, by outcome; shed ones were never started.", []string{"run", "phase", "op", "outcome"}},
	opsInFlight:      {"loadgen_ops_in_flight", gauge, "Ops started and not ended: due minus all outcomes.", ofOp},
	keysDue:          {"loadgen_keys_due_total", counter, "Keys of ops that the schedule wanted; only where ops have several.", ofOp},
	keysEnded:        {"loadgen_keys_total", counter, "Keys of ops that have ended, by outcome; only where ops have several.", []string{"run", "phase", "op", "outcome"}},
	requestsEnded:    {"loadgen_requests_total", counter, "Requests that have ended, by result: answered (including by a redirect), timeout, error; refused ones were never sent.", []string{"run", "phase", "target", "op", "result"}},
	requestsInFlight: {"loadgen_requests_in_flight", gauge, "Requests sent and neither answered nor given up.", []string{"run", "phase", "target", "op"}},
	received:         {"loadgen_received_bytes_total", counter, "Bytes received.", ofOp},
	sent:             {"loadgen_sent_bytes_total", counter, "Bytes sent; absent for a driver whose own client does not count them.", ofOp},
	response:         {"loadgen_response_seconds", histogram, "From the time an op was due to its end, by class of outcome.", ofClass},
	service:          {"loadgen_service_seconds", histogram, "From the start of an op to its end, by class of outcome.", ofClass},
	writePart:        {"loadgen_write_seconds", histogram, "The part of an op's service that is not its wait for durability; of ops that ended ok and store in logs with a sync of their own (msync or fdatasync).", ofOp},
	syncPart:         {"loadgen_sync_seconds", histogram, "The part of an op's service that is its wait for durability; with loadgen_write_seconds, and empty as that is where the worker cannot tell them apart, as in memory.", ofOp},
	lag:              {"loadgen_lag_seconds", histogram, "From the time an op was due to its start.", ofOp},
	ack:              {"loadgen_ack_seconds", histogram, "From the start of a replicated op to its k-th good answer.", []string{"run", "phase", "op", "k"}},

	scenariosDue:      {"loadgen_scenarios_due_total", counter, "Scenarios that the schedule wanted.", ofScenario},
	scenariosEnded:    {"loadgen_scenarios_total", counter, "Scenarios that have ended, by outcome: that of the step that ended them.", []string{"run", "phase", "scenario", "outcome"}},
	scenariosInFlight: {"loadgen_scenarios_in_flight", gauge, "Scenarios started and not ended.", ofScenario},
	scenarioResponse:  {"loadgen_scenario_response_seconds", histogram, "From the time a scenario was due to the end of its last op, including think time between steps, by class of outcome.", []string{"run", "phase", "scenario", "class"}},

	stepsDue:      {"loadgen_steps_due_total", counter, "Ops of a step of a scenario that were due.", ofStep},
	stepsEnded:    {"loadgen_steps_total", counter, "Ops of a step that have ended, by outcome.", append(slices.Clone(ofStep), "outcome")},
	stepsInFlight: {"loadgen_steps_in_flight", gauge, "Ops of a step started and not ended.", ofStep},
	stepResponse:  {"loadgen_step_response_seconds", histogram, "From the time an op of a step was due to its end, by class of outcome; due is, for all steps but the first, the end of the previous step plus think time.", append(slices.Clone(ofStep), "class")},

	workerUp:          {"loadgen_worker_up", gauge, "1 while the worker takes part, 0 once it is lost or released.", ofWorker},
	workerLastSeen:    {"loadgen_worker_last_seen_seconds", gauge, "Time since the worker's last heartbeat; they come once a second.", ofWorker},
	workerOffset:      {"loadgen_worker_clock_offset_seconds", gauge, "The worker's monotonic clock minus the coordinator's; they start at different moments, so look at the change.", ofWorker},
	workerUncertainty: {"loadgen_worker_clock_uncertainty_seconds", gauge, "By how much the clock offset may be off.", ofWorker},
	workerCPU:         {"loadgen_worker_cpu_seconds_total", counter, "Processor time of the worker's process.", ofWorker},
}

// describe returns the descriptions of all families, in order.
func describe() (descs [numFamilies]*prometheus.Desc) {
	for i, f := range families {
		descs[i] = prometheus.NewDesc(f.name, f.help, f.labels, nil)
	}
	return descs
}
