package rundir

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// MostDifferences is the most that [Differences] lists.
const MostDifferences = 1000

// Differences returns where two results, or experiments, differ in their JSON: a line for each path, with both values. It is empty if they are equal.
// It needs no memory for what is equal: one of them may have come in a pack.
func Differences(a, b any) []string {
	return differ(nil, "", reflect.ValueOf(a), reflect.ValueOf(b))
}

// differ appends the differences of two values at a path; the zero Value is for none.
func differ(list []string, path string, a, b reflect.Value) []string {
	for a.IsValid() && b.IsValid() && a.Type() == b.Type() && (a.Kind() == reflect.Pointer || a.Kind() == reflect.Interface) && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	switch {
	case len(list) == MostDifferences:
		return list
	case !a.IsValid() || !b.IsValid() || a.Type() != b.Type() || ownEncoder(a.Type()):
	case a.Kind() == reflect.Struct:
		for _, f := range reflect.VisibleFields(a.Type()) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			x, y := a.FieldByIndex(f.Index), b.FieldByIndex(f.Index)
			empty := strings.Contains(options, "omitempty") && (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Len()+y.Len() == 0
			if f.IsExported() && name != "-" && !f.Anonymous && !empty {
				list = differ(list, path+"."+cmp.Or(name, f.Name), x, y)
			}
		}
		return list
	case a.Kind() == reflect.Map && a.IsNil() == b.IsNil():
		names := a.MapKeys()
		for _, name := range b.MapKeys() {
			if !a.MapIndex(name).IsValid() {
				names = append(names, name)
			}
		}
		slices.SortFunc(names, func(x, y reflect.Value) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
		for _, name := range names {
			list = differ(list, fmt.Sprintf("%s.%v", path, name), a.MapIndex(name), b.MapIndex(name))
		}
		return list
	case (a.Kind() == reflect.Array || a.Kind() == reflect.Slice && a.IsNil() == b.IsNil()) && a.Len() == b.Len():
		for i := 0; i < a.Len() && len(list) < MostDifferences; i++ {
			list = differ(list, fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
		}
		return list
	case a.Kind() != reflect.Slice && a.Comparable() && a.Equal(b):
		return list
	}
	if x, y := jsonOf(a), jsonOf(b); x != y {
		list = append(list, fmt.Sprintf("%s: %s, not %s", path[min(1, len(path)):], brief(x), brief(y)))
	}
	return list
}

// ownEncoder says whether a type encodes itself.
func ownEncoder(t reflect.Type) bool { return t.Implements(reflect.TypeFor[json.Marshaler]()) }

// jsonOf is a value's JSON, of a long slice its length and beginning: it is shown, or compared with one of another length.
func jsonOf(v reflect.Value) string {
	if !v.IsValid() {
		return "null"
	}
	if v.Kind() == reflect.Slice && v.Len() > 100 {
		return fmt.Sprintf("%d of %s", v.Len(), jsonOf(v.Slice(0, 1)))
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// brief is a text, cut short.
func brief(text string) string {
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
