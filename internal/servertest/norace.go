//go:build !race

package servertest

// raced reports whether the race detector is on.
const raced = false
