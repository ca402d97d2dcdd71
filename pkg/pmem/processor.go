package pmem

// processor is how a processor writes lines of its caches back to memory.
type processor struct {
	name   string                  // of the instruction
	flush  func(p []byte)          // starts the write-back of each line of p, which is not empty; nil where there is no instruction for it
	past   string                  // name of the instruction that aside stores with
	aside  func(to, from []byte)   // copies whole lines of 64 bytes past the caches: they need no flush
	store8 func(p *byte, v uint64) // stores v whole, and waits for no flush, as an atomic store would
	fence  func()                  // waits for what was flushed
}

// putAside copies p, of a line at least, behind the first bytes of to, past the caches where the line is all of p's, and flushes the others. The offset
// is that of p in its file, which is mapped at the beginning of a line.
func (c *processor) putAside(to []byte, head int, p []byte, off int64) {
	const line = 64
	at := head + int(-off&(line-1)) // of to: a line begins there
	first := copy(to[head:at], p)
	end := at + (len(p)-first)/line*line
	c.aside(to[at:end], p[first:])
	copy(to[end:], p[first+end-at:])
	if at > 0 {
		c.flush(to[:at])
	}
	if end < len(to) {
		c.flush(to[end:])
	}
}
