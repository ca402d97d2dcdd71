package runner

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// childWithin is how long a worker started by this process may take to end after the run.
const childWithin = 3 * time.Second

// childPlace is where a worker started by this process connects.
func childPlace(dir string) (identity.Place, error) {
	return identity.At(dir, fmt.Sprintf("socket:child-%d", os.Getpid()))
}

// startChild starts this program as a child process. The child ends when its standard input does, so also when this process is killed. end makes it
// end, and ended is closed once it has.
func startChild(args []string) (ended <-chan struct{}, end func(), err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(exe, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only the coordinator
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	done := make(chan struct{})
	go func() { // ends with the child, which end terminates
		defer close(done)
		_ = cmd.Wait() // the run records how the child fared
	}()
	return done, func() {
		_ = stdin.Close() // the child may have ended already
		late := time.AfterFunc(childWithin, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		<-done
	}, nil
}
