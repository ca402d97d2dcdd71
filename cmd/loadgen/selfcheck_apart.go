package main

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// standApart keeps this process off the first of the processors that it may use. What the returned function runs may use that one only,
// and so may the processes it starts. Where there is one processor, or the kernel will not have it, everything runs where it did.
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
		runtime.LockOSThread() // the runtime starts no thread from one that is locked
		defer runtime.UnlockOSThread()
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		err := f()
		return errors.Join(err, unix.SchedSetaffinity(0, &rest))
	}
}

// moveThreads has all threads of this process use some processors only. Those that they start later do the same.
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
