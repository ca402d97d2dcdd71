package cachenode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func newMemcachedRequest(limit int) *memcachedRequest {
	r := &memcachedRequest{limit: limit}
	r.reset()
	return r
}

// parts returns the parts of a complete request.
func (r *memcachedRequest) parts(b []byte) (words []string, data string) {
	for _, s := range r.words {
		words = append(words, string(s.of(b)))
	}
	return words, string(r.data.of(b))
}

func TestMemcachedRequestByteByByte(t *testing.T) {
	long := strings.Repeat("k", maxCommandLine-5)
	tests := []struct {
		in    string
		words []string
		data  string
	}{
		{"mn\r\n", []string{"mn"}, ""},
		{"mn\n", []string{"mn"}, ""},
		{"\r\n", nil, ""},
		{"  mg   a  v \r\n", []string{"mg", "a", "v"}, ""},
		{"mg a\tb\r\r\n", []string{"mg", "a\tb\r"}, ""},
		{"mg " + long + "\r\n", []string{"mg", long}, ""},
		{"ms k 0\r\n\r\n", []string{"ms", "k", "0"}, ""},
		{"ms k 5 T0\r\na\r\nb\n\r\n", []string{"ms", "k", "5", "T0"}, "a\r\nb\n"},
		{"ms k 0000000003\n\r\n\n\r\n", []string{"ms", "k", "0000000003"}, "\r\n\n"},
		{"ms k 1000\r\n" + strings.Repeat("v", 1000) + "\r\n", []string{"ms", "k", "1000"}, strings.Repeat("v", 1000)},
		{"set k 0 0 5\r\na\r\nb\n\r\n", []string{"set", "k", "0", "0", "5"}, "a\r\nb\n"},
		{"gets " + long + long + "\r\n", []string{"gets", long + long}, ""},
	}
	for _, test := range tests {
		b := []byte(test.in)
		r := newMemcachedRequest(1000)
		for cut := range b {
			complete, err := r.parse(b[:cut:cut])
			require.NoError(t, err)
			require.False(t, complete, "%q", b[:cut])
		}
		complete, err := r.parse(append(b, "mn\r\n"...))
		require.NoError(t, err)
		require.True(t, complete)
		words, data := r.parts(b)
		require.Equal(t, test.words, words)
		require.Equal(t, test.data, data)
		require.Equal(t, len(b), r.at)
	}
}

func TestMemcachedRequestRefuses(t *testing.T) {
	const format = "CLIENT_ERROR bad command line format"
	tests := []struct{ in, want string }{
		{strings.Repeat("x", maxCommandLine), "CLIENT_ERROR line too long"},
		{strings.Repeat("x", maxCommandLine) + "\r\n", "CLIENT_ERROR line too long"},
		{"ms\r\n", format},
		{"ms k\r\n", format},
		{"ms k x\r\n", format},
		{"ms k -1\r\n", format},
		{"ms k +1\r\n", format},
		{"ms k 1.0\r\n", format},
		{"ms k 1001\r\n", "SERVER_ERROR object too large for cache"},
		{"ms k 18446744073709551617\r\n", "SERVER_ERROR object too large for cache"},
		{"ms k 1\r\nab\r\n", "CLIENT_ERROR bad data chunk"},
		{"ms k 3\r\na\r\nmn\r\n", "CLIENT_ERROR bad data chunk"},
	}
	for _, test := range tests {
		_, err := newMemcachedRequest(1000).parse([]byte(test.in))
		require.EqualError(t, err, test.want, "%.40q", test.in)
	}
}

func FuzzMemcachedRequest(f *testing.F) {
	f.Add([]byte("ms k 1\r\nv\r\n"), uint16(5))
	f.Add([]byte(" mg  k v\n"), uint16(1))
	f.Add([]byte("ms k 99999\r\n"), uint16(9))
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		whole, parts := newMemcachedRequest(1<<16), newMemcachedRequest(1<<16)
		complete, err := whole.parse(b)
		cut := min(int(at), len(b))
		completePart, errPart := parts.parse(b[:cut:cut])
		if !completePart && errPart == nil {
			completePart, errPart = parts.parse(b)
		}
		require.Equal(t, complete, completePart)
		require.Equal(t, err, errPart)
		require.LessOrEqual(t, whole.at, len(b))
		if !complete {
			return
		}
		words, data := whole.parts(b)
		wordsAgain, dataAgain := parts.parts(b)
		require.Equal(t, words, wordsAgain)
		require.Equal(t, data, dataAgain)
		again := []byte(strings.Join(words, " ") + "\r\n")
		if len(again) > maxCommandLine { // it ended in LF alone
			return
		}
		if len(words) > 0 && words[0] == "ms" {
			again = fmt.Appendf(again, "%s\r\n", data)
		}
		second := newMemcachedRequest(1 << 16)
		ok, err := second.parse(again)
		require.NoError(t, err)
		require.True(t, ok)
		wordsAgain, dataAgain = second.parts(again)
		require.Equal(t, words, wordsAgain)
		require.Equal(t, data, dataAgain)
	})
}

func BenchmarkMemcachedRequest(b *testing.B) {
	in := []byte("mg key:000000000001 v\r\n")
	r := newMemcachedRequest(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		r.reset()
		if complete, err := r.parse(in); !complete || err != nil {
			b.Fatal(complete, err)
		}
	}
}
