package words

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
)

// maxAnswers bounds the loads whose figures open a report, and the ops of each.
const maxAnswers = 4

// Answers returns what a run says to the question of its plan, in a line; then, for each load, the rates and latencies that are usually quoted, with
// their marks. The question is of writes that faults lose and of how long they keep the load away, of a capacity, or else of the asserts. It is empty if
// nothing was measured.
func Answers(r *run.Run) (lines []string) {
	lines = loadsOf(r)
	if survived := Survived(r); survived != "" {
		return append([]string{survived}, lines...)
	}
	if met := met(r.Asserts); met != "" && len(lines) > 0 {
		lines[0] += "; " + met
	}
	return lines
}

// Survived says which acknowledged writes were lost, and for how long events kept the load from recovering; "" if the plan does not ask.
func Survived(r *run.Run) string {
	var parts []string
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		if ph.Verify != nil {
			parts = append(parts, verified(ph.Verify))
		}
		for _, event := range EventNames(ph) {
			switch e := ph.Event[event]; {
			case e.HappenedSeconds == nil:
			case e.RecoveredSeconds == nil:
				parts = append(parts, "not recovered after "+event)
			case *e.RecoveredSeconds > 0:
				parts = append(parts, "away for "+quantity.Duration(*e.RecoveredSeconds)+" after "+event)
			}
		}
	}
	return strings.Join(parts, "; ")
}

// met says how the first asserts came out, with the values that they compare.
func met(asserts []run.AssertResult) string {
	var parts []string
	for _, a := range asserts {
		if a.OK == nil || len(parts) == maxAnswers || strings.Contains(a.Value, "phase.") { // which says more than fits here
			continue
		}
		how := " holds: "
		if !*a.OK {
			how = " FAILS: "
		}
		parts = append(parts, a.Name+how+a.Value)
	}
	return strings.Join(parts, "; ")
}

// loadsOf returns the answers of all loads.
func loadsOf(r *run.Run) (lines []string) {
	var loads []string
	for _, name := range r.PhaseOrder {
		if r.Phase[name].Kind.Timed() {
			loads = append(loads, name)
		}
	}
	for _, name := range loads[:min(len(loads), maxAnswers)] {
		of := answersOf(r.Phase[name])
		if op, _, _ := strings.Cut(of[0], ": "); len(loads) > 1 && op != name && of[0] != "" {
			of[0] = name + ": " + of[0]
		}
		lines = append(lines, slices.DeleteFunc(of, func(line string) bool { return line == "" })...)
	}
	if more := len(loads) - maxAnswers; more > 0 {
		lines = append(lines, "and "+quantity.Count(more, "more load")+", below")
	}
	return lines
}

// answersOf returns the answers of a load: at least one line, which is "" if nothing was counted.
func answersOf(ph *run.Phase) []string {
	if ph.Search != nil {
		return Found(ph)
	}
	if len(ph.Levels) > 0 && !ph.Closed() {
		return []string{strings.Join(Course(ph), "; ")}
	}
	var ops []string
	for _, d := range DoneIn(ph) {
		if strings.Contains(d.At, ".step.") || d.At == total || d.Due == 0 {
			continue
		}
		if len(ops) == maxAnswers {
			ops = append(ops, "other ops below")
			break
		}
		ops = append(ops, d.answer())
	}
	if ph.OfferedRate != nil && ph.AchievedRate != nil {
		ops = slices.Insert(ops, 0, "offered "+Arriving(ph, *ph.OfferedRate)+", sustained "+Arriving(ph, *ph.AchievedRate)+Mark(ph, "achieved_rate"))
	}
	return []string{strings.Join(ops, "; ")}
}

// answer says how many ops of a kind were done in a second, and how long they took.
func (d Done) answer() string {
	var parts []string
	if d.Rate != nil && d.ph.OfferedRate == nil {
		parts = append(parts, quantity.Whole(*d.Rate)+"/s"+Mark(d.ph, d.At+".rate"))
	}
	for _, q := range []struct {
		name, path string
		value      *float64
	}{{"median", "p50", d.Response.P50}, {"p99", "p99", d.Response.P99}} {
		if at := d.At + ".response." + q.path; q.value != nil && d.ph.Bound(at) == reason.AtMost {
			parts = append(parts, q.name+" at most "+quantity.Duration(*q.value)+Mark(d.ph, at)+" with loadgen's delays")
		} else if q.value != nil {
			parts = append(parts, q.name+" "+quantity.Duration(*q.value)+Mark(d.ph, at))
		}
	}
	if failed := d.Due - d.OK - d.Miss; failed > 0 {
		parts = append(parts, quantity.Thousands(failed)+" of "+quantity.Count(d.Due, "op")+" failed")
	}
	if parts == nil {
		parts = []string{"no rate and no latency: too few ops"}
	}
	return d.Name + ": " + strings.Join(parts, ", ")
}

// Course returns the answers of the first of several stages, of the last, and of the one with the highest rate.
func Course(ph *run.Phase) (parts []string) {
	highest, last := 0, len(ph.Levels)-1
	for i, l := range ph.Levels {
		if l.Rate > ph.Levels[highest].Rate {
			highest = i
		}
	}
	for i := range ph.Levels {
		if i == 0 || i == highest || i == last {
			parts = append(parts, "at "+Arriving(ph, ph.Levels[i].Rate)+", "+strings.Join(ofLevel(&ph.Levels[i]), ", "))
		}
	}
	return parts
}

// ofLevel says how long the ops of a level took, and which rate it sustained if that is not the one asked for.
func ofLevel(l *run.Level) (parts []string) {
	const kept = 0.99
	mark := l.Validity.Mark()
	if l.AchievedRate != nil && *l.AchievedRate < kept*l.Offered() {
		parts = append(parts, "sustained "+quantity.Whole(*l.AchievedRate)+"/s"+mark)
	}
	for _, d := range didIn(l) {
		if d.Response.P99 != nil {
			parts = append(parts, d.Name+" p99 "+quantity.Duration(*d.Response.P99)+mark)
		}
		if failed := d.Due - d.OK - d.Miss; failed > 0 {
			parts = append(parts, quantity.Thousands(failed)+" of "+quantity.Count(d.Due, d.Name)+" failed")
		}
	}
	if parts == nil {
		parts = []string{"no latency: too few ops"}
	}
	return parts
}
