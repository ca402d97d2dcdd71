package command_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var commandLine = regexp.MustCompile(`(?m)^  (loadgen .*)$`)

// subcommands walks the help of a command and those below it.
func subcommands(t *testing.T, path []string, visit func(path []string, help string)) {
	t.Helper()
	p := start(t, command(t, append(slices.Clone(path), "--help")...))
	require.Zero(t, p.wait(60*time.Second))
	help := p.stdout.String()
	visit(path, help)
	_, list, found := strings.Cut(help, "Available Commands:\n")
	if !found {
		return
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "help" {
			subcommands(t, append(slices.Clone(path), name), visit)
		}
	}
}

// TestEveryCommandHasAnExample checks commands that do something; the others list their subcommands.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	var named []string
	subcommands(t, nil, func(path []string, help string) {
		if strings.Contains(help, "Available Commands:") {
			return
		}
		name := strings.Join(path, " ")
		named = append(named, name)
		_, examples, found := strings.Cut(help, "Examples:\n")
		require.True(t, found, name)
		for _, line := range commandLine.FindAllString(examples, -1) {
			line, short := strings.TrimSpace(line), strings.TrimPrefix(name, "coordinator ") // run is short for coordinator run
			require.True(t, strings.HasPrefix(line, "loadgen "+short), "%s: %s", name, line)
		}
	})
	require.Subset(t, named, []string{"coordinator run", "plan check", "plan show", "runs list", "runs show", "target serve", "version", "completion"})
}

// TestHelpFits in 100 columns, except for examples, which are meant to be copied.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	subcommands(t, nil, func(path []string, help string) {
		for line := range strings.Lines(commandLine.ReplaceAllString(help, "")) {
			require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 100, "%v: %s", path, line)
		}
	})
}

// TestExamplesWork runs the help's examples that need no server and no earlier run, in the repository as a user would.
func TestExamplesWork(t *testing.T) {
	t.Parallel()
	ran := 0
	subcommands(t, nil, func(path []string, help string) {
		if name := strings.Join(path, " "); !slices.Contains([]string{"plan check", "plan show", "runs list", "version"}, name) {
			return
		}
		_, examples, _ := strings.Cut(help, "Examples:\n")
		for _, line := range commandLine.FindAllStringSubmatch(examples, -1) {
			cmd := command(t, strings.Fields(line[1])[1:]...)
			cmd.Dir = filepath.Join("..", "..")
			p := start(t, cmd)
			require.Zero(t, p.wait(60*time.Second), "%s\n%s", line[1], &p.stderr)
			ran++
		}
	})
	require.GreaterOrEqual(t, ran, 5)
}

// TestPlanShowIsCanonical compares what it prints with the form that JSON has when keys are sorted and white space is left out.
func TestPlanShowIsCanonical(t *testing.T) {
	p := start(t, command(t, "plan", "show", hydra))
	require.Zero(t, p.wait(60*time.Second))
	shown := strings.TrimSuffix(p.stdout.String(), "\n")
	var tree any
	dec := json.NewDecoder(strings.NewReader(shown))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&tree))
	var sorted bytes.Buffer
	enc := json.NewEncoder(&sorted)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(tree))
	require.Equal(t, strings.TrimSuffix(sorted.String(), "\n"), shown)
}

func TestVersion(t *testing.T) {
	p := start(t, command(t, "version"))
	require.Zero(t, p.wait(60*time.Second))
	require.Regexp(t, `^loadgen (devel\S*|v\d\S*) go1\.\d\S* linux/\w+\n$`, p.stdout.String())
}
