package cachenode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// readyTimeout is how long the nodes of a fleet may take to start, in all.
	readyTimeout = 10 * time.Second
	// answerTimeout is how long a node may take to answer an order.
	answerTimeout = 5 * time.Second
	// leaveTimeout is how long nodes may take to end by themselves before they are killed.
	leaveTimeout = 2 * time.Second
)

// Fleet is a set of cache nodes that run as child processes. Its methods are safe for concurrent use.
type Fleet struct {
	exe    string
	args   []string
	exited chan error
	shut   sync.Once
	closed chan struct{} // closed when Close begins: exits are expected from then on
	err    error         // the result of Close; written once, under shut

	introduces atomic.Bool // nodes know each other

	mu    sync.Mutex
	nodes []*child
}

// Start starts n nodes, each as "exe args…", which must call RunChild on its standard input and output, and waits until all are ready. ctx bounds
// only the start. If a node does not start, the others are ended and the error quotes its standard error.
func Start(ctx context.Context, exe string, args []string, n int) (*Fleet, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	f := &Fleet{exe: exe, args: args, exited: make(chan error, n), closed: make(chan struct{})}
	for i := range n {
		c, err := startChild(i, exe, args, f.report)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.nodes = append(f.nodes, c)
	}
	for _, c := range f.nodes {
		if err := c.awaitReady(ctx); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// report notes a node that ended unasked. It never blocks.
func (f *Fleet) report(c *child) {
	select {
	case <-f.closed:
		return
	default:
	}
	if c.asked.Load() {
		return
	}
	select {
	case f.exited <- c.exit():
	default: // all nodes have been reported
	}
}

// all returns the nodes as they are now.
func (f *Fleet) all() []*child {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.nodes)
}

// node returns a node, counted from 0.
func (f *Fleet) node(i int) (*child, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i < 0 || i >= len(f.nodes) {
		return nil, fmt.Errorf("cache node %d: there are %d", i, len(f.nodes))
	}
	return f.nodes[i], nil
}

// Endpoints returns the nodes' addresses, in order.
func (f *Fleet) Endpoints() []string {
	var endpoints []string
	for _, c := range f.all() {
		endpoints = append(endpoints, c.endpoint)
	}
	return endpoints
}

// Command sends an order to a node, counted from 0, and returns its refusal, if any. The package doc lists the orders.
func (f *Fleet) Command(ctx context.Context, node int, line string) error {
	c, err := f.node(node)
	if err != nil {
		return fmt.Errorf("order %q to %w", line, err)
	}
	if len(line) >= maxLine || strings.ContainsAny(line, "\r\n") {
		return fmt.Errorf("order to cache node %d is not a line of less than %d bytes", node, maxLine)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := c.command(ctx, line); err != nil {
		return fmt.Errorf("order %q to cache node %d: %w", line, node, err)
	}
	return nil
}

// Introduce tells Hydra nodes of each other, those that are restarted later, too.
func (f *Fleet) Introduce(ctx context.Context) error {
	f.introduces.Store(true)
	for i := range f.all() {
		if err := f.introduce(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// introduce tells one node of the others.
func (f *Fleet) introduce(ctx context.Context, node int) error {
	const each = 30 // in one line
	for some := range slices.Chunk(f.Endpoints(), each) {
		if err := f.Command(ctx, node, "peers "+strings.Join(some, " ")); err != nil {
			return err
		}
	}
	return nil
}

// Flush makes every node forget all its keys.
func (f *Fleet) Flush(ctx context.Context) error {
	for i := range f.all() {
		if err := f.Command(ctx, i, "flush"); err != nil {
			return err
		}
	}
	return nil
}

// End kills a node, and returns once it is gone.
func (f *Fleet) End(ctx context.Context, node int) error {
	c, err := f.node(node)
	if err != nil {
		return err
	}
	c.asked.Store(true)
	c.kill()
	if !c.ended(ctx) {
		return fmt.Errorf("kill %s: %w", c, ctx.Err())
	}
	return nil
}

// Restart kills a node that is not gone, and starts it again at its address, empty. Once begun, it goes on when ctx ends: what comes next needs the node.
func (f *Fleet) Restart(ctx context.Context, node int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	if err := f.End(ctx, node); err != nil {
		return err
	}
	was, err := f.node(node)
	if err != nil {
		return err
	}
	c, err := startChild(node, f.exe, slices.Concat(f.args, []string{"--listen", was.endpoint}), f.report)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.nodes[node] = c
	f.mu.Unlock()
	if err := c.awaitReady(ctx); err != nil || !f.introduces.Load() {
		return err
	}
	return f.introduce(ctx, node)
}

// Signal sends a signal to a node's process.
func (f *Fleet) Signal(node int, signal syscall.Signal) error {
	c, err := f.node(node)
	if err != nil {
		return err
	}
	if err := c.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("%v to %s: %w", signal, c, err)
	}
	return nil
}

// Exited delivers an error for every node that ends before Close: which one, how, and its last words. The channel is never closed.
func (f *Fleet) Exited() <-chan error { return f.exited }

// Kill ends all nodes at once. Close must still be called.
func (f *Fleet) Kill() {
	for _, c := range f.all() {
		c.kill()
	}
}

// Close ends all nodes and waits for them: first by closing their pipes, after 2 s by SIGKILL. Its error names nodes that had to be killed. Later
// calls return the same.
func (f *Fleet) Close() error {
	f.shut.Do(func() {
		close(f.closed)
		for _, c := range f.all() {
			c.release()
		}
		patience, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		var errs []error
		for _, c := range f.all() {
			if c.ended(patience) {
				continue
			}
			c.kill()
			<-c.done
			errs = append(errs, fmt.Errorf("%s had to be killed: it did not end within %v of its pipe", c, leaveTimeout))
		}
		f.err = errors.Join(errs...)
	})
	return f.err
}
