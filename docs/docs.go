// Package docs holds the pages from which the program quotes: what they say is said nowhere else.
package docs

import "embed"

// Pages are the embedded pages. reasons.md has an entry for each code of a reason for doubt, under a heading of its own.
//
//go:embed reasons.md
var Pages embed.FS
