package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// greetings are what a new connection sends, and the words that the answers begin with.
var greetings = [...]struct{ ask, want string }{
	{"mn", "MN"},
	{"version", "VERSION"},
}

// oldest is the first version with the meta commands in their current form: in ms the size follows the key, and the reply to success is HD.
var oldest = [3]int{1, 6, 10}

var errTooOld = errors.New(`the server does not know the meta commands: it must be memcached 1.6.10 or newer, or write protocol = "text"`)

// Greet appends mn, which shows whether the server knows meta commands, and version, which shows whether in their current form.
func (codec) Greet(dst []byte) ([]byte, int) {
	for _, g := range greetings {
		dst = append(dst, g.ask...)
		dst = append(dst, "\r\n"...)
	}
	return dst, len(greetings)
}

// ParseGreeting reads the reply to the i-th command of Greet.
func (codec) ParseGreeting(b []byte, i int) (int, error) {
	n, _, err := parseGreeting(b, i)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", greetings[i].ask, err)
	}
	return n, nil
}

// parseGreeting also returns what follows the reply's first word.
func parseGreeting(b []byte, i int) (n int, rest string, err error) {
	line, n, err := readLine(b)
	if n == 0 || err != nil {
		return 0, "", err
	}
	want := greetings[i].want
	word, behind, _ := bytes.Cut(line, []byte(" "))
	rest = string(bytes.TrimSpace(behind))
	switch {
	case want == "MN" && string(line) == "ERROR":
		return 0, "", errTooOld
	case want == "VERSION" && string(line) == "ERROR": // the answer to mn has to suffice
		return n, "", nil
	case isError(word):
		return 0, "", fmt.Errorf("server says %s", printable(string(line)))
	case string(word) != want:
		return 0, "", fmt.Errorf("want %s, got %s", want, quote(b[:n]))
	case want == "VERSION" && isTooOld(rest):
		return 0, "", fmt.Errorf("the meta commands of memcached %s have an earlier form: it must be 1.6.10 or newer, or write protocol = \"text\"", printable(rest))
	}
	return n, rest, nil
}

// isTooOld recognises memcached 1.5.19 to 1.6.9, which answer mn but know an earlier form of the other meta commands. A server with another kind of
// version is not memcached itself; the answer to mn then has to suffice.
func isTooOld(version string) bool {
	var v []int
	for _, part := range strings.SplitN(version, ".", 3) {
		n, err := strconv.Atoi(part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]) // without what may follow, as in 9-beta1
		if err != nil {
			return false
		}
		v = append(v, n)
	}
	return len(v) == 3 && slices.Compare(v, oldest[:]) < 0
}

// printable returns a line with control characters escaped and its length bounded.
func printable(line string) string {
	const most = 300
	q := strconv.Quote(line[:min(len(line), most)])
	return q[1 : len(q)-1]
}
