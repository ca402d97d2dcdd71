//go:build race

package pmlog

// watched is whether the race detector watches, which takes ten times as long.
const watched = true
