package pmem

import "encoding/binary"

// line is how many bytes a processor writes back at once.
const line = 64

// processor is how a processor writes lines of its caches back to memory.
type processor struct {
	name   string                  // of the instruction
	flush  func(p []byte)          // starts the write-back of each line of p, which is not empty; nil where there is no instruction for it
	past   string                  // name of the instruction that aside stores with
	aside  func(to, from []byte)   // copies whole lines past the caches: they need no flush
	line   edge                    // stores a line past the caches that is put together: it needs no flush
	store8 func(p *byte, v uint64) // stores v whole, and waits for no flush, as an atomic store would
	fence  func()                  // waits for what was flushed
}

// chunk is what is stored at once: a head, which may be empty, and bytes behind it.
type chunk struct {
	off     int64
	head, p []byte
	room    int64 // bytes behind them that may become zeros
	seal    bool  // the first 4 bytes of head are combined with the CRC32C of p
}

// size is how many bytes the chunk has.
func (p *chunk) size() int64 { return int64(len(p.head) + len(p.p)) }

// combine puts the checksum into the head.
func (p *chunk) combine(sum uint32) {
	if len(p.head) > 0 {
		binary.LittleEndian.PutUint32(p.head, binary.LittleEndian.Uint32(p.head)^sum)
	}
}

// edge stores the first or the last line of a chunk: a head of headSize bytes or none, with sum in its first 4 bytes by XOR, n bytes of p from an
// index on, and zeros.
type edge func(to, head, p []byte, from, n int, sum uint32)

// headSize is how many bytes a head has that is put together with what follows it in the registers of the processor. Who loads bytes that several
// stores have put together waits until all stores before have ended.
const headSize = 24

// atOnce is how many bytes are stored before their checksum is computed. A processor that waits for its stores computes meanwhile, as far as it
// looks ahead.
const atOnce = 4 << 10

// put stores a chunk to the mapping. Lines of which it has all bytes, or all but its room, go past the caches; the others are flushed. It returns the
// CRC32C if that is asked for. The line of the head is last, since it has to wait for the checksum.
func (c *processor) put(mapping []byte, p *chunk) (sum uint32) {
	head, size := len(p.head), int(p.size())
	at := min(size, head+int(-(p.off+int64(head))&(line-1))) // behind head, a line begins
	end := at + (size-at)/line*line
	first, last := p.p[:at-head], p.p[end-head:]
	to := mapping[p.off:]

	if p.seal {
		sum = c.sum(to[at:end], p.p, at-head)
	} else {
		c.aside(to[at:end], p.p[at-head:])
	}
	switch {
	case len(last) == 0:
	case int64(len(last))+p.room >= line:
		c.line(to[end:end+line], nil, p.p, end-head, len(last), 0)
	default:
		copy(to[end:], last)
		c.flush(to[end:size])
	}
	switch {
	case at == 0:
	case head == headSize && p.off%line == 0 && int64(at)+p.room >= line: // the rest of the line is theirs, or room
		c.line(to[:line], p.head, p.p, 0, len(first), sum)
	default:
		p.combine(sum)
		copy(to, p.head)
		copy(to[head:], first)
		c.flush(to[:at])
	}
	return sum
}

// Pieces from leastAside bytes on go past the caches where nothing is flushed, too, in files from largerThanCaches bytes on: their lines would have to
// be fetched from memory to be overwritten. Go's own copy does so from 1 MiB on.
const (
	leastAside       = 4 << 10
	largerThanCaches = 16 << 20
)

// copy stores p to the mapping, and flushes nothing.
func (c *processor) copy(mapping []byte, off int64, p []byte) {
	to := mapping[off:]
	if c.aside == nil || len(p) < leastAside || len(mapping) < largerThanCaches {
		copy(to, p)
		return
	}
	lead := int(-off & (line - 1))
	end := lead + (len(p)-lead)&^(line-1)
	copy(to, p[:lead])
	c.aside(to[lead:end], p[lead:])
	copy(to[end:], p[end:])
}

// sum fills to with the bytes of p from an index on, and returns the CRC32C of p.
func (c *processor) sum(to, p []byte, from int) (sum uint32) {
	for done := 0; ; {
		n := min(atOnce, len(to))
		c.aside(to[:n], p[from:])
		to, from = to[n:], from+n
		if len(to) == 0 {
			return checksum(sum, p[done:])
		}
		next := from &^ (line - 1)
		sum = checksum(sum, p[done:next])
		done = next
	}
}
