package pmem

import "golang.org/x/sys/cpu"

// canFold reports whether this processor has the instructions of fold.
var canFold = cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasAVX512VL && cpu.X86.HasSSE42

// fold takes the inverted CRC32C of the bytes before p, which has at least 64 bytes, and returns it extended by p. It multiplies 256 bytes at once by
// powers of x modulo the polynomial, which keeps their remainder (Gopal et al.: Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction, Intel, 2009).
//
//go:noescape
func fold(crc uint32, p []byte) uint32
