package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// The elements of JUnit's XML. An error is a question without an answer: figures that are invalid, or something that could not be decided.
type (
	testSuites struct {
		XMLName xml.Name `xml:"testsuites"`
		tally
		Suites []*testSuite `xml:"testsuite"`
	}
	testSuite struct {
		tally
		Skipped   int        `xml:"skipped,attr"`
		Timestamp string     `xml:"timestamp,attr"`
		Cases     []testCase `xml:"testcase"`
	}
	tally struct {
		Name     string  `xml:"name,attr"`
		Tests    int     `xml:"tests,attr"`
		Failures int     `xml:"failures,attr"`
		Errors   int     `xml:"errors,attr"`
		Time     float64 `xml:"time,attr"` // seconds, rounded
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    float64  `xml:"time,attr"`
		Error   *problem `xml:"error"`
		Failure *problem `xml:"failure"`
		Out     string   `xml:"system-out,omitempty"`
	}
	problem struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
	}
)

// JUnit writes a case for each phase's validity, for what a search was to find, for each assert and for the gate and the runs of an experiment.
func JUnit(w io.Writer, all []timeline.Source) error {
	b, err := xml.MarshalIndent(casesOf(all), "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return written(w, "report", xml.Header+string(b)+"\n")
}

const (
	mostNoted = 10          // annotations of a kind that GitHub shows of a step
	suspect   = "suspect: " // beginning of a case's output if its figures are
)

// GitHub writes the cases that did not pass, and a count of all, as commands that GitHub shows beside a change:
// https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
func GitHub(w io.Writer, all []timeline.Source) error {
	var b strings.Builder
	s, of := casesOf(all), map[string]int{}
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	note := func(kind, title, text string) {
		if of[kind]++; of[kind] < mostNoted {
			fmt.Fprintf(&b, "::%s title=%s::%s\n", kind, property.Replace(title), message.Replace(text))
		}
	}
	for _, suite := range s.Suites {
		for _, c := range suite.Cases {
			doubt, doubted := strings.CutPrefix(c.Out, suspect)
			switch title := c.Class + ": " + c.Name; {
			case c.Error != nil:
				note("error", title, "cannot be told: "+c.Error.Message)
			case c.Failure != nil:
				note("error", title, c.Failure.Message)
			case doubted:
				note("warning", title, doubt)
			}
		}
	}
	note("notice", s.Name, fmt.Sprintf("%s: %d failed, %d cannot be told", quantity.Count(s.Tests, "case"), s.Failures, s.Errors))
	for kind, n := range of {
		if n >= mostNoted {
			fmt.Fprintf(&b, "::%s::and %s: loadgen report shows all\n", kind, quantity.Count(n-mostNoted+1, "more case"))
		}
	}
	return written(w, "report", b.String())
}

// casesOf makes the cases of runs and experiments. Names are unique: some readers take the second of a class and a name for the first.
func casesOf(all []timeline.Source) *testSuites {
	s, seen := &testSuites{}, map[[2]string]int{}
	for _, source := range all {
		if source.Study != nil {
			s.experiment(source.Study.Experiment)
		} else {
			s.run(source.Run)
		}
	}
	for _, suite := range s.Suites {
		for i := range suite.Cases {
			c := &suite.Cases[i]
			key := [2]string{c.Class, c.Name}
			if seen[key]++; seen[key] > 1 {
				c.Name = fmt.Sprintf("%s (%d)", c.Name, seen[key])
			}
			suite.Tests++
			if c.Failure != nil {
				suite.Failures++
			}
			if c.Error != nil {
				suite.Errors++
			}
		}
		s.Tests, s.Failures, s.Errors, s.Time = s.Tests+suite.Tests, s.Failures+suite.Failures, s.Errors+suite.Errors, tenth(s.Time+suite.Time)
	}
	return s
}

func tenth(seconds float64) float64 { return math.Round(seconds*10) / 10 }

// begin adds a suite of a plan.
func (s *testSuites) begin(plan, name string, began time.Time, seconds float64) *testSuite {
	s.Name = quantity.Plain(plan)
	suite := &testSuite{tally: tally{Name: quantity.Plain(cmp.Or(name, plan)), Time: tenth(seconds)}, Timestamp: began.UTC().Format("2006-01-02T15:04:05Z")}
	s.Suites = append(s.Suites, suite)
	return suite
}

// add adds a case: one that passes, or whose problem is a failure or, if is begins with an exclamation mark, an error.
func (t *testSuite) add(class, name string, seconds float64, is string, texts ...string) {
	c, text := testCase{Class: quantity.Plain(class), Name: quantity.Plain(name), Time: tenth(seconds)}, quantity.Plain(strings.Join(texts, "; "))
	switch untold, error := strings.CutPrefix(is, "!"); {
	case error:
		c.Error = &problem{untold, text}
	case is == suspect:
		c.Out = suspect + text
	case is != "":
		c.Failure = &problem{is, text}
	default:
		c.Out = text
	}
	t.Cases = append(t.Cases, c)
}

// run adds a suite for each phase. The run's own cases stand in the last of them.
func (s *testSuites) run(r *run.Run) {
	var suite *testSuite
	for _, name := range r.PhaseOrder {
		ph, is := r.Phase[name], ""
		switch {
		case ph.Validity == run.Invalid, ph.Validity == run.Suspect && r.Strict:
			is = "!" + string(ph.Validity)
		case ph.Validity == run.Suspect:
			is = suspect
		}
		suite = s.begin(r.Plan, name, r.StartedAt, ph.Seconds)
		suite.add(r.Plan+"."+name, "figures are valid", ph.Seconds, is, words.Texts(ph.Reasons)...)
		for _, op := range slices.Sorted(maps.Keys(ph.Op)) {
			for _, check := range slices.Sorted(maps.Keys(ph.Op[op].Checks)) {
				is, text := "", ""
				if failed := ph.Op[op].Checks[check].Failed; failed > 0 {
					is, text = "check", fmt.Sprintf("%s of %s ops failed it first", quantity.Thousands(failed), quantity.Thousands(ph.Op[op].Due))
				}
				suite.add(r.Plan+"."+name, op+": "+check, 0, is, text)
			}
		}
		if ph.Search == nil {
			continue
		}
		switch untold := slices.ContainsFunc(ph.Reasons, func(why run.Reason) bool { return why.Code == reason.CannotTell }); {
		case ph.Search.Rate != nil:
			is = ""
		case untold || ph.Search.End == "":
			is = "!cannot_tell"
		default:
			is = "limit"
		}
		for _, o := range ph.Search.Objectives {
			suite.add(r.Plan+"."+name, "a rate holds "+strings.TrimSpace(o.Op+" "+o.Quantile)+" ≤ "+quantity.Duration(o.LimitSeconds), 0, is, words.Found(ph)[0])
		}
	}
	if suite == nil {
		suite = s.begin(r.Plan, "", r.StartedAt, r.Seconds)
	}
	if is := r.Verdict.Completeness; is != run.Complete && is != run.Capped {
		suite.add(r.Plan, "the run is complete", 0, "!"+string(is), words.Ends(r)...)
	}
	for _, a := range r.Asserts {
		switch name := "assert: " + a.Name; {
		case a.OK == nil:
			suite.add(r.Plan, name, 0, "!undecided", a.That+": "+a.Reason)
		case !*a.OK:
			suite.add(r.Plan, name, 0, "assert", a.That+": "+a.Value)
		default:
			suite.add(r.Plan, name, 0, "")
		}
	}
}

// experiment adds a suite for an experiment: a case for its gate, and one for each run.
func (s *testSuites) experiment(x *run.Experiment) {
	suite := s.begin(x.Plan, "", x.StartedAt, x.Seconds)
	if g := x.Gate; g != nil {
		is := map[run.Decision]string{run.GateFailed: "gate", run.GatePassed: ""}
		if _, decided := is[g.Decision]; !decided {
			is[g.Decision] = "!cannot_tell"
		}
		suite.add(x.Plan, strings.Join(strings.Fields("gate: "+g.Phase+" "+g.Op+" "+g.Metric), " "), 0, is[g.Decision], g.Text)
	}
	if !x.Finished || x.Verdict.Completeness == run.Aborted {
		suite.add(x.Plan, "the experiment is complete", 0, "!aborted", x.Own()...)
	}
	for _, r := range x.Runs {
		v, is := r.Verdict, ""
		switch {
		case v.Completeness != run.Complete && v.Completeness != run.Capped && r.Stopped != run.StopCap:
			is = "!" + string(v.Completeness)
		case r.ExitCode == exit.Invalid && (x.Gate == nil || v.Miscounted()):
			is = "!invalid"
		case v.Assertions == run.Fail:
			is = "assert"
		case v.Assertions == run.Undecided, slices.Contains(v.Codes, reason.CannotTell):
			is = "!undecided"
		case v.Validity != run.Valid:
			is = suspect
		}
		suite.add(x.Plan+"."+r.Variant, fmt.Sprintf("repetition %d", r.Repetition), r.Seconds, is, v.Reasons...)
	}
}
