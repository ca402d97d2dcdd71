// Package localfile is what a driver implements whose target is files on the worker's own machine.
package localfile

import (
	"context"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Driver is a driver whose target is files on the worker's own machine. There is no connection: a session carries an op out on the thread
// that asks it to, and one that does not wait for a disk takes no longer than handing it to another thread would.
type Driver interface {
	driver.Driver
	// Check says why a target with the config does not take a verb that Outcomes has; nil when it does.
	Check(config any, v driver.Verb) error
	// Need says what the sessions of a site take that no earlier phase has loaded. It looks at nothing of this machine, and an error says what to write in
	// the plan instead. The config is as for Open.
	Need(config any, site Site) (Need, error)
	// Open makes ready what a worker's sessions of a phase load, or leaves nothing behind and returns soon when ctx ends. The config is of NewConfig's
	// type, and valid.
	Open(ctx context.Context, config any, site Site) (Store, error)
	// Verify reads a claim of Store.Close's and looks whether what it says is so. It runs in another process than the one that wrote, which
	// has closed the store.
	Verify(claim []byte) (Proof, error)
}

// Keyed says whether a driver keeps values by key, whatever they are: it knows put. The others keep entries, each of which says who wrote it.
func Keyed(d Driver) bool { return d.Outcomes(driver.Put) != nil }

// StampSize is the least size of an entry, in bytes: each says there who wrote it.
const StampSize = 16

// Site is where a worker's sessions work, and what their values are like.
type Site struct {
	Root   string       // directory that they stay within; it is there
	Name   string       // of the target; files are named after it
	Worker int          // this worker's number
	From   int          // the worker's sessions of the phase are From ≤ i < To
	To     int          //
	Epoch  uint64       // tells what is written in this phase of this run from anything else
	Fresh  bool         // the run has not opened the target before: what is there is of another run
	Held   bool         // an earlier phase of this run had the target with the same keys and values
	Had    map[int]bool // the sessions that earlier phases had on this worker; nil: these
	Value  driver.Value // what all values have in common
	Keys   int64        // there are so many keys
	Pools  bool         // for each session
	Memory func() int64 // bytes that the process may take now; 0: nothing says
	Wrote  func(int64)  // is told of bytes as files are made ready, so that who waits can tell slow from stuck; nil: nobody waits
}

// Need is what a worker's sessions take.
type Need struct {
	Logs   int
	Bytes  int64 // of their files
	Memory int64 // bytes, of the process beside them
	Slots  int64 // that a log has for values; 0 where it has none, and a later phase may write whatever there is room for
	Value  int   // bytes that a slot holds; where there are none, those of each entry of every phase, unless it is 0
}

// Store is the files that a worker's sessions load in a phase. Its methods are for one goroutine at a time.
type Store interface {
	// Session returns session i, From ≤ i < To. Sessions of a store may be used at the same time.
	Session(i int) (Session, error)
	// Log says what is used, and what has been counted so far. No session may be at work.
	Log() Log
	// Close ends the sessions and gives the files back. The claim is for Verify; it is nil where there is nothing to verify.
	Close() (claim []byte, err error)
	// Remove deletes the files. It comes after Close.
	Remove() error
}

// Session is one session of a Store. Used by one goroutine at a time.
type Session interface {
	// Prepare makes ready for req what is not part of the op: the value's bytes, and room for them where that is not to be measured.
	Prepare(req *driver.Request) error
	// Do carries the prepared request out, and returns when it is durable as far as the target promises. An error means that the
	// session is of no further use.
	Do(req *driver.Request, reply *driver.Reply) error
}

// Log says which log files a phase loaded, what its sessions promised, and what they did. It is part of the result.
type Log struct {
	Layout      string   `json:"layout"`
	SyncAsked   string   `json:"sync_asked"`  // as the plan says
	SyncUsed    string   `json:"sync_used"`   // another one only where the plan says "auto"
	Instruction string   `json:"instruction"` // what brings an entry to memory: "CLWB", "MOVNTDQ and CLWB"; "" where the kernel does
	Durable     bool     `json:"durable"`     // an op that is ok survives a loss of power, as far as the device keeps what it says it has
	FileSystem  string   `json:"file_system"` // with its device, such as "ext4 on /dev/pmem0"
	Caveats     []string `json:"caveats"`     // what bears on whether figures may be compared
	Clear       string   `json:"clear"`       // what becomes of a full log
	Files       int      `json:"files"`
	FileBytes   int64    `json:"file_bytes"` // of each
	Bytes       uint64   `json:"bytes"`      // of entries that were written, without what the layout adds
	Forces      uint64   `json:"forces"`     // waits until something is durable
	Resets      uint64   `json:"resets"`     // times that a log was cleared, or began again from the front, because it was full
	Failure     string   `json:"failure"`    // why the first op that failed for good did; "" when none did
}

// Proof is what another process found in the files. Acknowledged ⊆ recovered ⊆ issued, each entry byte for byte, unless Wrong says
// otherwise.
type Proof struct {
	Acknowledged uint64   `json:"acknowledged"` // entries that must be there: acknowledged, and not cleared or overwritten since
	Verified     uint64   `json:"verified"`     // of those, found whole
	Recovered    uint64   `json:"recovered"`    // entries that are there
	Wrong        []string `json:"wrong"`        // what should not be so; the first few
}
