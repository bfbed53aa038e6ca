#include "textflag.h"

// The next round key of X0 (FIPS 197, 5.2), stored at off(DI).
#define EXPAND(rcon, off) \
	AESKEYGENASSIST $rcon, X0, X1; \
	PSHUFD $0xff, X1, X1; \
	MOVO X0, X2; \
	PSLLDQ $4, X2; PXOR X2, X0; \
	PSLLDQ $4, X2; PXOR X2, X0; \
	PSLLDQ $4, X2; PXOR X2, X0; \
	PXOR X1, X0; \
	MOVOU X0, off(DI)

// func aesExpand(key *[16]byte, keys *[176]byte)
TEXT ·aesExpand(SB), NOSPLIT, $0-16
	MOVQ key+0(FP), SI
	MOVQ keys+8(FP), DI
	MOVOU (SI), X0
	MOVOU X0, (DI)
	EXPAND(1, 16)
	EXPAND(2, 32)
	EXPAND(4, 48)
	EXPAND(8, 64)
	EXPAND(16, 80)
	EXPAND(32, 96)
	EXPAND(64, 112)
	EXPAND(128, 128)
	EXPAND(27, 144)
	EXPAND(54, 160)
	RET

// Round keys at DI to X1 … X11.
#define LOADKEYS \
	MOVOU (DI), X1; \
	MOVOU 16(DI), X2; \
	MOVOU 32(DI), X3; \
	MOVOU 48(DI), X4; \
	MOVOU 64(DI), X5; \
	MOVOU 80(DI), X6; \
	MOVOU 96(DI), X7; \
	MOVOU 112(DI), X8; \
	MOVOU 128(DI), X9; \
	MOVOU 144(DI), X10; \
	MOVOU 160(DI), X11

// The block encryption of X12.
#define ENCRYPT \
	PXOR X1, X12; \
	AESENC X2, X12; \
	AESENC X3, X12; \
	AESENC X4, X12; \
	AESENC X5, X12; \
	AESENC X6, X12; \
	AESENC X7, X12; \
	AESENC X8, X12; \
	AESENC X9, X12; \
	AESENC X10, X12; \
	AESENCLAST X11, X12

// func aesEncrypt(keys *[176]byte, iv *[16]byte, b []byte)
TEXT ·aesEncrypt(SB), NOSPLIT, $0-40
	MOVQ keys+0(FP), DI
	MOVQ iv+8(FP), DX
	MOVQ b_base+16(FP), SI
	MOVQ b_len+24(FP), CX
	TESTQ CX, CX
	JZ none
	LOADKEYS
	MOVOU (DX), X0 // the window; it never leaves the register

next:
	MOVO X0, X12
	MOVBLZX (SI), AX
	MOVQ AX, X13
	PSRLDQ $1, X0
	ENCRYPT
	PXOR X13, X12
	MOVQ X12, AX
	MOVB AX, (SI)
	PSLLDQ $15, X12 // the new cipher byte enters the window at its end
	PXOR X12, X0
	INCQ SI
	DECQ CX
	JNZ next
	MOVOU X0, (DX)

none:
	RET

// func aesDecrypt(keys *[176]byte, w []byte)
TEXT ·aesDecrypt(SB), NOSPLIT, $0-32
	MOVQ keys+0(FP), DI
	MOVQ w_base+8(FP), SI
	MOVQ w_len+16(FP), CX
	SUBQ $16, CX
	JLE nothing
	LOADKEYS
	ADDQ CX, SI // the window of the last byte

before:
	MOVOU -1(SI), X12
	ENCRYPT
	MOVQ X12, AX
	XORB AX, 15(SI)
	DECQ SI
	DECQ CX
	JNZ before

nothing:
	RET
