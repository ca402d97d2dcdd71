package words

import (
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// StepOf names the step of an update.
func StepOf(u *run.Update) string {
	switch {
	case !u.Kind.Timed():
		return u.Phase + " (" + string(u.Kind) + ")"
	case u.Levels > 0:
		return u.Phase + " " + quantity.Thousands(u.Level) + " of " + quantity.Thousands(u.Levels)
	case u.Level > 0:
		return u.Phase + " " + quantity.Thousands(u.Level)
	}
	return u.Phase
}

// TimeOf says how long the step has lasted and, if that is known, of how long.
func TimeOf(u *run.Update) string {
	text := Clock(u.Elapsed)
	if u.Doing == "" && u.Expected > 0 {
		text += " of " + Clock(u.Expected)
	}
	return text
}

// DoneOf returns how much of the step is done, 0 to 1: by ops if their number is known, and otherwise by time. known is false if neither is.
func DoneOf(u *run.Update) (share float64, known bool) {
	switch {
	case u.Total > 0:
		share = float64(u.Done) / float64(u.Total)
	case u.Expected > 0:
		share = u.Elapsed.Seconds() / u.Expected.Seconds()
	default:
		return 0, false
	}
	return min(share, 1), true
}

// Clock formats a duration, to the tenth of a second while that matters.
func Clock(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
