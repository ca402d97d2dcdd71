package experiment

import (
	"math/rand/v2"
	"slices"

	"github.com/loadgen/loadgen/pkg/plan"
)

// Turn is one run of an experiment.
type Turn struct {
	Variant    int // index in the experiment's variants
	Repetition int // from 1
}

// Schedule returns the order in which an experiment's variants run. If interleaved, every odd round has all variants in a random order drawn from the
// seed, and the next round has them in reverse order, so that drift and effects of earlier runs affect all variants equally. A gate's rounds draw each
// its own order, and there are more of them, for pairs that do not count.
func Schedule(e *plan.Experiment, seed uint64) []Turn {
	var turns []Turn
	if e.Sequential() {
		for v := range e.Variants {
			for r := range e.Repeat {
				turns = append(turns, Turn{v, r + 1})
			}
		}
		return turns
	}
	random := rand.New(rand.NewPCG(seed, 1))
	var order []int
	rounds := e.Repeat
	if e.Gate != nil {
		rounds += mostAgain
	}
	for r := range rounds {
		if r%2 == 0 || e.Gate != nil {
			order = random.Perm(len(e.Variants))
		} else {
			slices.Reverse(order)
		}
		for _, v := range order {
			turns = append(turns, Turn{v, r + 1})
		}
	}
	return turns
}
