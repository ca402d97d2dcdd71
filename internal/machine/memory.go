package machine

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Available returns how much memory this process may take, in bytes: what the kernel could give without swapping, or less where a
// control group or GOMEMLIMIT bounds it. What a group uses already is not taken off: much of it is caches that give way. It is 0 when
// nothing says. root is as in [Read].
func Available(root fs.FS) int64 {
	least := unused(root)
	_ = eachMemoryGroup(root, func(g memoryGroup) { least = min(least, g.limit) }) // a group that cannot be read bounds nothing
	if least = min(least, debug.SetMemoryLimit(-1)); least == math.MaxInt64 {
		return 0
	}
	return max(least, 1)
}

// Room returns how many bytes more this process can take before the kernel has to swap or to kill: what the machine has left, or less
// where a control group, or one around it, has less left for all that is in it. File caches count as left. It is false when nothing says.
func Room(root fs.FS) (int64, bool) {
	least := unused(root)
	_ = eachMemoryGroup(root, func(g memoryGroup) { least = min(least, g.limit-g.used(root)) })
	if least == math.MaxInt64 {
		return 0, false
	}
	return max(least, 0), true
}

// unused is what the kernel could give without swapping; the largest number when it does not say.
func unused(root fs.FS) int64 {
	r := environment{root: root, nulls: map[string]null{}}
	kB, err := strconv.ParseInt(strings.TrimSuffix(r.field("available", "proc/meminfo", "MemAvailable"), " kB"), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return kB << 10
}

// memoryGroup is a control group that bounds memory.
type memoryGroup struct {
	dir           string
	limit         int64
	usage, caches string // names of the file with what is used, and of the lines of memory.stat with file caches
}

// eachMemoryGroup calls visit for every control group around this process that bounds memory. Version 2 has two bounds: beyond memory.high a
// group is slowed down, beyond memory.max it is killed.
func eachMemoryGroup(root fs.FS, visit func(memoryGroup)) error {
	return controlGroups(root, func(controller, dir string) {
		limits, g := []string{"memory.max", "memory.high"}, memoryGroup{dir: dir, usage: "memory.current"}
		switch controller {
		case "":
		case "memory":
			limits, g.usage, g.caches = []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_" // of the groups inside it, too
		default:
			return
		}
		for _, name := range limits {
			if n, ok := number(root, path.Join(dir, name)); ok {
				g.limit = n
				visit(g)
			}
		}
	})
}

// used is what the group uses and cannot give back; 0 when it does not say.
func (g memoryGroup) used(root fs.FS) int64 {
	used, ok := number(root, path.Join(g.dir, g.usage))
	stat, err := fs.ReadFile(root, path.Join(g.dir, "memory.stat"))
	if !ok || err != nil {
		return used
	}
	for line := range bytes.Lines(stat) {
		key, text, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if key != g.caches+"active_file" && key != g.caches+"inactive_file" {
			continue
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			used -= n
		}
	}
	return max(used, 0)
}

// number reads a file that holds one; "max" is none.
func number(root fs.FS, name string) (int64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
