package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// updates are those of a run with a setup, a closed load of a known number of ops and an open one.
func updates() []run.Update {
	return []run.Update{
		{Phase: "get", Kind: worker.Setup, Elapsed: 3 * time.Second, Doing: "getting ready"},
		{Phase: "get", Kind: worker.Setup, Elapsed: 80 * time.Millisecond, Achieved: 6250, P50: 1200 * time.Microsecond, P99: 3 * time.Millisecond, Done: 500, Total: 500, Final: true},
		{Phase: "get", Kind: worker.Load, Elapsed: time.Second, Achieved: 83_214, P50: 108 * time.Microsecond, P99: 1340 * time.Microsecond, Done: 83_214, Total: 200_000},
		{Phase: "get", Kind: worker.Load, Elapsed: 2 * time.Second, Achieved: 0, Done: 83_214, Total: 200_000, Bad: 3},
		{Phase: "get", Kind: worker.Load, Elapsed: 2500 * time.Millisecond, Achieved: 90_000, P50: 100 * time.Microsecond, P99: time.Millisecond, Done: 200_000, Total: 200_000, Bad: 3, Final: true},
		{Phase: "get", Kind: worker.Load, Elapsed: time.Second, Doing: "ending"},
		{Phase: "mixed", Kind: worker.Load, Elapsed: 12 * time.Second, Expected: 90 * time.Second, Offered: 20_000, Achieved: 19_990, P50: 108 * time.Microsecond, P99: time.Second, Done: 240_000},
		{Phase: "mixed", Kind: worker.Load, Elapsed: 13 * time.Second, Expected: 90 * time.Second, Offered: 20_000, Achieved: 13_300, P50: 108 * time.Microsecond, P99: time.Second, Done: 253_300, Awaited: []string{"w2"}},
		{Phase: "mixed", Kind: worker.Load, Elapsed: 14 * time.Second, Expected: 90 * time.Second, Offered: 20_000, Done: 253_300, Awaited: []string{"w1", "w2", "w3", "w4", "w5"}},
		{Phase: "mixed", Kind: worker.Load, Elapsed: 15 * time.Second, Expected: 90 * time.Second, Offered: 20_000, Achieved: 18_000, P50: 108 * time.Microsecond, Bad: 400, Done: 280_000}, // more than 1 % failed
		{Phase: "mixed", Kind: worker.Load, Elapsed: 91 * time.Second, Expected: 90 * time.Second, Offered: 20_000, Achieved: 19_990, P50: 108 * time.Microsecond, P99: time.Second, Done: 1_800_000, Final: true},
		{Phase: "until stopped", Kind: worker.Load, Elapsed: 3 * time.Hour, Achieved: 1, Done: 7},
	}
}

func show(p *Progress) {
	for _, u := range updates() {
		p.Show(u)
	}
	p.Clear()
}

func TestProgressLines(t *testing.T) {
	var b strings.Builder
	show(NewProgress(&b, nil, "r"))
	golden(t, "progress.txt", b.String())
}

// TestProgressJSON reads back what programs would read.
func TestProgressJSON(t *testing.T) {
	var b strings.Builder
	l := NewJSONLines(&b)
	fmt.Fprintf(l, "two\nlines \"quoted\"\n")
	show(NewProgress(l, nil, "r"))
	l.Result(&run.Run{Header: run.Header{ID: "r"}, ExitCode: 4, Verdict: run.Verdict{Validity: run.Invalid, Reasons: []string{"late"}, Codes: []reason.Code{reason.StartedLate}}}, "/runs/r")
	golden(t, "progress.jsonl", b.String())
	for line := range strings.Lines(b.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

func TestJSONLinesStopAfterError(t *testing.T) {
	w := &counter{err: errors.New("broken pipe")}
	l := NewJSONLines(w)
	_, err := l.Write([]byte("one\ntwo\n"))
	require.EqualError(t, err, "broken pipe")
	require.Equal(t, 1, w.writes)
}

func TestProgressTerminal(t *testing.T) {
	for _, wide := range []int{0, 30, 100} {
		var b strings.Builder
		show(NewProgress(&b, func() int { return wide }, "r"))
		golden(t, fmt.Sprintf("progress-%d.txt", wide), strings.NewReplacer("\x1b", "ESC", "\r", "CR").Replace(b.String()))
	}
}

// screen is what a terminal of some width shows after what was written to it.
type screen struct {
	wide int
	rows []string
	row  int
}

// Write knows the two sequences of Progress and refuses any other.
func (s *screen) Write(b []byte) (int, error) {
	text := string(b)
	for text != "" {
		var up int
		if n, _ := fmt.Sscanf(text, "\x1b[%dA\r\x1b[J", &up); n == 1 {
			s.row -= up
			if s.row < 0 {
				return 0, errors.New("above the top")
			}
			s.rows = s.rows[:s.row]
			text = text[strings.Index(text, "J")+1:]
			continue
		}
		line, rest, ok := strings.Cut(text, "\n")
		if !ok || strings.Contains(line, "\x1b") {
			return 0, fmt.Errorf("cannot show %q", text)
		}
		s.put(line)
		text = rest
	}
	return len(b), nil
}

// put shows a line, in several rows if it is too long.
func (s *screen) put(line string) {
	letters := []rune(line)
	for first := true; first || len(letters) > 0; first = false {
		n := min(s.wide, len(letters))
		s.rows = append(s.rows, string(letters[:n]))
		letters = letters[n:]
		s.row++
	}
}

// narrow breaks the rows that no longer fit, as terminals do.
func (s *screen) narrow(wide int) {
	rows := s.rows
	s.wide, s.rows, s.row = wide, nil, 0
	for _, r := range rows {
		s.put(r)
	}
}

// A terminal always shows two lines, neither of them wrapped, and nothing after Clear, even if the window changes.
func TestProgressKeepsToItsLines(t *testing.T) {
	s := &screen{wide: 120}
	s.put("$ loadgen")
	p := NewProgress(s, func() int { return s.wide }, "r")
	for i, u := range updates() {
		p.Show(u)
		require.NoError(t, p.err)
		require.Len(t, s.rows, 3)
		for _, line := range s.rows[1:] {
			require.Less(t, columns(line), s.wide)
		}
		require.True(t, strings.HasPrefix(s.rows[1], u.Phase), s.rows[1])
		s.narrow([]int{60, 25, 90}[i%3])
	}
	p.Clear()
	p.Clear()
	require.NoError(t, p.err)
	require.Equal(t, []string{"$ loadgen"}, s.rows)
}

// Updates of a step that come too fast are skipped, except the last.
func TestProgressRate(t *testing.T) {
	for name, tt := range map[string]struct {
		columns func() int
		want    int
	}{
		"terminal": {func() int { return 80 }, 10*5 + 1},
		"lines":    {nil, 10 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &counter{}
			p := NewProgress(w, tt.columns, "r")
			for i := range time.Duration(1000) {
				p.Show(run.Update{Phase: "get", Kind: worker.Load, Elapsed: i * 10 * time.Millisecond})
			}
			p.Show(run.Update{Phase: "get", Kind: worker.Load, Elapsed: 10 * time.Second, Final: true})
			require.InDelta(t, tt.want, w.writes, 1)
		})
	}
}

type counter struct {
	writes int
	err    error
}

func (c *counter) Write(b []byte) (int, error) {
	c.writes++
	return len(b), c.err
}

func TestProgressStopsAfterError(t *testing.T) {
	w := &counter{err: errors.New("broken pipe")}
	p := NewProgress(w, func() int { return 80 }, "r")
	p.Show(run.Update{Final: true})
	p.Show(run.Update{Final: true})
	p.Clear()
	require.Equal(t, 1, w.writes)
}
