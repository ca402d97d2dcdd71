package cachenode

import (
	"bufio"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// delayLogHeader is the first line of a log of delays. Each other line has the connection's number, from 1, the verb that the request was counted
// under, when it came, and how long its reply was held back, in nanoseconds since the node was made.
const delayLogHeader = "connection,verb,arrival_ns,delay_ns\n"

// delays are how long replies are held back.
type delays struct {
	times atomic.Pointer[Times]
	epoch time.Time

	mu     sync.Mutex
	random *rand.PCG
	log    *bufio.Writer // nil for no log
	line   []byte
	err    error // why the log is incomplete
}

func newDelays(cfg *Config, epoch time.Time) *delays {
	d := &delays{epoch: epoch, random: rand.NewPCG(cfg.Seed, delaySource)}
	d.times.Store(&cfg.Delay)
	if cfg.DelayLog != nil {
		d.log = bufio.NewWriter(cfg.DelayLog)
		_, d.err = io.WriteString(d.log, delayLogHeader)
	}
	return d
}

// constant returns the delay of replies for which none is drawn.
func (d *delays) constant() time.Duration { return d.times.Load().First }

// each reports whether every request has a delay of its own.
func (d *delays) each() bool { return d.log != nil || d.times.Load().Drawn() }

// draw returns the delay of the reply to a request.
func (d *delays) draw(conn uint64, v verb, arrived time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	delay := d.times.Load().Draw(d.random)
	if d.log == nil || d.err != nil {
		return delay
	}
	b := append(strconv.AppendUint(d.line[:0], conn, 10), ',')
	b = append(append(b, verbNames[v]...), ',')
	b = append(strconv.AppendInt(b, int64(arrived.Sub(d.epoch)), 10), ',')
	d.line = append(strconv.AppendInt(b, int64(delay), 10), '\n')
	_, d.err = d.log.Write(d.line)
	return delay
}

// flush writes out what the log has buffered.
func (d *delays) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.log != nil && d.err == nil {
		d.err = d.log.Flush()
	}
	return d.err
}
