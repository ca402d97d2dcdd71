package pmlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// FuzzOpen opens any bytes as a log of each layout. The header's checksum may be corrected first. A log that opens can be read, or not for a reason,
// and written to, and its contents are found again.
func FuzzOpen(f *testing.F) {
	all := kinds()
	for i, k := range all {
		h := history{kind: k, seed: uint64(i), limit: 1, seen: map[uint64]struct{}{}}
		require.NoError(f, h.run())
		h.cutPower()
		regions := memory(h.trace, h.survivor)
		image := regions[len(regions)-1].(*pmemtest.Memory).Bytes
		f.Add(i, true, bytes.Clone(image[:headerSize]), bytes.TrimRight(image[dataStart:], "\x00"))
		f.Add(i, false, bytes.Clone(image[:headerSize]), []byte{})
	}
	f.Fuzz(func(t *testing.T, i int, mend bool, header, data []byte) {
		k := all[uint(i)%uint(len(all))]
		trace := pmemtest.New(1, k.sizes...)
		trace.Images(1, nil, func(image pmemtest.Image) bool {
			regions := memory(trace, image.Bytes)
			p := regions[len(regions)-1].(*pmemtest.Memory).Bytes
			copy(p[:headerSize], header)
			if mend {
				binary.LittleEndian.PutUint32(p[headerSize-4:], crc32.Checksum(p[:headerSize-4], castagnoli))
			}
			copy(p[dataStart:], data)
			salvageAny(t, regions[len(regions)-1])
			openAny(t, k, regions)
			return true
		})
	})
}

// salvageAny reads what is left of a log that may be none. Each record takes bytes of it, so there is an end.
func salvageAny(t *testing.T, r Region) {
	if shape, err := ShapeOf(r); err != nil || shape.Layout != "append" {
		return
	}
	l, err := SalvageAppend(r)
	require.NoError(t, err)
	records := l.Reader()
	for range r.Size() {
		if _, _, err = records.Next(); errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
		}
	}
	require.Fail(t, "it has no end")
}

// openAny opens a log that may be none.
func openAny(t *testing.T, k kind, regions []Region) {
	s, err := k.open(regions)
	if err != nil {
		return
	}
	got, err := s.items()
	if err != nil {
		require.ErrorIs(t, err, ErrCorrupt)
		return
	}
	m := model{kind: k}
	m.adopt(got)
	ended := m.begin(0, []byte("more"))
	err = s.write(0, 0, []byte("more"))
	if err != nil && !errors.Is(err, ErrFull) && !errors.Is(err, ErrTooLarge) {
		require.ErrorIs(t, err, ErrCorrupt)
		return
	}
	ended(err)
	m.settle()
	s, err = k.open(regions)
	require.NoError(t, err)
	got, err = s.items()
	require.NoError(t, err)
	require.NoError(t, m.check(got))
}

// TestDamageAfterACloseIsFound changes a byte of a closed log, but only one in 64 of the zeros: its contents are unchanged, or ErrCorrupt. Under the race
// detector, it changes a part of them.
func TestDamageAfterACloseIsFound(t *testing.T) {
	each := 1
	if !servertest.Whole() {
		each = 7
	}
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			trace := pmemtest.New(1, k.sizes...)
			s, err := k.create(k.traced(trace))
			require.NoError(t, err)
			m := newModel(k)
			m.adopt(k.holds)
			if k.slots > 0 {
				m = newModel(k)
			}
			total := 0
			for n := range 8 {
				p := bytes.Repeat([]byte{byte(n + 1)}, 3+n*5)
				total += len(p)
				m.begin(n%4, p)(nil)
				require.NoError(t, s.write(0, n%4, p))
			}
			require.NoError(t, s.close())
			crash := history{trace: trace}
			crash.cutPower()
			for at, b := range crash.survivor {
				if b == 0 && at%64 > 0 || at%each > 0 { // most are zeros, unused
					continue
				}
				image := slices.Clone(crash.survivor)
				image[at] ^= byte(1 + at%255)
				s, err := k.open(memory(trace, image))
				var got [][]byte
				if err == nil {
					got, err = s.items()
				}
				if err != nil {
					require.ErrorIs(t, err, ErrCorrupt, "byte %d", at)
				} else if k.length { // only the last of its bytes have a checksum
					require.Len(t, got[0], total, "byte %d", at)
				} else {
					require.NoError(t, m.check(got), "byte %d", at)
				}
			}
		})
	}
}
