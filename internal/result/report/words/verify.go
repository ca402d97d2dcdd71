package words

import (
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// shownLost is how many examples of lost writes a report shows.
const shownLost = 5

// Verify says how many acknowledged writes were found or lost; nil if the phase did not look for them.
func Verify(ph *run.Phase) []string {
	v := ph.Verify
	if v == nil {
		return nil
	}
	parts := []string{verified(v)}
	says := []string{"missing", "older than acknowledged", "newer, by a put that was never acknowledged", "could not be read"}
	parts = append(parts, Counts(says, v.Missing, v.Older, v.Newer, v.Unread)...)
	for i := range v.Examples[:min(len(v.Examples), shownLost)] {
		parts = append(parts, lostWrite(&v.Examples[i]))
	}
	if more := v.Lost - min(v.Lost, shownLost); more > 0 {
		parts = append(parts, "and "+quantity.Thousands(more)+" more")
	}
	return parts
}

func verified(v *run.Verify) string {
	of := " of " + quantity.Count(v.Keys, "key") + " put and acknowledged"
	if v.Lost == 0 {
		return "no acknowledged write lost," + of
	}
	return quantity.Thousands(v.Lost) + " ACKNOWLEDGED WRITES LOST," + of
}

func lostWrite(l *run.LostWrite) string {
	text := l.Key + ": acknowledged after " + quantity.Duration(l.AckedSeconds) + " of phase " + l.Phase
	if l.OlderSeconds != nil {
		text += ", the value there is " + quantity.Duration(*l.OlderSeconds) + " older"
	}
	if l.Event != "" {
		text += ", near event " + l.Event
	}
	return text
}
