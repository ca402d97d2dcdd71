package words

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Log returns the facts about log files, the same for every form of report.
func Log(ph *run.Phase) []Fact {
	l := ph.Log
	if l == nil {
		return nil
	}
	proof := "nothing: " + l.Unproven
	if l.Proof != nil {
		proof = fmt.Sprintf("%s/%s entries that must be there, by another process", quantity.Thousands(l.Proof.Verified), quantity.Thousands(l.Proof.Acknowledged))
	}
	verified := fact("verified", "", proof)
	if l.Files == 0 { // every worker that had files was lost
		return verified
	}
	facts := append(fact("log", ", ", l.Layout+", when full: "+l.Clear, syncOf(ph), filesOf(ph)), fact("threads", ", ", threadsOf(ph)...)...)
	var caveats []Fact
	for _, c := range l.Caveats {
		caveats = append(caveats, fact("caveat", "", c)...)
	}
	written := []string{quantity.Bytes(l.Bytes) + " of entries"}
	if l.BytesPerSecond != nil {
		rate := quantity.Bytes(int64(*l.BytesPerSecond)) + "/s" + Mark(ph, "log.bytes_per_second")
		if l.AtRisk != nil {
			rate += " until the last sync had ended"
		}
		written = append(written, rate)
	}
	switch {
	case l.BoundShare != nil:
		written = append(written, quantity.Percent(*l.BoundShare)+" of "+l.Bound+Mark(ph, "log.bytes_per_second"))
	case l.Bound != "":
		written = append(written, "no share of "+l.Bound+": "+ph.Nulls["log.bound_share"])
	}
	if l.ForcesPerOp != nil {
		written = append(written, fmt.Sprintf("%.2f forces an op", *l.ForcesPerOp))
	}
	if l.EntriesPerSync != nil {
		written = append(written, fmt.Sprintf("%.1f entries a sync", *l.EntriesPerSync))
	}
	if l.Bytes == 0 && l.Proof != nil && l.Proof.Acknowledged == 0 && len(l.Proof.Wrong) == 0 {
		return append(facts, caveats...) // the phase only read
	}
	facts = slices.Concat(facts, fact("written", ", ", append(written, quantity.Count(l.Resets, "reset"))...),
		fact("device", ", ", deviceOf(ph)...), fact("syncs", ", ", batchesOf(ph)...))
	if r := l.AtRisk; r != nil {
		facts = append(facts, fact("at risk", ", ",
			fmt.Sprintf("acknowledged and not durable: up to %s entries, %s, for %s", quantity.Thousands(r.EntriesMax), quantity.Bytes(r.BytesMax), quantity.Duration(r.SecondsMax)),
			fmt.Sprintf("on average %.1f entries, %s", r.EntriesMean, quantity.Bytes(uint64(r.BytesMean))),
			"the last sync took "+quantity.Duration(r.LastSyncSeconds),
		)...)
	}
	return slices.Concat(facts, verified, caveats)
}

// deviceOf says what reached the device; nil if the device was not watched.
func deviceOf(ph *run.Phase) (texts []string) {
	d := ph.Device
	if d == nil {
		return nil
	}
	if d.BytesPerOp == nil && d.FlushesPerOp == nil && ph.Nulls["device.bytes_per_op"] == ph.Nulls["device.flushes_per_op"] {
		return []string{"bytes and flushes an op are not known: " + ph.Nulls["device.bytes_per_op"]}
	}
	if d.BytesPerOp != nil {
		texts = append(texts, quantity.Bytes(uint64(*d.BytesPerOp))+" an op")
	} else {
		texts = append(texts, "bytes an op are not known: "+ph.Nulls["device.bytes_per_op"])
	}
	if d.Amplification != nil {
		texts = append(texts, fmt.Sprintf("%.2f times the entries", *d.Amplification))
	}
	if d.FlushesPerOp != nil {
		return append(texts, fmt.Sprintf("%.2f flushes an op", *d.FlushesPerOp))
	}
	return append(texts, "flushes are not known: "+ph.Nulls["device.flushes_per_op"])
}

// maxThreads bounds the threads that a report names one by one.
const maxThreads = 8

// threadsOf says on which CPU and NUMA node each thread ran.
func threadsOf(ph *run.Phase) (texts []string) {
	l := ph.Log
	for i, t := range l.Threads {
		if i == maxThreads {
			return append(texts, quantity.Count(len(l.Threads)-i, "more thread")+" (the JSON has all)")
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

// filesOf describes the files, how their blocks were allocated before the load, and where they are.
func filesOf(ph *run.Phase) string {
	l := ph.Log
	text := quantity.Count(l.Files, "file") + " of " + quantity.Blocks(int(l.FileBytes))
	if l.Prealloc != "" {
		text += ", prealloc " + l.Prealloc + ","
	}
	return text + " on " + l.FileSystem
}

// syncOf names the durability used, and the one asked for.
func syncOf(ph *run.Phase) string {
	l := ph.Log
	used := "sync " + l.SyncAsked + " asked, " + l.SyncUsed + " used"
	if l.Instruction != "" {
		used += " by " + l.Instruction
	}
	if l.GroupCommit != "" {
		used += " by group commit " + l.GroupCommit
	}
	if !l.Durable {
		used += ", NOT durable"
	}
	return used
}

// batchesOf says how many of the syncs made how many entries durable.
func batchesOf(ph *run.Phase) (texts []string) {
	list := ph.Log.Batches
	var all uint64
	for _, b := range list {
		all += b.Syncs
	}
	for i, b := range list {
		entries := quantity.Thousands(b.Entries)
		if low := b.Entries/2 + 1; low < b.Entries {
			entries = quantity.Thousands(low) + " to " + entries
		}
		switch {
		case i == 0 && b.Entries == 1:
			entries += " entry"
		case i == 0:
			entries += " entries"
		}
		texts = append(texts, quantity.Percent(float64(b.Syncs)/float64(all))+" with "+entries)
	}
	return texts
}
