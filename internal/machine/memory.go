package machine

import (
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
	r := environment{root: root, nulls: map[string]string{}}
	least := int64(math.MaxInt64)
	if text := r.field("available", "proc/meminfo", "MemAvailable"); text != "" {
		if kB, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64); err == nil {
			least = kB << 10
		}
	}
	// A group that cannot be read bounds nothing.
	_ = controlGroups(root, func(controller, dir string) {
		limit := "memory.max"
		if controller == "memory" {
			limit = "memory.limit_in_bytes"
		}
		if most, ok := number(root, path.Join(dir, limit)); ok {
			least = min(least, most)
		}
	})
	if least = min(least, debug.SetMemoryLimit(-1)); least == math.MaxInt64 {
		return 0
	}
	return max(least, 1)
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
