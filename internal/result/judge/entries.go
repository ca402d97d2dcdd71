package judge

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// unlike says whether workers wrote with different durability.
func unlike(all []*worker.Log) bool {
	all = slices.DeleteFunc(slices.Clone(all), func(l *worker.Log) bool { return l == nil })
	return slices.ContainsFunc(all, func(l *worker.Log) bool { return l.SyncUsed != all[0].SyncUsed })
}

// judgeLog checks that acknowledged entries are there.
func (p *phase) judgeLog(d *doubts) {
	l := p.Log
	switch {
	case l == nil:
		return
	case l.Failure != "":
		d.add(reason.LogFailed, run.Invalid, p.all(), "a log failed, and nothing was written to it after that: %s", l.Failure)
	case unlike(p.counts.Logs):
		d.add(reason.Durability, run.Invalid, p.all(), "workers wrote with different durability: %s", l.SyncUsed)
	}
	switch proof := l.Proof; {
	case proof == nil && l.Failure != "": // the failure was reported above
	case proof == nil && !p.counts.Aborted:
		d.add(reason.Unverified, run.Invalid, p.all(), "what was written was not verified: %s", l.Unproven)
	case proof == nil:
	case len(proof.Wrong) > 0 || proof.Verified != proof.Acknowledged:
		d.add(reason.LostEntries, run.Invalid, p.all(), "of %s acknowledged entries that must be there, only %s were: %s",
			quantity.Number(float64(proof.Acknowledged)), quantity.Number(float64(proof.Verified)), strings.Join(proof.Wrong, "; "))
	}
}
