//go:build !race

package servertest

// raced is whether the race detector watches.
const raced = false
