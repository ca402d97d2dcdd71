package log

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// TestSyncEvery: what is at risk is what was acknowledged since the last sync, which follows after so many entries, bytes, or so long.
func TestSyncEvery(t *testing.T) {
	for _, c := range []struct {
		layout, every, used string
		entries             uint64 // at risk at most; 0: depends on how fast the machine is
	}{
		{layoutAppend, "10", "fdatasync every 10 entries", 10},
		{layoutAppend, "1KiB", "fdatasync every 1 KiB", 11},
		{layoutChannel, "10", "fdatasync every 10 entries", 10},
		{layoutAppend, "1h", "fdatasync every 1h0m0s", 301},
		{layoutAppend, "1ms", "fdatasync every 1ms", 0},
	} {
		t.Run(c.layout+" "+c.every, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, func(to *Config) { to.Layout, to.Sync, to.SyncEvery = c.layout, "auto", &c.every })
			s := open(t, cfg, siteOf(t, 1))
			require.NoError(t, do(s.sessions[0], driver.Append, 301, 0))
			l := s.Log()
			require.Equal(t, c.used, l.SyncUsed)
			require.False(t, l.Durable)
			require.NotNil(t, l.AtRisk)
			if c.entries > 0 {
				require.Equal(t, c.entries, l.AtRisk.EntriesMax)
				require.Equal(t, 100*c.entries, l.AtRisk.BytesMax)
			}
			waited, measured := s.sessions[0].Waited()
			require.True(t, measured)
			require.Equal(t, c.every == "10" || c.every == "1KiB", waited > 0, "an op that no sync follows waits for none")
			require.LessOrEqual(t, l.AtRisk.EntriesMean, float64(l.AtRisk.EntriesMax))
			require.Positive(t, l.AtRisk.EntriesMean)
			require.Positive(t, l.AtRisk.SecondsMax)
			require.Positive(t, l.AtRisk.LastSyncSeconds)
			var syncs uint64
			for _, b := range l.Batches {
				syncs += b.Syncs
			}
			if c.entries > 0 {
				require.Equal(t, (301+c.entries-1)/c.entries, syncs)
			}
			require.Equal(t, l.AtRisk, s.Log().AtRisk, "nothing is at risk after the last sync")
			whole(t, verify(t, s))
			drivertest.Run(t, drivertest.Suite{Driver: Driver{}, Config: cfg})
		})
	}
}

// TestWhatIsNotAtRiskSurvives a crash at any time, on a medium that knows what is durable: of entries that a policy syncs, as many are recovered as
// were not at risk, and at most those that were issued.
func TestWhatIsNotAtRiskSurvives(t *testing.T) {
	for layout, sizes := range map[string][]int64{layoutAppend: {16 << 10}, layoutChannel: {4 << 10, pmlog.SideSize}} {
		for _, every := range []often{{entries: 3}, {bytes: 250}, {every: time.Hour}} {
			t.Run(layout+" "+every.String(), func(t *testing.T) {
				const size = 100
				form := form{Layout: layout, Kind: kind{Size: size}, Padding: 64, Commit: "checksum", Group: &pmlog.Group{}}
				trace, rng := pmemtest.New(1, sizes...), rand.New(rand.NewPCG(1, 0))
				over := func(create bool, regions ...pmlog.Region) volume {
					v, err := form.over(regions[0], regions[len(regions)-1], create)
					require.NoError(t, err)
					return v
				}
				v := over(true, trace.Region(0), trace.Region(len(sizes)-1))
				p := newPolicy(every, v.(groups).Sync, func(err error) { t.Error(err) })
				w, err := v.writer(0, 1)
				require.NoError(t, err)
				issued, images := uint64(0), 0
				trace.OnFence = func() {
					trace.Images(64, rng, func(image pmemtest.Image) bool {
						m := trace.Regions(bytes.Clone(image.Bytes))
						n, err := each(over(false, m[0], m[len(m)-1]).reader(0, 1), func([]byte) {})
						require.NoError(t, err)
						require.GreaterOrEqual(t, n, p.synced.entries)
						require.LessOrEqual(t, n, issued)
						images++
						return true
					})
				}
				for range 20 {
					issued++
					_, err := (&lazyWriter{storing: w.(storing), policy: p}).Append(bytes.Repeat([]byte{byte(issued)}, size))
					require.NoError(t, err)
					if issued%8 == 0 && every.every > 0 {
						require.NoError(t, p.force()) // as its thread does
					}
					trace.OnFence() // between two ops
				}
				require.GreaterOrEqual(t, p.synced.entries, uint64(16))
				p.end()
				require.Equal(t, issued, p.synced.entries)
				trace.OnFence()
				require.Greater(t, images, 500)
			})
		}
	}
}

// TestSyncEveryThatCannotBe is refused, with what to write.
func TestSyncEveryThatCannotBe(t *testing.T) {
	const form = `write a time from "1ms" to "1h", a size such as "1MiB", or a number of entries such as 100`
	for _, c := range []struct {
		every, says string
		change      func(c *Config)
	}{
		{"", form, nil},
		{"often", form, nil},
		{"0", form, nil},
		{"-1", form, nil},
		{"1us", form, nil},
		{"2h", form, nil},
		{"0KiB", form, nil},
		{"1MB", form, nil},
		{"100", "leave one of them out", func(c *Config) { c.GroupCommit = &GroupCommit{} }},
		{"100", `sync_every with sync = "none", which has no sync to share; write sync = "fdatasync" or "msync"`, func(c *Config) { c.Sync = "none" }},
		{"100", `sync_every is for the layouts ["append" "channel"]; leave it out with "raw"`, func(c *Config) { c.Layout = layoutRaw }},
		{"100", `sync_every with order = "relaxed"; leave that out`, func(c *Config) { c.Order = "relaxed" }},
	} {
		cfg := Driver{}.NewConfig().(*Config)
		cfg.SyncEvery = &c.every
		if c.change != nil {
			require.NoError(t, cfg.Validate())
			c.change(cfg)
		}
		require.ErrorContains(t, cfg.Validate(), c.says, c.every)
	}
}
