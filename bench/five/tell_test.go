//go:build five

package five

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
)

// A told answer is one with its figure.
type told struct {
	Text, Theirs, Doubt string
}

// An estimate is a figure with its interval.
type estimate struct {
	value, lo, hi *float64
	doubt         string // the validity of the runs, if they are not valid
	why           string // there is no value
}

// String returns the figure with its interval.
func (e estimate) String() string {
	switch {
	case e.value == nil:
		return "an unknown number (" + e.why + ")"
	case e.lo == nil || e.hi == nil:
		return digits(*e.value)
	}
	return fmt.Sprintf("%s (%s to %s)", digits(*e.value), digits(*e.lo), digits(*e.hi))
}

// digits shows three digits.
func digits(v float64) string {
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if exact, err := strconv.ParseFloat(text, 64); err == nil && exact >= 1000 {
		return strconv.FormatFloat(exact, 'f', -1, 64)
	}
	return text
}

// experiment is what the page needs of experiment.json.
type experiment struct {
	ID      string `json:"experiment_id"`
	Loadgen string `json:"loadgen"`
	Verdict struct {
		Validity string   `json:"validity"`
		Reasons  []string `json:"reasons"`
	} `json:"verdict"`
	Seconds float64  `json:"seconds"`
	LeftOut []string `json:"left_out"`
	Runs    []struct {
		Variant string `json:"variant"`
		Verdict struct {
			Validity string `json:"validity"`
		} `json:"verdict"`
	} `json:"runs"`
	Tables []struct {
		Columns []struct {
			Name string `json:"name"`
		} `json:"columns"`
		Rows []struct {
			Name  string `json:"name"`
			Cells []cell `json:"cells"`
		} `json:"rows"`
	} `json:"tables"`
}

type cell struct {
	Value  *float64 `json:"value"`
	Reason string   `json:"reason"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
}

// cell returns a cell of the plan's first table.
func (x *experiment) cell(row, column string) (cell, error) {
	t := x.Tables[0]
	for _, r := range t.Rows {
		for i, c := range t.Columns {
			if r.Name == row && c.Name == column {
				return r.Cells[i], nil
			}
		}
	}
	return cell{}, fmt.Errorf("the table has no %s of %s", column, row)
}

// doubt returns the worst validity of a variant's runs, or "" if they are valid.
func (x *experiment) doubt(variants ...string) (worst string) {
	for _, r := range x.Runs {
		for _, v := range variants {
			if r.Variant == v && r.Verdict.Validity != "valid" && worst != "invalid" {
				worst = r.Verdict.Validity
			}
		}
	}
	return worst
}

// inTable returns an answer's figure from the plan's table.
func (x *experiment) inTable(a *answer) (estimate, error) {
	c, err := x.cell(a.row, a.column)
	e := estimate{value: c.Value, lo: c.Lo, hi: c.Hi, why: c.Reason, doubt: x.doubt(a.row)}
	for name, to := range map[string]**float64{a.lo: &e.lo, a.hi: &e.hi} {
		if name != "" && err == nil {
			c, err = x.cell(a.row, name)
			*to = c.Value
		}
	}
	return e, err
}

// comparison is what the page needs of loadgen runs compare --format json.
type comparison struct {
	Figures []struct {
		Variant  string   `json:"variant"`
		Phase    string   `json:"phase"`
		Op       string   `json:"op"`
		Metric   string   `json:"metric"`
		Ratio    *float64 `json:"ratio"`
		RatioLo  *float64 `json:"ratio_lo"`
		RatioHi  *float64 `json:"ratio_hi"`
		Finding  string   `json:"finding"`
		Validity string   `json:"validity"`
	} `json:"figures"`
}

// between returns an answer's figure by a comparison of the runs of two variants.
func (x *experiment) between(loadgen, runs string, a *answer) (estimate, error) {
	out, err := exec.Command(loadgen, "runs", "compare", "--runs", runs, x.ID+"/"+a.than, x.ID+"/"+a.of, "--format", "json").Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() != exitInvalid {
		return estimate{}, fmt.Errorf("runs compare: %w: %s", err, exit.Stderr)
	}
	var c comparison
	if err := json.Unmarshal(out, &c); err != nil {
		return estimate{}, err
	}
	for _, f := range c.Figures {
		if f.Variant != "B" || f.Phase+" "+f.Op+" "+f.Metric != a.metric {
			continue
		}
		e := estimate{value: f.Ratio, lo: f.RatioLo, hi: f.RatioHi, why: f.Finding}
		if f.Validity != "valid" {
			e.doubt = f.Validity
		}
		return e, nil
	}
	return estimate{}, fmt.Errorf("no %s in the comparison of %s and %s", a.metric, a.of, a.than)
}

// exitInvalid is the exit code of a comparison with figures that are invalid.
const exitInvalid = 4

// tell finds the answers of an execution.
func (p *execution) tell(x *experiment, loadgen, runs string) (all []told, err error) {
	for i := range p.answers {
		a := &p.answers[i]
		var e estimate
		if a.row != "" {
			e, err = x.inTable(a)
		} else {
			e, err = x.between(loadgen, runs, a)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, told{Text: fmt.Sprintf(a.text, e), Theirs: a.theirs, Doubt: e.doubt})
	}
	return all, nil
}
