package postgres

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestCaptures keeps columns of the first row, by the names that the server gives them.
func TestCaptures(t *testing.T) {
	message := func(kind byte, body string) string {
		return string(kind) + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))) + body
	}
	const about = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	columns := message('T', "\x00\x03a\x00"+about+"id\x00"+about+"none\x00"+about)
	row := message('D', "\x00\x03\x00\x00\x00\x01x\x00\x00\x00\x0242\xff\xff\xff\xff")
	for _, c := range []struct{ column, replies, text, says string }{
		{"id", columns + row + message('C', "SELECT 1\x00"), "42", ""},
		{"none", columns + row + message('C', "SELECT 1\x00"), "", "ask: column none, captured as it, is NULL"},
		{"nothing", columns + row + message('C', "SELECT 1\x00"), "", "ask: column nothing, captured as it, is missing"},
		{"id", message('n', "") + message('C', "UPDATE 1\x00"), "", "ask: column id, captured as it, is missing"},
	} {
		words := &Form{Request: Request{SQL: "SELECT 1"}, Capture: map[string]string{"it": "column " + c.column}}
		s, err := compile(driver.Form{Verb: 7, Name: "ask", Words: words})
		require.NoError(t, err)
		codec := &codec{}
		codec.by[7] = s
		require.Contains(t, string(codec.AppendRequest(nil, &driver.Request{Verb: 7})), "D\x00\x00\x00\x06P\x00E")
		var reply driver.Reply
		b := message('2', "") + c.replies + message('Z', "I")
		n, err := codec.Parse([]byte(b), 7, &reply)
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		require.Equal(t, c.says, string(reply.Message))
		if c.says == "" {
			require.Equal(t, driver.Bag{{Name: "captured.it", Text: c.text}}, reply.Found.Bag)
		}
	}
	_, err := Driver{}.CheckForm(nil, driver.Form{Verb: 7, Words: &Form{Request: Request{SQL: "SELECT 1"}, Capture: map[string]string{"it": "id"}}})
	require.ErrorContains(t, err, `write "column NAME"`)
}
