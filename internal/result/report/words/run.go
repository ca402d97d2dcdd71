package words

import (
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Fact is a name with its texts.
type Fact struct {
	Name string
	Text []string
	Sep  string // between the texts on a line
}

// Facts says when the run was, how long it took and what it ran.
func Facts(r *run.Run) []string {
	facts := append(origin(r.Imported, r.Unverified),
		r.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC"),
		quantity.Duration(r.Seconds),
		"loadgen "+r.Loadgen,
		"plan "+r.PlanDigest[:min(len(r.PlanDigest), 12)],
	)
	if len(r.Workers) > 0 {
		facts = append(facts, quantity.Count(len(r.Workers), "worker"))
	}
	return append(facts, Labels(r.Labels)...)
}

// origin says that a result was imported, and why it could not be verified.
func origin(imported bool, unverified string) (said []string) {
	if imported {
		said = append(said, "imported")
	}
	if unverified != "" {
		said = append(said, "NOT VERIFIED: "+unverified)
	}
	return said
}

// Labels formats labels, sorted by name.
func Labels(labels map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, name+"="+labels[name])
	}
	return list
}

// Unsaid names the targets that copy values by themselves with an unknown N, W and R, because their servers do not report them.
func Unsaid(r *run.Run) (all []string) {
	for _, name := range r.PhaseOrder {
		t := &r.Phase[name].Target
		if t.Replication == nil || t.Replication.Coordinate != "server" {
			continue
		}
		for _, said := range r.Environment.Servers[t.Name] {
			text := t.Name + ": N, W and R are what the plan expects: not all of its servers say theirs"
			if said["n"] == "" && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// Machine describes in short where the run was made. Its last fact is there only if loops and built-in nodes had CPUs of their own.
func Machine(r *run.Run) []string {
	e := &r.Environment
	machine := []string{e.Hostname, quantity.Count(e.CPUs, "CPU")}
	if e.CPUModel != "" {
		machine = append(machine, e.CPUModel)
	}
	machine = append(machine, e.OS+" "+e.Kernel)
	if e.LoopCPUs != "" {
		machine = append(machine, "loops on CPU "+e.LoopCPUs+", built-in nodes on CPU "+e.NodeCPUs)
	}
	return machine
}

// Verdict returns the verdict in sentences.
func Verdict(r *run.Run) []string {
	sentences := []string{map[run.Completeness]string{
		run.Complete: "The run is complete.",
		run.Capped:   "The run was CAPPED: the plan's cap has ended it, and it counts as far as it got.",
		run.Degraded: "The run is DEGRADED: a part of it was lost.",
		run.Aborted:  "The run was ABORTED before all that was planned was done.",
		run.Failed:   "The run FAILED: something could not be run.",
	}[r.Verdict.Completeness]}
	if len(r.PhaseOrder) > 0 {
		sentences = append(sentences, map[run.Validity]string{
			run.Valid:   "Its figures are valid.",
			run.Suspect: "Figures marked ? are SUSPECT: quote none of them without its reason.",
			run.Invalid: "Figures marked ! are INVALID: use none of them.",
		}[r.Verdict.Validity])
	}
	return append(sentences, assertions(r.Asserts)...)
}

// Standing says how far the figures of a run in progress can be trusted so far.
func Standing(r *run.Run) string {
	text := map[run.Validity]string{
		run.Valid:   "So far its figures are valid.",
		run.Suspect: "So far, figures marked ? are SUSPECT.",
		run.Invalid: "So far, figures marked ! are INVALID.",
	}[r.Verdict.Validity]
	if r.Verdict.Completeness == run.Degraded {
		text = "The run is DEGRADED: a part of it was lost. " + text
	}
	return text
}

// Ends returns why a run got no further.
func Ends(r *run.Run) []string {
	failed, undecided := Failures(r.Asserts)
	rest := failed + undecided
	for _, ph := range r.Phase {
		rest += len(ph.Reasons)
	}
	all := r.Verdict.Reasons
	return slices.Clip(all[:max(len(all)-rest, 0)]) // Shortcomings appends others
}

// Shortcomings say why a run got no further, and which asserts did not pass; of a run in progress, without those that are still open.
func Shortcomings(r *run.Run, inProgress bool) []string {
	all := Ends(r)
	for _, a := range r.Asserts {
		switch {
		case a.OK == nil && !inProgress:
			all = append(all, "assert "+a.Name+" could not be decided: "+a.Reason)
		case a.OK != nil && !*a.OK:
			all = append(all, "assert "+a.Name+": "+a.Value)
		}
	}
	return all
}

// Outcome says in a word how an assert came out; then its values, and why it was not decided.
func Outcome(a run.AssertResult) (word string, why []string) {
	word = "undecided"
	switch {
	case a.OK != nil && *a.OK:
		word = "pass"
	case a.OK != nil:
		word = "FAIL"
	}
	return word, slices.DeleteFunc([]string{a.Value, a.Reason}, func(text string) bool { return text == "" })
}

// assertions sums up the asserts in a sentence.
func assertions(all []run.AssertResult) []string {
	n := len(all)
	switch failed, undecided := Failures(all); {
	case n == 0:
		return nil
	case failed > 0:
		return []string{quantity.Thousands(failed) + " of " + quantity.Count(n, "assert") + " FAILED."}
	case undecided > 0:
		return []string{quantity.Thousands(undecided) + " of " + quantity.Count(n, "assert") + " could not be decided."}
	case n == 1:
		return []string{"Its assert holds."}
	default:
		return []string{"All " + quantity.Thousands(n) + " asserts hold."}
	}
}

// Failures counts the asserts that do not hold, and those that could not be decided.
func Failures(all []run.AssertResult) (failed, undecided int) {
	for _, a := range all {
		switch {
		case a.OK == nil:
			undecided++
		case !*a.OK:
			failed++
		}
	}
	return failed, undecided
}

// Worker describes a worker, and what it used.
func Worker(w *run.Worker) []string {
	var parts []string
	if w.Host != "" {
		parts = append(parts, w.Host)
	}
	parts = append(parts, quantity.Count(w.Sessions, "session"))
	if w.CPUSeconds > 0 { // otherwise it finished no step
		parts = append(parts, quantity.Duration(w.CPUSeconds)+" CPU")
	}
	if w.ClockUncertaintySeconds > 0 {
		parts = append(parts, "clock ± "+quantity.Duration(w.ClockUncertaintySeconds))
	}
	return parts
}

// Experiment says when the experiment was, how long it took and what it ran.
func Experiment(x *run.Experiment) []string {
	return append(append(origin(x.Imported, x.Unverified),
		"experiment of "+quantity.Count(len(x.Runs), "run"), x.StartedAt.UTC().Format("2006-01-02 15:04:05 UTC"), quantity.Duration(x.Seconds),
		"loadgen "+x.Loadgen, x.Order, "baseline "+x.Baseline,
	), Labels(x.Labels)...)
}
