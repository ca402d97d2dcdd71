package pmem

// detect returns the best way of this processor. Where the bits are: Intel SDM, volume 2A, CPUID.
func detect() processor {
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
	switch {
	case extended&clwbBit != 0:
		return processor{"CLWB", clwb, "MOVNTDQ", movnt, store8, sfence}
	case extended&clflushoptBit != 0:
		return processor{"CLFLUSHOPT", clflushopt, "MOVNTDQ", movnt, store8, sfence}
	case basic&clflushBit != 0:
		return processor{"CLFLUSH", clflush, "MOVNTDQ", movnt, store8, sfence}
	}
	return processor{}
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

// sfence executes SFENCE, which keeps later stores behind the flushes, and a locked instruction, which the processor does not complete before
// them: without it, it goes on meanwhile, and the time that is read next is that of a write that is still under way.
func sfence()

// store8 executes MOVQ, where package sync/atomic has a locked instruction that would wait for the flushes before it.
//
//go:noescape
func store8(p *byte, v uint64)
