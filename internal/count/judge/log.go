package judge

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
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

// mergeLogs merges what workers did; nil if none loaded log files.
func mergeLogs(all []*worker.Log) *worker.Log {
	var sum *worker.Log
	for _, l := range all {
		switch {
		case l == nil:
		case sum == nil:
			first := *l
			first.Caveats = append([]string{}, l.Caveats...)
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

// merge adds what another worker did to its own files.
func merge(l, o *worker.Log) {
	l.Layout, l.SyncAsked, l.Clear = joint(l.Layout, o.Layout), joint(l.SyncAsked, o.SyncAsked), joint(l.Clear, o.Clear)
	l.SyncUsed, l.Instruction = joint(l.SyncUsed, o.SyncUsed), joint(l.Instruction, o.Instruction)
	l.FileSystem, l.Failure = joint(l.FileSystem, o.FileSystem), joint(l.Failure, o.Failure)
	l.Durable = l.Durable && o.Durable
	for _, c := range o.Caveats {
		if !slices.Contains(l.Caveats, c) {
			l.Caveats = append(l.Caveats, c)
		}
	}
	l.Files += o.Files
	l.FileBytes = max(l.FileBytes, o.FileBytes)
	l.Bytes, l.Forces, l.Resets = l.Bytes+o.Bytes, l.Forces+o.Forces, l.Resets+o.Resets
	l.Unproven = joint(l.Unproven, o.Unproven)
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

// log summarises what workers did to log files.
func (b *builder) log(ph *plan.Phase, m Measured) {
	l := mergeLogs(m.Logs)
	if l == nil {
		b.null("log", reason.NotApplicable, "the target is no log")
		return
	}
	b.phase.Log = l
	for _, worker := range m.Unread {
		l.Proof, l.Unproven = nil, joint(l.Unproven, "worker "+worker+" was lost")
	}
	l.EntryBytes, l.Bound = b.phase.Dataset.ValueBytes, ph.Bound
	var changed uint64
	var rate float64
	for _, verb := range b.phase.verbsOf(ph.Ops) {
		o := b.phase.Op[b.phase.words.Name(verb)]
		if verb != driver.Read && verb != driver.Get {
			changed += o.OK
		}
		if verb.Stores() && o.Rate != nil {
			rate += *o.Rate
		}
	}
	b.nullable(&l.BytesPerSecond, rate*float64(l.EntryBytes), "log.bytes_per_second", reason.NoOps, "there is no rate of entries")
	if changed > 0 {
		b.nullable(&l.ForcesPerOp, float64(l.Forces)/float64(changed), "log.forces_per_op", reason.NotApplicable, "nothing was forced")
	} else {
		b.null("log.forces_per_op", reason.NoOps, "no op changed anything")
	}
	if l.Proof == nil {
		b.null("log.proof", reason.Unverified, l.Unproven)
	}
}

// nullable sets a figure, or records why it is null if it is 0.
func (b *builder) nullable(to **float64, f float64, path string, code reason.Code, why string) {
	if f == 0 {
		b.null(path, code, why)
		return
	}
	*to = number(f)
}

// unlike says whether workers wrote with different durability.
func unlike(all []*worker.Log) bool {
	all = slices.DeleteFunc(slices.Clone(all), func(l *worker.Log) bool { return l == nil })
	return slices.ContainsFunc(all, func(l *worker.Log) bool { return l.SyncUsed != all[0].SyncUsed })
}

// judgeLog checks that acknowledged entries are there.
func (p *phase) judgeLog(m Measured) {
	l := p.Log
	switch {
	case l == nil:
		return
	case l.Failure != "":
		p.doubt(reason.LogFailed, run.Invalid, p.all(), "a log failed, and nothing was written to it after that: %s", l.Failure)
	case unlike(m.Logs):
		p.doubt(reason.Durability, run.Invalid, p.all(), "workers wrote with different durability: %s", l.SyncUsed)
	}
	switch proof := l.Proof; {
	case proof == nil && l.Failure != "": // said above
	case proof == nil && !m.Aborted:
		p.doubt(reason.Unverified, run.Invalid, p.all(), "what was written was not verified: %s", l.Unproven)
	case proof == nil:
	case len(proof.Wrong) > 0 || proof.Verified != proof.Acknowledged:
		p.doubt(reason.LostEntries, run.Invalid, p.all(), "of %s acknowledged entries that had to be there, %s were: %s",
			quantity.Number(float64(proof.Acknowledged)), quantity.Number(float64(proof.Verified)), strings.Join(proof.Wrong, "; "))
	}
}
