package rundir

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Differences returns where two results, or experiments, differ in their JSON: a line for each path, with both values. It is empty if they are equal.
func Differences(a, b any) ([]string, error) {
	var trees [2]any
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v)
		if err == nil {
			err = json.Unmarshal(text, &trees[i])
		}
		if err != nil {
			return nil, fmt.Errorf("compare results: %w", err)
		}
	}
	return differ(nil, "", trees[0], trees[1]), nil
}

// differ appends the differences of two decoded values at a path.
func differ(list []string, path string, a, b any) []string {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			names := maps.Clone(a)
			maps.Copy(names, b)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				list = differ(list, path+"."+name, a[name], b[name])
			}
			return list
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				list = differ(list, fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
			}
			return list
		}
	default:
		if a == b {
			return list
		}
	}
	return append(list, fmt.Sprintf("%s: %s, not %s", path[min(1, len(path)):], brief(a), brief(b)))
}

// brief is a value as JSON, cut short.
func brief(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const most = 120
	if runes := []rune(string(text)); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(text)
}
