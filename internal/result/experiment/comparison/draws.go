package comparison

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// draws identifies what a run drew at random.
type draws struct {
	seed uint64 // the plan's
	as   int    // the repetition
}

// byDraws groups the runs of a side by their draws. It leaves out those without a plan.
func byDraws(side []Kept) map[draws][]string {
	ids := map[draws][]string{}
	for _, k := range side {
		var p struct{ Seed *uint64 }
		if json.Unmarshal(k.Plan, &p) == nil && p.Seed != nil {
			d := draws{*p.Seed, max(k.DrawsAs, 1)} // in an older loadgen, every run drew as the first
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
		for _, d := range slices.SortedFunc(maps.Keys(side), func(x, y draws) int { return cmp.Or(cmp.Compare(x.seed, y.seed), x.as-y.as) }) {
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
