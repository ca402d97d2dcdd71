package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
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

// restart has a hook restart the targets, if the experiment wants it, and keeps its output in the run's directory. It ends early when the job is
// drained.
func (s *series) restart(ctx context.Context, j job, dir *rundir.Dir) error {
	if s.Restart == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.RestartTimeout)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() { // ends with this call
		select {
		case <-j.drain:
			cancel()
		case <-done:
		}
	}()
	out, err := s.Allowed[s.Restart].Run(ctx, told(j.header, s.Variants[s.index(j.header.Variant)].Values))
	text := out.Text
	if out.Cut {
		text += fmt.Sprintf("\n(cut: it printed more than %d KiB)\n", hook.MaxOutput>>10)
	}
	return errors.Join(err, dir.Keep("hook-"+s.Restart+".txt", []byte(text)))
}

// observed returns a function that runs an observing hook and returns its output.
func (c *Config) observed(header run.Header) func(ctx context.Context, name string) (string, error) {
	return func(ctx context.Context, name string) (string, error) {
		out, err := c.Allowed[name].Run(ctx, told(header, nil))
		return out.Text, err
	}
}
