package coord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// entry records something the coordinator did or heard. Entries are kept among the workers' snapshots, in order, so that a run whose coordinator was
// killed can still be judged ([Recover]). Exactly one field is set.
type entry struct {
	Begin   *beginning          `json:"begin,omitempty"`
	Nodes   map[string][]string `json:"nodes,omitempty"`   // nodes that were started, by target
	Watched map[string]string   `json:"watched,omitempty"` // what each observation looks at, in words
	Member  *arrival            `json:"member,omitempty"`
	Step    *begun              `json:"step,omitempty"`
	Began   *time.Duration      `json:"began,omitempty"` // when the step before this entry began, on the run clock
	Final   *finalEntry         `json:"final,omitempty"`
	Failed  *failure            `json:"failed,omitempty"`
	Loss    *lossEntry          `json:"loss,omitempty"`
	Flush   *flushed            `json:"flush,omitempty"`
	Event   *happened           `json:"event,omitempty"`
	Stop    *stopped            `json:"stop,omitempty"`
	Over    string              `json:"over,omitempty"` // a search that ended before it had to
	End     *ended              `json:"end,omitempty"`
}

// beginning is the first entry.
type beginning struct {
	Header      run.Header          `json:"header"`
	Environment machine.Environment `json:"environment"`
	Fleet       []run.Worker        `json:"fleet"`
	Lease       time.Duration       `json:"lease"`   // how long a worker loads without hearing from the coordinator; 0 for as long as the coordinator runs
	Abort       bool                `json:"abort"`   // end the run when a worker is lost
	Replace     bool                `json:"replace"` // other workers may take the places of lost ones
}

// arrival is a worker that takes a lost worker's place.
type arrival struct {
	Index int        `json:"index"`
	Phase string     `json:"phase"` // the first phase it takes part in
	Is    run.Worker `json:"is"`
}

// begun is a step for which all workers were ready. It is on disk before they start; otherwise a coordinator killed at that moment would leave load
// without a trace.
type begun struct {
	Step  worker.Step   `json:"step"`  // without the workers' shares of it
	After time.Duration `json:"after"` // it began after this, on the run clock
	Facts facts         `json:"facts"`
}

// facts holds what the workers reported about a step before it began.
type facts struct {
	Found   map[string][]string                     `json:"found"`   // nodes of each target that is a cluster
	Servers map[string]map[string]map[string]string `json:"servers"` // what each endpoint of each target said about itself
	Parts   []partFacts                             `json:"parts"`   // by worker
}

type partFacts struct {
	Ops         uint64        `json:"ops"` // number of ops it will start; 0 if not known
	Remote      bool          `json:"remote"`
	Offset      time.Duration `json:"offset"`
	Uncertainty time.Duration `json:"uncertainty"`
}

// finalEntry is a worker's final report on a step, without what its snapshots already say.
type finalEntry struct {
	Worker int  `json:"worker"`
	Cut    bool `json:"cut"` // the worker ended early on its own
	measure.WholeGenerator
	Log         *worker.Log   `json:"log"`
	Uncertainty time.Duration `json:"uncertainty"`
}

// failure is a failure that a worker reported, which ended the step for all workers.
type failure struct {
	Worker int    `json:"worker"`
	Why    string `json:"why"`
}

// lossEntry is a worker that was lost.
type lossEntry struct {
	Worker int         `json:"worker"`
	Is     worker.Loss `json:"is"`
}

// flushed is a phase that emptied built-in nodes.
type flushed struct {
	Phase  string  `json:"phase"`
	Origin float64 `json:"origin"` // when it began, seconds on the run clock
}

// happened is an event of a step's phase that the coordinator has carried out.
type happened struct {
	Number int             `json:"number"` // in the phase
	Is     judge.Happening `json:"is"`
}

// stopped is a requested early end.
type stopped struct {
	Code reason.Code `json:"code"`
	Text string      `json:"text"`
}

// ended says how far a run got, with what its coordinator alone knows of it.
type ended struct {
	Completeness run.Completeness `json:"completeness"`
	Why          []reason.Why     `json:"why"`
	Seconds      float64          `json:"seconds"`
	CPUSeconds   float64          `json:"cpu_seconds"`
}

// End keeps how a run has ended, as the last entry, so that the run can be replayed. It returns the store's errors.
func End(store Store, r *run.Run) error {
	b, err := json.Marshal(entry{End: &ended{Completeness: r.Verdict.Completeness, Why: r.Stopped(), Seconds: r.Seconds, CPUSeconds: r.CoordinatorCPUSeconds}})
	if err != nil {
		return fmt.Errorf("keep how the run ended: %w", err)
	}
	return store.Append("", b)
}

// note keeps an entry. It is on disk no later than the snapshots that come after it.
func (c *coordinator) note(e entry) *commit {
	if c.journal == nil {
		return nil
	}
	b, err := json.Marshal(e)
	if err != nil { // a figure that JSON cannot represent; the run itself is not affected
		c.Logger.Warn("keep what the coordinator has done", "err", err)
		return nil
	}
	return c.journal.add("", b)
}

// noteNow keeps an entry, and returns once it is on disk.
func (c *coordinator) noteNow(e entry) error {
	kept := c.note(e)
	if kept == nil {
		return nil
	}
	kept.hurry()
	return kept.wait()
}

// readEntry decodes what note wrote.
func readEntry(b []byte) (e entry, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("read what the coordinator has kept: %w", err)
	}
	return e, nil
}

// entryOf returns the entry for a worker's final report.
func entryOf(i int, f *worker.Final, cut bool) entry {
	return entry{Final: &finalEntry{Worker: i, Cut: cut, WholeGenerator: f.Generator.Whole(), Log: f.Log, Uncertainty: f.Uncertainty}}
}

// final returns the report that the entry was made from, except its totals.
func (e *finalEntry) final() *worker.Final {
	return &worker.Final{Generator: e.Restored(), Log: e.Log, Uncertainty: e.Uncertainty}
}

// Acknowledged returns how many entries of logs the run's worker number i has reported as written, by phase, in a run that may have been killed.
func Acknowledged(records func(f func(worker, record []byte) error) error, i int) (map[string]uint64, error) {
	name, phases, written := "", map[int]string{}, map[string]uint64{}
	var snap measure.Snapshot
	return written, records(func(worker, record []byte) error {
		if len(worker) > 0 {
			if string(worker) != name {
				return nil
			}
			_, err := snap.Decode(record)
			for _, v := range []driver.Verb{driver.Append, driver.Write} {
				if op := snap.Delta.Ops[v]; err == nil && op != nil {
					written[phases[snap.Step]] += op.Outcomes[driver.OK]
				}
			}
			return err
		}
		e, err := readEntry(record)
		switch {
		case e.Begin != nil && i < len(e.Begin.Fleet):
			name = e.Begin.Fleet[i].Name
		case e.Member != nil && e.Member.Index == i:
			return fmt.Errorf("worker %s took the place of %s, and has files of its own", e.Member.Is.Name, name)
		case e.Step != nil:
			phases[e.Step.Step.Seq] = e.Step.Step.Phase
		}
		return err
	})
}
