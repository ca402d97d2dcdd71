package judge

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// joint joins two workers' texts, without repeating one that they share.
func joint(a, b string) string {
	if a == b || b == "" {
		return a
	}
	if a == "" {
		return b
	}
	return a + ", " + b
}

// mergeLogs merges the workers' reports on log files; nil if none loaded any.
func mergeLogs(all []*worker.Log) *worker.Log {
	var sum *worker.Log
	for _, l := range all {
		switch {
		case l == nil:
		case sum == nil:
			first := *l
			first.Caveats = append([]string{}, l.Caveats...)
			first.Batches = localfile.AddBatches(l.Batches, nil)
			first.Devices = worker.AddDevices([]worker.Device{}, l.Devices)
			first.Threads = append([]measure.Thread{}, l.Threads...)
			if l.Proof != nil {
				proof := *l.Proof
				proof.Wrong = append([]string{}, l.Proof.Wrong...)
				first.Proof = &proof
			}
			sum = &first
		default:
			merge(sum, l)
		}
	}
	return sum
}

// merge adds another worker's report on its own files.
func merge(l, o *worker.Log) {
	l.Layout, l.SyncAsked, l.Clear = joint(l.Layout, o.Layout), joint(l.SyncAsked, o.SyncAsked), joint(l.Clear, o.Clear)
	l.SyncUsed, l.Instruction = joint(l.SyncUsed, o.SyncUsed), joint(l.Instruction, o.Instruction)
	l.Prealloc = joint(l.Prealloc, o.Prealloc)
	l.FileSystem, l.Failure = joint(l.FileSystem, o.FileSystem), joint(l.Failure, o.Failure)
	l.Durable = l.Durable && o.Durable
	for _, c := range o.Caveats {
		if !slices.Contains(l.Caveats, c) {
			l.Caveats = append(l.Caveats, c)
		}
	}
	l.GroupCommit, l.Batches = joint(l.GroupCommit, o.GroupCommit), localfile.AddBatches(l.Batches, o.Batches)
	l.AtRisk, l.Untimed = l.AtRisk.Add(o.AtRisk), joint(l.Untimed, o.Untimed)
	l.Files += o.Files
	l.FileBytes = max(l.FileBytes, o.FileBytes)
	l.Entries, l.Bytes, l.Forces, l.Resets = l.Entries+o.Entries, l.Bytes+o.Bytes, l.Forces+o.Forces, l.Resets+o.Resets
	l.Unproven = joint(l.Unproven, o.Unproven)
	l.Devices = worker.AddDevices(l.Devices, o.Devices)
	l.Threads = append(l.Threads, o.Threads...)
	if l.Proof == nil || o.Proof == nil {
		l.Proof = nil
		return
	}
	l.Proof.Acknowledged += o.Proof.Acknowledged
	l.Proof.Verified += o.Proof.Verified
	l.Proof.Recovered += o.Proof.Recovered
	l.Proof.Wrong = append(l.Proof.Wrong, o.Proof.Wrong...)
}

// log summarises the workers' reports on log files.
func (p *phase) log(ph *plan.Phase, m *Measured) {
	l := mergeLogs(m.Logs)
	if l == nil && len(m.Unread) > 0 {
		l = &worker.Log{Log: localfile.Log{Caveats: []string{}, Batches: []localfile.Batch{}}, Devices: []worker.Device{}, Threads: []measure.Thread{}}
	}
	if l == nil {
		p.null("log", reason.NotApplicable, "the target is not a log")
		return
	}
	p.Log = l
	lost := slices.Sorted(slices.Values(m.Unread))
	for _, worker := range lost {
		l.Proof, l.Unproven = nil, joint(l.Unproven, "worker "+worker+" was lost")
	}
	l.EntryBytes, l.EntrySizes, l.Bound = p.Dataset.ValueBytes, p.Dataset.Values, ph.Bound
	var changed uint64
	var rate float64
	for _, verb := range p.verbsOf(ph.Ops) {
		o := p.Op[p.words.Name(verb)]
		if verb != driver.Read && verb != driver.Get {
			changed += o.OK
		}
		if verb.Stores() && o.Rate != nil {
			rate += *o.Rate
		}
		if verb.Stores() {
			p.undivided("op."+p.words.Name(verb), o, l.Untimed)
		}
	}
	if l.AtRisk != nil && rate > 0 { // at most until the end of the last sync
		rate *= p.Seconds / (p.Seconds + l.AtRisk.LastSyncSeconds)
	}
	p.nullable(&l.BytesPerSecond, rate*l.MeanBytes(), "log.bytes_per_second", reason.NoOps, "there is no rate of entries")
	var syncs uint64
	for _, b := range l.Batches {
		syncs += b.Syncs
	}
	if len(lost) == 0 {
		p.device(l, changed)
	}
	switch {
	case len(lost) > 0:
		p.null("log.", reason.WorkerLost, "what worker "+strings.Join(lost, ", ")+" forced is not known", "forces_per_op", "entries_per_sync")
	case changed > 0:
		p.nullable(&l.ForcesPerOp, float64(l.Forces)/float64(changed), "log.forces_per_op", reason.NotApplicable, "nothing was forced")
		p.nullable(&l.EntriesPerSync, float64(changed)/float64(max(1, syncs))*float64(min(1, syncs)), "log.entries_per_sync", reason.NotApplicable, "no sync was shared")
	default:
		p.null("log.", reason.NoOps, "no op changed anything", "forces_per_op", "entries_per_sync")
	}
	if l.AtRisk == nil {
		p.null("log.at_risk", reason.NotApplicable, "without sync_every, ops end when their entries are as durable as they get")
	}
	if l.Proof == nil {
		p.null("log.proof", reason.Unverified, l.Unproven)
	}
}

// nullable sets a figure, or records why it is null if it is 0.
func (p *phase) nullable(to **float64, f float64, path string, code reason.Code, why string) {
	if f == 0 {
		p.null(path, code, why)
		return
	}
	*to = number(f)
}

// undivided records why the parts of an op's service times are null, if they are.
func (p *phase) undivided(at string, o *run.Op, untimed string) {
	why := reason.Why{Code: reason.NotCounted, Text: untimed}
	switch {
	case untimed != "":
	case o.Sync != nil:
		return
	case o.OK == 0:
		why = reason.Why{Code: reason.NoOps, Text: "no op ended ok"}
	default:
		why.Text = "its driver does not report it"
	}
	b := builder{phase: p}
	for path, part := range map[string]**run.Latency{at + ".write": &o.Write, at + ".sync": &o.Sync} {
		for old := range p.Nulls {
			if strings.HasPrefix(old, path+".") { // of the workers that know it
				p.known(old)
			}
		}
		*part = new(b.times(path, &measure.Times{}, why.Text, ""))
		p.explain(path, why)
	}
}
