package report

import (
	"slices"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// maxWorkers bounds the lines on workers that were not lost.
const maxWorkers = 16

// workers adds a line for each worker where there are several, and what is missing of one that was lost.
func (p *page) workers(r *run.Run) {
	if len(r.Fleet) < 2 && len(r.Losses) == 0 {
		return
	}
	word := "all there"
	if n := len(r.Losses); n > 0 {
		word = count(n) + " of " + count(len(r.Fleet)) + " LOST"
	}
	p.rule("workers", word)
	shown, hidden := 0, 0
	for _, w := range r.Fleet {
		i := slices.IndexFunc(r.Losses, func(l run.Loss) bool { return l.Worker == w.Name })
		if i < 0 {
			if shown == maxWorkers {
				hidden++
				continue
			}
			shown++
		}
		p.worker(&w)
		if i >= 0 {
			p.item("", lossOf(&r.Losses[i]))
		}
	}
	if hidden > 0 {
		p.item("", "and "+plural(hidden, "other worker"))
	}
}

func (p *page) worker(w *run.Worker) {
	label := w.Name
	if columns(label) >= labelWidth {
		p.line("  %s", label)
		label = ""
	}
	p.items(label, " · ", workerOf(w)...)
}

func workerOf(w *run.Worker) []string {
	var parts []string
	if w.Host != "" {
		parts = append(parts, w.Host)
	}
	parts = append(parts, plural(w.Sessions, "session"))
	if w.CPUSeconds > 0 { // else it has finished no step
		parts = append(parts, quantity.Duration(w.CPUSeconds)+" CPU")
	}
	if w.ClockUncertaintySeconds > 0 {
		parts = append(parts, "clock ± "+quantity.Duration(w.ClockUncertaintySeconds))
	}
	return parts
}

// lossOf says when a worker was lost and what may be missing; why stands in the verdict.
func lossOf(l *run.Loss) string {
	if l.Phase == "" {
		return "LOST before the first phase: it has loaded nothing"
	}
	text := "LOST in phase " + l.Phase + ": known up to " + quantity.Duration(l.KnownSeconds)
	unseen := l.Unseen()
	if unseen == "" {
		return text + ", nothing is missing"
	}
	return text + ", " + unseen + " unseen until " + quantity.Duration(l.LoadedSeconds)
}
