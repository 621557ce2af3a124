/* SPDX-License-Identifier: BSD-2-Clause */
/* access: 300 loads, 100 stores, an amoadd, an lr and an sc, without a library: counted by hand. */
	.globl _start
	.text
_start:
	lla	t1, word
	li	t0, 100
1:	ld	t2, 0(t1)
	lw	t2, 0(t1)
	lb	t2, 0(t1)
	sd	t2, 0(t1)
	addi	t0, t0, -1
	bnez	t0, 1b
	amoadd.d t2, t0, (t1)
2:	lr.d	t2, (t1)
	sc.d	t3, t2, (t1)
	bnez	t3, 2b
	li	a0, 0
	li	a7, 93
	ecall
	.data
	.balign	8
word:	.quad	0
