package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// schemaVersion is the version of the JSON form. It changes when a path disappears or changes its meaning.
const schemaVersion = 2

// Run is the result of one execution of a plan.
type Run struct {
	Schema      int                 `json:"schema"`
	Header                          // its fields are at the top level
	Seconds     float64             `json:"seconds"` // from StartedAt to the verdict
	Verdict     Verdict             `json:"verdict"`
	ExitCode    int                 `json:"exit_code"`
	Recovered   bool                `json:"recovered"` // made by loadgen runs recover because the coordinator had died
	Asserts     []AssertResult      `json:"asserts"`   // in the plan's order
	PhaseOrder  []string            `json:"phase_order"`
	Phase       map[string]*Phase   `json:"phase"`
	Environment machine.Environment `json:"environment"`

	Fleet                 []Worker      `json:"fleet"` // in the order of Workers
	Losses                []worker.Loss `json:"losses"`
	CoordinatorCPUSeconds float64       `json:"coordinator_cpu_seconds"` // user + system of the coordinator's process, which is also a worker's if the run has no other

	Imported   bool   `json:"-"`          // it came in a pack
	Unverified string `json:"unverified"` // why it could not be verified when it was imported; "" if it was, or if it was made here

	stopped []reason.Why // the reasons passed to Conclude
}

// Header identifies a run.
type Header struct {
	ID               string    `json:"id"`
	Plan             string    `json:"plan"`                        // the plan's name
	PlanDigest       string    `json:"plan_digest"`                 // SHA-256 of its canonical JSON, in hex
	StartedAt        time.Time `json:"started_at"`                  // RFC 3339, UTC
	Loadgen          string    `json:"loadgen"`                     // version of the program that coordinated
	Workers          []string  `json:"workers"`                     // names
	Strict           bool      `json:"strict"`                      // suspect counts as invalid
	Experiment       string    `json:"experiment"`                  // the experiment that it belongs to, or ""
	ExperimentDigest string    `json:"experiment_digest,omitempty"` // the experiment's plan_digest; absent without an experiment, and in results of an older loadgen
	Variant          string    `json:"variant"`                     // the variant whose values the plan ran with; "" for the variables' defaults
	Repetition       int       `json:"repetition"`                  // its number among the variant's runs in the experiment, or the user's own number for it, from 1; 0 without either
	DrawsAs          int       `json:"draws_as"`                    // the repetition whose random draws its loads made, from 1; 0 in results of an older loadgen, where all drew as the first

	Labels map[string]string `json:"labels"` // set by the user

	// Drivers says where each driver comes from that the plan uses and that loadgen does not bring: module@version sum, by name.
	Drivers map[string]string `json:"drivers,omitempty"`
}

// AssertResult is the result of one of the plan's asserts.
type AssertResult struct {
	Name   string `json:"name"`
	That   string `json:"that"`
	OK     *bool  `json:"ok"`     // null if it could not be decided, which counts as a failure
	Value  string `json:"value"`  // the two sides with units: "37.2 ms > 20 ms"; for a condition that is no comparison, the figures that it names
	Reason string `json:"reason"` // why OK is null
}

// New returns the result of a run in which nothing has happened yet: complete, valid, exit code 0.
func New(h Header, env machine.Environment) *Run {
	r := &Run{
		Schema:      schemaVersion,
		Header:      h,
		Asserts:     []AssertResult{},
		PhaseOrder:  []string{},
		Phase:       map[string]*Phase{},
		Environment: env,
		Fleet:       []Worker{},
		Losses:      []worker.Loss{},
	}
	if r.Workers == nil {
		r.Workers = []string{}
	}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	if r.Environment.Servers == nil {
		r.Environment.Servers = map[string]map[string]map[string]string{}
	}
	if r.Environment.Nulls == nil {
		r.Environment.Nulls, r.Environment.NullCodes = map[string]string{}, map[string]reason.Code{}
	}
	r.Conclude(Complete)
	return r
}

// Fail concludes a run that could not be carried out.
func (r *Run) Fail(err error) *Run {
	r.Conclude(Failed, reason.Why{Code: reason.NotCarriedOut, Text: err.Error()})
	return r
}

// NotKept adds the reason that a run's files could not be written, after the reasons for its end.
func (r *Run) NotKept(err error) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ") // joined errors have several lines
	r.Conclude(Failed, append(slices.Clip(r.stopped), reason.Why{Code: reason.NotKept, Text: text})...)
}

// Add appends a phase that ran, in the order of execution. It panics if the name was added before.
func (r *Run) Add(name string, p *Phase) {
	if _, there := r.Phase[name]; there {
		panic("run: phase " + name + " added twice")
	}
	r.PhaseOrder = append(r.PhaseOrder, name)
	r.Phase[name] = p
	if l := p.Log; l != nil {
		var bound *worker.Log
		if b := r.Phase[l.Bound]; b != nil {
			bound = b.Log
		}
		if why := shareOf(l, bound); why.Text != "" {
			p.Null("log.bound_share", why)
		}
	}
	r.judge()
}

// Why returns the reason for the null at a path, given as its steps ("phase", "get", "op", "get", "rate"), or nothing if none was recorded.
func (r *Run) Why(steps ...string) (why reason.Why) {
	switch {
	case len(steps) > 1 && steps[0] == "environment":
		return whyNull(r.Environment.Nulls, r.Environment.NullCodes, steps[1:])
	case len(steps) > 1 && steps[0] == "phase":
		if p := r.Phase[steps[1]]; p != nil {
			return p.Why(steps[2:]...)
		}
		text := fmt.Sprintf("phase %s has not run", steps[1])
		if is := r.Verdict.Completeness; is != Complete && is != Degraded { // a run in progress may lack phases
			text = fmt.Sprintf("phase %s was not run: the run is %s", steps[1], is)
		}
		return reason.Why{Code: reason.NotApplicable, Text: text}
	}
	return reason.Why{}
}

// Why says why a number of the phase, or an object that contains it, is null.
func (p *Phase) Why(steps ...string) reason.Why { return whyNull(p.Nulls, p.NullCodes, steps) }

// whyNull looks up the path in nulls, then the objects that contain it.
func whyNull(nulls map[string]string, codes map[string]reason.Code, steps []string) (why reason.Why) {
	for ; len(steps) > 0; steps = steps[:len(steps)-1] {
		path := strings.Join(steps, ".")
		if text, ok := nulls[path]; ok {
			return reason.Why{Code: codes[path], Text: text}
		}
	}
	return reason.Why{}
}
