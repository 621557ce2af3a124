/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop: a program without a libc whose every instruction can be counted by hand. tests/cli/counts.py works the same sums
 * out of the disassembly. Each loop_ function has one backward branch: its target is the top of the loop, the instruction
 * behind it the end, and the first `li` (lui and addi) the number of iterations, so that
 *
 *	instructions of a function = (start .. top) + iterations * (top .. end) + (end .. ret)
 *
 * By hand:       head  body  iterations  tail   instructions   loads    stores   conditional    taken
 *	loop_simple   2     2     1000000     1       2000003        0        0      1000000   999999
 *	loop_memory   4     6      100000     1        600005   100000   100000       100000    99999
 *	loop_muldiv   4     4       50000     1        200005        0        0        50000    49999
 *	loop_calls    3     4       20000     2         80005        0        0        20000    19999
 *	leaf               2       20000                40000
 *	_start        7, the last of them the ecall that ends the program: it traps and does not retire, so 6
 *
 * Whole program: 2000003 + 600005 + 200005 + 80005 + 40000 + 6 = 2920024 retired instructions. Calls: 4 of _start and
 * 20000 of leaf; as many returns. Branches, which are all control transfers: 1170000 conditional + 20004 calls + 20004
 * returns = 1210008. Cycles with the default costs: 2920024, and 2 more for each mul, 19 more for each divu, and 1 for
 * the ecall, which takes time though it does not retire: 2920024 + 50000 * 21 + 1 = 3970025.
 * Nothing here is compressed (norvc), so that one line is one instruction of 4 bytes, and no li needs more than two.
 */
	.option	norvc
	.option norelax
	.text

	.macro	function name
	.globl	\name
	.type	\name, @function
	.p2align 2
\name:
	.endm

	.macro	endfunction name
	.size	\name, . - \name
	.endm

	function loop_simple
	li	t0, 1000000		/* lui, addi */
.Lsimple_top:
	addi	t0, t0, -1
	bnez	t0, .Lsimple_top
.Lsimple_end:
	ret
	endfunction loop_simple

	function loop_memory
	li	t0, 100000		/* lui, addi */
	lla	t1, cell		/* auipc, addi */
.Lmemory_top:
	ld	t2, 0(t1)
	addi	t2, t2, 1
	xor	t3, t2, t0
	sd	t2, 0(t1)
	addi	t0, t0, -1
	bnez	t0, .Lmemory_top
.Lmemory_end:
	ret
	endfunction loop_memory

	function loop_muldiv
	li	t0, 50000		/* lui, addi */
	li	t1, 3
	li	t2, 7
.Lmuldiv_top:
	mul	t3, t0, t1
	divu	t4, t3, t2
	addi	t0, t0, -1
	bnez	t0, .Lmuldiv_top
.Lmuldiv_end:
	ret
	endfunction loop_muldiv

	function loop_calls
	li	t0, 20000		/* lui, addi */
	mv	t1, ra
.Lcalls_top:
	jal	ra, leaf
	addi	t0, t0, -1
	nop
	bnez	t0, .Lcalls_top
.Lcalls_end:
	mv	ra, t1
	ret
	endfunction loop_calls

	function leaf
	addi	t2, t2, 1
	ret
	endfunction leaf

	function _start
	jal	ra, loop_simple
	jal	ra, loop_memory
	jal	ra, loop_muldiv
	jal	ra, loop_calls
	li	a0, 0
	li	a7, 93			/* exit */
	ecall
	endfunction _start

	.bss
	.p2align 3
cell:
	.zero	8
	.size	cell, 8

	.section .note.GNU-stack, "", @progbits
