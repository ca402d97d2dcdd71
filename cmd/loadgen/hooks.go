package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/hook"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/rundir"
)

// hooks are the commands that plans may ask for, by name.
type hooks map[string]hook.Hook

// parseHooks reads the values of --allow-exec.
func parseHooks(texts []string) (hooks, error) {
	all := hooks{}
	for _, text := range texts {
		h, err := hook.Parse(text)
		if err != nil {
			return nil, err
		}
		if _, twice := all[h.Name]; twice {
			return nil, fmt.Errorf("--allow-exec names %s twice: give one another name", h.Name)
		}
		all[h.Name] = h
	}
	return all, nil
}

// satisfy checks that each hook that a plan names is allowed, and says which of those allowed it does not name.
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

// hooks lists the hooks of an experiment's plans.
func (t *trial) hooks() []string {
	var names []string
	if t.Restart != "" {
		names = append(names, t.Restart)
	}
	for _, p := range t.plans {
		names = append(names, p.Hooks()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// told is what hooks are told of a run.
func told(h run.Header, values map[string]string) []string {
	list := []string{
		"LOADGEN_PLAN=" + h.Plan, "LOADGEN_RUN=" + h.ID, "LOADGEN_EXPERIMENT=" + h.Experiment, "LOADGEN_VARIANT=" + h.Variant,
		fmt.Sprintf("LOADGEN_REPETITION=%d", h.Repetition),
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text := values[name]
		if plain := ""; json.Unmarshal([]byte(text), &plain) == nil {
			text = plain
		}
		list = append(list, "LOADGEN_VAR_"+name+"="+text)
	}
	return list
}

// restart has a hook start the targets anew, if the experiment wants it, and keeps what it prints in the run's directory. The end of drain
// ends it.
func (s *series) restart(ctx context.Context, drain <-chan struct{}, header run.Header, values map[string]string, dir *rundir.Dir) error {
	if s.Restart == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.RestartTimeout)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with this call
		select {
		case <-drain:
			cancel()
		case <-done:
		}
	}()
	out, err := s.allowed[s.Restart].Run(ctx, told(header, values))
	text := out.Text
	if out.Cut {
		text += fmt.Sprintf("\n(cut: it printed more than %d KiB)\n", hook.MaxOutput>>10)
	}
	return errors.Join(err, dir.Keep("hook-"+s.Restart+".txt", []byte(text)))
}

// observed runs a hook that observes, and returns what it printed.
func (h hooks) observed(header run.Header) func(ctx context.Context, name string) (string, error) {
	return func(ctx context.Context, name string) (string, error) {
		out, err := h[name].Run(ctx, told(header, nil))
		return out.Text, err
	}
}

// wanted says which hooks a plan names, for plan check; "" for none.
func wanted(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("\nHooks: the plan runs hook.%s. Say what they are when it is run: --allow-exec '%s=COMMAND ARGUMENT…'.\n",
		strings.Join(names, ", hook."), names[0])
}
