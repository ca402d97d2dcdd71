package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// maxQuantiles bounds the columns of tables.
const maxQuantiles = 16

// writeQuantiles says how to write quantiles.
const writeQuantiles = "Write a list of numbers above 0 and below 1, such as quantiles = [0.5, 0.95, 0.999]."

// quantiles reads a list of quantiles.
func (b *block) quantiles() (all []float64) {
	v, ok := b.Value("quantiles")
	if !ok {
		return nil
	}
	if !v.CanIterateElements() || v.Type().IsMapType() || v.Type().IsObjectType() || v.LengthInt() == 0 {
		b.Bad("quantiles", dialect.Describe(v), writeQuantiles)
		return nil
	}
	for it := v.ElementIterator(); it.Next(); {
		_, of := it.Element()
		if of.Type() != cty.Number || of.IsNull() {
			b.Bad("quantiles", dialect.Describe(of), writeQuantiles)
			return nil
		}
		q, _ := of.AsBigFloat().Float64()
		all = append(all, q)
	}
	return all
}

// quantiles checks the quantiles to show.
func (v *validator) quantiles() {
	const path = "plan.quantiles"
	all := v.plan.Quantiles
	if len(all) > maxQuantiles {
		v.fault(fmt.Sprintf("plan: %d quantiles", len(all)), fmt.Sprintf("Write at most %d.", maxQuantiles), path)
		return
	}
	for i, q := range all {
		text := strconv.FormatFloat(q, 'f', -1, 64)
		switch {
		case q == 0:
			v.fault("plan: quantiles: 0 is the smallest sample", "Leave it out: min is always there.", path)
		case q == 1:
			v.fault("plan: quantiles: 1 is the largest sample", "Leave it out: max is always there.", path)
		case !(q > 0 && q < 1):
			v.fault("plan: quantiles: "+text, writeQuantiles, path)
		case quantity.QuantileName(q) == "":
			v.fault("plan: quantiles: "+text+" has too many decimals", "Write at most six, such as 0.999999.", path)
		case slices.Contains(all[:i], q):
			v.fault("plan: quantiles: "+text+" twice", "Name each once.", path)
		}
	}
}

// QuantileNames returns the names of the quantiles that the plan wants shown, in ascending order: p50, p95, p999.
func (p *Plan) QuantileNames() []string {
	return namesOf(slices.Sorted(slices.Values(p.Quantiles)), quantity.QuantileName)
}
