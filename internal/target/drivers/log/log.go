// Package log is the driver of log files on the worker's own machine, in the layouts of package pmlog.
//
//	verb    append            channel           array                    raw
//	append  the next record   the next bytes    the session's next slot  the session's next piece
//	write   -                 -                 the key's slot           -
//	read    the next record   the next bytes    the key's slot           the session's next piece
//	clear   the whole log     the whole log     the key's slot           -
//
// A session reads a log, or its own part of a raw file, from the beginning. The end is a miss, after which it starts again; so is an empty slot.
//
// # Entries
//
// Each entry has the dataset's size, or one drawn by session and number, and says who wrote it. Another process can thus check that everything
// acknowledged is there, byte for byte, once, and in order:
//
//	+-------+-----------+---------------------------+----------
//	| "LGE" | epoch 5B  | session 24b, number 40b   | filling
//	+-------+-----------+---------------------------+----------
//
// Integers are little-endian. The epoch identifies the run and the phase. A session numbers its entries from 1. The filling is text selected by
// epoch, session and number, or one repeated byte. An entry is not copied: the stamp is written over a piece of a longer text, and undone again.
package log

import (
	"errors"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// Config is what a target of this driver takes.
type Config struct {
	// Dir is the directory of the files, below the worker's --log-root. It may begin with the path of --log-root itself.
	Dir string `hcl:"dir,optional" json:"dir"`
	// Layout is the form of the files: "append", "channel", "array" or "raw".
	Layout string `hcl:"layout,optional" json:"layout"`
	// Sync says when an op counts as done, in the terms of package pmem; "auto" takes the strongest mode that the file system supports.
	Sync string `hcl:"sync,optional" json:"sync"`
	// Prealloc is the state of a new file's blocks, in the terms of package pmem. With "recycle", full files are used again, so that only the first
	// ones are new.
	Prealloc string `hcl:"prealloc,optional" json:"prealloc"`
	// FileSize is the size of each file, except for an array, whose file is as large as its slots.
	FileSize driver.Size `hcl:"file_size,optional" json:"file_size"`
	// Share says whether each "worker" or each "session" has a file.
	Share string `hcl:"share,optional" json:"share"`
	// Full says when a full log is cleared: "inside", within the op that finds it full; "outside", before the op begins; "never", so that the op is
	// an error. With "rotate", the op begins another file instead, and the full one is kept until the next is full. Arrays and raw files are never
	// full.
	Full string `hcl:"clear,optional" json:"clear"`
	// Erase makes each append to an array erase its slot again, within the op.
	Erase bool `hcl:"erase,optional" json:"erase"`
	// Padding is the multiple, in bytes, at which records and slots begin: 8, 64 or 256.
	Padding int `hcl:"padding,optional" json:"padding"`
	// Order is "strict" or "relaxed": whether sessions that append to one log wait for each other.
	Order string `hcl:"order,optional" json:"order"`
	// Commit names what makes an appended record valid: "checksum" or "length".
	Commit string `hcl:"commit,optional" json:"commit"`
	// CRC makes raw compute a checksum of each entry, as append and array do.
	CRC bool `hcl:"crc,optional" json:"crc"`
	// GroupCommit makes sessions that append to one log share syncs of what they have stored; nil if they do not.
	GroupCommit *GroupCommit `hcl:"group_commit,block" json:"group_commit,omitempty"`
	// SyncEvery lets ops end before their entries are durable. A sync follows after a time, "100ms", a number of bytes, "1MiB", or a number of
	// entries, "100"; nil if ops wait until their entries are durable.
	SyncEvery *string `hcl:"sync_every,optional" json:"sync_every,omitempty"`
}

// The layouts, in the order of all lists.
const (
	layoutAppend  = "append"
	layoutChannel = "channel"
	layoutArray   = "array"
	layoutRaw     = "raw"
)

// rotate and recycle are the values of Full and of Prealloc for logs in segments.
const (
	rotate  = "rotate"
	recycle = "recycle"
)

const maxFile = 1 << 44

// Validate says what is wrong with the config.
func (c *Config) Validate() error {
	var errs []error
	word := func(name, is string, among ...string) {
		if !slices.Contains(among, is) {
			errs = append(errs, fmt.Errorf("%s is %q; write one of %q", name, is, among))
		}
	}
	word("layout", c.Layout, layoutAppend, layoutChannel, layoutArray, layoutRaw)
	var names []string
	for _, m := range pmem.Modes {
		names = append(names, string(m))
	}
	word("sync", c.Sync, names...)
	word("prealloc", c.Prealloc, string(pmem.Zeroed), string(pmem.Reserved), recycle, string(pmem.Extending))
	word("share", c.Share, "worker", "session")
	word("clear", c.Full, "inside", "outside", "never", rotate)
	word("order", c.Order, string(pmlog.Strict), string(pmlog.Relaxed))
	word("commit", c.Commit, string(pmlog.ByChecksum), string(pmlog.ByLength))
	if c.FileSize < 4096 || c.FileSize > maxFile {
		errs = append(errs, fmt.Errorf(`file_size is %d bytes; write a size from "4KiB" to "16TiB"`, c.FileSize))
	}
	if !slices.Contains([]int{8, 64, 256}, c.Padding) {
		errs = append(errs, fmt.Errorf("padding is %d; write 8, 64 or 256", c.Padding))
	}
	only := func(name string, set bool, layouts ...string) {
		if set && !slices.Contains(layouts, c.Layout) {
			errs = append(errs, fmt.Errorf("%s is for the layouts %q; leave it out with %q", name, layouts, c.Layout))
		}
	}
	only("erase", c.Erase, layoutArray)
	only("crc", c.CRC, layoutRaw)
	for _, bound := range []pmem.Mode{pmem.ODsync, pmem.ODirect} {
		only(fmt.Sprintf("sync = %q", bound), c.Sync == string(bound), layoutRaw)
	}
	only(`clear = "rotate"`, c.Full == rotate, layoutAppend)
	for _, full := range []string{"outside", "never"} {
		only(fmt.Sprintf("clear = %q", full), c.Full == full, layoutAppend, layoutChannel)
	}
	only("padding", c.Padding != 64, layoutAppend, layoutArray)
	if c.Prealloc == recycle && c.Full != rotate {
		errs = append(errs, fmt.Errorf(`prealloc is "recycle", which writes the files again that clear = "rotate" leaves, and clear is %q: there are none; write clear = "rotate", or prealloc = %q`,
			c.Full, pmem.Zeroed))
	}
	only("order", c.Order != string(pmlog.Strict), layoutAppend)
	only("commit", c.Commit != string(pmlog.ByChecksum), layoutAppend)
	if c.Prealloc == string(pmem.Extending) {
		only(`prealloc = "none"`, true, layoutRaw)
		if c.Sync != string(pmem.Fdatasync) {
			errs = append(errs, fmt.Errorf(`prealloc is "none", which needs sync = "fdatasync": a mapped file has to have its blocks; write that, or prealloc = %q`, pmem.Reserved))
		}
	}
	if c.Order == string(pmlog.Relaxed) && c.Commit == string(pmlog.ByLength) {
		errs = append(errs, errors.New(`commit is "length", which needs order = "strict"`))
	}
	if c.Padding == 8 && c.Commit == string(pmlog.ByLength) {
		errs = append(errs, errors.New(`commit is "length", which needs padding = 64 or 256`))
	}
	if c.GroupCommit != nil {
		errs = append(errs, c.sharing("group_commit")...)
		errs = append(errs, c.GroupCommit.validate()...)
		if c.Share == "session" {
			errs = append(errs, errors.New(`group_commit with share = "session", where no two sessions store in one log and could share its syncs; leave one of them out`))
		}
	}
	if c.SyncEvery != nil {
		errs = append(errs, c.sharing("sync_every")...)
		if _, err := oftenOf(*c.SyncEvery); err != nil {
			errs = append(errs, err)
		}
		if c.GroupCommit != nil {
			errs = append(errs, errors.New("sync_every with group_commit: ops either end before their entries are durable, or wait for that together; leave one of them out"))
		}
	}
	return errors.Join(errs...)
}

// Driver is the driver, a [localfile.Driver].
type Driver struct{}

var _ localfile.Driver = Driver{}

// Name returns "log".
func (Driver) Name() string { return "log" }

// NewConfig returns a *Config.
func (Driver) NewConfig() any {
	return &Config{
		Layout: layoutAppend, Sync: string(pmem.Auto), Prealloc: string(pmem.Zeroed), FileSize: 64 << 20, Share: "worker", Full: "inside",
		Padding: 64, Order: string(pmlog.Strict), Commit: string(pmlog.ByChecksum),
	}
}

// Outcomes lists how requests can end.
func (Driver) Outcomes(v driver.Verb) []driver.Outcome { return outcomes[v] }

var outcomes = map[driver.Verb][]driver.Outcome{
	driver.Append: {driver.OK},
	driver.Write:  {driver.OK},
	driver.Read:   {driver.OK, driver.Miss},
	driver.Clear:  {driver.OK, driver.Miss},
}

// Check says why a target with the config does not take a verb.
func (Driver) Check(config any, v driver.Verb) error {
	c := config.(*Config)
	switch {
	case v == driver.Write && c.Layout != layoutArray:
		return fmt.Errorf("layout %q has no slots to write; write append, or layout = %q", c.Layout, layoutArray)
	case v == driver.Clear && c.Full == rotate:
		return errors.New(`clear is "rotate": a log in segments drops its oldest when it is full, and nothing else; leave the op clear out, or write clear = "inside"`)
	case v == driver.Clear && c.Layout == layoutRaw:
		return fmt.Errorf("layout %q has nothing to clear", c.Layout)
	case v == driver.Read && c.Sync == string(pmem.ODirect):
		return fmt.Errorf("sync is %q, which is for writes: reads would go through the page cache; leave the op read out, or write sync = %q", c.Sync, pmem.ODsync)
	case v == driver.Read && c.renews():
		return fmt.Errorf("prealloc is %q: each phase makes new files, which have nothing to read; write prealloc = %q", c.Prealloc, pmem.Zeroed)
	}
	return nil
}

// renews reports whether a phase creates its files anew, and whether a session that has a file alone does so whenever it starts again at the
// beginning. This is so for raw files whose blocks are to be new: nothing in them needs to be kept.
func (c *Config) renews() bool { return c.Layout == layoutRaw && c.Prealloc != string(pmem.Zeroed) }
