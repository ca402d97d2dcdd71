package files

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// claim describes the files that a phase's acknowledged puts and deletes must have left, for another process to check. It is encoded with
// encoding/gob, since the program that writes it also reads it.
type claim struct {
	Root  string // --log-root
	Dir   string // directory below Root
	Files []fileClaim
}

// fileClaim says what a name stands for.
type fileClaim struct {
	Shelf int
	Name  string
	There bool
	Size  int
	Sum   uint32
}

const maxWrong = 10 // the number of errors to report

func (s *store) claim() ([]byte, error) {
	var c claim
	root, dir := s.parent.Way()
	c.Root, c.Dir = root, path.Join(dir, s.name)
	for i, at := range s.shelves {
		if at == nil {
			continue
		}
		for name, is := range at.known {
			if is.sure {
				c.Files = append(c.Files, fileClaim{i, name, is.there, is.size, is.sum})
			}
		}
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&c); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Verify implements localfile.Driver.
func (Driver) Verify(text []byte) (proof localfile.Proof, err error) {
	var c claim
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&c); err != nil {
		return proof, fmt.Errorf("what the files are to hold: %w", err)
	}
	root, err := localfile.OpenBelow(c.Root, c.Dir)
	if err != nil {
		return proof, err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return proof, err
	}
	defer dir.Close()
	buffer := make([]byte, 1<<20)
	for _, f := range c.Files {
		wrong, there, err := f.look(dir, buffer)
		if err != nil {
			return proof, err
		}
		if there {
			proof.Recovered++
		}
		if f.There {
			proof.Acknowledged++
			if wrong == "" {
				proof.Verified++
			}
		}
		if wrong != "" && len(proof.Wrong) < maxWrong {
			proof.Wrong = append(proof.Wrong, shelfName(f.Shelf)+"/"+f.Name+" "+wrong)
		}
	}
	return proof, nil
}

// look compares a file with its claim.
func (f *fileClaim) look(dir *os.File, buffer []byte) (wrong string, there bool, err error) {
	shelf, err := openShelf(dir, f.Shelf)
	if err != nil {
		return "", false, err
	}
	defer shelf.Close()
	fd, err := linux{}.open(int(shelf.Fd()), f.Name, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if f.There {
			wrong = "is not there"
		}
		return wrong, false, nil
	}
	if err != nil {
		return "", false, err
	}
	file := os.NewFile(uintptr(fd), f.Name)
	defer file.Close()
	if !f.There {
		return "is there, and was deleted", true, nil
	}
	sum := crc32.New(castagnoli)
	size, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{io.LimitReader(file, int64(f.Size)+1)}, buffer)
	switch {
	case err != nil:
		return "", true, err
	case size != int64(f.Size):
		return fmt.Sprintf("has another size than the %d bytes that were put", f.Size), true, nil
	case sum.Sum32() != f.Sum:
		return "holds other bytes than were put", true, nil
	}
	return "", true, nil
}
