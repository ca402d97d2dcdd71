package pmem

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

// TestInstructionsKeepTheBytes runs the optional instructions of amd64 that this processor has.
func TestInstructionsKeepTheBytes(t *testing.T) {
	flushes := map[string]func([]byte){"CLFLUSH": clflush}
	switch detect().name {
	case "CLWB":
		flushes["CLWB"], flushes["CLFLUSHOPT"] = clwb, clflushopt
	case "CLFLUSHOPT":
		flushes["CLFLUSHOPT"] = clflushopt
	}
	for name, flush := range flushes {
		p := bytes.Repeat([]byte("abc"), 1000)
		for from := range 130 {
			flush(p[from : from+1])
			flush(p[from : len(p)-from])
		}
		sfence()
		require.Equal(t, bytes.Repeat([]byte("abc"), 1000), p, name)
	}
}

// TestStoresPastTheCaches runs those that this processor has.
func TestStoresPastTheCaches(t *testing.T) {
	stores := map[string]processor{"16": {aside: movnt, line: lineByWords}, "detected": detect()}
	from := make([]byte, 1000)
	for i := range from {
		from[i] = byte(i*7/3 + 1)
	}
	for name, store := range stores {
		to := make([]byte, 64<<10) // which begins with a page
		for lines := range 13 {
			for at := range 70 {
				clear(to)
				store.aside(to[line:line+lines*line], from[at:])
				sfence()
				require.Equal(t, make([]byte, line), to[:line])
				require.Equal(t, from[at:at+lines*line], to[line:line+lines*line], name)
				require.Equal(t, make([]byte, line), to[line+lines*line:][:line])
			}
		}
		for _, head := range []int{0, headSize} {
			for n := range line - head + 1 {
				for _, size := range []int{n, line, 200} {
					for _, at := range []int{0, (size - n) / 2, size - n} {
						if at < 0 {
							continue
						}
						front, p, sum := from[:head], from[100:100+size], uint32(0x01020304*head)
						whole := slices.Concat(front, p[at:at+n], make([]byte, line-head-n))
						binary.LittleEndian.PutUint32(whole, binary.LittleEndian.Uint32(whole)^sum)
						clear(to[:3*line])
						store.line(to[line:2*line], front, p, at, n, sum)
						sfence()
						require.Equal(t, slices.Concat(make([]byte, line), whole, make([]byte, line)), to[:3*line], "%s: %d from %d of %d behind %d", name, n, at, size, head)
					}
				}
			}
		}
	}
}

// TestCopyOfAnything copies pieces of all alignments, through the caches and past them, in small and in large mappings.
func TestCopyOfAnything(t *testing.T) {
	from := make([]byte, 2*leastAside)
	for i := range from {
		from[i] = byte(i*7/3 + 1)
	}
	for _, p := range []processor{{}, {aside: movnt}, {aside: detect().aside}} {
		for _, size := range []int{1 << 20, largerThanCaches} {
			mapping := make([]byte, size)
			for at := range 70 {
				for _, n := range []int{1, 63, leastAside - 1, leastAside, leastAside + 1, leastAside + at, len(from)} {
					off := int64(8192 + at)
					around := mapping[off-64:][:n+128]
					clear(around)
					p.copy(mapping, off, from[:n])
					require.Equal(t, make([]byte, 64), around[:64])
					require.Equal(t, from[:n], around[64:64+n])
					require.Equal(t, make([]byte, 64), around[64+n:])
				}
			}
			end := int64(size - leastAside - 7)
			p.copy(mapping, end, from[:leastAside+7])
			require.Equal(t, from[:leastAside+7], mapping[end:])
		}
	}
}

// A processor flushes with the newest instruction that it reports, whatever else it reports.
func TestTheNewestInstructionIsChosen(t *testing.T) {
	const clflushBit, clflushoptBit, clwbBit = 1 << 19, 1 << 23, 1 << 24
	for _, c := range []struct {
		highest, basic, extended uint32
		want                     string
	}{
		{7, clflushBit, clwbBit | clflushoptBit, "CLWB"},
		{7, clflushBit, clwbBit, "CLWB"},
		{7, clflushBit, clflushoptBit, "CLFLUSHOPT"},
		{7, clflushBit, 0, "CLFLUSH"},
		{6, clflushBit, clwbBit | clflushoptBit, "CLFLUSH"}, // leaf 7 is nothing that it knows
		{8, clflushBit, clwbBit, "CLWB"},
		{7, ^uint32(clflushBit), 0, ""},
		{7, ^uint32(clflushBit), ^uint32(clflushoptBit | clwbBit), ""},
		{7, 0, ^uint32(clwbBit), "CLFLUSHOPT"},
		{7, clflushBit, ^uint32(clflushoptBit | clwbBit), "CLFLUSH"},
	} {
		p := choose(func(leaf uint32) (eax, ebx, edx uint32) {
			switch leaf {
			case 0:
				return c.highest, ^uint32(0), ^uint32(0)
			case 1:
				return ^uint32(0), ^uint32(0), c.basic
			case 7:
				return ^uint32(0), c.extended, ^uint32(0)
			}
			t.Fatalf("leaf %d", leaf)
			return 0, 0, 0
		}, vectors{})
		require.Equal(t, c.want, p.name, "%+v", c)
		require.Equal(t, c.want != "", p.flush != nil)
		require.Equal(t, c.want != "", p.aside != nil)
	}
}

// A line is assembled in a register and stored whole only if the processor has all the instructions for it.
func TestWiderStoresWantTheirInstructions(t *testing.T) {
	all := vectors{avx512f: true, avx512bw: true, avx512vbmi: true, bmi2: true}
	without := func(change func(has *vectors)) vectors { has := all; change(&has); return has }
	for name, c := range map[string]struct {
		has             vectors
		whole, register bool
	}{
		"all":                {all, true, true},
		"none":               {vectors{}, false, false},
		"AVX512F alone":      {vectors{avx512f: true}, true, false},
		"without AVX512F":    {without(func(has *vectors) { has.avx512f = false }), false, false},
		"without AVX512BW":   {without(func(has *vectors) { has.avx512bw = false }), true, false},
		"without AVX512VBMI": {without(func(has *vectors) { has.avx512vbmi = false }), true, false},
		"without BMI2":       {without(func(has *vectors) { has.bmi2 = false }), true, false},
	} {
		p := choose(cpuid, c.has)
		same := func(want, is any) {
			require.Equal(t, reflect.ValueOf(want).Pointer(), reflect.ValueOf(is).Pointer(), name)
		}
		same(map[bool]func(_, _ []byte){true: movnt512, false: movnt}[c.whole], p.aside)
		same(map[bool]edge{true: lineByBytes, false: lineByWords}[c.register], p.line)
	}
}

// Folding checksums needs all of its instructions.
func TestFoldingWantsItsInstructions(t *testing.T) {
	for n := range 8 {
		require.Equal(t, n == 7, folds(n&1 != 0, n&2 != 0, n&4 != 0), "%03b", n)
	}
	require.Equal(t, folds(cpu.X86.HasAVX512VPCLMULQDQ, cpu.X86.HasAVX512VL, cpu.X86.HasSSE42), canFold)
}

// Whole lines bypass the caches in pieces from 4 KiB on, in mappings from 16 MiB on.
func TestLargeCopiesGoPastTheCaches(t *testing.T) {
	var lines int
	p := processor{aside: func(to, from []byte) { lines += copy(to, from) / line }}
	const size = 16 << 20
	mapping, from := make([]byte, size), make([]byte, 8192)
	for _, c := range []struct{ size, off, n, want int }{
		{size, 0, 4096, 64},
		{size, 0, 4095, 0},
		{size - 1, 0, 8192, 0},
		{size, 64, 4096, 64},
		{size, 1, 4096, 63},
		{size, 63, 4097, 64},
		{size, 0, 4097, 64},
	} {
		lines = 0
		p.copy(mapping[:c.size], int64(c.off), from[:c.n])
		require.Equal(t, c.want, lines, "%+v", c)
	}
}

// A head and what follows it are stored as one line if they fill the line, alone or with their room; otherwise they are flushed.
func TestAHeadIsStoredAsALineOfItsOwn(t *testing.T) {
	var did []string
	p := processor{
		flush: func(p []byte) { did = append(did, fmt.Sprintf("flush %d", len(p))) },
		aside: func(to, from []byte) {
			if len(to) > 0 {
				did = append(did, fmt.Sprintf("aside %d", len(to)))
			}
		},
		line: func(_, head, _ []byte, from, n int, sum uint32) {
			if len(head) == 0 {
				require.Zero(t, sum, "there is nothing to combine it with")
			}
			did = append(did, fmt.Sprintf("line of %d and %d from %d", len(head), n, from))
		},
	}
	for _, c := range []struct {
		off     int64
		head, n int
		room    int64
		want    []string
	}{
		{0, 24, 40, 0, []string{"line of 24 and 40 from 0"}},
		{64, 24, 20, 20, []string{"line of 24 and 20 from 0"}},
		{64, 24, 20, 19, []string{"flush 44"}},
		{64, 24, 39, 1, []string{"line of 24 and 39 from 0"}},
		{64, 24, 39, 0, []string{"flush 63"}},
		{8, 24, 32, 0, []string{"flush 56"}},
		{8, 24, 0, 99, []string{"flush 24"}},
		{0, 23, 41, 0, []string{"flush 64"}},
		{0, 0, 64, 0, []string{"aside 64"}},
		{0, 0, 63, 1, []string{"line of 0 and 63 from 0"}},
		{0, 0, 63, 0, []string{"flush 63"}},
		{0, 24, 168, 0, []string{"aside 128", "line of 24 and 40 from 0"}},
		{0, 24, 178, 54, []string{"aside 128", "line of 0 and 10 from 168", "line of 24 and 40 from 0"}},
		{0, 24, 178, 53, []string{"aside 128", "flush 10", "line of 24 and 40 from 0"}},
	} {
		did = nil
		p.put(make([]byte, 1024), &chunk{off: c.off, head: make([]byte, c.head), p: make([]byte, c.n), room: c.room, seal: true})
		require.Equal(t, c.want, did, "%+v", c)
	}
}

// TestPrefetchOfAnything reaches no byte.
func TestPrefetchOfAnything(t *testing.T) {
	p := bytes.Repeat([]byte("abc"), 1000)
	for n := range 130 {
		prefetch(p[n:n])
		prefetch(p[n : 2*n])
	}
	require.Equal(t, bytes.Repeat([]byte("abc"), 1000), p)
}
