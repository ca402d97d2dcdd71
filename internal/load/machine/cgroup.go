package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/count/measure"
)

// controlGroups calls visit, with the directory of the group's files, for every control group that this process is in, and for its ancestors up to
// the root. Version 2 has lines "0::/path" in proc/self/cgroup, without a controller's name; version 1 has a hierarchy per controller. On a system
// with both, those of version 2 are in a directory called unified. See Documentation/admin-guide/cgroup-v2.rst in Linux.
func controlGroups(root fs.FS, visit func(controller, dir string)) error {
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return err
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		parts := strings.SplitN(s.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			for _, controller := range strings.Split(parts[1], ",") {
				visit(controller, path.Join("sys/fs/cgroup", controller, group))
				if controller == "" {
					visit(controller, path.Join("sys/fs/cgroup/unified", group))
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return nil
}

// Throttled returns the throttling that this process's control groups and their ancestors have counted since they were created. root is the file system
// with proc and sys. A group without a quota counts nothing.
func Throttled(root fs.FS) (measure.Throttled, error) {
	var sum measure.Throttled
	err := controlGroups(root, func(controller, dir string) {
		if controller != "" && controller != "cpu" {
			return
		}
		b, err := fs.ReadFile(root, path.Join(dir, "cpu.stat"))
		if err != nil {
			return // the root, and groups without this controller, have none
		}
		for line := range strings.Lines(string(b)) {
			key, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				continue
			}
			switch key {
			case "nr_throttled":
				sum.Periods += n
			case "throttled_usec": // version 2
				sum.Seconds += float64(n) / 1e6
			case "throttled_time": // version 1, nanoseconds
				sum.Seconds += float64(n) / 1e9
			}
		}
	})
	if err != nil {
		return measure.Throttled{}, fmt.Errorf("read how often control groups were throttled: %w", err)
	}
	return sum, nil
}
