package memcached

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGreet(t *testing.T) {
	b, replies := codec{}.Greet([]byte("before"))
	require.Equal(t, "beforemn\r\nversion\r\n", string(b))
	require.Equal(t, 2, replies)
}

func TestParseGreeting(t *testing.T) {
	for i, lines := range [][]string{
		{"MN\r\n"},
		{
			"VERSION 1.6.10\r\n", "VERSION 1.6.18\r\n", "VERSION 1.7.0\r\n", "VERSION 2.0.0-rc1\r\n",
			"VERSION 0-loadgen\r\n", "VERSION 1.6\r\n", "VERSION\r\n", "VERSION mcrouter 41.0.0\r\n",
		},
	} {
		for _, line := range lines {
			for cut := range line {
				n, err := codec{}.ParseGreeting([]byte(line[:cut]), i)
				require.NoError(t, err, "%q", line[:cut])
				require.Zero(t, n)
			}
			n, err := codec{}.ParseGreeting([]byte(line+"HD\r\n"), i)
			require.NoError(t, err, "%q", line)
			require.Equal(t, len(line), n)
		}
	}
}

// TestGreetingRefuses shows what a user reads when the load cannot begin.
func TestGreetingRefuses(t *testing.T) {
	const earlier = ` have an earlier form: it must be 1.6.10 or newer, or write protocol = "text"`
	tests := []struct {
		name  string
		reply int
		in    string
		want  string
	}{
		{"too old for meta commands", 0, "ERROR\r\n", `mn: the server does not know the meta commands: it must be memcached 1.6.10 or newer, or write protocol = "text"`},
		{"first with meta commands", 1, "VERSION 1.5.19\r\n", "version: the meta commands of memcached 1.5.19" + earlier},
		{"last with the earlier form", 1, "VERSION 1.6.9\r\n", "version: the meta commands of memcached 1.6.9" + earlier},
		{"build of a distribution", 1, "VERSION 1.6.9-1ubuntu\r\n", "version: the meta commands of memcached 1.6.9-1ubuntu" + earlier},
		{"too many connections", 0, "ERROR Too many open connections\r\n", "mn: server says ERROR Too many open connections"},
		{"wants a password", 0, "CLIENT_ERROR unauthenticated\r\n", "mn: server says CLIENT_ERROR unauthenticated"},
		{"control characters", 1, "SERVER_ERROR \x1b[2J\r\n", `version: server says SERVER_ERROR \x1b[2J`},
		{"long words", 1, "SERVER_ERROR " + strings.Repeat("x", 1000) + "\r\n", "version: server says SERVER_ERROR " + strings.Repeat("x", 287)},
		{"another word", 0, "EN\r\n", `mn: want MN, got "EN\r\n"`},
		{"web server", 0, "HTTP/1.1 400 Bad Request\r\nServer: x\r\n", `mn: want MN, got "HTTP/1.1 400 Bad Request\r\n"`},
		{"redis", 0, "-ERR unknown command 'mn', with args beginning with: \r\n", `mn: not the memcached protocol: got "-ERR unknown command 'mn', with args beg"…`},
		{"mail server", 0, "220 mail ESMTP\r\n", `mn: not the memcached protocol: got "220 mail ESMTP\r\n"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, err := codec{}.ParseGreeting([]byte(test.in), test.reply)
			require.EqualError(t, err, test.want)
			require.Zero(t, n)
		})
	}
}

func FuzzParseGreeting(f *testing.F) {
	f.Add([]byte("MN\r\n"), uint8(0), uint16(2))
	f.Add([]byte("VERSION 1.6.18\r\n"), uint8(1), uint16(9))
	f.Add([]byte("VERSION 1.6.999999999999999999999\r\n"), uint8(1), uint16(9))
	f.Add([]byte("ERROR\r\n"), uint8(0), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, reply uint8, at uint16) {
		i := int(reply) % len(greetings)
		n, err := codec{}.ParseGreeting(b, i)
		require.LessOrEqual(t, n, len(b))
		if err != nil {
			require.Zero(t, n)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		taken, err := codec{}.ParseGreeting(b[:min(int(at), len(b))], i)
		require.NoError(t, err, "a beginning of what is no error")
		require.Contains(t, []int{0, n}, taken)
	})
}
