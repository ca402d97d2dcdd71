package report

import (
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/loadgen/loadgen/internal/result/run"
)

// JSONLines writes the course of runs as JSON for programs, one object a line. An object has one of these forms:
//
//	{"progress": {…}}                  the progress of a step: the fields of progressLine
//	{"result": {…}}                    a run has ended: the fields of resultLine
//	{"message": "text"}                a message for people
//
// After a failed write it writes no more. Several goroutines may use it.
type JSONLines struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewJSONLines returns JSONLines that write to w.
func NewJSONLines(w io.Writer) *JSONLines { return &JSONLines{w: w} }

// progressLine says how far a step has got. Times are in seconds, rates per second in the last interval; null means unknown.
type progressLine struct {
	Run      string       `json:"run"`
	Phase    string       `json:"phase"`
	Kind     string       `json:"kind"`
	Level    *int         `json:"level"`
	Levels   *int         `json:"levels"`
	Elapsed  float64      `json:"elapsed"`
	Expected *float64     `json:"expected"`
	Offered  *float64     `json:"offered"`
	Achieved float64      `json:"achieved"`
	Best     *float64     `json:"best,omitempty"` // of a search: the median of what is known of the largest rate that holds
	Left     *float64     `json:"left,omitempty"` // of its budget
	P50      *float64     `json:"p50"`            // response of ok and miss
	P99      *float64     `json:"p99"`
	Done     uint64       `json:"done"` // ops so far
	Total    *uint64      `json:"total"`
	Bad      uint64       `json:"bad"` // of done
	Final    bool         `json:"final"`
	Awaited  []string     `json:"awaited"`  // workers that have not reported the last interval
	Validity run.Validity `json:"validity"` // of the phases that have ended
}

// resultLine says how a run ended, and where to find the rest.
type resultLine struct {
	Run      string      `json:"run"`
	Dir      string      `json:"dir"`
	ExitCode int         `json:"exit_code"`
	Verdict  run.Verdict `json:"verdict"`
}

// Write writes each line of p as a message.
func (l *JSONLines) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		l.object("message", strings.TrimSuffix(line, "\n"))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(p), l.err
}

// Result writes how a run ended whose directory is dir.
func (l *JSONLines) Result(r *run.Run, dir string) {
	l.object("result", resultLine{Run: r.ID, Dir: dir, ExitCode: r.ExitCode, Verdict: r.Verdict})
}

func (l *JSONLines) progress(id string, u run.Update) {
	if u.Doing != "" {
		l.object("message", u.Phase+": "+u.Doing)
		return
	}
	var best, left *float64
	if u.Search != nil {
		seconds := u.Search.Left.Seconds()
		best, left = unlessZero(u.Search.Rate), &seconds
	}
	l.object("progress", progressLine{
		Best: best, Left: left,
		Run: id, Phase: u.Phase, Kind: string(u.Kind), Level: unlessZero(u.Level), Levels: unlessZero(u.Levels),
		Elapsed: u.Elapsed.Seconds(), Expected: unlessZero(u.Expected.Seconds()),
		Offered: unlessZero(u.Offered), Achieved: u.Achieved, P50: unlessZero(u.P50.Seconds()), P99: unlessZero(u.P99.Seconds()),
		Done: u.Done, Total: unlessZero(u.Total), Bad: u.Bad, Final: u.Final, Awaited: append([]string{}, u.Awaited...), Validity: u.Verdict.Validity,
	})
}

// unlessZero returns nil if v is 0, which means unknown.
func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func (l *JSONLines) object(name string, v any) {
	b, err := json.Marshal(map[string]any{name: v})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	if l.err == nil {
		_, l.err = l.w.Write(append(b, '\n'))
	}
}
