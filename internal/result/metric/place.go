package metric

import (
	"reflect"
	"strings"
	"sync"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// place says where in a value the number with a path of its JSON is.
type place struct {
	fields   []int  // of structs within each other
	quantile string // that the plan names, of the latency that is there; "" for the number itself
}

// places are those of all numbers and objects, by type and path.
var places = sync.OnceValue(func() map[reflect.Type]map[string][]int {
	all := map[reflect.Type]map[string][]int{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[run.Ledger](), reflect.TypeFor[run.Causes](), reflect.TypeFor[run.Latency](), reflect.TypeFor[run.Figures](),
		reflect.TypeFor[run.Op](), reflect.TypeFor[run.Row](), reflect.TypeFor[run.Phase](),
	} {
		all[t] = map[string][]int{}
		enter(all[t], t, "", nil)
	}
	return all
})

// enter adds the fields of a struct of type t, and of those within it.
func enter(all map[string][]int, t reflect.Type, at string, fields []int) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f, inner := t.Field(i), append(fields[:len(fields):len(fields)], i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			enter(all, f.Type, at, inner)
		} else if f.IsExported() {
			all[at+name] = inner
			enter(all, f.Type, at+name+".", inner)
		}
	}
}

// placeIn returns the place of a path in the JSON of T, which must be there.
func placeIn[T any](path string) place {
	in := places()[reflect.TypeFor[T]()]
	if fields, ok := in[path]; ok {
		return place{fields: fields}
	}
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		_, ok := quantity.Quantile(path[i+1:])
		if fields, there := in[path[:i]]; ok && there {
			return place{fields, path[i+1:]}
		}
	}
	panic("metric: no number at " + path)
}

// number returns the number of a value: an int64, a uint64 or a float64; nil if it is null, or in an object that is.
func (p place) number(of any) any {
	v := reflect.ValueOf(of).Elem()
	for _, i := range p.fields {
		if v = reflect.Indirect(v.Field(i)); !v.IsValid() {
			return nil
		}
	}
	if p.quantile != "" {
		q := v.Addr().Interface().(interface{ Quantile(name string) *float64 }).Quantile(p.quantile)
		if v = reflect.Indirect(reflect.ValueOf(q)); !v.IsValid() {
			return nil
		}
	}
	return v.Interface()
}
