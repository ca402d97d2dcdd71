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
	err := h.supervised(ctx, told, &out)
	switch {
	case err != nil && ctx.Err() != nil:
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

// supervised starts the supervisor, and waits until it reports how the command ended. The supervisor stays while it has processes to watch over. It
// waits for the end of a pipe that closes when this process ends, for whatever reason.
func (h Hook) supervised(ctx context.Context, told []string, out *bounded) (err error) {
	cmd := exec.Command("/proc/self/exe", append([]string{Command, h.path}, h.Argv...)...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LOADGEN_HOOK=" + h.Name}, told...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	printed, output, err := os.Pipe()
	if err != nil {
		return err
	}
	defer printed.Close()
	said, status, err := os.Pipe()
	if err != nil {
		return errors.Join(err, output.Close())
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = output, output, []*os.File{status}
	alive, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err := errors.Join(err, output.Close(), status.Close()); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the supervisor, which ends with this process
	copied := make(chan struct{})
	go func() { // ends with the output, or after grace
		defer close(copied)
		_, _ = io.Copy(out, printed)
	}()
	stop := context.AfterFunc(ctx, func() {
		_ = alive.Close()
		_ = said.SetReadDeadline(time.Now().Add(2 * grace))
	})
	how, err := io.ReadAll(said)
	inTime := stop()
	_ = printed.SetReadDeadline(time.Now().Add(grace)) // a process in the background may hold it open
	<-copied
	switch {
	case err != nil: // the supervisor did not end in time
		return errors.Join(fmt.Errorf("its supervisor: %w", err), cmd.Process.Kill(), <-ended)
	case !inTime:
		return errors.Join(ctx.Err(), alive.Close(), <-ended)
	}
	return verdict(string(how))
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
