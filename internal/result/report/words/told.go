package words

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// About lists what is told of a phase before its figures: what was done to what.
func About(ph *run.Phase) []Fact {
	all := slices.Concat(fact("load", "", Load(ph)+"; "+Took(ph)), fact("trace", "; ", Trace(ph)...), fact("cache", "; ", Cache(ph)...),
		fact("verify", "; ", Verify(ph)...), fact("staleness", "; ", Staleness(ph)...))
	for _, name := range EventNames(ph) {
		all = append(all, fact("event", "; ", Event(ph, name)...)...)
	}
	all = slices.Concat(all, fact("target", "", Target(ph)), fact("dataset", "", Dataset(ph)))
	if ph.Setup != nil {
		for _, verb := range (&run.Phase{Op: ph.Setup.Op}).Verbs() {
			all = append(all, fact("setup", "", verb+": "+Ledger(&ph.Setup.Op[verb].Ledger)+", untimed")...)
		}
	}
	return slices.Concat(all, Log(ph), fact("steady", ", ", Steady(ph)...))
}

// Told lists what is told of an op's kind beside its latencies.
func (d Done) Told() []Fact {
	name, all := d.Name, []Fact(nil)
	if d.Sequence != "" {
		kind := "scenario"
		if strings.Contains(d.At, ".step.") {
			kind = "step"
		}
		name, all = "", fact(kind, "", d.Name+": "+d.Sequence)
	}
	all = append(all, fact(name, "", Ledger(&d.Ledger))...)
	if causes := d.Caused(); causes != "" {
		all = append(all, fact("", "", "caused by "+causes)...)
	}
	return slices.Concat(all, fact("", " · ", d.Rates()...), fact("", " · ", d.Keys()...), fact("", " · ", d.Volume()...))
}

// Noted lists how the figures of a phase are to be read.
func Noted(ph *run.Phase) []Fact {
	if note := Note(ph); note != "" {
		return fact("note", "", note)
	}
	return nil
}

// Generated lists what the generator used, what kept it from running, and unusual events.
func Generated(ph *run.Phase) []Fact {
	if ph.Generator.Executor == "" {
		return nil
	}
	return append(fact("generator", ", ", Generator(ph)...), fact("", ", ", Odd(ph)...)...)
}

// Beside lists what is told of a phase after its figures: what an item costs, and errors.
func Beside(ph *run.Phase) []Fact {
	all := fact("an item", ", ", PerItem(ph)...)
	for _, e := range ph.Errors {
		all = append(all, fact("error", "", "“"+e.Text+"” × "+quantity.Thousands(e.Count))...)
	}
	return all
}

// fact returns a fact, or nothing if there is no text.
func fact(name, sep string, text ...string) []Fact {
	if len(text) == 0 {
		return nil
	}
	return []Fact{{name, text, sep}}
}

// Counts returns the numbers that are not 0, with what is said of each.
func Counts(says []string, numbers ...uint64) (parts []string) {
	for i, n := range numbers {
		if n > 0 {
			parts = append(parts, quantity.Thousands(n)+" "+says[i])
		}
	}
	return parts
}
