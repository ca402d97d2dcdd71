package engine

import "time"

// poller is the sockets of one loop, none of whose calls but wait blocks. Sockets are named by a token of the caller's and by file descriptor.
// Its errors are those of the system calls; errAgain means that nothing could be moved now.
type poller interface {
	// wait fills ready with sockets that can move bytes, waiting up to d for the first.
	wait(ready []readiness, d time.Duration) (int, error)
	// connect begins a connection; the socket becomes writable when it is made or has failed.
	connect(to *endpoint, token int32) (fd int, err error)
	// connected returns the error of a connection attempt that has ended.
	connected(fd int) error
	// watch asks for readability, and for writability too if write is set. It may be told once only: of bytes when they come, and not again
	// because some of them are left, and of room likewise.
	watch(fd int, token int32, write bool) error
	// read returns 0 at the end of the stream.
	read(fd int, p []byte) (int, error)
	write(fd int, p []byte) (int, error)
	close(fd int)
}

// readiness is a socket that can move bytes.
type readiness struct {
	token       int32
	read, write bool // a broken socket is both
	ended       bool // no more bytes will come than are there
}
