package judge

import (
	"bytes"
	"cmp"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

const (
	mostRows  = 4096      // of a load. When there are more, every two neighbours are joined, and later ones are twice as long.
	leastRows = 16        // likewise, in a run of very many loads
	runRows   = 24 * 1024 // of all loads of a run: 12 MB of its result, which is to be read again
)

// RowsEach returns how many rows each load of a run may have when it has so many loads.
func RowsEach(loads int) int {
	return max(leastRows, min(mostRows, runRows/max(loads, 1))) &^ 1 // they are joined by twos
}

// Series makes rows of what was counted interval by interval. However long the load, it takes a few megabytes and keeps at most 4,096 rows: of a
// second each for the first 68 minutes, and of two, four, … in a load that is longer. Rows are joined by what was counted in them, so
// quantiles are those of all ops of a row. The zero Series has no rows.
type Series struct {
	Most int // rows, as RowsEach returns it; 0: as many as a load can have

	rows      []run.Row
	responses [][]byte  // of each row but the last: histogram of response, in its binary form
	last      hist.Hist // the same of the last row
	buf       []byte    // that a row's histogram is encoded in, to be kept in no more room than it takes
	length    int       // intervals in a row
	filled    int       // in the last one
}

// Add takes in the interval that ends t seconds after the step's origin. delta is what was counted in it, merged over all workers; nothing of
// it is kept. One that ends with the one before is added to that.
func (s *Series) Add(t float64, delta *measure.Totals) {
	s.length = max(s.length, 1)
	if n := len(s.rows); n == 0 || t > s.rows[n-1].T {
		if n == 0 || s.filled == s.length {
			s.begin()
		}
		s.filled++
	}
	row := &s.rows[len(s.rows)-1]
	row.T = t
	for _, o := range delta.Ops {
		if o == nil {
			continue
		}
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
	respond(row, &s.last)
}

// begin begins a row, after the last one is full.
func (s *Series) begin() {
	var row run.Row
	if n := len(s.rows); n > 0 {
		row.InFlight = s.rows[n-1].InFlight
		s.keep(&s.last)
		if n == cmp.Or(s.Most, mostRows) {
			s.halve()
		}
	}
	s.rows = append(s.rows, row)
	s.last.Reset()
	s.filled = 0
}

// keep appends the responses of a row.
func (s *Series) keep(h *hist.Hist) {
	b, err := h.AppendBinary(s.buf[:0])
	if err != nil {
		panic(err) // of a histogram that nobody can make
	}
	s.buf = b
	s.responses = append(s.responses, bytes.Clone(b))
}

// halve joins every two neighbours.
func (s *Series) halve() {
	rows, responses := s.rows, s.responses
	s.rows, s.responses = nil, nil
	var sum, second hist.Hist // one for all: those of each row would be megabytes
	for i := 0; i+1 < len(rows); i += 2 {
		row, first := rows[i+1], &rows[i]
		row.Due += first.Due
		row.Sent += first.Sent
		row.OK += first.OK
		row.Miss += first.Miss
		row.Bad += first.Bad
		row.KeysOK += first.KeysOK
		decode(&sum, responses[i])
		decode(&second, responses[i+1])
		sum.Merge(&second)
		respond(&row, &sum)
		s.rows = append(s.rows, row)
		s.keep(&sum)
	}
	s.length *= 2
}

func decode(h *hist.Hist, b []byte) {
	if _, err := h.Decode(b); err != nil {
		panic(err) // they are what keep made
	}
}

// Rows returns the rows so far. They are the Series', and change with the next Add.
func (s *Series) Rows() []run.Row { return s.rows }

// respond describes response times, of which those of ok and miss are h.
func respond(r *run.Row, h *hist.Hist) {
	t := measure.Times{Answered: *h, Failed: r.Bad + r.Due - r.Sent}
	r.Response = run.Row{}.Response
	if t.Failed == 0 && h.Count() > 0 {
		r.Response.Mean = number(h.Mean() / 1e9)
	}
	r.Response.P50, r.Response.P99 = quantileOf(&t, 500), quantileOf(&t, 990)
}
