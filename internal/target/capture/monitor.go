package capture

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// monitor reads the output of MONITOR: a line for each command, when the server begins it.
//
//	+1795824949.492071 [0 127.0.0.1:54546] "SET" "user:1" "bin\x00\"q\\\r\n\a"
//
// The number is the database, after SELECT the new one. Commands of scripts come from "lua", and a script's own command makes them again. Those of a
// transaction come with its EXEC, MULTI when it arrives.
type monitor struct {
	sieve
	lines lines
	words [][]byte
	one   [1][][]byte
}

func newMonitor(in *bufio.Reader, l *Ledger, allow map[string]bool) *monitor {
	return &monitor{sieve: newSieve(l, allow), lines: lines{in: in}}
}

// Next implements Reader.
func (m *monitor) Next(r *Record) error {
	for {
		line, long, whole, err := m.lines.next()
		switch {
		case err != nil:
			m.end()
			return err
		case long:
			m.l.leave(tooLong, 1)
		case !whole && !bytes.HasSuffix(line, []byte{'"'}):
			m.l.leave(cut, 1)
		case len(line) == 0 || string(line) == "OK" || string(line) == "+OK": // what redis-cli prints before the first command
		case m.parse(line, r) != nil:
			m.l.leave(strange, 1)
		case r.Client == "lua":
			m.l.leave("lua", 1)
		case m.kept(r):
			return nil
		}
	}
}

// errLine says that a line is none of MONITOR.
var errLine = errors.New("no line of MONITOR")

// parse reads a line. What stands before the time, such as a proxy's "[ name ] ", is ignored.
func (m *monitor) parse(line []byte, r *Record) error {
	line = bytes.TrimPrefix(line, []byte{'+'})
	if end := bytes.Index(line, []byte("] ")); bytes.HasPrefix(line, []byte("[ ")) && end > 0 {
		line = line[end+2:]
	}
	stamp, rest, ok := bytes.Cut(line, []byte(" ["))
	if !ok {
		return errLine
	}
	whole, fraction, _ := bytes.Cut(stamp, []byte{'.'})
	s, err := strconv.ParseInt(string(whole), 10, 40)
	if err != nil || len(fraction) != 6 {
		return errLine
	}
	us, err := strconv.ParseUint(string(fraction), 10, 32)
	if err != nil {
		return errLine
	}
	where, rest, ok := bytes.Cut(rest, []byte("] "))
	database, client, named := strings.Cut(string(where), " ")
	if !ok || !named {
		return errLine
	}
	if m.words, err = unquote(m.words[:0], rest); err != nil || len(m.words) == 0 {
		return errLine
	}
	m.one[0] = m.words
	*r = Record{
		At: s*1e9 + int64(us)*1e3, Tick: 1e3, Client: client, Database: database, Name: strings.ToUpper(string(m.words[0])), Commands: m.one[:],
	}
	return nil
}

// unquote appends quoted words, in which \ stands before a quote, a backslash, n, r, t, a, b, or x and two hexadecimal digits. The words overwrite the
// text that they come from.
func unquote(dst [][]byte, text []byte) ([][]byte, error) {
	for len(text) > 0 {
		if text[0] != '"' {
			return dst, errLine
		}
		out, i := text[:0], 1
		for ; i < len(text) && text[i] != '"'; i++ {
			c := text[i]
			if c == '\\' {
				n, width, err := escape(text[i+1:])
				if err != nil {
					return dst, err
				}
				c, i = n, i+width
			}
			out = append(out, c)
		}
		if i == len(text) {
			return dst, errLine
		}
		dst = append(dst, out)
		if text = text[i+1:]; len(text) > 0 {
			if text[0] != ' ' {
				return dst, errLine
			}
			text = text[1:]
		}
	}
	return dst, nil
}

// escape reads what stands behind a backslash, and how long it is.
func escape(text []byte) (c byte, width int, err error) {
	if len(text) == 0 {
		return 0, 0, errLine
	}
	switch text[0] {
	case '"', '\\':
		return text[0], 1, nil
	case 'n':
		return '\n', 1, nil
	case 'r':
		return '\r', 1, nil
	case 't':
		return '\t', 1, nil
	case 'a':
		return '\a', 1, nil
	case 'b':
		return '\b', 1, nil
	case 'x':
		if len(text) >= 3 {
			n, err := strconv.ParseUint(string(text[1:3]), 16, 8)
			if err == nil {
				return byte(n), 3, nil
			}
		}
	}
	return 0, 0, errLine
}
