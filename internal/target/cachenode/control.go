package cachenode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// maxLine bounds a line on the pipe between a node and its parent, in bytes.
const maxLine = 1024

// readyPrefix begins a child's first line; its address follows.
const readyPrefix = "ready "

// Control obeys the lines from in and answers each on out, until in ends, a line says quit, or ctx ends; none of these is an error. ctx wakes a
// blocked read only if in has read deadlines, as pipes and sockets do.
func Control(ctx context.Context, n *Node, in io.Reader, out io.Writer) error {
	if file, ok := in.(interface{ SetReadDeadline(time.Time) error }); ok {
		stop := context.AfterFunc(ctx, func() {
			_ = file.SetReadDeadline(time.Unix(1, 0)) // without deadlines, the read ends with the pipe
		})
		defer stop()
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, maxLine), maxLine)
	for ctx.Err() == nil && lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "quit" {
			_, _ = io.WriteString(out, "ok\n") // the sender of quit need not wait for this
			return nil
		}
		answer := "ok"
		if err := n.obey(line); err != nil {
			answer = "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if _, err := io.WriteString(out, answer+"\n"); err != nil {
			return fmt.Errorf("answer the parent: %w", err)
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read the parent's orders: %w", err)
	}
	return nil
}

// obey carries out one line.
func (n *Node) obey(line string) error {
	verb, arg, _ := strings.Cut(line, " ")
	switch verb {
	case "stall":
		d, err := time.ParseDuration(arg)
		if err != nil {
			return fmt.Errorf("stall %q: write a duration with its unit, like 1s", arg)
		}
		if err := (Stall{For: d}).validate(); err != nil {
			return fmt.Errorf("stall: %w", err)
		}
		n.gate.order(d)
	case "delay":
		times, err := ParseTimes(arg)
		if err != nil {
			return fmt.Errorf("delay %w", err)
		}
		n.delays.times.Store(&times)
	case "drop":
		share, err := strconv.ParseFloat(arg, 64)
		now := *n.faults.now.Load()
		now.Drop = share
		if err == nil {
			err = now.validate()
		}
		if err != nil {
			return fmt.Errorf("drop %q: write a share from 0 to 1: %w", arg, err)
		}
		n.faults.now.Store(&now)
	case "flush":
		n.store.flush()
	case "peers":
		n.Join(strings.Fields(arg))
	default:
		return fmt.Errorf("unknown order %q: want stall, delay, drop, flush, peers or quit", line)
	}
	return nil
}

// RunChild is the child's side of a Fleet. It makes a node, reports its address on out, and serves until its parent closes in or sends quit, or ctx
// ends.
func RunChild(ctx context.Context, cfg Config, in *os.File, out io.Writer) error {
	pipe, err := wakeable(in)
	if err != nil {
		return fmt.Errorf("parent's pipe: %w", err)
	}
	defer func() { _ = pipe.Close() }() // opened only for reading
	node, err := New(cfg)
	if err != nil {
		return err
	}
	defer node.Close()
	if _, err := fmt.Fprintf(out, "%s%s\n", readyPrefix, node.Addr()); err != nil {
		return fmt.Errorf("tell the parent the address: %w", err)
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		defer node.Close()
		return Control(ctx, node, pipe, out)
	})
	both.Go(func() error { return node.Serve(ctx) })
	return both.Wait()
}

// wakeable returns a second handle of a pipe that supports read deadlines. Standard input is opened without.
func wakeable(in *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(in.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("dup: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("set non-blocking: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), in.Name()), nil
}
