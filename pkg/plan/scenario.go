package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/lang"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

const (
	maxScenarios = 32 // of a phase: each has latencies of its own
	maxScenes    = 64 // steps of a scenario: a session draws them all when it begins
)

// Scenario is several ops that a session carries out one after another, on its own connections. One that fails ends it.
type Scenario struct {
	Name   string         `json:"name"`
	Weight float64        `json:"weight"` // relative to the sum over the phase's scenarios
	Steps  []ScenarioStep `json:"steps"`  // one or more
}

// ScenarioStep is one op of a scenario.
type ScenarioStep struct {
	Op    string        `json:"op"`       // a driver.Verb's name
	Key   string        `json:"key"`      // "new" by the dataset's pick, or "same" as the step before
	Think time.Duration `json:"think_ns"` // from the end of the step before to the due time of this one
}

// keys returns how many keys the scenario picks.
func (s *Scenario) keys() (n int) {
	for _, step := range s.Steps {
		if step.Key == "new" {
			n++
		}
	}
	return n
}

// StepsPerArrival returns how many ops a session's draw from the phase's mix has on average, when none fails: 1 without scenarios.
func (ph *Phase) StepsPerArrival() float64 {
	if len(ph.Scenarios) == 0 {
		return 1
	}
	steps, weight := 0.0, 0.0
	for _, s := range ph.Scenarios {
		steps += s.Weight * float64(len(s.Steps))
		weight += s.Weight
	}
	return steps / weight
}

// MostSteps returns how many ops such a draw has at most.
func (ph *Phase) MostSteps() int {
	most := 1
	for _, s := range ph.Scenarios {
		most = max(most, len(s.Steps))
	}
	return most
}

// mixOf returns how many ops of each verb the scenarios bring, by weight.
func mixOf(scenarios []Scenario) []Weight {
	var byVerb [driver.NumVerbs]float64
	for _, s := range scenarios {
		for _, step := range s.Steps {
			if verb := verbOf(step.Op); verb >= 0 {
				byVerb[verb] += s.Weight
			}
		}
	}
	list := []Weight{}
	for verb, weight := range byVerb {
		if weight > 0 {
			list = append(list, Weight{driver.Verb(verb).String(), weight})
		}
	}
	return list
}

// scenarios reads the phase's scenarios. Each op of its mix is then a scenario of one step, by the op's name.
func (b *block) scenarios(ph *Phase) {
	ph.Scenarios = []Scenario{}
	for _, inner := range b.labelled("scenario", true) {
		inner.Expect([]string{"weight"}, nil, "step")
		s := Scenario{Name: inner.label, Weight: 1, Steps: []ScenarioStep{}}
		if v, ok := inner.As("weight", cty.Number, "Write a number, relative to the other weights."); ok {
			s.Weight, _ = v.AsBigFloat().Float64()
		}
		for _, step := range inner.labelled("step", false) {
			step.Expect([]string{"key", "think"}, nil)
			st := ScenarioStep{Op: step.label, Key: "new"}
			step.Text("key", &st.Key)
			step.Duration("think", &st.Think)
			s.Steps = append(s.Steps, st)
		}
		ph.Scenarios = append(ph.Scenarios, s)
	}
	if len(ph.Scenarios) == 0 {
		return
	}
	var singles []Scenario
	for _, w := range ph.Ops {
		singles = append(singles, Scenario{w.Op, w.Weight, []ScenarioStep{{Op: w.Op, Key: "new"}}})
	}
	ph.Scenarios = slices.Concat(singles, ph.Scenarios)
	ph.Ops = mixOf(ph.Scenarios)
}

// scenarios checks those of a phase, and that its mix is theirs.
func (v *validator) scenarios(ph *Phase, at part) {
	if len(ph.Scenarios) == 0 {
		return
	}
	if ph.Closed == nil && ph.Schedule() == nil {
		v.fault(at.where+": scenarios in populate or clear", "Leave them out.", at.path+".scenario."+ph.Scenarios[0].Name, at.path)
		return
	}
	if n := len(ph.Scenarios); n > maxScenarios {
		v.fault(fmt.Sprintf("%s: %d scenarios, the ops of the mix among them", at.where, n), fmt.Sprintf("Write at most %d.", maxScenarios), at.path)
	}
	seen := map[string]bool{}
	for i := range ph.Scenarios {
		s := &ph.Scenarios[i]
		in := part{at.path + ".scenario." + s.Name, at.where + ", scenario " + lang.Quote(s.Name)}
		switch {
		case !namePattern.MatchString(s.Name):
			v.fault(in.where+": its name", writeName, in.path)
		case seen[s.Name]:
			v.fault(in.where+": a second of that name", "Give it another name; an op of the mix is a scenario of one step by the op's name.", in.path)
		}
		seen[s.Name] = true
		v.scenario(ph, s, in)
	}
	if !slices.Equal(ph.Ops, mixOf(ph.Scenarios)) {
		v.fault(at.where+": ops are not what the scenarios bring", "Write their sums by op.", at.path+".ops")
	}
}

func (v *validator) scenario(ph *Phase, s *Scenario, at part) {
	if !(s.Weight > 0 && s.Weight <= maxWeightOf) {
		v.fault(fmt.Sprintf("%s: weight = %g", at.where, s.Weight), "Write a weight above 0 and up to 1e9.", at.path+".weight")
	}
	if n := len(s.Steps); n < 1 || n > maxScenes {
		v.fault(fmt.Sprintf("%s: %d steps", at.where, n), fmt.Sprintf(`Write 1 to %d steps: step "get" {}`, maxScenes), at.path)
	}
	for i, step := range s.Steps {
		in := part{fmt.Sprintf("%s.step.%d", at.path, i+1), fmt.Sprintf("%s, step %d", at.where, i+1)}
		if verb := verbOf(step.Op); verb >= 0 {
			v.supported(ph, in, driver.Verb(verb), in.path)
		} else {
			v.fault(fmt.Sprintf("%s: unknown op %s", in.where, lang.Quote(step.Op)), lang.Instead(step.Op, verbNames(), "%s"), in.path)
		}
		v.oneOf(in, "key", step.Key, "new", "same")
		v.lasts(in, "think", step.Think, 0)
		if i == 0 && step.Key == "same" {
			v.fault(in.where+`: key = "same"`, "Leave key out: no step is before it.", in.path+".key")
		}
		if i == 0 && step.Think > 0 {
			v.fault(in.where+": think before the first step", "Leave it out, or write think in the closed block: it is between scenarios.", in.path+".think")
		}
	}
	if d := v.plan.Dataset(ph.Dataset); d != nil && d.Keys.Pick == "sequence" && s.keys() != 1 {
		v.fault(fmt.Sprintf("%s: %d keys of dataset %q in sequence", at.where, s.keys(), d.Name),
			`Write key = "same" in all steps but the first: in a sequence each scenario takes one key.`, at.path, "dataset."+d.Name+".keys.pick")
	}
	if t := v.plan.Target(ph.Target); t != nil {
		if _, local := driverNamed(v.drivers, t.Driver).(localfile.Driver); local {
			v.fault(fmt.Sprintf("%s: on driver %q", at.where, t.Driver), "Write ops = { write = 1 }, or another mix: the ops of a log stand for themselves.", at.path)
		}
	}
}
