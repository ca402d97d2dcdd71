// Picture draws what a command printed as a picture of a terminal, in SVG:
//
//	loadgen run plans/hydra.hcl | go run -C tools ./picture 'loadgen run plans/hydra.hcl' > docs/terminal.svg
//
// Its argument is the command, which the picture begins with. Blanks become no-break spaces, because browsers join blanks in SVG unless each element
// says otherwise.
package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	advance, line = 7.83, 17 // width of a character of 13 pixels, and distance of lines, in pixels
	margin        = 16
	plain, dim    = "#d7dae0", "#8b93a5"
	green, blue   = "#9ece6a", "#7fb4ff"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: picture COMMAND < OUTPUT > PICTURE.svg")
		os.Exit(2)
	}
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		_, err = os.Stdout.WriteString(draw(os.Args[1], string(text)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// draw returns the picture of a command and what it printed.
func draw(command, text string) string {
	lines := append([]string{"$ " + command, ""}, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
	columns := 0
	for _, l := range lines {
		columns = max(columns, utf8.RuneCountInString(l))
	}
	width, height := float64(columns)*advance+2*margin, len(lines)*line+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="Terminal output of `, width, height, width, height)
	escape(&b, command)
	fmt.Fprintf(&b, "\">\n<rect width=\"%.0f\" height=\"%d\" rx=\"8\" fill=\"#16181d\"/>\n", width, height)
	fmt.Fprintln(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">`)
	for i, l := range lines {
		if l == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs">`,
			margin, margin+10+i*line, colour(i, l), float64(utf8.RuneCountInString(l))*advance)
		escape(&b, strings.ReplaceAll(l, " ", "\u00a0"))
		fmt.Fprintln(&b, "</text>")
	}
	fmt.Fprintln(&b, "</g>\n</svg>")
	return b.String()
}

// escape writes text for XML to a buffer, whose writes do not fail.
func escape(b *bytes.Buffer, text string) { _ = xml.EscapeText(b, []byte(text)) }

// colour returns the colour of a line: the command, a heading, a note, or measured values.
func colour(i int, l string) string {
	switch {
	case i == 0:
		return green
	case strings.HasPrefix(l, "── "):
		return blue
	case strings.HasPrefix(l, "  note "):
		return dim
	}
	return plain
}
