#include "textflag.h"

// Each pair multiplies the lower and the upper 8 bytes of 16, in bits from the lowest, that are followed by D bits: the remainders of x^(D+32) and x^(D-32),
// mirrored, times x.

// D = 2048
DATA ·by2048<>+0(SB)/8, $0x0dcb17aa4
DATA ·by2048<>+8(SB)/8, $0x0b9e02b86
GLOBL ·by2048<>(SB), RODATA|NOPTR, $16

// D = 1536
DATA ·by1536<>+0(SB)/8, $0x0a87ab8a8
DATA ·by1536<>+8(SB)/8, $0x0ab7aff2a
GLOBL ·by1536<>(SB), RODATA|NOPTR, $16

// D = 1024
DATA ·by1024<>+0(SB)/8, $0x06992cea2
DATA ·by1024<>+8(SB)/8, $0x00d3b6092
GLOBL ·by1024<>(SB), RODATA|NOPTR, $16

// D = 512
DATA ·by512<>+0(SB)/8, $0x0740eef02
DATA ·by512<>+8(SB)/8, $0x09e4addf8
GLOBL ·by512<>(SB), RODATA|NOPTR, $16

// D = 384, 256, 128, and 0, which is left out
DATA ·lanes<>+0(SB)/8, $0x01c291d04
DATA ·lanes<>+8(SB)/8, $0x1d82c63da
DATA ·lanes<>+16(SB)/8, $0x1384aa63a
DATA ·lanes<>+24(SB)/8, $0x0ba4fc28e
DATA ·lanes<>+32(SB)/8, $0x0f20c0dfe
DATA ·lanes<>+40(SB)/8, $0x14cd00bd6
DATA ·lanes<>+48(SB)/8, $0
DATA ·lanes<>+56(SB)/8, $0
GLOBL ·lanes<>(SB), RODATA|NOPTR, $64

// FOLD multiplies x by k and adds to; t is overwritten.
#define FOLD(x, k, t, to) \
	VPCLMULQDQ $0x00, k, x, t; \
	VPCLMULQDQ $0x11, k, x, x; \
	VPTERNLOGD $0x96, t, x, to

// func fold(crc uint32, p []byte) uint32
TEXT ·fold(SB), NOSPLIT, $0-36
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX

	VBROADCASTI32X4 ·by512<>(SB), Z19
	VMOVD           AX, X4
	VPXORQ          (SI), Z4, Z3
	CMPQ            CX, $256
	JCS             one

	VBROADCASTI32X4 ·by2048<>(SB), Z16
	VBROADCASTI32X4 ·by1536<>(SB), Z17
	VBROADCASTI32X4 ·by1024<>(SB), Z18
	VMOVDQA64       Z3, Z0
	VMOVDQU64       64(SI), Z1
	VMOVDQU64       128(SI), Z2
	VMOVDQU64       192(SI), Z3
	ADDQ            $256, SI
	SUBQ            $256, CX

four:
	CMPQ      CX, $256
	JCS       join
	VMOVDQU64 (SI), Z4
	VMOVDQU64 64(SI), Z5
	VMOVDQU64 128(SI), Z6
	VMOVDQU64 192(SI), Z7
	FOLD(Z0, Z16, Z8, Z4)
	FOLD(Z1, Z16, Z9, Z5)
	FOLD(Z2, Z16, Z10, Z6)
	FOLD(Z3, Z16, Z11, Z7)
	VMOVDQA64 Z4, Z0
	VMOVDQA64 Z5, Z1
	VMOVDQA64 Z6, Z2
	VMOVDQA64 Z7, Z3
	ADDQ      $256, SI
	SUBQ      $256, CX
	JMP       four

join:
	FOLD(Z0, Z17, Z8, Z3)
	FOLD(Z1, Z18, Z9, Z3)
	FOLD(Z2, Z19, Z10, Z3)
	JMP lines

one:
	ADDQ $64, SI
	SUBQ $64, CX

lines:
	CMPQ      CX, $64
	JCS       reduce
	VMOVDQU64 (SI), Z4
	FOLD(Z3, Z19, Z8, Z4)
	VMOVDQA64 Z4, Z3
	ADDQ      $64, SI
	SUBQ      $64, CX
	JMP       lines

reduce:
	VMOVDQU64       ·lanes<>(SB), Z16
	VEXTRACTI32X4   $3, Z3, X1
	VPCLMULQDQ      $0x00, Z16, Z3, Z4
	VPCLMULQDQ      $0x11, Z16, Z3, Z5
	VPXORQ          Z4, Z5, Z4
	VEXTRACTI64X4   $1, Z4, Y5
	VPXORQ          Y4, Y5, Y4
	VEXTRACTI32X4   $1, Y4, X5
	VPTERNLOGD      $0x96, X4, X5, X1
	VMOVQ           X1, R8
	VPEXTRQ         $1, X1, R9
	VZEROUPPER
	XORL            AX, AX
	CRC32Q          R8, AX
	CRC32Q          R9, AX

words:
	CMPQ   CX, $8
	JCS    bytes
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JMP    words

bytes:
	TESTQ  CX, CX
	JEQ    done
	CRC32B (SI), AX
	INCQ   SI
	DECQ   CX
	JMP    bytes

done:
	MOVL AX, ret+32(FP)
	RET
