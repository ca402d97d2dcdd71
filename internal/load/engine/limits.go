package engine

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver"
)

// MostPerLoop is more ops per second than any event loop has been measured to send.
const MostPerLoop = 10e6

// DefaultLoops is the number of event loops of a worker that sets none.
func DefaultLoops() int { return loopsOf(runtime.NumCPU()) }

// loopsOf leaves a processor to the coordinator and the servers, unless there is only one.
func loopsOf(processors int) int { return max(1, processors-1) }

// MostLoops is the largest number of event loops that makes sense here: eight a processor. Each loop is a thread that is seldom idle.
func MostLoops() int { return 8 * runtime.NumCPU() }

// checkLimits compares what this worker's part of the phase needs with what the process may have.
func (g *group) checkLimits(loops int) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read the limit on open files: %w", err)
	}
	clients, each := map[string]int{}, 0
	for _, x := range g.sides() {
		n := x.clients * len(x.endpoints)
		clients[x.target.Name] = n
		if _, timed := x.driver.(driver.Timed); !timed { // sessions of all other drivers take file descriptors
			each += n
		}
	}
	if err := g.checkFiles(each, files.Cur); err != nil {
		return err
	}
	if short := g.plan.MemoryShort(g.phase, g.sessions, clients, available()); short != "" {
		return errors.New(short)
	}
	return g.checkRate(min(loops, g.sessions))
}

// checkFiles compares how many files the sessions open, each of them that many, with the limit.
func (g *group) checkFiles(each int, limit uint64) error {
	if each == 0 {
		return nil
	}
	if short := g.phase.FilesShort(g.sessions, each, int64(min(limit, math.MaxInt64))); short != "" {
		return errors.New(short)
	}
	return nil
}

// checkRate compares the rate of this worker's part of the phase with what that many loops can send.
func (g *group) checkRate(loops int) error {
	here := float64(g.sessions) / float64(g.phase.Sessions())
	need, most := g.phase.OpsPerSecond()*here, MostPerLoop*float64(loops)
	if need <= most {
		return nil
	}
	return fmt.Errorf("%.0f ops a second are more than %s can send: use at most %.0f on a worker, or %.0f times as many workers",
		need, countLoops(loops), most, math.Ceil(need/most))
}

func countLoops(n int) string {
	if n == 1 {
		return "one event loop"
	}
	return fmt.Sprintf("%d event loops", n)
}
