package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/hcl/v2"
)

// maxDiagnostics bounds how many are kept: nobody reads more, and a hostile plan is not worth the memory.
const maxDiagnostics = 100

// concealed marks a diagnostic whose source line must not be shown, since a secret may stand in it.
type concealed struct{}

// reporter collects diagnostics.
type reporter struct {
	kept    hcl.Diagnostics
	dropped int
}

// fault reports that what is wrong at a place, and what to write instead.
func (r *reporter) fault(at hcl.Range, what, write string) {
	r.keep(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: what, Detail: write, Subject: &at})
}

func (r *reporter) keep(d *hcl.Diagnostic) {
	if len(r.kept) == maxDiagnostics {
		r.dropped++
		return
	}
	r.kept = append(r.kept, d)
}

// adopt reports what HCL found in where. The expression and its context are let go: they may hold values that must not be shown.
func (r *reporter) adopt(where string, fallback hcl.Range, diags hcl.Diagnostics) {
	for _, d := range diags {
		subject := d.Subject
		if subject == nil {
			subject = &fallback
		}
		summary := d.Summary
		if where != "" {
			summary = where + ": " + summary
		}
		r.keep(&hcl.Diagnostic{Severity: d.Severity, Summary: summary, Detail: d.Detail, Subject: subject})
	}
}

// failed says whether anything was reported.
func (r *reporter) failed() bool { return len(r.kept) > 0 }

// result returns what was kept, in the order of the text.
func (r *reporter) result() hcl.Diagnostics {
	slices.SortStableFunc(r.kept, byPlace)
	if r.dropped > 0 {
		r.kept = append(r.kept, &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  fmt.Sprintf("and %d more", r.dropped),
			Detail:   "Mend these first.",
			Subject:  r.kept[len(r.kept)-1].Subject,
		})
		r.dropped = 0
	}
	return r.kept
}

// byPlace orders diagnostics as the text they are about.
func byPlace(a, b *hcl.Diagnostic) int {
	x, y := cmp.Or(a.Subject, &hcl.Range{}), cmp.Or(b.Subject, &hcl.Range{})
	return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Line, y.Start.Line), cmp.Compare(x.Start.Byte, y.Start.Byte))
}

// printable replaces what would move the cursor or end the line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
}

// DidYouMean returns the candidate that name is a slip of the pen of, "" for none. A third of the letters may be wrong: with more, rate
// would be taken for ramp.
func DidYouMean(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", (len(name)+1)/3+1
	for _, c := range candidates {
		if d := distance(name, c); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes: insertions, deletions and substitutions (V. I. Levenshtein, 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// maxListed bounds how many names a message lists.
const maxListed = 20

// listed joins words for a sentence: "a, b and c".
func listed(words []string) string {
	switch len(words) {
	case 0:
		return "nothing"
	case 1:
		return words[0]
	}
	if len(words) > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:maxListed], ", "), len(words)-maxListed)
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// instead is the remedy for an unknown name: the one probably meant, and all that there are.
func instead(name string, known []string, form string) string {
	remedy := ""
	if guess := DidYouMean(name, known); guess != "" {
		remedy = "Write " + fmt.Sprintf(form, guess) + ". "
	}
	return remedy + thereIs(known)
}

// thereIs is a sentence that says what there is.
func thereIs(known []string) string {
	if len(known) == 0 {
		return "There is none."
	}
	if len(known) > 1 {
		return "There are " + listed(known) + "."
	}
	return "There is " + listed(known) + "."
}
