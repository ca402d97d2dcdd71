package main_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// guestPlan appends entries of 200 bytes at a rate, for as long as a variable says, to a log that must not fill up.
const guestPlan = `
plan "guest" {}
variable "sync" { default = "map_sync" }
variable "layout" { default = "append" }
variable "duration" { default = "1s" }
variable "rate" { default = "1k/s" }
target "wal" {
	driver    = "log"
	layout    = var.layout
	sync      = var.sync
	file_size = "16MiB"
	timeout   = "1m"
}
dataset "d" {
	keys { count = 100 }
	values { size = 200 }
}
phase "write" {
	target  = target.wal
	dataset = dataset.d
	ops     = { append = 1 }
	open {
		rate     = var.rate
		sessions = 1
		duration = var.duration
	}
	max_bad = 1
}
`

// runLog runs guestPlan in a guest, and prints what matters on lines that begin with a name.
func runLog(name, vars string) string {
	return fmt.Sprintf(`/loadgen coordinator run /plan.hcl --runs /tmp/runs --log-root /mnt %s > /tmp/out 2>&1 &
p=$!; i=0
while [ $i -lt 50 ] && ! grep -q pmlog /proc/$p/maps 2>/dev/null; do sleep 0.2; i=$((i+1)); done
awk '/pmlog/ { on = 1 } on && /VmFlags/ { print "%[2]s flags", $0; on = 0 }' /proc/$p/smaps 2>/dev/null
wait $p; echo %[2]s exit $?
sed 's/^/%[2]s /' /tmp/out
`, vars, name)
}

// TestMapSyncInAGuest runs loadgen on ext4 and XFS with DAX on an emulated NVDIMM, without DAX, and on a virtio-pmem device, which cannot tell when
// something is durable. Then the guest is killed while it writes, and the host opens what it has left.
func TestMapSyncInAGuest(t *testing.T) {
	t.Parallel()
	exe, err := exec.LookPath("loadgen")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(guestPlan), 0o600))
	guests := servertest.NewGuests(t, map[string]string{"loadgen": exe, "plan.hcl": path})

	raw, images := guests.Raw(), map[string]string{"ext4": guests.Image("ext4"), "xfs": guests.Image("xfs")}

	t.Run("virtio-pmem", func(t *testing.T) {
		t.Parallel()
		// Each msync is an fsync of the host's file here, and takes as long as the host's device needs.
		out := guests.Boot(raw, "virtio-pmem-pci", "mount -t ext4 -o dax=always /dev/pmem0 /mnt && echo MOUNTED\n"+
			runLog("ASYNC", "")+runLog("AUTO", "-var rate=20/s -var sync=auto")).Wait()
		require.Contains(t, out, "MOUNTED\n", "it has DAX")
		require.Contains(t, out, "ASYNC exit 6\n")
		require.Contains(t, ofRun(out, "ASYNC"), "cannot map with MAP_SYNC")
		require.Regexp(t, "exit [04] ", ofRun(out, "AUTO"))
		require.Contains(t, ofRun(out, "AUTO"), "sync auto asked, fdatasync used, 1 file")
	})
	for kind, layouts := range map[string][]string{"ext4": {"append", "array"}, "xfs": {"append"}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			image := images[kind]
			script := "mount -t " + kind + " -o dax=always /dev/pmem0 /mnt && echo MOUNTED\n"
			for _, layout := range layouts {
				script += runLog("DAX-"+layout, "-var layout="+layout)
			}
			if kind == "ext4" { // what a mount without DAX does is the same on both
				script += "umount /mnt; mount -t ext4 -o dax=never /dev/pmem0 /mnt && echo REMOUNTED\n" +
					runLog("REFUSED", "") + runLog("AUTO", "-var sync=auto") + "umount /mnt; mount -t ext4 -o dax=always /dev/pmem0 /mnt\n"
			}
			script += "/loadgen coordinator run /plan.hcl --runs /tmp/runs --log-root /mnt -var duration=10m 2>&1 | cat\n"
			g := guests.Boot(image, "nvdimm", script)
			require.Eventually(t, func() bool { return acknowledged(g.Said()) > 1000 || strings.Contains(g.Said(), "GUEST done") },
				5*time.Minute, 50*time.Millisecond, g)
			acked := acknowledged(g.Said())
			g.Kill()
			out := g.Wait()
			acked = max(acked, acknowledged(out))

			require.Contains(t, "\n"+out, "\nMOUNTED\n")
			for _, layout := range layouts {
				name := "DAX-" + layout
				said := ofRun(out, name)
				require.Regexp(t, `^flags VmFlags: [a-z ]* sf `, said, "the mapping is synchronous")
				require.Regexp(t, " exit [04] ", said, "its times need not be valid")
				require.Contains(t, said, "sync map_sync asked, map_sync used by MOVNTDQ and CLWB, 1 file")
				whole := regexp.MustCompile(`verified ([0-9,]+)/([0-9,]+) entries`).FindStringSubmatch(said)
				require.NotNil(t, whole, said)
				require.Equal(t, whole[1], whole[2])
			}
			if kind == "ext4" {
				require.Contains(t, out, "\nREMOUNTED\n")
				require.Contains(t, ofRun(out, "REFUSED"), "exit 6 ")
				require.Contains(t, ofRun(out, "REFUSED"), "ext4 on /dev/pmem0 cannot map with MAP_SYNC")
				require.Regexp(t, "exit [04] ", ofRun(out, "AUTO"))
				require.Contains(t, ofRun(out, "AUTO"), "sync auto asked, fdatasync used, 1 file")
			}
			require.Greater(t, acked, 1000, out)
			recovered, torn := reopen(t, kind, image)
			t.Logf("%s: at least %d entries were acknowledged before the guest was killed, %d recovered, %d torn", kind, acked, recovered, torn)
			require.GreaterOrEqual(t, recovered, acked)
		})
	}
}

// ofRun returns the line that a run in a guest has printed.
func ofRun(out, name string) string {
	var words []string
	for line := range strings.Lines(out) {
		if said, ok := strings.CutPrefix(line, name+" "); ok {
			words = append(words, strings.Fields(said)...)
		}
	}
	return strings.Join(words, " ")
}

// progress is what a run without a terminal says every second.
var progress = regexp.MustCompile(`(?m)^write .* done ([0-9,]+)$`)

// acknowledged returns how many ops of the last run were done when it last said so.
func acknowledged(said string) int {
	all := progress.FindAllStringSubmatch(said, -1)
	if all == nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.ReplaceAll(all[len(all)-1][1], ",", ""))
	return n
}

// reopen mounts what a killed guest has left, which replays the file system's journal, and recovers the log in it.
func reopen(t *testing.T, kind, image string) (records, torn int) {
	t.Helper()
	at := t.TempDir()
	out, err := exec.Command("mount", "-t", kind, "-o", fmt.Sprintf("loop,offset=%d", servertest.PmemStart), image, at).CombinedOutput()
	require.NoError(t, err, "%s", out)
	defer func() {
		out, err := exec.Command("umount", at).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}()
	f, err := pmem.Open(filepath.Join(at, "wal-w0.pmlog"), pmem.Msync)
	require.NoError(t, err)
	l, err := pmlog.OpenAppend(f)
	require.NoError(t, err)
	found := l.Recovered()
	require.False(t, found.Clean)
	r := l.Reader()
	for n := uint64(1); n <= found.Records; n++ {
		_, p, err := r.Next()
		require.NoError(t, err)
		require.Len(t, p, 200)
		require.Equal(t, n, binary.LittleEndian.Uint64(p[8:]), "entries of session 0 are numbered from 1")
	}
	require.NoError(t, l.Close())
	return int(found.Records), found.Torn
}
