package report

import (
	"fmt"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// log says which log files a phase loaded, what was promised, and whether it was kept.
func (p *page) log(ph *run.Phase) {
	for _, f := range logFacts(ph) {
		if len(f.Text) == 1 {
			p.item(f.Name, f.Text[0])
		} else {
			p.items(f.Name, ", ", f.Text...)
		}
	}
}

// logFacts is the same for any form of report.
func logFacts(ph *run.Phase) []fact {
	l := ph.Log
	if l == nil {
		return nil
	}
	facts := []fact{{"log", []string{layoutOf(l), syncOf(l), plural(l.Files, "file") + " of " + blocks(int(l.FileBytes)) + " on " + l.FileSystem}}}
	if len(l.Threads) > 0 {
		facts = append(facts, fact{"threads", threadsOf(l)})
	}
	written := []string{size(l.Bytes) + " of entries"}
	if l.BytesPerSecond != nil {
		written = append(written, size(int64(*l.BytesPerSecond))+"/s"+mark(ph, "log.bytes_per_second"))
	}
	switch {
	case l.BoundShare != nil:
		written = append(written, quantity.Percent(*l.BoundShare)+" of "+l.Bound+mark(ph, "log.bytes_per_second"))
	case l.Bound != "":
		written = append(written, "no share of "+l.Bound+": "+ph.Nulls["log.bound_share"])
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

// logsMarkdown writes what log files the phases of a run loaded: no figure of theirs is to be quoted without.
func logsMarkdown(b *strings.Builder, r *run.Run) {
	first := true
	for _, name := range r.PhaseOrder {
		for _, f := range logFacts(r.Phase[name]) {
			if f.Name == "threads" { // of the machine, not of the figures
				continue
			}
			if first {
				b.WriteString("\n| phase | | |\n|---|---|---|\n")
				first = false
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", markdown(name), f.Name, markdown(strings.Join(f.Text, ", ")))
		}
	}
}

func caveatsOf(l *run.Log) (facts []fact) {
	for _, c := range l.Caveats {
		facts = append(facts, fact{"caveat", []string{c}})
	}
	return facts
}

// maxThreads bounds the threads that a report names one by one.
const maxThreads = 8

// threadsOf says on which CPU and NUMA node each thread ran.
func threadsOf(l *run.Log) (texts []string) {
	for i, t := range l.Threads {
		if i == maxThreads {
			return append(texts, plural(len(l.Threads)-i, "more thread")+" (the JSON has all)")
		}
		who := fmt.Sprintf("session %d", t.Session)
		if t.Sessions > 1 {
			who = fmt.Sprintf("sessions %d to %d", t.Session, t.Session+t.Sessions-1)
		}
		where := seatOf(t.CPU, t.Node)
		switch {
		case t.Pinned:
			where += " (pinned)"
		case t.CPUAtEnd != t.CPU:
			where += " (at the end " + seatOf(t.CPUAtEnd, t.NodeAtEnd) + ")"
		}
		texts = append(texts, who+" on "+where)
	}
	return texts
}

func seatOf(cpu, node int) string {
	switch {
	case cpu < 0:
		return "a CPU that the kernel does not name"
	case node < 0:
		return fmt.Sprintf("CPU %d", cpu)
	}
	return fmt.Sprintf("CPU %d of node %d", cpu, node)
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
