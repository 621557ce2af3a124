// SPDX-License-Identifier: BSD-2-Clause
/*
 * A hostile guest: any call with any argument, a ring header that is rewritten while the hypervisor
 * produces, memory that goes away under it. What must hold whatever it does: nothing outside the
 * ring's data and tail changes, tail stays inside, PENDING is never more than was stored, and no
 * sanitizer speaks.
 *
 * rock_hostile [SECONDS [SEED]]: two seconds unless told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

#define BASE	UINT64_C(0x40000000)
#define SIZE	UINT64_C(0x4000)
#define LIST	(BASE + 0x3000)
#define SECONDS 2

static uint64_t seed = 1, seconds = SECONDS;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static const uint64_t vas[] = {
	0x10,	  0x18,	    0x160,    0x168,	0x170,	  0x178,    0x108,    0x148,
	0x100,	  0x110,    0x118,    0xf10010, 0xf10018, 0xf10020, 0xf10028, 0xf10030,
	0xf10038, 0xf20010, 0xf20018, 0xf20030, 0xf20038, 0xf20028,
};

/* Half of the time near something that means something. */
static uint64_t value(void)
{
	static const uint64_t sharp[] = {
		0,
		1,
		4,
		7,
		8,
		16,
		49,
		50,
		100,
		250,
		1000,
		0x19,
		0x7f,
		0xff8,
		0x19000fff,
		BASE,
		BASE + 8,
		BASE + 0x1000,
		BASE + SIZE - 16,
		BASE + SIZE,
		LIST,
		LIST + 8,
		UINT64_MAX,
		UINT64_MAX - 7,
		UINT64_C(1) << 39,
		(UINT64_C(1) << 39) - 1,
		(UINT64_C(1) << 48) - 1,
		UINT64_C(1) << 63 | 0x7f,
	};
	uint64_t dice = next();

	switch (dice & 7) {
	case 0: return next();
	case 1: return vas[(dice >> 8) % (sizeof(vas) / sizeof(vas[0]))];
	case 2: return BASE + ((dice >> 8) % SIZE & ~UINT64_C(7));
	default: return sharp[(dice >> 8) % (sizeof(sharp) / sizeof(sharp[0]))];
	}
}

static uint64_t type_arg(void)
{
	static const unsigned codes[] = {0x100, 0x200,	0x200,	0x200,	0x400,
					 0x800, 0x2000, 0x4000, 0x8000, 0x1000};
	uint64_t dice = next();

	if (!(dice & 31))
		return next();
	return codes[(dice >> 8) % 10] | (dice >> 16 & 7 ? 1 : dice >> 20 & 15);
}

static void scribble(struct quipu_rock *r)
{
	uint64_t dice = next();
	uint8_t *p = quipu_rock_memory(r, 1, BASE + (dice % SIZE & ~UINT64_C(7)), 8);

	if (!p)
		return;
	if (dice >> 32 & 1) {
		uint64_t v = value();

		for (unsigned i = 0; i < 8; i++)
			p[i] = (uint8_t)(v >> (56 - 8 * i));
	} else {
		memset(p, (int)(dice >> 40), 1 + (dice >> 48) % 8);
	}
}

static void happen(struct quipu_rock *r)
{
	uint64_t dice = next(), n = dice >> 60 ? (dice >> 40) % 3000 : next();
	unsigned strand = (unsigned)(dice % 70);
	const struct quipu_rock_instr i = {next(),
					   next(),
					   (uint16_t)dice,
					   3,
					   (uint16_t)(dice >> 8),
					   (uint8_t)(dice >> 16),
					   (uint8_t)(dice >> 24),
					   (uint8_t)(dice >> 30 & 3),
					   (uint8_t)(dice >> 32 & 3)};
	const struct quipu_rock_l2 t = {next(), 1u << (dice >> 20 & 3), (uint8_t)(dice >> 24 & 7),
					(uint8_t)(dice >> 28), (uint8_t)(dice >> 33)};
	const struct quipu_rock_mmu m = {next(), dice >> 20 & 1, dice >> 21 & 1, dice >> 22 & 1};

	switch (dice >> 36 & 7) {
	case 0: quipu_rock_cycles(r, strand, (enum quipu_rock_privilege)(dice >> 33 & 3), n); break;
	case 1: quipu_rock_l2(r, strand, &t, n % 100000); break;
	case 2: quipu_rock_mmu(r, strand, &m, n % 100000); break;
	case 3: quipu_rock_mcc(r, strand, 0x2000u << (dice >> 20 & 3), n); break;
	default: quipu_rock_instr(r, strand, &i, n % 100000);
	}
}

static void world(struct quipu_rock *r)
{
	uint64_t dice = next();

	switch (dice & 7) {
	case 0: quipu_rock_memory_remove(r, 1, BASE); break;
	case 1: quipu_rock_memory_add(r, 1, BASE, SIZE); break;
	case 2: quipu_rock_strand_stop(r, (unsigned)(dice >> 8) % 70); break;
	case 3: quipu_rock_bind(r, (unsigned)(dice >> 8) % 70, (unsigned)(dice >> 16) % 4); break;
	case 4: quipu_rock_hold(r, dice >> 8 & 1); break;
	default:
		quipu_rock_set_version(r, (unsigned)(dice >> 8) % 70, API_GROUP_RKPERF, 1, 0, NULL);
	}
}

/* The handler of a guest that is up to no good. */
static void on_interrupt(void *arg, unsigned strand, const struct quipu_interrupt *irq)
{
	struct quipu_rock *r = arg;
	const uint64_t args[4] = {type_arg(), value(), value(), value()};

	(void)irq;
	scribble(r);
	quipu_rock_hcall(r, strand, 0x108 + next() % 7, args, NULL);
	quipu_rock_hcall(r, strand, 0x135 + next() % 6, args, NULL);
}

static void calls_of_any_kind(void **state)
{
	struct quipu_rock *r = quipu_rock_new(
		&(struct quipu_rock_config){.chips = 2, .trap_cycles = 7, .owner_cycles = 9});
	time_t end = time(NULL) + (time_t)seconds;
	uint64_t calls = 0;

	(void)state;
	assert_non_null(r);
	for (unsigned s = 0; s < 64; s++)
		quipu_rock_bind(r, s, s == 40 ? 2 : 1);
	quipu_rock_memory_add(r, 1, BASE, SIZE);
	quipu_rock_set_handler(r, on_interrupt, r);
	while (time(NULL) < end)
		for (unsigned i = 0; i < 1000; i++, calls++) {
			uint64_t dice = next(), o[6] = {type_arg(), value(), value(),
							value(),    value(), next() & 0xfff};
			unsigned strand =
				dice & 15 ? (unsigned)(dice >> 4) % 3 : (unsigned)(dice >> 4) % 70;

			if (dice >> 12 & 7)
				o[5] = dice >> 16 & 1 ? 0x108 + (dice >> 20) % 7
						      : 0x135 + (dice >> 20) % 6;
			quipu_rock_trap(r, strand,
					dice >> 24 & 31 ? QUIPU_ROCK_FAST_TRAP
							: (unsigned)(dice >> 32) & 0xff,
					o);
			if (dice >> 40 & 1)
				scribble(r);
			if (dice >> 41 & 1)
				happen(r);
			if (!(dice >> 42 & 255))
				world(r);
		}
	assert_true(calls > 1000);
	quipu_rock_free(r);
}

/* A sampler on a ring whose header the guest rewrites all the time. */
static void headers_rewritten_while_producing(void **state)
{
	struct quipu_rock *r = quipu_rock_new(&(struct quipu_rock_config){.chips = 1});
	const struct quipu_rock_instr i = {
		.pc = 0x1111111111111111, .latency = 1, .typ = QUIPU_ROCK_TYP_LOAD};
	const uint32_t data = 1024;
	time_t end = time(NULL) + (time_t)seconds;
	uint8_t *p;
	uint64_t stored = 0, pending;

	(void)state;
	assert_non_null(r);
	quipu_rock_bind(r, 0, 1);
	quipu_rock_memory_add(r, 1, BASE, SIZE);
	quipu_rock_set_version(r, 0, API_GROUP_RKPERF, 1, 0, NULL);
	p = quipu_rock_memory(r, 1, BASE, SIZE);
	memset(p, 0x5a, SIZE);
	memset(p + 0x1000, 0, 16);
	p[0x1000 + 10] = 0x04; /* size 1024 */
	memset(p + 0x3000, 0, 16);
	p[0x3006] = 0x01, p[0x3007] = 0x48;
	p[0x300e] = 0x01, p[0x300f] = 0x00;
	assert_int_equal(quipu_rock_hcall(r, 0, RK_PERF_SAMPLE_INIT,
					  (uint64_t[4]){0x201, BASE + 0x1000}, NULL),
			 0);
	assert_int_equal(quipu_rock_hcall(r, 0, RK_PERF_SAMPLE_CONFIG,
					  (uint64_t[4]){0x201, 0x168, 9}, NULL),
			 0);
	assert_int_equal(quipu_rock_hcall(r, 0, RK_PERF_SAMPLE_CONFIG,
					  (uint64_t[4]){0x201, 0x160, 0x19000fff}, NULL),
			 0);
	assert_int_equal(quipu_rock_hcall(r, 0, RK_PERF_SAMPLE_START,
					  (uint64_t[4]){0x201, 50, 16, LIST}, NULL),
			 0);
	while (time(NULL) < end)
		for (unsigned k = 0; k < 1000; k++) {
			uint64_t dice = next();
			uint32_t before;

			for (unsigned b = 0; b < 16; b++)
				if (dice >> b & 1)
					p[0x1000 + b] = (uint8_t)next();
			before = bits_be32(p + 0x1000 + 8);
			quipu_rock_instr(r, 0, &i, dice >> 40 & 127);
			stored += (dice >> 40 & 127) / 50 + 2;
			assert_int_equal(bits_be32(p + 0x1000 + 8),
					 before); /* size and head are the guest's */
			if (k % 10)
				continue;
			quipu_rock_hcall(r, 0, RK_PERF_SAMPLE_PENDING, (uint64_t[4]){0x201},
					 &pending);
			assert_true(pending <= stored);
			stored = 0;
		}
	quipu_rock_instr(r, 0, &i, 5000);
	memset(p + 0x1000, 0, 4);
	quipu_rock_instr(r, 0, &i, 100);
	assert_true(bits_be32(p + 0x1000 + 4) < data);
	for (unsigned at = 0; at < SIZE; at++)
		if ((at < 0x1000 || at >= 0x1010 + data) && (at < 0x3000 || at >= 0x3010))
			assert_int_equal(p[at], 0x5a);
	quipu_rock_free(r);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_any_kind),
		cmocka_unit_test(headers_rewritten_while_producing),
	};

	if (argc > 1)
		seconds = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0) | 1;
	return cmocka_run_group_tests_name("rock hostile guest", tests, NULL, NULL);
}
