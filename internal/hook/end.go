package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// reaping is how often it is looked whether parents know of the end of their children.
const reaping = 30

// end ends what is left of a command: first it is asked, then it is made to. It returns an error if something is left even so.
func end(group int, mark string) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if ended, err := send(signal, group, mark); err != nil || ended {
			return err
		}
	}
	return errors.New("something that the command has started does not end")
}

// send sends a signal once to each process that is left, also to those that are started meanwhile, and reports whether all have ended in time.
func send(signal syscall.Signal, group int, mark string) (ended bool, err error) {
	late, cancel := context.WithTimeout(context.Background(), grace/2)
	defer cancel()
	sent := map[int]bool{}
	unknown := 0 // looks at processes that have ended, of which their parents may not know yet
	for ; late.Err() == nil; time.Sleep(poll) {
		left, err := members(group, mark)
		if err != nil {
			return false, fmt.Errorf("look for what the command has started: %w", err)
		}
		if ended = len(left) == 0; ended {
			if unknown++; unknown > reaping || syscall.Kill(-group, 0) != nil {
				return true, nil
			}
		}
		for _, pid := range left {
			if !sent[pid] {
				sent[pid] = true
				_ = syscall.Kill(pid, signal) // it may have ended
			}
		}
	}
	return ended, nil
}

// member is a process as /proc has it.
type member struct{ pid, parent, group int }

// members lists the processes of a command: those of its group, those that have its mark in their environment, where it stays whatever they do to
// get away from their parent, and the children of both.
func members(group int, mark string) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var found []int
	var others []member
	for _, path := range stats {
		m, ok := memberAt(path)
		if !ok {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ")) // another user's cannot be read
		if m.group == group || slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == mark }) {
			found = append(found, m.pid)
		} else {
			others = append(others, m)
		}
	}
	for i := 0; i < len(found); i++ {
		for _, m := range others {
			if m.parent == found[i] && !slices.Contains(found, m.pid) {
				found = append(found, m.pid)
			}
		}
	}
	return found, nil
}

// memberAt reads the stat of a process: number, name in parentheses, state, parent, group (proc_pid_stat(5)). One that has ended is none.
func memberAt(path string) (m member, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return m, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 3 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return m, false
	}
	pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(path)))
	parent, err2 := strconv.Atoi(string(fields[1]))
	group, err3 := strconv.Atoi(string(fields[2]))
	return member{pid, parent, group}, errors.Join(err1, err2, err3) == nil
}
