/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Repeated instructions of x86-64 that signals come into: each of five kinds over the same bytes,
 * ROUNDS times, while an interval timer rings, or does not (with an argument nothing rings). Prints
 * the number of signals, sixteen digits. A signal costs four instructions (inc, ret, mov, syscall),
 * two loads (inc, ret) and a store (inc).
 */
#define BYTES  (1 << 20)
#define ROUNDS 5

	.text
	.globl _start
_start:
	mov	(%rsp), %rbp		/* argc */
	mov	$13, %eax		/* rt_sigaction(SIGALRM) */
	mov	$14, %edi
	lea	action(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	lea	never(%rip), %rsi
	lea	often(%rip), %rax
	cmp	$1, %rbp
	cmove	%rax, %rsi
	mov	$38, %eax		/* setitimer(ITIMER_REAL) */
	xor	%edi, %edi
	xor	%edx, %edx
	syscall
	mov	$ROUNDS, %ebx
	cld
1:	lea	from(%rip), %rsi
	lea	to(%rip), %rdi
	mov	$BYTES, %ecx
	rep movsb
	lea	to(%rip), %rdi
	mov	$BYTES, %ecx
	mov	$1, %eax
	rep stosb
	lea	from(%rip), %rsi
	mov	$BYTES, %ecx
	rep lodsb
	lea	to(%rip), %rdi
	mov	$BYTES, %ecx
	mov	$2, %eax
	repne scasb			/* is not there */
	lea	from(%rip), %rsi
	lea	from(%rip), %rdi
	mov	$BYTES, %ecx
	repe cmpsb			/* all are equal */
	dec	%ebx
	jnz	1b
	mov	$38, %eax
	xor	%edi, %edi
	lea	never(%rip), %rsi
	xor	%edx, %edx
	syscall
	mov	count(%rip), %rax
	lea	text+16(%rip), %rdi
	lea	digits(%rip), %rsi
	mov	$16, %ecx
2:	mov	%eax, %edx
	and	$15, %edx
	mov	(%rsi,%rdx), %dl
	dec	%rdi
	mov	%dl, (%rdi)
	shr	$4, %rax
	dec	%ecx
	jnz	2b
	mov	$1, %eax		/* write */
	mov	$1, %edi
	lea	text(%rip), %rsi
	mov	$17, %edx
	syscall
	mov	$231, %eax		/* exit_group */
	xor	%edi, %edi
	syscall

handler:
	incq	count(%rip)
	ret
restorer:
	mov	$15, %eax
	syscall

	.data
	.balign	8
action:	.quad	handler, 0x04000000, restorer, 0 /* SA_RESTORER */
often:	.quad	0, 700, 0, 700		/* microseconds */
never:	.quad	0, 0, 0, 0
count:	.quad	0
digits:	.ascii	"0123456789abcdef"
text:	.ascii	"0000000000000000\n"
	.bss
	.balign	4096
from:	.skip	BYTES
to:	.skip	BYTES
	.section .note.GNU-stack, "", @progbits
