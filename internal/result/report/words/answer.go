package words

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// maxAnswers bounds the loads whose figures open a report, and the ops of each.
const maxAnswers = 4

// Answers say in a line for each load of a run what it found: the rates and latencies that are usually quoted, with their marks. It is empty if no
// load was measured.
func Answers(r *run.Run) (lines []string) {
	var loads []string
	for _, name := range r.PhaseOrder {
		if r.Phase[name].Kind.Timed() {
			loads = append(loads, name)
		}
	}
	for _, name := range loads[:min(len(loads), maxAnswers)] {
		text := Answer(r.Phase[name])
		if text == "" {
			continue
		}
		if op, _, _ := strings.Cut(text, ": "); len(loads) > 1 && op != name {
			text = name + ": " + text
		}
		lines = append(lines, text)
	}
	if more := len(loads) - maxAnswers; more > 0 {
		lines = append(lines, "and "+quantity.Count(more, "more load")+", below")
	}
	return lines
}

// Answer says what a load found; "" if nothing was counted.
func Answer(ph *run.Phase) string {
	if ph.Search != nil {
		return Found(ph)
	}
	if len(ph.Levels) > 0 {
		return courseOf(ph)
	}
	var ops []string
	for _, d := range DoneIn(ph) {
		if strings.Contains(d.At, ".step.") || d.Due == 0 {
			continue
		}
		if len(ops) == maxAnswers {
			return strings.Join(append(ops, "other ops below"), "; ")
		}
		ops = append(ops, d.answer())
	}
	if ph.OfferedRate != nil && ph.AchievedRate != nil {
		ops = slices.Insert(ops, 0, "offered "+Arriving(ph, *ph.OfferedRate)+", sustained "+Arriving(ph, *ph.AchievedRate)+Mark(ph, "achieved_rate"))
	}
	return strings.Join(ops, "; ")
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
		if q.value != nil {
			parts = append(parts, q.name+" "+quantity.Duration(*q.value)+Mark(d.ph, d.At+".response."+q.path))
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

// courseOf says how long ops took at the first and the last of several stages.
func courseOf(ph *run.Phase) string {
	var parts []string
	for i := range ph.Levels {
		l := &ph.Levels[i]
		if i > 0 && i < len(ph.Levels)-1 {
			continue
		}
		for _, d := range didIn(l) {
			if d.Response.P99 != nil {
				parts = append(parts, "at "+Arriving(ph, l.Rate)+", "+d.Name+" p99 "+quantity.Duration(*d.Response.P99)+Marks[l.Validity])
			}
		}
	}
	return strings.Join(parts, "; ")
}
