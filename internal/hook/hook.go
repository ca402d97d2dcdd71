// Package hook runs commands that the user has named on the command line, outside any plan: a plan comes from strangers, and can only ask for
// one by its name.
//
// There is no shell. A command gets a process group of its own, nothing on its standard input, the PATH and HOME of this process and what it is
// told, and nothing else of the environment. It runs below a supervisor, which is this program again ([Supervise]), and has so long. When it is
// late, when it fails, and when this process ends, in whatever way, it and all that it has started are asked to end (SIGTERM) and made to
// (SIGKILL), in whatever group or session they are by then. What a command that went well leaves running lives as long as this process: starting
// a server is what hooks are for.
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
	// MaxOutput is how much is kept of what a command prints, in bytes.
	MaxOutput = 64 << 10
	// grace is how long a command and what it has started may take to end, half of it after they were asked, and how long the output of one that has gone well is waited for when something
	// in the background still holds it.
	grace = 2 * time.Second
	// poll is how often the processes are looked for that should end.
	poll = 10 * time.Millisecond
)

// Hook is a command and the name by which plans ask for it.
type Hook struct {
	Name string
	Argv []string // the command, and its arguments
	path string
}

var namePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// Parse reads NAME=COMMAND ARGUMENT… and looks for the command. Words are separated by blanks. 'Single quotes' hold anything but themselves, in
// "double quotes" and outside of quotes a backslash makes the next character plain. Nothing else is special: there are no variables, patterns
// and pipes.
func Parse(text string) (Hook, error) {
	const form = `write --allow-exec 'NAME=COMMAND ARGUMENT…'`
	name, command, ok := strings.Cut(text, "=")
	if !ok || !namePattern.MatchString(name) {
		return Hook{}, fmt.Errorf("--allow-exec %q: %s; NAME is a letter and up to 63 letters, digits, _ and -", text, form)
	}
	argv, err := split(command)
	if err != nil {
		return Hook{}, fmt.Errorf("--allow-exec %s: %w", name, err)
	}
	if len(argv) == 0 {
		return Hook{}, fmt.Errorf("--allow-exec %s: no command: %s", name, form)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return Hook{}, fmt.Errorf("--allow-exec %s: %w", name, err)
	}
	return Hook{Name: name, Argv: argv, path: path}, nil
}

// split takes a command line apart.
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

// Output is what a command printed, on standard output and error as it came.
type Output struct {
	Text string // at most MaxOutput bytes
	Cut  bool   // there was more
}

// bounded keeps the beginning of what is written to it.
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

// colours are what makes words red on a terminal, and moves its cursor (ECMA-48, section 5.4: control sequences).
var colours = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// lastLine returns the last line that is not empty, shortened and without what a terminal would obey: it becomes part of a result.
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
