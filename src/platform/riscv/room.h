/* SPDX-License-Identifier: BSD-2-Clause */
/* The RISC-V room's entry in the table of rooms, and what tests look at inside it. */
#ifndef QUIPU_PLATFORM_RISCV_ROOM_H
#define QUIPU_PLATFORM_RISCV_ROOM_H

#include <quipu/platform.h>
#include <quipu/riscv.h>

extern const struct quipu_platform quipu_platform_riscv;

struct sbi_driver;
/* Inside of a room made by quipu_platform_riscv.create; NULL when it has no such part. */
struct quipu_riscv *riscv_room_harts(void *self);
struct sbi_driver *riscv_room_sbi(void *self);

/* The first @n events of a table with owned strings. */
void riscv_events_free(struct quipu_pmu_event *, size_t n);

#endif
