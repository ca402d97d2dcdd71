package command_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
	indented = regexp.MustCompile(`(?m)^(?:    |\$ |> )*((?:sudo )?(?:\S*/)?loadgen .*)$`)
	inline   = regexp.MustCompile("`(?:\\./)?loadgen ([a-z][^`]*)`")
	option   = regexp.MustCompile(`(?:^|[ \[|])(--[a-z][a-z-]+)`)
)

// TestPagesNameWhatThereIs compares the commands and flags in pages with the help.
func TestPagesNameWhatThereIs(t *testing.T) {
	t.Parallel()
	helps := map[string]string{}
	subcommands(t, nil, func(path []string, help string) { helps[strings.Join(path, " ")] = help })
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, line := range commandsIn(string(b)) {
			words := strings.Fields(line)
			known := 0
			for known < len(words) && helps[strings.Join(words[:known+1], " ")] != "" {
				known++
			}
			name := strings.Join(words[:known], " ")
			require.False(t, strings.Contains(helps[name], "Available Commands:") && known < len(words) && !strings.HasPrefix(words[known], "-"),
				"%s: there is no command of these words: loadgen %s", page, line)
			seen[name] = true
			for _, flag := range option.FindAllStringSubmatch(line, -1) {
				require.Regexp(t, regexp.QuoteMeta(flag[1])+`\b`, helps[name], "%s: a command without this flag: loadgen %s", page, line)
			}
		}
	}
	for _, name := range []string{"run", "worker", "runs compare", "report", "plan check", "selfcheck"} {
		require.True(t, seen[name], name)
	}
}

// TestReadmeQuotesItsPlan holds the README's excerpt to the plan that it is from, and its picture to a run of that plan which was valid. Blanks in the
// picture are no-break spaces, since a browser joins others.
func TestReadmeQuotesItsPlan(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile(hydra)
	require.NoError(t, err)
	excerpts := regexp.MustCompile("(?ms)^```hcl\n(.*?)^```").FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, excerpts)
	for _, excerpt := range excerpts {
		require.Contains(t, string(source), excerpt[1])
	}
	picture, err := os.ReadFile("../../docs/terminal.svg")
	require.NoError(t, err)
	text := regexp.MustCompile("<text[^>]*>(.*?)</text>").FindAllStringSubmatch(string(picture), -1)
	require.Contains(t, text[0][1], "loadgen\u00a0run\u00a0plans/hydra.hcl")
	require.Contains(t, string(picture), "valid")
	for _, line := range text {
		require.NotRegexp(t, "SUSPECT|INVALID| ", line[1])
	}
}

// commandsIn returns the commands that a page has in code fences, indented lines and backquotes, without their first word.
func commandsIn(page string) (all []string) {
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		for _, line := range indented.FindAllStringSubmatch(strings.ReplaceAll(block[1], "\\\n", " "), -1) {
			_, rest, _ := strings.Cut(line[1], "loadgen ")
			all = append(all, rest)
		}
	}
	page = fenced.ReplaceAllString(page, "")
	for _, span := range inline.FindAllStringSubmatch(page, -1) {
		all = append(all, span[1])
	}
	for i, line := range all { // what the shell is told besides
		for _, end := range []string{" # ", " | ", " && ", " > ", " & ", ";"} {
			line, _, _ = strings.Cut(line, end)
		}
		all[i] = line
	}
	slices.Sort(all)
	return slices.Compact(all)
}
