package worker

import (
	"testing"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Each rule for a worker's account of its log files is broken on its own.
func TestWhatALogMaySay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *Log)
		want   string
	}{
		"as it is":         {func(*Log) {}, ""},
		"nothing":          {func(l *Log) { *l = Log{} }, ""},
		"no files":         {func(l *Log) { l.Files = -1 }, "log files: -1 of 0 bytes, entries of 0"},
		"no bytes":         {func(l *Log) { l.FileBytes = -1 }, "log files: 0 of -1 bytes, entries of 0"},
		"no entries":       {func(l *Log) { l.EntryBytes = -1 }, "log files: 0 of 0 bytes, entries of -1"},
		"before the first": {func(l *Log) { l.Threads[1].Session = -1 }, "a thread with 1 sessions from -1 on, on CPUs -1 and -1"},
		"no session":       {func(l *Log) { l.Threads[1].Sessions = 0 }, "a thread with 0 sessions from 0 on"},
		"no CPU":           {func(l *Log) { l.Threads[1].CPU = -2 }, "on CPUs -2 and -1"},
		"no CPU at end":    {func(l *Log) { l.Threads[1].CPUAtEnd = -2 }, "on CPUs -1 and -2"},
		"no node":          {func(l *Log) { l.Threads[1].Node = -2 }, "a thread with"},
		"no node at end":   {func(l *Log) { l.Threads[1].NodeAtEnd = -2 }, "a thread with"},
		"all verified":     {func(l *Log) { l.Proof = &localfile.Proof{Verified: 3, Acknowledged: 3} }, ""},
		"more than all":    {func(l *Log) { l.Proof = &localfile.Proof{Verified: 4, Acknowledged: 3} }, "more entries were verified than acknowledged"},
	} {
		l := &Log{Threads: []measure.Thread{{Session: 1, Sessions: 2, CPU: 3, CPUAtEnd: 0, Node: 1}, {Sessions: 1, CPU: -1, CPUAtEnd: -1, Node: -1, NodeAtEnd: -1}}}
		c.change(l)
		says(t, c.want, l.CheckValid(), name)
	}
}
