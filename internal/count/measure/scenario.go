package measure

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// MaxScenarios is the most scenarios that a phase can have: the binary form has a bit for each.
const MaxScenarios = 32

// scenario returns the ledger of scenario i, creating it at first use.
func (t *Totals) scenario(i int) *Op { return opAt(&t.Scenarios, i) }

// opAt returns the i-th ledger of a list, creating it and those before it at first use.
func opAt(list *[]*Op, i int) *Op {
	for len(*list) <= i {
		*list = append(*list, new(Op))
	}
	return (*list)[i]
}

// AddScenario counts a scenario that became due.
func (t *Totals) AddScenario(i int) { t.scenario(i).Due++ }

// ShedScenario counts a scenario that was due but will never start.
func (t *Totals) ShedScenario(i int) { t.scenario(i).Outcomes[driver.Shed]++ }

// AddScenarioInFlight adds a change in the number of scenarios that have started but not ended.
func (t *Totals) AddScenarioInFlight(i int, change int64) { t.scenario(i).InFlight += change }

// RecordScenario counts a scenario that ended, as Record does an op; it ignores the sample's verb. The sample's start is that of the scenario's first
// op, its end that of the last.
func (t *Totals) RecordScenario(i int, s *Sample) {
	t.scenario(i).record(s, 1, s.Due, t.Origin)
	t.addTime(s, 1)
}

// MaxSteps is the most steps that a scenario can have: the binary form has a bit for each.
const MaxSteps = 64

// Step identifies a step of a scenario, both by number.
type Step struct{ Scenario, Step int }

// step returns the ledger of a step, creating it at first use.
func (t *Totals) step(at Step) *Op { return opAt(&t.scenario(at.Scenario).Steps, at.Step) }

// AddStep counts an op of a step that became due; AddDue counts it for its verb.
func (t *Totals) AddStep(at Step) { t.step(at).Due++ }

// ShedStep counts an op of a step that was due but will never start; Shed counts it for its verb.
func (t *Totals) ShedStep(at Step) { t.step(at).Outcomes[driver.Shed]++ }

// AddStepInFlight adds a change in the number of a step's ops that have started but not ended; AddInFlight does so for their verb.
func (t *Totals) AddStepInFlight(at Step, change int64) { t.step(at).InFlight += change }

// RecordWithin counts an op of a scenario. turn is when its scenario was due, and its slot's turn began. The slot's time is counted with the scenario.
func (t *Totals) RecordWithin(s *Sample, turn int64) {
	t.of(s.Verb).record(s, 1, turn, t.Origin)
	if len(t.Stages) > 0 {
		t.inStage(s, 1, turn)
	}
}

// RecordStep does as RecordWithin, and counts the op for a step.
func (t *Totals) RecordStep(at Step, s *Sample, turn int64) {
	t.RecordWithin(s, turn)
	t.step(at).record(s, 1, turn, t.Origin)
}

// mergeOps adds the ledgers of a list.
func mergeOps(to *[]*Op, from []*Op) {
	for i, o := range from {
		if !o.empty() {
			opAt(to, i).merge(o)
		}
	}
}

// scenarioName returns what errors call scenario i.
func scenarioName(i int) string { return fmt.Sprintf("scenario %d", i+1) }
