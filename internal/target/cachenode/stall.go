package cachenode

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"
)

// maxFault bounds a delay and a stall: longer ones are typing errors.
const maxFault = time.Hour

// Stall is a time during which a node answers nothing. Requests that arrive meanwhile wait, unread, and are answered afterwards.
type Stall struct {
	At  time.Duration // since the node began to serve, ≥ 0
	For time.Duration // > 0
}

// ParseStall reads "FOR@AT": "1s@5s" is a stall of 1 s, 5 s after the node began to serve.
func ParseStall(s string) (Stall, error) {
	length, at, found := strings.Cut(s, "@")
	if !found {
		return Stall{}, fmt.Errorf("stall %q: write LENGTH@START, like 1s@5s", s)
	}
	var stall Stall
	var err error
	if stall.For, err = time.ParseDuration(length); err != nil {
		return Stall{}, fmt.Errorf("length of stall %q: write a duration with its unit, like 1s or 250ms", s)
	}
	if stall.At, err = time.ParseDuration(at); err != nil {
		return Stall{}, fmt.Errorf("start of stall %q: write a duration with its unit, like 5s", s)
	}
	if err := stall.validate(); err != nil {
		return Stall{}, fmt.Errorf("stall %q: %w", s, err)
	}
	return stall, nil
}

func (s Stall) validate() error {
	switch {
	case s.For <= 0 || s.For > maxFault:
		return fmt.Errorf("length %v: write more than 0, at most %v", s.For, maxFault)
	case s.At < 0:
		return fmt.Errorf("start %v is before the node serves", s.At)
	}
	return nil
}

// gate says when the node stalls.
type gate struct {
	epoch   time.Time     // zero of all times below
	served  time.Duration // when the node began to serve; written before any connection is served
	planned []Stall
	until   atomic.Int64  // end of the last stall ordered, nanoseconds
	done    chan struct{} // closed with the node
}

// order begins a stall of the given length now. Two overlapping stalls end with the later end.
func (g *gate) order(length time.Duration) {
	end := int64(time.Since(g.epoch) + length)
	for {
		now := g.until.Load()
		if now >= end || g.until.CompareAndSwap(now, end) {
			return
		}
	}
}

// end returns the end of the stall in force at time t, 0 if there is none.
func (g *gate) end(t time.Duration) time.Duration {
	if end := time.Duration(g.until.Load()); t < end {
		return end
	}
	for _, s := range g.planned {
		if from := g.served + s.At; from <= t && t < from+s.For {
			return from + s.For
		}
	}
	return 0
}

// wait returns once no stall is in force, or the node is closed.
func (g *gate) wait() {
	for {
		now := time.Since(g.epoch)
		end := g.end(now)
		if end == 0 {
			return
		}
		timer := time.NewTimer(end - now)
		select {
		case <-timer.C:
		case <-g.done:
			timer.Stop()
			return
		}
	}
}
