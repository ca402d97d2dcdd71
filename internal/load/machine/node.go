package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// maxCPU bounds CPU numbers in a list; Linux supports 8,192 at most.
const maxCPU = 1 << 13

// NodeOf returns the NUMA node of a CPU, from the link nodeM in sys/devices/system/cpu/cpuN. It is −1 if the kernel names none.
func NodeOf(root fs.FS, cpu int) int {
	links, err := fs.Glob(root, "sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)+"/node[0-9]*")
	if err != nil || len(links) == 0 {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimPrefix(path.Base(links[0]), "node"))
	if err != nil {
		return -1
	}
	return node
}

// NodeCPUs returns the CPUs of a NUMA node. It returns an error if there are none.
func NodeCPUs(root fs.FS, node int) ([]int, error) {
	name := "sys/devices/system/node/node" + strconv.Itoa(node) + "/cpulist"
	text, err := fs.ReadFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		there, _ := fs.ReadFile(root, "sys/devices/system/node/online") // missing without NUMA
		return nil, fmt.Errorf("NUMA node %d does not exist; there are %s", node, cmp.Or(strings.TrimSpace(string(there)), "none"))
	}
	if err != nil {
		return nil, fmt.Errorf("CPUs of NUMA node %d: %w", node, err)
	}
	list, err := ParseList(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("CPUs of NUMA node %d: %s: %w", node, name, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("NUMA node %d has memory and no CPUs", node)
	}
	return list, nil
}

// ParseList reads a list of CPUs as the kernel writes it: "0-3,8,10-11".
func ParseList(text string) (cpus []int, err error) {
	if text == "" {
		return nil, nil
	}
	for span := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || from > to || to >= maxCPU {
			return nil, fmt.Errorf("%q is not a list of CPUs", text)
		}
		for cpu := from; cpu <= to; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	return cpus, nil
}
