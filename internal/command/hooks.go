package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/fleet/hook"
)

// hooks are the commands that plans may ask for, by name.
type hooks map[string]hook.Hook

// parseHooks parses the values of --allow-exec.
func parseHooks(texts []string) (hooks, error) {
	all := hooks{}
	for _, text := range texts {
		h, err := hook.Parse(text)
		if err != nil {
			return nil, err
		}
		if _, twice := all[h.Name]; twice {
			return nil, fmt.Errorf("--allow-exec names %s twice: rename one", h.Name)
		}
		all[h.Name] = h
	}
	return all, nil
}

// satisfy checks that every hook named by a plan is allowed, and says which allowed hooks no plan names.
func (h hooks) satisfy(wanted []string, words io.Writer) error {
	var missing []string
	for _, name := range wanted {
		if _, ok := h[name]; !ok {
			missing = append(missing, "hook."+name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the plan runs %s, which the command line does not allow: write --allow-exec '%s=COMMAND ARGUMENT…', and the same for each other",
			strings.Join(missing, ", "), strings.TrimPrefix(missing[0], "hook."))
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if !slices.Contains(wanted, name) {
			fmt.Fprintf(words, "--allow-exec %s: the plan does not name hook.%s\n", name, name)
		}
	}
	return nil
}

// wanted says, for plan check, which hooks a plan names; "" for none.
func wanted(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("\nHooks: the plan runs hook.%s. Name their commands when you run it: --allow-exec '%s=COMMAND ARGUMENT…'.\n",
		strings.Join(names, ", hook."), names[0])
}
