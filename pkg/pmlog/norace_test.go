//go:build !race

package pmlog

// watched is whether the race detector watches.
const watched = false
