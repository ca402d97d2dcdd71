package sockets

import "time"

// Poller holds the sockets of one loop. Only Wait blocks. A socket is named by the caller's token and by file descriptor. Errors are those of the
// system calls; ErrAgain means that nothing could be moved now.
type Poller interface {
	// Wait fills ready with sockets that can move bytes, waiting up to d for the first.
	Wait(ready []Readiness, d time.Duration) (int, error)
	// Connect begins a connection; the socket becomes writable when it is made or has failed.
	Connect(to *Endpoint, token int32) (fd int, err error)
	// Connected returns the error of a connection attempt that has ended.
	Connected(fd int) error
	// Watch asks for readability, and for writability too if write is set. Each may be reported only once: readability when bytes come, not again
	// because some are left; writability when room appears, not again because some is left.
	Watch(fd int, token int32, write bool) error
	// Read returns 0 at the end of the stream.
	Read(fd int, p []byte) (int, error)
	Write(fd int, p []byte) (int, error)
	Close(fd int)
}

// Gatherer is a poller that can write bytes from several places at once.
type Gatherer interface {
	// Writev is Write for parts that follow each other; none of them is empty.
	Writev(fd int, parts [][]byte) (int, error)
}

// Traffic holds the kernel's counts for connections.
type Traffic struct {
	BytesSent          uint64 // bytes sent, including retransmitted ones
	BytesRetransmitted uint64
	Retransmits        uint64 // retransmitted segments
}

// Add adds the counts of other connections.
func (t *Traffic) Add(o Traffic) {
	t.BytesSent += o.BytesSent
	t.BytesRetransmitted += o.BytesRetransmitted
	t.Retransmits += o.Retransmits
}

// Since returns the counts since an earlier state o.
func (t Traffic) Since(o Traffic) Traffic {
	return Traffic{
		BytesSent:          t.BytesSent - o.BytesSent,
		BytesRetransmitted: t.BytesRetransmitted - o.BytesRetransmitted,
		Retransmits:        t.Retransmits - o.Retransmits,
	}
}

// Readiness is a socket that can move bytes.
type Readiness struct {
	Token       int32
	Read, Write bool // a broken socket is both
	Ended       bool // no more bytes will come
}
