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

// Available returns how much memory this process may use, in bytes: the memory that the kernel could give without swapping, or less if a control
// group or GOMEMLIMIT limits it. It does not subtract what a group already uses, since much of that is reclaimable cache. It is 0 if unknown. root is
// as in [Read].
func Available(root fs.FS) int64 {
	least := unused(root)
	_ = eachMemoryGroup(root, func(g memoryGroup) { least = min(least, g.limit) }) // a group that cannot be read sets no limit
	if least = min(least, debug.SetMemoryLimit(-1)); least == math.MaxInt64 {
		return 0
	}
	return max(least, 1)
}

// Room returns how many more bytes this process can use before the kernel has to swap or kill: the memory that the machine has left, or less if a
// control group or one of its ancestors has less left for all of its processes. File caches count as left. It is false if unknown.
func Room(root fs.FS) (int64, bool) {
	least := unused(root)
	_ = eachMemoryGroup(root, func(g memoryGroup) { least = min(least, g.limit-g.used(root)) })
	if least == math.MaxInt64 {
		return 0, false
	}
	return max(least, 0), true
}

// unused returns the bytes that the kernel could give without swapping; math.MaxInt64 if unknown.
func unused(root fs.FS) int64 {
	r := environment{root: root}
	kB, err := strconv.ParseInt(strings.TrimSuffix(r.field("available", "proc/meminfo", "MemAvailable"), " kB"), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return kB << 10
}

// memoryGroup is a control group that limits memory.
type memoryGroup struct {
	dir           string
	limit         int64
	usage, caches string // the file with the usage, and the prefix of the lines for file caches in memory.stat
}

// eachMemoryGroup calls visit for every control group of this process, and every ancestor, that limits memory. Version 2 has two limits: a group above
// memory.high is slowed down, one above memory.max is killed.
func eachMemoryGroup(root fs.FS, visit func(memoryGroup)) error {
	return controlGroups(root, func(controller, dir string) {
		limits, g := []string{"memory.max", "memory.high"}, memoryGroup{dir: dir, usage: "memory.current"}
		switch controller {
		case "":
		case "memory":
			limits, g.usage, g.caches = []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_" // including the groups inside it
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

// used returns the bytes that the group uses and cannot give back; 0 if unknown.
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

// number reads a file that holds a number; false for "max".
func number(root fs.FS, name string) (int64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}
