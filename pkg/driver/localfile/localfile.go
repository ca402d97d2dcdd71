// Package localfile is the interface of drivers whose target is files on the worker's own machine.
package localfile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is a driver whose target is files on the worker's own machine. There is no connection: a session carries out each op on the thread that asks
// for it. An op that does not wait for a disk takes no longer than a hand-over to another thread would.
type Driver interface {
	driver.Driver
	// Check returns why a target with the config does not support a verb that Outcomes lists; nil if it does.
	Check(config any, v driver.Verb) error
	// Need returns the needs of the site's sessions beyond what earlier phases have set up. It does not look at this machine. An error says what to
	// write in the plan instead. The config is as for Open.
	Need(config any, site Site) (Need, error)
	// Open prepares what a worker's sessions load in a phase. If ctx ends, it returns soon and leaves nothing behind. The config is of NewConfig's
	// type, and valid.
	Open(ctx context.Context, config any, site Site) (Store, error)
	// Verify reads a claim from Store.Close and checks that it is true. It runs in a different process from the one that wrote, after that one has
	// closed the store.
	Verify(claim []byte) (Proof, error)
}

// Keyed reports whether a driver stores arbitrary values by key: whether it knows put. The others store entries, each stamped with its writer.
func Keyed(d Driver) bool { return d.Outcomes(driver.Put) != nil }

// StampSize is the smallest size of an entry, in bytes: that of its stamp, which identifies the writer.
const StampSize = 16

// Site says where a worker's sessions work, and describes their values.
type Site struct {
	Root     string        // an existing directory that they stay within
	Name     string        // the target's name, which prefixes the names of files
	Worker   int           // this worker's number
	From     int           // the worker's sessions of the phase are From ≤ i < To
	To       int           //
	Sessions int           // of the phase, on all workers
	Epoch    uint64        // distinguishes what this phase of this run writes from anything else
	Fresh    bool          // the run has not opened the target before: existing files are another run's
	Held     bool          // an earlier phase of this run loaded the target with the same keys and values
	Had      map[int]bool  // the sessions that earlier phases had on this worker; nil for the same as now
	Value    driver.Value  // what all values have in common, with the largest of their sizes
	Sizes    *driver.Sizes // the sizes of entries; nil if all have one size
	Keys     int64         // number of keys
	Pools    bool          // Keys counts per session
	Memory   func() int64  // bytes that the process may still take; 0 if unknown
	Wrote    func(int64)   // receives the number of bytes written during preparation, so that a caller can tell slow from stuck; may be nil
}

// Need lists the needs of a worker's sessions.
type Need struct {
	Logs   int
	Bytes  int64 // total size of their files
	Memory int64 // bytes that the process takes besides the files
	Slots  int64 // a log's slots for values; 0 if it has none, and later phases may write any size that fits
	Value  int   // bytes that a slot holds; without slots, the entry size that every phase must use, or 0
}

// Store holds the files that a worker's sessions load in a phase. One goroutine at a time may call its methods.
type Store interface {
	// Session returns session i, From ≤ i < To. The sessions of a store may be used at the same time.
	Session(i int) (Session, error)
	// Log returns what is in use and the counts so far. No session may be running.
	Log() Log
	// Close ends the sessions and closes the files. The claim is for Verify; nil if there is nothing to verify. If Log returns a Failure, the claim
	// covers what can still be read, and closing is not an error.
	Close() (claim []byte, err error)
	// Remove deletes the files. Call it after Close.
	Remove() error
}

// Session is one session of a Store. Used by one goroutine at a time.
type Session interface {
	// Prepare does the work that is not part of the op: it generates the value's bytes, and makes room for them unless that is to be measured.
	Prepare(req *driver.Request) error
	// Do carries out the prepared request and returns once it is as durable as the target promises. After an error, the session cannot be used any
	// more.
	Do(req *driver.Request, reply *driver.Reply) error
}

// Timed is a Session that may measure how long its ops wait for durability.
type Timed interface {
	Session
	// Waited returns how long all ops so far have waited; false if that is not measured. Log.Untimed then says why.
	Waited() (all time.Duration, measured bool)
}

// Placed is a Store that knows the block device that its files are on.
type Placed interface{ Device() Device }

// Device is a block device.
type Device struct {
	Name      string // "/dev/sda1"; "" if there is none
	Number    string // "8:1"
	NoBytes   string // why the number of bytes written to it is unknown; "" if it is known
	NoFlushes string // why the number of flushes of its write cache is unknown; "" if it is known

	// Counts returns how many bytes all programs have written to it and how often it was flushed; an unknown count is 0.
	Counts func() (bytes, flushes uint64, err error)
}

// Log says which log files a phase loaded, what its sessions promised, and what they did. It is part of the result.
type Log struct {
	Layout      string   `json:"layout"`
	SyncAsked   string   `json:"sync_asked"`   // as in the plan
	SyncUsed    string   `json:"sync_used"`    // differs only if the plan says "auto"
	Instruction string   `json:"instruction"`  // the instructions that bring an entry to memory: "CLWB", "MOVNTDQ and CLWB"; "" if the kernel does
	Durable     bool     `json:"durable"`      // an op that is ok survives a power loss, provided the device keeps what it says it has
	FileSystem  string   `json:"file_system"`  // the file system and its device, such as "ext4 on /dev/pmem0"
	Caveats     []string `json:"caveats"`      // facts that limit the comparison of figures
	Clear       string   `json:"clear"`        // what happens to a full log
	GroupCommit string   `json:"group_commit"` // when a session syncs for all that wait: "at once", "after 1ms or 64 KiB"; "" without group commit
	Prealloc    string   `json:"prealloc"`     // how the blocks of a new file are allocated, in the terms of package pmem
	Files       int      `json:"files"`
	FileBytes   int64    `json:"file_bytes"` // of each file
	Entries     uint64   `json:"entries"`    // entries written
	Bytes       uint64   `json:"bytes"`      // bytes of entries written, without the layout's overhead
	Forces      uint64   `json:"forces"`     // how often something was made durable and waited for
	Batches     []Batch  `json:"batches"`    // with group commit, syncs by the number of entries that they made durable, ascending
	AtRisk      *AtRisk  `json:"at_risk"`    // nil unless ops end before their entries are durable
	Untimed     string   `json:"untimed"`    // why the waits of ops for durability are not measured; "" if they are
	Resets      uint64   `json:"resets"`     // how often a full log was cleared or began again from the front
	Failure     string   `json:"failure"`    // why the first op failed permanently; "" if none did
}

// Batch counts the syncs that made up to Entries entries durable, and more than half as many.
type Batch struct {
	Entries uint64 `json:"entries"` // a power of two
	Syncs   uint64 `json:"syncs"`
}

// AddBatches adds two lists in ascending order to one.
func AddBatches(a, b []Batch) []Batch {
	sum := append(append([]Batch{}, a...), b...)
	slices.SortFunc(sum, func(x, y Batch) int { return cmp.Compare(x.Entries, y.Entries) })
	for i := len(sum) - 1; i > 0; i-- {
		if sum[i].Entries == sum[i-1].Entries {
			sum[i-1].Syncs += sum[i].Syncs
			sum = slices.Delete(sum, i, i+1)
		}
	}
	return sum
}

// AtRisk says what a power loss would have taken: entries that were acknowledged and not yet covered by a completed sync. The means are over time.
type AtRisk struct {
	EntriesMax      uint64  `json:"entries_max"`
	EntriesMean     float64 `json:"entries_mean"`
	BytesMax        uint64  `json:"bytes_max"`
	BytesMean       float64 `json:"bytes_mean"`
	SecondsMax      float64 `json:"seconds_max"`       // the longest time for which an entry was at risk
	LastSyncSeconds float64 `json:"last_sync_seconds"` // how long the sync after the last op took
}

// Add returns the most that was at risk in two logs, as if both had the most at the same time. Either may be nil.
func (r *AtRisk) Add(o *AtRisk) *AtRisk {
	if r == nil || o == nil {
		return cmp.Or(r, o)
	}
	return &AtRisk{
		EntriesMax: r.EntriesMax + o.EntriesMax, EntriesMean: r.EntriesMean + o.EntriesMean,
		BytesMax: r.BytesMax + o.BytesMax, BytesMean: r.BytesMean + o.BytesMean,
		SecondsMax: max(r.SecondsMax, o.SecondsMax), LastSyncSeconds: max(r.LastSyncSeconds, o.LastSyncSeconds),
	}
}

// Proof says what another process found in the files. Acknowledged ⊆ recovered ⊆ issued, each entry byte for byte, unless Wrong says otherwise.
type Proof struct {
	Acknowledged uint64   `json:"acknowledged"` // entries that must be there: acknowledged, and not cleared or overwritten since
	Verified     uint64   `json:"verified"`     // acknowledged entries found whole
	Recovered    uint64   `json:"recovered"`    // entries found
	Wrong        []string `json:"wrong"`        // the first few things that are wrong
}
