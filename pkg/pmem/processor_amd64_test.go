package pmem

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

const clflushBit, clflushoptBit, clwbBit = 1 << 19, 1 << 23, 1 << 24

// like returns the cpuid of a processor.
func like(t *testing.T, highest, basic, extended uint32) func(leaf uint32) (eax, ebx, edx uint32) {
	return func(leaf uint32) (eax, ebx, edx uint32) {
		switch leaf {
		case 0:
			return highest, ^uint32(0), ^uint32(0)
		case 1:
			return ^uint32(0), ^uint32(0), basic
		case 7:
			return ^uint32(0), extended, ^uint32(0)
		}
		t.Fatalf("leaf %d", leaf)
		return 0, 0, 0
	}
}

// A processor uses the newest instruction that it reports, whatever else it reports, and wider stores only if it has all instructions for them.
func TestTheNewestInstructionIsChosen(t *testing.T) {
	all := vectors{avx512f: true, avx512bw: true, avx512vbmi: true, bmi2: true}
	for _, c := range []struct {
		highest, basic, extended uint32
		has                      vectors
		want                     string
		aside                    func(to, from []byte)
		line                     edge
	}{
		{7, clflushBit, clwbBit | clflushoptBit, all, "CLWB", movnt512, lineByBytes},
		{7, clflushBit, clwbBit, vectors{}, "CLWB", movnt, lineByWords},
		{7, clflushBit, clflushoptBit, vectors{}, "CLFLUSHOPT", movnt, lineByWords},
		{7, clflushBit, 0, vectors{}, "CLFLUSH", movnt, lineByWords},
		{6, clflushBit, clwbBit | clflushoptBit, vectors{}, "CLFLUSH", movnt, lineByWords}, // leaf 7 is nothing that it knows
		{8, clflushBit, clwbBit, vectors{}, "CLWB", movnt, lineByWords},
		{7, 0, ^uint32(clwbBit), vectors{}, "CLFLUSHOPT", movnt, lineByWords},
		{7, clflushBit, ^uint32(clflushoptBit | clwbBit), vectors{}, "CLFLUSH", movnt, lineByWords},
		{7, ^uint32(clflushBit), 0, all, "", nil, nil},
		{7, ^uint32(clflushBit), ^uint32(clflushoptBit | clwbBit), all, "", nil, nil},
		{7, clflushBit, clwbBit, vectors{avx512f: true}, "CLWB", movnt512, lineByWords},
		{7, clflushBit, clwbBit, vectors{avx512bw: true, avx512vbmi: true, bmi2: true}, "CLWB", movnt, lineByWords},
		{7, clflushBit, clwbBit, vectors{avx512f: true, avx512vbmi: true, bmi2: true}, "CLWB", movnt512, lineByWords},
		{7, clflushBit, clwbBit, vectors{avx512f: true, avx512bw: true, bmi2: true}, "CLWB", movnt512, lineByWords},
		{7, clflushBit, clwbBit, vectors{avx512f: true, avx512bw: true, avx512vbmi: true}, "CLWB", movnt512, lineByWords},
	} {
		p := choose(like(t, c.highest, c.basic, c.extended), c.has)
		require.Equal(t, c.want, p.name, "%+v", c)
		require.Equal(t, c.want != "", p.flush != nil)
		require.Equal(t, reflect.ValueOf(c.aside).Pointer(), reflect.ValueOf(p.aside).Pointer(), "%+v", c)
		require.Equal(t, reflect.ValueOf(c.line).Pointer(), reflect.ValueOf(p.line).Pointer(), "%+v", c)
	}
}

// TestOlderProcessorsStoreTheSame has this processor store and flush by the instructions that are the best of older ones.
func TestOlderProcessorsStoreTheSame(t *testing.T) {
	_, extended, _ := cpuid(7)
	for name, bits := range map[string]uint32{"CLWB": clwbBit, "CLFLUSHOPT": clflushoptBit, "CLFLUSH": 0} {
		if extended&bits != bits {
			continue
		}
		f := create(t, t.TempDir(), 2*mostPut, CLWB)
		f.cpu = choose(like(t, 7, clflushBit, bits), vectors{})
		require.Equal(t, name, f.Instruction(line-1))
		require.Equal(t, "MOVNTDQ and "+name, f.Instruction(line))
		putsOfAllSizes(t, f, name)
	}
	large := create(t, t.TempDir(), largerThanCaches, None)
	require.NotNil(t, large.cpu.aside, "what is large goes past the caches")
	large.cpu.aside = movnt
	putsOfAllSizes(t, large, "a large file")
	for _, mode := range []Mode{Msync, Fdatasync} {
		f := create(t, t.TempDir(), 1, mode)
		require.Empty(t, f.Instruction(line), "what the kernel writes goes through them")
	}
}
