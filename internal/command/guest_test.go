package command_test

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

	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// guestPlan appends entries of 200 bytes at a rate, for as long as a variable says, to a log that must not fill up. An emulated processor makes 3 MiB of
// it ready in a second.
const guestPlan = `
plan "guest" {}
variable "sync" { default = "map_sync" }
variable "layout" { default = "append" }
variable "duration" { default = "1s" }
variable "rate" { default = "100/s" }
target "wal" {
	driver    = "log"
	layout    = var.layout
	sync      = var.sync
	file_size = "2MiB"
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

// runLog runs guestPlan in a guest on a log below /mnt/AT, and prints what matters on lines that begin with a name.
func runLog(name, at, vars string) string {
	return fmt.Sprintf(`/loadgen coordinator run /plan.hcl --runs /tmp/runs --log-root /mnt/%[3]s %[1]s > /tmp/out 2>&1 &
p=$!
while grep -q . /proc/$p/maps && ! grep -q pmlog /proc/$p/maps; do sleep 0.3; done 2>/dev/null # until it ends, if it maps nothing
awk '/pmlog/ { on = 1 } on && /VmFlags/ { print "%[2]s flags", $0; on = 0 }' /proc/$p/smaps 2>/dev/null
wait $p; echo %[2]s exit $?
sed 's/^/%[2]s /' /tmp/out
`, vars, name, at)
}

// TestMapSyncInAGuest runs loadgen on ext4 and XFS with DAX on emulated NVDIMMs, without DAX, and on a virtio-pmem device, which cannot tell when
// something is durable. Then the guest is killed while it writes to both NVDIMMs, and the host opens what it has left. It is one guest, because an
// emulated processor needs longer to boot than for a run.
func TestMapSyncInAGuest(t *testing.T) {
	t.Parallel()
	exe, err := exec.LookPath("loadgen")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(guestPlan), 0o600))
	guests := NewGuests(t, map[string]string{"loadgen": exe, "plan.hcl": path})
	ext4, xfs := guests.NVDIMM("ext4"), guests.NVDIMM("xfs")

	script := `mkdir /mnt/ext4 /mnt/xfs /mnt/virtio
mount -t ext4 -o dax=never /dev/pmem0 /mnt/ext4 && echo MOUNTED without DAX
` + runLog("REFUSED", "ext4", "") + runLog("AUTO", "ext4", "-var sync=auto") + `umount /mnt/ext4
mount -t ext4 -o dax=always /dev/pmem0 /mnt/ext4 && mount -t xfs -o dax=always /dev/pmem1 /mnt/xfs && echo MOUNTED NVDIMMs
mount -t ext4 -o dax=always /dev/pmem2 /mnt/virtio && echo MOUNTED virtio
` + runLog("ASYNC", "virtio", "") +
		runLog("VIRTIO", "virtio", "-var sync=auto -var rate=20/s") + // each msync is an fsync of the host's file, and takes as long as the host's device needs
		runLog("APPEND", "ext4", "") + runLog("ARRAY", "ext4", "-var layout=array") + runLog("XFS", "xfs", "")
	for _, kind := range []string{"ext4", "xfs"} {
		script += fmt.Sprintf(`/loadgen coordinator run /plan.hcl --runs /tmp/runs --log-root /mnt/%[1]s -var duration=10m 2>&1 |
while read -r said; do echo "%[1]s $said"; done &
`, kind)
	}
	g := guests.Boot(script+"wait\n", ext4, xfs, guests.VirtioPmem())
	require.Eventually(t, func() bool {
		return min(acknowledged(g.Said(), "ext4"), acknowledged(g.Said(), "xfs")) > 100 || strings.Contains(g.Said(), "GUEST done")
	}, 5*time.Minute, 50*time.Millisecond, g)
	g.Kill()
	out := g.Wait()

	for _, which := range []string{"without DAX", "NVDIMMs", "virtio"} {
		require.Contains(t, "\n"+out, "\nMOUNTED "+which+"\n")
	}
	require.Contains(t, ofRun(out, "REFUSED"), "exit 6 ")
	require.Contains(t, ofRun(out, "REFUSED"), "ext4 on /dev/pmem0 cannot map with MAP_SYNC")
	require.Contains(t, ofRun(out, "ASYNC"), "exit 6 ")
	require.Contains(t, ofRun(out, "ASYNC"), "ext4 on /dev/pmem2 cannot map with MAP_SYNC")
	for _, name := range []string{"AUTO", "VIRTIO"} {
		require.Regexp(t, "exit [04] ", ofRun(out, name), "its times need not be valid")
		require.Contains(t, ofRun(out, name), "sync auto asked, fdatasync used, 1 file")
	}
	for _, name := range []string{"APPEND", "ARRAY", "XFS"} {
		said := ofRun(out, name)
		require.Regexp(t, `^flags VmFlags: [a-z ]* sf `, said, "the mapping is synchronous")
		require.Regexp(t, " exit [04] ", said, "its times need not be valid")
		require.Contains(t, said, "sync map_sync asked, map_sync used by MOVNTDQ and CLWB, 1 file")
		whole := regexp.MustCompile(`verified ([0-9,]+)/([0-9,]+) entries`).FindStringSubmatch(said)
		require.NotNil(t, whole, said)
		require.Equal(t, whole[1], whole[2])
	}
	for kind, image := range map[string]string{"ext4": ext4.Image, "xfs": xfs.Image} {
		acked := acknowledged(out, kind)
		require.Greater(t, acked, 100, out)
		recovered, torn := reopen(t, kind, image)
		t.Logf("%s: at least %d entries were acknowledged before the guest was killed, %d recovered, %d torn", kind, acked, recovered, torn)
		require.GreaterOrEqual(t, recovered, acked)
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

// progress is what a run on a file system says every second, behind the name of the file system.
var progress = regexp.MustCompile(`(?m)^(ext4|xfs) write .* done ([0-9,]+)$`)

// acknowledged returns how many ops of the run on a file system were done when it last said so.
func acknowledged(said, kind string) (n int) {
	for _, line := range progress.FindAllStringSubmatch(said, -1) {
		if line[1] == kind {
			n, _ = strconv.Atoi(strings.ReplaceAll(line[2], ",", ""))
		}
	}
	return n
}

// reopen mounts what a killed guest has left, which replays the file system's journal, and recovers the log in it.
func reopen(t *testing.T, kind, image string) (records, torn int) {
	t.Helper()
	at := t.TempDir()
	out, err := exec.Command("mount", "-t", kind, "-o", fmt.Sprintf("loop,offset=%d", pmemStart), image, at).CombinedOutput()
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
