package hook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command is the first argument that makes this program the supervisor of a hook. The program must then call [Supervise] with the arguments after it.
const Command = "supervise-hook"

// statusFile is the file descriptor on which a supervisor reports how its command ended.
const statusFile = 3

// Supervise runs a command, given as a path and its arguments including the name. It ends everything the command has started if the command fails,
// and when standard input ends, which happens however the parent process ends. Everything started stays below this process, which adopts orphaned
// descendants (PR_SET_CHILD_SUBREAPER). If the command succeeds, what it leaves running stays until standard input ends.
func Supervise(argv []string) int {
	runtime.LockOSThread() // the command is killed when the thread that started it ends
	// It ends with its pipe, not on a signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	unix.CloseOnExec(statusFile)
	status := os.NewFile(statusFile, "status")
	if err := supervise(argv, status); err != nil {
		fmt.Fprintf(status, "error %v", err)
		return 1
	}
	return 0
}

func supervise(argv []string, status io.WriteCloser) error {
	if len(argv) < 2 {
		return errors.New("a path and a name are missing")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt what it starts: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec(argv[0], argv[1:], &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	for _, output := range []int{1, 2} { // these end when the processes it has started close them
		if err := unix.Dup3(int(null.Fd()), output, 0); err != nil {
			return err
		}
	}
	ended, alone, cut := make(chan syscall.WaitStatus, 1), make(chan struct{}), make(chan struct{})
	go reap(pid, ended, alone)
	go func() { // ends with this process at the latest
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(cut)
	}()
	select {
	case <-cut:
		return end(alone)
	case how := <-ended:
		if how != 0 {
			err = end(alone)
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(status, "ended %d", how); err != nil {
			return end(alone) // nobody is there any more
		}
		if err := status.Close(); err != nil || how != 0 {
			return err
		}
	}
	select {
	case <-alone:
		return nil
	case <-cut:
		return end(alone)
	}
}

// reap collects the exit of every process below this one, until there are none.
func reap(pid int, ended chan<- syscall.WaitStatus, alone chan<- struct{}) {
	for {
		var how syscall.WaitStatus
		switch got, err := syscall.Wait4(-1, &how, 0, nil); {
		case err == syscall.EINTR:
		case err != nil: // ECHILD: none left
			close(alone)
			return
		case got == pid:
			ended <- how
		}
	}
}

// end ends all processes below this one, with SIGTERM and then with SIGKILL.
func end(alone <-chan struct{}) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		late := time.Now().Add(grace / 2)
		for sent := map[int]bool{}; time.Now().Before(late); {
			below, err := descendants(os.Getpid())
			if err != nil {
				return fmt.Errorf("look for what the command has started: %w", err)
			}
			for _, pid := range below {
				if !sent[pid] {
					sent[pid] = true
					_ = syscall.Kill(pid, signal) // it may have ended already
				}
			}
			select {
			case <-alone:
				return nil
			case <-time.After(poll):
			}
		}
	}
	return errors.New("something that the command has started does not end")
}

// descendants lists the processes below root, except zombies.
func descendants(root int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, path := range stats {
		if pid, parent, ok := parentAt(path); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	below := slices.Clone(children[root])
	for i := 0; i < len(below); i++ {
		below = append(below, children[below[i]]...)
	}
	return below, nil
}

// parentAt reads a process's stat: PID, name in parentheses, state, parent (proc_pid_stat(5)). ok is false for a process that has ended.
func parentAt(path string) (pid, parent int, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(path)))
	parent, err2 := strconv.Atoi(string(fields[1]))
	return pid, parent, errors.Join(err1, err2) == nil
}
