/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the firmware jumps to, in S-mode with paging off: a stack, the trap vector, start() of
 * bare.c. The trap vector saves what a C function may change.
 */
	.section .text.start, "ax"
	.globl	_start
_start:
	la	sp, stack_top
	la	t0, on_trap
	csrw	stvec, t0
	csrw	sie, zero
	la	t0, bss_start
	la	t1, bss_end
1:	bgeu	t0, t1, 2f
	sd	zero, 0(t0)
	addi	t0, t0, 8
	j	1b
2:	tail	start

	.macro	registers op
	\op	ra, 0(sp)
	\op	t0, 8(sp)
	\op	t1, 16(sp)
	\op	t2, 24(sp)
	\op	t3, 32(sp)
	\op	t4, 40(sp)
	\op	t5, 48(sp)
	\op	t6, 56(sp)
	\op	a0, 64(sp)
	\op	a1, 72(sp)
	\op	a2, 80(sp)
	\op	a3, 88(sp)
	\op	a4, 96(sp)
	\op	a5, 104(sp)
	\op	a6, 112(sp)
	\op	a7, 120(sp)
	.endm

	.p2align 2
on_trap:
	addi	sp, sp, -128
	registers sd
	csrr	a0, scause
	csrr	a1, sepc
	call	trap
	csrw	sepc, a0
	registers ld
	addi	sp, sp, 128
	sret

	.section .note.GNU-stack, "", @progbits
