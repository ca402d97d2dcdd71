package chart

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

func text(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// hostile is a possible name from elsewhere.
const hostile = `</svg><script>alert("&'")</script>`

func charts() map[string]string {
	lines := Chart{
		Name: "lines", X: Span("seconds", 10, StepOfTime(10, 5), text), Y: Linear("ops", 93, Step(93, 5), text),
		Lines: []Line{
			{Name: "ok", Class: "c0", Points: []Point{{0, 0}, {2, 90}, {4, math.NaN()}, {6, 93}, {10, 12}}},
			{Name: hostile, Class: "bad", Dots: true, Points: []Point{{0, 1}, {10, 2}}},
			{Name: "nothing", Class: "c1", Points: []Point{{0, math.NaN()}}},
		},
		Hits:  []Hit{{0, 5, "first\n" + hostile}, {5, 10, "second"}},
		Marks: []Mark{{50, hostile}},
	}
	heat := Chart{
		Name: hostile, X: Span(hostile, 3, 1, text), Y: Log("s (log)", 0.0003, 0.4, text),
		Cells: []Cell{{0, 1, 0.001, 0.002, 1}, {1, 2, 0.01, 0.02, Levels}, {2, 3, 0.001, 0.002, 1}},
	}
	curve := Chart{
		Name: "quantiles", X: Nines("share", 4, text), Y: Log("s", 1, 8, text),
		Lines: []Line{{Class: "c0", Points: []Point{{0, 1}, {0.5, 2}, {0.9, 3}, {0.99, 4}, {0.9999, 8}, {1, 8}}}},
	}
	many := Chart{Name: "many", X: Span("seconds", 10, 2, text), Y: Linear("ops", 10, 2, text)}
	for i := range 20 {
		many.Lines = append(many.Lines, Line{Name: strings.Repeat("long ", i), Class: "c0", Points: []Point{{0, float64(i)}, {10, 1}}})
	}
	forest := Forest{Name: hostile, Label: hostile, Text: text, Rows: []Ratio{
		{Name: "baseline", Class: "c0", At: 1, Lo: math.NaN(), Hi: math.NaN(), Text: "1.00"},
		{Name: hostile, Class: "c1", At: 1.4, Lo: 1.2, Hi: 1.7, Text: hostile, Hint: hostile},
		{Name: strings.Repeat("very ", 20) + "long", Class: "c1", At: 0.9, Lo: 0.7, Hi: math.Inf(1), Text: "0.900"},
		{Name: "nothing", At: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), Text: "–"},
	}}
	wild := Forest{Name: "wild", Label: "×", Text: text, Rows: []Ratio{{Name: "a", At: 250, Lo: 0.02, Hi: 1e6, Text: "250"}}}
	return map[string]string{
		"many": many.SVG(), "forest": forest.SVG(), "wild": wild.SVG(), "none": (&Forest{Text: text}).SVG(),
		"lines": lines.SVG(), "heat": heat.SVG(), "curve": curve.SVG(),
		"shares": Shares(hostile, []Share{{"a lot", "c0", 1e6}, {hostile, "bad", 1}, {"none", "c1", 0}}),
	}
}

// TestSVG compares with drawings that were checked by eye; each is well-formed and contains only what it should.
func TestSVG(t *testing.T) {
	for name, svg := range charts() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", name+".svg")
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(svg+"\n"), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), svg+"\n")
			require.NotContains(t, svg, "NaN")
			require.NotContains(t, svg, "Inf")
			d := xml.NewDecoder(strings.NewReader(svg))
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				if e, ok := token.(xml.StartElement); ok {
					require.Contains(t, []string{"svg", "line", "text", "path", "rect", "circle", "title", "g"}, e.Name.Local)
				}
			}
		})
	}
}

func TestScalesPlace(t *testing.T) {
	place := func(s Scale, v float64) float64 { return s.at(v) }
	require.InDelta(t, 0.93, place(Linear("", 93, 20, text), 93), 1e-9)
	require.InDelta(t, 1, place(Span("", 93, 20, text), 93), 1e-9)
	require.InDelta(t, 0.5, place(Nines("", 4, text), 0.99), 1e-9)
	require.InDelta(t, 1, place(Nines("", 4, text), 1), 1e-9)
	log := Log("", 0.0003, 0.4, text)
	require.InDelta(t, 0, place(log, 0.0002), 1e-9)
	require.InDelta(t, 1, place(log, 0.5), 1e-9)
	require.InDelta(t, 0, place(log, 0), 1e-9, "what no logarithm has is at the end")
	one := Log("", 0.005, 0.005, text)
	require.GreaterOrEqual(t, place(one, 0.005), 0.0)
	require.Len(t, one.ticks, 2)
}

func TestSteps(t *testing.T) {
	for _, row := range []struct {
		span       float64
		n          int
		step, time float64
	}{
		{1, 5, 0.2, 0.2}, {93, 5, 20, 30}, {60, 6, 10, 10}, {7, 6, 2, 2}, {600, 6, 100, 120}, {86400, 6, 20000, 21600}, {864000, 6, 200000, 172800},
	} {
		require.InDelta(t, row.step, Step(row.span, row.n), 1e-9, "%v", row)
		require.InDelta(t, row.time, StepOfTime(row.span, row.n), 1e-9, "%v", row)
	}
}
