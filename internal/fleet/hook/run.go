package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Run runs the command, at most until ctx ends. told holds extra environment variables, as NAME=VALUE. If the command fails, the error ends with the
// last line that it printed.
func (h Hook) Run(ctx context.Context, told []string) (Output, error) {
	var out bounded
	var err error
	if h.servers == nil {
		err = h.supervised(ctx, told, &out)
	} else if err = h.servers.start(ctx, told, &out); err == nil {
		return Output{}, nil // what it prints is still to come
	}
	switch {
	case err != nil && ctx.Err() != nil && h.servers == nil:
		err = fmt.Errorf("hook %s: it did not end in time, and was ended", h.Name)
	case err != nil:
		err = fmt.Errorf("hook %s: %w", h.Name, err)
	}
	text := strings.ToValidUTF8(out.kept.String(), "�")
	if last := lastLine(text); err != nil && last != "" {
		err = fmt.Errorf("%w; the last that it printed: %s", err, last)
	}
	return Output{Text: text, Cut: out.cut}, err
}

// supervised starts the supervisor, and waits until it reports how the command ended. The supervisor stays while it has processes to watch over.
func (h Hook) supervised(ctx context.Context, told []string, out *bounded) error {
	s, err := h.begin(told, out)
	if err != nil {
		return err
	}
	defer s.close()
	stop := context.AfterFunc(ctx, func() {
		_ = s.alive.Close()
		_ = s.said.SetReadDeadline(time.Now().Add(2 * grace))
	})
	how, err := io.ReadAll(s.said)
	inTime := stop()
	_ = s.printed.SetReadDeadline(time.Now().Add(grace)) // a process in the background may hold it open
	<-s.copied
	switch {
	case err != nil: // the supervisor did not end in time
		return errors.Join(fmt.Errorf("its supervisor: %w", err), s.cmd.Process.Kill(), <-s.ended)
	case !inTime:
		return errors.Join(ctx.Err(), s.alive.Close(), <-s.ended)
	}
	return verdict(string(how))
}

// supervisor is one that was started. It waits for the end of a pipe, alive, that closes when this process ends, for whatever reason.
type supervisor struct {
	cmd           *exec.Cmd
	alive         io.Closer
	printed, said *os.File
	copied        chan struct{} // closed when the output has ended
	ended         chan error    // receives how the supervisor ended
}

// begin starts the supervisor of the command.
func (h Hook) begin(told []string, out *bounded) (s *supervisor, err error) {
	cmd := exec.Command("/proc/self/exe", append([]string{Command, h.path}, h.Argv...)...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LOADGEN_HOOK=" + h.Name}, told...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s = &supervisor{cmd: cmd, copied: make(chan struct{}), ended: make(chan error, 1)}
	var output, status *os.File
	if s.printed, output, err = os.Pipe(); err != nil {
		return nil, err
	}
	if s.said, status, err = os.Pipe(); err != nil {
		return nil, errors.Join(err, s.printed.Close(), output.Close())
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = output, output, []*os.File{status}
	s.alive, err = cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err := errors.Join(err, output.Close(), status.Close()); err != nil {
		s.close()
		return nil, err
	}
	go func() { s.ended <- cmd.Wait() }() // ends with the supervisor, which ends with this process
	go func() {                           // ends with the output, or after grace
		defer close(s.copied)
		_, _ = io.Copy(out, s.printed)
	}()
	return s, nil
}

// close closes the pipes from the supervisor.
func (s *supervisor) close() {
	_ = s.printed.Close()
	_ = s.said.Close()
}

// end ends the command and what it has started.
func (s *supervisor) end() {
	_ = s.alive.Close()
	late := time.AfterFunc(2*grace, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	<-s.ended
	_ = s.printed.SetReadDeadline(time.Now().Add(grace))
	<-s.copied
	s.close()
}

// verdict parses a supervisor's report on how its command ended.
func verdict(said string) error {
	if words, ok := strings.CutPrefix(said, "error "); ok {
		return errors.New(words)
	}
	var how syscall.WaitStatus
	if _, err := fmt.Sscanf(said, "ended %d", &how); err != nil {
		return fmt.Errorf("its supervisor ended, and said %q", said)
	}
	switch {
	case how.Signaled():
		return fmt.Errorf("signal: %v", how.Signal())
	case how.ExitStatus() != 0:
		return fmt.Errorf("exit status %d", how.ExitStatus())
	}
	return nil
}
