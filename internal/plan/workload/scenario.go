package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// scenario is a compiled scenario.
type scenario struct{ steps []step }

// step is an op of a scenario. A plan's step that repeats becomes several.
type step struct {
	verb   driver.Verb
	same   bool // it has the previous op's key, or the key with that number
	think  time.Duration
	thinks *pace.Times // nil if always think
	target int         // index into the targets of the phase
	from   *supply     // source of its key and value
	number int         // the step's index in the plan's scenario
}

// setScenarios compiles scenarios of a phase.
func (s *Source) setScenarios(p *plan.Plan, ph *plan.Phase, list []plan.Scenario, supplies map[string]*supply) error {
	targets, words := ph.Targets(), p.Words()
	total, sum := 0.0, 0.0
	for _, from := range list {
		total += from.Weight
	}
	if len(list) > 0 && !(total > 0 && !math.IsInf(total, 1)) {
		return fmt.Errorf("the weights of its scenarios add up to %v", total)
	}
	for _, from := range list {
		var c scenario
		for i, of := range from.Steps {
			verb, ok := words.Verb(of.Op)
			if !ok {
				return fmt.Errorf("op %q is not known", of.Op)
			}
			one := step{
				verb: verb, same: of.Same(), think: of.Think, thinks: of.Thinks, number: i,
				target: slices.Index(targets, of.TargetIn(ph)), from: supplies[of.DatasetIn(ph)],
			}
			c.steps = append(c.steps, slices.Repeat([]step{one}, of.Repeat())...)
		}
		s.longest = max(s.longest, len(c.steps))
		s.scenarios = append(s.scenarios, c)
		sum += from.Weight
		s.upto = append(s.upto, word(sum/total))
	}
	return nil
}

// Scenarios returns how many scenarios sessions draw from; 0 if they draw ops.
func (s *Source) Scenarios() int { return len(s.scenarios) }

// Longest returns the number of ops in the longest scenario.
func (s *Source) Longest() int { return s.longest }

// Think returns how long after the previous step's end a step of a scenario is due.
func (s *Source) Think(scenario, step int, random *rand.PCG) time.Duration {
	of := &s.scenarios[scenario].steps[step]
	if of.thinks != nil {
		return of.thinks.Draw(random)
	}
	return of.think
}

// Step returns the index of the plan's step that an op of a scenario belongs to.
func (s *Source) Step(scenario, op int) int { return s.scenarios[scenario].steps[op].number }

// NextScenario draws the stream's next scenario and fills ops, which has room for the longest, with its steps as Next does with one op. It
// returns the scenario's number and how many steps it has, or false at the stream's end. It draws all steps at once, so that what a stream
// yields does not depend on their outcomes.
func (st *Stream) NextScenario(ops []op.Op) (number, steps int, ok bool) {
	if st.Ended() {
		return 0, 0, false
	}
	s := st.source
	if len(s.upto) > 1 {
		for x := st.random.Uint64(); number < len(s.upto)-1 && x >= s.upto[number]; number++ {
		}
	}
	c := &s.scenarios[number]
	var index uint64
	for i := range c.steps {
		step, o := &c.steps[i], &ops[i]
		o.Stream, o.N, o.Verb, o.Target = st.number, st.n*uint64(s.longest)+uint64(i), step.verb, step.target
		switch {
		case step.from == &s.supply:
			if !step.same {
				index = st.pick(step.verb)
			}
			st.fill(o, index)
		default:
			if !step.same {
				index = step.from.draw(&st.random)
			}
			step.from.fill(o, step.from.keys.pool(int(st.number)%s.sessions), index, &st.random)
		}
	}
	if s.rows != nil {
		st.row = s.rows.draw(st)
	}
	st.n++
	return number, len(c.steps), true
}
