package expr

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const ms = int64(time.Millisecond)

// testPlan has two phases, one with a setup, and the given condition as its assert.
func testPlan(conditions ...string) *plan.Plan {
	p := &plan.Plan{
		Name:     "test",
		Targets:  []*plan.Target{{Name: "space", Driver: "redis", Endpoints: []string{"127.0.0.1:7001"}}},
		Datasets: []*plan.Dataset{{Name: "items"}},
		Phases: []*plan.Phase{
			{
				Name: "get", Target: "space", Dataset: "items", MaxBad: 0.01,
				Ops:    []plan.Weight{{Op: "get", Weight: 1}},
				Setup:  []plan.Weight{{Op: "put", Weight: 1}},
				Closed: &plan.Closed{Clients: plan.Clients{Sessions: 1, Pipeline: 1}, Iterations: 1000},
			},
			{
				Name: "put-warm", Target: "space", Dataset: "items", MaxBad: 0.01,
				Ops:    []plan.Weight{{Op: "put", Weight: 1}},
				Closed: &plan.Closed{Clients: plan.Clients{Sessions: 1, Pipeline: 1}, Iterations: 1},
			},
		},
	}
	for _, c := range conditions {
		p.Asserts = append(p.Asserts, &plan.Assert{Name: "a", That: c, File: "plan.hcl", Line: 12})
	}
	return p
}

func load(verb driver.Verb, n int) *measure.Totals {
	t := measure.NewTotals(0, 1)
	for i := range int64(n) {
		t.AddDue(verb)
		s := measure.Sample{Verb: verb, Due: i * ms, Start: i * ms, End: (i + 1) * ms}
		if i%10 == 9 {
			s.Outcome = driver.Miss
		}
		t.Record(&s)
		t.Request(0, verb).Sent++
		t.Request(0, verb).Answered++
	}
	t.AckN(verb, 1, 2*ms, uint64(n))
	t.Span.Session(0, int64(n)*ms)
	return t
}

// series has a row for each second.
func series(seconds ...*measure.Totals) []run.Row {
	var s judge.Series
	for i, t := range seconds {
		s.Add(float64(i+1), t)
	}
	return s.Rows()
}

// testRun is a result of testPlan: 1,000 gets of 1 ms in 1 s, 900 of them hits; put-warm was not run.
func testRun(p *plan.Plan) *run.Run {
	r := run.New(run.Header{ID: "x", Plan: p.Name, StartedAt: time.Unix(0, 0)}, machine.Environment{
		Servers: map[string]map[string]map[string]string{"space": {"127.0.0.1:7001": {"version": "7.2.4"}}},
	})
	r.Add("get", judge.NewPhase(p, p.Phases[0], judge.Measured{
		Endpoints:  []string{"127.0.0.1:7001"},
		Load:       load(driver.Get, 1000),
		Setup:      load(driver.Put, 0),
		Series:     series(load(driver.Get, 10), &measure.Totals{}),
		Generators: []measure.Generator{{Executor: "event loop", Busy: 0.25}},
	}))
	r.Conclude(run.Aborted, reason.User)
	return r
}

func TestCheckAccepts(t *testing.T) {
	p := testPlan(
		`phase.get.op.get.response.p99 < duration("20ms")`,
		`phase["get"].op["get"].latency.bad.service.count == 0`,
		`phase.put-warm.op.put.rate > 10 && phase["put-warm"].op.put.rate_wall > 1`,
		`phase.get.setup.op.put.ok == 10`,
		`phase.get.op.get.acks[0].p50 < duration("1s")`,
		`max([for row in phase.get.series : row.ok]...) > 3`,
		`alltrue([for r in phase.get.requests : r.sent == r.answered])`,
		`environment.servers.space["127.0.0.1:7001"].version == "7.2.4"`,
		`verdict.validity == "valid" && exit_code == 0 && seconds < 60`,
		`contains(phase_order, "get")`,
		"(\n  phase.get.generator.busy\n  < percent(\"70%\")\n)",
		`phase.get.levels[2].op.get.response.p99 > 0 && phase.get.search.rate > 2 * phase.get.search.first_failed`,
		`length([for l in phase.get.levels : l if l.outcome == "held"]) > 1`,
	)
	p.Asserts = append(p.Asserts[:6], p.Asserts[7:]...) // there is no alltrue
	require.Empty(t, Check(p))
}

func TestCheckRefuses(t *testing.T) {
	tests := []struct{ name, that, want string }{
		{
			"phase", `phase.gett.op.get.ok > 1`,
			`assert "a": phase has no "gett". Did you mean "get"? There are get, put-warm.`,
		},
		{
			"op", `phase.get.op.put.ok > 1`,
			`assert "a": phase.get.op has no "put". There are get.`,
		},
		{
			"field", `phase.get.op.get.response.p98 > 1`,
			`assert "a": phase.get.op.get.response has no "p98". Write quantiles = [0.98] in the plan block, with others to show.`,
		},
		{"p100", `phase.get.op.get.response.p100 > 1`, `assert "a": phase.get.op.get.response has no "p100". Write max.`},
		{
			"field of an element", `phase.get.requests[0].verbs == "get"`,
			`assert "a": phase.get.requests[0] has no "verbs". Did you mean "verb"? There are ` +
				`answered, ask, endpoint, error, in_flight, moved, refused, sent, target, timeout, verb.`,
		},
		{
			"setup of none", `phase["put-warm"].setup.op.put.ok > 1`,
			`assert "a": phase.put-warm.setup.op has no "put". By this plan there is nothing.`,
		},
		{
			"root", `phases.get.seconds > 1`,
			`assert "a": the result has no "phases". Did you mean "phase"? There are asserts, coordinator_cpu_seconds, draws_as, drivers, ` +
				`environment, exit_code, experiment, experiment_digest, fleet, id, labels, loadgen, losses, phase, phase_order, plan, plan_digest, recovered, repetition, schema, seconds, ` +
				`started_at, strict, unverified, variant, verdict, workers.`,
		},
		{
			"number", `phase.get.op.get.response.p99`,
			`assert "a": the condition is a number, not true or false. Write a comparison, such as phase.NAME.op.get.response.p99 < duration("20ms").`,
		},
		{
			"object", `phase.get.op`,
			`assert "a": the condition is an object, not true or false. Write a comparison, such as phase.NAME.op.get.response.p99 < duration("20ms").`,
		},
		{
			"operand", `phase.get.target > 1`,
			`assert "a": Invalid operand. Unsuitable value for left operand: number required, but have object. Figures are numbers`,
		},
		{
			"text for a number", `phase.get.seconds < "20s"`,
			`assert "a": Invalid operand. Unsuitable value for right operand: a number is required. Figures are numbers: write duration("5ms"), `,
		},
		{
			"unit", `phase.get.seconds < duration("20 parsecs")`,
			`assert "a": Invalid function argument. `,
		},
		{
			"function", `phase.get.seconds < durations("20s")`,
			`assert "a": Call to unknown function. There is no function named "durations". Did you mean "duration"?`,
		},
		{
			"function of another tool", `p(95) < 500`,
			`assert "a": Call to unknown function. Write a figure of the result, with the unit of what it is held against: phase.NAME`,
		},
		{
			"name of another tool", `http_req_duration < 500`,
			`assert "a": the result has no "http_req_duration". Write a figure of the result`,
		},
		{
			"syntax", `phase.get.seconds <`,
			`assert "a": Missing expression. `,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			diags := Check(testPlan(tt.that))
			require.Len(t, diags, 1)
			require.True(t, strings.HasPrefix(diags[0].Summary+". "+diags[0].Detail, tt.want), diags[0].Summary+". "+diags[0].Detail)
			require.Equal(t, "plan.hcl", diags[0].Subject.Filename)
			require.Equal(t, 12, diags[0].Subject.Start.Line)
		})
	}
}

// A number beside seconds or bytes says its unit, unless the figure's name does.
func TestLimitsHaveUnits(t *testing.T) {
	const p99 = "phase.get.op.get.response.p99"
	observed := func(that string) *plan.Plan {
		p := testPlan(that)
		p.Observes = []*plan.Observe{{Name: "redis", Target: "space", Fields: []plan.Field{{Name: "used_memory", Unit: "bytes"}, {Name: "rss_bytes", Unit: "bytes"}}}}
		p.Asserts[0].WithUnit = []string{"0.005"}
		return p
	}
	for that, want := range map[string]string{
		p99 + " < 500":                             `500 without a unit beside ` + p99 + `, which is in seconds. Write duration("500ms"), or another unit.`,
		"0.5 > 2 * " + p99:                         `0.5 without a unit beside 2 * ` + p99 + `, which`,
		"max(" + p99 + ", 1) <= (500)":             `(500) without a unit`,
		p99 + ` == "500"`:                          `"500" without a unit`,
		p99 + " < 5 * phase.get.seconds + 1":       "",
		p99 + " + 5 < phase.get.seconds":           `5 without a unit beside ` + p99 + `, which`,
		p99 + " < (phase.get.seconds > 1 ? 5 : 0)": `(phase.get.seconds > 1 ? 5 : 0) without a unit`,
		"length([for r in phase.get.series : r.t if r.response.p99 > 0.001]) == 0":                      `0.001 without a unit beside r.response.p99,`,
		"max([for q in [for r in phase.get.series : r.response.p99] : q]...) < 3":                       `3 without a unit`,
		"max(phase.get.series[*].response.p99...) < 3":                                                  `3 without a unit`,
		"phase.get.observe.redis.used_memory.delta < 5":                                                 `5 without a unit beside phase.get.observe.redis.used_memory.delta, which is in bytes. Write size("1MiB")`,
		"length([for r in phase.get.probes.redis.series : r.t if r.value.used_memory > 5]) == 0":        `5 without a unit beside r.value.used_memory`,
		"phase.get.observe.redis.rss_bytes.delta < 5 && phase.get.observe.redis.used_memory.rate < 500": "",
		p99 + ` < 0.005 && ` + p99 + ` < 2 * duration("5ms") && ` + p99 + " > 0":                        "",
		p99 + " / phase.get.op.get.response.p50 < 3 && phase.get.op.get.rate > 5":                       "",
		"phase.get.op.get.response.count > 5 && phase.get.max_stall_seconds < 1":                        "",
	} {
		diags := Check(observed(that))
		if want == "" {
			require.Empty(t, diags, that)
			continue
		}
		require.Len(t, diags, 1, that)
		require.Contains(t, diags[0].Summary+". "+diags[0].Detail, want, that)
		require.Equal(t, 12, diags[0].Subject.Start.Line)
	}
}

// All mistakes at once, each at its own line.
func TestCheckAll(t *testing.T) {
	p := testPlan("phase.a.ok > phase.b.ok", "(\nphase.get.op.get.ok\n> phase.get.op.get.okay\n)", `true`)
	diags := Check(p)
	require.Len(t, diags, 3)
	require.Equal(t, []int{12, 12, 14}, []int{diags[0].Subject.Start.Line, diags[1].Subject.Start.Line, diags[2].Subject.Start.Line})

	var b strings.Builder
	require.NoError(t, plan.FormatDiagnostics(&b, diags[:1], map[string][]byte{"plan.hcl": []byte("plan {\n")}))
	require.Equal(t, "plan.hcl:12: assert \"a\": phase has no \"a\". There are get, put-warm.\n", b.String(),
		"no line of the source, since its offset is not known")
}

func TestLimit(t *testing.T) {
	for that, want := range map[string]struct {
		figure string
		limit  float64
	}{
		`phase.get.op.get.response.p99 < duration("20ms")`:             {"phase.get.op.get.response.p99", 0.02},
		`(rate("5k/s") / 2 <= phase.get.op.get.rate)`:                  {"phase.get.op.get.rate", 2500},
		`phase.get.op["get"].hit_ratio == 0.9`:                         {`phase.get.op["get"].hit_ratio`, 0.9},
		"phase.get.op.get.error /\n\tphase.get.op.get.due < 1":         {"phase.get.op.get.error / phase.get.op.get.due", 1},
		`max([for row in phase.get.series : row.response.p99]...) < 1`: {"max([for row in phase.get.series : row.response.p99]...)", 1},
		`phase.get.op.get.due > phase.get.op.get.ok`:                   {},
		`phase.get.op.get.ok > 1 && phase.get.op.get.ok < 5`:           {},
		`!(phase.get.op.get.ok > 1)`:                                   {},
		`phase.get.offered_rate == null`:                               {},
		`1 < 2`:                                                        {},
	} {
		figure, limit, ok := Limit(&plan.Assert{Name: "a", That: that})
		require.Equal(t, want.figure != "", ok, that)
		if ok {
			require.Equal(t, want.figure, figure)
			require.Equal(t, want.limit, limit, that)
		}
	}
}

func TestEvaluate(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		name, that    string
		ok            *bool
		value, reason string
	}{
		{
			"holds", `phase.get.op.get.ok == 900 && phase.get.op.get.due > phase.get.op.get.ok`, &yes,
			"900 = 900 and 1,000 > 900", "",
		},
		{"does not hold", `phase.get.op.get.hit_ratio > percent("90%")`, &no, "90 % = 90 %", ""},
		{"decimal fractions are exact", `phase.get.op.get.hit_ratio == percent("90%")`, &yes, "90 % = 90 %", ""},
		{"a literal, too", `phase.get.op.get.hit_ratio == 0.9`, &yes, "90 % = 90 %", ""},
		{"time", `phase.get.op.get.acks[0].max >= duration("2ms")`, &yes, "2 ms = 2 ms", ""},
		{"half a time", `0.5 * phase.get.op.get.acks[0].max > duration("2ms")`, &no, "1 ms < 2 ms", ""},
		{"close", `(phase.get.op.get.acks[0].max == 0.0020000001)`, &no, "0.002 < 0.0020000001", ""},
		{"a rate", `0.5 * rate("5k/s") < rate("3k/s")`, &yes, "2,500/s < 3,000/s", ""},
		{
			"null", `phase.get.op.get.latency.bad.service.p99 < 1 || true`, nil,
			"", "phase.get.op.get.latency.bad.service.p99 is null: no op ended badly",
		},
		{
			"null is no value", `phase.get.op.get.ok > 1 && phase.get.offered_rate == null`, nil,
			"phase.get.op.get.ok = 900", "phase.get.offered_rate is null: a closed phase offers no rate: ops wait for each other",
		},
		{
			"not run", `phase["put-warm"].op.put.rate > 1`, nil,
			"", "phase.put-warm is null: phase put-warm was not run: the run is aborted",
		},
		{
			"null in a list", `phase.get.series[1].response.p99 < 1`, nil,
			"", "phase.get.series[1].response.p99 is null: no op ended ok or miss in that second, or fewer than 10 lie beyond that quantile; or ops failed, which count as slower than any that did not",
		},
		{
			"nulls within", `max([for row in phase.get.series : row.response.p99]...) < 1`, nil,
			"", "Invalid function argument: Invalid value for \"numbers\" parameter: argument must not be null",
		},
		{
			"beyond the end", `phase.get.op.get.acks[2].p50 < 1`, nil,
			"", "Invalid index: The given key does not identify an element in this collection value",
		},
		{
			"all seconds", `min([for row in phase.get.series : row.ok]...) == 0 && phase.get.series[0].ok == 9`, &yes,
			"0 = 0 and 9 = 9", "",
		},
		{
			"servers", `environment.servers.space["127.0.0.1:7001"].version == "7.2.4" && !strict`, &yes,
			`environment.servers.space["127.0.0.1:7001"].version = "7.2.4", strict = false`, "",
		},
		{"setup", `phase.get.setup.op.put.due == 0`, &yes, "0 = 0", ""},
		{"division by zero", `1 / phase.get.op.get.shed > 1`, nil, "phase.get.op.get.shed = 0", "division by phase.get.op.get.shed, which is 0"},
		{"division", `phase.get.op.get.miss / phase.get.op.get.ok < 0.2`, &yes, "0.111 < 0.2", ""},
		{"not a condition", `phase.get.seconds`, nil, "phase.get.seconds = 1", "the condition is a number, not true or false"},
		{"no expression", `phase.get.`, nil, "", "Invalid attribute name: An attribute name is required after a dot"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := testPlan(tt.that)
			require.Equal(t, []run.AssertResult{
				{Name: "a", That: tt.that, OK: tt.ok, Value: tt.value, Reason: tt.reason},
			}, Evaluate(p, testRun(p)))
		})
	}
}

// Any quantile that the plan names is a figure beside the usual ones, with its own reason if it is null.
func TestQuantilesOfThePlan(t *testing.T) {
	p := testPlan(`phase.get.op.get.response.p97 == duration("1ms") || phase.get.op.get.response.p97 > 0`,
		`phase.get.op.get.response.quantiles.p97 == phase.get.op.get.response.p97`, `phase.get.op.get.service.p9999 < duration("1s")`,
		`phase.get.series[0].response.p97 == phase.get.series[0].response.p95`)
	p.Quantiles = []float64{0.9999, 0.97}
	require.Empty(t, Check(p))
	r := testRun(p)
	require.Equal(t, []string{"p97", "p9999"}, r.Phase["get"].Op["get"].Response.Shown())
	rows := judge.Series{Quantiles: p.QuantileNames()}
	rows.Add(1, load(driver.Get, 1000))
	r.Phase["get"].Series = rows.Rows()
	got := Evaluate(p, r)
	require.True(t, *got[0].OK)
	require.True(t, *got[1].OK)
	require.True(t, *got[3].OK, "of a second, too")
	require.Equal(t, "phase.get.op.get.service.p9999 is null: 0 of 1,000 samples lie beyond it; a quantile needs 10: 100,000 would do", got[2].Reason)
}

// A result of another plan decides nothing.
func TestEvaluateOtherPlan(t *testing.T) {
	p := testPlan("true")
	r := testRun(p)
	p.Phases = p.Phases[1:]
	results := Evaluate(p, r)
	require.Nil(t, results[0].OK)
	require.Contains(t, results[0].Reason, "read the result as the plan's")
}

// Every number of the result can be named in an assert by its path in the JSON.
func TestEveryNumberIsReachable(t *testing.T) {
	p := testPlan()
	r := testRun(p)
	paths := numbers(t, r)
	require.Contains(t, paths, "phase.get.op.get.response.max")
	require.Contains(t, paths, "phase.get.requests[0].sent")
	require.Contains(t, paths, "phase.get.series[0].response.mean")
	require.Contains(t, paths, "phase.get.setup.op.put.due")
	require.Greater(t, len(paths), 150)
	for _, path := range paths {
		p.Asserts = append(p.Asserts, &plan.Assert{Name: path, That: path + " == " + path, File: "plan.hcl", Line: 1})
	}
	require.Empty(t, Check(p))
	for _, a := range Evaluate(p, r) {
		require.NotNil(t, a.OK, "%s: %s", a.Name, a.Reason)
		require.True(t, *a.OK)
		require.Contains(t, a.Value, " = ")
	}
}

// TestABoundDecidesOnOneSideOnly: a figure that is only known to be at most what it says proves that it is below a limit, and not that it is above one.
func TestABoundDecidesOnOneSideOnly(t *testing.T) {
	yes, no := true, false
	for that, want := range map[string]*bool{
		`phase.get.op.get.response.p99 < duration("20ms")`:                              &yes,
		`duration("20ms") > phase.get.op.get.response.p99`:                              &yes,
		`phase.get.op.get.response.p99 <= duration("10us")`:                             nil,
		`phase.get.op.get.response.p99 > duration("20ms")`:                              &no,
		`phase.get.op.get.response.p99 > duration("10us")`:                              nil,
		`phase.get.op.get.response.p99 * 2 < duration("20ms")`:                          &yes,
		`phase.get.op.get.response.p99 * 2 < duration("10us")`:                          nil,
		`phase.get.op.get.response.p99 < duration("10us") && phase.get.op.get.ok < 5`:   &no,
		`phase.get.op.get.response.p99 < duration("10us") && phase.get.op.get.ok > 5`:   nil,
		`phase.get.op.get.response.p99 < duration("10us") || (phase.get.op.get.ok > 5)`: &yes,
		`phase.get.op.get.response.count > 5`:                                           &yes,
		`phase.get.op.get.service.p99 < duration("10us")`:                               &no,
	} {
		p := testPlan(that)
		r := testRun(p)
		r.Phase["get"].Reasons = append(r.Phase["get"].Reasons, run.Reason{Validity: run.Suspect, Code: reason.StartedLate, Touches: []string{"op.get.response"}, OneSided: reason.AtMost})
		got := Evaluate(p, r)[0]
		require.Equal(t, want, got.OK, "%s: %s", that, got.Reason)
		require.Equal(t, want == nil, strings.Contains(got.Reason, "is only known to be at most that"), that)
	}
}
