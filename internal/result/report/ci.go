package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

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
		Name    string   `xml:"name,attr"`
		tally
		Suites []*testSuite `xml:"testsuite"`
	}
	testSuite struct {
		Name string `xml:"name,attr"`
		tally
		Skipped   int        `xml:"skipped,attr"`
		Timestamp string     `xml:"timestamp,attr"`
		Cases     []testCase `xml:"testcase"`
	}
	tally struct {
		Tests    int     `xml:"tests,attr"`
		Failures int     `xml:"failures,attr"`
		Errors   int     `xml:"errors,attr"`
		Time     seconds `xml:"time,attr"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    seconds  `xml:"time,attr"`
		Error   *problem `xml:"error"`
		Failure *problem `xml:"failure"`
		Out     string   `xml:"system-out,omitempty"`
	}
	problem struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
	}
	seconds float64
)

// MarshalText implements [encoding.TextMarshaler]: readers of JUnit take no exponents.
func (s seconds) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%.1f", float64(s)), nil }

// JUnit writes a case for each phase's validity, for what a search was to find, for each assert and for the gate and the runs of an experiment.
func JUnit(w io.Writer, all []timeline.Source) error {
	b, err := xml.MarshalIndent(casesOf(all), "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return written(w, "report", xml.Header+string(b)+"\n")
}

// suspect is how the output of a case begins whose figures are suspect.
const suspect = "suspect: "

// mostNoted is how many annotations of a kind GitHub shows of a step.
const mostNoted = 10

// GitHub writes the cases that did not pass, and a count of all, as commands that GitHub shows beside a change:
// https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
func GitHub(w io.Writer, all []timeline.Source) error {
	var b strings.Builder
	s := casesOf(all)
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	note := func(kind, title, text string) {
		fmt.Fprintf(&b, "::%s title=%s::%s\n", kind, property.Replace(title), message.Replace(text))
	}
	notes := map[string][][2]string{} // titles and texts by kind
	for _, suite := range s.Suites {
		for _, c := range suite.Cases {
			kind, text := "error", ""
			switch doubt, doubted := strings.CutPrefix(c.Out, suspect); {
			case c.Error != nil:
				text = "cannot be told: " + c.Error.Message
			case c.Failure != nil:
				text = c.Failure.Message
			case doubted:
				kind, text = "warning", doubt
			default:
				continue
			}
			notes[kind] = append(notes[kind], [2]string{c.Class + ": " + c.Name, text})
		}
	}
	for _, kind := range []string{"error", "warning"} {
		for i, n := range notes[kind] {
			if more := len(notes[kind]) - i; i == mostNoted-1 && more > 1 {
				note(kind, s.Name, "and "+quantity.Count(more, "more case")+": loadgen report shows all")
				break
			}
			note(kind, n[0], n[1])
		}
	}
	note("notice", s.Name, fmt.Sprintf("%s: %d failed, %d cannot be told", quantity.Count(s.Tests, "case"), s.Failures, s.Errors))
	return written(w, "report", b.String())
}

// casesOf makes the cases of runs and experiments. Names are unique: some readers take the second of a class and a name for the first.
func casesOf(all []timeline.Source) *testSuites {
	s := &testSuites{Name: "loadgen"}
	for _, source := range all {
		if source.Study != nil {
			s.experiment(source.Study.Experiment)
		} else {
			s.run(source.Run)
		}
	}
	seen := map[string]int{}
	for _, suite := range s.Suites {
		for i := range suite.Cases {
			c := &suite.Cases[i]
			key := c.Class + "\n" + c.Name
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
		s.Tests, s.Failures, s.Errors, s.Time = s.Tests+suite.Tests, s.Failures+suite.Failures, s.Errors+suite.Errors, s.Time+suite.Time
	}
	return s
}

// run adds a suite for each phase. The run's own cases stand in the last of them.
func (s *testSuites) run(r *run.Run) {
	s.Name = quantity.Plain(r.Plan)
	var suite *testSuite
	begin := func(name string, lasts float64) {
		suite = &testSuite{Name: quantity.Plain(name), tally: tally{Time: seconds(lasts)}, Timestamp: r.StartedAt.UTC().Format("2006-01-02T15:04:05Z")}
		s.Suites = append(s.Suites, suite)
	}
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		begin(name, ph.Seconds)
		c := suite.add(r.Plan+"."+name, "figures are valid")
		c.Time = suite.Time
		var reasons []string
		for _, why := range ph.Reasons {
			reasons = append(reasons, why.Text)
		}
		switch why := quantity.Plain(strings.Join(reasons, "; ")); {
		case ph.Validity == run.Invalid, ph.Validity == run.Suspect && r.Strict:
			c.Error = &problem{string(ph.Validity), why}
		case ph.Validity == run.Suspect:
			c.Out = suspect + why
		}
		if ph.Search != nil {
			suite.search(r.Plan+"."+name, ph)
		}
	}
	if suite == nil {
		begin(r.Plan, r.Seconds)
	}
	if is := r.Verdict.Completeness; is != run.Complete && is != run.Capped {
		suite.add(r.Plan, "the run is complete").Error = &problem{string(is), quantity.Plain(strings.Join(words.Ends(r), "; "))}
	}
	for _, a := range r.Asserts {
		switch c := suite.add(r.Plan, "assert: "+a.Name); {
		case a.OK == nil:
			c.Error = &problem{"undecided", quantity.Plain(a.That + ": " + a.Reason)}
		case !*a.OK:
			c.Failure = &problem{"assert", quantity.Plain(a.That + ": " + a.Value)}
		}
	}
}

// add adds a case that passes. The result is valid until the next add.
func (t *testSuite) add(class, name string) *testCase {
	t.Cases = append(t.Cases, testCase{Class: quantity.Plain(class), Name: quantity.Plain(name)})
	return &t.Cases[len(t.Cases)-1]
}

// search adds a case for each limit of a search's objective.
func (t *testSuite) search(class string, ph *run.Phase) {
	untold := slices.ContainsFunc(ph.Reasons, func(why run.Reason) bool { return why.Code == reason.CannotTell })
	for _, o := range ph.Search.Objectives {
		c := t.add(class, "a rate holds "+strings.TrimSpace(o.Op+" "+o.Quantile)+" ≤ "+quantity.Duration(o.LimitSeconds))
		switch answer := quantity.Plain(words.Found(ph)[0]); {
		case ph.Search.Rate != nil:
			c.Out = answer
		case untold || ph.Search.End == "":
			c.Error = &problem{"cannot_tell", answer}
		default:
			c.Failure = &problem{"limit", answer}
		}
	}
}

// experiment adds a suite for an experiment: a case for its gate, and one for each run.
func (s *testSuites) experiment(x *run.Experiment) {
	s.Name = quantity.Plain(x.Plan)
	suite := &testSuite{Name: s.Name, tally: tally{Time: seconds(x.Seconds)}, Timestamp: x.StartedAt.UTC().Format("2006-01-02T15:04:05Z")}
	s.Suites = append(s.Suites, suite)
	if g := x.Gate; g != nil {
		c, text := suite.add(x.Plan, strings.Join(strings.Fields("gate: "+g.Phase+" "+g.Op+" "+g.Metric), " ")), quantity.Plain(g.Text)
		switch g.Decision {
		case run.GateFailed:
			c.Failure = &problem{"gate", text}
		case run.GatePassed:
			c.Out = text
		default:
			c.Error = &problem{"cannot_tell", text}
		}
	}
	if own := x.Own(); !x.Finished || x.Verdict.Completeness == run.Aborted {
		suite.add(x.Plan, "the experiment is complete").Error = &problem{"aborted", quantity.Plain(strings.Join(own, "; "))}
	}
	for i := range x.Runs {
		r := &x.Runs[i]
		c, is, text := suite.add(x.Plan+"."+r.Variant, fmt.Sprintf("repetition %d", r.Repetition)), r.Verdict, quantity.Plain(strings.Join(r.Verdict.Reasons, "; "))
		c.Time = seconds(r.Seconds)
		switch counts := x.Gate == nil || is.Miscounted(); {
		case is.Completeness != run.Complete && is.Completeness != run.Capped && r.Stopped != run.StopCap:
			c.Error = &problem{string(is.Completeness), text}
		case r.ExitCode == exit.Invalid && counts:
			c.Error = &problem{"invalid", text}
		case is.Assertions == run.Fail:
			c.Failure = &problem{"assert", text}
		case is.Assertions == run.Undecided, slices.Contains(is.Codes, reason.CannotTell):
			c.Error = &problem{"undecided", text}
		case is.Validity != run.Valid:
			c.Out = suspect + text
		}
	}
}
