package command

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// standApart moves this process off the first processor that it may use. The returned function runs its argument on that processor only, and so do
// processes that it starts. With only one processor, or if the kernel refuses, everything stays where it was.
func standApart() (first func(func() error) error) {
	var all, one, rest unix.CPUSet
	anywhere := func(f func() error) error { return f() }
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		return anywhere
	}
	rest = all
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
			rest.Clear(cpu)
		}
	}
	if err := moveThreads(&rest); err != nil {
		return anywhere
	}
	return func(f func() error) error {
		runtime.LockOSThread() // the runtime starts no thread from a locked one
		defer runtime.UnlockOSThread()
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		err := f()
		return errors.Join(err, unix.SchedSetaffinity(0, &rest))
	}
}

// moveThreads restricts all threads of this process to some processors. Threads that they start later inherit that.
func moveThreads(to *unix.CPUSet) error {
	moved := map[string]bool{}
	for again := true; again; {
		again = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			if moved[t.Name()] {
				continue
			}
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, to); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			moved[t.Name()], again = true, true
		}
	}
	return nil
}
