#include "textflag.h"

// func cpuid(leaf uint32) (eax, ebx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-20
	MOVL leaf+0(FP), AX
	XORL CX, CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL DX, edx+16(FP)
	RET

// func clwb(p []byte)
TEXT ·clwb(SB), NOSPLIT, $0-24
	MOVQ p_base+0(FP), AX
	MOVQ p_len+8(FP), BX
	ADDQ AX, BX
	ANDQ $~63, AX

next:
	CLWB (AX)
	ADDQ $64, AX
	CMPQ AX, BX
	JCS  next
	RET

// func clflushopt(p []byte)
TEXT ·clflushopt(SB), NOSPLIT, $0-24
	MOVQ p_base+0(FP), AX
	MOVQ p_len+8(FP), BX
	ADDQ AX, BX
	ANDQ $~63, AX

next:
	CLFLUSHOPT (AX)
	ADDQ       $64, AX
	CMPQ       AX, BX
	JCS        next
	RET

// func clflush(p []byte)
TEXT ·clflush(SB), NOSPLIT, $0-24
	MOVQ p_base+0(FP), AX
	MOVQ p_len+8(FP), BX
	ADDQ AX, BX
	ANDQ $~63, AX

next:
	CLFLUSH (AX)
	ADDQ    $64, AX
	CMPQ    AX, BX
	JCS     next
	RET

// func movnt(to, from []byte)
TEXT ·movnt(SB), NOSPLIT, $0-48
	MOVQ to_base+0(FP), DI
	MOVQ to_len+8(FP), CX
	MOVQ from_base+24(FP), SI
	ADDQ DI, CX
	CMPQ DI, CX
	JEQ  done

next:
	MOVOU  (SI), X0
	MOVOU  16(SI), X1
	MOVOU  32(SI), X2
	MOVOU  48(SI), X3
	MOVNTO X0, (DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ   $64, SI
	ADDQ   $64, DI
	CMPQ   DI, CX
	JCS    next

done:
	RET

// func movntWords(to []byte, from *[64]byte)
TEXT ·movntWords(SB), NOSPLIT, $0-32
	MOVQ    to_base+0(FP), DI
	MOVQ    from+24(FP), SI
	MOVQ    (SI), AX
	MOVQ    8(SI), BX
	MOVQ    16(SI), CX
	MOVQ    24(SI), DX
	MOVQ    32(SI), R8
	MOVQ    40(SI), R9
	MOVQ    48(SI), R10
	MOVQ    56(SI), R11
	MOVNTIQ AX, (DI)
	MOVNTIQ BX, 8(DI)
	MOVNTIQ CX, 16(DI)
	MOVNTIQ DX, 24(DI)
	MOVNTIQ R8, 32(DI)
	MOVNTIQ R9, 40(DI)
	MOVNTIQ R10, 48(DI)
	MOVNTIQ R11, 56(DI)
	RET

// func movnt512(to, from []byte)
TEXT ·movnt512(SB), NOSPLIT, $0-48
	MOVQ to_base+0(FP), DI
	MOVQ to_len+8(FP), CX
	MOVQ from_base+24(FP), SI

four:
	CMPQ      CX, $256
	JCS       lines
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVNTDQ  Z0, (DI)
	VMOVNTDQ  Z1, 64(DI)
	VMOVNTDQ  Z2, 128(DI)
	VMOVNTDQ  Z3, 192(DI)
	ADDQ      $256, SI
	ADDQ      $256, DI
	SUBQ      $256, CX
	JMP       four

lines:
	TESTQ     CX, CX
	JEQ       done
	VMOVDQU64 (SI), Z0
	VMOVNTDQ  Z0, (DI)
	ADDQ      $64, SI
	ADDQ      $64, DI
	SUBQ      $64, CX
	JMP       lines

done:
	VZEROUPPER
	RET

// the bytes 0 to 63
DATA ·indices<>+0(SB)/8, $0x0706050403020100
DATA ·indices<>+8(SB)/8, $0x0f0e0d0c0b0a0908
DATA ·indices<>+16(SB)/8, $0x1716151413121110
DATA ·indices<>+24(SB)/8, $0x1f1e1d1c1b1a1918
DATA ·indices<>+32(SB)/8, $0x2726252423222120
DATA ·indices<>+40(SB)/8, $0x2f2e2d2c2b2a2928
DATA ·indices<>+48(SB)/8, $0x3736353433323130
DATA ·indices<>+56(SB)/8, $0x3f3e3d3c3b3a3938
GLOBL ·indices<>(SB), RODATA|NOPTR, $64

// func line512(to, head, p []byte, from, n int, sum uint32)
TEXT ·line512(SB), NOSPLIT, $0-92
	MOVQ   to_base+0(FP), DI
	MOVQ   head_base+24(FP), SI
	MOVQ   head_len+32(FP), R8
	MOVQ   p_base+48(FP), DX
	MOVQ   from+72(FP), R9
	MOVQ   n+80(FP), CX
	VPXORQ Z0, Z0, Z0
	TESTQ  CX, CX
	JEQ    head

	// byte i of the line is byte i+R9-R8 of 64 at p
	MOVQ         $-1, BX
	BZHIQ        CX, BX, BX
	SHLXQ        R8, BX, BX
	KMOVQ        BX, K1
	SUBQ         R8, R9
	VPBROADCASTB R9, Z1
	VPADDB       ·indices<>(SB), Z1, Z1
	VPERMB.Z     (DX), Z1, K1, Z0

head:
	TESTQ        R8, R8
	JEQ          store
	MOVL         sum+88(FP), AX
	XORQ         (SI), AX
	MOVL         $1, BX
	KMOVQ        BX, K1
	VPBROADCASTQ AX, K1, Z0
	MOVQ         8(SI), AX
	MOVL         $2, BX
	KMOVQ        BX, K1
	VPBROADCASTQ AX, K1, Z0
	MOVQ         16(SI), AX
	MOVL         $4, BX
	KMOVQ        BX, K1
	VPBROADCASTQ AX, K1, Z0

store:
	VMOVNTDQ Z0, (DI)
	VZEROUPPER
	RET

// func prefetch(p []byte)
TEXT ·prefetch(SB), NOSPLIT, $0-24
	MOVQ p_base+0(FP), AX
	MOVQ p_len+8(FP), BX
	ADDQ AX, BX

next:
	CMPQ       AX, BX
	JCC        done
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	JMP        next

done:
	RET

// func sfence()
TEXT ·sfence(SB), NOSPLIT, $0-0
	SFENCE
	LOCK
	ADDL $0, 0(SP)
	RET

// func store8(p *byte, v uint64)
TEXT ·store8(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), BX
	MOVQ BX, (AX)
	RET
