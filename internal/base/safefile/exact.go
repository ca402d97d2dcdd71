package safefile

import (
	"errors"
	"io"
)

// ErrLength says that a file is not as long as it must be.
var ErrLength = errors.New("the file is longer or shorter than it was")

// exact reads exactly a given number of bytes.
type exact struct {
	from io.Reader
	left int64
}

// Exact returns a reader of the next length bytes of r, which must be the last ones. If r ends earlier or later, the reader returns [ErrLength]
// instead of io.EOF. It never passes on a byte beyond length.
func Exact(r io.Reader, length int64) io.Reader { return &exact{r, length} }

func (e *exact) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if e.left == 0 {
		return e.end()
	}
	n, err := e.from.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	if err == io.EOF && e.left > 0 {
		err = ErrLength
	}
	return n, err
}

// end checks that r ends after the last byte.
func (e *exact) end() (int, error) {
	var more [1]byte
	n, err := e.from.Read(more[:])
	if n > 0 {
		return 0, ErrLength
	}
	return 0, err
}
