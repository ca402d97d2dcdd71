package judge

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

const (
	mostRows  = 4096      // the most rows of a load. Beyond that, each pair of neighbours is joined, and later rows are twice as long.
	leastRows = 16        // the most rows of a load in a run of very many loads
	runRows   = 24 * 1024 // the rows of all loads of a run: 12 MB of its result, which must be read back

	rowQuantiles = 10 // quantiles take as much room as all else in a row
)

// RowsEach returns how many rows each load may have in a run of that many loads, whose plan names that many quantiles.
func RowsEach(loads, quantiles int) int {
	all := runRows * rowQuantiles / (rowQuantiles + quantiles)
	return max(leastRows, min(mostRows, all/max(loads, 1))) &^ 1 // even, rows are joined in pairs
}

// Series turns counts per interval into rows. However long the load, it takes a few megabytes and keeps at most 4,096 rows: of one second each for
// the first 68 minutes, and of two, four, … in longer loads. Joined rows merge their counts, so quantiles are those of all ops of a row. The zero
// Series has no rows.
type Series struct {
	Most      int      // the most rows, from RowsEach; 0 for as many as a load can have
	Quantiles []string // quantiles that rows have besides the usual ones

	rows measure.Halved[timedRow]
	last hist.Hist // response times of the last row
	buf  []byte    // scratch for encoding histograms; rows keep an exact-size copy
}

// timedRow is a row with the data behind its quantiles.
type timedRow struct {
	run.Row
	responses []byte // histogram of response times, in its binary form; not yet made for the last row
}

// Add adds the interval that ends t seconds after the step's origin. delta is what was counted in it, merged over all workers; Add does not keep it.
// An interval that ends with the one before is added to that.
func (s *Series) Add(t float64, delta *measure.Totals) {
	if n := len(s.rows.Cells); n == 0 || t > s.rows.Cells[n-1].T {
		if s.rows.Opens() {
			s.begin()
		}
		s.rows.Count()
	}
	row := &s.rows.Cells[len(s.rows.Cells)-1].Row
	row.T = t
	for _, o := range present(delta.Ops[:]) {
		row.Due += o.Due
		row.Sent += o.Due - o.Outcomes[driver.Shed]
		row.OK += o.Outcomes[driver.OK]
		row.Miss += o.Outcomes[driver.Miss]
		row.Bad += o.Outcomes[driver.Conflict] + o.Outcomes[driver.QuorumFailed] + o.Outcomes[driver.Timeout] + o.Outcomes[driver.Error]
		row.KeysOK += o.Keys.Outcomes[driver.OK]
		row.InFlight += o.InFlight
		s.last.Merge(&o.Response[measure.ClassOK])
		s.last.Merge(&o.Response[measure.ClassMiss])
	}
	if c := &delta.Cache; row.Cache != nil || *c != (measure.Cache{}) {
		row.Cache = joined(row.Cache, &run.RowCache{Gets: c.Gets, Hits: c.Hits, Loads: c.Loads, LoadSeconds: seconds(int64(c.LoadTime)), Evictions: c.Evictions})
		row.Cache.Entries += c.Entries
		row.Cache.Bytes += c.Bytes
	}
	if v := delta.Versions; v != nil {
		row.Compared, row.Stale = row.Compared+v.Staleness.Gets, row.Stale+v.Staleness.Stale
	}
	s.respond(row, &s.last)
}

// joined adds the counts of b to a. It leaves Entries and Bytes, which are those at the end of a row, to the caller.
func joined(a, b *run.RowCache) *run.RowCache {
	switch {
	case a == nil:
		return b
	case b != nil:
		a.Gets += b.Gets
		a.Hits += b.Hits
		a.Loads += b.Loads
		a.LoadSeconds += b.LoadSeconds
		a.Evictions += b.Evictions
	}
	return a
}

// begin starts a row, once the last one is full.
func (s *Series) begin() {
	var next timedRow
	if n := len(s.rows.Cells); n > 0 {
		full := &s.rows.Cells[n-1]
		next.InFlight = full.InFlight
		if full.Cache != nil {
			next.Cache = &run.RowCache{Entries: full.Cache.Entries, Bytes: full.Cache.Bytes}
		}
		full.responses = s.encode(&s.last)
		if n == cmp.Or(s.Most, mostRows) {
			s.halve()
		}
	}
	if n := len(s.rows.Cells); n == cap(s.rows.Cells) { // append would grow in small steps, and leave garbage of several times the final size
		s.rows.Cells = slices.Grow(s.rows.Cells, max(n, leastRows))
	}
	s.rows.Cells = append(s.rows.Cells, next)
	s.last.Reset()
}

// halve joins each pair of neighbours.
func (s *Series) halve() {
	var sum, second hist.Hist // shared by all rows: a histogram for each would take megabytes
	s.rows.Halve(func(into, from *timedRow) {
		into.T, into.InFlight = from.T, from.InFlight
		into.Due += from.Due
		into.Sent += from.Sent
		into.OK += from.OK
		into.Miss += from.Miss
		into.Bad += from.Bad
		into.KeysOK += from.KeysOK
		into.Compared += from.Compared
		into.Stale += from.Stale
		if into.Cache = joined(into.Cache, from.Cache); from.Cache != nil {
			into.Cache.Entries, into.Cache.Bytes = from.Cache.Entries, from.Cache.Bytes
		}
		decode(&sum, into.responses)
		decode(&second, from.responses)
		sum.Merge(&second)
		s.respond(&into.Row, &sum)
		into.responses, *from = s.encode(&sum), timedRow{}
	})
}

// encode returns the binary form of a row's responses.
func (s *Series) encode(h *hist.Hist) []byte {
	b, err := h.AppendBinary(s.buf[:0])
	if err != nil {
		panic(err) // no histogram causes an error
	}
	s.buf = b
	return bytes.Clone(b)
}

func decode(h *hist.Hist, b []byte) {
	if _, err := h.Decode(b); err != nil {
		panic(err) // encode made the bytes
	}
}

// Rows returns a copy of the rows so far.
func (s *Series) Rows() []run.Row {
	rows := make([]run.Row, len(s.rows.Cells))
	for i := range rows {
		rows[i] = s.rows.Cells[i].Row
		if c := rows[i].Cache; c != nil {
			rows[i].Cache = new(*c)
		}
	}
	return rows
}

// respond describes response times; h holds those of ok and miss.
func (s *Series) respond(r *run.Row, h *hist.Hist) {
	t := measure.Times{Answered: *h, Failed: r.Bad + r.Due - r.Sent}
	r.Response = run.RowResponse{}
	if t.Failed == 0 && h.Count() > 0 {
		r.Response.Mean = number(seconds(h.Mean()))
	}
	r.Response.SetQuantiles(s.Quantiles, func(share float64, _ string) *float64 { return quantileOf(&t, share) })
}

// at returns the response times of the row that ends at t.
func (s *Series) at(t float64) (h hist.Hist) {
	for i := range s.rows.Cells {
		switch row := &s.rows.Cells[i]; {
		case row.T != t:
		case i == len(s.rows.Cells)-1:
			h.Merge(&s.last)
		default:
			decode(&h, row.responses)
		}
	}
	return h
}
