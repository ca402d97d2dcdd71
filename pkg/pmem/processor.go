package pmem

import "encoding/binary"

// line is the number of bytes that a processor writes back at once.
const line = 64

// processor holds a processor's ways to write cache lines back to memory.
type processor struct {
	name   string                  // of the instruction
	flush  func(p []byte)          // starts the write-back of each line of p, which is not empty; nil if there is no instruction for it
	past   string                  // name of the instruction that aside uses
	aside  func(to, from []byte)   // copies whole lines past the caches, which need no flush
	line   edge                    // assembles a line and stores it past the caches, which needs no flush
	store8 func(p *byte, v uint64) // stores v whole, without waiting for flushes as an atomic store would
	fence  func()                  // waits for all flushes
}

// chunk is the bytes of one store: a head, which may be empty, and the bytes after it.
type chunk struct {
	off     int64
	head, p []byte
	room    int64 // bytes after the chunk that may become zeros
	seal    bool  // the first 4 bytes of head are combined with the CRC32C of p
}

// size returns the chunk's length in bytes.
func (p *chunk) size() int64 { return int64(len(p.head) + len(p.p)) }

// combine puts the checksum into the head.
func (p *chunk) combine(sum uint32) {
	if len(p.head) > 0 {
		binary.LittleEndian.PutUint32(p.head, binary.LittleEndian.Uint32(p.head)^sum)
	}
}

// edge stores the first or the last line of a chunk: a head of headSize bytes or none, with sum combined into its first 4 bytes by XOR, then n bytes
// of p from index from on, then zeros.
type edge func(to, head, p []byte, from, n int, sum uint32)

// headSize is the length of a head that is assembled in registers with what follows it. A load of bytes that several stores have assembled in memory
// waits until all earlier stores have ended.
const headSize = 24

// atOnce is how many bytes are stored before their checksum is computed. While a processor waits for its stores it can compute, as far as it looks
// ahead.
const atOnce = 4 << 10

// put stores a chunk to the mapping. Lines that the chunk fills, alone or with its room, bypass the caches; the others are flushed. It returns the
// CRC32C if the chunk is sealed. The head's line comes last, since it needs the checksum.
func (c *processor) put(mapping []byte, p *chunk) (sum uint32) {
	head, size := len(p.head), int(p.size())
	at := min(size, head+int(-(p.off+int64(head))&(line-1))) // after head, a line begins
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
	case head == headSize && p.off%line == 0 && int64(at)+p.room >= line: // the chunk and its room fill the line
		c.line(to[:line], p.head, p.p, 0, len(first), sum)
	default:
		p.combine(sum)
		copy(to, p.head)
		copy(to[head:], first)
		c.flush(to[:at])
	}
	return sum
}

// Even where nothing is flushed, pieces of at least leastAside bytes bypass the caches in files of at least largerThanCaches bytes: otherwise their
// lines would be fetched from memory only to be overwritten. Go's own copy does so from 1 MiB on.
const (
	leastAside       = 4 << 10
	largerThanCaches = 16 << 20
)

// copy stores p to the mapping, without a flush.
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

// sum fills to with the bytes of p from index from on, and returns the CRC32C of p.
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
