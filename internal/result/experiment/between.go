package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Between compares runs from two occasions as an experiment compares its variants: a is the baseline, and each side's runs are its repetitions. It
// also names whatever else differs between them, since nothing kept it the same. Runs that failed or that the user stopped do not count. It is an
// error if no run of a side counts, or if a run is on both sides.
func Between(a, b []comparison.Kept) (*comparison.Result, error) {
	sides := [...][]comparison.Kept{a, b}
	x := run.NewExperiment("")
	x.Baseline, x.Seed = "A", 1
	c := &comparer{x: x, runs: map[string][]*run.Run{}}
	result := comparison.New(a, b)
	for i, kept := range sides {
		side, ids := result.Sides[i], []string(nil)
		for j, k := range kept {
			ids = append(ids, k.ID)
			if i == 1 && slices.ContainsFunc(a, func(other comparison.Kept) bool { return other.ID == k.ID }) {
				return nil, fmt.Errorf("run %s is on both sides: compare it with another", k.ID)
			}
			if side.Runs[j].Counts() {
				c.runs[side.Name] = append(c.runs[side.Name], k.Run)
			} else {
				result.Notes = append(result.Notes, fmt.Sprintf("Run %s is %s and does not count.", k.ID, k.Verdict.Completeness))
			}
		}
		n := len(c.runs[side.Name])
		if n == 0 {
			return nil, fmt.Errorf("no run of side %s counts: %s", side.Name, strings.Join(ids, ", "))
		}
		x.Repeat = max(x.Repeat, n)
		x.Variants = append(x.Variants, run.Variant{Name: side.Name})
	}
	n, m := len(c.runs["A"]), len(c.runs["B"])
	if min(n, m) < stat.LeastRounds(2) {
		result.Notes = append(result.Notes, fmt.Sprintf("Runs that count: %d of A, %d of B. That is too few to tell a difference from the spread between restarts. "+
			"Run both plans at least %d times, in turn, and name all runs: A1,A2,… B1,B2,….", n, m, stat.LeastRounds(2)))
	}
	c.apart = true                             // they may be of different days
	c.ordered = alternations(a, b) < min(n, m) // else changes of the machine over time affect both sides
	c.all(&result.Notes)
	result.Figures = append(result.Figures, x.Figures...)
	result.Tables = slices.Concat(result.Tables, tables(x), c.observed())
	return result, nil
}

// all makes the figures of all subjects for which the sides are comparable.
func (c *comparer) all(notes *[]string) {
	for _, s := range subjectsOf(slices.Concat(c.runs["A"], c.runs["B"])) {
		if coordinates := c.coordinates(s.phase); len(coordinates) > 1 {
			*notes = append(*notes, fmt.Sprintf("Phase %s is not compared: %s, which mean different things by N, W and R.", s.phase, strings.Join(coordinates, " and ")))
			continue
		}
		c.compare(s)
	}
	c.conclude()
}

// alternations counts how often a run that counts was followed by one of the other side.
func alternations(a, b []comparison.Kept) (n int) {
	last := ""
	runs, _ := inTurn(a, b)
	for _, r := range runs {
		if !r.Ended().Counts() {
			continue
		}
		if last != "" && r.Variant != last {
			n++
		}
		last = r.Variant
	}
	return n
}

// coordinates lists who coordinated replication in a phase.
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
