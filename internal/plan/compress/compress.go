// Package compress compresses single values, each to a gzip member or a zstd frame. The output depends only on the input, not on the encoder or on
// what it has compressed before: a request states the length of its value before the value is made a second time.
package compress

import (
	"fmt"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The compressions.
const (
	Gzip = "gzip" // at its default level
	Zstd = "zstd" // at its default level
	None = "none"
)

// Compressor may be used by any number of goroutines, including event loops, which must not wait for each other: without a lock, each call takes an
// encoder out of the list, or makes one if the list is empty.
type Compressor struct {
	make func() (encoder, error)
	idle [64]atomic.Pointer[encoder]
}

// encoder appends the compressed form of src.
type encoder interface {
	encode(dst, src []byte) []byte
}

// New returns the compressor of a name, nil for "none" and "". The error says what to write.
func New(name string) (*Compressor, error) {
	c := &Compressor{}
	switch name {
	case "", None:
		return nil, nil
	case Gzip:
		c.make = func() (encoder, error) {
			g := &gzipped{}
			g.w = gzip.NewWriter(g)
			return g, nil
		}
	case Zstd:
		c.make = newZstd
	default:
		return nil, fmt.Errorf("compression %.40q; write %q, %q or %q", name, Gzip, Zstd, None)
	}
	e, err := c.make()
	if err != nil {
		return nil, err
	}
	e.encode(nil, []byte("first")) // the first call prepares the encoder, under a lock
	c.idle[0].Store(&e)
	return c, nil
}

// Bound returns an upper bound on the compressed length of n bytes.
func Bound(n int64) int64 { return n + n>>10 + 64 }

// Append appends the compressed form of src. It allocates to grow dst, and for an encoder if all are in use. src may be a part of dst.
func (c *Compressor) Append(dst, src []byte) []byte {
	e := c.take()
	dst = (*e).encode(dst, src)
	for i := range c.idle {
		if c.idle[i].CompareAndSwap(nil, e) {
			break
		}
	}
	return dst
}

func (c *Compressor) take() *encoder {
	for i := range c.idle {
		if e := c.idle[i].Swap(nil); e != nil {
			return e
		}
	}
	e, err := c.make()
	if err != nil {
		panic(err) // New has made an encoder with the same options
	}
	return &e
}

// gzipped is an encoder. As an io.Writer it appends to dst.
type gzipped struct {
	w   *gzip.Writer
	dst []byte
}

// Write implements io.Writer.
func (g *gzipped) Write(b []byte) (int, error) {
	g.dst = append(g.dst, b...)
	return len(b), nil
}

func (g *gzipped) encode(dst, src []byte) []byte {
	g.dst = dst
	g.w.Reset(g)
	_, err := g.w.Write(src)
	if err == nil {
		err = g.w.Close()
	}
	if err != nil {
		panic(err) // the Write above returns none
	}
	dst, g.dst = g.dst, nil
	return dst
}

// zstandard is an encoder.
type zstandard struct{ w *zstd.Encoder }

func newZstd() (encoder, error) {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("make a zstd encoder: %w", err)
	}
	return zstandard{w}, nil
}

func (z zstandard) encode(dst, src []byte) []byte { return z.w.EncodeAll(src, dst) }

// Share returns what share of some bytes is left of them after zstd, which looks back as far as the tool does by default: 2 MiB.
func Share(b []byte) float64 {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(2<<20), zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		panic(err) // the options are valid
	}
	return float64(len(w.EncodeAll(b, nil))) / float64(len(b))
}
