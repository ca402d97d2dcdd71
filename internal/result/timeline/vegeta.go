package timeline

import (
	"io"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/loadgen/loadgen/pkg/driver"
)

// resultOf makes result number seq from a sample, timed from when the op was due, or from its start. vegeta counts a code from 200 to 399 as a
// success, so ops of protocols without codes get one.
func resultOf(s *Sample, seq uint64, due bool) *vegeta.Result {
	r := &vegeta.Result{Attack: s.Phase, Seq: seq, Code: s.Code, BytesOut: uint64(max(0, s.Out)), BytesIn: uint64(max(0, s.In)), Error: s.Error, Method: s.Op}
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
	encoder := vegeta.NewEncoder
	switch form {
	case "csv":
		encoder = vegeta.NewCSVEncoder
	case "json":
		encoder = vegeta.NewJSONEncoder
	}
	write := encoder(w)
	seq := uint64(0)
	return func(s *Sample) error {
		r := resultOf(s, seq, due)
		seq++
		return write(r)
	}
}
