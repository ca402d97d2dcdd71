package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
)

// TestErrorsThatRepeatTheirKeysAreOne has a hundred texts of one cause, each with its own key: they would leave no room for any other.
func TestErrorsThatRepeatTheirKeysAreOne(t *testing.T) {
	for _, indirect := range []bool{false, true} {
		for _, phase := range []string{"ops = { get = 1 }", "ops = { get = 1 }\nbatch = 4"} {
			t.Run(fmt.Sprintf("indirect=%t %s", indirect, phase), func(t *testing.T) {
				b := newBench(t, redisPlan(t, 1, "", phase+"\nmax_bad = 1\nclosed {\n sessions = 2\n iterations = 400\n}"), "load", time.Millisecond)
				b.indirect = indirect
				b.server(0).words = nil
				for i := range 100 {
					key := fmt.Sprintf("key:%012d", i)
					b.server(0).keys[key] = []byte("-ERR shard of '" + key + "' is full\r\n")
				}
				got := b.run(worker.Load)
				require.Positive(t, got.Errors.Total())
				for text := range got.Errors.All() {
					require.Equal(t, "ERR shard of 'key:…' is full", text)
				}
			})
		}
	}
}

func TestWhatServersRepeatIsCutOut(t *testing.T) {
	for _, c := range []struct{ prefix, said, want string }{
		{"", "ERR unknown command 'GETT', with args beginning with: '000000000017' ", "ERR unknown command 'GETT', with args beginning with: '…' "},
		{"user", "user17 is not user18", "user… is not user…"},
		{"user", "users of user1", "users of user…"},
		{"", "value aB3dE6gH9jK2mN5pQ8sT1vW4yZ7 is too large", "value … is too large"},
		{"", "MOVED 3999 127.0.0.1:6381", "MOVED 3999 127.0.0.1:6381"},
		{"", "x1234567y", "x…y"},
		{"key:", "", ""},
		{"k", "k1k22k-kk3", "k…k…k-kk…"},
		{"", "12345 123456 999999 a00000 b000000", "12345 … … a00000 b…"},
	} {
		s := said{prefix: []byte(c.prefix)}
		require.Equal(t, c.want, string(s.of([]byte(c.said))), c.said)
	}
}

// A word is letters of either case and digits, and is cut out if it has 24 of them. Other characters are kept, however many there are.
func TestWhichWordsAreCutOut(t *testing.T) {
	for _, letter := range "azAZ09@`[{~/:" {
		long := strings.Repeat(string(letter), 24)
		s := said{}
		switch {
		case letter >= '0' && letter <= '9':
			require.Equal(t, "…", string(s.of([]byte(long))))
		case strings.ContainsRune("azAZ", letter):
			require.Equal(t, "…", string(s.of([]byte(long))))
			require.Equal(t, long[1:], string(s.of([]byte(long[1:]))))
			require.Equal(t, "…", string(s.of([]byte(long[:18]+"1e2e3e"))))
		default:
			require.Equal(t, long, string(s.of([]byte(long))))
		}
	}
}

// Of a long message, the beginning is kept.
func TestLongMessagesAreCutShort(t *testing.T) {
	var s said
	message := []byte(strings.Repeat("no! ", 200))
	require.Equal(t, message[:512], s.of(message))
	require.Equal(t, message[:511], s.of(message[:511]))
}

func TestCuttingOutAllocatesNothing(t *testing.T) {
	s := said{prefix: []byte("key:")}
	message := []byte("ERR shard of 'key:000000000017' is full")
	require.Zero(t, testing.AllocsPerRun(100, func() { s.of(message) }))
}
