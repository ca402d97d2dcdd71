// Package hook runs commands that the user has named on the command line. They are never part of a plan: plans come from strangers, and can only ask
// for a command by its name.
//
// No shell is involved. A command gets its own process group, an empty standard input, this process's PATH and HOME plus the variables it is told,
// and nothing else of the environment. It runs below a supervisor, which is this program again ([Supervise]), with a time limit. When it is late or
// fails, and when this process ends in any way, it and everything it has started get SIGTERM and then SIGKILL, in whatever group or session they are
// by then. What a successful command leaves running lives as long as this process: hooks are for starting servers.
package hook

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"
	"unicode"
)

const (
	// MaxOutput is how many bytes of a command's output are kept.
	MaxOutput = 64 << 10
	// grace is how long a command and what it has started may take to end; SIGKILL follows after half of it. It is also how long to wait for the
	// output of a successful command when something in the background still holds it open.
	grace = 2 * time.Second
	// poll is the interval for checking which processes still have to end.
	poll = 50 * time.Millisecond
)

// Hook is a command, and the name by which plans ask for it.
type Hook struct {
	Name string
	Argv []string // the command and its arguments
	path string

	servers *servers // of a hook that starts servers anew; nil for any other
}

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// Parse parses NAME=COMMAND ARGUMENT… and looks up the command. Blanks separate words. 'Single quotes' quote everything but themselves. In "double
// quotes" and outside quotes, a backslash makes the next character literal. Nothing else is special: there are no variables, patterns or pipes.
func Parse(text string) (Hook, error) {
	const form = `write --allow-exec 'NAME=COMMAND ARGUMENT…'`
	name, command, ok := strings.Cut(text, "=")
	if !ok || !namePattern.MatchString(name) {
		return Hook{}, fmt.Errorf("--allow-exec %q: %s; NAME is a letter and up to 63 letters, digits, _ and -", text, form)
	}
	h, err := commandOf(name, command)
	if err != nil {
		return Hook{}, fmt.Errorf("--allow-exec %s: %w: %s", name, err, form)
	}
	return h, nil
}

// commandOf looks up a command.
func commandOf(name, text string) (h Hook, err error) {
	argv, err := split(text)
	if err == nil && len(argv) == 0 {
		err = errors.New("no command")
	}
	if err != nil {
		return h, err
	}
	path, err := exec.LookPath(argv[0])
	return Hook{Name: name, Argv: argv, path: path}, err
}

// split splits a command line into words.
func split(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false // a word may be empty: ''
	var quote, open rune
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open, begun = r, r, true
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("a %c that is not closed: close it, or write \\%c for the character", open, open)
	case escaped:
		return nil, errors.New(`a \ at the end: write \\ for the character`)
	case begun:
		words = append(words, word.String())
	}
	return words, nil
}

// Output is what a command printed, standard output and error interleaved as they came.
type Output struct {
	Text string // at most MaxOutput bytes
	Cut  bool   // the output was longer
}

// bounded keeps the start of what is written to it.
type bounded struct {
	kept bytes.Buffer
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := MaxOutput - b.kept.Len()
	if len(p) > room {
		b.cut = true
	}
	b.kept.Write(p[:min(len(p), max(room, 0))])
	return len(p), nil
}

// colours matches the control sequences that colour text and move the cursor (ECMA-48, section 5.4).
var colours = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// lastLine returns the last non-empty line, shortened and without what a terminal would obey: it becomes part of a result.
func lastLine(text string) string {
	const most = 200
	lines := strings.Split(strings.TrimSpace(colours.ReplaceAllString(text, "")), "\n")
	last := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, lines[len(lines)-1])))
	if len(last) > most {
		return string(last[:most]) + "…"
	}
	return string(last)
}
