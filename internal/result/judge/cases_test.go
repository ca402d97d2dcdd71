package judge_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Each file of testdata/cases begins with a plan. Its cases follow: "== name", what a phase left behind, a line "--", and what is said of it. Lines:
//
//	phase NAME               the phase of the plan; the first one unless said
//	ops VERB key=value…      ops that were counted (see ops below)
//	session FROM TO          when a session was at work; sessions of ops are
//	sessions N FROM TO       unless their line says span=no
//	setup                    the ops that follow are the setup's
//	level RATE key=value…    the ops that follow are a level's: ramp, from, duration, start
//	totals JSON              fields of the measure.Totals of the load, or of the level
//	error TEXT               a text of errors
//	measured JSON            fields of the judge.Measured
//	ended NAME               why a search ended
//	probe JSON               a stored probe of the plan's first observation
//	seconds key=value…       seconds of ops, with rows and a warm-up (see seconds below)
//	show PATHS               figures of the result that are part of what is said
//	touches                  the figures that reasons touch are, too
//	* LINE                   an alternative: the case with that line, and no other such line
var update = flag.Bool("update", false, "rewrite what is said in testdata/cases")

// origin is the run clock at the start of every step.
const origin = 7 * int64(time.Second)

func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/cases/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		src, rest, _ := strings.Cut(string(text), "\n== ")
		file, diags := plan.Parse([]byte(src), path, []driver.Driver{redis.Driver{}})
		require.Empty(t, diags)
		p, diags := file.Resolve(plan.Vars{})
		require.Empty(t, diags)
		out := src
		for c := range strings.SplitSeq(rest, "\n== ") {
			given, want, _ := strings.Cut(c, "\n--\n")
			name, body, _ := strings.Cut(given, "\n")
			got := strings.TrimSpace(said(t, p, name, strings.Split(body, "\n")))
			out += "\n== " + given + "\n--\n" + got + "\n"
			if !*update {
				require.Equal(t, strings.TrimSpace(want), got, "%s: %s: run with -update and read the diff", path, name)
			}
		}
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(out), 0o666))
		}
	}
}

// said carries out a case, once for each of its alternatives.
func said(t *testing.T, p *plan.Plan, name string, lines []string) string {
	var always, others []string
	for _, line := range lines {
		if other, found := strings.CutPrefix(line, "* "); found {
			others = append(others, other)
		} else if strings.TrimSpace(line) != "" {
			always = append(always, line)
		}
	}
	if others == nil {
		return tell(t, p, name, always)
	}
	var b strings.Builder
	for _, other := range others {
		fmt.Fprintf(&b, "* %s\n%s", other, tell(t, p, name, append(slices.Clone(always), other)))
	}
	return b.String()
}

// given is a case while its lines are read.
type given struct {
	t     *testing.T
	name  string
	plan  *plan.Plan
	phase *plan.Phase
	m     judge.Measured
	load  *measure.Totals
	step  judge.Measured // of the level
	start time.Duration
	show  []string
	all   bool   // reasons with what they touch
	nth   uint64 // op that was counted by ordinal
}

func tell(t *testing.T, p *plan.Plan, name string, lines []string) string {
	g := &given{t: t, name: name, plan: p}
	g.use(p.Phases[0])
	for _, line := range lines {
		g.read(line)
	}
	g.level()
	if len(g.m.Levels) > 0 {
		g.m.Load = nil
	}
	weights := g.phase.Ops
	defer func() { g.phase.Ops = weights }()
	g.phase.Ops = slices.Clone(weights) // each op has the share that it was due with
	for i := range weights {
		v, _ := p.Words().Verb(weights[i].Op)
		g.phase.Ops[i].Weight = float64(g.load.Ops[v].Ledger().Due)
	}
	r := judge.NewPhase(p, g.phase, g.m)
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s\n", r.Validity)
	for _, why := range r.Reasons {
		fmt.Fprintf(b, "  %s %s: %s\n", why.Code, why.Validity, why.Text)
		if g.all {
			fmt.Fprintf(b, "    %s\n", strings.Join(why.Touches, " "))
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(b, "  note: %s\n", note)
	}
	if len(g.show) > 0 {
		var tree any
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &tree))
		for _, path := range g.show {
			fmt.Fprintf(b, "  %s = %s\n", path, figure(r, tree, path))
		}
	}
	return b.String()
}

// use makes a phase the one that is counted.
func (g *given) use(ph *plan.Phase) {
	g.phase, g.m.Endpoints, g.m.Others = ph, g.plan.Target(ph.Target).Endpoints, map[string][]string{}
	rows := len(g.m.Endpoints)
	for _, name := range ph.Targets()[1:] {
		g.m.Others[name] = g.plan.Target(name).Endpoints
		rows += len(g.m.Others[name])
	}
	g.load = measure.NewTotals(origin, max(rows, 1)) // built-in nodes are not named
	g.m.Load = g.load
}

// figure returns what a result has at a path, or why it has nothing.
func figure(r *run.Phase, tree any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		switch in := tree.(type) {
		case map[string]any:
			tree = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if tree = nil; err == nil && i < len(in) {
				tree = in[i]
			}
		default:
			tree = nil
		}
	}
	switch v := tree.(type) {
	case nil:
		for at := path; at != ""; at = at[:max(0, strings.LastIndex(at, "."))] {
			if why, there := r.Nulls[at]; there {
				return fmt.Sprintf("null: %s: %s", r.NullCodes[at], why)
			}
		}
		return "null"
	case float64:
		return strconv.FormatFloat(v, 'g', 5, 64)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(text)
	}
}

// read carries out a line.
func (g *given) read(line string) {
	g.t.Helper()
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch word {
	case "phase":
		i := slices.IndexFunc(g.plan.Phases, func(ph *plan.Phase) bool { return ph.Name == rest })
		require.GreaterOrEqual(g.t, i, 0, "%s: no phase %q", g.name, rest)
		g.use(g.plan.Phases[i])
	case "ops":
		g.ops(g.args(rest))
	case "flight": // ops, and as many requests, that have not ended
		verb, n, _ := strings.Cut(rest, " ")
		v, _ := g.plan.Words().Verb(verb)
		left, err := strconv.Atoi(n)
		require.NoError(g.t, err)
		g.load.AddDueN(v, uint64(left))
		g.load.AddInFlight(v, int64(left))
		r := g.load.Request(0, v)
		r.Sent, r.InFlight = r.Sent+uint64(left), r.InFlight+int64(left)
	case "lost":
		a := strings.Fields(rest)
		n, err := strconv.Atoi(a[0])
		require.NoError(g.t, err)
		g.load.AddLost(n, origin+g.duration(a[1]), origin+g.duration(a[2]))
	case "session":
		from, to, _ := strings.Cut(rest, " ")
		g.load.Span.Session(origin+g.duration(from), origin+g.duration(to))
	case "setup":
		g.m.Setup = measure.NewTotals(origin, len(g.m.Endpoints))
		g.load = g.m.Setup
	case "level":
		g.level()
		a := g.args("rate=" + rest)
		g.load = measure.NewTotals(origin, len(g.m.Endpoints))
		g.step = judge.Measured{Endpoints: g.m.Endpoints, Load: g.load, Shape: pace.Shape{
			Rate: a.number("rate"), From: a.number("from"), Ramp: time.Duration(a.duration("ramp")), Duration: time.Duration(a.duration("duration")),
		}}
		g.start = time.Duration(a.duration("start"))
	case "totals":
		g.json(rest, g.load)
	case "error":
		g.load.Errors.Add([]byte(rest))
	case "measured":
		m := &g.m
		if g.step.Load != nil {
			m = &g.step
		}
		g.json(rest, m)
	case "ended":
		ends := map[string]judge.End{"precise": judge.Precise, "to": judge.AtTo, "from": judge.BelowFrom, "spent": judge.Spent, "stopped": judge.Stopped, "shrunk": judge.Shrunk}
		end, there := ends[rest]
		require.True(g.t, there, "%s: %s", g.name, line)
		g.m.Ended = end
	case "probe":
		var p run.Probe
		g.json(rest, &p)
		name := g.plan.Observes[0].Name
		if g.m.Observed == nil {
			g.m.Observed = map[string]*judge.Observation{name: {Of: "what is observed"}}
		}
		g.m.Observed[name].Read(&p)
	case "seconds":
		g.seconds(g.args(rest))
	case "show":
		g.show = append(g.show, strings.Fields(rest)...)
	case "touches":
		g.all = true
	default:
		require.Fail(g.t, "unknown line", "%s: %s", g.name, line)
	}
}

// level ends the level whose ops were read.
func (g *given) level() {
	if g.step.Load != nil {
		g.m.AddLevel(g.plan, g.phase, g.step, g.start)
		g.step = judge.Measured{}
	}
}

func (g *given) json(text string, to any) {
	g.t.Helper()
	require.NoError(g.t, json.Unmarshal([]byte(text), to), "%s: %s", g.name, text)
}

// args are the keys and values of a line.
type args struct {
	g  *given
	of map[string]string
}

func (g *given) args(text string) args {
	a := args{g, map[string]string{}}
	for word := range strings.FieldsSeq(text) {
		name, value, found := strings.Cut(word, "=")
		if !found {
			name, value = "verb", word
		}
		a.of[name] = value
	}
	return a
}

func (a args) number(name string) float64 {
	if a.of[name] == "" {
		return 0
	}
	f, err := strconv.ParseFloat(a.of[name], 64)
	require.NoError(a.g.t, err, "%s: %s", a.g.name, name)
	return f
}

func (a args) duration(name string) int64 {
	if a.of[name] == "" {
		return 0
	}
	return a.g.duration(a.of[name])
}

func (g *given) duration(text string) int64 {
	d, err := time.ParseDuration(text)
	require.NoError(g.t, err, g.name)
	return int64(d)
}

// ops counts n ops of each of so many sessions, the s-th of which begins s·ramp after from. An op is due every so long, starts late after that and no
// earlier than gap after the one before it started, and takes so long, or long if it is one in each. One in each ends with an outcome, and the others
// are ok. room=no: those that started late had waited for a free slot. scenario=i step=j: it is the j-th step of the i-th scenario. in: bytes of a reply.
// sync: of each that is ok, the wait for its sync.
func (g *given) ops(a args) {
	verb := driver.Get
	if name := a.of["verb"]; name != "" {
		var known bool
		verb, known = g.plan.Words().Verb(name)
		require.True(g.t, known, "%s: %s", g.name, name)
	}
	outcome := driver.OK
	for o := range driver.NumOutcomes {
		if driver.Outcome(o).String() == a.of["outcome"] {
			outcome = driver.Outcome(o)
		}
	}
	n, sessions, each := int64(a.number("n")), max(1, int64(a.number("sessions"))), max(1, int64(a.number("each")))
	took, every := a.duration("took"), a.duration("every")
	if a.of["every"] == "" {
		every = took
	}
	slower := a.duration("slower") // each op than the one before it
	first := a.duration("from")
	for s := range sessions {
		begin := origin + first + s*a.duration("ramp")
		free, due := begin, begin
		for i := range n {
			lasts := took + i*slower
			if a.of["long"] != "" && i%each == 0 {
				lasts = a.duration("long")
			}
			o := measure.Sample{Verb: verb, Due: due, Start: max(due+a.duration("late"), free)}
			if a.of["lateeach"] != "" && i%each == 0 {
				o.Start += a.duration("lateeach")
			}
			if a.of["until"] != "" { // it starts then, if it was due before
				o.Start = max(o.Start, origin+a.duration("until"))
			}
			if free = o.Start + a.duration("gap"); a.of["gap"] == "" {
				free = 0
			}
			o.End = o.Start + lasts
			if a.of["outcome"] != "" && i%each == 0 {
				if o.Outcome = outcome; outcome > driver.Miss {
					o.Cause = measure.Cause(op.Lost)
					if outcome == driver.Timeout {
						o.Cause = measure.Cause(op.RequestTimeout)
					}
				}
			}
			count(g.load, a, &o)
			if a.of["sync"] != "" && o.Outcome == driver.OK {
				g.load.Split(o.Verb, lasts, a.duration("sync"))
			}
			if a.of["growth"] != "" {
				g.nth++
				g.load.Grow(&o, g.nth)
			}
			if due += every; every == 0 || slower > 0 {
				due = o.End
			}
			if i == n-1 && a.of["span"] != "no" {
				g.load.Span.Session(begin, max(due, o.End))
			}
		}
	}
}

// count counts an op, and its request at an endpoint.
func count(t *measure.Totals, a args, o *measure.Sample) {
	at := measure.Step{Scenario: int(a.number("scenario")), Step: int(a.number("step"))}
	in := 220
	if a.of["in"] != "" {
		in = int(a.number("in"))
	}
	t.AddBytes(o.Verb, in, 30)
	t.AddDue(o.Verb)
	switch {
	case o.Outcome == driver.Shed:
		t.Shed(o.Verb, 1)
		return
	case a.of["scenario"] != "":
		t.AddScenario(at.Scenario)
		t.AddStep(at)
		t.RecordScenario(at.Scenario, o)
		t.RecordStep(at, o, o.Due)
	default:
		t.Record(o)
	}
	if a.of["room"] == "no" && o.Start > o.Due {
		t.Waited.Record(o.Start - o.Due)
	}
	for k := range int(a.number("acks")) {
		t.Ack(o.Verb, k+1, o.End-o.Start)
	}
	r := t.Request(int(a.number("at")), o.Verb)
	if more := uint64(a.number("answers")); more > 1 {
		r.Sent, r.Answered = r.Sent+more-1, r.Answered+more-1
	}
	r.Sent++
	switch o.Outcome {
	case driver.Timeout:
		r.Timeout++
	case driver.Error:
		r.Error++
	default:
		r.Answered++
	}
}

// seconds counts n seconds of ops, which end evenly spaced: rate a second, a few more or less, rise more in each second than in the one before it, and
// dip fewer in each of the first ten. They take so long, slower longer in each second, and slow times as long in the first ten. The load begins in the
// middle of a second of the run clock, with which rows end. Its warm-up is looked for and left out.
func (g *given) seconds(a args) {
	const half, ten = int64(time.Second) / 2, 10
	n := int64(a.number("n"))
	noise := func(i int64) int64 { return (i*7919)%11 - 5 }
	rows := judge.Series{Quantiles: g.plan.QuantileNames()}
	var parts []*measure.Totals
	g.load.Origin += half
	for i := range n + 1 {
		part := measure.NewTotals(origin+half, len(g.m.Endpoints))
		ops := int64(a.number("rate")) + noise(i) + i*int64(a.number("rise")) - max(0, ten-i)*int64(a.number("dip"))
		took := a.duration("took") + noise(i)*100 + i*a.duration("slower")
		if a.of["slow"] != "" && i < ten {
			took *= int64(a.number("slow"))
		}
		for k := range ops {
			end := origin + i*int64(time.Second) + k*int64(time.Second)/ops
			if end >= origin+half && end < origin+half+n*int64(time.Second) {
				count(part, a, &measure.Sample{Verb: driver.Get, Due: end - took, Start: end - took, End: end})
			}
		}
		g.load.Merge(part)
		parts = append(parts, part)
		rows.Add(min(0.5+float64(i), float64(n)), part)
	}
	g.load.Span.Session(origin+half, origin+half+n*int64(time.Second))
	g.m.Series = rows.Rows()
	if g.m.WarmUp = judge.FindWarmUp(g.phase, g.load, g.m.Series); g.m.WarmUp.Seconds > 0 {
		g.m.Settled = measure.NewTotals(origin+half, len(g.m.Endpoints))
		for i, row := range g.m.Series {
			if row.T > g.m.WarmUp.Seconds {
				g.m.Settled.Merge(parts[i])
			}
		}
	}
}
