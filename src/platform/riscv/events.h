/* SPDX-License-Identifier: BSD-2-Clause */
/* Selectors of mhpmevent: names, and the signals behind them. */
#ifndef QUIPU_PLATFORM_RISCV_EVENTS_H
#define QUIPU_PLATFORM_RISCV_EVENTS_H

#include "platform/riscv/hart.h"

/* One selector that has a name. */
struct riscv_selector {
	uint64_t code;
	const char *name; /* as in sysfs events/ */
	const char *desc;
	struct riscv_count count; /* n = 0: nothing in the model drives it */
};

/* One block of selectors: codes are (prefix | row code). */
struct riscv_block {
	uint64_t prefix;
	const struct riscv_selector *rows;
	size_t n;
	bool masks; /* class in bits 7:0, any of bits 31:8 may be set together */
};

/* The selectors of one kind of CPU. */
struct riscv_events {
	const char *name;
	struct riscv_block block[4];
};

/* The table called @name ("generic", "qemu", "u74", "thead", "andes"), or NULL. */
const struct riscv_events *riscv_events_named(const char *name);
/* What @selector counts. False: the CPU does not know it. */
bool riscv_events_count(const struct riscv_events *, uint64_t selector, struct riscv_count *);
/*
 * Same, but only the signals that the engine has; false when the selector is unknown or a signal is
 * missing.
 */
bool riscv_events_modelled(const struct quipu_riscv *, uint64_t selector, struct riscv_count *);
/*
 * Why @selector cannot be counted on this machine as it runs now, in @buf; NULL when it can. The
 * text is a clause: "machine riscv models no L1D cache yet".
 */
const char *riscv_events_missing(const struct quipu_riscv *, uint64_t selector, char *buf,
				 size_t len);
/* The name of a general or cache event_idx or of a firmware code, "" when it has none. */
const char *riscv_event_idx_name(uint32_t event);
/* Names of the firmware events 0..21. */
#define RISCV_FW_EVENTS 22u
const char *riscv_firmware_event_name(unsigned code);

#endif
