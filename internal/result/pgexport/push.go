package pgexport

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Push writes a run. It returns false if the database already has the run; a different run of the same name is an error. planJSON may be nil.
func (db *DB) Push(ctx context.Context, r *run.Run, planJSON []byte) (added bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.within)
	defer cancel()
	err = db.inTransaction(ctx, func() error {
		if added, err = db.insertRun(ctx, r, planJSON); err != nil || !added {
			return err
		}
		for _, t := range tablesOf(r) {
			if err := db.copyRows(ctx, t); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
		return nil
	})
	if err != nil {
		return false, db.plain(fmt.Errorf("push run %s: %w", r.ID, err))
	}
	return added, nil
}

func (db *DB) insertRun(ctx context.Context, r *run.Run, planJSON []byte) (added bool, err error) {
	e := &r.Environment
	return db.insert(ctx, "runs", r.ID, r.StartedAt, `
		INSERT INTO loadgen.runs (id, plan, plan_digest, started_at, seconds, loadgen, experiment, variant, repetition, completeness, validity,
			assertions, exit_code, reasons, labels, workers, hostname, kernel, cpu_model, environment, plan_json, draws_as)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
		ON CONFLICT (id) DO NOTHING`,
		r.ID, r.Plan, r.PlanDigest, r.StartedAt, r.Seconds, r.Loadgen, r.Experiment, r.Variant, r.Repetition, string(r.Verdict.Completeness),
		string(r.Verdict.Validity), string(r.Verdict.Assertions), r.ExitCode, asJSON{slices.Concat([]string{}, r.Verdict.Reasons)}, labelsOf(r.Labels),
		len(r.Workers), e.Hostname, e.Kernel, e.CPUModel, asJSON{e}, planJSON, r.DrawsAs)
}

// labelsOf returns an empty object for no labels.
func labelsOf(labels map[string]string) asJSON {
	if labels == nil {
		return asJSON{map[string]string{}}
	}
	return asJSON{labels}
}

// insert adds a row, unless the table has one of that ID. That must have the same start time, to the microsecond that the database keeps.
func (db *DB) insert(ctx context.Context, table, id string, startedAt time.Time, statement string, args ...any) (added bool, err error) {
	changed, err := db.exec(ctx, statement, args...)
	if err != nil || changed > 0 {
		return err == nil, err
	}
	micros, err := db.number(ctx, `SELECT (extract(epoch FROM started_at) * 1000000)::bigint FROM loadgen.`+table+` WHERE id = $1`, id)
	if err != nil {
		return false, err
	}
	there := time.UnixMicro(micros)
	if d := there.Sub(startedAt); d < -time.Microsecond || d > time.Microsecond {
		return false, fmt.Errorf("the database has another one of this name, which began at %s", there.UTC().Format(time.RFC3339))
	}
	return false, nil
}

// rowsOf holds rows for a table.
type rowsOf struct {
	name    string
	columns []string
	rows    [][]any
}

// tablesOf makes the rows of a run's tables, referenced tables first.
func tablesOf(r *run.Run) []rowsOf {
	phases := rowsOf{name: "phases", columns: slices.Concat(
		[]string{"run", "phase", "position", "kind", "model", "target", "driver", "warmup", "validity"}, columnsOf(metric.Phase(), phaseColumns),
	)}
	phaseFigures := rowsOf{name: "phase_figures", columns: []string{"run", "phase", "figure", "value"}}
	ops := rowsOf{name: "ops", columns: slices.Concat([]string{"run", "phase", "op"}, columnsOf(metric.Op(), opColumns))}
	figures := rowsOf{name: "figures", columns: []string{"run", "phase", "op", "figure", "value"}}
	series := rowsOf{name: "series", columns: slices.Concat([]string{"run", "phase", "t"}, columnsOf(metric.Row(), seriesColumns))}
	seriesFigures := rowsOf{name: "series_figures", columns: []string{"run", "phase", "t", "figure", "value"}}
	observations := rowsOf{name: "observations", columns: []string{
		"run", "phase", "observation", "field", "unit", "counter", "before", "after", "delta", "rate", "last", "min", "max", "mean",
	}}
	for i, name := range r.PhaseOrder {
		p := r.Phase[name]
		head := []any{i, string(p.Kind), string(p.Model), p.Target.Name, p.Target.Driver, p.WarmUp.Seconds, string(p.Validity)}
		var quantiles []string
		if p.Total != nil {
			quantiles = p.Total.Response.Shown()
		}
		enter(&phases, &phaseFigures, p, metric.Phase(quantiles...), phaseColumns, []any{r.ID, name}, head...)
		for _, verb := range p.Verbs() {
			o := p.Op[verb]
			enter(&ops, &figures, o, metric.Op(o.Response.Shown()...), opColumns, []any{r.ID, name, verb})
		}
		for i := range p.Series {
			row := &p.Series[i]
			enter(&series, &seriesFigures, row, metric.Row(row.Response.Shown()...), seriesColumns, []any{r.ID, name, row.T})
		}
		for what, fields := range p.Observe {
			for field, o := range fields {
				observations.rows = append(observations.rows, []any{
					r.ID, name, what, field, o.Unit, o.Counter, o.Before, o.After, o.Delta, o.Rate, o.Last, o.Min, o.Max, o.Mean,
				})
			}
		}
	}
	return []rowsOf{phases, phaseFigures, ops, figures, series, seriesFigures, observations}
}

// Metrics that have a column in a table, by its released schema. Other metrics of a phase, an op or a second are rows of phase_figures,
// figures and series_figures.
var (
	phaseColumns = []string{"seconds", "offered_rate", "achieved_rate"}

	opColumns = []string{
		"due", "sent", "ok", "miss", "conflict", "quorum_failed", "timeout", "error", "shed", "in_flight", "bytes_in", "bytes_out",
	}
	seriesColumns = []string{"due", "sent", "ok", "miss", "bad", "in_flight", "response.mean", "response.p50", "response.p99"}
)

// columnsOf returns the names of the columns of metrics, in the order of the metrics.
func columnsOf[T any](metrics []metric.Of[T], with []string) (columns []string) {
	for _, m := range metrics {
		if slices.Contains(with, m.Name) {
			columns = append(columns, strings.ReplaceAll(m.Name, ".", "_"))
		}
	}
	return columns
}

// enter adds a row for t: its key, what else is given of it, and the values for columnsOf. Of its other metrics, each has a row of figures with that
// key, except those that are null, counts of 0, or follow from others.
func enter[T any](rows, figures *rowsOf, t *T, metrics []metric.Of[T], with []string, key []any, more ...any) {
	row := slices.Concat(key, more)
	for _, m := range metrics {
		value := m.Exact(t)
		switch {
		case slices.Contains(with, m.Name):
			row = append(row, value)
		case value != nil && value != uint64(0) && value != int64(0) && (m.Only == nil || m.Only(t)):
			figures.rows = append(figures.rows, slices.Concat(key, []any{m.Name, value}))
		}
	}
	rows.rows = append(rows.rows, row)
}

// PushExperiment writes how an experiment's variants compare; push its runs separately. It returns false if the database already has the experiment.
func (db *DB) PushExperiment(ctx context.Context, x *run.Experiment) (added bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.within)
	defer cancel()
	err = db.inTransaction(ctx, func() error {
		added, err = db.insert(ctx, "experiments", x.ID, x.StartedAt, `
			INSERT INTO loadgen.experiments (id, plan, started_at, seconds, loadgen, repeat, baseline, completeness, validity, assertions, exit_code, labels,
				schema, matters)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, nullif($14::double precision, 0)) ON CONFLICT (id) DO NOTHING`,
			x.ID, x.Plan, x.StartedAt, x.Seconds, x.Loadgen, x.Repeat, x.Baseline, string(x.Verdict.Completeness), string(x.Verdict.Validity),
			string(x.Verdict.Assertions), x.ExitCode, labelsOf(x.Labels), x.Schema, x.Matters)
		if err != nil || !added {
			return err
		}
		return db.copyRows(ctx, comparisonsOf(x))
	})
	if err != nil {
		return false, db.plain(fmt.Errorf("push experiment %s: %w", x.ID, err))
	}
	return added, nil
}

func comparisonsOf(x *run.Experiment) rowsOf {
	comparisons := rowsOf{name: "comparisons", columns: []string{
		"experiment", "variant", "phase", "op", "metric", "unit", "score", "error", "ratio", "ratio_lo", "ratio_hi", "p", "p_holm", "spread", "mde",
		"differs", "finding", "validity", "difference", "difference_lo", "difference_hi", "code",
	}}
	for i := range x.Figures {
		f := &x.Figures[i]
		comparisons.rows = append(comparisons.rows, []any{
			x.ID, f.Variant, f.Phase, f.Op, f.Metric, f.Unit, f.Score, f.Error, f.Ratio, f.RatioLo, f.RatioHi, f.P, f.PHolm, f.Spread, f.MDE,
			f.Differs, f.Finding, string(f.Validity), f.Difference, f.DifferenceLo, f.DifferenceHi, string(f.Code),
		})
	}
	return comparisons
}
