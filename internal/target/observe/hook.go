package observe

import (
	"context"
	"strings"

	"github.com/loadgen/loadgen/pkg/plan"
)

// hook runs a command and parses its output: one line per figure, with a name, a blank, = or :, and a number. It ignores other lines.
type hook struct {
	o   *plan.Observe
	run func(ctx context.Context, name string) (string, error)
}

func (h hook) Of() string { return "hook." + h.o.Hook }

func (h hook) Close() {}

func (h hook) Take(ctx context.Context) (value map[string]float64, missing map[string]string) {
	text, err := h.run(ctx, h.o.Hook)
	if err != nil {
		return nothing("%v", err)
	}
	told := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if end := strings.IndexAny(line, " \t=:"); end > 0 {
			told[line[:end]] = strings.TrimSpace(strings.TrimLeft(line[end:], " \t=:"))
		}
	}
	f := newFigures()
	for _, field := range h.o.Fields {
		if v, ok := told[field.Name]; ok {
			f.parse(field.Name, v)
		} else {
			f.missing[field.Name] = "the command did not print it"
		}
	}
	return f.value, f.missing
}
