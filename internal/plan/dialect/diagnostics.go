package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2"
)

// MaxDiagnostics bounds the diagnostics that are kept: people do not read more, and a hostile plan must not cost memory.
const MaxDiagnostics = 100

// Concealed marks a diagnostic whose source line must not be shown, since it may hold a secret.
type Concealed struct{}

// Reporter collects diagnostics.
type Reporter struct {
	Kept hcl.Diagnostics
	more bool // there were further diagnostics, which were not kept
}

// Fault reports what is wrong at a place, and what to write instead.
func (r *Reporter) Fault(at hcl.Range, what, write string) {
	r.Keep(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: what, Detail: write, Subject: &at})
}

// Keep collects a diagnostic. Beyond MaxDiagnostics it only records that there are more.
func (r *Reporter) Keep(d *hcl.Diagnostic) {
	if len(r.Kept) == MaxDiagnostics {
		r.more = true
		return
	}
	r.Kept = append(r.Kept, d)
}

// Adopt reports what HCL found in where. It drops the expression and its context: they may hold values that must not be shown.
func (r *Reporter) Adopt(where string, fallback hcl.Range, diags hcl.Diagnostics) {
	for _, d := range diags {
		subject := d.Subject
		if subject == nil {
			subject = &fallback
		}
		summary := d.Summary
		if where != "" {
			summary = where + ": " + summary
		}
		r.Keep(&hcl.Diagnostic{Severity: d.Severity, Summary: summary, Detail: d.Detail, Subject: subject})
	}
}

// Failed reports whether anything was reported.
func (r *Reporter) Failed() bool { return len(r.Kept) > 0 }

// Result returns the kept diagnostics, in the order of the text.
func (r *Reporter) Result() hcl.Diagnostics {
	slices.SortStableFunc(r.Kept, ByPlace)
	if r.more {
		r.Kept = append(r.Kept, &hcl.Diagnostic{
			Severity: hcl.DiagError,
			Summary:  "and more",
			Detail:   "Mend these first.",
			Subject:  r.Kept[len(r.Kept)-1].Subject,
		})
		r.more = false
	}
	return r.Kept
}

// ByPlace orders diagnostics by their place in the text.
func ByPlace(a, b *hcl.Diagnostic) int {
	x, y := cmp.Or(a.Subject, &hcl.Range{}), cmp.Or(b.Subject, &hcl.Range{})
	return cmp.Or(cmp.Compare(x.Filename, y.Filename), cmp.Compare(x.Start.Line, y.Start.Line), cmp.Compare(x.Start.Byte, y.Start.Byte))
}

// Printable replaces characters that would move the cursor, change the writing direction or end the line.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, s)
}

// DidYouMean returns the candidate that name is probably a typo of, "" for none. A third of the letters may be wrong: with more, it would
// take rate for ramp.
func DidYouMean(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", (len(name)+1)/3+1
	for _, c := range candidates {
		if d := levenshtein.Distance(name, c, nil); d < least {
			best, least = c, d
		}
	}
	return best
}

// maxListed bounds how many names a message lists.
const maxListed = 24

// Listed joins words for a sentence: "a, b and c".
func Listed(words []string) string {
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

// Instead returns the remedy for an unknown name: the one probably meant, and all that exist.
func Instead(name string, known []string, form string) string {
	remedy := ""
	if guess := DidYouMean(name, known); guess != "" {
		remedy = "Write " + fmt.Sprintf(form, guess) + ". "
	}
	return remedy + ThereIs(known)
}

// ThereIs returns a sentence that lists the known names.
func ThereIs(known []string) string {
	if len(known) == 0 {
		return "There is none."
	}
	if len(known) > 1 {
		return "There are " + Listed(known) + "."
	}
	return "There is " + Listed(known) + "."
}
