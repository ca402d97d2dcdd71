package run

import (
	"fmt"
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

// quantiles refers to the quantiles of a latency: the usual ones, and those that the plan names.
type quantiles struct {
	usual  []string // in ascending order
	fields []**float64
	named  *map[string]*float64
}

// usual are the quantiles that every latency has.
var usual = [...]string{"p50", "p90", "p95", "p99", "p999"}

func (l *Latency) quantiles() quantiles {
	return quantiles{usual[:], []**float64{&l.P50, &l.P90, &l.P95, &l.P99, &l.P999}, &l.Quantiles}
}

// usualEachSecond are the quantiles that every second has.
var usualEachSecond = [...]string{"p50", "p95", "p99"}

func (r *RowResponse) quantiles() quantiles {
	return quantiles{usualEachSecond[:], []**float64{&r.P50, &r.P95, &r.P99}, &r.Quantiles}
}

// Quantile returns the quantile with a name, such as p95; nil if it is null, or neither usual nor named by the plan.
func (l *Latency) Quantile(name string) *float64 { return l.quantiles().value(name) }

// Quantile does the same as that of a [Latency].
func (r *RowResponse) Quantile(name string) *float64 { return r.quantiles().value(name) }

// Shown lists the quantiles to show, in ascending order: those that the plan names, or else the usual ones.
func (l *Latency) Shown() []string { return l.quantiles().shown() }

// Shown does the same as that of a [Latency].
func (r *RowResponse) Shown() []string { return r.quantiles().shown() }

// SetQuantiles sets the usual quantiles, and those with the given names, from a function that returns them. It calls the function with each one's
// path, relative to the latency.
func (l *Latency) SetQuantiles(names []string, of func(share float64, path string) *float64) {
	l.quantiles().set(names, of)
}

// SetQuantiles does the same as that of a [Latency].
func (r *RowResponse) SetQuantiles(names []string, of func(share float64, path string) *float64) {
	r.quantiles().set(names, of)
}

// field returns the field of a usual quantile; nil for any other.
func (q quantiles) field(name string) **float64 {
	if i := slices.Index(q.usual, name); i >= 0 {
		return q.fields[i]
	}
	return nil
}

func (q quantiles) value(name string) *float64 {
	if at := q.field(name); at != nil {
		return *at
	}
	return (*q.named)[name]
}

func (q quantiles) shown() []string {
	if len(*q.named) == 0 {
		return q.usual
	}
	return slices.Sorted(maps.Keys(*q.named))
}

func (q quantiles) set(names []string, of func(share float64, path string) *float64) {
	for i, name := range q.usual {
		share, _ := quantity.Quantile(name)
		*q.fields[i] = of(share, name)
	}
	for _, name := range names {
		if *q.named == nil {
			*q.named = map[string]*float64{}
		}
		share, _ := quantity.Quantile(name)
		(*q.named)[name] = of(share, "quantiles."+name)
	}
}

// check checks that the plan's quantiles have names, and equal the usual ones of the same name.
func (q quantiles) check() error {
	for name, v := range *q.named {
		if _, ok := quantity.Quantile(name); !ok {
			return fmt.Errorf("a quantile named %q", name)
		}
		if at := q.field(name); at != nil && ((*at == nil) != (v == nil) || v != nil && **at != *v) {
			return fmt.Errorf("two different %s", name)
		}
	}
	return nil
}
