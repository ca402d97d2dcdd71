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

// func movntFirst(to []byte, from *[64]byte, word uint64)
TEXT ·movntFirst(SB), NOSPLIT, $0-40
	MOVQ    to_base+0(FP), DI
	MOVQ    from+24(FP), SI
	MOVQ    word+32(FP), AX
	MOVQ    8(SI), BX
	MOVOU   16(SI), X1
	MOVOU   32(SI), X2
	MOVOU   48(SI), X3
	MOVNTIQ AX, (DI)
	MOVNTIQ BX, 8(DI)
	MOVNTO  X1, 16(DI)
	MOVNTO  X2, 32(DI)
	MOVNTO  X3, 48(DI)
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

// func movntFirst512(to []byte, from *[64]byte, word uint64)
TEXT ·movntFirst512(SB), NOSPLIT, $0-40
	MOVQ         to_base+0(FP), DI
	MOVQ         from+24(FP), SI
	MOVQ         word+32(FP), AX
	MOVL         $1, BX
	KMOVW        BX, K1
	VMOVDQU64    (SI), Z0
	VPBROADCASTQ AX, K1, Z0
	VMOVNTDQ     Z0, (DI)
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
