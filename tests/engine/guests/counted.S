/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counted: a million rounds of a loop and an exit, without a library, so that every instruction is counted by hand.
 * With -DANNUL (sparc64) the loop's branch annuls its slot when it is not taken. With -DREP (x86-64) one `rep stosb` of
 * 1000 bytes instead, with -DSEARCH searches that end before their count, with it, or have none. With -DSPLIT (sparc64)
 * the slot of the loop's branch, and that of a call, lie on the next page.
 * With -DCROSS (x86-64) an instruction of the loop crosses into the next page.
 */
	.globl _start
	.text
#if defined(__riscv)
_start:
	lui	t0, 0xf4
	addi	t0, t0, 0x240
1:	addi	t0, t0, -1
	bnez	t0, 1b
	li	a0, 0
	li	a7, 93
	ecall
#elif defined(__powerpc64__)
	.abiversion 2
_start:
	lis	3, 0xf
	ori	3, 3, 0x4240
	mtctr	3
	li	4, 0
1:	addi	4, 4, 1
	bdnz	1b
	li	3, 0
	li	0, 1
	sc
#elif defined(__sparc__)
	.register %g2, #scratch
	.register %g3, #scratch
_start:
	sethi	%hi(1000000), %g2
	or	%g2, %lo(1000000), %g2
#ifdef SPLIT
	ba,a	3f
	.balign	8192
	.skip	8192 - 12
3:	nop
1:	subcc	%g2, 1, %g2
#ifdef ANNUL
	bne,a	1b
#else
	bne	1b
#endif
	nop				/* on the next page */
	ba,a	4f
	.balign	8192
	.skip	8192 - 4
4:	call	5f
	nop				/* on the next page */
	mov	0, %o0
	mov	1, %g1
	ta	0x6d
5:	retl
	nop
#else
1:	subcc	%g2, 1, %g2
#ifdef ANNUL
	bne,a	1b
#else
	bne	1b
#endif
	nop
	mov	0, %o0
	mov	1, %g1
	ta	0x6d
#endif
#elif defined(__x86_64__)
_start:
#ifdef REP
	lea	buffer(%rip), %rdi
	mov	$1000, %ecx
	xor	%eax, %eax
	rep stosb
#elif defined(SEARCH)
	lea	buffer(%rip), %rdi
	mov	$100, %ecx
	mov	$1, %eax
	repne scasb			/* not found: 100 */
	lea	buffer(%rip), %rdi
	mov	$100, %ecx
	movb	$1, 9(%rdi)
	repne scasb			/* the tenth: 10 */
	lea	buffer(%rip), %rdi
	lea	buffer + 100(%rip), %rsi
	mov	$50, %ecx
	repe cmpsb			/* the tenth differs: 10 */
	movb	$0, buffer + 9(%rip)
	lea	buffer(%rip), %rdi
	lea	buffer + 100(%rip), %rsi
	mov	$50, %ecx
	repe cmpsb			/* all alike: 50 */
	xor	%ecx, %ecx
	repne scasb			/* nothing to look at: 0 */
#elif defined(CROSS)
	mov	$1000000, %ecx
	jmp	1f
	.balign	4096
	.skip	4096 - 8
1:	add	$1, %rdx		/* 4 bytes */
	nop				/* 1 */
	mov	$0x12345678, %eax	/* 5: begins 3 bytes before the page's end */
	dec	%ecx
	jnz	1b
#else
	mov	$1000000, %ecx
1:	dec	%ecx
	jnz	1b
#endif
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.bss
buffer:	.skip	1000
#endif
#ifdef __ELF__
	.section .note.GNU-stack, "", %progbits
#endif
