/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registers of user space as perf numbers them: bit i of perf_event_attr.sample_regs_user is
 * register i of the architecture's asm/perf_regs.h (Linux 6.12). sparc64 has none.
 */
#ifndef QUIPU_PERF_REGS_H
#define QUIPU_PERF_REGS_H

#include <stdint.h>

#include <quipu/machine.h>

#define QUIPU_PERF_REGS 48u /* most that an architecture has */

/* quipu_perf_reg_name - of register @i, as perf prints it; NULL: there is none such. */
const char *quipu_perf_reg_name(enum quipu_isa isa, unsigned i);
/* quipu_perf_regs_valid - the registers there are: valid bits of sample_regs_user and _intr. */
uint64_t quipu_perf_regs_valid(enum quipu_isa isa);
/*
 * quipu_perf_regs_given - those of them that samples of programs can have. Not x86's flags, which
 * QEMU does not keep between instructions, nor what only a kernel has.
 */
uint64_t quipu_perf_regs_given(enum quipu_isa isa);
/*
 * quipu_perf_regs_parse - "ip,sp,ax" (in any case) to a mask. 0, or -EINVAL: *@bad is the name that
 * is none (up to a comma, or the end of the text).
 */
int quipu_perf_regs_parse(enum quipu_isa isa, const char *list, uint64_t *mask, const char **bad);

#endif
