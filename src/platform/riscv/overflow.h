/* SPDX-License-Identifier: BSD-2-Clause */
/* What the SBI driver makes of one event at its overflow; see overflow.c. */
#ifndef QUIPU_PLATFORM_RISCV_OVERFLOW_H
#define QUIPU_PLATFORM_RISCV_OVERFLOW_H

#include <stdint.h>

#include <quipu/reload.h>

/*
 * quipu_riscv_overflow - the counter of the event behind @r has just overflowed, with no skid, at
 * @now_ns of its CPU's clock. Updates @r as the driver's interrupt handler will and returns the
 * counts to the counter's next overflow.
 */
uint64_t quipu_riscv_overflow(struct quipu_reload *r, uint64_t now_ns);

#endif
