package workload

import (
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// scenario is a compiled scenario.
type scenario struct {
	verbs []driver.Verb
	same  []bool // the step has the key of the one before
	think []time.Duration
}

// setScenarios compiles those of a phase.
func (s *Source) setScenarios(list []plan.Scenario) error {
	total, sum := 0.0, 0.0
	for _, from := range list {
		total += from.Weight
	}
	if len(list) > 0 && !(total > 0 && !math.IsInf(total, 1)) {
		return fmt.Errorf("the weights of its scenarios add up to %v", total)
	}
	for _, from := range list {
		var c scenario
		for _, step := range from.Steps {
			verb, ok := driver.ParseVerb(step.Op)
			if !ok {
				return fmt.Errorf("op %q is not known", step.Op)
			}
			c.verbs = append(c.verbs, verb)
			c.same = append(c.same, step.Key == "same")
			c.think = append(c.think, step.Think)
		}
		s.longest = max(s.longest, len(c.verbs))
		s.scenarios = append(s.scenarios, c)
		sum += from.Weight
		s.upto = append(s.upto, word(sum/total))
	}
	return nil
}

// Scenarios returns how many scenarios sessions draw from; 0: they draw ops.
func (s *Source) Scenarios() int { return len(s.scenarios) }

// Longest returns how many ops a scenario has at most.
func (s *Source) Longest() int { return s.longest }

// Think returns how long after the end of the step before a step of a scenario is due.
func (s *Source) Think(scenario, step int) time.Duration { return s.scenarios[scenario].think[step] }

// NextScenario draws the stream's next scenario and fills ops, which has room for the longest, with its steps as Next does with one op. It reports
// which it is and how many steps it has, or false at the stream's end. All steps are drawn at once, so that what a stream yields does not
// depend on how they end.
func (st *Stream) NextScenario(ops []op.Op) (number, steps int, ok bool) {
	if st.n == st.end {
		return 0, 0, false
	}
	s := st.source
	if len(s.upto) > 1 {
		for x := st.random.Uint64(); number < len(s.upto)-1 && x >= s.upto[number]; number++ {
		}
	}
	c := &s.scenarios[number]
	var index uint64
	for i, verb := range c.verbs {
		o := &ops[i]
		o.Stream, o.N, o.Verb = st.number, st.n*uint64(s.longest)+uint64(i), verb
		if !c.same[i] {
			index = st.pick(verb)
		}
		st.fill(o, index)
	}
	st.n++
	return number, len(c.verbs), true
}
