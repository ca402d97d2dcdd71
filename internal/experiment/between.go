package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/experiment/comparison"
	"github.com/loadgen/loadgen/internal/run"
)

// Between compares runs that were made on two occasions as an experiment compares its variants: a is the baseline, the runs of each side are
// its repetitions. What differs between them beside the figures is named as well, because nothing was done to keep it the same. Runs
// that failed or were stopped by the user do not count; a side without any that does is an error, and so is a run on both.
func Between(a, b []comparison.Kept) (*comparison.Result, error) {
	sides := [...][]comparison.Kept{a, b}
	x := run.NewExperiment("")
	x.Baseline, x.Seed = "A", 1
	c := &comparer{x: x, runs: map[string][]*run.Run{}}
	result := comparison.New(a, b)
	for i, kept := range sides {
		side := result.Sides[i]
		for j, k := range kept {
			if i == 1 && slices.ContainsFunc(a, func(other comparison.Kept) bool { return other.ID == k.ID }) {
				return nil, fmt.Errorf("run %s stands on both sides: compare it with another", k.ID)
			}
			if side.Runs[j].Counts() {
				c.runs[side.Name] = append(c.runs[side.Name], k.Run)
			} else {
				result.Notes = append(result.Notes, fmt.Sprintf("Run %s is %s and does not count.", k.ID, k.Verdict.Completeness))
			}
		}
		n := len(c.runs[side.Name])
		if n == 0 {
			return nil, fmt.Errorf("no run of side %s counts: %s", side.Name, strings.Join(idsOf(kept), ", "))
		}
		x.Repeat = max(x.Repeat, n)
		x.Variants = append(x.Variants, run.Variant{Name: side.Name})
	}
	if len(c.runs["A"]) == 1 && len(c.runs["B"]) == 1 {
		result.Notes = append(result.Notes, "One run of each side counts: a single pair cannot tell a difference from the spread between restarts. "+
			"Run both plans again, and name all runs: A1,A2,A3 B1,B2,B3.")
	}
	c.all(&result.Notes)
	result.Figures = append(result.Figures, x.Figures...)
	result.Tables = slices.Concat(result.Tables, tables(x), c.observed())
	return result, nil
}

// all makes the figures of all subjects that both sides may be compared by.
func (c *comparer) all(notes *[]string) {
	for _, s := range subjectsOf(slices.Concat(c.runs["A"], c.runs["B"])) {
		if coordinates := c.coordinates(s.phase); len(coordinates) > 1 {
			*notes = append(*notes, fmt.Sprintf("Phase %s is not compared: %s, which mean different things by N, W and R.", s.phase, strings.Join(coordinates, " and ")))
			continue
		}
		for _, m := range metrics {
			c.compare(s, m)
		}
	}
	c.conclude()
}

// coordinates lists who carried replication out in a phase.
func (c *comparer) coordinates(phase string) (all []string) {
	for _, r := range slices.Concat(c.runs["A"], c.runs["B"]) {
		p := r.Phase[phase]
		if p == nil || p.Target.Replication == nil {
			continue
		}
		if who := fmt.Sprintf("coordinate = %q", p.Target.Replication.Coordinate); !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	return all
}

func idsOf(kept []comparison.Kept) (ids []string) {
	for _, k := range kept {
		ids = append(ids, k.ID)
	}
	return ids
}
