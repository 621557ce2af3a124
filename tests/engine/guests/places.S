/* SPDX-License-Identifier: BSD-2-Clause */
/* places: each form of x86-64 that the decoder gives a place, from one register, so that where QEMU
 * accesses tells whether it is so (accesses.c). Without a library. */
	.globl _start
	.text

	.macro arithmetic op
	\op\()b	0x40(%rbx), %cl
	\op\()b	0x41(%rbx), %ah
	\op\()b	-0x42(%rbx), %r9b
	\op\()w	0x44(%rbx), %cx
	\op\()l	0x48(%rbx), %ecx
	\op\()q	0x148(%rbx), %r10
	.endm

	.macro single op
	movq	0x50(%rbx), %rdi
	\op\()ss 0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	\op\()sd 0x48(%rbx), %xmm9
	movq	0x50(%rbx), %rdi
	\op\()ps 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	\op\()pd -0x40(%rbx), %xmm9
	.endm

_start:
	lea	data+0x200(%rip), %rbx
	mov	%rbx, %r13
	mov	%rbx, %rbp
	.irp op, add, or, adc, sbb, and, sub, xor, cmp
	arithmetic \op
	.endr
	cmpb	%cl, 0x43(%rbx)
	cmpw	%cx, 0x46(%rbx)
	cmpl	%ecx, 0x4c(%rbx)
	cmpq	%rcx, 0x50(%rbx)
	cmpb	$1, 0x43(%rbx)
	cmpw	$1, 0x46(%rbx)
	cmpw	$0x1234, 0x46(%rbx)
	cmpl	$1, 0x4c(%rbx)
	cmpl	$0x12345, 0x4c(%rbx)
	cmpq	$1, 0x50(%rbx)
	cmpq	$0x12345, 0x50(%rbx)
	testb	%cl, 0x43(%rbx)
	testw	%cx, 0x46(%rbx)
	testl	%ecx, 0x4c(%rbx)
	testq	%rcx, 0x50(%rbx)
	testb	$1, 0x43(%rbx)
	testw	$1, 0x46(%rbx)
	testl	$1, 0x4c(%rbx)
	testq	$1, 0x50(%rbx)
	movb	0x43(%rbx), %dil
	movw	0x46(%rbx), %di
	movl	0x4c(%rbx), %edi
	movq	0x50(%rbx), %rdi
	movb	%dil, 0x43(%rbx)
	movb	%dh, 0x43(%rbx)
	movw	%di, 0x46(%rbx)
	movl	%edi, 0x4c(%rbx)
	movq	%rdi, 0x50(%rbx)
	movb	$1, 0x43(%rbx)
	movw	$1, 0x46(%rbx)
	movl	$1, 0x4c(%rbx)
	movq	$1, 0x50(%rbx)
	movnti	%edi, 0x4c(%rbx)
	movnti	%rdi, 0x50(%rbx)
	movzbw	0x43(%rbx), %di
	movzbl	0x43(%rbx), %edi
	movzwl	0x46(%rbx), %edi
	movzwq	0x46(%rbx), %rdi
	movsbw	0x43(%rbx), %di
	movsbl	0x43(%rbx), %edi
	movsbq	0x43(%rbx), %rdi
	movswl	0x46(%rbx), %edi
	movslq	0x4c(%rbx), %rdi
	imulw	0x46(%rbx), %di
	imull	0x4c(%rbx), %edi
	imulq	0x50(%rbx), %rdi
	imulw	$3, 0x46(%rbx), %di
	imull	$3, 0x4c(%rbx), %edi
	imulq	$300, 0x50(%rbx), %rdi
	mulb	0x43(%rbx)
	mulw	0x46(%rbx)
	imull	0x4c(%rbx)
	mulq	0x50(%rbx)
	xor	%edx, %edx
	mov	$1, %eax
	divb	0x43(%rbx)
	mov	$1, %eax
	divw	0x46(%rbx)
	xor	%edx, %edx
	idivl	0x4c(%rbx)
	xor	%edx, %edx
	divq	0x50(%rbx)
	cmp	%edx, %edx
	cmovew	0x46(%rbx), %di
	cmovel	0x4c(%rbx), %edi
	cmovneq	0x50(%rbx), %rdi
	cmovnel	0x4c(%rbx), %edi
	sete	0x43(%rbx)
	setne	0x43(%rbx)
	btw	$3, 0x46(%rbx)
	btl	$3, 0x4c(%rbx)
	btq	$35, 0x50(%rbx)
	bsfw	0x46(%rbx), %di
	bsfl	0x4c(%rbx), %edi
	bsrq	0x50(%rbx), %rdi
	popcntl	0x4c(%rbx), %edi
	popcntq	0x50(%rbx), %rdi
	/* r13 and rbp have encodings of their own */
	movq	0x50(%rbx), %rdi
	/* the stack */
	push	%rcx
	push	%r12
	push	$1
	push	$0x12345
	push	%rbp
	pop	%rdi
	pop	%rsi
	pop	%r12
	pop	%rcx
	movq	-8(%rsp), %rcx
	sub	$0x100, %rsp
	movq	%rcx, 0x10(%rsp)
	movq	%rcx, (%rsp)
	lea	0x40(%rsp), %rsp
	movq	-0x40(%rsp), %rcx
	add	$0xc0, %rsp
	pop	%rcx
	push	%rcx
	movq	0x50(%r13), %rdi
	movq	(%r13), %rdi
	add	$8, %r13
	movq	0x50(%r13), %rdi
	dec	%r13
	movq	(%r13), %rdi
	movq	(%rbp), %rdi
	inc	%rbp
	movq	-0x50(%rbp), %rdi
	sub	$-0x80, %rbp
	movq	-0x50(%rbp), %rdi
	/* SSE; where QEMU makes two of an access it is not the first one of a group, so that others are
	 * between */
	movq	0x50(%rbx), %rdi
	movss	0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movsd	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movups	0x47(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movaps	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movupd	0x47(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movapd	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movdqu	0x47(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movdqa	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movlps	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movlpd	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movhps	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movhpd	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movddup	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movsldup 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movshdup 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	lddqu	0x47(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movd	0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movq	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	.byte	0x66, 0x48, 0x0f, 0x6e, 0x4b, 0x48	/* movq 0x48(%rbx), %xmm1 */
	movq	0x50(%rbx), %rdi
	.byte	0x66, 0x48, 0x0f, 0x7e, 0x4b, 0x48	/* movq %xmm1, 0x48(%rbx) */
	movq	0x50(%rbx), %rdi
	pinsrw	$1, 0x46(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	movss	%xmm1, 0x44(%rbx)
	movq	0x50(%rbx), %rdi
	movsd	%xmm1, 0x48(%rbx)
	movq	0x50(%rbx), %rdi
	movups	%xmm1, 0x47(%rbx)
	movq	0x50(%rbx), %rdi
	movaps	%xmm1, 0x40(%rbx)
	movq	0x50(%rbx), %rdi
	movupd	%xmm1, 0x47(%rbx)
	movq	0x50(%rbx), %rdi
	movapd	%xmm1, 0x40(%rbx)
	movq	0x50(%rbx), %rdi
	movdqu	%xmm1, 0x47(%rbx)
	movq	0x50(%rbx), %rdi
	movdqa	%xmm1, 0x40(%rbx)
	movq	0x50(%rbx), %rdi
	movlps	%xmm1, 0x48(%rbx)
	movq	0x50(%rbx), %rdi
	movlpd	%xmm1, 0x48(%rbx)
	movq	0x50(%rbx), %rdi
	movhps	%xmm1, 0x48(%rbx)
	movq	0x50(%rbx), %rdi
	movhpd	%xmm1, 0x48(%rbx)
	movq	0x50(%rbx), %rdi
	movd	%xmm1, 0x44(%rbx)
	movq	0x50(%rbx), %rdi
	movq	%xmm1, 0x48(%rbx)
	movq	0x50(%rbx), %rdi
	movntps	%xmm1, 0x40(%rbx)
	movq	0x50(%rbx), %rdi
	movntpd	%xmm1, 0x40(%rbx)
	movq	0x50(%rbx), %rdi
	movntdq	%xmm1, 0x40(%rbx)
	.irp op, add, sub, mul, div, min, max, sqrt, cmpeq
	single \op
	.endr
	.irp op, and, andn, or, xor, unpckl, unpckh
	movq	0x50(%rbx), %rdi
	\op\()ps 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	\op\()pd 0x40(%rbx), %xmm1
	.endr
	movq	0x50(%rbx), %rdi
	rcpss	0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	rcpps	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	rsqrtss	0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	rsqrtps	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	shufps	$1, 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	shufpd	$1, 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	haddps	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	haddpd	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	hsubps	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	hsubpd	0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	addsubps 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	addsubpd 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	ucomiss	0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	ucomisd	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	comiss	0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	comisd	0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtsi2ssl 0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtsi2ssq 0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtsi2sdl 0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtsi2sdq 0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvttss2si 0x44(%rbx), %edi
	movq	0x50(%rbx), %rdi
	cvttsd2si 0x48(%rbx), %edi
	movq	0x50(%rbx), %rdi
	cvttss2si 0x44(%rbx), %rdi
	movq	0x50(%rbx), %rdi
	cvttsd2si 0x48(%rbx), %rdi
	movq	0x50(%rbx), %rdi
	cvtss2si 0x44(%rbx), %edi
	movq	0x50(%rbx), %rdi
	cvtsd2si 0x48(%rbx), %rdi
	movq	0x50(%rbx), %rdi
	cvtps2pd 0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtpd2ps 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtss2sd 0x44(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtsd2ss 0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtdq2ps 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtps2dq 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvttps2dq 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtdq2pd 0x48(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvtpd2dq 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	cvttpd2dq 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	pshufd	$1, 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	pshufhw	$1, 0x40(%rbx), %xmm1
	movq	0x50(%rbx), %rdi
	pshuflw	$1, 0x40(%rbx), %xmm1
	.irp op, punpcklbw, punpcklwd, punpckldq, punpcklqdq, packsswb, pcmpgtb, pcmpgtw, pcmpgtd, packuswb, punpckhbw, \
		punpckhwd, punpckhdq, punpckhqdq, packssdw, pcmpeqb, pcmpeqw, pcmpeqd, psrlw, psrld, psrlq, paddq, \
		pmullw, psubusb, psubusw, pminub, pand, paddusb, paddusw, pmaxub, pandn, pavgb, psraw, psrad, pavgw, \
		pmulhuw, pmulhw, psubsb, psubsw, pminsw, por, paddsb, paddsw, pmaxsw, pxor, psllw, pslld, psllq, \
		pmuludq, pmaddwd, psadbw, psubb, psubw, psubd, psubq, paddb, paddw, paddd
	movq	0x50(%rbx), %rdi
	\op	0x40(%rbx), %xmm1
	.endr
	/* x87 */
	.irp op, fadds, fmuls, fcoms, fcomps, fsubs, fsubrs, fdivs, fdivrs, flds, fsts, fstps, fiaddl, fimull, ficoml, \
		ficompl, fisubl, fisubrl, fidivl, fidivrl, fildl, fisttpl, fistl, fistpl
	\op	0x44(%rbx)
	.endr
	.irp op, faddl, fmull, fcoml, fcompl, fsubl, fsubrl, fdivl, fdivrl, fldl, fisttpll, fstl, fstpl, fildll, fistpll
	\op	0x48(%rbx)
	.endr
	.irp op, fiadds, fimuls, ficoms, ficomps, fisubs, fisubrs, fidivs, fidivrs, filds, fisttps, fists, fistps, fnstcw, \
		fldcw, fnstsw
	\op	0x46(%rbx)
	.endr
	movq	0x50(%rbx), %rdi
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.data
	.balign	64
data:	.fill	0x400, 1, 1
