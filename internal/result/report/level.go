package report

import (
	"math"
	"strings"

	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// barWidth is the width of a curve's longest bar.
const barWidth = 7

// levels adds a table of the levels: the curve of rate against latency.
func (p *printer) levels(ph *run.Phase) {
	if len(ph.Levels) == 0 {
		return
	}
	heads := words.LevelHeads(ph)
	line := func(label string, cells words.LevelCells, bar, word string) {
		text := "  " + left(label, 9)
		for i, cell := range cells {
			if heads[i] != "p99.9" || p.roomy(8) {
				text += right(" "+cell, [...]int{10, 11, 9, 9, 9, 9, 8}[i])
			}
		}
		if p.roomy(8) {
			text += "  " + left(bar, barWidth)
		}
		p.line("%s %s", text, word)
	}
	p.line("")
	line("levels", heads, "", "")
	rows := words.Levels(ph)
	c := curveOf(rows)
	for i := range rows {
		row := &rows[i]
		if row.More && ph.Closed() {
			row.Cells[0] = ""
		} else if row.More {
			row.Cells[0], row.Cells[1], row.Cells[len(row.Cells)-1], row.Word = "", "", "", ""
		}
		line("  "+row.Op, row.Cells, c.bar(row.P99), row.Word)
	}
}

// curve scales latencies to bars, logarithmically.
type curve struct{ least, most float64 }

func curveOf(rows []words.Level) curve {
	c := curve{math.Inf(1), 0}
	for i := range rows {
		if p99 := rows[i].P99; p99 != nil && *p99 > 0 {
			c.least, c.most = min(c.least, *p99), max(c.most, *p99)
		}
	}
	return c
}

func (c curve) bar(p99 *float64) string {
	if p99 == nil || c.most <= c.least {
		return ""
	}
	share := math.Log(max(*p99, c.least)/c.least) / math.Log(c.most/c.least)
	return strings.Repeat("█", 1+int(math.Round(share*(barWidth-1))))
}
