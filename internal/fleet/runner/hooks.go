package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/plan"
)

// told returns the environment variables that tell hooks about a run.
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

// Restart is the hook that restarts the targets before a run of a variant.
type Restart struct {
	Hook   string            // "" for none
	Within time.Duration     // it fails if it takes longer
	Values map[string]string // the variables that the variant sets, as HCL
}

// RestartOf returns what restarts the targets before a run of the named variant.
func RestartOf(e *plan.Experiment, variant string) Restart {
	r := Restart{Hook: e.Restart, Within: e.RestartTimeout}
	if i := slices.IndexFunc(e.Variants, func(v plan.Variant) bool { return v.Name == variant }); i >= 0 {
		r.Values = e.Variants[i].Values
	}
	return r
}

// restart makes a hook restart the targets, if the job wants it, and keeps its output in the run's directory. It ends early when the job is drained.
func (c *Config) restart(ctx context.Context, j job, dir *rundir.Dir) error {
	if j.restart.Hook == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, j.restart.Within)
	defer cancel()
	go endWith(ctx, j.drain, cancel) // ends with this call
	out, err := c.Allowed[j.restart.Hook].Run(ctx, told(j.header, j.restart.Values))
	text := out.Text
	if out.Cut {
		text += fmt.Sprintf("\n(cut: it printed more than %d KiB)\n", hook.MaxOutput>>10)
	}
	if err = errors.Join(err, dir.Keep("hook-"+j.restart.Hook+".txt", []byte(text))); err != nil {
		return fmt.Errorf("restart the targets: %w", err)
	}
	return nil
}

// observed returns a function that runs an observing hook and returns its output.
func (c *Config) observed(header run.Header) func(ctx context.Context, name string) (string, error) {
	return func(ctx context.Context, name string) (string, error) {
		out, err := c.Allowed[name].Run(ctx, told(header, nil))
		return out.Text, err
	}
}
