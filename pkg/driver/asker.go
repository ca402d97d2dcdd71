package driver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
)

// ErrHungUp is what an [Asker] returns once the server has closed the connection.
var ErrHungUp = errors.New("server closed the connection")

// Asker asks a server questions on a connection that carries no load, as in Identify and Prepare. [Interruptible] bounds its waits.
type Asker struct {
	Conn net.Conn
	Most int // bytes that the server may send in answer to one question

	buf []byte // was read and not yet taken
	got int    // bytes since the last question
}

// Greet begins a connection as a codec does.
func (a *Asker) Greet(c Codec) error {
	words, replies := c.Greet(nil)
	a.Say(words)
	for i := range replies {
		if err := a.Next(func(b []byte) (int, error) { return c.ParseGreeting(b, i) }); err != nil {
			return err
		}
	}
	return nil
}

// Say sends a question, which Next then reads the answer to.
func (a *Asker) Say(question []byte) {
	a.got = len(a.buf)
	_, _ = a.Conn.Write(question) // if this fails, so does reading the answer
}

// Next reads until parse takes something from the front of what has come, which parse may keep, or returns an error. If the server hangs up, the error
// is ErrHungUp.
func (a *Asker) Next(parse func(b []byte) (n int, err error)) error {
	for {
		n, err := parse(a.buf)
		if err != nil {
			return err
		}
		if n > 0 {
			a.buf = a.buf[n:]
			return nil
		}
		if a.got >= a.Most {
			return fmt.Errorf("reply goes on beyond %d bytes", a.Most)
		}
		a.buf = slices.Grow(a.buf, 4<<10)
		free := a.buf[len(a.buf):cap(a.buf)]
		n, err = a.Conn.Read(free[:min(len(free), a.Most-a.got)])
		a.buf, a.got = a.buf[:len(a.buf)+n], a.got+n
		if n == 0 && err != nil {
			return silence(err)
		}
	}
}

// silence explains that a server did not answer.
func silence(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("no answer in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return ErrHungUp
	}
	return err
}
