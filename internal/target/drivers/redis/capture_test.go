package redis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestCaptures keeps a reply, or an element of one, and sends what a scenario remembers.
func TestCaptures(t *testing.T) {
	for _, c := range []struct{ selector, reply, text, says string }{
		{"reply", "$3\r\nabc\r\n", "abc", ""},
		{"reply", ":-7\r\n", "-7", ""},
		{"reply", "+OK\r\n", "OK", ""},
		{"reply[1]", "*3\r\n*2\r\n:1\r\n:2\r\n$1\r\nx\r\n:3\r\n", "x", ""},
		{"reply[0]", "*1\r\n*1\r\n:1\r\n", "", "ask: reply[0], captured as id, is a list"},
		{"reply[3]", "*3\r\n:1\r\n:2\r\n:3\r\n", "", "ask: reply[3], captured as id, is missing"},
		{"reply[0]", "*1\r\n$-1\r\n", "", "ask: reply[0], captured as id, is missing: it is null"},
		{"reply[0]", "$1\r\nx\r\n", "", "ask: reply[0], captured as id, is missing"},
		{"reply", "$0\r\n\r\n", "", "ask: reply, captured as id, is empty"},
	} {
		words := &Form{Request: Request{Command: []string{"ASK", "{captured.was}:{secret.A}"}}, Capture: map[string]string{"id": c.selector}}
		codec, err := Driver{}.NewCodec(driver.Link{
			Config: &Config{Protocol: 2}, Forms: []driver.Form{{Verb: 7, Name: "ask", Words: words}}, Secrets: func(string) (string, error) { return "s", nil },
		})
		require.NoError(t, err)
		require.Equal(t, "*2\r\n$3\r\nASK\r\n$4\r\na\r:s\r\n", string(codec.AppendRequest(nil, &driver.Request{Verb: 7, Bag: &driver.Bag{{Name: "captured.was", Text: "a\r"}}})))
		for cut := range len(c.reply) {
			n, err := codec.Parse([]byte(c.reply[:cut]), 7, new(driver.Reply))
			require.NoError(t, err)
			require.Zero(t, n)
		}
		var reply driver.Reply
		n, err := codec.Parse([]byte(c.reply), 7, &reply)
		require.NoError(t, err)
		require.Equal(t, len(c.reply), n)
		require.Equal(t, c.says, string(reply.Message))
		if c.says == "" {
			require.Equal(t, driver.Bag{{Name: "captured.id", Text: c.text}}, reply.Found.Bag)
		}
	}
	for selector, says := range map[string]string{"reply[01]": `write "reply"`, "json $.a": `write "reply"`} {
		_, err := Driver{}.CheckForm(&Config{}, driver.Form{Verb: 7, Words: &Form{Request: Request{Command: []string{"GET"}}, Capture: map[string]string{"id": selector}}})
		require.ErrorContains(t, err, says)
	}
}
