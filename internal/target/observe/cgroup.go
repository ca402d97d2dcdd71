package observe

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/pkg/plan"
)

// readGroup adds the memory of the control group that a process is in: the kernel charges it for all processes of the group and of those inside it, and
// for the pages of files that they use. others are the groups of the processes read before.
func readGroup(pid int, others map[string]bool, f figures) {
	group, file, err := memoryGroup(strconv.Itoa(pid))
	own, _, ownErr := memoryGroup("self")
	switch {
	case err != nil:
		f.missing[plan.GroupField] = err.Error()
		return
	case ownErr != nil:
		f.missing[plan.GroupField] = ownErr.Error()
		return
	case group == "/" || own == group || strings.HasPrefix(own, group+"/"):
		f.missing[plan.GroupField] = fmt.Sprintf("loadgen is in its control group, too (%s): start it in one of its own, such as a container", group)
		return
	case strings.HasPrefix(group, "/.."):
		f.missing[plan.GroupField] = "its control group cannot be seen from loadgen's container"
		return
	case others[group]:
		f.missing[plan.GroupField] = fmt.Sprintf("two of the processes are in one control group (%s)", group)
		return
	}
	others[group] = true
	b, err := os.ReadFile(file)
	if err != nil {
		f.missing[plan.GroupField] = fmt.Sprintf("the kernel does not count the memory of its control group: %v", err)
		return
	}
	f.parse(plan.GroupField, strings.TrimSpace(string(b)))
}

// memoryGroup returns the control group that a process's memory is charged to, and the file with the sum. In proc_pid_cgroup(5), version 1 has a line with
// "memory" among the controllers, and version 2 one without any; where there are both, memory is mostly with version 1.
func memoryGroup(pid string) (group, file string, err error) {
	b, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			return parts[2], path.Join("/sys/fs/cgroup/memory", parts[2], "memory.usage_in_bytes"), nil
		case parts[1] == "":
			group, file = parts[2], path.Join("/sys/fs/cgroup", parts[2], "memory.current")
		}
	}
	if group == "" {
		return "", "", errors.New("it is in no control group")
	}
	return group, file, nil
}
