package worker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Log says what a phase did to log files, and whether the entries that it wrote are really there.
type Log struct {
	localfile.Log

	EntryBytes     int      `json:"entry_bytes"`      // size of the largest entry
	EntrySizes     string   `json:"entry_sizes"`      // how entries differ in size; "" if they do not
	BytesPerSecond *float64 `json:"bytes_per_second"` // rate of entries while all sessions were working, and of AtRisk's last sync
	Bound          string   `json:"bound"`            // the phase that the plan names as this one's bound, or ""
	BoundShare     *float64 `json:"bound_share"`      // BytesPerSecond as a share of the bound's
	ForcesPerOp    *float64 `json:"forces_per_op"`    // per op that changed something and ended ok

	EntriesPerSync *float64 `json:"entries_per_sync"` // on average, with group commit

	Devices []Device `json:"devices"` // the devices that the files are on, each once

	Threads []measure.Thread `json:"threads"` // by session, of all workers

	Proof    *localfile.Proof `json:"proof"`    // by a process that did not write the entries
	Unproven string           `json:"unproven"` // why there is no proof
}

// Device says what a block device did in a phase. Other programs may have used it too: Before and After say what they did just before and after.
type Device struct {
	Name      string   `json:"name"`       // "/dev/sda1"; "" if there is none
	Number    string   `json:"number"`     // "8:1"
	Machine   string   `json:"machine"`    // the machine's boot ID, which changes with each start
	Seconds   float64  `json:"seconds"`    // how long it was watched
	Bytes     *float64 `json:"bytes"`      // bytes written; if nil, NoBytes says why they are not known
	Flushes   *float64 `json:"flushes"`    // flushes of its write cache; if nil, NoFlushes says why they are not known
	NoBytes   string   `json:"no_bytes"`   //
	NoFlushes string   `json:"no_flushes"` //
	Before    Beside   `json:"before"`
	After     Beside   `json:"after"`
	Writer    string   `json:"writer"` // the other program that wrote most to any device meanwhile; "" if none is known
}

// Beside says what a device did just before a phase, once the worker's own files were ready, or just after it.
type Beside struct {
	Seconds float64 `json:"seconds"`
	Bytes   float64 `json:"bytes"`
	Flushes float64 `json:"flushes"`
}

// AddDevices adds the devices of other workers. If several workers watched the same device, the smallest use before and after the load is taken:
// the worker that was ready last saw nothing of the others' preparations, and the one that ended last nothing of their loads.
func AddDevices(all, more []Device) []Device {
	for _, d := range more {
		i := slices.IndexFunc(all, func(o Device) bool {
			return d.Number != "" && d.Machine != "" && d.Number == o.Number && d.Machine == o.Machine
		})
		if i < 0 {
			all = append(all, d)
			continue
		}
		o := &all[i]
		o.Seconds, o.Bytes, o.Flushes = max(o.Seconds, d.Seconds), most(o.Bytes, d.Bytes), most(o.Flushes, d.Flushes)
		o.Before, o.After = quieter(o.Before, d.Before), quieter(o.After, d.After)
	}
	return all
}

// quieter returns the smaller use of two.
func quieter(a, b Beside) Beside {
	if b.Bytes*a.Seconds < a.Bytes*b.Seconds {
		return b
	}
	return a
}

// most returns the larger of two numbers; if one is not known, the other.
func most(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// EntrySize says what size entries have.
func (l *Log) EntrySize() string {
	if l.EntrySizes == "" {
		return fmt.Sprintf("%d bytes", l.EntryBytes)
	}
	return fmt.Sprintf("up to %d bytes, %s", l.EntryBytes, l.EntrySizes)
}

// MeanBytes returns the mean size of the entries written.
func (l *Log) MeanBytes() float64 {
	if l.EntrySizes == "" || l.Entries == 0 {
		return float64(l.EntryBytes)
	}
	return float64(l.Bytes) / float64(l.Entries)
}

// CheckValid returns an error if a worker's account is impossible.
func (l *Log) CheckValid() error {
	if l.Files < 0 || l.FileBytes < 0 || l.EntryBytes < 0 {
		return fmt.Errorf("log files: %d of %d bytes, entries of %d", l.Files, l.FileBytes, l.EntryBytes)
	}
	for _, t := range l.Threads {
		if t.Session < 0 || t.Sessions < 1 || min(t.CPU, t.CPUAtEnd, t.Node, t.NodeAtEnd) < -1 {
			return fmt.Errorf("log files: a thread with %d sessions from %d on, on CPUs %d and %d", t.Sessions, t.Session, t.CPU, t.CPUAtEnd)
		}
	}
	if p := l.Proof; p != nil && p.Verified > p.Acknowledged {
		return errors.New("log files: more entries were verified than acknowledged")
	}
	return nil
}
