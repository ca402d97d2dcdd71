package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/report/page"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// page of runs as HTML.
func pageOf(t testing.TB, all ...timeline.Source) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, page.Write(&b, all))
	return b.String()
}

// recorded is an open run of some seconds with its snapshots, a few ops in each second.
func recorded(t testing.TB, seconds, perSecond int) timeline.Source {
	t.Helper()
	return recordedAs(t, header, 3, seconds, perSecond)
}

// recordedAs is recorded with another header, and times drawn from another seed.
func recordedAs(t testing.TB, header run.Header, seed uint64, seconds, perSecond int) timeline.Source {
	t.Helper()
	p, r := samplePlan(), run.New(header, environment)
	random := rand.New(rand.NewPCG(seed, 4))
	d := timeline.NewRun(run.New(header, environment), driver.Words{})
	var sum measure.Totals
	rows := judge.Series{Quantiles: p.QuantileNames()}
	var b []byte
	for second := range int64(seconds) {
		s := simulate(1)
		s.rand, s.totals.Origin, s.totals.Digest = random, 5*ms, uint64(second)
		from := 5*ms + second*1000*ms
		for i := range int64(perSecond) {
			due := from + i*1000*ms/int64(perSecond)
			s.op(driver.Verb(i%10/9), driver.OK, 1, due, due)
		}
		s.totals.Span.Session(from, from+1000*ms)
		snapshot := measure.Snapshot{Step: 3, SeqFirst: uint64(second + 1), SeqLast: uint64(second + 1), From: from, To: from + 1000*ms, Delta: *s.totals}
		var err error
		b, err = snapshot.AppendBinary(b[:0])
		require.NoError(t, err)
		require.NoError(t, d.Add(b))
		rows.Add(float64(second+1), s.totals)
		sum.Merge(s.totals)
	}
	p.Phases[2].Open.Duration = time.Duration(seconds) * time.Second
	r.Add("mixed", judge.NewPhase(p, p.Phases[2], judge.Measured{Steps: []int{3}, Endpoints: endpoints(1), Load: &sum, Series: rows.Rows(), Generators: []measure.Generator{event}}))
	return timeline.Source{Run: r, Detail: d, Plan: []byte(`{"name":"hydra-m4"}`)}
}

// studied is an experiment of variants, the first of them the baseline, each run five times for some seconds. The i-th variant is asked for i times
// 20 a second more.
func studied(t testing.TB, seconds int, variants ...string) timeline.Source {
	t.Helper()
	x := run.NewExperiment("20261120T173430Z-hydra-m4-9b01")
	x.Plan, x.StartedAt, x.Loadgen = "hydra-m4", header.StartedAt, header.Loadgen
	x.Repeat, x.Order, x.Baseline, x.Finished, x.Seed = 5, "interleaved", variants[0], true, 1
	for i, name := range variants {
		x.Variants = append(x.Variants, run.Variant{Name: name, Values: map[string]string{"rate": fmt.Sprint(i)}, Stopped: run.StopFinished})
	}
	s := timeline.NewStudy(x)
	var runs []*run.Run
	var all []timeline.Source
	for repetition := range x.Repeat {
		for i, name := range variants {
			h := header
			h.ID, h.Experiment, h.Variant, h.Repetition = fmt.Sprintf("%s-%d-%d", header.ID, i, repetition+1), x.ID, name, repetition+1
			one := recordedAs(t, h, uint64(10*i+repetition), seconds, 60+20*i+repetition)
			x.Add(one.Run)
			runs, all = append(runs, one.Run), append(all, one)
		}
	}
	experiment.Conclude(x, runs)
	for _, one := range all {
		s.Add(one.Run, one.Detail)
	}
	return timeline.Source{Study: s, Plan: all[0].Plan}
}

// few is a run of n ops: too few for most quantiles, or for all.
func few(t testing.TB, n int) timeline.Source { return recordedAs(t, header, 3, 1, n) }

// TestPageHasTheTerminalsDigits looks up every figure of the terminal in the page.
func TestPageHasTheTerminalsDigits(t *testing.T) {
	sources := map[string]timeline.Source{
		"good": {Run: good()}, "overloaded": {Run: overloaded()}, "broken": {Run: broken()}, "unreachable": {Run: unreachable()}, "fleet": {Run: fleet()}, "observed": {Run: observed()},
		"experiment": studied(t, 2, "w2", "w1", "w3"), "pair": studied(t, 2, "a", "b"), "compared": {Study: timeline.NewStudy(compared())},
	}
	for _, n := range []int{0, 1, 2, 9} {
		sources[fmt.Sprintf("%d ops", n)] = few(t, n)
	}
	for name, s := range sources {
		t.Run(name, func(t *testing.T) {
			page := pageOf(t, s)
			words := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
			words = strings.NewReplacer("&#39;", "'", "&#34;", `"`, "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(words)
			var b strings.Builder
			require.NoError(t, Texts(&b, []timeline.Source{s}, Options{}))
			here := map[string]bool{}
			figure := regexp.MustCompile(`\b[0-9][0-9,]*(\.[0-9]+)?\b`)
			for _, f := range figure.FindAllString(words, -1) {
				here[strings.ReplaceAll(f, ",", "")] = true // tables of counts have no commas
			}
			terminal := regexp.MustCompile(`and [0-9]+ other reasons?(,| above)`).ReplaceAllString(b.String(), "") // the page has them all
			for _, f := range figure.FindAllString(terminal, -1) {
				require.True(t, here[strings.ReplaceAll(f, ",", "")], "%s of the terminal is not on the page", f)
			}
		})
	}
}

// corpus is possible names and texts from plans, servers and workers.
var corpus = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</style><script>alert(1)</script>`, `'onmouseover='alert(1)`,
	`</live-part><live-part of="now">`, `{{.}}`, "\u202eevil", `&lt;b&gt;`, "a\x00b", `javascript:alert(1)`, `</pre></details></svg>`, `]]><!--`,
}

// nasty is a run with a hostile text wherever one can come from outside.
func nasty(text string) timeline.Source {
	r := overloaded()
	ph := r.Phase["mixed"]
	r.Plan, r.ID, r.Loadgen = text, text, text
	r.PhaseOrder, r.Phase = []string{text}, map[string]*run.Phase{text: ph}
	ph.Target.Name, ph.Dataset.Name, ph.Requests[0].Endpoint = text, text, text
	ph.Errors = []run.ErrorText{{Text: text, Count: 1}}
	ph.Reasons = append(ph.Reasons, run.Reason{Text: text})
	r.Asserts[0].Name, r.Asserts[0].That, r.Asserts[0].Value = text, text, text
	r.Environment.Hostname, r.Environment.CPUModel = text, text
	r.Environment.Servers = map[string]map[string]map[string]string{text: {text: {text: text}}}
	r.Fleet = []run.Worker{{Name: text, Host: text}}
	r.Losses = []worker.Loss{{Worker: text, Why: text, Phase: text}}
	r.Verdict.Reasons = []string{text}
	observe(ph, text)
	return timeline.Source{Run: r, Plan: []byte(text)}
}

// observe gives a phase an observation with a field of the same name that went up and was missing once.
func observe(ph *run.Phase, text string) {
	how := observed().Phase["put"].Probes["redis"]
	how.Kind, how.Of, how.Errors = text, text, []run.ErrorText{{Text: text, Count: 1}}
	how.Series = slices.Concat(how.Series, how.Series)
	ys := []float64{0, 10e6, 30e6, 0, 60e6, 40e6}
	for i := range how.Series {
		how.Series[i].T, how.Series[i].Value = float64(i), map[string]*float64{text: &ys[i]}
	}
	how.Series[3].Value = map[string]*float64{text: nil}
	ph.Probes = map[string]*run.Probes{text: how}
	ph.Observe = map[string]map[string]run.Observed{text: {text: {Unit: "bytes", Counter: true, Min: &ys[0], Max: &ys[4], Last: &ys[5]}}}
	ph.Nulls["observe."+text+"."+text+".before"] = text
}

// TestObservationsBesideTheLoad: a counter's growth in each second, with a gap where it was missing.
func TestObservationsBesideTheLoad(t *testing.T) {
	s := recorded(t, 6, 100)
	observe(s.Run.Phase["mixed"], "hits")
	page := pageOf(t, s)
	for _, want := range []string{
		`aria-label="hits: hits"`, "0 s to 1 s\nhits 10.0 MB/s", "1 s to 2 s\nhits 20.0 MB/s", "2 s to 3 s\nhits is missing", "3 s to 4 s\nhits is missing",
		"4 s to 5 s\nhits 0 B/s", "ok a second, in a scale of its own", "– hits before: hits", ">60.0 MB<",
	} {
		require.Contains(t, page, want)
	}
}

// nastyStudy is an experiment with a hostile text wherever one can come from outside.
func nastyStudy(t testing.TB, text string) timeline.Source {
	s := studied(t, 5, text, "other")
	x := s.Study.Experiment
	x.Plan, x.ID, x.Loadgen, x.Order = text, text, text, text
	x.Variants[0].Values = map[string]string{text: text}
	x.Verdict.Reasons, x.ReasonRuns = []string{text, text}, []int{0, 1}
	x.Runs[0].Verdict.Reasons = []string{text}
	x.Figures[0].Finding = text
	x.Tables = append([]run.Table{{
		Title: text, Columns: []run.Column{{Name: text, Title: text}}, Notes: []string{text},
		Rows: []run.TableRow{{Name: text, Cells: []run.Cell{{Text: text}}}, {Name: text, Cells: []run.Cell{{Reason: text}}}},
	}}, x.Tables...)
	y := 1.0
	x.Charts = append(x.Charts, run.Chart{Title: text, Over: text, Unit: text, Lines: []run.ChartLine{
		{Name: text, Variant: text, X: []float64{1, 2, 3}, Y: []*float64{&y, nil, &y}}, {Name: "b", Variant: text, Reason: text},
	}})
	s.Study.Runs[1].Environment.Hostname = text
	return s
}

// TestChartsOfThePlan are on the page, whatever their X axis, with what is not drawn below them.
func TestChartsOfThePlan(t *testing.T) {
	s := studied(t, 3, "a", "b")
	x := s.Study.Experiment
	add := func(title, over, unit string, log bool, xs ...float64) {
		c := run.Chart{Title: title, Over: over, Unit: unit, Log: log}
		for _, variant := range []string{"a", "b"} {
			var ys []*float64
			for i := range xs {
				y := float64(i+1) / 1000
				ys = append(ys, &y)
			}
			c.Lines = append(c.Lines, run.ChartLine{Name: "one", Variant: variant, X: xs, Y: ys}, run.ChartLine{Name: "two", Variant: variant, Reason: "there is none of " + variant})
		}
		x.Charts = append(x.Charts, c)
	}
	add("over time", "time", "ms", false, 1, 2, 3)
	add("over ops", "ops", "/min", true, 100, 5000)
	add("over quantiles", "quantile", "us", true, 0, 0.5, 0.99)
	x.Charts = append(x.Charts, run.Chart{Title: "of nothing", Over: "time", Lines: []run.ChartLine{{Name: "one", Variant: "a", Reason: "there is none at all"}}})
	page := html.UnescapeString(pageOf(t, s))
	for _, want := range []string{
		`aria-label="over time"`, "2 s\na one 2.00 ms\nb one 2.00 ms", "after 5,000 ops\na one 0.120/min", "99 % took at most\na one 3,000 µs",
		"– a two: there is none of a", "of nothing", "– a: there is none at all", ">µs (log)<", ">ops that had ended<",
	} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, `aria-label="of nothing"`)
}

// tagsOf returns the tags of a page with the names of their attributes.
func tagsOf(page string) []string {
	values := regexp.MustCompile(`"[^"]*"`)
	var tags []string
	for _, tag := range regexp.MustCompile(`<[^<>]*>`).FindAllString(page, -1) {
		tags = append(tags, values.ReplaceAllString(tag, ""))
	}
	return tags
}

// liveOf is what a live page shows of the same run in its course.
func liveOf(t testing.TB, text string) string {
	t.Helper()
	src := nasty(text)
	src.Run.Phase[text].Op["del"] = nil // its figures are those of scenarios' steps
	all := ""
	for _, doing := range []string{"", text} {
		content, err := page.Content(&src, &run.Update{Phase: text, Awaited: []string{text}, Doing: doing, Search: &run.Seeking{}}, []worker.Status{{Name: text}})
		require.NoError(t, err)
		all += content
	}
	return all
}

// TestPageEscapes has the same elements and attributes whatever the texts are, and none of the texts unescaped.
func TestPageEscapes(t *testing.T) {
	tame := tagsOf(pageOf(t, nasty("tame")) + liveOf(t, "tame"))
	kinds := func(page string) []string { return slices.Compact(slices.Sorted(slices.Values(tagsOf(page)))) }
	tameStudy := kinds(pageOf(t, nastyStudy(t, "tame"))) // of axes, fewer have names where variants' are long
	for i, text := range corpus {
		if !servertest.Whole() && i%4 > 0 {
			continue
		}
		page := pageOf(t, nasty(text)) + liveOf(t, text)
		require.Equal(t, tame, tagsOf(page), text)
		if strings.ContainsAny(text, `<"'`) {
			require.NotContains(t, page, text)
		}
		study := nastyStudy(t, text)
		page = pageOf(t, study)
		require.Equal(t, tameStudy, kinds(page), text)
		if strings.ContainsAny(text, `<"'`) {
			require.NotContains(t, page, text)
		}
		var b strings.Builder
		require.NoError(t, Markdown(&b, []timeline.Source{nasty(text), study}))
		require.NotRegexp(t, `<`, b.String(), text)
	}
}

// TestPageNeedsNothingElse finds no address in the page.
func TestPageNeedsNothingElse(t *testing.T) {
	page := pageOf(t, recorded(t, 30, 100))
	require.NotRegexp(t, `https?:|url\(|@import|<link|\ssrc=`, page)
	require.Contains(t, page, "default-src &#39;none&#39;")
}

// TestDay is the page of a run that lasted a day: small, whatever was stored.
func TestDay(t *testing.T) {
	hours, point, words := 24, 300, "each point is 5 min"
	if !servertest.Whole() {
		hours, point, words = 3, 30, "each point is 30 s"
	}
	s := recorded(t, hours*3600, 2)
	steps := s.Detail.Phases(s.Run)["mixed"]
	require.Len(t, steps, 1)
	require.Equal(t, point, steps[0].Seconds)
	page := pageOf(t, s)
	require.Less(t, len(page), 1<<20)
	require.Contains(t, page, words)
}

// BenchmarkDay is the cost of a page of a day once its snapshots are read, and BenchmarkAdd that of each snapshot.
func BenchmarkDay(b *testing.B) {
	s := recorded(b, 86400, 20)
	b.ReportAllocs()
	for b.Loop() {
		require.NotEmpty(b, pageOf(b, s))
	}
}

func BenchmarkAdd(b *testing.B) {
	s := simulate(4)
	for i := range int64(3000) {
		s.op(driver.Get, driver.OK, 1, i*333*µs, i*333*µs)
	}
	snapshot := measure.Snapshot{SeqFirst: 1, SeqLast: 1, To: 1000 * ms, Delta: *s.totals}
	bytes, err := snapshot.AppendBinary(nil)
	require.NoError(b, err)
	d := timeline.NewRun(run.New(header, environment), driver.Words{})
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, d.Add(bytes))
	}
}

// TestDetailIsOfItsRun draws nothing from another run's snapshots.
func TestDetailIsOfItsRun(t *testing.T) {
	s := recorded(t, 30, 100)
	require.Contains(t, pageOf(t, s), "Heatmap")
	for _, spoil := range []func(*run.Phase){
		func(ph *run.Phase) { ph.Digest = "0000000000000001" },
		func(ph *run.Phase) { ph.Steps = []int{2} },
		func(ph *run.Phase) { ph.Steps = nil },
	} {
		s := recorded(t, 30, 100)
		spoil(s.Run.Phase["mixed"])
		require.NotContains(t, pageOf(t, s), "Heatmap")
	}
	require.ErrorContains(t, timeline.NewRun(s.Run, driver.Words{}).Add([]byte("no snapshot")), "read a snapshot: ")
}

// The quantiles that a plan names are columns of the CSV and lines of the chart; otherwise p50, p95 and p99 are.
func TestQuantilesOfEachSecond(t *testing.T) {
	s := recorded(t, 12, 2000)
	heads := func() string {
		var b bytes.Buffer
		require.NoError(t, CSV(&b, []timeline.Source{s}))
		head, _, _ := strings.Cut(b.String(), "\n")
		return head
	}
	chart := func() string {
		_, rest, _ := strings.Cut(pageOf(t, s), "Latency over time")
		of, _, _ := strings.Cut(rest, "</figure>")
		return of
	}
	require.Contains(t, heads(), ",response_mean,response_p50,response_p95,response_p99,cache_gets,")
	require.Regexp(t, "0 s to 1 s\nmax .*\np99 .*\np95 .*\np50 ", chart())
	series := s.Run.Phase["mixed"].Series
	for i := range series {
		known := series[i].Response
		series[i].Response.SetQuantiles([]string{"p50", "p975"}, func(_ float64, path string) *float64 { return known.Quantile(strings.TrimPrefix(path, "quantiles.")) })
	}
	require.Contains(t, heads(), ",response_mean,response_p50,response_p95,response_p975,response_p99,cache_gets,")
	require.Regexp(t, "0 s to 1 s\nmax .*\np97.5 .*\np50 ", chart())
}

// TestForms are those other than text and page.
func TestForms(t *testing.T) {
	s, pair := recorded(t, 12, 50), studied(t, 4, "a", "b")
	s.Run.Phase["mixed"].Series[0].KeysOK = 800
	var b bytes.Buffer
	require.NoError(t, CSV(&b, []timeline.Source{s}))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 13)
	require.Equal(t, []string{header.ID, "", "", "mixed", "", "1", "50", "50", "50", "50", "0", "0", "800"}, rows[1][:13])
	require.Equal(t, "100", rows[2][6], "ops that have ended")
	require.Equal(t, "600", rows[12][6])
	b.Reset()
	require.NoError(t, CSV(&b, []timeline.Source{pair}))
	rows, err = csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+2*5*4)
	require.Equal(t, []string{"b", "1", "mixed", "", "1"}, rows[1+4][1:6])
	stages := s.Run.Phase["mixed"]
	stages.Levels = []run.Level{{StartSeconds: 0}, {StartSeconds: 2.9}, {StartSeconds: 6}}
	b.Reset()
	require.NoError(t, CSV(&b, []timeline.Source{s}))
	rows, err = csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	var of []string
	for _, row := range rows[1:] {
		of = append(of, row[4])
	}
	require.Equal(t, strings.Split("1 1 2 2 2 2 3 3 3 3 3 3", " "), of, "a row belongs to the level in which it ends")
	stages.Levels = []run.Level{}

	b.Reset()
	require.NoError(t, JSON(&b, []timeline.Source{s, s, pair}))
	dec := json.NewDecoder(&b)
	for range 2 {
		var r run.Run
		require.NoError(t, dec.Decode(&r))
		require.NoError(t, r.CheckValid())
	}
	var x run.Experiment
	require.NoError(t, dec.Decode(&x))
	require.NoError(t, x.CheckValid())

	b.Reset()
	require.NoError(t, Markdown(&b, []timeline.Source{{Run: good()}, {Run: overloaded()}, {Run: levels()}}))
	golden(t, "markdown.md", b.String())
	b.Reset()
	require.NoError(t, Texts(&b, []timeline.Source{{Run: good()}, {Run: good()}}, Options{}))
	require.Equal(t, 2, strings.Count(b.String(), "reads are quick"))
	for _, write := range []func() error{
		func() error { return page.Write(failingWriter{os.ErrClosed}, []timeline.Source{s}) },
		func() error { return CSV(failingWriter{os.ErrClosed}, []timeline.Source{s}) },
		func() error { return JSON(failingWriter{os.ErrClosed}, []timeline.Source{s}) },
		func() error { return Markdown(failingWriter{os.ErrClosed}, []timeline.Source{s}) },
		func() error { return Texts(failingWriter{os.ErrClosed}, []timeline.Source{s}, Options{}) },
	} {
		require.ErrorIs(t, write(), os.ErrClosed)
	}
}

// TestPageInABrowser opens pages in a real one: nothing goes to its console, hostile texts stay texts, nothing is wider than a phone, and
// the script shows what a chart holds at the pointer.
func TestPageInABrowser(t *testing.T) {
	b, dir := servertest.Chromium(t), t.TempDir()
	open := func(name, page string, width int) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
		b.Open("file://"+path, width)
	}
	all := strings.Join(corpus, " ")
	page := pageOf(t, recorded(t, 30, 200), nasty(all), timeline.Source{Run: fleet()}, studied(t, 6, "w2", "w1"), nastyStudy(t, all))
	for _, wide := range []int{1400, 390} {
		open("page.html", page, wide)
		require.Equal(t, "true", b.Eval(`document.querySelector(".tip").hidden`), "the script has run")
		tip := func(chart string, hit int) string {
			return b.Eval(fmt.Sprintf(`(() => {
	const hit = document.querySelector(%q).querySelectorAll(".hit")[%d], box = hit.getBoundingClientRect();
	hit.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: box.x, clientY: box.y + 50}));
	return document.querySelector(".tip").textContent;
})()`, chart, hit))
		}
		require.Equal(t, "12 s to 13 s\nasked 2,000/s\nok 200/s", tip("svg.plot", 12))
		require.Regexp(t, `(?s)^w1: .*95 % CI [0-9.]+ to [0-9.]+$`, tip("svg.forest", 1))
		require.Equal(t, fmt.Sprint(wide), b.Eval(`document.documentElement.scrollWidth`), "the page is wider than its window")
		require.Empty(t, b.Console)
	}
	open("forbidden.html", strings.Replace(page, "</body>", "<script>1</script></body>", 1), 390)
	require.NotEmpty(t, b.Console, "what the policy forbids does go to the console")
}
