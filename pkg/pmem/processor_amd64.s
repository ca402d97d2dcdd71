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

// func line512(to, head, p []byte, sum uint32)
TEXT ·line512(SB), NOSPLIT, $0-76
	MOVQ   to_base+0(FP), DI
	MOVQ   head_base+24(FP), SI
	MOVQ   head_len+32(FP), R8
	MOVQ   p_base+48(FP), DX
	MOVQ   p_len+56(FP), CX
	VPXORQ Z0, Z0, Z0
	TESTQ  CX, CX
	JEQ    head

	// of the bytes around p, those before and behind it are not loaded
	MOVQ       $-1, BX
	BZHIQ      CX, BX, BX
	SHLXQ      R8, BX, BX
	KMOVQ      BX, K1
	SUBQ       R8, DX
	VMOVDQU8.Z (DX), K1, Z0

head:
	TESTQ        R8, R8
	JEQ          store
	MOVL         sum+72(FP), AX
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
