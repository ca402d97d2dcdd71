//go:build five

package five

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
)

// A told answer is one with its figure.
type told struct {
	Text, Theirs string
	Validity     run.Validity // of the runs
}

// tell finds the answers of an execution in its experiment, but for those of rows that were left out.
func (p *execution) tell(x *run.Experiment, loadgen, runs string) (all []told, err error) {
	for i := range p.answers {
		a := &p.answers[i]
		if slices.Contains(x.LeftOut, a.row) {
			continue
		}
		figure, validity := "", run.Valid
		if a.row != "" {
			figure, validity, err = inTable(x, a)
		} else {
			figure, validity, err = between(x, loadgen, runs, a)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, told{Text: fmt.Sprintf(a.text, figure), Theirs: a.theirs, Validity: validity})
	}
	return all, nil
}

// unknown stands for a figure.
func unknown(why string) string { return "an unknown number (" + why + ")" }

// withInterval writes a figure and the ends of its interval.
func withInterval(value, lo, hi string) string { return fmt.Sprintf("%s (%s to %s)", value, lo, hi) }

// inTable returns an answer's figure from the first of the plan's tables that has its row, with its interval, which is in the cell itself or in two
// others.
func inTable(x *run.Experiment, a *answer) (figure string, validity run.Validity, err error) {
	validity = run.Valid
	for _, r := range x.Runs {
		if r.Variant == a.row && r.Verdict.Validity.Worse(validity) {
			validity = r.Verdict.Validity
		}
	}
	cells := map[string]run.Cell{}
	for _, t := range x.Tables {
		at := slices.IndexFunc(t.Rows, func(r run.TableRow) bool { return r.Name == a.row })
		if at < 0 {
			continue
		}
		for i, c := range t.Columns {
			cells[c.Name] = t.Rows[at].Cells[i]
		}
		break
	}
	c, there := cells[a.column]
	switch {
	case !there:
		return "", validity, fmt.Errorf("the table has no %s of %s", a.column, a.row)
	case c.Value == nil:
		return unknown(c.Reason), validity, nil
	case a.lo != "":
		return withInterval(unmarked(c), unmarked(cells[a.lo]), unmarked(cells[a.hi])), validity, nil
	}
	return unmarked(c), validity, nil
}

// unmarked returns a cell's text without its own mark: an answer has one, for all that it is from.
func unmarked(c run.Cell) string { return strings.TrimRight(c.Text, "?!") }

// between returns an answer's figure by a comparison of the runs of two variants.
func between(x *run.Experiment, loadgen, runs string, a *answer) (figure string, validity run.Validity, err error) {
	out, err := exec.Command(loadgen, "runs", "compare", "--runs", runs, x.ID+"/"+a.than, x.ID+"/"+a.of, "--format", "json").Output()
	var ended *exec.ExitError
	if err != nil && !(errors.As(err, &ended) && ended.ExitCode() == exit.Invalid) {
		return "", "", fmt.Errorf("runs compare: %w", err)
	}
	var c comparison.Result
	if err := json.Unmarshal(out, &c); err != nil {
		return "", "", err
	}
	for _, f := range c.Figures {
		switch {
		case f.Variant != "B" || f.Phase+" "+f.Op+" "+f.Metric != a.metric:
		case f.Ratio == nil:
			return unknown(f.Finding), f.Validity, nil
		case f.RatioLo == nil || f.RatioHi == nil:
			return quantity.Digits(*f.Ratio), f.Validity, nil
		default:
			return withInterval(quantity.Digits(*f.Ratio), quantity.Digits(*f.RatioLo), quantity.Digits(*f.RatioHi)), f.Validity, nil
		}
	}
	return "", "", fmt.Errorf("no %s in the comparison of %s and %s", a.metric, a.of, a.than)
}
