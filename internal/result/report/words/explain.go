package words

import (
	_ "embed"
	"regexp"
	"strings"

	"github.com/loadgen/loadgen/docs"
)

// Explanation says what a code, a figure or a metric is, as plain text.
type Explanation struct {
	Code  string
	Means string   // its meaning in a sentence, with the full stop
	More  []string // paragraphs with details: when it arises, what to do
}

// codes explains the codes that are no reasons for doubt, in the form of docs/reasons.md.
//
//go:embed codes.md
var codes string

// Explanations returns those of all codes: reasons for doubt as in docs/reasons.md, then the others.
func Explanations() (all []Explanation) {
	page, err := docs.Pages.ReadFile("reasons.md")
	if err != nil {
		panic("words: " + err.Error()) // it is embedded
	}
	for _, section := range strings.Split(string(page)+"\n"+codes, "\n#### ")[1:] {
		code, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n#")
		parts := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\n- ", "\n\n"), "\n\n")
		for i := range parts {
			parts[i] = plainly(strings.TrimPrefix(parts[i], "- "))
		}
		means, more, _ := strings.Cut(parts[0], "**")
		e := Explanation{Code: code, Means: means}
		if means == "" { // the first two asterisks
			e.Means, more, _ = strings.Cut(more, "**")
		}
		if more = strings.TrimSpace(more); more != "" {
			e.More = append(e.More, more)
		}
		for _, part := range parts[1:] {
			if part != "" {
				e.More = append(e.More, part)
			}
		}
		all = append(all, e)
	}
	return all
}

// Explain returns the explanation of a code.
func Explain(code string) (Explanation, bool) {
	for _, e := range Explanations() {
		if e.Code == code {
			return e, true
		}
	}
	return Explanation{}, false
}

// link is one of Markdown, to a place in a page.
var link = regexp.MustCompile(`\[([^]]+)\]\(([^)#]*)(#[^)]*)?\)`)

// plainly returns a paragraph of Markdown in one line, with the pages that it links to in brackets.
func plainly(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return link.ReplaceAllStringFunc(text, func(l string) string {
		m := link.FindStringSubmatch(l)
		switch {
		case m[2] == "":
			return m[1]
		case m[1] == m[2]:
			return "docs/" + m[2]
		}
		return m[1] + " (docs/" + m[2] + ")"
	})
}
