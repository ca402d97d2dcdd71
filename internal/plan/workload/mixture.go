package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// mixture draws verbs by weight.
type mixture struct {
	n     int // number of verbs in use
	verbs [driver.NumVerbs]driver.Verb
	upto  [driver.NumVerbs]uint64 // 2⁶⁴ × the share of verbs[0..i]; unused for the last verb
}

func newMixture(weights []plan.Weight, words driver.Words) (mixture, error) {
	var byVerb [driver.NumVerbs]float64
	total := 0.0
	for _, w := range weights {
		verb, ok := words.Verb(w.Op)
		if !ok {
			return mixture{}, fmt.Errorf("op %q is not known", w.Op)
		}
		if !(w.Weight >= 0) {
			return mixture{}, fmt.Errorf("the weight of op %q is %v, which is not a share", w.Op, w.Weight)
		}
		byVerb[verb] += w.Weight
		total += w.Weight
	}
	if total == 0 || math.IsInf(total, 1) {
		return mixture{}, fmt.Errorf("the weights of its ops add up to %v", total)
	}
	var m mixture
	sum := 0.0
	for verb, weight := range byVerb {
		if weight == 0 {
			continue
		}
		sum += weight
		m.verbs[m.n] = driver.Verb(verb)
		m.upto[m.n] = word(sum / total)
		m.n++
	}
	return m, nil
}

// word returns 2⁶⁴ × share, or the largest word for 1 and above: a random word is below it with probability share.
func word(share float64) uint64 {
	if share < 1 {
		return uint64(math.Ldexp(share, 64))
	}
	return math.MaxUint64
}

// draw returns a verb with the probability of its share, exact to 2⁻⁵³. With a single verb it draws no random number.
func (m *mixture) draw(random *rand.PCG) driver.Verb {
	if m.n > 1 {
		return m.choose(random)
	}
	return m.verbs[0]
}

func (m *mixture) choose(random *rand.PCG) driver.Verb {
	i := 0
	for x := random.Uint64(); i < m.n-1 && x >= m.upto[i]; i++ {
	}
	return m.verbs[i]
}
