package page

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// Frame returns the page that shows a run in progress, in a browser: the browser fetches its content, from package live's feed at the path stream, and
// again as it changes. policy belongs in the head of the response (Content-Security-Policy).
func Frame(title string) (text, policy string, err error) {
	v, err := newView("page.js", "live.js")
	if err != nil {
		return "", "", err
	}
	v.Live, v.Title, v.Words = true, title, wordsOf(nil)
	v.Policy += "; connect-src 'self'"
	text, err = filled("page.html", v)
	return text, v.Policy + "; frame-ancestors 'none'", err
}

// Content returns what the page of package live's feed shows of a run in progress, in parts. src has no run before the first load has begun.
func Content(src *timeline.Source, u *run.Update, workers []worker.Status) (string, error) {
	v := liveView{Now: newNowView(src.Run, u)}
	if src.Run != nil {
		v.Run = newRunView(src, "r1", true)
		slices.Reverse(v.Run.Phases) // the one in progress comes first
	}
	for _, w := range workers {
		v.Workers = append(v.Workers, newWorkerView(&w))
	}
	return filled("live.html", v)
}

// Ended returns what it shows of a run that has ended: its report.
func Ended(src *timeline.Source) (string, error) {
	return filled("live.html", liveView{Run: newRunView(src, "r1", false)})
}

type liveView struct {
	Now     *nowView
	Run     *runView
	Workers []workerView
}

// nowView is the step in progress.
type nowView struct {
	Step, Time     string
	Share          float64
	Known          bool // Share is
	Doing, Awaited string
	Tiles          []tile
}

func newNowView(r *run.Run, u *run.Update) *nowView {
	v := &nowView{Step: words.StepOf(u), Time: words.TimeOf(u), Doing: u.Doing, Awaited: strings.Join(u.Awaited, ", ")}
	if u.Doing != "" {
		return v
	}
	v.Share, v.Known = words.DoneOf(u)
	add := func(name, value string) { v.Tiles = append(v.Tiles, tile{Name: name, Value: value}) }
	if s := u.Search; s != nil {
		add("limit so far", words.Limit(s))
		add("left of the search", words.Clock(s.Left))
	}
	if u.Offered > 0 {
		add("offered now", quantity.SI(u.Offered)+"/s")
	}
	add("ended now", quantity.SI(u.Achieved)+"/s")
	if u.P50 > 0 || u.P99 > 0 {
		add("p50 now", quantity.Duration(u.P50.Seconds()))
		add("p99 now", quantity.Duration(u.P99.Seconds()))
	}
	if r != nil && r.Phase[u.Phase] != nil {
		left := int64(0)
		for _, o := range r.Phase[u.Phase].Op {
			if o != nil { // an op of several targets has no figures of its own
				left += o.InFlight
			}
		}
		add("in flight", quantity.Thousands(left))
	}
	add("ended in all", quantity.Thousands(u.Done))
	add("of them bad", quantity.Thousands(u.Bad))
	return v
}

type workerView struct {
	Name  string
	Cells []string
}

func newWorkerView(w *worker.Status) workerView {
	is, known := "up", func(seconds float64) string {
		if seconds == 0 {
			return "–"
		}
		return quantity.Duration(seconds)
	}
	if !w.Up {
		is = "LOST or gone"
	}
	return workerView{w.Name, []string{is, known(w.Silent.Seconds()), known(w.CPU.Seconds()), known(w.Uncertainty.Seconds())}}
}
