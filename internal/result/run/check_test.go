package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

func figure(f float64) *float64 { return &f }

// TestWhatGrowthMayBe checks the same for the growth of a phase.
func TestWhatGrowthMayBe(t *testing.T) {
	good := func() *Growth {
		g := &Growth{
			Ops: 30, Order: figure(1), OrderLo: figure(0.5), OrderHi: figure(1.5), SecondsTo: figure(3), SecondsToLo: figure(2), SecondsToHi: figure(4),
			Course: []GrowthRow{{N: 10, Ended: 10, Failed: 10}, {N: 11, Ended: 20}},
		}
		g.Judge()
		return g
	}
	require.NoError(t, (*Growth)(nil).check())
	for name, c := range map[string]struct {
		change func(g *Growth)
		want   string
	}{
		"as it should be":           {func(*Growth) {}, ""},
		"at the lower end":          {func(g *Growth) { g.OrderLo, g.SecondsToLo = g.Order, g.SecondsTo }, ""},
		"at the upper end":          {func(g *Growth) { g.OrderHi, g.SecondsToHi = g.Order, g.SecondsTo }, ""},
		"below the order":           {func(g *Growth) { g.OrderLo = figure(1.1) }, "order of 1, in an interval"},
		"above the order":           {func(g *Growth) { g.OrderHi = figure(0.9) }, "order of 1, in an interval"},
		"below the seconds":         {func(g *Growth) { g.SecondsToLo = figure(3.1) }, "seconds_to of 3, in an interval"},
		"above the seconds":         {func(g *Growth) { g.SecondsToHi = figure(2.9) }, "seconds_to of 3, in an interval"},
		"no order":                  {func(g *Growth) { g.Order = nil }, "order without its interval"},
		"no lower end":              {func(g *Growth) { g.OrderLo = nil }, "order without its interval"},
		"no upper end":              {func(g *Growth) { g.OrderHi = nil }, "order without its interval"},
		"no lower end of seconds":   {func(g *Growth) { g.SecondsToLo = nil }, "seconds_to without its interval"},
		"no upper end of seconds":   {func(g *Growth) { g.SecondsToHi = nil }, "seconds_to without its interval"},
		"shows something else":      {func(g *Growth) { g.Shown = "falls" }, `shown is "falls"`},
		"an ordinal again":          {func(g *Growth) { g.Course[1].N = 10 }, "do not rise"},
		"an ordinal of nothing":     {func(g *Growth) { g.Course[0].N = 0 }, "do not rise"},
		"more failed than ended":    {func(g *Growth) { g.Course[0].Failed = 11 }, "more failed than ended"},
		"ops that are in no row":    {func(g *Growth) { g.Ops++ }, "rows of 30 ops, not 31"},
		"ops that were not counted": {func(g *Growth) { g.Ops-- }, "rows of 30 ops, not 29"},
	} {
		g := good()
		c.change(g)
		for where, check := range map[string]func() error{"alone": g.check, "of figures": func() error { f := Figures{Growth: g}; return f.check() }} {
			if c.want == "" {
				require.NoError(t, check(), "%s, %s", name, where)
			} else {
				require.ErrorContains(t, check(), c.want, "%s, %s", name, where)
			}
		}
	}
	for _, c := range []struct {
		low, high, drift float64
		want             string
	}{
		{0.1, 1, 5, "grows"},
		{0.01, 0.02, 0.5, "grows"},
		{-1, -0.1, 0.2, "falls"},
		{-0.02, -0.01, 5, "falls"},
		{0, 0.25, 1.25, "none"},
		{-0.25, 0, 0.8, "none"},
		{-0.2, 0.2, 1, "none"},
		{-0.6, 0.9, 4.78, "unclear"},
		{-0.6, 0.9, 1, "unclear"},
		{-0.26, 0, 1, "unclear"},
		{0, 0.26, 1, "unclear"},
		{-0.1, 0.1, 1.26, "unclear"},
		{-0.1, 0.1, 0.79, "unclear"},
	} {
		g := &Growth{Order: figure(c.low), OrderLo: figure(c.low), OrderHi: figure(c.high), Drift: figure(c.drift)}
		g.Judge()
		require.Equal(t, c.want, g.Shown, "%v", c)
	}
	older := Growth{Order: figure(0), OrderLo: figure(-1), OrderHi: figure(1), Shown: "none"}
	require.NoError(t, older.check())
	for i := range 3 {
		g := good()
		*[]**float64{&g.Order, &g.OrderLo, &g.OrderHi}[i] = nil
		g.Judge()
		require.Empty(t, g.Shown)
	}
}

// figuresOf returns the figures of ops of which some ended in each way.
func figuresOf() Figures {
	some := func(n uint64) Latency {
		return Latency{Count: n, Min: figure(1), Mean: figure(2), SD: figure(0), Max: figure(3)}
	}
	f := Figures{
		Ledger: Ledger{Due: 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128, OK: 1, Miss: 2, Conflict: 4, QuorumFailed: 8, Timeout: 16, Error: 32, Shed: 64, InFlight: 128},
		Causes: Causes{Reply: 20, Timeout: 10, Lost: 10, Refused: 10, OpTimeout: 10},
	}
	f.Sent = f.Due - f.Shed
	f.Response, f.Service, f.Lag = some(3), some(3), some(f.Sent)
	f.Latency.OK.Response, f.Latency.OK.Service = some(1), some(1)
	f.Latency.Miss.Response, f.Latency.Miss.Service = some(2), some(2)
	return f
}

// TestLedgersBalance changes each figure of a ledger by one, down and up: of a scenario, and of an op with its keys.
func TestLedgersBalance(t *testing.T) {
	f := figuresOf()
	require.NoError(t, f.checkLedger())
	keys := f.Ledger
	whole := func(f Figures, keys Ledger) error {
		o := &Op{Figures: f}
		o.Keys.Ledger = keys
		return checkLedgers(map[string]*Op{"get": o}, nil)
	}
	require.NoError(t, whole(f, keys))
	require.NoError(t, whole(Figures{}, Ledger{}), "nothing in flight")
	of := map[string]func(f *Figures) *uint64{
		"due": func(f *Figures) *uint64 { return &f.Due }, "ok": func(f *Figures) *uint64 { return &f.OK }, "miss": func(f *Figures) *uint64 { return &f.Miss },
		"conflict": func(f *Figures) *uint64 { return &f.Conflict }, "quorum failed": func(f *Figures) *uint64 { return &f.QuorumFailed },
		"timeout": func(f *Figures) *uint64 { return &f.Timeout }, "error": func(f *Figures) *uint64 { return &f.Error }, "shed": func(f *Figures) *uint64 { return &f.Shed },
	}
	for name, at := range of {
		for _, by := range []uint64{1, math.MaxUint64} {
			f := figuresOf()
			*at(&f) += by
			require.ErrorContains(t, f.checkLedger(), "ended and 128 in flight", name)
			require.ErrorContains(t, whole(f, keys), "ended and 128 in flight", name)
			require.ErrorContains(t, whole(figuresOf(), f.Ledger), " ended and 128 in flight", name)
		}
	}
	for _, by := range []int64{1, -1} {
		f := figuresOf()
		f.InFlight += by
		require.ErrorContains(t, f.checkLedger(), "in flight")
		require.ErrorContains(t, whole(f, keys), "in flight")
		require.ErrorContains(t, whole(figuresOf(), f.Ledger), "get: keys: due 255, but ")
	}
	f.Due -= 129
	f.InFlight = -1
	require.EqualError(t, f.checkLedger(), "-1 in flight")
	require.ErrorContains(t, whole(f, keys), "get: -1 in flight")
	require.ErrorContains(t, whole(figuresOf(), f.Ledger), "get: keys: -1 in flight")
	f = figuresOf()
	f.Sent++
	require.ErrorContains(t, whole(f, keys), "get: sent 192, but due 255 and shed 64")
}

// TestLedgersOfRequestsBalance does the same for requests.
func TestLedgersOfRequestsBalance(t *testing.T) {
	good := Requests{Verb: "get", Endpoint: "a"}
	good.Requests = measure.Requests{Sent: 1 + 2 + 4 + 8 + 16 + 32, Answered: 1, Moved: 2, Ask: 4, Timeout: 8, Error: 16, InFlight: 32}
	check := func(r Requests) error { return checkLedgers(nil, []Requests{good, r}) }
	require.NoError(t, check(good))
	for i := range 6 {
		r := good
		*[]*uint64{&r.Sent, &r.Answered, &r.Moved, &r.Ask, &r.Timeout, &r.Error}[i]++
		require.ErrorContains(t, check(r), "get at a: sent")
	}
	r := good
	r.InFlight++
	require.ErrorContains(t, check(r), "33 in flight")
	r.InFlight, r.Sent = -1, 30
	require.EqualError(t, check(r), "get at a: -1 in flight")
}

// TestCountsOfFigures: there are as many causes as ops that went wrong, and samples of those that went well.
func TestCountsOfFigures(t *testing.T) {
	for i := range 5 {
		f := figuresOf()
		*[]*uint64{&f.Causes.Reply, &f.Causes.Timeout, &f.Causes.Lost, &f.Causes.Refused, &f.Causes.OpTimeout}[i]++
		require.ErrorContains(t, f.checkCounts(), "61 causes of 60 ops that went wrong")
	}
	for name, change := range map[string]func(f *Figures){
		"response: 4 samples":                   func(f *Figures) { f.Response.Count++ },
		"response: 3 samples":                   func(f *Figures) { f.Latency.OK.Response.Count++ },
		"response: 2 samples":                   func(f *Figures) { f.Response.Count-- },
		"response: 5 samples, of 3 ok and miss": func(f *Figures) { f.Response.Count, f.Latency.Miss.Response.Count = 5, 4 },
		"service: 5 samples, of 3 ok and miss":  func(f *Figures) { f.Service.Count, f.Latency.OK.Service.Count = 5, 3 },
		"service: 4 samples":                    func(f *Figures) { f.Service.Count++; f.Latency.Miss.Service.Count++ },
		"service: 3 samples":                    func(f *Figures) { f.Latency.Miss.Service.Count-- },
		"service: 2 samples":                    func(f *Figures) { f.Service.Count-- },
		"lag: 192 samples":                      func(f *Figures) { f.Lag.Count++ },
	} {
		f := figuresOf()
		change(&f)
		require.ErrorContains(t, f.checkCounts(), name)
	}
	f := figuresOf() // fewer samples than ended ops: those after a warm-up
	f.Response.Count, f.Latency.OK.Response.Count = 2, 0
	f.Service.Count, f.Latency.Miss.Service.Count = 2, 1
	f.Lag.Count--
	require.NoError(t, f.checkCounts())
}

// TestWhatALatencyHas for any number of samples, and of failed ops.
func TestWhatALatencyHas(t *testing.T) {
	good := func() *Latency {
		return &Latency{Count: 3, Min: figure(1), Mean: figure(2), SD: figure(0), P50: figure(2), P90: figure(2), P99: figure(3), P999: figure(3), Max: figure(4)}
	}
	require.NoError(t, good().check())
	require.NoError(t, new(Latency).check())
	require.NoError(t, (&Latency{Count: 3, Failed: 1, Min: figure(1)}).check())
	require.Error(t, (&Latency{Count: 3, Failed: 1}).check(), "the least is known")
	require.Error(t, (&Latency{Count: 1}).check(), "of one sample, too")
	for i := range 4 {
		l := good()
		*[]**float64{&l.Min, &l.Mean, &l.SD, &l.Max}[i] = nil
		require.ErrorContains(t, l.check(), "3 latency samples without a mean, sd, min or max")
	}
	for i := range 6 {
		l := good()
		*[]**float64{&l.Min, &l.P50, &l.P90, &l.P99, &l.P999, &l.Max}[i] = figure(map[bool]float64{true: 9, false: 0}[i == 0])
		require.ErrorContains(t, l.check(), "quantiles fall")
	}
	rate := func(perSecond, perMinute, answered *float64) error {
		f := Figures{Rate: perSecond, RatePerMinute: perMinute, Answered: answered}
		return f.check()
	}
	require.NoError(t, rate(figure(2), figure(120), figure(3)))
	require.NoError(t, rate(nil, nil, nil))
	require.Error(t, rate(nil, figure(120), figure(3)))
	require.Error(t, rate(figure(2), nil, figure(3)))
	require.Error(t, rate(figure(2), figure(120), nil))
	require.ErrorContains(t, rate(figure(2), figure(121), figure(3)), "a rate of 2/s, and of 121 a minute")
	for _, size := range []float64{1e-6, 1, 1e6, -1} { // rounding is a billionth, whatever the size
		require.NoError(t, rate(figure(size), figure(60*size*(1+0.9e-9)), figure(3)), "%v", size)
		require.NoError(t, rate(figure(size), figure(60*size*(1-0.9e-9)), figure(3)), "%v", size)
		require.Error(t, rate(figure(size), figure(60*size*(1+1.1e-9)), figure(3)), "%v", size)
		require.Error(t, rate(figure(size), figure(60*size*(1-1.1e-9)), figure(3)), "%v", size)
	}
	require.NoError(t, rate(figure(0), figure(0), figure(3)))
}

// TestCountsThatContradictEachOther breaks each rule for what a phase says of caches, events, stale gets and lost writes.
func TestCountsThatContradictEachOther(t *testing.T) {
	happened := &Event{HappenedSeconds: figure(2), Before: Window{ToSeconds: 2}, During: Window{FromSeconds: 2, ToSeconds: 3}, After: Window{FromSeconds: 3, ToSeconds: 9}}
	for want, checks := range map[string][]interface{ check() error }{
		"": {
			(*Cache)(nil), (*Staleness)(nil), (*Verify)(nil), &Event{}, happened,
			&Cache{Gets: 4, Hits: 3, Misses: 1, HitRatio: figure(0.75), LRUHitRatio: figure(1)},
			&Staleness{Gets: 10, Stale: 10, ByOne: 1, ByTwo: 2, ByThree: 3, ByMore: 4, Ratio: figure(1)},
			&Verify{Keys: 6, Lost: 3, Missing: 1, Older: 2, Newer: 2, Unread: 1, Examples: make([]LostWrite, 3)},
		},
		"4 gets, but 2 hits and 1 misses":                   {&Cache{Gets: 4, Hits: 2, Misses: 1}},
		"hit_ratio 0.5, but 3 hits of 4 gets":               {&Cache{Gets: 4, Hits: 3, Misses: 1, HitRatio: figure(0.5)}},
		"lru_hit_ratio NaN":                                 {&Cache{LRUHitRatio: figure(math.NaN())}},
		"lru_hit_ratio 1.1":                                 {&Cache{LRUHitRatio: figure(1.1)}},
		"11 of 10 gets":                                     {&Staleness{Gets: 10, Stale: 11}},
		"2 stale, but by one version 1, two 0":              {&Staleness{Gets: 10, Stale: 2, ByOne: 1}},
		"a ratio of 10 gets":                                {&Staleness{Gets: 10}},
		"a ratio of 0 gets":                                 {&Staleness{Ratio: figure(0)}},
		"3 lost, but 1 missing and 1 older":                 {&Verify{Keys: 9, Lost: 3, Missing: 1, Older: 1}},
		"of 3 keys 2 lost, 1 newer and 1 unread":            {&Verify{Keys: 3, Lost: 2, Missing: 2, Newer: 1, Unread: 1}},
		"2 examples of 1 that are lost":                     {&Verify{Keys: 3, Lost: 1, Older: 1, Examples: make([]LostWrite, 2)}},
		"figures from 2 s to 1 s":                           {&Event{Before: Window{FromSeconds: 2, ToSeconds: 1}}},
		"figures from 1 s on, and of the time before up to": {&Event{HappenedSeconds: figure(2), Before: Window{ToSeconds: 2}, During: Window{FromSeconds: 1, ToSeconds: 3}}},
		"an event that did not happen":                      {&Event{RecoveredSeconds: figure(1)}, &Event{After: Window{ToSeconds: 1}}},
	} {
		for _, c := range checks {
			if err := c.check(); want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
}

// TestQuantilesByName sets the usual quantiles and those that a plan names, and reads both.
func TestQuantilesByName(t *testing.T) {
	var l Latency
	require.Equal(t, []string{"p50", "p90", "p95", "p99", "p999"}, l.Shown())
	l.SetQuantiles([]string{"p95", "p9999"}, func(share float64, path string) *float64 {
		if path == "p999" {
			return nil
		}
		return &share
	})
	require.Equal(t, []string{"p95", "p9999"}, l.Shown(), "those that a plan names")
	require.Equal(t, []*float64{figure(0.5), figure(0.95), figure(0.9999), nil, nil},
		[]*float64{l.Quantile("p50"), l.Quantile("p95"), l.Quantile("p9999"), l.Quantile("p999"), l.Quantile("p98")})
	require.NoError(t, l.quantiles().check())
	l.P95 = figure(0.9)
	require.ErrorContains(t, l.quantiles().check(), "two different p95")
	l.Quantiles["p100"] = nil
	delete(l.Quantiles, "p95")
	require.ErrorContains(t, l.quantiles().check(), `a quantile named "p100"`)

	var r RowResponse
	r.SetQuantiles([]string{"p25"}, func(share float64, path string) *float64 { return &share })
	require.Equal(t, []*float64{figure(0.99), figure(0.25), nil}, []*float64{r.Quantile("p99"), r.Quantile("p25"), r.Quantile("p90")})
	require.Equal(t, []string{"p25"}, r.Shown())
}

// TestFinerRowsRise: each row ends after the one before it, and the first after the beginning.
func TestFinerRowsRise(t *testing.T) {
	for _, c := range []struct {
		ends []float64
		good bool
	}{
		{nil, true},
		{[]float64{0.1}, true},
		{[]float64{0.1, 0.2, 0.21}, true},
		{[]float64{0}, false},
		{[]float64{-0.1}, false},
		{[]float64{0.1, 0.1}, false},
		{[]float64{0.1, 0.3, 0.2}, false},
	} {
		p := &Phase{}
		for _, end := range c.ends {
			p.Finer = append(p.Finer, FinerRow{end, 1, 2, 3})
		}
		require.Equal(t, c.good, p.checkFiner() == nil, "%v", c.ends)
		require.Equal(t, c.good, p.checkWhole() == nil, "%v", c.ends)
	}
}

// TestWhatAPhaseHasWhole checks trends, observations and steps, each clause alone.
func TestWhatAPhaseHasWhole(t *testing.T) {
	good := func() *Phase {
		p := &Phase{
			Steps: []int{0, 2}, Levels: make([]Level, 2),
			Observe: map[string]map[string]Observed{"disk": {"used": {Last: figure(1), Min: figure(1), Max: figure(1), Mean: figure(1)}, "none": {}}},
			Probes:  map[string]*Probes{"disk": {}},
		}
		full := Trend{Effective: figure(1), CI95: figure(1), Drift: figure(1), DriftP: figure(1)}
		p.Steady.Rate, p.Steady.Response = full, full
		return p
	}
	require.NoError(t, good().checkWhole())
	require.NoError(t, new(Phase).checkWhole())
	edit := func(change func(o *Observed)) func(p *Phase) {
		return func(p *Phase) {
			o := p.Observe["disk"]["used"]
			change(&o)
			p.Observe["disk"]["used"] = o
		}
	}
	for name, c := range map[string]struct {
		change func(p *Phase)
		want   string
	}{
		"no least":            {edit(func(o *Observed) { o.Min = nil }), "used has a last value"},
		"no most":             {edit(func(o *Observed) { o.Max = nil }), "used has a last value"},
		"no mean":             {edit(func(o *Observed) { o.Mean = nil }), "used has a last value"},
		"no probes":           {func(p *Phase) { delete(p.Probes, "disk") }, "nothing is said of its probes"},
		"probes of nothing":   {func(p *Phase) { p.Probes["more"] = nil }, "probes more is null"},
		"no effective":        {func(p *Phase) { p.Steady.Rate.Effective = nil }, "a trend with a confidence interval"},
		"no drift":            {func(p *Phase) { p.Steady.Rate.Drift = nil }, "a trend with a confidence interval"},
		"no probability":      {func(p *Phase) { p.Steady.Rate.DriftP = nil }, "a trend with a confidence interval"},
		"no drift of latency": {func(p *Phase) { p.Steady.Response.Drift = nil }, "a trend with a confidence interval"},
		"step −1":             {func(p *Phase) { p.Steps = []int{-1, 2} }, "not in the order of a run"},
		"a step twice":        {func(p *Phase) { p.Steps = []int{2, 2} }, "not in the order of a run"},
		"steps backwards":     {func(p *Phase) { p.Steps = []int{2, 1} }, "not in the order of a run"},
		"a step too few":      {func(p *Phase) { p.Steps = []int{2} }, "1 steps of 2 levels"},
		"a step too many":     {func(p *Phase) { p.Steps = []int{1, 2, 3} }, "3 steps of 2 levels"},
		"two steps of one":    {func(p *Phase) { p.Levels = nil }, "2 steps of 0 levels"},
		"an op of nothing":    {func(p *Phase) { p.Op = map[string]*Op{"get": nil} }, "get is null"},
		"an op of a level":    {func(p *Phase) { p.Levels[1].Op = map[string]*Op{"get": nil} }, "level 1: get is null"},
		"an op of the setup":  {func(p *Phase) { p.Setup = &Ledgers{Op: map[string]*Op{"get": nil}} }, "setup: get is null"},
		"no scenario":         {func(p *Phase) { p.Scenario = map[string]*Scenario{"s": nil} }, "scenario s is null"},
		"a name of no step":   {func(p *Phase) { p.Scenario = map[string]*Scenario{"s": {StepOrder: []string{"a"}}} }, "1 names of 0 steps"},
		"no step of a name": {func(p *Phase) {
			p.Scenario = map[string]*Scenario{"s": {StepOrder: []string{"a"}, Step: map[string]*Step{"b": {}}}}
		}, "step a is null"},
		"a rate alone": {func(p *Phase) { p.Op = map[string]*Op{"get": {Figures: Figures{Rate: figure(1)}}} }, "get: a rate per second"},
		"a rate of a scenario alone": {func(p *Phase) {
			p.Scenario = map[string]*Scenario{"s": {Figures: Figures{Rate: figure(1)}}}
		}, "scenario s: a rate per second"},
		"a rate of a step alone": {func(p *Phase) {
			p.Scenario = map[string]*Scenario{"s": {StepOrder: []string{"a"}, Step: map[string]*Step{"a": {Figures: Figures{Rate: figure(1)}}}}}
		}, "scenario s: step a: a rate per second"},
		"an ack that falls": {func(p *Phase) {
			p.Op = map[string]*Op{"get": {Acks: []Latency{{}, {P50: figure(2), P90: figure(1)}}}}
		}, "get: a latency whose quantiles fall"},
		"hits of no keys": {func(p *Phase) { p.Op = map[string]*Op{"get": {HitRatio: figure(0.5)}} }, "get: hit_ratio 0.5"},
		"a step that does not balance": {func(p *Phase) {
			p.Scenario = map[string]*Scenario{"s": {StepOrder: []string{"a"}, Step: map[string]*Step{"a": {Figures: Figures{Ledger: Ledger{Due: 1}}}}}}
		}, "step a: due 1"},
	} {
		p := good()
		c.change(p)
		require.ErrorContains(t, p.checkWhole(), c.want, name)
	}
	p := good()
	p.Steps, p.Levels = []int{0}, nil
	require.NoError(t, p.checkWhole(), "one for all of its load")
}

// TestLossesOfOneName go to the workers that had it, in order.
func TestLossesOfOneName(t *testing.T) {
	r := &Run{
		Fleet:  []Worker{{Name: "a"}, {Name: "b"}, {Name: "a"}, {Name: "a"}, {Name: "a"}},
		Losses: []worker.Loss{{Worker: "a", Why: "1"}, {Worker: "b", Why: "2"}, {Worker: "a", Why: "3"}, {Worker: "a", Why: "4"}},
	}
	var why []string
	for place := range r.Fleet[:4] {
		why = append(why, r.LossOf(place).Why)
	}
	require.Equal(t, []string{"1", "2", "3", "4"}, why)
	require.Nil(t, r.LossOf(4))
}

// TestVerbsInTheirOrder: first the known ones, then the plan's own by name.
func TestVerbsInTheirOrder(t *testing.T) {
	p := &Phase{Op: map[string]*Op{"zap": {}, "put": {}, "ask": {}, "get": {}, "del": nil}}
	require.Equal(t, []string{driver.Get.String(), driver.Put.String(), "ask", "zap"}, p.Verbs())
	require.Equal(t, []string{"del"}, p.Apart(), "without figures of their own")
}

// TestEarlyEndsOfExperiments stop only the variants that lack runs, or those named.
func TestEarlyEndsOfExperiments(t *testing.T) {
	of := func() *Experiment {
		return &Experiment{Repeat: 3, Variants: []Variant{{Name: "a", Runs: 3}, {Name: "b", Runs: 2}}}
	}
	x, stopped := of(), of().Variants[0].Stopped
	x.Abort(reason.Why{Text: "stopped"})
	require.Equal(t, stopped, x.Variants[0].Stopped)
	require.Equal(t, StopAborted, x.Variants[1].Stopped)
	require.Equal(t, Aborted, x.Verdict.Completeness)
	x = of()
	x.Cap("a")
	require.Equal(t, StopCap, x.Variants[0].Stopped)
	require.Equal(t, stopped, x.Variants[1].Stopped)
	require.Equal(t, Capped, x.Verdict.Completeness)
}

// A total is that of its ops, and no better than any of them.
func TestTotalIsOfItsOps(t *testing.T) {
	of := func(due uint64) Figures { return Figures{Ledger: Ledger{Due: due, OK: due}} }
	p := &Phase{Op: map[string]*Op{"get": {Figures: of(3)}, "put": {Figures: of(4)}, "apart": nil}, Total: new(of(7))}
	require.NoError(t, p.checkTotal())
	p.Total = new(of(8))
	require.EqualError(t, p.checkTotal(), "total: 8 due and 8 ok, but those of its ops come to 7 and 7")
	p.Total = nil
	require.NoError(t, p.checkTotal(), "the ops went to several targets")

	for _, c := range []struct {
		touches, path string
		want          Validity
	}{
		{"op", "total.rate", Invalid},
		{"op.get", "total.rate", Invalid},
		{"op.get.response", "total.response.p99", Invalid},
		{"op.get.response.p999", "total.response.p99", Valid},
		{"op.get.response", "total.rate", Valid},
		{"op.get", "op.put.rate", Valid},
		{"offered_rate", "total.rate", Valid},
		{"total", "total.rate", Invalid},
		{"scenario.x", "total.rate", Valid},
	} {
		p.Reasons = []Reason{{Validity: Invalid, Touches: []string{c.touches}}}
		require.Equal(t, c.want, p.ValidityOf(c.path), "%s of %s", c.path, c.touches)
	}
}
