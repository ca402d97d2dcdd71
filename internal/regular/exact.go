package regular

import (
	"errors"
	"io"
)

// ErrLength says that a file does not have the length that it has to have.
var ErrLength = errors.New("the file is longer or shorter than it was")

// exact reads what has to be of a length.
type exact struct {
	from io.Reader
	left int64
}

// Exact returns a reader of the next length bytes of r, which have to be all that is left of it. If r ends earlier, or goes on, [ErrLength] stands in place of
// io.EOF. No byte behind length is passed on.
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

// end looks for the end behind the last byte.
func (e *exact) end() (int, error) {
	var more [1]byte
	n, err := e.from.Read(more[:])
	if n > 0 {
		return 0, ErrLength
	}
	return 0, err
}
