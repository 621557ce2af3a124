/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The harts of a machine: made from its tree, reset, booted; the memory they share with the
 * supervisor; a description for a person. quipu/riscv.h documents the interface.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform/riscv/events.h"
#include "platform/riscv/hart.h"

/*
 * The supervisor's memory starts where firmware usually leaves off; what lies below is M-mode's
 * alone.
 */
#define MEMORY_BASE  UINT64_C(0x80200000)
#define MEMORY_PAGE  4096u
#define MEMORY_EXTRA 16u

static int make_harts(struct quipu_riscv *rv, struct quipu_notes *notes)
{
	rv->harts = calloc(rv->nharts, sizeof(*rv->harts));
	rv->firmware = calloc(rv->nharts, sizeof(*rv->firmware));
	rv->memory_size = (uint64_t)(rv->nharts + MEMORY_EXTRA) * MEMORY_PAGE;
	rv->memory = calloc(1, rv->memory_size);
	if (!rv->harts || !rv->firmware || !rv->memory)
		return -1;
	for (unsigned i = 0; i < rv->nharts; i++) {
		struct hart *h = &rv->harts[i];

		h->set = rv;
		h->number = i;
		h->id = rv->machine->cpus[i].reg;
		if (riscv_tree_hart(rv, h, notes))
			return -1;
	}
	return 0;
}

/* Logical counters: hardware 0 to the highest that exists, at least cycle, time and instret. */
static unsigned count_hardware(const struct hart *h)
{
	return 32 - (unsigned)__builtin_clz(h->implemented);
}

struct quipu_riscv *quipu_riscv_new(const struct quipu_machine *machine,
				    struct quipu_signals *signals, struct quipu_notes *notes)
{
	struct quipu_riscv *rv = calloc(1, sizeof(*rv));

	if (!rv)
		return NULL;
	rv->machine = machine;
	rv->signals = signals;
	rv->nharts = machine->ncpus;
	rv->memory_base = MEMORY_BASE;
	hart_csr_index(rv);
	if (riscv_tree_config(rv, notes) || make_harts(rv, notes) || riscv_tree_tables(rv, notes)) {
		quipu_riscv_free(rv);
		return NULL;
	}
	rv->num_hw = count_hardware(&rv->harts[0]);
	for (unsigned i = 0; i < rv->nharts; i++) {
		hart_reset(&rv->harts[i]);
		firmware_boot(rv, i);
	}
	return rv;
}

void quipu_riscv_free(struct quipu_riscv *rv)
{
	if (!rv)
		return;
	for (unsigned i = 0; rv->harts && i < rv->nharts; i++)
		if (rv->harts[i].set)
			hart_disarm(&rv->harts[i]);
	riscv_tree_free(&rv->tables);
	free(rv->harts);
	free(rv->firmware);
	free(rv->memory);
	free(rv);
}

unsigned quipu_riscv_harts(const struct quipu_riscv *rv)
{
	return rv->nharts;
}

void *quipu_riscv_memory(struct quipu_riscv *rv, uint64_t addr, uint64_t len)
{
	if (addr < rv->memory_base || len > rv->memory_size ||
	    addr - rv->memory_base > rv->memory_size - len)
		return NULL;
	return rv->memory + (addr - rv->memory_base);
}

uint64_t quipu_riscv_memory_base(const struct quipu_riscv *rv)
{
	return rv->memory_base;
}

uint64_t quipu_riscv_memory_size(const struct quipu_riscv *rv)
{
	return rv->memory_size;
}

/* ---- description ---- */

struct describe {
	void (*fn)(void *arg, unsigned depth, const char *line);
	void *arg;
};

static void __attribute__((format(printf, 3, 4)))
say(const struct describe *d, unsigned depth, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	d->fn(d->arg, depth, line);
}

static void describe_counters(const struct quipu_riscv *rv, const struct describe *d)
{
	const struct hart *h = &rv->harts[0];
	uint32_t programmable = h->implemented & HART_PROGRAMMABLE;
	bool legacy = rv->config.driver == RISCV_DRIVER_LEGACY;

	say(d, 1, "fixed counters: cycle and instret, 64 bits%s",
	    h->extensions & EXT_INHIBIT ? "" : ", always running");
	if (programmable && !legacy)
		say(d, 1,
		    "programmable counters: %u (mask 0x%08" PRIx32
		    "), %u bits each, selectors: table \"%s\"",
		    bits_count(programmable), programmable, h->width, rv->events->name);
	say(d, 1, "overflow interrupt and privilege filter: %s",
	    h->extensions & EXT_SSCOFPMF ? "yes (Sscofpmf)"
					 : "no: this machine counts, it cannot sample or filter");
	if (h->extensions & EXT_SMCNTRPMF)
		say(d, 1, "privilege filter of the fixed counters: yes (Smcntrpmf)");
	if (h->extensions & EXT_SMCDELEG)
		say(d, 1, "counter delegation: registers only (Smcdeleg, Ssccfg)");
	if (rv->config.charge_instructions || rv->config.charge_cycles)
		say(d, 1,
		    "kernel activity (modelled): %" PRIu64 " instructions, %" PRIu64
		    " cycles for each system call",
		    rv->config.charge_instructions, rv->config.charge_cycles);
	else
		say(d, 1, "kernel activity: none is modelled; kernel-mode counts are 0");
}

static void describe_firmware(const struct quipu_riscv *rv, const struct describe *d)
{
	const struct riscv_config *c = &rv->config;

	if (c->driver != RISCV_DRIVER_SBI) {
		say(d, 1, "firmware: SBI without the PMU extension");
		return;
	}
	say(d, 1,
	    "firmware: SBI %u.%u, PMU extension, %u logical counters (%u of them firmware)%s%s",
	    c->sbi_version >> 24, c->sbi_version & 0xFFFFFF, firmware_counters(rv), FW_COUNTERS,
	    FW_FEATURE_SNAPSHOT(rv) && !c->opensbi_compat ? ", snapshots" : "",
	    c->opensbi_compat ? ", deviating as OpenSBI does" : "");
	say(d, 1, "device tree: %u event ranges, %u raw rows, %u aliases", rv->tables.nranges,
	    rv->tables.nraws, rv->tables.naliases);
}

void quipu_riscv_describe(const struct quipu_riscv *rv,
			  void (*fn)(void *arg, unsigned depth, const char *line), void *arg)
{
	struct describe d = {fn, arg};

	say(&d, 0, "RISC-V performance counters on %u hart%s", rv->nharts,
	    rv->nharts == 1 ? "" : "s");
	describe_counters(rv, &d);
	describe_firmware(rv, &d);
}
