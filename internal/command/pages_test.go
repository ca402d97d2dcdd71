package command_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

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

// pictured is set to draw the README's picture anew, of a run that was valid:
//
//	loadgen run plans/hydra.hcl > FILE
//	go test ./internal/command -run TestReadmeQuotesItsPlan -picture FILE
var pictured = flag.String("picture", "", "draw docs/terminal.svg of what the run in `FILE` has printed")

// picture returns the picture of a terminal in which a command has printed a text. Blanks are no-break spaces, since a browser joins others.
func picture(command, text string) []byte {
	const advance, line, margin = 7.83, 17, 16 // width of a character of 13 pixels, and distance of lines, in pixels
	lines, columns := append([]string{"$ " + command, ""}, strings.Split(strings.TrimRight(text, "\n"), "\n")...), 0
	for _, l := range lines {
		columns = max(columns, utf8.RuneCountInString(l))
	}
	width, height := float64(columns)*advance+2*margin, len(lines)*line+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="Terminal output of %s">
<rect width="%.0f" height="%d" rx="8" fill="#16181d"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
`, width, height, width, height, command, width, height)
	for i, l := range lines {
		fill := "#d7dae0"
		switch {
		case l == "":
			continue
		case i == 0:
			fill = "#9ece6a"
		case strings.HasPrefix(l, "── "):
			fill = "#7fb4ff"
		case strings.HasPrefix(l, "  note "):
			fill = "#8b93a5"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs">`,
			margin, margin+10+i*line, fill, float64(utf8.RuneCountInString(l))*advance)
		_ = xml.EscapeText(&b, []byte(strings.ReplaceAll(l, " ", "\u00a0"))) // writes to a buffer do not fail
		b.WriteString("</text>\n")
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}

// TestReadmeQuotesItsPlan holds the README's excerpt to the plan that it is from, and its picture to a run of that plan which was valid.
func TestReadmeQuotesItsPlan(t *testing.T) {
	if *pictured != "" {
		text, err := os.ReadFile(*pictured)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("../../docs/terminal.svg", picture("loadgen run plans/hydra.hcl", string(text)), 0o644))
	}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile(hydra)
	require.NoError(t, err)
	excerpts := regexp.MustCompile("(?ms)^```hcl\n(.*?)^```").FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, excerpts)
	for _, excerpt := range excerpts {
		require.Contains(t, string(source), excerpt[1])
	}
	drawn, err := os.ReadFile("../../docs/terminal.svg")
	require.NoError(t, err)
	text := regexp.MustCompile("<text[^>]*>(.*?)</text>").FindAllStringSubmatch(string(drawn), -1)
	require.Contains(t, text[0][1], "loadgen\u00a0run\u00a0plans/hydra.hcl")
	require.Contains(t, string(drawn), "valid")
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
