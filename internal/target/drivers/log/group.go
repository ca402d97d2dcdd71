package log

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// GroupCommit says how long a session that is about to sync waits for others.
type GroupCommit struct {
	// MaxDelay is the longest wait; 0 for none.
	MaxDelay time.Duration `hcl:"max_delay,optional" json:"max_delay_ns"`
	// MaxBytes is the number of unsynced bytes that ends the wait; 0 if no number does.
	MaxBytes driver.Size `hcl:"max_bytes,optional" json:"max_bytes"`
}

// maxDelay bounds how long a group waits.
const maxDelay = 10 * time.Second

// sharing returns the errors of a target whose entries are to share a sync.
func (c *Config) sharing(name string) (errs []error) {
	if !slices.Contains([]string{layoutAppend, layoutChannel}, c.Layout) {
		errs = append(errs, fmt.Errorf("%s is for the layouts %q; leave it out with %q", name, []string{layoutAppend, layoutChannel}, c.Layout))
	}
	if !c.Syncs() {
		errs = append(errs, fmt.Errorf("%s with sync = %q, which has no sync to share; write sync = %q or %q, or leave %s out", name, c.Sync, pmem.Fdatasync, pmem.Msync, name))
	}
	if c.Order != string(pmlog.Strict) {
		errs = append(errs, fmt.Errorf("%s with order = %q; leave that out, or %s", name, c.Order, name))
	}
	if c.Commit != string(pmlog.ByChecksum) {
		errs = append(errs, fmt.Errorf("%s with commit = %q; leave that out, or %s", name, c.Commit, name))
	}
	return errs
}

// Syncs says whether an op may wait for a sync of what it has stored, which takes far longer than to store it.
func (c *Config) Syncs() bool {
	return slices.Contains([]pmem.Mode{pmem.Auto, pmem.Fdatasync, pmem.Msync}, pmem.Mode(c.Sync))
}

// validate says what is wrong with the block.
func (g *GroupCommit) validate() (errs []error) {
	if g.MaxDelay < 0 || g.MaxDelay > maxDelay {
		errs = append(errs, fmt.Errorf(`group_commit with max_delay = %q; write a time up to %q, or "0s" to sync at once`, g.MaxDelay, maxDelay))
	}
	if g.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf(`group_commit with max_bytes = %d; write a size such as "64KiB"`, g.MaxBytes))
	}
	if g.MaxBytes > 0 && g.MaxDelay == 0 {
		errs = append(errs, errors.New(`group_commit with max_bytes, which ends the wait of max_delay, and without that; write max_delay = "1ms", or leave max_bytes out`))
	}
	return errs
}

// String describes the block in the result; "" for nil.
func (g *GroupCommit) String() string {
	if g == nil {
		return ""
	}
	var until []string
	if g.MaxDelay > 0 {
		until = append(until, g.MaxDelay.String())
	}
	if g.MaxBytes > 0 {
		until = append(until, g.MaxBytes.String())
	}
	if until == nil {
		return "at once"
	}
	return "after " + strings.Join(until, " or ")
}

// group returns the layout's option; nil if each entry has a sync of its own.
func (c *Config) group() *pmlog.Group {
	switch {
	case c.GroupCommit != nil:
		return &pmlog.Group{MaxDelay: c.GroupCommit.MaxDelay, MaxBytes: int64(c.GroupCommit.MaxBytes)}
	case c.SyncEvery != nil:
		return &pmlog.Group{}
	}
	return nil
}

// mode returns the mode to open files in. A group needs a sync that several entries share, and the mode map_sync has no such sync.
func (c *Config) mode() pmem.Mode {
	if c.group() != nil && c.Sync == string(pmem.Auto) {
		return pmem.Fdatasync
	}
	return pmem.Mode(c.Sync)
}

// batches returns how many entries the log's syncs have made durable, by the number of entries.
func batches(sizes pmlog.GroupSizes) (list []localfile.Batch) {
	for i, n := range sizes {
		if n > 0 {
			list = append(list, localfile.Batch{Entries: 1 << i, Syncs: n})
		}
	}
	return list
}
