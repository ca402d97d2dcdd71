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
		return processor{name: "CLWB", flush: clwb, fence: sfence}
	case extended&clflushoptBit != 0:
		return processor{name: "CLFLUSHOPT", flush: clflushopt, fence: sfence}
	case basic&clflushBit != 0:
		return processor{name: "CLFLUSH", flush: clflush, fence: sfence}
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

// sfence executes SFENCE.
func sfence()
