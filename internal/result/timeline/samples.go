package timeline

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// sampleColumns are the columns of a file of samples. Times are nanoseconds since 1970. The latency counts from the start, so the response time, from
// when the op was due, is start − due + latency. Unknown values are empty.
var sampleColumns = []string{"phase", "op", "due_unix_ns", "start_unix_ns", "latency_ns", "outcome", "code", "bytes_in", "bytes_out", "error"}

// Sample is one op of a load, as in a file of samples.
type Sample struct {
	Phase, Op  string
	Due, Start int64 // nanoseconds since 1970
	Latency    int64 // from the start, nanoseconds
	Outcome    string
	Code       uint16 // 0 if unknown
	In, Out    int64  // bytes; negative if unknown
	Error      string
}

// AppendSamples appends the file of samples of a run that has ended. records calls its argument for each snapshot record. It appends nothing if no
// phase has samples. Each phase's samples are ordered by start.
func AppendSamples(dst []byte, r *run.Run, words driver.Words, records func(f func(worker, record []byte) error) error) ([]byte, error) {
	sets := make([]measure.Snapshot, len(r.PhaseOrder)) // only the snapshots' samples are used
	var snap measure.Snapshot
	err := records(func(worker, record []byte) error {
		if len(worker) == 0 {
			return nil
		}
		if _, err := snap.Decode(record); err != nil {
			return err
		}
		i := slices.IndexFunc(r.PhaseOrder, func(name string) bool { return slices.Contains(r.Phase[name].Steps, snap.Step) })
		if i >= 0 {
			sets[i].Samples.Merge(&snap.Samples)
		}
		return nil
	})
	if err != nil {
		return dst, fmt.Errorf("gather samples: %w", err)
	}
	b := bytes.NewBuffer(dst)
	w := NewSampleWriter(b)
	for i, name := range r.PhaseOrder {
		for _, op := range sets[i].Samples.Ops() {
			one := Sample{
				Phase: name, Op: words.Name(op.Verb), Due: op.Due, Start: op.Start, Latency: op.End - op.Start, Outcome: op.Outcome.String(), Code: uint16(op.Code),
				In: op.In, Out: op.Out, Error: op.Error,
			}
			if err := w.Write(&one); err != nil {
				return dst, err
			}
		}
	}
	err = w.Flush()
	return b.Bytes(), err
}

// SampleWriter writes a file of samples.
type SampleWriter struct {
	rows  *csv.Writer
	begun bool
}

// NewSampleWriter returns a SampleWriter that writes to w.
func NewSampleWriter(w io.Writer) *SampleWriter { return &SampleWriter{rows: csv.NewWriter(w)} }

// Write writes a sample, preceded by the column names if it is the first.
func (w *SampleWriter) Write(s *Sample) error {
	if !w.begun {
		w.begun = true
		if err := w.rows.Write(sampleColumns); err != nil {
			return err
		}
	}
	known := func(n, least int64) string {
		if n < least {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	return w.rows.Write([]string{
		s.Phase, s.Op, strconv.FormatInt(s.Due, 10), strconv.FormatInt(s.Start, 10), strconv.FormatInt(s.Latency, 10),
		s.Outcome, known(int64(s.Code), 1), known(s.In, 0), known(s.Out, 0), s.Error,
	})
}

// Flush passes on what Write has buffered. It returns the first error of Write or Flush.
func (w *SampleWriter) Flush() error {
	w.rows.Flush()
	return w.rows.Error()
}

// maxSampleLine bounds a line of a file of samples, which may be untrusted.
const maxSampleLine = 4 << 10

// ReadSamples calls f with each sample of a file.
func ReadSamples(r io.Reader, f func(*Sample) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, maxSampleLine), maxSampleLine)
	n := 0
	for lines.Scan() {
		n++
		row, err := csv.NewReader(strings.NewReader(lines.Text())).Read()
		switch {
		case err != nil:
			return fmt.Errorf("line %d: %w", n, err)
		case n == 1 && !slices.Equal(row, sampleColumns):
			return fmt.Errorf("line 1 names other columns than %s: it is not a file of samples, or of another version", strings.Join(sampleColumns, ","))
		case n == 1:
			continue
		}
		s, err := sampleOf(row)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := f(s); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("line %d: more than %d bytes", n+1, maxSampleLine)
	} else if err != nil {
		return err
	}
	return nil
}

// sampleOf reads a row.
func sampleOf(row []string) (*Sample, error) {
	if len(row) != len(sampleColumns) {
		return nil, fmt.Errorf("%d fields, want %d", len(row), len(sampleColumns))
	}
	var wrong error
	number := func(i, bits int, unknown int64) int64 {
		if row[i] == "" && unknown <= 0 {
			return unknown
		}
		n, err := strconv.ParseUint(row[i], 10, bits)
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("%s: %w", sampleColumns[i], err)
		}
		return int64(n)
	}
	for i, text := range row {
		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return nil, fmt.Errorf("%s has a control character", sampleColumns[i])
		}
	}
	s := &Sample{Phase: row[0], Op: row[1], Outcome: row[5], Error: row[9]}
	const needed = 1
	s.Due, s.Start, s.Latency = number(2, 63, needed), number(3, 63, needed), number(4, 63, needed)
	s.Code, s.In, s.Out = uint16(number(6, 16, 0)), number(7, 63, -1), number(8, 63, -1)
	if wrong == nil && s.Due > s.Start {
		wrong = errors.New("it starts before it is due")
	}
	return s, wrong
}
