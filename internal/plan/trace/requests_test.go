package trace

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// requests returns a trace of three requests of two clients.
func requests(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Names: []string{"get", "hget"}, Clients: 2})
	require.NoError(t, err)
	require.NoError(t, w.Write(7, 0, 1, []byte("HGET a\r\n")))
	require.NoError(t, w.Write(7, 1, 0, []byte{0}))
	require.NoError(t, w.Write(9, 0, 1, []byte("HGET b\r\n")))
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestWholeRequests(t *testing.T) {
	text := requests(t)
	r, err := NewReader(bytes.NewReader(text), Requests, true)
	require.NoError(t, err)
	require.ErrorContains(t, r.Named(driver.Words{}), `op "hget", which the plan does not have`)
	require.NoError(t, r.Named(driver.NewWords(map[string]bool{"hget": false})))
	hget, _ := driver.NewWords(map[string]bool{"hget": false}).Verb("hget")
	for range 2 {
		var got []string
		var rec Record
		for _, err = r.Next(&rec); err == nil; _, err = r.Next(&rec) {
			got = append(got, fmt.Sprintf("%d %d %d %t %q", rec.At, rec.Client, rec.Line, rec.Verb == hget, rec.Key))
		}
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, []string{`0 0 1 true "HGET a\r\n"`, `0 1 2 false "\x00"`, `2 0 3 true "HGET b\r\n"`}, got)
		require.NoError(t, r.Reset(bytes.NewReader(text)))
	}
	f, err := Read(bytes.NewReader(text), Requests, true)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"get": 1, "hget": 2}, f.Ops)
	require.EqualValues(t, 2, f.Span)
}

func TestDamagedTracesOfRequests(t *testing.T) {
	text := requests(t)
	for n := range text {
		_, err := Read(bytes.NewReader(text[:n]), Requests, true)
		require.Error(t, err, "cut off after %d bytes", n)
	}
	for head, want := range map[string]string{
		"":                    "1:1: its header: ",
		`{"form":"csv"}`:      `its header has form "csv" where "requests" should be`,
		`{"form":"requests"}`: "version 0 of the form",
		`{"form":"requests",` + `"version":1,"names":["A"]}`: "an op named \"A\"",
	} {
		_, err := Read(bytes.NewReader([]byte(head+"\n")), Requests, true)
		require.ErrorContains(t, err, want)
	}
}
