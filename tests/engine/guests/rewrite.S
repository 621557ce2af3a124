/* SPDX-License-Identifier: BSD-2-Clause */
/* rewrite: x86-64 code that writes into the page it runs from, a thousand times: 5004 instructions in all. */
	.globl	_start
	.section .text, "awx", @progbits
_start:
	mov	$1000, %ecx
1:	movb	%cl, patch + 1(%rip)
patch:	mov	$0, %al
	nop
	dec	%ecx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.section .note.GNU-stack, "", @progbits
