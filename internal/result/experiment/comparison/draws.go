package comparison

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// draws identifies what a run drew at random.
type draws struct {
	seed uint64 // the plan's
	as   int    // the repetition
}

// drawsOf returns the draws of a run; false if it has no plan.
func drawsOf(k Kept) (d draws, known bool) {
	var p struct{ Seed *uint64 }
	if json.Unmarshal(k.Plan, &p) != nil || p.Seed == nil {
		return d, false
	}
	return draws{*p.Seed, max(k.DrawsAs, 1)}, true // in an older loadgen, every run drew as the first
}

// byDraws groups the runs of a side by their draws.
func byDraws(side []Kept) map[draws][]string {
	ids := map[draws][]string{}
	for _, k := range side {
		if d, known := drawsOf(k); known {
			ids[d] = append(ids[d], k.ID)
		}
	}
	return ids
}

// shared says which runs share draws: on one side, they add less to the spread than they should; on both, they add nothing to the difference.
func shared(a, b []Kept) []string {
	notes := []string{}
	sides := [...]map[draws][]string{byDraws(a), byDraws(b)}
	var both []draws
	for i, side := range sides {
		all := make([]draws, 0, len(side))
		for d := range side {
			all = append(all, d)
		}
		slices.SortFunc(all, func(x, y draws) int {
			return slices.Compare([]uint64{x.seed, uint64(x.as)}, []uint64{y.seed, uint64(y.as)})
		})
		for _, d := range all {
			if ids := side[d]; len(ids) > 1 {
				notes = append(notes, fmt.Sprintf("Runs %s of side %c drew the same keys, ops and arrivals (repetition %d of seed %d): "+
					"the spread between them lacks what chance adds. Number the runs that you repeat: --repetition 2, 3 and so on.", strings.Join(ids, ", "), 'A'+i, d.as, d.seed))
			}
			if i == 0 && len(sides[1][d]) > 0 {
				both = append(both, d)
			}
		}
	}
	if len(both) > 0 {
		var as []string
		for _, d := range both {
			as = append(as, fmt.Sprintf("%d of seed %d", d.as, d.seed))
		}
		notes = append(notes, "Both sides have runs that drew as repetition "+strings.Join(as, ", ")+": the same keys, ops and arrivals, so these add nothing to the difference.")
	}
	return notes
}
