package prom

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	dto "github.com/prometheus/client_model/go"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Collector is a prometheus.Collector over the latest View. Its methods may be called from any goroutine.
type Collector struct {
	workers func() []worker.Status // nil if this process is a worker
	latest  atomic.Pointer[View]   // it no longer changes
	scrapes scrapes

	mu   sync.Mutex
	own  *measure.Totals // of the latest view, which no scrape has seen yet, and which its feed may change
	flat measure.Totals  // scratch of add
}

// New returns a coordinator's Collector with nothing to show. workers returns the run's workers. It is called at each scrape, from any goroutine,
// because their state matters most when they send nothing.
func New(workers func() []worker.Status) *Collector {
	return &Collector{workers: workers}
}

// NewPart returns a worker's Collector with nothing to show. It exports what that worker counted, but neither the verdict nor other workers.
func NewPart() *Collector { return new(Collector) }

// Registry returns a new registry that holds c alone.
func (c *Collector) Registry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	return registry
}

// Set makes later scrapes show v. It copies the slices of v, which may then change; the Totals in v must not, except by add.
func (c *Collector) Set(v View) {
	c.latest.Store(v.frozen())
}

// add adds what was counted to one of the latest view's Totals, or to new ones if a scrape may be reading those. It drops bins, which no metric uses,
// and with them the origin, which differs between the steps of a phase.
func (c *Collector) add(to **measure.Totals, delta *measure.Totals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *to == nil || c.own != *to {
		c.own = new(measure.Totals)
		if *to != nil {
			c.own.Merge(*to)
		}
		*to = c.own
	}
	c.own.Merge(delta.WithoutBinsIn(&c.flat))
}

// AwaitScrape waits until every scraper whose connection is still open has fetched the latest view, and so has the most recent scraper, if there was
// one. So each Prometheus gets a run's final counts before the process ends. It returns at once if nobody has scraped yet or there is no view. If ctx
// ends first, it returns the error of ctx with the number of scrapers that are missing.
func (c *Collector) AwaitScrape(ctx context.Context) error {
	latest := c.latest.Load()
	if latest == nil {
		return nil
	}
	return c.scrapes.await(ctx, latest)
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	all, _ := families()
	for _, f := range all {
		ch <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	latest := c.latest.Load()
	c.own = nil
	c.mu.Unlock()
	if latest != nil {
		c.collect(latest, func(m *metric) { ch <- m })
	}
}

// collect emits the metrics of a view.
func (c *Collector) collect(v *View, emit func(*metric)) {
	_, named := families()
	p := page{families: named, emit: emit}
	p.flag("run_active", !v.Ended, v.Run)
	if c.workers != nil {
		p.verdict(v)
		for _, e := range v.Events {
			p.flag("event", e.On, v.Run, e.Phase, e.Name)
		}
		p.observed(v)
		p.workers(v.Run, c.workers())
	}
	for i := range v.Phases {
		phase := phasePage{page: p, v: v, ph: &v.Phases[i]}
		phase.write()
	}
}

// metric is a prometheus.Metric with its complete content.
type metric struct {
	desc *prometheus.Desc
	dto  dto.Metric
}

func (m *metric) Desc() *prometheus.Desc { return m.desc }

func (m *metric) Write(to *dto.Metric) error {
	to.Label, to.Counter, to.Gauge, to.Histogram = m.dto.Label, m.dto.Counter, m.dto.Gauge, m.dto.Histogram
	return nil
}

// page writes the metrics of one scrape.
type page struct {
	families map[string]*family
	emit     func(*metric)
}

// metric returns a metric of a family, without a value. Labels are in the family's order.
func (p *page) metric(of string, labels []string) *metric {
	m := &metric{desc: p.families[of].desc}
	m.dto.Label = prometheus.MakeLabelPairs(m.desc, labels)
	return m
}

// number emits a counter or a gauge. Counts are exact up to 2^53.
func (p *page) number(of string, value float64, labels ...string) {
	m := p.metric(of, labels)
	if p.families[of].Type == "counter" {
		m.dto.Counter = &dto.Counter{Value: &value}
	} else {
		m.dto.Gauge = &dto.Gauge{Value: &value}
	}
	p.emit(m)
}

func (p *page) count(of string, n uint64, labels ...string) { p.number(of, float64(n), labels...) }

func (p *page) flag(of string, is bool, labels ...string) {
	value := 0.0
	if is {
		value = 1
	}
	p.number(of, value, labels...)
}

// histogram emits h, which holds nanoseconds.
func (p *page) histogram(of string, h *hist.Hist, bounds []int64, labels ...string) {
	m := p.metric(of, labels)
	m.dto.Histogram = convert(h, bounds)
	p.emit(m)
}

// verdict emits the run's verdict, whether the plan's asserts hold, and their limits.
func (p *page) verdict(v *View) {
	p.number("run_completeness", map[run.Completeness]float64{run.Degraded: 1, run.Aborted: 2, run.Failed: 3}[v.Verdict.Completeness], v.Run)
	p.number("run_validity", validity(v.Verdict.Validity), v.Run)
	p.number("run_assertions", map[run.Assertions]float64{run.Pass: 1, run.Fail: 2, run.Undecided: 3}[v.Verdict.Assertions], v.Run)
	for _, a := range v.Asserts {
		holds := -1.0
		if a.OK != nil {
			holds = 0
			if *a.OK {
				holds = 1
			}
		}
		p.number("assert", holds, v.Run, a.Name)
		if a.HasLimit {
			p.number("assert_limit", a.Limit, v.Run, a.Name, a.Figure)
		}
	}
}

// observed emits what the probes last read.
func (p *page) observed(v *View) {
	for _, o := range v.Observed {
		for _, field := range o.Fields {
			value, known := o.Value[field]
			if !known {
				value = math.NaN()
			}
			p.number("observed", value, v.Run, o.Name, field)
		}
	}
}

// workers emits the metrics of workers. Names are made valid UTF-8, as the formats of the page require.
func (p *page) workers(run string, list []worker.Status) {
	for _, w := range list {
		name := strings.ToValidUTF8(w.Name, "�")
		p.flag("worker_up", w.Up, run, name)
		p.number("worker_last_seen_seconds", w.Silent.Seconds(), run, name)
		p.number("worker_clock_offset_seconds", w.Offset.Seconds(), run, name)
		p.number("worker_clock_uncertainty_seconds", w.Uncertainty.Seconds(), run, name)
		p.number("worker_cpu_seconds_total", w.CPU.Seconds(), run, name)
	}
}

func validity(v run.Validity) float64 {
	return map[run.Validity]float64{run.Suspect: 1, run.Invalid: 2}[v]
}
