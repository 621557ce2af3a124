/* SPDX-License-Identifier: BSD-2-Clause */
/* See bed.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include "bed.h"

#define SLACK 65536

void bed_tree(struct bed *b, const char *name)
{
	const char *dir = getenv("QUIPU_MACHINES");
	char path[4096];
	long size;
	void *raw;
	FILE *f;

	memset(b, 0, sizeof(*b));
	snprintf(path, sizeof(path), strchr(name, '/') ? "%s" : "%s%s%s.dtb",
		 strchr(name, '/') ? name
		 : dir		   ? dir
				   : ".",
		 "/", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	raw = malloc((size_t)size);
	b->fdt = malloc((size_t)size + SLACK);
	assert_non_null(raw);
	assert_non_null(b->fdt);
	assert_int_equal(fread(raw, 1, (size_t)size, f), size);
	fclose(f);
	assert_int_equal(fdt_open_into(raw, b->fdt, (int)size + SLACK), 0);
	free(raw);
}

/* While CPUs run, the time is that of the first of them, to the cycle. */
static uint64_t bed_now(void *arg)
{
	struct bed *b = arg;
	struct quipu_signals *s = quipu_manual_signals_base(b->manual);

	return b->ns +
	       (b->running ? (s->ops->read(s, b->lead, QUIPU_SIGNAL_CYCLES) - b->from) / 3 : 0);
}

void bed_start(struct bed *b)
{
	assert_int_equal(fdt_pack(b->fdt), 0);
	b->machine = quipu_machine_parse(b->fdt, fdt_totalsize(b->fdt), "test", &b->notes);
	assert_non_null(b->machine);
	b->manual = quipu_manual_signals_new(b->machine->ncpus);
	assert_non_null(b->manual);
	b->imc = quipu_imc_new(b->machine, quipu_manual_signals_base(b->manual), bed_now, b);
	assert_non_null(b->imc);
	quipu_imc_set_exact(b->imc, false);
}

void bed_stop(struct bed *b)
{
	quipu_imc_free(b->imc);
	quipu_manual_signals_free(b->manual);
	quipu_machine_free(b->machine);
	quipu_notes_free(&b->notes);
	free(b->fdt);
}

void bed_run(struct bed *b, uint32_t mask, uint64_t ns)
{
	struct quipu_signals *s = quipu_manual_signals_base(b->manual);

	while (ns) {
		uint64_t step = ns < 1000 ? ns : 1000;

		b->lead = (unsigned)__builtin_ctz(mask);
		b->from = s->ops->read(s, b->lead, QUIPU_SIGNAL_CYCLES);
		b->running = true;
		for (uint32_t m = mask; m; m &= m - 1)
			quipu_manual_signals_feed(b->manual, (unsigned)__builtin_ctz(m),
						  QUIPU_SIGNAL_CYCLES, 3 * step, 0x10000000);
		b->running = false;
		b->ns += step;
		ns -= step;
		quipu_imc_advance(b->imc);
	}
}

void bed_pass(struct bed *b, uint64_t ns)
{
	b->ns += ns;
	quipu_imc_advance(b->imc);
}

void bed_steps(struct bed *b, unsigned n)
{
	while (n--)
		bed_pass(b, 500000);
}

int64_t bed_opal(struct bed *b, uint64_t token, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const uint64_t args[8] = {a0, a1, a2};

	return quipu_opal_call(b->imc, 0, token, args);
}

int bed_node(const struct bed *b, const char *path)
{
	int node = fdt_path_offset(b->fdt, path);

	assert_true(node >= 0);
	return node;
}
