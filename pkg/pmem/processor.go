package pmem

import "unsafe"

// processor is how a processor writes lines of its caches back to memory.
type processor struct {
	name  string                // of the instruction
	flush func(p []byte)        // starts the write-back of each line of p, which is not empty; nil where there is no instruction for it
	store func(to, from []byte) // copies whole lines of 64 bytes past the caches: they need no flush
	fence func()                // waits for what was flushed
}

// putAside copies p, of a line at least, behind the first bytes of to, past the caches where the line is all of p's, and flushes the others.
func (c *processor) putAside(to []byte, head int, p []byte) {
	const line = 64
	at := head + int(-uintptr(unsafe.Pointer(&to[head]))%line) // of to: a line begins there
	first := copy(to[head:at], p)
	lines := (len(p) - first) / line * line
	c.store(to[at:at+lines], p[first:first+lines])
	end := at + lines
	copy(to[end:], p[first+lines:])
	if at > 0 {
		c.flush(to[:at])
	}
	if end < len(to) {
		c.flush(to[end:])
	}
}
