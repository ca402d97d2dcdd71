package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Weight is an op's share in a mix, relative to the sum of weights.
type Weight struct {
	Op     string  `json:"op"` // a verb's name in Plan.Words
	Weight float64 `json:"weight"`
}

// mix reads the phase's ops. Those of populate, clear and verify follow from their names.
func (b *block) mix(ph *Phase) {
	switch {
	case ph.Populate != nil:
		ph.Ops = []Weight{{driver.Put.String(), 1}}
	case ph.Clear != nil:
		ph.Ops = []Weight{{driver.Delete.String(), 1}}
	case ph.Verify != nil:
		ph.Ops = []Weight{{driver.Get.String(), 1}}
	case ph.Closed == nil && ph.Schedule() == nil: // reported as having no load model
		ph.Ops = b.weights("ops")
		b.r.Wrong[b.Path+".ops"] = true
	case ph.Trace() != nil:
		ph.Ops, ph.Trace().ops = ph.Trace().ops, nil
		if ph.Chain() != nil {
			ph.OnMiss = PutOnMiss
		}
		b.without("the trace says what ops there are", "Leave ops out.", "ops")
	case !b.Has("ops") && slices.ContainsFunc(b.Body.Blocks, func(in *hclsyntax.Block) bool { return in.Type == "scenario" }):
	case b.Require("ops", "Write ops = { get = 9, put = 1 }, or another mix."):
		ph.Ops = b.weights("ops")
	}
	if ph.walks() {
		b.without("populate always puts, clear always deletes and verify always gets", "Leave ops out.", "ops")
	}
}

// weights reads a mix such as { put = 1, get = 9 }, in verb order. It leaves out ops with weight 0.
func (b *block) weights(name string) []Weight {
	const write = "Write a mix such as { put = 1, get = 9 }."
	list := []Weight{}
	v, ok := b.Value(name)
	if !ok {
		return list
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		b.Bad(name, dialect.Describe(v), write)
		return list
	}
	for it := v.ElementIterator(); it.Next(); {
		k, w := it.Element()
		op := k.AsString()
		if !slices.Contains(b.r.ops, op) {
			b.Bad(name, "unknown op "+dialect.Quote(op), cmp.Or(Meant("ops", op), dialect.Instead(op, b.r.ops, "%s")))
			continue
		}
		if w.IsNull() || w.Type() != cty.Number {
			b.Bad(name, fmt.Sprintf("the weight of %s is %s", op, dialect.Describe(w)), write)
			continue
		}
		weight, _ := w.AsBigFloat().Float64()
		if weight < 0 {
			b.Bad(name, fmt.Sprintf("the weight of %s is %g", op, weight), write)
		}
		if weight > 0 {
			list = append(list, Weight{op, weight})
		}
	}
	slices.SortFunc(list, func(x, y Weight) int { return compareOps(x.Op, y.Op) })
	return list
}

// mix checks a mix: ops that the target knows, in verb order, each once.
func (v *validator) mix(ph *Phase, at part, name string, mix []Weight) {
	path, last := at.path+"."+name, ""
	if len(mix) == 0 {
		v.fault(fmt.Sprintf("%s: %s is empty", at.where, name), "Write an op with a weight above 0: { get = 1 }.", path, at.path)
	}
	for _, w := range mix {
		switch {
		case last != "" && compareOps(last, w.Op) >= 0:
			v.fault(fmt.Sprintf("%s: %s out of order or twice", at.where, w.Op), "Write each op once, in the order "+dialect.Listed(opNames(v.plan.Targets))+".", path)
		case !(w.Weight > 0 && w.Weight <= maxWeightOf):
			v.fault(fmt.Sprintf("%s: the weight of %s is %g", at.where, w.Op, w.Weight), "Write a weight above 0 and up to 1e9.", path)
		default:
			v.known(v.plan.Target(ph.Target), at, w.Op, path)
		}
		last = w.Op
	}
	for model, only := range map[string]driver.Verb{"populate": driver.Put, "clear": driver.Delete, "verify": driver.Get} {
		if is := model == ph.model(); is && name == "ops" && (len(mix) != 1 || mix[0] != Weight{only.String(), 1}) {
			v.fault(fmt.Sprintf("%s: %s with other ops than %s", at.where, model, only), "Leave ops out.", path)
		}
	}
}

// known checks that the plan knows an op, and that the target does, through its driver or a definition of its own.
func (v *validator) known(t *Target, at part, op, path string) {
	if op == ChainOp && v.plan.chains() {
		return
	}
	all := opNames(v.plan.Targets)
	if !slices.Contains(all, op) {
		v.fault(fmt.Sprintf("%s: unknown op %s", at.where, dialect.Quote(op)), dialect.Instead(op, all, "%s"), path)
		return
	}
	if t == nil || t.Op(op) != nil {
		return
	}
	d := driverNamed(v.drivers, t.Driver)
	if d == nil {
		return
	}
	verb, store := everyStores(op)
	if store && d.Outcomes(verb) != nil {
		return
	}
	var has []string
	for k := driver.Verb(0); !k.Own(); k++ {
		if d.Outcomes(k) != nil {
			has = append(has, k.String())
		}
	}
	if !store {
		for _, o := range t.Ops {
			has = append(has, o.Name)
		}
		slices.SortFunc(has, compareOps)
		v.fault(fmt.Sprintf("%s: target %q has no op %s", at.where, t.Name, dialect.Quote(op)), "It has "+dialect.Listed(slices.Compact(has))+".", path, at.path+".target")
		return
	}
	v.fault(fmt.Sprintf("%s: driver %q has no %s", at.where, t.Driver, op), "It has "+dialect.Listed(has)+".", path, at.path+".target")
}

// weightOf returns an op's weight in a mix, 0 if absent.
func weightOf(mix []Weight, v driver.Verb) float64 {
	if i := slices.IndexFunc(mix, func(w Weight) bool { return w.Op == v.String() }); i >= 0 {
		return mix[i].Weight
	}
	return 0
}
