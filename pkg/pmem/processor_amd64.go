package pmem

import (
	"encoding/binary"

	"golang.org/x/sys/cpu"
)

// vectors are instructions whose registers the kernel has to support, so that CPUID alone does not say whether they can be used.
type vectors struct{ avx512f, avx512bw, avx512vbmi, bmi2 bool }

// permute reports whether the instructions of line512 are available.
func (v vectors) permute() bool { return v.avx512f && v.avx512bw && v.avx512vbmi && v.bmi2 }

// detect returns this processor's best method.
func detect() processor {
	x := &cpu.X86
	return choose(cpuid, vectors{x.HasAVX512F, x.HasAVX512BW, x.HasAVX512VBMI, x.HasBMI2})
}

// choose returns the best method for a processor, given its cpuid. The bits are in Intel SDM, volume 2A, CPUID.
func choose(cpuid func(leaf uint32) (eax, ebx, edx uint32), has vectors) processor {
	const (
		clflushBit    = 1 << 19 // leaf 1, EDX
		clflushoptBit = 1 << 23 // leaf 7, EBX
		clwbBit       = 1 << 24
	)
	highest, _, _ := cpuid(0)
	var extended uint32
	if highest >= 7 {
		_, extended, _ = cpuid(7)
	}
	_, _, basic := cpuid(1)
	p := processor{past: "MOVNTDQ", aside: movnt, line: lineByWords, store8: store8, fence: sfence}
	if has.avx512f {
		p.aside = movnt512
	}
	if has.permute() {
		p.line = lineByBytes
	}
	switch {
	case extended&clwbBit != 0:
		p.name, p.flush = "CLWB", clwb
	case extended&clflushoptBit != 0:
		p.name, p.flush = "CLFLUSHOPT", clflushopt
	case basic&clflushBit != 0:
		p.name, p.flush = "CLFLUSH", clflush
	default:
		return processor{}
	}
	return p
}

// cpuid executes CPUID for a leaf, with ECX = 0.
func cpuid(leaf uint32) (eax, ebx, edx uint32)

// clwb executes CLWB on each 64-byte line of p.
//
//go:noescape
func clwb(p []byte)

// clflushopt executes CLFLUSHOPT on each 64-byte line of p.
//
//go:noescape
func clflushopt(p []byte)

// clflush executes CLFLUSH on each 64-byte line of p.
//
//go:noescape
func clflush(p []byte)

// movnt executes MOVNTDQ on each 16 bytes of to, which begins and ends with a 64-byte line.
//
//go:noescape
func movnt(to, from []byte)

// lineByWords is an edge that assembles the line in memory. Each of its words is stored there whole, so no load has to wait.
func lineByWords(to, head, p []byte, from, n int, sum uint32) {
	var all [line]byte
	copy(all[copy(all[:], head):], p[from:from+n])
	binary.LittleEndian.PutUint64(all[:], binary.LittleEndian.Uint64(all[:])^uint64(sum))
	movntWords(to, &all)
}

// lineByBytes is an edge that assembles the line in a register, from 64 bytes of p around the wanted ones: a load past the end of the caller's bytes
// is slow where there is no page.
func lineByBytes(to, head, p []byte, from, n int, sum uint32) {
	if n > 0 && len(p) < line {
		lineByWords(to, head, p, from, n, sum)
		return
	}
	begin := min(from, max(0, len(p)-line))
	line512(to, head, p[begin:], from-begin, n, sum)
}

// movntWords executes MOVNTI for each 8 bytes of from. to begins with a 64-byte line.
//
//go:noescape
func movntWords(to []byte, from *[line]byte)

// movnt512 is movnt with a whole line at once.
//
//go:noescape
func movnt512(to, from []byte)

// line512 executes VMOVNTDQ for head, of 0 or 24 bytes, with sum combined into its first 4 bytes by XOR, then n of the first 64 bytes of p from index
// from on, then zeros.
//
//go:noescape
func line512(to, head, p []byte, from, n int, sum uint32)

// prefetch executes PREFETCHT0 on each 64-byte line of p.
//
//go:noescape
func prefetch(p []byte)

// sfence executes SFENCE, which keeps later stores behind the flushes, and a locked instruction, which the processor completes only after the
// flushes. Without it, the processor runs on, and the next time read is that of a write still under way.
func sfence()

// store8 executes MOVQ. The locked instruction of package sync/atomic would wait for the flushes before it.
//
//go:noescape
func store8(p *byte, v uint64)
