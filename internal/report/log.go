package report

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/run"
)

// log says which log files a phase loaded, what was promised, and whether it was kept.
func (p *page) log(ph *run.Phase) {
	for _, f := range logFacts(ph) {
		p.items(f.Name, ", ", f.Text...)
	}
}

// logFacts is the same for any form of report.
func logFacts(ph *run.Phase) []fact {
	l := ph.Log
	if l == nil {
		return nil
	}
	facts := []fact{{"log", []string{layoutOf(l), syncOf(l), plural(l.Files, "file") + " of " + blocks(int(l.FileBytes)) + " on " + l.FileSystem}}}
	written := []string{size(l.Bytes) + " of entries"}
	if l.BytesPerSecond != nil {
		written = append(written, size(int64(*l.BytesPerSecond))+"/s"+mark(ph, "log.bytes_per_second"))
	}
	if l.ForcesPerOp != nil {
		written = append(written, fmt.Sprintf("%.2f forces an op", *l.ForcesPerOp))
	}
	if l.Bytes == 0 && l.Proof != nil && l.Proof.Acknowledged == 0 && len(l.Proof.Wrong) == 0 {
		return append(facts, caveatsOf(l)...) // it only read
	}
	facts = append(facts, fact{"written", append(written, plural(l.Resets, "reset"))}, fact{"verified", []string{proofOf(l)}})
	return append(facts, caveatsOf(l)...)
}

func caveatsOf(l *run.Log) (facts []fact) {
	for _, c := range l.Caveats {
		facts = append(facts, fact{"caveat", []string{c}})
	}
	return facts
}

func layoutOf(l *run.Log) string { return l.Layout + ", when full: " + l.Clear }

// syncOf names the durability in use, and beside it what was asked for.
func syncOf(l *run.Log) string {
	used := "sync " + l.SyncAsked + " asked, " + l.SyncUsed + " used"
	if l.Instruction != "" {
		used += " by " + l.Instruction
	}
	if !l.Durable {
		used += ", NOT durable"
	}
	return used
}

// proofOf is what another process found.
func proofOf(l *run.Log) string {
	if l.Proof == nil {
		return "nothing: " + l.Unproven
	}
	return fmt.Sprintf("%s/%s entries that had to be there, by another process", count(l.Proof.Verified), count(l.Proof.Acknowledged))
}
