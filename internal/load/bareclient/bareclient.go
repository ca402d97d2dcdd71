// Package bareclient drives a server blindly, to find the cost that no client can avoid.
//
// A blind client sends the same bytes again and again and counts the bytes that come back. It chooses no keys, makes no requests, reads no replies,
// takes no timestamps and keeps no records. So an op costs only the time that the kernel needs for it: a lower bound for every client that uses
// epoll, here called the floor. A client's cost per op in multiples of the floor shows how much it could still save.
//
// Each session has one connection; all get or put the same key. A session writes the requests of its whole pipeline in one system call, and the next
// ones once all bytes of their replies have come: the fewest calls possible with this pipeline. It learns the length of a reply from one request on
// each connection, the only one whose reply it reads.
package bareclient

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Config says what to exchange.
type Config struct {
	Endpoint string // host:port
	Codec    driver.Codec
	Verb     driver.Verb // Get or Put
	Key      string      // a key that must exist if Verb is Get
	Size     int         // bytes of the values put
	Sessions int         // number of connections, > 0
	Pipeline int         // requests in flight on each, > 0
	Ops      int64       // number of ops over all sessions, > 0
}

// Validate returns an error for a config that cannot be carried out.
func (c *Config) Validate() error {
	switch {
	case c.Verb != driver.Get && c.Verb != driver.Put:
		return fmt.Errorf("op %v: write get or put", c.Verb)
	case c.Size < 0:
		return fmt.Errorf("values of %d bytes: write 0 or more", c.Size)
	case c.Sessions < 1 || c.Pipeline < 1 || c.Ops < 1:
		return fmt.Errorf("%d sessions, a pipeline of %d and %d ops: write numbers above 0", c.Sessions, c.Pipeline, c.Ops)
	}
	return nil
}

// Result is the cost of the exchange, without that of making the connections.
type Result struct {
	Ops           int64   `json:"ops"`
	Seconds       float64 `json:"seconds"`
	UserSeconds   float64 `json:"user_seconds"` // processor time of the process
	SystemSeconds float64 `json:"system_seconds"`
	Waits         int64   `json:"waits"` // system calls: epoll_pwait, and epoll_ctl when a socket is full
	Reads         int64   `json:"reads"`
	Writes        int64   `json:"writes"`
}

// Run connects, carries the ops out and returns their cost. It works in the calling goroutine, locked to its thread, with the garbage collector off.
// When ctx ends, it returns ctx's error within 100 ms. It raises GOMAXPROCS to at least 2, so that the goroutine that ends ctx can run: the exchange
// never gives its processor back.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, err
	}
	c, err := open(ctx, cfg)
	defer c.close()
	if err != nil {
		return Result{}, err
	}
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	var halt atomic.Bool
	stop := context.AfterFunc(ctx, func() { halt.Store(true) })
	defer stop()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	began := time.Now()
	user, system := spent()
	err = c.exchange(&halt)
	c.result.Seconds = time.Since(began).Seconds()
	c.result.UserSeconds, c.result.SystemSeconds = spent()
	c.result.UserSeconds -= user
	c.result.SystemSeconds -= system
	if err == nil {
		err = ctx.Err()
	}
	return c.result, err
}

// spent returns the process's processor time in seconds.
func spent() (user, system float64) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err) // only for a wrong address or selector
	}
	return float64(r.Utime.Nano()) / 1e9, float64(r.Stime.Nano()) / 1e9
}
