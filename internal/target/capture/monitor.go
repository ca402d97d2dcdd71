package capture

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// monitor reads a line of the output of MONITOR, which tells a command when the server begins it.
//
//	+1795824949.492071 [0 127.0.0.1:54546] "SET" "user:1" "bin\x00\"q\\\r\n\a"
//
// The number is the database, after SELECT the new one. Commands of scripts come from "lua", and a script's own command makes them again. Those of a
// transaction come with its EXEC, MULTI when it arrives. A proxy's "[ name ] " may come first.
func monitor(line string, r *Record) (why string) {
	if strings.HasPrefix(line, "[ ") {
		line = behind(line, " ] ")
	}
	head, _, _ := strings.Cut(line, `] "`)
	stamp, from, _ := strings.Cut(strings.TrimPrefix(head, "+"), " [")
	database, client, _ := strings.Cut(from, " ")
	at, tick := instant(stamp)
	if tick != 1e3 || client == "" || head == line {
		return strange
	}
	words, ok := unquote(line[len(head)+2:])
	switch {
	case !ok:
		return strange
	case client == "lua":
		return "lua"
	}
	*r = Record{At: at, Tick: tick, Database: database, Client: client, Name: strings.ToUpper(words[0]), commands: [][]string{words}}
	return ""
}

// unquote reads quoted words, each behind a space. Redis, nginx and Go escape alike in them: \", \\, \n, \r, \t, \a, \b, \xHH.
func unquote(text string) (words []string, ok bool) {
	for ok = utf8.ValidString(text); ok; { // servers escape what is not ASCII
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil || quoted[0] != '"' {
			return nil, false
		}
		word, _ := strconv.Unquote(quoted) // it is one
		words = append(words, word)
		if text = text[len(quoted):]; text == "" {
			return words, true
		}
		text, ok = strings.CutPrefix(text, " ")
	}
	return nil, false
}

// instant reads seconds since 1970, or a time of RFC 3339, and how fine it is; 0 if there is none.
func instant(text string) (at, tick int64) {
	whole, fraction, _ := strings.Cut(text, ".")
	if s, err := strconv.ParseUint(whole, 10, 33); err == nil && len(fraction) <= 9 {
		ns, err := strconv.ParseUint((fraction + "000000000")[:9], 10, 30)
		if err != nil {
			return 0, 0
		}
		for tick = 1e9; fraction != ""; fraction = fraction[1:] {
			tick /= 10
		}
		return int64(s*1e9 + ns), tick
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return 0, 0
	case t.Nanosecond() == 0:
		return t.UnixNano(), 1e9
	}
	return t.UnixNano(), 1e6
}
