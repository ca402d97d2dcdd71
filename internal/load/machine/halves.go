package machine

import (
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Halves divides the CPUs that this process may use between loops that make a load and servers for it, which would otherwise take them from each other.
// CPUs that share a core stay together, unless all share one. Of an odd number the servers get one more, and always the first, which often serves
// interrupts. Both halves are empty if there are less than two CPUs, or time for less than two by the quota of a control group.
func Halves(root fs.FS) (loops, servers []int) {
	cpus, err := allowed(root, self)
	if err != nil {
		return nil, nil
	}
	r := environment{root: root}
	if quota, _ := r.cgroup(); len(cpus) < 2 || quota != nil && *quota < 2 {
		return nil, nil
	}
	all := cores(root, cpus)
	if len(all) == 1 {
		all = slices.Collect(slices.Chunk(cpus, 1))
	}
	for _, core := range slices.Backward(all) {
		if len(loops)+len(core) <= len(cpus)/2 {
			loops = append(loops, core...)
		} else {
			servers = append(servers, core...)
		}
	}
	slices.Sort(loops)
	slices.Sort(servers)
	return loops, servers
}

// cores groups CPUs by their core. A CPU whose core the kernel does not name forms a group of its own.
func cores(root fs.FS, cpus []int) (all [][]int) {
	at := map[string]int{}
	for _, cpu := range cpus {
		text, err := fs.ReadFile(root, "sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)+"/topology/thread_siblings_list")
		name := string(text)
		if err != nil {
			name = strconv.Itoa(cpu)
		}
		i, known := at[name]
		if !known {
			i = len(all)
			at[name], all = i, append(all, nil)
		}
		all[i] = append(all[i], cpu)
	}
	return all
}

// Confine restricts the calling thread, to which its goroutine must be locked, to some CPUs. undo restores the previous ones.
func Confine(cpus []int) (undo func() error, err error) {
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	for _, cpu := range cpus {
		only.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return nil, err
	}
	return func() error { return unix.SchedSetaffinity(0, &before) }, nil
}

// On calls f on a thread that may use only these CPUs, or any CPU if the list is empty. Processes that f starts inherit the restriction; goroutines
// do not.
func On(cpus []int, f func() error) error {
	if len(cpus) == 0 {
		return f()
	}
	runtime.LockOSThread()
	undo, err := Confine(cpus)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("use CPUs %s only: %w", List(cpus), err)
	}
	defer func() {
		if undo() == nil {
			runtime.UnlockOSThread() // else the thread ends with its goroutine
		}
	}()
	return f()
}

// List writes CPUs, which are sorted, as the kernel does: "0-3,8".
func List(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); {
		first := cpus[i]
		for i++; i < len(cpus) && cpus[i] == cpus[i-1]+1; i++ {
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last := cpus[i-1]; last > first {
			b.WriteString("-" + strconv.Itoa(last))
		}
	}
	return b.String()
}
