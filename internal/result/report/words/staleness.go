package words

import (
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Staleness says how many gets returned older versions than had been acknowledged; nil if the phase did not measure it.
func Staleness(ph *run.Phase) []string {
	s := ph.Staleness
	switch {
	case s == nil:
		return nil
	case s.Ratio == nil:
		return []string{"no get of a key that had been put was answered"}
	}
	parts := []string{
		quantity.Percent(*s.Ratio) + " of gets stale, " + quantity.Thousands(s.Stale) + " of " + quantity.Thousands(s.Gets),
	}
	if s.Low != nil {
		parts = append(parts, "95 % interval "+quantity.Percent(*s.Low)+" to "+quantity.Percent(*s.High))
	}
	says := []string{"by one version", "by two versions", "by three versions", "by more versions"}
	parts = append(parts, Counts(says, s.ByOne, s.ByTwo, s.ByThree, s.ByMore)...)
	if s.AgeMax != nil {
		age := "up to " + quantity.Duration(*s.AgeMax) + " after the acknowledgement that they missed"
		if s.AgeP50 != nil {
			age += ", half of them within " + quantity.Duration(*s.AgeP50)
		}
		parts = append(parts, age)
	}
	if s.Backwards > 0 {
		parts = append(parts, quantity.Thousands(s.Backwards)+" older than what their session had read before")
	}
	return parts
}
