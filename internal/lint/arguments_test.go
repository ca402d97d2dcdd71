package lint_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// plansPage explains the words of a plan.
const plansPage = "docs/plans.md"

var (
	expected     = regexp.MustCompile(`\.(?:Expect|driverBody)\((.*)\)`)
	wordList     = regexp.MustCompile(`(\w+)\s*:?=\s*(?:append\(\w+, |\[\]string\{)([^})]*)[})]`)
	hclTag       = regexp.MustCompile(`hcl:"([a-z_0-9]+)`)
	quoted       = regexp.MustCompile(`"([a-z_0-9]+)"`)
	identifier   = regexp.MustCompile(`\b[a-zA-Z]+\b`)
	tableOfWords = regexp.MustCompile(`(?m)^\| argument[^|\n]*\|.*\n\|[-|: ]+\n((?:\|.*\n)+)`)
	firstCell    = regexp.MustCompile(`(?m)^\| ([^|]*) \|`)
	word         = regexp.MustCompile("`([a-z_0-9]+)(?:`| \\{| \"NAME\" \\{)")
)

// arguments compares the words that a plan's decoder takes with those of the page about plans: a word that the page does not mention, and one in the
// first column of its tables of arguments that no decoder takes.
func arguments(m *module) []string {
	words := map[string]bool{}
	for _, name := range m.texts {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		switch source := m.page(name); {
		case path.Dir(name) == "pkg/plan", path.Dir(name) == "internal/plan/dialect":
			for _, call := range expected.FindAllStringSubmatch(source, -1) {
				m.wordsOf(call[1], path.Dir(name), words)
			}
		case strings.HasPrefix(name, "internal/target/drivers/"):
			for _, tag := range hclTag.FindAllStringSubmatch(source, -1) {
				words[tag[1]] = true
			}
		}
	}
	page := m.page(plansPage)
	everywhere := page + m.page("docs/web.md") + m.page("docs/http.md") + m.page("docs/databases.md") // whose drivers have pages of their own
	var found []string
	for w := range words {
		if !regexp.MustCompile("(?m)(`|^ +)" + w + `\b`).MatchString(everywhere) {
			found = append(found, plansPage+": "+w+" is not explained")
		}
	}
	for _, table := range tableOfWords.FindAllStringSubmatch(page, -1) {
		for _, cell := range firstCell.FindAllStringSubmatch(table[1], -1) {
			for _, w := range word.FindAllStringSubmatch(cell[1], -1) {
				if !words[w[1]] && !strings.HasPrefix(w[1], "response_p") { // of any quantile
					found = append(found, plansPage+": "+w[1]+" is no word of a plan")
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// wordsOf adds the words in the arguments of a call, and those of lists in that directory which it names.
func (m *module) wordsOf(args, dir string, words map[string]bool) {
	for _, q := range quoted.FindAllStringSubmatch(args, -1) {
		words[q[1]] = true
	}
	named := identifier.FindAllString(quoted.ReplaceAllString(args, ""), -1)
	for _, name := range m.texts {
		if path.Dir(name) != dir || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, list := range wordList.FindAllStringSubmatch(m.page(name), -1) {
			if slices.Contains(named, list[1]) {
				m.wordsOf(list[2], "", words)
			}
		}
	}
}
