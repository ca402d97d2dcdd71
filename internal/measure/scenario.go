package measure

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// MaxScenarios is how many scenarios a phase has at most: the binary form has a bit for each.
const MaxScenarios = 32

// scenario returns the ledger of scenario i, made at first use.
func (t *Totals) scenario(i int) *Op {
	for len(t.Scenarios) <= i {
		t.Scenarios = append(t.Scenarios, new(Op))
	}
	return t.Scenarios[i]
}

// AddScenario counts a scenario that became due.
func (t *Totals) AddScenario(i int) { t.scenario(i).Due++ }

// ShedScenario counts one that is due and will never start.
func (t *Totals) ShedScenario(i int) { t.scenario(i).Outcomes[driver.Shed]++ }

// AddScenarioInFlight enters a change in the number of those that have started and not ended.
func (t *Totals) AddScenarioInFlight(i int, change int64) { t.scenario(i).InFlight += change }

// RecordScenario counts a scenario that ended, as Record does an op; the sample's verb is not looked at. Its start is that of its first op, its end
// that of its last.
func (t *Totals) RecordScenario(i int, s *Sample) {
	t.scenario(i).record(s, 1, s.Due, t.Origin)
	t.addTime(s, 1)
}

// MaxSteps is how many steps a scenario has at most: the binary form has a bit for each.
const MaxSteps = 64

// Step names a step of a scenario, both by number.
type Step struct{ Scenario, Step int }

// step returns the ledger of a step, made at first use.
func (t *Totals) step(at Step) *Op {
	o := t.scenario(at.Scenario)
	for len(o.Steps) <= at.Step {
		o.Steps = append(o.Steps, new(Op))
	}
	return o.Steps[at.Step]
}

// AddStep counts an op of a step that became due; AddDue counts it with its verb.
func (t *Totals) AddStep(at Step) { t.step(at).Due++ }

// ShedStep counts one that is due and will never start; Shed does with its verb.
func (t *Totals) ShedStep(at Step) { t.step(at).Outcomes[driver.Shed]++ }

// AddStepInFlight enters a change in the number of those that have started and not ended; AddInFlight does with their verb.
func (t *Totals) AddStepInFlight(at Step, change int64) { t.step(at).InFlight += change }

// RecordStep counts the op of a step whose scenario was due, and had its slot, from a time on. The slot's time is counted with the scenario.
func (t *Totals) RecordStep(at Step, s *Sample, turn int64) {
	t.of(s.Verb).record(s, 1, turn, t.Origin)
	t.step(at).record(s, 1, turn, t.Origin)
}

// mergeScenarios adds what o counted.
func (t *Totals) mergeScenarios(o *Totals) {
	for i, from := range o.Scenarios {
		if !from.empty() {
			t.scenario(i).merge(from)
		}
	}
}

// scenarioName is what an error calls a scenario.
func scenarioName(i int) string { return fmt.Sprintf("scenario %d", i+1) }
