package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// Rows is a CSV file with a line of column names, of which each scenario takes a row.
type Rows struct {
	EntryFile
	Count   int64    `json:"count"`
	Columns []string `json:"columns"`
	Pick    string   `json:"pick"`
	Loop    bool     `json:"loop,omitempty"` // after the last row comes the first
}

// The ways to pick a scenario's row.
const (
	SessionRows  = "session"  // that with the session's number
	SequenceRows = "sequence" // each once, in order
	uniformRows  = "uniform"
)

// Once reports whether each row is taken once. A nil r is not.
func (r *Rows) Once() bool { return r != nil && r.Pick == SequenceRows && !r.Loop }

const rowForm = "rows" // for Vars.Keys

// rows reads where a dataset's rows are.
func (b *block) rows() *Rows {
	b.Expect([]string{"file", "pick", "loop"}, nil)
	rows := &Rows{EntryFile: EntryFile{Form: rowForm}, Pick: uniformRows, Count: 1, Columns: []string{}}
	b.Text("pick", &rows.Pick)
	b.Flag("loop", &rows.Loop)
	b.Text("file", &rows.Path)
	if b.Require("file", `Write file = "users.csv", whose first line names its columns.`) && rows.Path != "" && !b.r.Wrong[b.Path+".file"] && b.r.keys != nil {
		facts, err := b.r.keys(rows.Path, rowForm, "")
		if err != nil {
			b.Bad("file", err.Error(), "")
			return rows
		}
		rows.SHA256, rows.Length, rows.Bytes, rows.Count, rows.Columns = facts.SHA256, facts.Length, facts.Bytes, facts.Count, facts.Columns
	}
	return rows
}

// rows checks a dataset's rows.
func (v *validator) rows(at part, r *Rows) {
	v.oneOf(at, "pick", r.Pick, SessionRows, SequenceRows, uniformRows)
	if r.Path == "" || len(r.Path) > dialect.MaxString || r.Form != rowForm || r.Count < 1 || r.SHA256 != "" && (!sha256Pattern.MatchString(r.SHA256) || len(r.Columns) == 0) {
		v.fault(at.where+": no file, or impossible attributes of it", `Write file = "users.csv".`, at.path+".file")
	}
	if r.Loop && r.Pick == uniformRows {
		v.fault(at.where+": loop of rows that are drawn at random", `Leave it out, or write pick = "session" or "sequence".`, at.path+".loop")
	}
}

// enough checks that a phase has as many rows as it takes.
func (v *validator) enough(ph *Phase, d *Dataset, at part) {
	r := d.Rows
	rows := "dataset." + d.Name + ".rows"
	switch {
	case r == nil || r.Loop || r.SHA256 == "":
	case r.Pick == SessionRows && int64(ph.Sessions()) > r.Count:
		v.fault(fmt.Sprintf("%s: %d sessions, and %s has %d rows", at.where, ph.Sessions(), r.Path, r.Count),
			"Write more rows or fewer sessions, or loop = true for sessions that share rows.", rows+".file", at.path)
	case r.Once() && ph.Schedule() != nil:
		v.fault(fmt.Sprintf("%s: %s with the rows of %s in sequence", at.where, ph.model(), r.Path),
			"Write loop = true, or closed { … }: a sequence ends when its rows do, a schedule when its time does.", rows+".pick", at.path)
	}
}

// notes checks that what a phase's ops take from their scenario is there: fields of its row, and what setup or an earlier step has captured.
func (v *validator) notes(ph *Phase, d *Dataset, at part) {
	made := v.taken(ph, d, ph.SetupSteps, nil, at.in("setup"))
	for _, s := range ph.Scenarios {
		v.taken(ph, d, s.Steps, made, part{at.path + ".scenario." + s.Name, at.where + ", scenario " + dialect.Quote(s.Name)})
	}
	for _, w := range ph.Ops {
		if len(ph.Scenarios) == 0 {
			v.taken(ph, d, []ScenarioStep{{Op: w.Op}}, nil, at)
		}
	}
}

// taken checks this for some steps. made lists the captures before them; it returns those after them.
func (v *validator) taken(ph *Phase, d *Dataset, steps []ScenarioStep, made []string, in part) []string {
	for _, step := range steps {
		t := v.plan.Target(step.TargetIn(ph))
		if t == nil || t.Op(step.Op) == nil {
			continue
		}
		o := t.Op(step.Op)
		for _, note := range o.Notes {
			kind, name, _ := strings.Cut(note, ".")
			why, remedy, path := "", "", "target."+t.Name+".op."+o.Name
			switch r := d.Rows; {
			case kind == "captured" && !slices.Contains(made, name):
				why, remedy = "which nothing before it captures", fmt.Sprintf("Write capture = { %s = … } in an op of an earlier step, or of a step in setup.", name)
			case kind != "row":
			case r == nil:
				why, remedy = fmt.Sprintf("and dataset %q has no rows", d.Name), `Write rows { file = "users.csv" } in it.`
			case r.SHA256 != "" && !slices.Contains(r.Columns, name):
				why, remedy = "which is no column of "+r.Path, dialect.Instead(name, r.Columns, "{row.%s}")
			case in.path == "phase."+ph.Name+".setup" && r.Pick != SessionRows:
				why, path = "a row that its session does not keep", "dataset."+d.Name+".rows.pick"
				remedy = `Write pick = "session": setup is carried out once in a session, and other rows are those of a scenario.`
			}
			if why != "" {
				v.fault(fmt.Sprintf("%s: op %s takes {%s}, %s", in.where, dialect.Quote(o.Name), note, why), remedy, path, in.path)
			}
		}
		made = append(slices.Clip(made), o.Captures...)
	}
	return made
}
