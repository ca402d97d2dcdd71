package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	// maxLine bounds a line, terminator included: memcached's own limit for a command. Its replies are under 400 bytes.
	maxLine = 2048
	// maxValue bounds an item: the upper limit of memcached's own option -I.
	maxValue = 1 << 30
	// maxQuote is how much of an unexpected reply an error shows.
	maxQuote = 40
)

// readLine returns the line at the front of b without its CR LF, and the bytes taken, 0 if it is incomplete. Every line from a server begins with a
// word in capitals, so the first byte exposes most other protocols.
func readLine(b []byte) (line []byte, n int, err error) {
	if len(b) == 0 {
		return nil, 0, nil
	}
	if b[0] < 'A' || b[0] > 'Z' {
		return nil, 0, fmt.Errorf("not the memcached protocol: got %s", quote(b))
	}
	within := b[:min(len(b), maxLine)]
	i := bytes.IndexByte(within, '\n')
	switch {
	case i < 0 && len(within) == maxLine:
		return nil, 0, fmt.Errorf("line does not end within %d bytes: got %s", maxLine, quote(b))
	case i < 0:
		return nil, 0, nil
	case b[i-1] != '\r':
		return nil, 0, fmt.Errorf("line does not end in CR LF: got %s", quote(b[:i+1]))
	}
	return b[: i-1 : i-1], i + 1, nil
}

// firstWord returns the text before the first space.
func firstWord(line []byte) []byte {
	if i := bytes.IndexByte(line, ' '); i >= 0 {
		return line[:i]
	}
	return line
}

// isError reports whether a line that begins with the word says that the command was not carried out.
func isError(word []byte) bool {
	switch string(word) {
	case "ERROR", "CLIENT_ERROR", "SERVER_ERROR":
		return true
	}
	return false
}

// told returns the words of an error, with what to do about it if that is known.
func told(line []byte) []byte {
	if says, known := remedies[string(line)]; known {
		return says
	}
	return line
}

// remedies are what is said instead of a server's own words: the same, and what to do about it.
var remedies = map[string][]byte{
	"SERVER_ERROR object too large for cache":   []byte("SERVER_ERROR object too large for cache: start the server with a larger -I, or put smaller values"),
	"SERVER_ERROR out of memory storing object": []byte("SERVER_ERROR out of memory storing object: start the server with more memory (-m), or put fewer or smaller values"),
}

// readValue reads a value into reply: b begins with the n bytes of its line, "VA", the value's size and perhaps flags.
func readValue(b, line []byte, n int, reply *driver.Reply) (int, error) {
	size, err := readSize(line)
	if err != nil {
		return 0, fmt.Errorf("%w: got %s", err, quote(b[:n]))
	}
	return takeValue(b, n, size, reply)
}

// takeValue reads a value of size bytes, which follows the n bytes of its line, into reply.
func takeValue(b []byte, n, size int, reply *driver.Reply) (int, error) {
	if size > maxValue {
		return 0, fmt.Errorf("value of %d bytes is beyond the limit of %d", size, maxValue)
	}
	end := n + size
	if len(b) < end+2 {
		return 0, nil
	}
	if b[end] != '\r' || b[end+1] != '\n' {
		return 0, fmt.Errorf("value of %d bytes goes on after its end: got %s", size, quote(b[end:]))
	}
	reply.Outcome, reply.Value = driver.OK, b[n:end:end]
	return end + 2, nil
}

// skimValues skips up to most values with their lines, and returns how many and their bytes. A value with the same line as the previous one has the
// same length.
func skimValues(b []byte, most int) (n, took int) {
	var reply driver.Reply
	for n < most {
		line, head, err := readLine(b[took:])
		if err != nil || string(firstWord(line)) != "VA" {
			break
		}
		size, err := readValue(b[took:], line, head, &reply)
		if err != nil || size == 0 {
			break
		}
		first := b[took : took+head]
		n++
		took += size
		for n < most && took+size <= len(b) {
			next := b[took : took+size]
			if string(next[:head]) != string(first) || next[size-2] != '\r' || next[size-1] != '\n' {
				break
			}
			n++
			took += size
		}
	}
	return n, took
}

// readSize reads the decimal after "VA ". It takes at most 18 digits, so it cannot overflow.
func readSize(line []byte) (size int, err error) {
	const first, mostDigits = len("VA "), 18
	at := first
	for ; at < len(line) && line[at]-'0' <= 9 && at-first < mostDigits; at++ {
		size = size*10 + int(line[at]-'0')
	}
	if at <= first || at < len(line) && line[at] != ' ' {
		return 0, errors.New("not a size")
	}
	return size, nil
}

// quote shows the beginning of b in an error.
func quote(b []byte) string {
	if len(b) > maxQuote {
		return strconv.Quote(string(b[:maxQuote])) + "…"
	}
	return strconv.Quote(string(b))
}
