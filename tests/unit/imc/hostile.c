// SPDX-License-Identifier: BSD-2-Clause
/*
 * A hostile caller of the IMC hardware, and hostile trees: whatever they write, nothing outside of
 * the model is touched (run it under the sanitizers), refusals are the documented ones, and memory
 * that nobody pointed to stays as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/imc.h>

#include "platform/imc/tree.h"

static uint64_t seed;

/* xorshift64*: the same sequence in every run. */
static uint64_t any(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * UINT64_C(2685821657736338717);
}

static uint8_t blob[1 << 20];
static size_t blob_size;
static uint64_t ns;

static uint64_t now(void *arg)
{
	(void)arg;
	return ns;
}

static int load(void **state)
{
	const char *dir = getenv("QUIPU_MACHINES");
	char path[4096];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/power9.dtb", dir ? dir : ".");
	f = fopen(path, "rb");
	assert_non_null(f);
	blob_size = fread(blob, 1, sizeof(blob), f);
	fclose(f);
	return 0;
}

static struct quipu_imc *imc;

static void on_interrupt(void *arg, const struct quipu_interrupt *irq)
{
	(void)arg;
	quipu_imc_interrupt(imc, irq);
}

static uint64_t address(const uint64_t *mine, uint64_t region)
{
	switch (any() % 5) {
	case 0: return mine[any() % 4];
	case 1: return mine[any() % 4] + any() % 0x50000;
	case 2: return region + any() % 0x40100;
	case 3: return any() & 0x3ffffffffffff;
	default: return any();
	}
}

static void one_call(struct quipu_manual_signals *signals, const uint64_t *mine, uint64_t region)
{
	static const uint64_t scoms[] = {0x1001220b, 0x10012200, 0x20010aa8,
					 0x20010aa9, 0x1001230b, 0x10012300};
	uint64_t args[8] = {any() % 5, address(mine, region), any() % 3 ? any() % 16 : any()}, v;
	unsigned cpu = any() % 9 ? (unsigned)(any() % 32) : (unsigned)any();

	switch (any() % 8) {
	case 0:
		if (any() & 1)
			args[1] = any() % 16;
		quipu_opal_call(imc, cpu, any() % 9 ? 149 + any() % 3 : any(), args);
		break;
	case 1:
		quipu_imc_scom_write(imc, any() % 3 ? 0 : (uint32_t)any(), scoms[any() % 6], any());
		break;
	case 2:
		quipu_imc_ldbar_write(imc, cpu,
				      (any() << 62) | (address(mine, region) & QUIPU_IMC_ADDRESS));
		break;
	case 3:
		quipu_imc_write64(imc, address(mine, region), any() % 3 ? any() % 16 : any());
		break;
	case 4:
		quipu_imc_read64(imc, address(mine, region));
		quipu_imc_scom_read(imc, (uint32_t)any(), any(), &v);
		break;
	case 5:
		ns += any() % 3000000;
		quipu_imc_advance(imc);
		break;
	case 6:
		quipu_manual_signals_feed(signals, (unsigned)(any() % 32), QUIPU_SIGNAL_CYCLES,
					  any() % 300000, any());
		break;
	default:
		quipu_manual_signals_feed(signals, (unsigned)(any() % 32),
					  QUIPU_SIGNAL_INSTRUCTIONS, any() % 100000, any());
		break;
	}
}

static void no_call_reaches_what_is_not_its_own(void **state)
{
	struct quipu_notes notes = {0};
	struct quipu_machine *m = quipu_machine_parse(blob, blob_size, "power9", &notes);
	struct quipu_manual_signals *signals;
	uint64_t mine[4], region, bystander;

	(void)state;
	assert_non_null(m);
	seed = 20260730;
	signals = quipu_manual_signals_new(m->ncpus);
	imc = quipu_imc_new(m, quipu_manual_signals_base(signals), now, NULL);
	assert_non_null(imc);
	quipu_manual_signals_base(signals)->interrupt = on_interrupt;
	for (unsigned i = 0; i < 4; i++)
		mine[i] = quipu_imc_alloc(imc, i < 2 ? 0x2000 : 0x40000);
	region = quipu_imc_region(imc, 0);
	for (unsigned i = 0; i < 30000; i++)
		one_call(signals, mine, region);
	bystander = quipu_imc_alloc(imc, 0x2000);
	assert_int_equal(quipu_imc_read64(imc, bystander), 0);
	assert_int_equal(quipu_imc_read(imc, bystander + 0x1ffc, &(uint64_t){0}, 8), -14);
	assert_int_equal(quipu_imc_read(imc, UINT64_MAX - 3, &(uint64_t){0}, 8), -14);
	quipu_imc_free(imc);
	quipu_manual_signals_free(signals);
	quipu_machine_free(m);
	quipu_notes_free(&notes);
}

static void trees_with_wrong_bytes_are_read_or_refused(void **state)
{
	uint8_t *copy = malloc(blob_size);

	(void)state;
	assert_non_null(copy);
	seed = 987654321;
	for (unsigned i = 0; i < 300; i++) {
		struct quipu_notes notes = {0};
		struct quipu_machine *m;
		struct imc_tree t;

		memcpy(copy, blob, blob_size);
		for (unsigned k = 0; k < 1 + any() % 40; k++)
			copy[56 + any() % (blob_size - 56)] = (uint8_t)any();
		m = quipu_machine_parse(copy, blob_size, "power9", &notes);
		if (m && !imc_tree_read(m, any() & 1, &notes, &t))
			imc_tree_free(&t);
		quipu_machine_free(m);
		quipu_notes_free(&notes);
	}
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_call_reaches_what_is_not_its_own),
		cmocka_unit_test(trees_with_wrong_bytes_are_read_or_refused),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
