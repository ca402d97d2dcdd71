package cachenode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// maxWords is how much of a child's standard error is kept, from its end.
const maxWords = 2 << 10

// child is one node process, as its parent sees it.
type child struct {
	index    int
	endpoint string // from its first line; written before that line is passed on
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	stderr   tail
	lines    chan string   // its standard output; closed at its end
	done     chan struct{} // closed when the process is gone
	err      error         // how it ended; valid in ended, and once done is closed
	asked    atomic.Bool   // it was asked to end

	mu   sync.Mutex // held while an order awaits its answer
	lost error      // why answers can no longer be matched to orders
}

// startChild starts a node. It calls ended once, when the process is gone.
func startChild(index int, exe string, args []string, ended func(*child)) (*child, error) {
	c := &child{
		index: index,
		cmd:   exec.Command(exe, args...),
		lines: make(chan string, 16),
		done:  make(chan struct{}),
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of the terminal's interrupt
	c.cmd.Stderr = &c.stderr
	c.cmd.WaitDelay = leaveTimeout
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c, err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c, err), stdin.Close())
	}
	c.stdin = stdin
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c, err)
	}
	go func() { // ends with the process; Close waits for done
		defer close(c.done)
		c.listen(stdout)
		c.err = c.cmd.Wait()
		ended(c)
	}()
	return c, nil
}

func (c *child) String() string {
	if c.endpoint == "" {
		return fmt.Sprintf("cache node %d", c.index)
	}
	return fmt.Sprintf("cache node %d (%s)", c.index, c.endpoint)
}

// listen reads the child's output to its end.
func (c *child) listen(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(make([]byte, maxLine), maxLine)
	for first := true; lines.Scan(); first = false {
		if endpoint, ready := strings.CutPrefix(lines.Text(), readyPrefix); first && ready {
			c.endpoint = endpoint
		}
		select {
		case c.lines <- lines.Text():
		default: // nobody asked for this line: a child sends one per order
		}
	}
	close(c.lines)
	if lines.Err() != nil {
		c.kill() // it broke the protocol, and would block on the unread rest
	}
}

// ended waits until the child has ended. It reports false if patience ends first.
func (c *child) ended(patience context.Context) bool {
	select {
	case <-c.done:
	case <-patience.Done():
	}
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// awaitReady waits for the first line, which holds the address.
func (c *child) awaitReady(ctx context.Context) error {
	select {
	case line, ok := <-c.lines:
		if !ok {
			<-c.done
			return c.exit()
		}
		if c.endpoint == "" {
			return fmt.Errorf("%s: first line is %q, want %q and its address%s", c, line, readyPrefix, c.words())
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s is not ready: %w%s", c, ctx.Err(), c.words())
	}
}

// command sends a line and awaits its answer.
func (c *child) command(ctx context.Context, line string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return c.lost
	}
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		return err
	}
	select {
	case answer, ok := <-c.lines:
		reason, refused := strings.CutPrefix(answer, "error ")
		switch {
		case !ok:
			return errors.New("it ended without an answer")
		case refused:
			return errors.New(reason)
		case answer != "ok":
			c.lost = fmt.Errorf("it answered %q", answer)
			return c.lost
		}
		return nil
	case <-ctx.Done():
		c.lost = fmt.Errorf("an earlier answer is missing: %w", ctx.Err())
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// exit says how the child ended, once it has ended.
func (c *child) exit() error {
	if c.err == nil {
		return fmt.Errorf("%s ended by itself%s", c, c.words())
	}
	return fmt.Errorf("%s ended: %w%s", c, c.err, c.words())
}

// words quotes the end of the child's standard error.
func (c *child) words() string {
	if words := c.stderr.String(); words != "" {
		return fmt.Sprintf("; it said %q", words)
	}
	return ""
}

// release lets the child end by closing its pipe, even if it was stopped.
func (c *child) release() {
	_ = c.stdin.Close() // it may be gone already
	_ = c.cmd.Process.Signal(syscall.SIGCONT)
}

// kill ends the child.
func (c *child) kill() { _ = c.cmd.Process.Kill() } // it may be gone already

// tail is a writer that keeps the end of what was written.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b[max(0, len(b)-maxWords):]...)
	t.kept = append(t.kept[:0], t.kept[max(0, len(t.kept)-maxWords):]...)
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
