package expr

import (
	"reflect"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// resultType returns the type of a plan's result: the JSON of a run.Run with the plan's phases and ops.
func resultType(p *plan.Plan) cty.Type {
	return typeOf(reflect.TypeFor[run.Run](), nil, p)
}

// typeOf returns the type of the JSON of t at path.
func typeOf(t reflect.Type, path []string, p *plan.Plan) cty.Type {
	switch t.Kind() {
	case reflect.Pointer:
		return typeOf(t.Elem(), path, p)
	case reflect.Slice:
		return cty.List(typeOf(t.Elem(), path, p))
	case reflect.Map:
		keys, fixed := keysAt(path, p)
		if !fixed {
			return cty.Map(typeOf(t.Elem(), append(path, ""), p))
		}
		attrs := map[string]cty.Type{}
		for _, k := range keys {
			attrs[k] = typeOf(t.Elem(), append(path, k), p)
		}
		return cty.Object(attrs)
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return cty.String
		}
		attrs := map[string]cty.Type{}
		addFields(attrs, t, path, p)
		if t == reflect.TypeFor[run.Latency]() || t == reflect.TypeFor[run.RowResponse]() {
			for _, name := range p.QuantileNames() {
				attrs[name] = cty.Number
			}
		}
		return cty.Object(attrs)
	case reflect.String:
		return cty.String
	case reflect.Bool:
		return cty.Bool
	default:
		return cty.Number
	}
}

func addFields(attrs map[string]cty.Type, t reflect.Type, path []string, p *plan.Plan) {
	for f := range t.Fields() {
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Anonymous:
			addFields(attrs, f.Type, path, p)
		case f.IsExported() && name != "-":
			attrs[name] = typeOf(f.Type, append(path, name), p)
		}
	}
}

// keysAt returns the keys of the map at path, if the plan knows them.
func keysAt(path []string, p *plan.Plan) (keys []string, fixed bool) {
	switch {
	case path[0] != "phase":
		return nil, false
	case path[len(path)-1] == "quantiles":
		return p.QuantileNames(), true
	}
	if len(path) == 1 {
		for _, ph := range p.Phases {
			keys = append(keys, ph.Name)
		}
		return keys, true
	}
	mix := p.Phase(path[1]).Counted()
	rest := path[2:]
	switch rest[0] {
	case "observe", "probes":
		return observedAt(rest[1:], p), true
	case "setup":
		mix, rest = p.Phase(path[1]).Setup, rest[1:]
	case "levels":
		rest = rest[1:]
	}
	switch rest[0] {
	case "op":
		if len(rest) == 3 && rest[2] == "kind" {
			return kindsOf(p.Phase(path[1])), true
		}
		if len(rest) == 3 && rest[2] == "checks" {
			return p.Checks(p.Phase(path[1]), rest[1]), true
		}
	case "event":
		for _, ev := range p.Phase(path[1]).Events {
			keys = append(keys, ev.Name)
		}
		return keys, true
	case "scenario":
		for _, s := range p.Phase(path[1]).Scenarios {
			if len(rest) == 3 && rest[2] == "step" && rest[1] == s.Name {
				return s.StepNames(), true
			}
			keys = append(keys, s.Name)
		}
		return keys, true
	default:
		return nil, false
	}
	for _, w := range mix {
		keys = append(keys, w.Op)
	}
	return keys, true
}

// kindsOf returns the kinds of ops that a phase may have: of gets that read through a cache, or of chains.
func kindsOf(ph *plan.Phase) []string {
	chains := ph.Chain() != nil
	if len(ph.Behind) == 0 && !chains {
		return nil
	}
	return op.Kinds(chains)
}

// observedAt returns the names of observations or, below one, of its fields.
func observedAt(path []string, p *plan.Plan) (keys []string) {
	if len(path) == 0 {
		for _, o := range p.Observes {
			keys = append(keys, o.Name)
		}
		return keys
	}
	for _, f := range p.Observe(path[0]).Fields {
		keys = append(keys, f.Name)
	}
	return keys
}
