// Package reason gives programs codes for why a figure is doubtful or missing. The same reasons in words contain figures and may be reworded, so
// nothing should depend on them. docs/result.md explains the codes.
package reason

// Code identifies a reason. "" means none, or a result from before codes existed.
type Code string

// Why is a reason: its code, and its words.
type Why struct {
	Code Code
	Text string
}

// Codes for why figures of a phase are suspect or invalid.
const (
	AllMissed         Code = "all_missed"         // none of many reads found what it asked for
	AnotherRun        Code = "another_run"        // values of another run were read where this one puts
	CannotTell        Code = "cannot_tell"        // what was measured does not answer what was asked; alone, it makes the exit code 7
	CacheAway         Code = "cache_away"         // a cache gave no answer, and gets went to its source
	ClientBound       Code = "client_bound"       // the generator's loop was so busy that the figures measure it, not the target
	ClocksApart       Code = "clocks_apart"       // the loading workers' clocks are too far apart for the length of the plateau
	CountsDisagree    Code = "counts_disagree"    // two counts of the same thing differ
	CpuQuota          Code = "cpu_quota"          // a CPU quota kept the generator from running
	Drift             Code = "drift"              // rate or response drifted from the beginning to the end
	Durability        Code = "durability"         // workers wrote with different durability
	EventFailed       Code = "event_failed"       // an event of the phase did not happen, or happened only in part
	ExpectHits        Code = "expect_hits"        // fewer gets than expect_hits were hits, or none was answered
	ForeignValues     Code = "foreign_values"     // values were read that loadgen did not write
	GarbageCollection Code = "garbage_collection" // the generator paused for garbage collection
	GeneratorBusy     Code = "generator_busy"     // the generator's loop was busy, but the figures still measure the target
	GoScheduler       Code = "go_scheduler"       // runnable goroutines of the generator waited for a thread
	HitRatio          Code = "hit_ratio"          // the share of gets that hit differs from hit_ratio
	Interrupted       Code = "interrupted"        // the generator's loop was kept from its processor, for long or often
	Ledgers           Code = "ledgers"            // the counts do not add up
	LogFailed         Code = "log_failed"         // a log failed
	LostEntries       Code = "lost_entries"       // acknowledged entries were not in the log
	LostWrites        Code = "lost_writes"        // acknowledged writes were not in the store
	LostTime          Code = "lost_time"          // sessions of a closed load lost time with ops that were not answered, or without a connection
	MaxBad            Code = "max_bad"            // more ops failed than max_bad allows
	Neighbours        Code = "neighbours"         // other programs used the machine's processors
	NeverSettled      Code = "never_settled"      // the load never got past its warm-up
	NoOps             Code = "no_ops"             // no op was due, or none ended on which a number could be based
	NoPlateau         Code = "no_plateau"         // the whole load was never on at the same time
	NoRateHeld        Code = "no_rate_held"       // a search found no rate that held
	OthersBeside      Code = "others_beside"      // servers answered requests of others, too
	Overloaded        Code = "overloaded"         // the target sustained less than was offered
	PolicyLimit       Code = "policy_limit"       // a worker's policy held the load back
	Retransmits       Code = "retransmits"        // TCP retransmitted much
	RunQueue          Code = "run_queue"          // the generator's loop waited for a processor
	SearchEnded       Code = "search_ended"       // a search ended before it found its answer
	SetupFailed       Code = "setup_failed"       // ops of a setup, a populate, a clear or a verify, which must all succeed, did not
	Stalled           Code = "stalled"            // a closed load's target stood still, or some of its slots hung
	StartedLate       Code = "started_late"       // ops started late
	StoodStill        Code = "stood_still"        // the generator stood still for more than 250 ms
	StoppedByPlan     Code = "stopped_by_plan"    // the plan's stop ended the load
	UnaskedBytes      Code = "unasked_bytes"      // servers sent what no request had asked for
	Unended           Code = "unended"            // ops or requests had not ended when the phase had
	Unverified        Code = "unverified"         // what was written to a log was not verified
	WorkerLost        Code = "worker_lost"        // a worker was lost, or its load ended early
	WrongValues       Code = "wrong_values"       // what was read cannot be what was asked for
)

// Counts says whether a doubt is about counts and values, and not about time.
func (c Code) Counts() bool {
	switch c {
	case AllMissed, AnotherRun, CountsDisagree, Durability, ExpectHits, ForeignValues, HitRatio, Ledgers, LogFailed, LostEntries, LostWrites, OthersBeside, Unended, Unverified,
		WrongValues:
		return true
	}
	return false
}

// Bound says on which side of a figure the truth may lie.
type Bound string

// Bounds of figures that a doubt moves in one direction only; docs/truth.md has the proofs.
const (
	AtLeast Bound = "at_least" // the rate that a search found
	AtMost  Bound = "at_most"  // response times
)

// Bound says what is left of the figures that a doubt touches: "" if they may be too high or too low. AtMost holds of open loads whose late ops can only
// have been answered later.
func (c Code) Bound() Bound {
	switch c {
	case ClientBound, SearchEnded:
		return AtLeast
	case CpuQuota, GarbageCollection, GeneratorBusy, GoScheduler, Interrupted, Retransmits, RunQueue, StartedLate, StoodStill:
		return AtMost
	}
	return ""
}

// Codes for why a run got no further, besides SetupFailed, StoppedByPlan and WorkerLost.
const (
	Capped           Code = "capped"            // the experiment's cap ended it, or left it out
	CoordinatorEnded Code = "coordinator_ended" // its coordinator ended; the result is made from what the coordinator had saved
	NotCarriedOut    Code = "not_carried_out"   // something could not be done; the error says what
	NotKept          Code = "not_kept"          // its result could not be written
	stoppedByUser    Code = "stopped_by_user"
	TimedOut         Code = "timed_out" // --timeout ended the run
)

// User is the reason of a run that the user stopped.
var User = Why{stoppedByUser, "stopped by the user"}

// Codes for the outcome of a comparison with a baseline, besides those of internal/result/experiment.
const (
	Baseline     Code = "baseline"      // it is the baseline itself
	NoDifference Code = "no_difference" // no difference was shown
)

// Codes for why a load has no warm-up, besides NeverSettled and NoPlateau.
const (
	CutShort      Code = "cut_short"      // the load ended before its warm-up did
	AlreadySteady Code = "already_steady" // steady from the beginning
	Growing       Code = "growing"        // the phase asks how figures change over time
	NotLookedFor  Code = "not_looked_for" // a populate, a clear or a level
	TooShort      Code = "too_short"      // too short to tell
)

// Codes for why a number is null, besides those of a phase, of a comparison, of a warm-up and of the environment (internal/result/run).
const (
	CounterReset  Code = "counter_reset"  // the server's counter was reset
	NotAlike      Code = "not_alike"      // the compared things also differ in other respects
	NotApplicable Code = "not_applicable" // the plan has nothing that the number would describe
	NotCounted    Code = "not_counted"    // the kernel, executor or driver does not count it here
	NotRecovered  Code = "not_recovered"  // after an event, the load did not return to its earlier level
	NotTold       Code = "not_told"       // the probe did not report it, or there was no probe
	NoTime        Code = "no_time"        // the number is a share of a time that is 0
	OpsFailed     Code = "ops_failed"     // ops failed, and how long they would have taken is unknown
	SharedDevice  Code = "shared_device"  // other programs used the device
	SharedTime    Code = "shared_time"    // several kinds of op share the phase's time
	TooFar        Code = "too_far"        // it is a prediction for many more ops than were run
	TooFew        Code = "too_few"        // there are too few ops, values or seconds
)
