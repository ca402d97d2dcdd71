package lint_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// What pages may have in words: all of them with the README, a guide, and the README with the guides that newcomers read first.
const (
	pagesWords = 80_000
	guideWords = 1_200
	firstWords = 5_000
	firstPages = 3
)

var (
	pageLink = regexp.MustCompile(`\]\(([^)#\s:]*)(#[^)\s]*)?\)`)
	blocks   = regexp.MustCompile("(?ms)^```.*?^```")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notIn    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// shelves finds pages that are on no shelf of docs/README.md or on two, and those that are too long.
func shelves(m *module) []string {
	index := m.page("docs/README.md")
	all, first := len(strings.Fields(index))+len(strings.Fields(m.page("README.md"))), len(strings.Fields(m.page("README.md")))
	on := map[string][]string{}
	var guides []string
	for _, section := range strings.Split(index, "\n## ")[1:] {
		name, rows, _ := strings.Cut(section, "\n")
		for _, link := range pageLink.FindAllStringSubmatch(rows, -1) {
			if page := link[1]; !slices.Contains(on[page], name) {
				on[page] = append(on[page], name)
				if name == "Guides" {
					guides = append(guides, page)
				}
			}
		}
	}
	var found []string
	pages, _ := fs.Glob(m.fsys, "docs/*.md")
	for _, name := range pages {
		page, words := path.Base(name), len(strings.Fields(m.page(name)))
		if page == "README.md" {
			continue
		}
		all += words
		if len(on[page]) != 1 {
			found = append(found, fmt.Sprintf("%s: is on %d shelves of docs/README.md", name, len(on[page])))
		}
		if i := slices.Index(guides, page); i >= 0 {
			if words > guideWords {
				found = append(found, fmt.Sprintf("%s: a guide of %d words, not %d", name, words, guideWords))
			}
			if i < firstPages {
				first += words
			}
		}
	}
	if all > pagesWords {
		found = append(found, fmt.Sprintf("docs and README: %d words, not %d", all, pagesWords))
	}
	if first > firstWords {
		found = append(found, fmt.Sprintf("README and the first guides: %d words, not %d", first, firstWords))
	}
	return found
}

// links finds links between pages that lead nowhere.
func links(m *module) []string {
	var found []string
	for _, name := range m.texts {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, link := range pageLink.FindAllStringSubmatch(blocks.ReplaceAllString(m.page(name), ""), -1) {
			to := name
			if link[1] != "" {
				to = path.Join(path.Dir(name), link[1])
			}
			if _, err := fs.Stat(m.fsys, to); err != nil || link[2] != "" && !slices.Contains(m.anchors(to), link[2]) {
				found = append(found, fmt.Sprintf("%s: %s leads nowhere", name, link[1]+link[2]))
			}
		}
	}
	return found
}

// anchors returns the anchors of a page's headings, as GitHub names them.
func (m *module) anchors(name string) (all []string) {
	for _, h := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(m.page(name), ""), -1) {
		all = append(all, "#"+strings.ReplaceAll(notIn.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

// page returns a page's text, empty if there is no such page.
func (m *module) page(name string) string {
	text, err := fs.ReadFile(m.fsys, name)
	if err != nil {
		return ""
	}
	return string(text)
}
