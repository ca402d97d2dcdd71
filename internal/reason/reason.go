// Package reason names why a figure is no better, or why there is none, for programs: what a result says in words holds figures and may be worded
// anew, and nothing goes by it. docs/result.md explains the codes.
package reason

// Code names a reason. "" is none, or that of a result whose form is older than codes.
type Code string

// Why is a reason: its code, and its words.
type Why struct {
	Code Code
	Text string
}

// Codes of why figures of a phase are suspect or invalid.
const (
	ClientBound       Code = "client_bound"       // the generator's loop was busy, and they are its own
	ClocksApart       Code = "clocks_apart"       // the clocks of loading workers are too far apart for the length of the plateau
	CpuQuota          Code = "cpu_quota"          // a CPU quota kept the generator from running
	Drift             Code = "drift"              // rate or response changed from the beginning to the end
	Durability        Code = "durability"         // workers wrote with different durability
	ExpectHits        Code = "expect_hits"        // fewer gets were hits than expect_hits says, or none was answered
	ForeignValues     Code = "foreign_values"     // values were read that loadgen has not written
	GarbageCollection Code = "garbage_collection" // the generator's memory was tidied up meanwhile
	GeneratorBusy     Code = "generator_busy"     // the generator's loop was busy, though not so much that they are its own
	GoScheduler       Code = "go_scheduler"       // what could run in the generator waited for a thread
	HitRatio          Code = "hit_ratio"          // other shares of gets were hits than hit_ratio asks for
	Interrupted       Code = "interrupted"        // the generator's loop was kept from its processor, for long or often
	Ledgers           Code = "ledgers"            // what is counted does not add up
	LogFailed         Code = "log_failed"         // a log failed
	LostEntries       Code = "lost_entries"       // acknowledged entries were not in the log
	MaxBad            Code = "max_bad"            // more ops went wrong than max_bad says
	Neighbours        Code = "neighbours"         // other programs had the machine's processors
	NeverSettled      Code = "never_settled"      // the load never got past its warm-up
	NoOps             Code = "no_ops"             // no op was due, or none ended that a number could be of
	NoPlateau         Code = "no_plateau"         // the load was at no time all there
	NoRateHeld        Code = "no_rate_held"       // a search found no rate that held
	Overloaded        Code = "overloaded"         // less was sustained than was offered
	Retransmits       Code = "retransmits"        // TCP sent much again
	RunQueue          Code = "run_queue"          // the generator's loop waited for a processor
	SearchEnded       Code = "search_ended"       // a search ended before it had its answer
	SetupFailed       Code = "setup_failed"       // ops that must all succeed, of a setup, a populate or a clear, did not
	StartedLate       Code = "started_late"       // ops started late
	StoodStill        Code = "stood_still"        // the generator stood still for more than 250 ms
	StoppedByPlan     Code = "stopped_by_plan"    // the plan's stop ended the load
	Unended           Code = "unended"            // ops or requests had not ended when the phase had
	Unverified        Code = "unverified"         // what was written to a log was not verified
	WorkerLost        Code = "worker_lost"        // a worker was lost, or its load ended early
)

// Codes of why a run got no further, beside SetupFailed, StoppedByPlan and WorkerLost.
const (
	Capped           Code = "capped"            // it was ended by the cap of its experiment, or left out for that
	CoordinatorEnded Code = "coordinator_ended" // its result was made of what a coordinator had kept that ended before
	NotCarriedOut    Code = "not_carried_out"   // something could not be done, and it is an error what
	NotKept          Code = "not_kept"          // what came of it could not be written
	StoppedByUser    Code = "stopped_by_user"
	TimedOut         Code = "timed_out" // it was ended by --timeout
)

// User is the end that the user has asked for.
var User = Why{StoppedByUser, "stopped by the user"}

// Codes of what a comparison with a baseline has shown, beside those of internal/experiment.
const (
	Baseline     Code = "baseline"      // it is the baseline's own
	DiffersAlone Code = "differs_alone" // by itself, and not among all comparisons
	NoDifference Code = "no_difference" // none was shown
)

// Codes of why a load has no warm-up, beside NeverSettled and NoPlateau.
const (
	CutShort      Code = "cut_short"      // the load ended before its warm-up did
	AlreadySteady Code = "already_steady" // from its beginning on
	Growing       Code = "growing"        // what changes over time is what is looked at
	NotLookedFor  Code = "not_looked_for" // in a populate, a clear or a level
	TooShort      Code = "too_short"      // to tell
)

// Codes of why a number is null, beside those of a phase, of a comparison, of a warm-up and of the environment (internal/run).
const (
	CounterReset  Code = "counter_reset"  // what a server counts was started anew
	NotAlike      Code = "not_alike"      // what it compares differs in more than that
	NotApplicable Code = "not_applicable" // the plan asks for nothing that it could be of
	NotCounted    Code = "not_counted"    // no kernel, executor or driver counts it here
	NotTold       Code = "not_told"       // a probe did not bring it, or none was sent
	NoTime        Code = "no_time"        // what it is a share of is 0
	OpsFailed     Code = "ops_failed"     // ops failed, and nobody knows what they would have taken
	SharedTime    Code = "shared_time"    // several kinds of op share the phase's time
	TooFar        Code = "too_far"        // it is of many more ops than were run
	TooFew        Code = "too_few"        // there are too few ops, values or seconds
)
