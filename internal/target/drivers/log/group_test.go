package log

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// groupCommits are the layouts that have it, in files that are soon full.
var groupCommits = map[string]func(c *Config){
	"append": func(c *Config) { c.Sync, c.FileSize, c.GroupCommit = "fdatasync", 32<<10, &GroupCommit{} },
	"channel": func(c *Config) {
		c.Layout, c.Sync, c.FileSize, c.GroupCommit = layoutChannel, "msync", 8<<10, &GroupCommit{MaxDelay: time.Microsecond}
	},
	"segments": func(c *Config) {
		c.Sync, c.FileSize, c.GroupCommit, c.Full, c.Prealloc = "fdatasync", 16<<10, &GroupCommit{}, "rotate", "recycle"
	},
	"auto": func(c *Config) {
		c.Sync, c.FileSize, c.GroupCommit = "auto", 32<<10, &GroupCommit{MaxDelay: time.Second, MaxBytes: 1}
	},
}

// TestGroupCommit: what sessions have acknowledged together is there, also in a second phase, and each sync is counted with its entries.
func TestGroupCommit(t *testing.T) {
	for name, change := range groupCommits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, at := config(t, change), siteOf(t, 3)
			for phase := range 2 {
				at.Fresh, at.Epoch = phase == 0, uint64(77+phase)
				s := open(t, c, at)
				const each = 100
				load(t, s, func(one *session) error { return do(one, driver.Append, each, 0) })
				l := s.Log()
				most, least, syncs := uint64(0), uint64(0), uint64(0)
				for _, b := range l.Batches {
					least, most, syncs = least+b.Syncs*(b.Entries/2+1), most+b.Syncs*b.Entries, syncs+b.Syncs
				}
				require.LessOrEqual(t, least, uint64(3*each))
				require.GreaterOrEqual(t, most, uint64(3*each))
				require.GreaterOrEqual(t, l.Forces, syncs)
				require.Positive(t, l.Resets)
				require.NotEqual(t, "auto", l.SyncUsed)
				whole(t, verify(t, s))
			}
			drivertest.Run(t, drivertest.Suite{Driver: Driver{}, Config: c})
		})
	}
}

// TestGroupCommitThatCannotBe is refused, with what to write.
func TestGroupCommitThatCannotBe(t *testing.T) {
	for says, change := range map[string]func(c *Config){
		`group_commit is for the layouts ["append" "channel"]; leave it out with "array"`:                                    func(c *Config) { c.Layout = layoutArray },
		`group_commit with sync = "none", which has no sync to share; write sync = "fdatasync" or "msync"`:                   func(c *Config) { c.Sync = "none" },
		`group_commit with sync = "map_sync", which has no sync to share`:                                                    func(c *Config) { c.Sync = "map_sync" },
		`group_commit with share = "session", where no two sessions store in one log`:                                        func(c *Config) { c.Share = "session" },
		`group_commit with order = "relaxed"; leave that out`:                                                                func(c *Config) { c.Order = "relaxed" },
		`group_commit with commit = "length"; leave that out`:                                                                func(c *Config) { c.Commit = "length" },
		`group_commit with max_delay = "-1ns"; write a time up to "10s"`:                                                     func(c *Config) { c.GroupCommit.MaxDelay = -1 },
		`group_commit with max_delay = "10.000000001s"`:                                                                      func(c *Config) { c.GroupCommit.MaxDelay = maxDelay + 1 },
		`group_commit with max_bytes = -1; write a size`:                                                                     func(c *Config) { c.GroupCommit.MaxBytes = -1 },
		`group_commit with max_bytes, which ends the wait of max_delay, and without that; write max_delay = "1ms", or leave`: func(c *Config) { c.GroupCommit.MaxBytes = 1 },
	} {
		c := Driver{}.NewConfig().(*Config)
		c.GroupCommit = &GroupCommit{}
		require.NoError(t, c.Validate())
		change(c)
		require.ErrorContains(t, c.Validate(), says)
	}
	require.Equal(t, "after 1ms or 64 KiB", (&GroupCommit{MaxDelay: time.Millisecond, MaxBytes: 64 << 10}).String())
}
