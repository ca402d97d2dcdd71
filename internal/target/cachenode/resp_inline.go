package cachenode

import (
	"bytes"
	"encoding/hex"
)

// maxInline bounds the line of an inline request, without its LF.
const maxInline = 64 << 10

// inline reads a request as people type it: a line of words, split as Redis does. It overwrites a complete line, in which the words then are without
// their quotes.
func (r *respRequest) inline(b []byte) (complete bool, err error) {
	line := b[:min(len(b), maxInline+1)]
	end := bytes.IndexByte(line[r.scanned:], '\n')
	if end >= 0 {
		line = line[:r.scanned+end]
	}
	switch {
	case bytes.IndexByte(line[r.scanned:], 0) >= 0:
		return false, protocolError("NUL in an inline request")
	case len(line) > maxInline:
		return false, protocolError("too big inline request")
	case end < 0:
		r.scanned = len(line)
		return false, nil
	}
	if err := r.split(line); err != nil {
		return false, err
	}
	if len(r.args) > 0 && isHTTP(r.args[0].of(b)) {
		return false, protocolError("this is no HTTP server")
	}
	r.at = len(line) + 1
	return true, nil
}

// isHTTP recognises the beginning of lines that a browser sends, after which a web page may have chosen the rest: commands, for example.
func isHTTP(word []byte) bool { return sameWord(word, "post") || sameWord(word, "host:") }

// split splits a line into words.
func (r *respRequest) split(line []byte) error {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return nil
		}
		if len(r.args) == maxArgs {
			return protocolError("too many words in an inline request")
		}
		word, next, ok := unquote(line, i)
		if !ok {
			return protocolError("unbalanced quotes in request")
		}
		r.args = append(r.args, word)
		i = next
	}
}

// unquote moves the word that begins at i over itself, without its quotes, and returns its place and where the line goes on.
func unquote(line []byte, i int) (word span, next int, ok bool) {
	to := i
	word.from = i
	for i < len(line) {
		switch c := line[i]; c {
		case ' ', '\t', '\r':
			word.to = to
			return word, i, true
		case '"', '\'':
			word.to, next, ok = unquoteRest(line, to, i)
			return word, next, ok
		default:
			line[to] = c
			to++
			i++
		}
	}
	word.to = to
	return word, i, true
}

// unquoteRest writes to line[to:] what is in the quotes that open at i. The closing quote must end the word, so another word may not follow at once.
func unquoteRest(line []byte, to, i int) (end, next int, ok bool) {
	quote := line[i]
	for i++; i < len(line); to++ {
		if line[i] == quote {
			i++
			return to, i, i == len(line) || isSpace(line[i])
		}
		c, size := unescape(line[i:], quote)
		line[to] = c
		i += size
	}
	return 0, 0, false
}

// unescape returns the byte that b begins with, and the length of its escape sequence.
func unescape(b []byte, quote byte) (c byte, size int) {
	switch {
	case b[0] != '\\' || len(b) == 1:
		return b[0], 1
	case quote == '\'':
		if b[1] == '\'' {
			return '\'', 2
		}
		return '\\', 1
	case b[1] == 'x' && len(b) >= 4:
		var code [1]byte
		if _, err := hex.Decode(code[:], b[2:4]); err == nil {
			return code[0], 4
		}
	}
	if i := bytes.IndexByte([]byte("nrtba"), b[1]); i >= 0 {
		return "\n\r\t\b\a"[i], 2
	}
	return b[1], 2
}

// isSpace is C's isspace.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
