package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/result/run"
)

// differences lists what differs in the plans and the environments of runs.
func differences(a, b []Kept) []Difference {
	plans := differ{of: "plan", first: len(a)}
	machines := differ{of: "environment", first: len(a)}
	var texts, facts []any
	for _, k := range slices.Concat(a, b) {
		texts, facts = append(texts, tree(k.Plan)), append(facts, surroundings(k.Run))
	}
	plans.walk("", texts)
	machines.walk("", facts)
	return append(append([]Difference{}, plans.found...), machines.found...)
}

// tree parses JSON without rounding its numbers. It returns nil for a run without a plan.
func tree(text []byte) any {
	var v any
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if in.Decode(&v) != nil {
		return nil
	}
	return v
}

// surroundings returns the facts of a run's environment and workers that may affect figures.
func surroundings(r *run.Run) any {
	text, err := json.Marshal(r.Environment)
	if err != nil {
		panic(err) // impossible: it was read from JSON
	}
	all, _ := tree(text).(map[string]any)
	delete(all, "nulls")
	servers := map[string]any{}
	for target, endpoints := range r.Environment.Servers {
		facts := map[string][]string{}
		for _, said := range endpoints {
			for name, value := range said {
				if name != "process_id" && !slices.Contains(facts[name], value) { // differs at every start
					facts[name] = append(facts[name], value)
				}
			}
		}
		one := map[string]any{}
		for name, values := range facts {
			one[name] = strings.Join(slices.Sorted(slices.Values(values)), ", ")
		}
		servers[target] = one
	}
	all["servers"] = servers
	all["loadgen"] = r.Loadgen
	all["workers"] = json.Number(fmt.Sprint(len(r.Workers)))
	executors := map[string]any{}
	for name, p := range r.Phase {
		executors[name] = fmt.Sprintf("%s, %d loops", p.Generator.Executor, p.Generator.Loops)
	}
	all["generator"] = executors
	return all
}

// differ walks the trees of several runs at once. The runs of the first side come first.
type differ struct {
	of    string
	first int
	found []Difference
}

// unlike lists names in a plan's JSON that say where something is written, and are not compared.
var unlike = []string{"file", "line"}

// walk compares the values at a path, one per run.
func (d *differ) walk(path string, values []any) {
	if objects, ok := asObjects(values); ok {
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			if !slices.Contains(unlike, name) {
				d.walk(strings.TrimPrefix(path+"."+name, "."), objects[name])
			}
		}
		return
	}
	if d.named(path, values) {
		return
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = plainly(path, v)
	}
	d.add(path, texts)
}

// asObjects returns the values by name if all are objects or null and at least one is an object.
func asObjects(values []any) (map[string][]any, bool) {
	all, found := map[string][]any{}, false
	for i, v := range values {
		object, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, false
		}
		found = found || ok
		for name, inner := range object {
			if all[name] == nil {
				all[name] = make([]any, len(values))
			}
			all[name][i] = inner
		}
	}
	return all, found
}

// named compares lists of named objects by name, and reports if the names or their order differ.
func (d *differ) named(path string, values []any) bool {
	elements, orders := map[string][]any{}, make([]string, len(values))
	var order []string
	for i, v := range values {
		list, ok := v.([]any)
		if !ok && v != nil {
			return false
		}
		for _, element := range list {
			name := nameOf(element)
			if name == "" {
				return false
			}
			if elements[name] == nil {
				elements[name], order = make([]any, len(values)), append(order, name)
			}
			elements[name][i] = element
			orders[i] += ", " + name
		}
		orders[i] = strings.TrimPrefix(orders[i], ", ")
	}
	d.add(path, orders)
	for _, name := range order {
		if !slices.Contains(elements[name], nil) {
			d.walk(path+"."+name, elements[name])
		}
	}
	return true
}

func nameOf(element any) string {
	object, _ := element.(map[string]any)
	for _, key := range []string{"name", "op"} {
		if name, ok := object[key].(string); ok {
			return name
		}
	}
	return ""
}

// nothing stands for a value that is absent or empty.
const nothing = "–"

// plainly formats a value for people.
func plainly(path string, v any) string {
	text := ""
	switch v := v.(type) {
	case nil:
	case string:
		text = v
	case json.Number:
		text = v.String()
		if n, err := v.Int64(); err == nil && strings.HasSuffix(path, "_ns") {
			text = time.Duration(n).String()
		}
	default:
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // impossible: it was read from JSON
		}
		text = string(b)
	}
	if text == "" || text == "[]" {
		return nothing
	}
	return text
}

// add records a difference if the runs' texts differ. Zero equals an absent value.
func (d *differ) add(path string, texts []string) {
	if slices.Contains(texts, nothing) {
		for i, text := range texts {
			if slices.Contains([]string{"", "0", "0s", "false"}, text) {
				texts[i] = nothing
			}
		}
	}
	if len(distinct(texts)) > 1 {
		d.found = append(d.found, Difference{Of: d.of, Path: path, Values: []string{
			strings.Join(distinct(texts[:d.first]), " | "), strings.Join(distinct(texts[d.first:]), " | "),
		}})
	}
}

// distinct returns each text once, in order.
func distinct(texts []string) (list []string) {
	for _, text := range texts {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}
