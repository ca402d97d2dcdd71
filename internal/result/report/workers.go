package report

import (
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// maxWorkers bounds the lines for workers that were not lost.
const maxWorkers = 16

// workers adds a line for each worker if there are several, and says which ops of lost ones are missing.
func (p *printer) workers(r *run.Run) {
	if len(r.Fleet) < 2 && len(r.Losses) == 0 {
		return
	}
	word, all := "none lost", quantity.Thousands(len(r.Fleet))
	if n := len(r.Losses); n > 0 {
		word = quantity.Thousands(n) + " of " + all + " LOST"
	}
	if n := r.FailedWorkers(); n > 0 {
		word = quantity.Thousands(n) + " of " + all + " FAILED"
	}
	p.rule("workers", word)
	shown, hidden := 0, 0
	for i, w := range r.Fleet {
		loss := r.LossOf(i)
		if loss == nil && w.Failed == "" && w.Replaces == "" {
			if shown == maxWorkers {
				hidden++
				continue
			}
			shown++
		}
		label := w.Name
		if columns(label) >= labelWidth {
			p.line("  %s", label)
			label = ""
		}
		p.items(label, " · ", words.Worker(&w)...)
		if loss != nil {
			p.item("", loss.Brief())
		}
		if w.Failed != "" {
			p.item("", "FAILED, which ended the run: "+w.Failed)
		}
	}
	if hidden > 0 {
		p.item("", "and "+quantity.Count(hidden, "other worker"))
	}
}
