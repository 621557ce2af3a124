/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registers: 64 rounds of a loop whose registers say where it is. No libc. In round i (from 0), A is
 * 5 i before `add` and 5 i + 5 behind it, B is 2 A behind `double`; C counts down from 64; P is the
 * address of a word that points to the next one, 4096 bytes further, of 64 in a ring, and the load
 * overwrites it. registers.py has the same in Python.
 */
	.data
	.balign	4096
ring:
	.set	i, 1
	.rept	63
	.quad	ring + 4096 * i
	.zero	4088
	.set	i, i + 1
	.endr
	.quad	ring
	.text
	.globl	_start, add, double, load, back, done
_start:
#if defined(__riscv)
	.option	norelax
	li	s2, 0
	li	s4, 64
	la	s5, ring
add:	addi	s2, s2, 5
double:	add	s3, s2, s2
load:	ld	s5, 0(s5)
	addi	s4, s4, -1
back:	bnez	s4, add
done:	li	a7, 94
	li	a0, 0
	ecall
#elif defined(__x86_64__)
	mov	$0, %r12d
	mov	$64, %ecx
	lea	ring(%rip), %rsi
add:	add	$5, %r12
double:	lea	(%r12,%r12), %r13
load:	mov	(%rsi), %rsi
	nop
back:	loop	add
done:	mov	$231, %eax
	mov	$0, %edi
	syscall
#else
	.abiversion 2
	li	14, 0
	li	16, 64
	mtctr	16
	lis	17, ring@highest
	ori	17, 17, ring@higher
	sldi	17, 17, 32
	oris	17, 17, ring@high
	ori	17, 17, ring@l
add:	addi	14, 14, 5
double:	add	15, 14, 14
load:	ld	17, 0(17)
	nop
back:	bdnz	add
done:	li	0, 234
	li	3, 0
	sc
#endif
