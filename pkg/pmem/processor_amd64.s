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

// func sfence()
TEXT ·sfence(SB), NOSPLIT, $0-0
	SFENCE
	RET
