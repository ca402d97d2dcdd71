package run

import "fmt"

// Staleness compares what the gets of a phase returned with the writes of their keys that had been acknowledged when they began.
type Staleness struct {
	Gets      uint64   `json:"gets"`  // gets of keys with such a write that ended ok or miss
	Stale     uint64   `json:"stale"` // gets that returned an older version, or nothing
	Ratio     *float64 `json:"ratio"` // stale / gets
	Low       *float64 `json:"low"`   // Low and High are the 95 % confidence interval of Ratio, by blocks of time; null with too few bursts
	High      *float64 `json:"high"`
	ByOne     uint64   `json:"by_one"`    // of Stale: one acknowledged version behind
	ByTwo     uint64   `json:"by_two"`    //
	ByThree   uint64   `json:"by_three"`  //
	ByMore    uint64   `json:"by_more"`   //
	Backwards uint64   `json:"backwards"` // gets that returned an older version than one that their session had read before they began

	// The age of stale gets: the time from the acknowledgement of the first newer version to the get's start, in seconds; null without enough stale
	// gets.
	AgeMean *float64 `json:"age_mean"`
	AgeP50  *float64 `json:"age_p50"`
	AgeP99  *float64 `json:"age_p99"`
	AgeMax  *float64 `json:"age_max"`
}

func (s *Staleness) check() error {
	switch {
	case s == nil:
	case s.Stale > s.Gets:
		return fmt.Errorf("staleness: %d of %d gets", s.Stale, s.Gets)
	case s.Stale != s.ByOne+s.ByTwo+s.ByThree+s.ByMore:
		return fmt.Errorf("staleness: %d stale, but by one version %d, two %d, three %d, more %d", s.Stale, s.ByOne, s.ByTwo, s.ByThree, s.ByMore)
	case (s.Ratio == nil) != (s.Gets == 0):
		return fmt.Errorf("staleness: a ratio of %d gets", s.Gets)
	}
	return nil
}
