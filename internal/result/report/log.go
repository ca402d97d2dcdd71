package report

import (
	"fmt"
	"strings"

	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// logsMarkdown writes which log files the phases of a run loaded: no figure of theirs should be quoted without that.
func logsMarkdown(b *strings.Builder, r *run.Run) {
	first := true
	for _, name := range r.PhaseOrder {
		for _, f := range words.Log(r.Phase[name]) {
			if f.Name == "threads" { // about the machine, not the figures
				continue
			}
			if first {
				b.WriteString("\n| phase | | |\n|---|---|---|\n")
				first = false
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", markdown(name), markdown(f.Name), markdown(strings.Join(f.Text, f.Sep)))
		}
	}
}
