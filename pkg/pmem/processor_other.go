//go:build !amd64

package pmem

// detect finds nothing: only amd64 is known.
func detect() processor { return processor{} }

func prefetch([]byte) {}
