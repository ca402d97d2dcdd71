package detail

import (
	"encoding/csv"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
)

// result is a sample in the form of vegeta 12: the names are those of its JSON and gob forms, and the order is that of its CSV except for the code.
type result struct {
	Attack    string        `json:"attack"`
	Seq       uint64        `json:"seq"`
	Code      uint16        `json:"code"`
	Timestamp time.Time     `json:"timestamp"`
	Latency   time.Duration `json:"latency"`
	BytesOut  uint64        `json:"bytes_out"`
	BytesIn   uint64        `json:"bytes_in"`
	Error     string        `json:"error"`
	Body      []byte        `json:"body"`
	Method    string        `json:"method"`
	URL       string        `json:"url"`
	Headers   http.Header   `json:"headers"`
}

// resultOf makes result number seq from a sample, timed from when the op was due, or from its start. vegeta counts a code from 200 to 399 as a
// success, so ops of protocols without codes get one.
func resultOf(s *Sample, seq uint64, due bool) *result {
	r := &result{Attack: s.Phase, Seq: seq, Code: s.Code, BytesOut: uint64(max(0, s.Out)), BytesIn: uint64(max(0, s.In)), Error: s.Error, Method: s.Op}
	from := s.Start
	if due {
		from = s.Due
	}
	r.Timestamp, r.Latency = time.Unix(0, from).UTC(), time.Duration(s.Start-from+s.Latency)
	usual := map[string]uint16{driver.OK.String(): http.StatusOK, driver.Miss.String(): http.StatusNotFound, driver.Conflict.String(): http.StatusConflict}
	if r.Code == 0 {
		r.Code = usual[s.Outcome]
	}
	if r.Error == "" && s.Outcome != driver.OK.String() {
		r.Error = s.Outcome
	}
	return r
}

// Vegeta returns a function that writes samples to w one by one, in a form in which vegeta 12 reads results: "csv", "json" or "gob". Each sample is
// timed from when it was due, or from its start.
func Vegeta(form string, w io.Writer, due bool) func(*Sample) error {
	var write func(*result) error
	switch form {
	case "csv":
		rows := csv.NewWriter(w)
		write = func(r *result) error {
			err := rows.Write(r.row())
			rows.Flush()
			return errors.Join(err, rows.Error())
		}
	case "json":
		lines := json.NewEncoder(w)
		write = func(r *result) error { return lines.Encode(r) }
	default:
		values := gob.NewEncoder(w)
		write = func(r *result) error { return values.Encode(r) }
	}
	seq := uint64(0)
	return func(s *Sample) error {
		r := resultOf(s, seq, due)
		seq++
		return write(r)
	}
}

func (r *result) row() []string {
	return []string{
		strconv.FormatInt(r.Timestamp.UnixNano(), 10), strconv.Itoa(int(r.Code)), strconv.FormatInt(int64(r.Latency), 10), strconv.FormatUint(r.BytesOut, 10),
		strconv.FormatUint(r.BytesIn, 10), r.Error, "", r.Attack, strconv.FormatUint(r.Seq, 10), r.Method, r.URL, "",
	}
}
