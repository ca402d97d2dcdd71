package metric

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Of describes a number of T that reports show, plans compare and databases keep. The lists below hold each number once.
type Of[T any] struct {
	Name string // its path in the JSON of T
	Unit string // "ops", "ops/s", "s", "bytes", …; "share" is from 0 to 1
	Kind Kind

	Counted func(*T) uint64   // the getter of a count, which is always available
	Float   func(*T) *float64 // the getter of any other number, in base units; it returns nil if the number is not available

	Line     Line     // the line of a report's text that quotes it
	Text     string   // the text after it there
	Title    string   // its name in a sentence, if that is not Name in plain words
	Compared Compared // whether experiments compare variants by it

	Only func(*T) bool // whether it adds something to the other metrics of a T; nil if it always does

	Says string // its meaning, for loadgen explain
}

// Kind says how a metric of several ops is computed from those of each op.
type Kind int

const (
	Count Kind = iota // a number or an amount: the sum
	Rate              // per second or minute: the sum
	Time              // seconds: from the samples of all ops together, never from their quantiles
	Share             // from 0 to 1: the quotient of two counts, each of which is summed
)

// Line is a place in a report's text.
type Line int

const (
	NoLine     Line = iota // not in a line of the text
	RateLine               // 1,000/s · 60,000/min
	VolumeLine             // 10 MB out · 2 MB in · 99 % hits
)

// Compared says whether experiments compare variants by a metric.
type Compared int

const (
	NotCompared Compared = iota // no experiment compares by it
	IfNamed                     // only if `compare` names it
	Usually                     // also if `compare` names none
)

// named returns the metrics of a part of T, with the part's path before their names.
func named[T, Part any](at string, metrics []Of[Part], of func(*T) *Part, most Compared) (all []Of[T]) {
	for _, m := range metrics {
		whole := Of[T]{
			Name: at + m.Name, Unit: m.Unit, Kind: m.Kind, Line: m.Line, Text: m.Text, Title: m.Title,
			Compared: min(m.Compared, most), Says: m.Says,
		}
		if m.Counted != nil {
			whole.Counted = func(t *T) uint64 { return m.Counted(of(t)) }
		} else {
			whole.Float = func(t *T) *float64 { return m.Float(of(t)) }
		}
		if m.Only != nil {
			whole.Only = func(t *T) bool { return m.Only(of(t)) }
		}
		all = append(all, whole)
	}
	return all
}

// Value returns the number, in base units; nil if it is not available.
func (m *Of[T]) Value(t *T) *float64 {
	if m.Counted == nil {
		return m.Float(t)
	}
	n := float64(m.Counted(t))
	return &n
}

// Ledger lists the counts of a ledger: how many ops were due, and how they ended.
func Ledger() []Of[run.Ledger] {
	return []Of[run.Ledger]{
		{
			Name: "due", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.Due },
			Says: "ops due by the schedule: ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight",
		},
		{Name: "ok", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.OK }, Says: "ops done as asked"},
		{Name: "miss", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.Miss }, Says: "ops whose key did not exist"},
		{Name: "conflict", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.Conflict }, Says: "ops refused: by a newer version, or by another transaction"},
		{
			Name: "quorum_failed", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.QuorumFailed },
			Says: "ops that did not get W or R good answers",
		},
		{Name: "timeout", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.Timeout }, Says: "ops without an answer in time"},
		{Name: "error", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.Error }, Says: "ops that ended in an error reply or a lost connection"},
		{Name: "shed", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return l.Shed }, Says: "ops due and never started"},
		{
			Name: "in_flight", Unit: "ops", Counted: func(l *run.Ledger) uint64 { return uint64(l.InFlight) },
			Says: "ops started and not ended; 0 after a phase that ran to its end",
		},
	}
}

// Causes lists the causes of ops that went wrong.
func Causes() []Of[run.Causes] {
	return []Of[run.Causes]{
		{Name: "reply", Unit: "ops", Counted: func(c *run.Causes) uint64 { return c.Reply }, Says: "an endpoint's answer"},
		{
			Name: "timeout", Unit: "ops", Counted: func(c *run.Causes) uint64 { return c.Timeout },
			Says: "a request without an answer within the target's timeout",
		},
		{
			Name: "lost", Unit: "ops", Counted: func(c *run.Causes) uint64 { return c.Lost },
			Says: "a connection that broke with the request outstanding",
		},
		{
			Name: "refused", Unit: "ops", Counted: func(c *run.Causes) uint64 { return c.Refused },
			Says: "a request that could not be sent: no connection, or too many outstanding",
		},
		{Name: "op_timeout", Unit: "ops", Counted: func(c *run.Causes) uint64 { return c.OpTimeout }, Says: "the op's own deadline"},
	}
}

// Latency lists the figures of a latency: its counts, and then seconds that ascend from min on.
func Latency() []Of[run.Latency] {
	return []Of[run.Latency]{
		{
			Name: "count", Unit: "ops", Counted: func(l *run.Latency) uint64 { return l.Count },
			Says: "samples: ops that ended ok or miss; if 0, all but `failed` are null",
		},
		{
			Name: "failed", Unit: "ops", Counted: func(l *run.Latency) uint64 { return l.Failed },
			Says: "ops without a sample, which count as slower than any: those that ended in conflict, quorum_failed, timeout or error, were shed, or " +
				"had not ended; for `acks`, those that never got that many answers; 0 in `lag` and `latency`, which cover only ops with samples. If " +
				"it is not 0, mean, sd and max are null, and so is each quantile whose rank among all ops is that of a failed one",
		},
		{Name: "mean", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.Mean }, Compared: Usually, Says: "mean, exact"},
		{Name: "sd", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.SD }, Says: "standard deviation, exact"},
		{Name: "min", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.Min }, Says: "least, exact"},
		{
			Name: "p50", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.P50 }, Compared: Usually,
			Says: "median. Quantiles are nearest ranks, given as the upper bound of their bucket: less than 0.8 % above the sample. A quantile with " +
				"fewer than 10 samples beyond it is null: p50 needs 20, p99 1,000, p99.9 10,000",
		},
		{Name: "p90", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.P90 }, Compared: IfNamed, Says: "90 % took no longer"},
		{
			Name: "p95", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.P95 }, Compared: Usually,
			Says: "95 % took no longer; absent in results of an older loadgen",
		},
		{Name: "p99", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.P99 }, Compared: Usually, Says: "99 % took no longer"},
		{Name: "p999", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.P999 }, Compared: IfNamed, Says: "99.9 % took no longer"},
		{Name: "max", Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.Max }, Says: "greatest, exact"},
	}
}

// quantile is a quantile that the plan names.
func quantile(name string) Of[run.Latency] {
	return Of[run.Latency]{
		Name: name, Unit: "s", Kind: Time, Float: func(l *run.Latency) *float64 { return l.Quantile(name) }, Compared: IfNamed,
	}
}

// latencies lists the latencies of ops.
func latencies() []part[run.Figures, run.Latency] {
	return []part[run.Figures, run.Latency]{
		{"response", func(f *run.Figures) *run.Latency { return &f.Response }, Usually},
		{"service", func(f *run.Figures) *run.Latency { return &f.Service }, IfNamed},
		{"lag", func(f *run.Figures) *run.Latency { return &f.Lag }, NotCompared},
		{"latency.ok.response", func(f *run.Figures) *run.Latency { return &f.Latency.OK.Response }, NotCompared},
		{"latency.ok.service", func(f *run.Figures) *run.Latency { return &f.Latency.OK.Service }, NotCompared},
		{"latency.miss.response", func(f *run.Figures) *run.Latency { return &f.Latency.Miss.Response }, NotCompared},
		{"latency.miss.service", func(f *run.Figures) *run.Latency { return &f.Latency.Miss.Service }, NotCompared},
		{"latency.bad.response", func(f *run.Figures) *run.Latency { return &f.Latency.Bad.Response }, NotCompared},
		{"latency.bad.service", func(f *run.Figures) *run.Latency { return &f.Latency.Bad.Service }, NotCompared},
	}
}

// part is an object of T whose numbers have a list of their own.
type part[T, Part any] struct {
	path     string
	of       func(*T) *Part
	compared Compared // at most
}

// parts lists the two parts of the service times of ops that store entries or values in files.
func parts() []part[run.Op, run.Latency] {
	none := new(run.Latency)
	return []part[run.Op, run.Latency]{
		{"write", func(o *run.Op) *run.Latency { return cmp.Or(o.Write, none) }, IfNamed},
		{"sync", func(o *run.Op) *run.Latency { return cmp.Or(o.Sync, none) }, IfNamed},
	}
}

// latencyWith lists the figures of a latency, with these quantiles besides the usual ones.
func latencyWith(quantiles []string) []Of[run.Latency] {
	times := Latency()
	for _, name := range quantiles {
		_, ok := quantity.Quantile(name)
		if ok && !slices.ContainsFunc(times, func(m Of[run.Latency]) bool { return m.Name == name }) {
			times = append(times, quantile(name))
		}
	}
	return times
}

// Figures lists what there is of every kind of op: of a verb, of scenarios and of a step of one. Latencies have these quantiles besides the usual ones.
func Figures(quantiles ...string) []Of[run.Figures] {
	times := latencyWith(quantiles)
	all := named("", Ledger(), func(f *run.Figures) *run.Ledger { return &f.Ledger }, NotCompared)
	all = slices.Insert(all, 1, Of[run.Figures]{Name: "sent", Unit: "ops", Counted: func(f *run.Figures) uint64 { return f.Sent }, Says: "ops started: due − shed"})
	all = append(all, named("causes.", Causes(), func(f *run.Figures) *run.Causes { return &f.Causes }, NotCompared)...)
	all = append(all,
		Of[run.Figures]{
			Name: "rate", Unit: "ops/s", Kind: Rate, Float: func(f *run.Figures) *float64 { return f.Rate }, Line: RateLine, Text: "on the plateau",
			Compared: Usually,
			Says: "ok per second on the plateau, while all of the load was on (docs/truth.md). Null with a reason if sessions never loaded " +
				"together, or ended fewer than 10 ops each and these took different times",
		},
		Of[run.Figures]{
			Name: "rate_per_minute", Unit: "ops/min", Kind: Rate, Float: func(f *run.Figures) *float64 { return f.RatePerMinute }, Line: RateLine,
			Says: "60 × rate",
		},
		Of[run.Figures]{
			Name: "answered", Unit: "ops/s", Kind: Rate, Float: func(f *run.Figures) *float64 { return f.Answered }, Line: RateLine, Text: "answered",
			Title: "rate of answers", Compared: IfNamed,
			Says: "ok and miss per second, by the same rule. It is what most other tools call throughput",
		},
		Of[run.Figures]{
			Name: "rate_wall", Unit: "ops/s", Kind: Rate, Float: func(f *run.Figures) *float64 { return f.RateWall }, Line: RateLine, Text: "from first start to last end",
			Says: "ok per second from the first start to the last end, ramps included",
		},
		Of[run.Figures]{
			Name: "rate_peak", Unit: "ops/s", Kind: Rate, Float: func(f *run.Figures) *float64 { return f.RatePeak },
			Says: "the largest average since the first start: ok per second up to each 1,000th ok and to the last end, so never less than `rate_wall`",
		},
	)
	for _, p := range latencies() {
		all = append(all, named(p.path+".", times, p.of, p.compared)...)
	}
	return all
}

// Op lists the figures of the ops of a verb, with quantiles as in [Figures].
func Op(quantiles ...string) []Of[run.Op] {
	all := named("", Figures(quantiles...), func(o *run.Op) *run.Figures { return &o.Figures }, Usually)
	for _, m := range named("keys.", Ledger(), func(o *run.Op) *run.Ledger { return &o.Keys.Ledger }, NotCompared) {
		if m.Says = "keys, as the ops above"; m.Name == "keys.due" {
			m.Says = "= ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight"
		}
		m.Unit, m.Only = "keys", (*run.Op).Batched
		all = append(all, m)
	}
	for _, p := range parts() {
		for _, m := range named(p.path+".", latencyWith(quantiles), p.of, p.compared) {
			m.Only = func(o *run.Op) bool { return o.Sync != nil }
			all = append(all, m)
		}
	}
	return append(all,
		Of[run.Op]{
			Name: "keys.rate", Unit: "keys/s", Kind: Rate, Float: func(o *run.Op) *float64 { return o.Keys.Rate }, Title: "rate of keys", Compared: Usually, Only: (*run.Op).Batched,
			Says: "as `rate`",
		},
		Of[run.Op]{
			Name: "keys.answered", Unit: "keys/s", Kind: Rate, Float: func(o *run.Op) *float64 { return o.Keys.Answered }, Only: (*run.Op).Batched,
			Says: "as `answered`",
		},
		Of[run.Op]{
			Name: "keys.rate_wall", Unit: "keys/s", Kind: Rate, Float: func(o *run.Op) *float64 { return o.Keys.RateWall }, Only: (*run.Op).Batched,
			Says: "as `rate_wall`",
		},
		Of[run.Op]{
			Name: "bytes_out", Unit: "bytes", Float: func(o *run.Op) *float64 { return counted(o.BytesOut) }, Line: VolumeLine, Text: "out",
			Says: "bytes sent for these ops; null if the driver has a client of its own, which does not count them",
		},
		Of[run.Op]{
			Name: "bytes_in", Unit: "bytes", Counted: func(o *run.Op) uint64 { return o.BytesIn }, Line: VolumeLine, Text: "in",
			Says: "bytes received for these ops; only those of values if the driver has a client of its own",
		},
		Of[run.Op]{
			Name: "hit_ratio", Unit: "share", Kind: Share, Float: func(o *run.Op) *float64 { return o.HitRatio }, Line: VolumeLine, Text: "hits", Compared: Usually,
			Says: "of gets: ok / (ok + miss), counting keys if ops have several",
		},
	)
}

func counted(n *uint64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// Row lists the figures of each second of a phase, with these quantiles besides the usual ones.
func Row(quantiles ...string) []Of[run.Row] {
	all := []Of[run.Row]{
		{
			Name: "due", Unit: "ops", Counted: func(r *run.Row) uint64 { return r.Due },
			Says: "ops started or shed in that time: an op that waits for a free slot counts when it gets one, not when it was due",
		},
		{Name: "sent", Unit: "ops", Counted: func(r *run.Row) uint64 { return r.Sent }, Says: "ops started in that time"},
		{Name: "ok", Unit: "ops", Counted: func(r *run.Row) uint64 { return r.OK }, Says: "ops that ended ok in that time"},
		{Name: "miss", Unit: "ops", Counted: func(r *run.Row) uint64 { return r.Miss }, Says: "ops that missed in that time"},
		{Name: "bad", Unit: "ops", Counted: func(r *run.Row) uint64 { return r.Bad }, Says: "ops that ended in conflict, quorum_failed, timeout or error in that time"},
		{
			Name: "keys_ok", Unit: "keys", Counted: func(r *run.Row) uint64 { return r.KeysOK },
			Says: "keys of ops that ended ok in that time, if ops have several (`batch`); 0 if they have one each",
		},
		{Name: "compared", Unit: "gets", Float: func(r *run.Row) *float64 { return ofGets(r, r.Compared) }, Says: "gets of that time that staleness counts (docs/replication.md)"},
		{Name: "stale", Unit: "gets", Float: func(r *run.Row) *float64 { return ofGets(r, r.Stale) }, Says: "those of them that were stale"},
		{Name: "in_flight", Unit: "ops", Float: func(r *run.Row) *float64 { n := float64(r.InFlight); return &n }, Says: "ops started and not ended at the end of that time"},
		{Name: "response.mean", Unit: "s", Kind: Time, Float: func(r *run.Row) *float64 { return r.Response.Mean }, Says: "mean"},
	}
	says := map[string]string{"p50": "median", "p95": "95 % took no longer; absent in results of an older loadgen", "p99": "99 % took no longer"}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(new(run.RowResponse).Shown(), quantiles...)))) {
		if _, ok := quantity.Quantile(name); ok {
			all = append(all, Of[run.Row]{
				Name: "response." + name, Unit: "s", Kind: Time, Float: func(r *run.Row) *float64 { return r.Response.Quantile(name) }, Says: says[name],
			})
		}
	}
	return append(all, rowCacheFigures()...)
}

// totals lists the figures of all ops of a phase together.
func totals(quantiles []string) (all []Of[run.Phase]) {
	for _, m := range named("total.", Figures(quantiles...), func(p *run.Phase) *run.Figures { return p.Total }, NotCompared) {
		all = append(all, Of[run.Phase]{
			Name: m.Name, Unit: m.Unit, Kind: m.Kind, Says: m.Says,
			Only: func(p *run.Phase) bool { return len(p.Op) > 1 },
			Float: func(p *run.Phase) *float64 {
				if p.Total == nil {
					return nil
				}
				return m.Value(p)
			},
		})
	}
	return all
}

// Phase lists the figures of a phase as a whole. Its total has quantiles as in [Figures].
func Phase(quantiles ...string) []Of[run.Phase] {
	return append(slices.Concat(deviceFigures(), cacheFigures(), verifyFigures(), stalenessFigures(), totals(quantiles)), []Of[run.Phase]{
		{
			Name: "seconds", Unit: "s", Kind: Time, Float: func(p *run.Phase) *float64 { return &p.Seconds },
			Says: "first start to last end of its ops, without setup",
		},
		{
			Name: "offered_rate", Unit: "ops/s", Kind: Rate, Float: func(p *run.Phase) *float64 { return p.OfferedRate },
			Says: "open: ops that became due, over the time of the load, less what its ramp lacks (docs/truth.md); scenarios if the " +
				"phase has any; for a search, at the largest rate that held",
		},
		{
			Name: "achieved_rate", Unit: "ops/s", Kind: Rate, Float: func(p *run.Phase) *float64 { return p.AchievedRate },
			Says: "open: ops per second that ended with any outcome but shed, over the plateau moved by one median service time; " +
				"docs/truth.md has the details; for a search as above",
		},
		{
			Name: "op_cost_seconds", Unit: "s", Kind: Time, Float: func(p *run.Phase) *float64 { return p.OpCostSeconds },
			Says: "productive processor time of the loops per op",
		},
		{
			Name: "expected_lag_p99", Unit: "s", Kind: Time, Float: func(p *run.Phase) *float64 { return p.ExpectedLagP99 },
			Says: "open: the p99 lag of an M/D/1 queue with that cost, as loaded as the busiest loop",
		},
		{Name: "reconnects", Unit: "connections", Counted: func(p *run.Phase) uint64 { return p.Reconnects }, Says: "connections reopened after a loss"},
		{
			Name: "late_replies", Unit: "replies", Counted: func(p *run.Phase) uint64 { return p.LateReplies },
			Says: "replies to requests that had timed out; discarded",
		},
		{
			Name: "foreign", Unit: "values", Counted: func(p *run.Phase) uint64 { return p.Foreign },
			Says: "values read but not written by loadgen, in a checked dataset",
		},
		{Name: "stalls", Unit: "times", Counted: func(p *run.Phase) uint64 { return p.Stalls }, Says: "an event loop stood still for more than 250 ms"},
		{Name: "max_stall_seconds", Unit: "s", Kind: Time, Float: func(p *run.Phase) *float64 { return &p.MaxStallSeconds }, Says: "the longest of them"},
		{
			Name: "away_seconds", Unit: "s", Kind: Time, Float: func(p *run.Phase) *float64 { return &p.AwaySeconds },
			Says: "time for which lost connections had not been made again, summed over connections",
		},
	}...)
}

// Exact returns the number as an integer if it is a whole one, else as a float64; nil if it is not available.
func (m *Of[T]) Exact(t *T) any {
	if m.Counted != nil {
		return m.Counted(t)
	}
	v := m.Float(t)
	switch {
	case v == nil:
		return nil
	case m.Kind == Count:
		return int64(*v)
	}
	return *v
}

// Words returns the metric's name in a sentence: rate of answers, hit ratio, p99 response.
func (m *Of[T]) Words() string {
	if m.Title != "" {
		return m.Title
	}
	of, which, latency := strings.Cut(m.Name, ".")
	if !latency {
		return strings.ReplaceAll(m.Name, "_", " ")
	}
	return strings.Replace(which, "p50", "median", 1) + " " + of
}

// Named returns the metric of an op with a name, which may be that of any quantile: response.p9999.
func Named(name string) (m Of[run.Op], known bool) {
	all := Op(name[strings.LastIndexByte(name, '.')+1:])
	if i := slices.IndexFunc(all, func(m Of[run.Op]) bool { return m.Name == name }); i >= 0 {
		return all[i], true
	}
	return m, false
}

// within turns getters of a part's figures into getters of the whole's; they return nil if there is no such part.
func within[T, P any](part func(*T) *P) func(of func(*P) *float64) func(*T) *float64 {
	return func(of func(*P) *float64) func(*T) *float64 {
		return func(whole *T) *float64 {
			p := part(whole)
			if p == nil {
				return nil
			}
			return of(p)
		}
	}
}

func number[T int64 | uint64](n T) *float64 {
	f := float64(n)
	return &f
}
