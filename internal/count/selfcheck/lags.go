package selfcheck

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/hist"
)

// Lags are a machine's timing overheads.
type Lags struct {
	ClockNS      float64 `json:"clock_ns"`          // time to read the clock
	TimerP50     float64 `json:"timer_p50_seconds"` // time by which a sleep of 100 µs is too long
	TimerP99     float64 `json:"timer_p99_seconds"`
	Taken        float64 `json:"taken"`                 // share of the time that a busy thread was kept off its processor
	LongestTaken float64 `json:"longest_taken_seconds"` // longest such gap
}

// MeasureLags takes about three quarters of a second, during which one thread is busy.
func MeasureLags() Lags {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const readings, sleeps, nap = 200_000, 1000, 100 * time.Microsecond
	var l Lags
	start := time.Now()
	last := start
	for range readings {
		last = time.Now()
	}
	l.ClockNS = float64(last.Sub(start)) / readings
	var excess hist.Hist
	for range sleeps {
		before := time.Now()
		rest := unix.NsecToTimespec(int64(nap))
		_ = unix.Nanosleep(&rest, nil) // a signal would cut it short
		excess.Record(int64(time.Since(before) - nap))
	}
	l.TimerP50, l.TimerP99 = float64(excess.Quantile(0.5))/1e9, float64(excess.Quantile(0.99))/1e9
	l.watch(500 * time.Millisecond)
	return l
}

// Worse returns the worse of two measurements, figure by figure.
func (l Lags) Worse(o Lags) Lags {
	return Lags{
		max(l.ClockNS, o.ClockNS), max(l.TimerP50, o.TimerP50), max(l.TimerP99, o.TimerP99),
		max(l.Taken, o.Taken), max(l.LongestTaken, o.LongestTaken),
	}
}

// watch reads the clock for a while and adds up the gaps.
func (l *Lags) watch(length time.Duration) {
	const least = 20 * time.Microsecond // a shorter gap is an interrupt
	start := time.Now()
	last := start
	var taken, longest time.Duration
	for last.Sub(start) < length {
		now := time.Now()
		if gap := now.Sub(last); gap > least {
			taken += gap
			longest = max(longest, gap)
		}
		last = now
	}
	l.Taken, l.LongestTaken = float64(taken)/float64(length), longest.Seconds()
}
