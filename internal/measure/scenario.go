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
