package report

import "regexp"

// Codes of colours (ECMA-48, SGR).
const (
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// colours lists what is coloured in a text: verdicts, marks of doubt and codes. A rule's title is bold.
var colours = []struct {
	text   *regexp.Regexp
	colour string
}{
	{regexp.MustCompile(`(?m)^── [^─\n]+`), bold},
	{regexp.MustCompile(`\b(INVALID|FAILED|FAIL|ABORTED|LOST)\b`), red},
	{regexp.MustCompile(`(?m)^  ! .*|[0-9A-Za-z%]!`), red},
	{regexp.MustCompile(`\b(SUSPECT|DEGRADED|CAPPED|UNFINISHED)\b`), yellow},
	{regexp.MustCompile(`(?m)^  \? .*|[0-9]\?`), yellow},
	{regexp.MustCompile(`(?m)(valid|pass) ──$|^  pass |\bvalid\b`), green},
}

// coloured returns a text with colours for a terminal.
func coloured(text string) string {
	for _, c := range colours {
		text = c.text.ReplaceAllString(text, c.colour+"$0"+plain)
	}
	return text
}
