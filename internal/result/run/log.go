package run

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// shareOf sets a log's speed as a share of its bound's, or returns why it cannot. bound is nil if the bound's phase has no log.
func shareOf(l, bound *worker.Log) (why reason.Why) {
	switch {
	case l.Bound == "":
		return reason.Why{Code: reason.NotApplicable, Text: "the plan names no bound"}
	case bound == nil:
		return reason.Why{Code: reason.NotApplicable, Text: fmt.Sprintf("phase %s was not run", l.Bound)}
	case l.SyncUsed != bound.SyncUsed && (l.SyncUsed != string(pmem.Fdatasync) || !opened(bound)):
		return reason.Why{Code: reason.NotAlike, Text: fmt.Sprintf("sync is %s, and %s in phase %s", l.SyncUsed, bound.SyncUsed, l.Bound)}
	case l.EntrySize() != bound.EntrySize():
		return reason.Why{Code: reason.NotAlike, Text: fmt.Sprintf("entries are of %s, and of %s in phase %s", l.EntrySize(), bound.EntrySize(), l.Bound)}
	case l.BytesPerSecond == nil || bound.BytesPerSecond == nil:
		return reason.Why{Code: reason.NoOps, Text: "there is no rate of entries"}
	}
	share := *l.BytesPerSecond / *bound.BytesPerSecond
	l.BoundShare = &share
	return reason.Why{}
}

// opened says whether the file of a log was opened for durable writes, which promises the same as fdatasync.
func opened(l *worker.Log) bool {
	return l.SyncUsed == string(pmem.ODsync) || l.SyncUsed == string(pmem.ODirect)
}
