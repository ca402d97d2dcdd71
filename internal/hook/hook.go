// Package hook runs commands that the user has named on the command line, outside any plan: a plan comes from strangers, and can only ask for
// one by its name.
//
// There is no shell. A command gets a process group of its own, nothing on its standard input, the PATH and HOME of this process and what it is
// told, and nothing else of the environment. It has so long; then it and all that it has started are asked to end (SIGTERM) and made to (SIGKILL),
// in whatever group or session they are by now; so are they when it fails. What a command that went well leaves running in the background is left alone: starting a server is what hooks are for.
package hook

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
	"unicode"
)

const (
	// MaxOutput is how much is kept of what a command prints, in bytes.
	MaxOutput = 64 << 10
	// grace is how long a group that is asked to end may take, and how long the output of one that has gone well is waited for when something
	// in the background still holds it.
	grace = 2 * time.Second
	// poll is how often a group is looked at that should end.
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

// Run carries the command out, until ctx ends at the longest. Told is what it is told, as NAME=VALUE. The error of one that goes wrong ends with the
// last line that it printed.
func (h Hook) Run(ctx context.Context, told []string) (Output, error) {
	var out bounded
	cmd := exec.CommandContext(ctx, h.path, h.Argv[1:]...)
	cmd.Args[0] = h.Argv[0]
	mark := "LOADGEN_HOOK_ID=" + rand.Text()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LOADGEN_HOOK=" + h.Name, mark}, told...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	if cmd.Process != nil && (ctx.Err() != nil || err != nil && !errors.Is(err, exec.ErrWaitDelay)) {
		err = errors.Join(err, end(cmd.Process.Pid, mark))
	}
	switch {
	case ctx.Err() != nil && cmd.Process != nil:
		err = fmt.Errorf("hook %s: it did not end in time, and was ended", h.Name)
	case errors.Is(err, exec.ErrWaitDelay): // it went well, and left something running that holds its output
		err = nil
	case err != nil:
		err = fmt.Errorf("hook %s: %w", h.Name, err)
	}
	text := strings.ToValidUTF8(out.kept.String(), "�")
	if last := lastLine(text); err != nil && last != "" {
		err = fmt.Errorf("%w; the last that it printed: %s", err, last)
	}
	return Output{Text: text, Cut: out.cut}, err
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
