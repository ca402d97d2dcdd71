package plan

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/loadgen/loadgen/internal/plan/dialect"
)

// FormatDiagnostics writes the diagnostics in the order of the text. Each is a line "file:line: what is wrong. What to write
// instead." and, below it, the source line it is about. sources holds each file's text under the name it was parsed with.
// A diagnostic about anything else, such as a flag, has no second line, and neither has one about a secret in the source.
func FormatDiagnostics(w io.Writer, diags hcl.Diagnostics, sources map[string][]byte) error {
	var b strings.Builder
	for _, d := range slices.SortedStableFunc(slices.Values(diags), dialect.ByPlace) {
		if d.Subject != nil {
			b.WriteString(dialect.Printable(d.Subject.Filename))
			if d.Subject.Start.Line > 0 {
				fmt.Fprintf(&b, ":%d", d.Subject.Start.Line)
			}
			b.WriteString(": ")
		}
		b.WriteString(dialect.Printable(strings.TrimSuffix(d.Summary, ".")))
		if d.Detail != "" {
			b.WriteString(". " + dialect.Printable(d.Detail))
		}
		b.WriteByte('\n')
		if _, hide := d.Extra.(dialect.Concealed); d.Subject != nil && !hide {
			if line := sourceLine(sources[d.Subject.Filename], d.Subject.Start.Line); line != "" {
				fmt.Fprintf(&b, "%6d | %s\n", d.Subject.Start.Line, line)
			}
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write diagnostics: %w", err)
	}
	return nil
}

// credentials matches the user and password in a URL.
var credentials = regexp.MustCompile(`[^\s"]+@`)

// sourceLine returns a line of src, counted from 1, cut to a readable length and without possible passwords; "" when there is none.
func sourceLine(src []byte, number int) string {
	if number < 1 {
		return ""
	}
	const longest = 160
	for ; number > 1; number-- {
		_, rest, found := bytes.Cut(src, []byte("\n"))
		if !found {
			return ""
		}
		src = rest
	}
	line, _, _ := bytes.Cut(src, []byte("\n"))
	line = credentials.ReplaceAll(line, []byte("…@"))
	if len(line) > longest {
		line = append(bytes.ToValidUTF8(line[:longest:longest], nil), "…"...)
	}
	return strings.TrimRight(dialect.Printable(string(line)), " ")
}
