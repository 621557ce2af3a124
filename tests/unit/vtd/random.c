// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random traffic against a truth kept apart: an array of what is mapped where. Two units read the
 * same tables, one with caches and one without any. While software invalidates what it unmaps, both
 * must give the truth; the cached unit must look up as often, never hit more than it looks up, and
 * read no more. The seed is printed; QUIPU_SEED sets it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <quipu/bits.h>
#include <quipu/vtd.h>

#define B     UINT64_C(0x100000000)
#define RID   0x3a00u
#define SLOTS 2048u /* pages of 4 KiB that may be mapped, over four tables of 512 */
#define STEPS 60000u

enum {
	LOOKUP,
	HIT,
	CTXT_LOOKUP,
	CTXT_HIT,
	PASID_LOOKUP,
	PASID_HIT,
	SS_LOOKUP,
	SS_HIT,
	FS_LOOKUP,
	FS_HIT,
	MRDS,
	COUNTERS
};
static const struct {
	unsigned group;
	uint32_t event;
} counted[COUNTERS] = {{3, 1},	  {3, 2},    {2, 1},	{2, 2},	   {2, 4}, {2, 8},
		       {2, 0x10}, {2, 0x20}, {2, 0x40}, {2, 0x80}, {1, 1}};

struct world {
	struct quipu_vtd_memory *memory;
	struct quipu_vtd_tables *tables;
	struct quipu_vtd_domain *domain;
	struct quipu_vtd *unit[2]; /* with caches, without */
	struct quipu_vtd_queue queue[2];
	enum quipu_vtd_stage stage;
	bool legacy;
	uint64_t truth[SLOTS]; /* host address | permissions, 0: not mapped */
	uint64_t random;
};

static uint64_t rnd(struct world *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static void *page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(((struct world *)arg)->memory, addr, write);
}

static const struct quipu_vtd_ops ops = {.page = page};

static void open_unit(struct world *w, unsigned i, enum quipu_vtd_replacement policy)
{
	struct quipu_vtd_config config;

	quipu_vtd_config_init(&config, QUIPU_VTD_SPR);
	config.replacement = policy;
	if (i) {
		memset(config.iotlb, 0, sizeof(config.iotlb));
		memset(&config.context, 0, sizeof(config.context));
		memset(&config.pasid, 0, sizeof(config.pasid));
		memset(config.fs_psc, 0, sizeof(config.fs_psc));
		memset(config.ss_psc, 0, sizeof(config.ss_psc));
	}
	w->unit[i] = quipu_vtd_new(&config, &ops, w, NULL);
	assert_non_null(w->unit[i]);
	assert_int_equal(quipu_vtd_queue_start(&w->queue[i], w->unit[i], w->memory, !w->legacy), 0);
	quipu_vtd_enable(w->unit[i], quipu_vtd_tables_root(w->tables),
			 w->legacy ? QUIPU_VTD_LEGACY : QUIPU_VTD_SCALABLE);
	for (unsigned c = 0; c < COUNTERS; c++) {
		quipu_vtd_write(w->unit[i], 0x1000 + 0x100 * c, 8,
				(uint64_t)counted[c].event << 32 | counted[c].group << 8);
		quipu_vtd_write(w->unit[i], 0x400, 8, 0xf0 | (uint64_t)c << 16);
		assert_int_equal(quipu_vtd_read(w->unit[i], 0x410, 8), 0);
	}
}

static void map(struct world *w, unsigned slot)
{
	uint64_t pa = (rnd(w) & 0xffffff) << 12 | UINT64_C(0x2000000000), prot = 1 + rnd(w) % 3;

	/* First-stage pages can always be read. */
	if (w->stage != QUIPU_VTD_STAGE_SS)
		prot |= 1;
	if (w->truth[slot])
		return;
	assert_int_equal(quipu_vtd_map(w->domain, B + slot * 4096ull, pa, 4096, 4096,
				       (unsigned)prot | QUIPU_VTD_U),
			 0);
	w->truth[slot] = pa | prot;
}

static void unmap(struct world *w, unsigned slot)
{
	bool fs = w->stage == QUIPU_VTD_STAGE_FS;
	unsigned am = (unsigned)(rnd(w) % 4); /* a wider range than needed is right as well */
	uint64_t addr = B + slot * 4096ull, ih = rnd(w) & 1 ? 0x40 : 0;
	uint64_t page_inv[4] = {2 | 3 << 4 | 5 << 16, addr | ih | am},
		 domain_inv[4] = {2 | 2 << 4 | 5 << 16};
	uint64_t pasid_inv[4] = {6 | 3 << 4 | 5 << 16 | UINT64_C(5) << 32, addr | ih | am};
	const uint64_t *which = rnd(w) % 8 == 0 ? domain_inv : fs ? pasid_inv : page_inv;

	if (!w->truth[slot])
		return;
	assert_int_equal(quipu_vtd_unmap(w->domain, addr, 4096), 0);
	w->truth[slot] = 0;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(quipu_vtd_queue_submit(&w->queue[i], which), 0);
}

static void access_page(struct world *w)
{
	unsigned slot = (unsigned)(rnd(w) & 1 ? rnd(w) % SLOTS : rnd(w) % 64);
	bool write = rnd(w) & 1;
	uint64_t offset = rnd(w) & 0xfc0, truth = w->truth[slot];
	struct quipu_vtd_request rq = {.addr = B + slot * 4096ull + offset,
				       .len = 64,
				       .rid = RID,
				       .pasid = w->stage == QUIPU_VTD_STAGE_FS ? 5 : -1,
				       .op = write ? QUIPU_VTD_WRITE : QUIPU_VTD_READ};
	bool allowed = truth & (write ? 2 : 1);

	for (unsigned i = 0; i < 2; i++) {
		struct quipu_vtd_response rs;

		quipu_vtd_dma(w->unit[i], &rq, &rs);
		assert_int_equal(rs.status == QUIPU_VTD_SUCCESS, allowed);
		if (allowed)
			assert_int_equal(rs.addr, (truth & ~UINT64_C(0xfff)) | offset);
		else
			assert_int_not_equal(rs.fault, 0);
	}
}

static uint64_t value(const struct world *w, unsigned i, unsigned c)
{
	return quipu_vtd_read(w->unit[i], 0x4000 + 0x400 * c, 8);
}

static void check(const struct world *w)
{
	static const unsigned pairs[] = {LOOKUP, CTXT_LOOKUP, PASID_LOOKUP, SS_LOOKUP, FS_LOOKUP};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_true(value(w, 0, pairs[i] + 1) <= value(w, 0, pairs[i]));
		assert_int_equal(value(w, 1, pairs[i] + 1), 0);
	}
	assert_int_equal(value(w, 0, LOOKUP), value(w, 1, LOOKUP));
	/* What missed the IOTLB, and that alone, was looked up further. */
	assert_int_equal(value(w, 0, CTXT_LOOKUP), value(w, 0, LOOKUP) - value(w, 0, HIT));
	assert_int_equal(value(w, 1, CTXT_LOOKUP), value(w, 1, LOOKUP));
	assert_true(value(w, 0, MRDS) < value(w, 1, MRDS));
	assert_true(value(w, 0, HIT) > 0);
}

static const struct kind {
	const char *name;
	enum quipu_vtd_stage stage;
	bool legacy;
	unsigned levels;
	enum quipu_vtd_replacement policy;
} kinds[] = {
	{"legacy, LRU", QUIPU_VTD_STAGE_SS, true, 4, QUIPU_VTD_LRU},
	{"legacy of 3 levels, FIFO", QUIPU_VTD_STAGE_SS, true, 3, QUIPU_VTD_FIFO},
	{"second stage of 5 levels, PLRU", QUIPU_VTD_STAGE_SS, false, 5, QUIPU_VTD_PLRU},
	{"first stage, random replacement", QUIPU_VTD_STAGE_FS, false, 4, QUIPU_VTD_RANDOM},
	{"first stage of 5 levels, LRU", QUIPU_VTD_STAGE_FS, false, 5, QUIPU_VTD_LRU},
};

static void truth_holds(void **state)
{
	const struct kind *k = *state;
	const char *seed = getenv("QUIPU_SEED");
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->random = seed ? strtoull(seed, NULL, 0) : 20261130;
	print_message("# seed %llu\n", (unsigned long long)w->random);
	w->stage = k->stage;
	w->legacy = k->legacy;
	w->memory = quipu_vtd_memory_new(UINT64_C(1) << 40, 0x4000000);
	w->tables =
		quipu_vtd_tables_new(w->memory, k->legacy ? QUIPU_VTD_LEGACY : QUIPU_VTD_SCALABLE);
	w->domain = quipu_vtd_domain_new(w->tables, 5, k->stage, k->levels, NULL, 0);
	assert_non_null(w->domain);
	if (k->stage == QUIPU_VTD_STAGE_FS)
		assert_int_equal(quipu_vtd_attach_pasid(w->tables, RID, 5, w->domain, 0), 0);
	else
		assert_int_equal(quipu_vtd_attach(w->tables, RID, w->domain, 0), 0);
	open_unit(w, 0, k->policy);
	open_unit(w, 1, k->policy);
	for (unsigned i = 0; i < SLOTS; i++)
		map(w, i);
	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t what = rnd(w) % 16;

		if (what == 0)
			unmap(w, (unsigned)(rnd(w) % SLOTS));
		else if (what == 1)
			map(w, (unsigned)(rnd(w) % SLOTS));
		else
			access_page(w);
	}
	check(w);
	quipu_vtd_free(w->unit[0]);
	quipu_vtd_free(w->unit[1]);
	quipu_vtd_tables_free(w->tables);
	quipu_vtd_memory_free(w->memory);
	free(w);
}

int main(void)
{
	struct CMUnitTest tests[sizeof(kinds) / sizeof(kinds[0])];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		tests[i] = (struct CMUnitTest){kinds[i].name, truth_holds, NULL, NULL,
					       (void *)&kinds[i]};
	return _cmocka_run_group_tests("vtd random", tests, sizeof(kinds) / sizeof(kinds[0]), NULL,
				       NULL);
}
