// Package docs holds the pages from which the program quotes: what they say is said nowhere else.
package docs

import "embed"

// Pages are the embedded pages. truth.md has an entry for each code of a reason, under a heading of its own, and
// result.md a row for each path of a result.
//
//go:embed truth.md result.md
var Pages embed.FS
