package cachenode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wire returns a request's bytes.
func wire(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

func newRequest(limit int) *respRequest {
	r := &respRequest{limit: limit}
	r.reset()
	return r
}

func arguments(r *respRequest, b []byte) []string {
	args := []string{}
	for _, s := range r.args {
		args = append(args, string(s.of(b)))
	}
	return args
}

func TestRequestByteByByte(t *testing.T) {
	tests := [][]string{
		{},
		{"PING"},
		{""},
		{"GET", "key"},
		{"SET", "a\r\nb", "*1\r\n$4\r\nPING\r\n"},
		{"SET", strings.Repeat("k", 100), strings.Repeat("v", 1000)},
		strings.Split(strings.Repeat("x", maxArgs), ""),
	}
	for _, args := range tests {
		b := []byte(wire(args...))
		r := newRequest(1 << 20)
		for cut := range b {
			complete, err := r.parse(b[:cut:cut])
			require.NoError(t, err)
			require.False(t, complete, "%q", b[:cut])
		}
		complete, err := r.parse(append(b, "*1\r\n"...))
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, args, arguments(r, b))
		require.Equal(t, len(b), r.at)
	}
}

func TestRequestRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"*\r\n", "invalid multibulk length"},
		{"*x\r\n", "invalid multibulk length"},
		{"*-1\r\n", "invalid multibulk length"},
		{"*1\n", "invalid multibulk length"},
		{"*1\rx", "invalid multibulk length"},
		{"*1025\r\n", "invalid multibulk length"},
		{"*99999999999", "invalid multibulk length"},
		{"*1\r\n:1\r\n", `expected '$', got ":"`},
		{"*1\r\n$\r\n", "invalid bulk length"},
		{"*1\r\n$-1\r\n", "invalid bulk length"},
		{"*1\r\n$1001\r\n", "invalid bulk length"},
		{"*2\r\n$1000\r\n" + strings.Repeat("x", 1000) + "\r\n$1\r\n", "invalid bulk length"},
		{"*1\r\n$9999999999\r\n", "invalid bulk length"},
		{"*1\r\n$18446744073709551617\r\n", "invalid bulk length"},
		{"*1\r\n$1\r\nab\r\n", "bulk string without CR LF at its end"},
	}
	for _, test := range tests {
		r := newRequest(1000)
		_, err := r.parse([]byte(test.in))
		require.EqualError(t, err, "Protocol error: "+test.want, "%.40q", test.in)
		require.NotContains(t, err.Error(), "\n")
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(wire("SET", "k", "v")), uint16(5))
	f.Add([]byte("*0\r\n"), uint16(1))
	f.Add([]byte("*2\r\n$0\r\n\r\n$99999\r\n"), uint16(9))
	f.Add([]byte("SET \"a \\x41\\n\" 'b \\'' c\"d\"\r\n"), uint16(7))
	f.Add([]byte("PING 'x\n"), uint16(5))
	f.Add([]byte("Host: there\n"), uint16(5))
	f.Fuzz(func(t *testing.T, in []byte, at uint16) {
		b := slices.Clone(in) // which whole may write over
		whole, parts := newRequest(1<<16), newRequest(1<<16)
		complete, err := whole.parse(b)
		cut := min(int(at), len(in))
		completePart, errPart := parts.parse(in[:cut:cut])
		if !completePart && errPart == nil {
			completePart, errPart = parts.parse(in)
		}
		require.Equal(t, complete, completePart)
		require.Equal(t, err, errPart)
		require.LessOrEqual(t, whole.at, len(b))
		if complete {
			require.Equal(t, arguments(whole, b), arguments(parts, in))
			require.Equal(t, whole.at, parts.at)
			require.Equal(t, in[whole.at:], b[whole.at:], "what comes after the request")
			again := []byte(wire(arguments(whole, b)...))
			second := newRequest(1 << 16)
			ok, err := second.parse(again)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, arguments(whole, b), arguments(second, again))
		}
	})
}

func BenchmarkRequest(b *testing.B) {
	in := []byte(wire("GET", "key:000000000001"))
	r := newRequest(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		r.reset()
		if complete, err := r.parse(in); !complete || err != nil {
			b.Fatal(complete, err)
		}
	}
}
