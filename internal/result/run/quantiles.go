package run

import (
	"fmt"
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/result/quantity"
)

// usual are the quantiles that every latency has.
var usual = [...]string{"p50", "p90", "p95", "p99", "p999"}

// field returns where a usual quantile is; nil for any other.
func (l *Latency) field(name string) **float64 {
	i := slices.Index(usual[:], name)
	if i < 0 {
		return nil
	}
	return [len(usual)]**float64{&l.P50, &l.P90, &l.P95, &l.P99, &l.P999}[i]
}

// Quantile returns the quantile with a name, such as p95; nil if it is null, or neither usual nor named by the plan.
func (l *Latency) Quantile(name string) *float64 {
	if at := l.field(name); at != nil {
		return *at
	}
	return l.Quantiles[name]
}

// Shown lists the quantiles to show, in ascending order: those that the plan names, or else the usual ones.
func (l *Latency) Shown() []string {
	if len(l.Quantiles) == 0 {
		return usual[:]
	}
	return slices.Sorted(maps.Keys(l.Quantiles))
}

// SetQuantiles sets the usual quantiles, and those with the given names, from a function that returns them. It calls that with the path of each,
// relative to the latency.
func (l *Latency) SetQuantiles(names []string, of func(share float64, path string) *float64) {
	for _, name := range usual {
		share, _ := quantity.Quantile(name)
		*l.field(name) = of(share, name)
	}
	for _, name := range names {
		if l.Quantiles == nil {
			l.Quantiles = map[string]*float64{}
		}
		share, _ := quantity.Quantile(name)
		l.Quantiles[name] = of(share, "quantiles."+name)
	}
}

// checkQuantiles checks that the plan's quantiles have names, and are the usual ones where they have the same.
func (l *Latency) checkQuantiles() error {
	for name, v := range l.Quantiles {
		if _, ok := quantity.Quantile(name); !ok {
			return fmt.Errorf("a quantile named %q", name)
		}
		if at := l.field(name); at != nil && ((*at == nil) != (v == nil) || v != nil && **at != *v) {
			return fmt.Errorf("two different %s", name)
		}
	}
	return nil
}
