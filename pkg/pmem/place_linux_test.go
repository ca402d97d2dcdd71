package pmem

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file's place is what /proc/self/mountinfo says of the mount that it is on, by the mount's own number, or else by the device; an overlay's is what
// the overlay is on, and that of a device kept in a file or in memory is kept there. From it follows what a loss of power leaves, and what is to be
// said of figures from there: in any mode, and in those that sync.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	escaped := strings.NewReplacer(",", `\054`, `\`, `\134`, " ", `\040`)
	made := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(path, 0o700))
		return path
	}
	upper, lower := made("upper"), made("lower")
	odd, bytes, comma := made(`a,b\c d`), made("\303\244\377"), made("u,1")
	gone := filepath.Join(dir, "gone")
	const (
		ext4, keeps = "ext4 on /dev/sda1", "keeps"
		hidden      = "overlay: what the file is on beneath is not to be seen from here, so that nothing is called durable"
		unlisted    = "unknown file system: what the file is on beneath is not to be seen"
		volatile    = "overlay over tmpfs lives in memory: a loss of power leaves nothing"
	)
	over := func(options string) string {
		return "1 0 0:40 / / rw - overlay none rw,lowerdir=/l," + options + ",workdir=/w\n2 0 0:41 / /x rw - tmpfs none rw\n3 0 8:2 / /y rw - xfs /dev/sdb rw\n"
	}
	for _, c := range []struct {
		mounts, backing string
		place, state    string // of a file on mount 1, on device 8:1
		any, syncing    string // caveats; "": none
	}{
		{mounts: "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n", place: ext4, state: keeps},
		{mounts: "1 9 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n", place: "tmpfs", state: "volatile", any: "tmpfs lives in memory"},
		{mounts: "9 1 8:1 / / rw - ext4 /dev/sda1 rw\n1 9 259:0 / /mnt/pmem rw,relatime shared:9 master:2 - xfs /dev/pmem0 rw,dax=always\n", place: "xfs on /dev/pmem0", state: keeps},
		{mounts: "1 0 259:0 / / rw - xfs /dev/pmem0 rw\n9 1 8:1 / / rw - ext4 /dev/sda1 rw\n", place: "xfs on /dev/pmem0", state: keeps},
		{mounts: "1 9 8:1 / / rw - ext4 /dev/sda1 rw\n30 9 8:1 / /other rw - tmpfs other\n", place: ext4, state: keeps},
		{mounts: "24 1 8:2 / /in rw - xfs /dev/inside\n7 1 8:1 / / rw - ext4 /dev/sda1 rw", place: ext4, state: keeps},
		{mounts: "\n", place: "unknown file system on 8:1", state: "hidden", any: unlisted},
		{mounts: `1 0 0:40 / /odd\040name rw - fuse.x` + "\n", place: "unknown file system on 8:1", state: "hidden", any: unlisted},
		{mounts: "1 0 8:1 / / rw - btrfs /dev/sda1 rw\n", place: "btrfs on /dev/sda1", state: keeps, any: "btrfs writes what is changed to another place"},
		{mounts: "1 0 0:3 / / rw - zfs pool rw\n", place: "zfs on pool", state: keeps, any: "zfs writes what is changed to another place"},
		{mounts: "1 0 0:3 / / rw - nfs host:/ rw\n", place: "nfs on host:/", state: keeps, any: "nfs: what a sync promises is the server's matter"},
		{mounts: "1 0 0:3 / / rw - nfs4 host:/ rw\n", place: "nfs4 on host:/", state: keeps, any: "nfs4: what a sync promises"},
		{mounts: "1 0 0:3 / / rw - 9p host rw\n", place: "9p on host", state: keeps, any: "9p: what a sync promises"},
		{mounts: "1 0 0:3 / / rw - fuse host rw\n", place: "fuse on host", state: keeps, any: "fuse: what a sync promises"},

		{mounts: "1 0 8:1 / / rw - ext4 /dev/sda1 rw,nobarrier,data=ordered\n", place: ext4, state: "keeps unordered", syncing: "ext4 is mounted with nobarrier"},
		{mounts: "1 0 8:1 / / rw - ext4 /dev/sda1 rw,barrier=0\n", place: ext4, state: "keeps unordered", syncing: "ext4 is mounted with nobarrier"},
		{mounts: "1 0 8:1 / / rw - ext4 /dev/sda1 rw,barrier=1,volatile\n", place: ext4, state: keeps},

		{mounts: over("upperdir=" + lower), place: "overlay over xfs", state: keeps, any: "overlay: each file is on the xfs beneath"},
		{mounts: over("upperdir=" + lower + ",volatile"), place: "overlay over xfs", state: "unsynced", any: "it passes no sync on"},
		{mounts: over("upperdir=" + lower + ",uuid=on,fsync=volatile"), place: "overlay over xfs", state: "unsynced", any: "it passes no sync on"}, // Linux 6.18
		{mounts: over("upperdir=" + upper), place: "overlay over tmpfs", state: "volatile", any: volatile},
		{mounts: over("upperdir=" + escaped.Replace(odd)), place: "overlay over tmpfs", state: "volatile", any: volatile},
		{mounts: over("upperdir=" + escaped.Replace(strings.Replace(comma, ",", `\,`, 1))), place: "overlay over tmpfs", state: "volatile", any: volatile},
		{mounts: over("upperdir=" + strings.Replace(bytes, "\303\244\377", `\303\244\377`, 1)), place: "overlay over tmpfs", state: "volatile", any: volatile},
		{mounts: over("upperdir=" + gone), place: "overlay on none", state: "hidden", any: hidden},
		{mounts: over("upperdir=from/somewhere"), place: "overlay on none", state: "hidden", any: hidden},
		{mounts: over("index=off"), place: "overlay on none", state: "hidden", any: hidden},
		{mounts: over("upperdir="+made("third")) + "4 0 0:42 / /z rw - overlay none rw,upperdir=" + upper + "\n", place: "overlay over tmpfs", state: "volatile", any: volatile},
		{mounts: over("upperdir="+made("third")) + "4 0 0:42 / /z rw - overlay none rw,upperdir=" + gone + "\n", place: "overlay on none", state: "hidden", any: hidden},
		{mounts: over("upperdir="+made("third")) + "4 0 0:42 / /z rw - overlay none rw\n", place: "overlay on none", state: "hidden", any: hidden},

		{mounts: "1 0 7:0 / / rw - ext4 /dev/loop3 rw\n", backing: "/memfd:disk (deleted)", place: "ext4 on /dev/loop3", any: "/dev/loop3 is kept in memory (tmpfs)"},
		{mounts: "1 0 7:0 / / rw - ext4 /dev/loop3p1 rw\n", backing: "/memfd:disk", place: "ext4 on /dev/loop3p1", any: "/dev/loop3p1 is kept in memory (tmpfs)"},
		{mounts: "1 0 7:0 / / rw - ext4 /dev/loop3 rw\n2 0 0:41 / /x rw - tmpfs none rw\n", backing: upper + "/disk", place: "ext4 on /dev/loop3", any: "/dev/loop3 is kept in memory (tmpfs)"},
		{mounts: "1 0 7:0 / / rw - ext4 /dev/loop3 rw\n3 0 8:2 / /y rw - xfs /dev/sdb rw\n", backing: lower + "/disk", place: "ext4 on /dev/loop3", state: keeps},
		{mounts: "1 0 7:0 / / rw - ext4 /dev/loop3 rw\n", place: "ext4 on /dev/loop3", any: "/dev/loop3: what its file is on is not to be seen"},
		{mounts: "1 0 7:0 / / rw - ext4 /dev/loop3 rw\n", backing: gone + "/image", place: "ext4 on /dev/loop3", any: "/dev/loop3: what its file is on is not to be seen"},
		{mounts: "1 0 7:0 / / rw - ext4 /dev/zram0 rw\n", place: "ext4 on /dev/zram0", any: "/dev/zram0 is kept in memory (zram)"},
		{mounts: "1 0 7:0 / / rw - ext4 /dev/ram0 rw\n", place: "ext4 on /dev/ram0", any: "/dev/ram0 is kept in memory (ram)"},
	} {
		on := map[string]string{upper: "2", odd: "2", bytes: "2", comma: "2", lower: "3", dir + "/third": "4"}
		_, place, err := roomOf(&script{mounts: c.mounts, backing: c.backing, on: on}, rootOf(t, t.TempDir()))
		require.NoError(t, err)
		require.Equal(t, c.place, place.String(), c.mounts)
		var state []string
		for name, is := range map[string]bool{
			"keeps": place.Keeps(), "hidden": place.Hidden(), "volatile": place.Volatile(), "unsynced": place.Unsynced(), "unordered": place.Unordered(),
		} {
			if is {
				state = append(state, name)
			}
		}
		slices.Sort(state)
		require.Equal(t, c.state, strings.Join(state, " "), c.mounts)
		for mode, own := range map[Mode]string{
			None: "nothing is forced", CLWB: "instructions without MAP_SYNC", Msync: c.syncing, Fdatasync: c.syncing, MapSync: "",
		} {
			says := caveats(t.TempDir(), mode, place)
			want := slices.DeleteFunc([]string{c.any, own}, func(s string) bool { return s == "" })
			require.Len(t, says, len(want), "%s: %s", mode, c.mounts)
			for i := range want {
				require.Contains(t, says[i], want[i], "%s: %s", mode, c.mounts)
			}
		}
	}
	require.Empty(t, held(t, dir), "nothing stays open")
}

// Lines of /proc/self/mountinfo that say less are skipped.
func TestMountsThatSayLess(t *testing.T) {
	root := rootOf(t, t.TempDir())
	for _, line := range []string{
		"", "\n", " - ", " - ext4 /dev/x rw", "1 - ext4 /dev/x rw", "1 9 - ext4 /dev/x rw", "1 9 8:1 / / rw", "1 9 8:1 / / rw - ", "1 9 8:1 / / rw - ext4",
		"7 9 8:2 / / rw - ext4 /dev/x rw", "7 9 - ext4 /dev/x rw",
	} {
		_, place, err := roomOf(&script{mounts: line + "\n"}, root)
		require.NoError(t, err)
		require.Equal(t, "unknown file system on 8:1", place.String(), "%q", line)
		_, place, err = roomOf(&script{mounts: line + "\n1 9 8:1 - xfs /dev/sda1"}, root)
		require.NoError(t, err)
		require.Equal(t, "xfs on /dev/sda1", place.String(), "%q", line)
	}
}

// Room says of a directory what a file in it would be told.
func TestRoomOfADirectory(t *testing.T) {
	dir := tmpfs(t)
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	free, place, err := Room(root)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, free)
	require.Equal(t, "tmpfs", place.FileSystem)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), make([]byte, 8192), 0o600))
	free, _, err = Room(root)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20-8192, free)
	for at := range 4 {
		k := &script{at: at + 1}
		_, _, err = roomOf(k, root)
		require.ErrorIs(t, err, errFault, "%s", k.failed)
	}
	require.Len(t, held(t, dir), 1, "only the root is open")
	require.NoError(t, root.Close())
	free, _, err = Room(root)
	require.ErrorIs(t, err, os.ErrClosed)
	require.Zero(t, free)
}

func FuzzFind(f *testing.F) {
	f.Add("22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n24 22 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n", "22", "8:1")
	f.Add("1 2 8:1 - ", "1", "8:1")
	f.Fuzz(func(t *testing.T, text, number, device string) {
		p := find(text, number, device)
		require.NotEmpty(t, p.FileSystem)
		require.True(t, p.Device != "" || device == "")
		require.Regexp(t, "^(|/.*)$", strings.ReplaceAll(p.upper(), "\n", ""))
	})
}
