//go:build five

package five

import (
	_ "embed"
	"html/template"
	"io"
	"regexp"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// index is the page of all studies.
type index struct {
	Loadgen    string
	Processors int
	Took       time.Duration
	Style      template.CSS // of the studies' own pages, for their charts
	Studies    []part
	Missing    []missing
}

// A part is a study on the page.
type part struct {
	ID, Title, Question, Source string
	Weak                        []string
	Parts                       []done
}

// done is an execution that has ended.
type done struct {
	How, Page string
	LeftOut   string
	Took      time.Duration
	Answers   []told
	Chart     template.HTML
}

// missing is a study that was begun and has no answers.
type missing struct{ Title, Why string }

// write writes the page.
func (i *index) write(w io.Writer) error { return pageTemplate.Execute(w, i) }

// chartOf returns a chart of a study's own page by its title, and the page's style, which it needs.
func chartOf(page, title string) (chart template.HTML, style template.CSS) {
	found := regexp.MustCompile(`(?s)<figure><figcaption>` + regexp.QuoteMeta(template.HTMLEscapeString(title)) + `.*?</figure>`).FindString(page)
	_, rest, _ := strings.Cut(page, "<style>")
	text, _, _ := strings.Cut(rest, "</style>")
	return template.HTML(found), template.CSS(text) // written by loadgen report, which escapes
}
