// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cases R1 to R32: registers, enhanced commands, overflow, freeze. Source: VT-d specification 5.10,
 * chapter 10 and 11.4.13 (PERFCAP_REG to PERFEVNTCAP_REG, counters), 11.4.14 (enhanced commands);
 * what the text leaves open is the room's decision (README.md). R33 to R36 are about the driver:
 * driver.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bed.h"

#define CFG(c)	   (0x1000u + 0x100u * (c))
#define ATFLTR(c)  (CFG(c) + 0x14u)
#define PTLFLTR(c) (CFG(c) + 0x18u)
#define COUNTER(c) (0x4000u + 0x400u * (c))
#define FRZSTS	   0x1f00u
#define OVFSTS	   0x1f40u
#define INTRSTS	   0x324u
#define INTRCTL	   0x328u
#define ENABLE	   0xf0u
#define DISABLE	   0xf1u
#define RESET_CFG  0xf2u
#define RESET_VAL  0xf3u
#define FREEZE	   0xf4u
#define UNFREEZE   0xf5u

static const struct bed_setup legacy = {.kind = BED_LEGACY};
#define FILTER_ON 0x80000000u

/* Requests whose address-type the counter tells apart: they count before anything can refuse them.
 */
static struct bed *fresh(void **state)
{
	(void)state;
	return bed_new(&legacy);
}

/* R1 to R4 and the rest of the layout of 1.6. */
static const struct value_case {
	const char *name;
	uint32_t offset;
	unsigned width;
	uint64_t value;
} value_cases[] = {
	{"R1 PERFCAP_REG", 0x300, 8, UINT64_C(0xF00F00180530000E)},
	{"R2 PERFINTRCTL_REG after reset", INTRCTL, 4, 0x80000000},
	{"R3 PERFCFGOFF_REG", 0x310, 4, 0x1000},
	{"R3 PERFFRZOFF_REG", 0x314, 4, 0x1f00},
	{"R3 PERFOVFOFF_REG", 0x318, 4, 0x1f40},
	{"R3 PERFCNTROFF_REG", 0x31c, 4, 0x4000},
	{"R4 PERFEVNTCAP_REG of group 1", 0x388, 8, 0x61},
	{"PERFEVNTCAP_REG of group 0", 0x380, 8, 0xf},
	{"PERFEVNTCAP_REG of group 2", 0x390, 8, 0xff},
	{"PERFEVNTCAP_REG of group 3", 0x398, 8, 0x3},
	{"PERFEVNTCAP_REG of group 4", 0x3a0, 8, 0x7},
	{"no group 5", 0x3a8, 8, 0},
	{"VER_REG", 0x0, 4, 0x60},
	{"CAP_REG", 0x8, 8, UINT64_C(0xF9D2078C50780E06)},
	{"ECAP_REG", 0x10, 8, UINT64_C(0x001BEF9EA4F060DF)},
	{"ECCAP_REG_3", 0x448, 8, UINT64_C(0x003F000000000000)},
	{"PERFCNTRCAP_REG of counter 12", CFG(12) + 0x80, 4, 0x10033001},
	{"PERFCNTREVCAP_REG of counter 13", CFG(13) + 0x84, 4, 0xf},
	{"PERFCNTRCAP_REG of counter 11", CFG(11) + 0x80, 4, 0},
};

static void value_case(void **state)
{
	const struct value_case *c = *state;
	struct bed *bed = bed_new(&legacy);

	assert_int_equal(quipu_vtd_read(bed->unit, c->offset, c->width), c->value);
	bed_free(bed);
}

/* R5 to R13, R15, R16: a counter's configuration, and what ENABLE says to it. */
static const struct enable_case {
	const char *name;
	unsigned counter;
	uint64_t config;
	uint32_t at, ptl; /* filters */
	unsigned code, operand;
	uint64_t response;
} enable_cases[] = {
	{"R5 command 0", 0, 0, 0, 0, 0x00, 0, 0x2},
	{"R5 command 0xF6", 0, 0, 0, 0, 0xf6, 0, 0x2},
	{"R6 ENABLE 14", 0, 0, 0, 0, ENABLE, 14, 0x20},
	{"R7 DISABLE 14", 0, 0, 0, 0, DISABLE, 14, 0x20},
	{"R8 no event", 0, 0, 0, 0, ENABLE, 0, 0x20},
	{"R11 event that the group lacks", 0, UINT64_C(0x400000300), 0, 0, ENABLE, 0, 0x20},
	{"R12 counter for group 0 only", 13, UINT64_C(0x200000300), 0, 0, ENABLE, 13, 0x20},
	{"R13 group 5", 0, UINT64_C(0x100000500), 0, 0, ENABLE, 0, 0x20},
	{"R15 two events and a filter", 0, UINT64_C(0x300000300), 0, FILTER_ON | 1, ENABLE, 0,
	 0x20},
	{"R15 two events that both have a level", 0, UINT64_C(0xa000000200), 0, FILTER_ON | 1,
	 ENABLE, 0, 0x20},
	{"R16 iotlb_lookup has no level", 0, UINT64_C(0x100000300), 0, FILTER_ON | 1, ENABLE, 0,
	 0x20},
	{"iotlb_hit has one", 0, UINT64_C(0x200000300), 0, FILTER_ON | 1, ENABLE, 0, 0},
	{"no address type for iotlb_hit", 0, UINT64_C(0x200000300), FILTER_ON | 1, 0, ENABLE, 0,
	 0x20},
	{"both filters on one event", 0, UINT64_C(0x200000000), FILTER_ON | 1, FILTER_ON | 1,
	 ENABLE, 0, 0x20},
	{"a filter that is off does not matter", 0, UINT64_C(0x300000300), 1, 1, ENABLE, 0, 0},
	{"interrupt and freeze on overflow", 0, UINT64_C(0x200000306), 0, 0, ENABLE, 0, 0},
};

static void enable_case(void **state)
{
	const struct enable_case *c = *state;
	struct bed *bed = bed_new(&legacy);

	bed_wr64(bed, CFG(c->counter), c->config);
	bed_wr32(bed, ATFLTR(c->counter), c->at);
	bed_wr32(bed, PTLFLTR(c->counter), c->ptl);
	assert_int_equal(bed_command(bed, c->code, c->operand), c->response);
	assert_int_equal(bed_rd64(bed, CFG(c->counter)) & 1, c->code == ENABLE && !c->response);
	bed_free(bed);
}

/* Units of less, or with a counter of less: what ENABLE checks of interrupts, freezing, PASIDs. */
static const struct poor_case {
	const char *name;
	uint64_t lacks;	       /* of PERFCAP_REG */
	uint32_t capabilities; /* PERFCNTRCAP_REG of counter 13; 0: as it is */
	unsigned counter;
	uint64_t config;
	uint32_t pasid; /* the filter */
	uint64_t response;
} poor_cases[] = {
	{"2.4 interrupt on overflow that the unit lacks", UINT64_C(1) << 50, 0, 0,
	 UINT64_C(0x200000002), 0, 0x20},
	{"2.4 freeze on overflow that the unit lacks", UINT64_C(1) << 49, 0, 0,
	 UINT64_C(0x200000004), 0, 0x20},
	{"2.4 neither is asked for", UINT64_C(3) << 49, 0, 0, UINT64_C(0x200000000), 0, 0},
	{"2.4 a counter's own list decides: no interrupt", 0, 0x10023001, 13, UINT64_C(0x200000002),
	 0, 0x20},
	{"2.4 but freezing", 0, 0x10023001, 13, UINT64_C(0x200000004), 0, 0},
	{"2.4 interrupt that only the counter has", UINT64_C(1) << 50, 0, 13, UINT64_C(0x200000002),
	 0, 0},
	{"2.4 PASID filter of mode 3", 0, 0, 0, UINT64_C(0x200000000), FILTER_ON | 0x300005, 0x20},
	{"2.4 PASID filter of mode 2", 0, 0, 0, UINT64_C(0x200000000), FILTER_ON | 0x200005, 0},
};

static void poor_case(void **state)
{
	const struct poor_case *c = *state;
	struct quipu_vtd_config config;
	struct bed *bed;

	quipu_vtd_config_init(&config, QUIPU_VTD_FULL);
	config.perfcap &= ~c->lacks;
	if (c->capabilities)
		config.perfcntrcap[13] = c->capabilities;
	bed = bed_plain(&config);
	bed_wr64(bed, CFG(c->counter), c->config);
	bed_wr32(bed, CFG(c->counter) + 0x10, c->pasid);
	assert_int_equal(bed_command(bed, ENABLE, c->counter), c->response);
	bed_free(bed);
}

static void r9_enable_shows(void **state)
{
	struct bed *bed = fresh(state);

	bed_wr64(bed, CFG(0), UINT64_C(0x0000000200000002));
	assert_int_equal(bed_command(bed, ENABLE, 0), 0);
	assert_int_equal(bed_rd64(bed, CFG(0)), UINT64_C(0x0000000200000003));
	bed_free(bed);
}

static void r10_enabled_is_locked(void **state)
{
	struct bed *bed = fresh(state);

	bed_wr64(bed, CFG(0), UINT64_C(0x0000000200000002));
	bed_command(bed, ENABLE, 0);
	bed_wr64(bed, CFG(0), 0);
	bed_wr32(bed, ATFLTR(0), FILTER_ON | 1);
	assert_int_equal(bed_rd64(bed, CFG(0)), UINT64_C(0x0000000200000003));
	assert_int_equal(bed_rd32(bed, ATFLTR(0)), 0);
	bed_free(bed);
}

/* Cold read of B twice: 2 lookups and 1 hit in one counter. */
static void r14_two_events_are_summed(void **state)
{
	struct bed *bed = fresh(state);

	bed_count(bed, 0, 3, 0x3, -1, 0);
	bed_run(bed, "r B; r B");
	assert_int_equal(bed_value(bed, 0), 3);
	bed_free(bed);
}

/* 3 untranslated, 2 translation requests, 1 translated. */
static const struct type_case {
	const char *name;
	uint32_t filter;
	uint64_t expect;
} type_cases[] = {
	{"R17 untranslated", 0x1, 3},	{"R18 the other two", 0x6, 3},
	{"R19 no type at all", 0x0, 0}, {"translation requests", 0x2, 2},
	{"translated", 0x4, 1},		{"all", 0x7, 6},
};

static void type_case(void **state)
{
	const struct type_case *c = *state;
	struct bed *bed = bed_new(&legacy);

	bed_count(bed, 0, 0, 0x2, 3, c->filter);
	bed_run(bed, "r B 3; t B 2; x 2000000000");
	assert_int_equal(bed_value(bed, 0), c->expect);
	bed_free(bed);
}

static void r20_filters_that_are_not_there(void **state)
{
	struct bed *bed = fresh(state);

	for (uint32_t f = 0; f < 3; f++) {
		bed_wr32(bed, CFG(0) + 8 + 4 * f, 0xffffffff);
		assert_int_equal(bed_rd32(bed, CFG(0) + 8 + 4 * f), 0);
	}
	/* Of the others only what has a meaning stays: no reserved type 3, no prefetch without a
	 * host permission table. */
	bed_wr32(bed, ATFLTR(0), 0xffffffff);
	assert_int_equal(bed_rd32(bed, ATFLTR(0)), 0x80000007);
	bed_wr32(bed, PTLFLTR(0), 0xffffffff);
	assert_int_equal(bed_rd32(bed, PTLFLTR(0)), 0x8000001f);
	bed_free(bed);
}

/* A counter of requests at its last value, that interrupts. */
static struct bed *at_the_brink(uint64_t config)
{
	struct bed *bed = bed_new(&legacy);

	bed_wr64(bed, CFG(0), UINT64_C(0x200000000) | config);
	bed_wr64(bed, COUNTER(0), UINT64_C(0xffffffffffff));
	bed_wr32(bed, INTRCTL + 4, 0x4321);
	bed_wr32(bed, INTRCTL + 8, 0xfee01000);
	bed_wr32(bed, INTRCTL + 12, 0x1);
	assert_int_equal(bed_command(bed, ENABLE, 0), 0);
	return bed;
}

static void r21_overflow_is_held_while_masked(void **state)
{
	struct bed *bed = at_the_brink(0x2);

	(void)state;
	bed_run(bed, "r B");
	assert_int_equal(bed_value(bed, 0), 0);
	assert_int_equal(bed_rd64(bed, OVFSTS), 1);
	assert_int_equal(bed_rd32(bed, INTRSTS), 1);
	assert_int_equal(bed_rd32(bed, INTRCTL), 0xC0000000);
	assert_int_equal(bed->msis, 0);
	bed_free(bed);
}

/* R21, and then unmasked: the message goes. */
static struct bed *after_the_message(void)
{
	struct bed *bed = at_the_brink(0x2);

	bed_run(bed, "r B");
	bed_wr32(bed, INTRCTL, 0);
	return bed;
}

static void r22_unmasking_sends_what_is_held(void **state)
{
	struct bed *bed = after_the_message();

	(void)state;
	assert_int_equal(bed->msis, 1);
	assert_int_equal(bed->msi_addr, UINT64_C(0x1fee01000));
	assert_int_equal(bed->msi_data, 0x4321);
	assert_int_equal(bed_rd32(bed, INTRCTL), 0);
	bed_free(bed);
}

static void r23_no_second_message_before_the_first_is_acknowledged(void **state)
{
	struct bed *bed = after_the_message();

	(void)state;
	bed_command(bed, DISABLE, 0);
	bed_wr64(bed, OVFSTS, 1);
	bed_wr64(bed, COUNTER(0), UINT64_C(0xffffffffffff));
	bed_command(bed, ENABLE, 0);
	bed_run(bed, "r B");
	assert_int_equal(bed_rd64(bed, OVFSTS), 1);
	assert_int_equal(bed->msis, 1);
	bed_free(bed);
}

static void r24_both_status_registers_clear(void **state)
{
	struct bed *bed = at_the_brink(0x2);

	(void)state;
	bed_run(bed, "r B");
	bed_wr64(bed, OVFSTS, 1);
	bed_wr32(bed, INTRSTS, 1);
	assert_int_equal(bed_rd64(bed, OVFSTS), 0);
	assert_int_equal(bed_rd32(bed, INTRSTS), 0);
	assert_int_equal(bed_rd32(bed, INTRCTL), 0x80000000); /* IP is gone with it */
	bed_free(bed);
}

static void r25_overflow_without_interrupt(void **state)
{
	struct bed *bed = at_the_brink(0);

	(void)state;
	bed_run(bed, "r B");
	assert_int_equal(bed_rd64(bed, OVFSTS), 1);
	assert_int_equal(bed_rd32(bed, INTRSTS), 0);
	bed_free(bed);
}

static void r26_overflow_freezes_the_rest(void **state)
{
	struct bed *bed = at_the_brink(0x4);

	(void)state;
	bed_count(bed, 1, 3, 0x1, -1, 0);
	bed_run(bed, "r B");
	assert_int_equal(bed_rd64(bed, FRZSTS), 0x3fff);
	assert_int_equal(bed_value(bed, 1),
			 0); /* the request came in, and froze it, before it was looked up */
	bed_run(bed, "r B 5");
	assert_int_equal(bed_value(bed, 0), 0);
	assert_int_equal(bed_value(bed, 1), 0);
	bed_free(bed);
}

static void r27_freeze_and_unfreeze(void **state)
{
	struct bed *bed = fresh(state);

	bed_count(bed, 0, 0, 0x2, -1, 0);
	bed_command(bed, FREEZE, 0);
	bed_run(bed, "r B 5");
	bed_command(bed, UNFREEZE, 0);
	bed_run(bed, "r B 2");
	assert_int_equal(bed_value(bed, 0), 2);
	bed_free(bed);
}

static void r28_disable_unfreezes_one(void **state)
{
	struct bed *bed = fresh(state);

	bed_command(bed, FREEZE, 0);
	assert_int_equal(bed_rd64(bed, FRZSTS), 0x3fff);
	bed_command(bed, DISABLE, 3);
	assert_int_equal(bed_rd64(bed, FRZSTS), 0x3ff7);
	bed_free(bed);
}

/* What the driver relies on: disabled and enabled again under a freeze, a counter counts at once.
 */
static void r29_enabled_again_it_counts(void **state)
{
	struct bed *bed = fresh(state);

	bed_count(bed, 2, 0, 0x2, -1, 0);
	bed_command(bed, FREEZE, 0);
	bed_command(bed, DISABLE, 3);
	bed_wr64(bed, CFG(3), UINT64_C(0x200000002));
	assert_int_equal(bed_command(bed, ENABLE, 3), 0);
	/* A counter that is enabled for the first time stays frozen. */
	bed_wr64(bed, CFG(4), UINT64_C(0x200000002));
	assert_int_equal(bed_command(bed, ENABLE, 4), 0);
	bed_run(bed, "r B 4");
	bed_command(bed, UNFREEZE, 0);
	assert_int_equal(bed_value(bed, 3), 4);
	assert_int_equal(bed_value(bed, 2), 0);
	assert_int_equal(bed_value(bed, 4), 0);
	bed_free(bed);
}

static void r30_reset_values(void **state)
{
	struct bed *bed = fresh(state);

	bed_count(bed, 0, 0, 0x2, -1, 0);
	bed_count(bed, 1, 3, 0x1, -1, 0);
	bed_run(bed, "r B 7");
	bed_command(bed, RESET_VAL, 0);
	assert_int_equal(bed_value(bed, 0), 0);
	assert_int_equal(bed_value(bed, 1), 0);
	bed_run(bed, "r B 3");
	assert_int_equal(bed_value(bed, 0), 3);
	assert_int_equal(bed_rd64(bed, CFG(0)) & 1, 1);
	bed_free(bed);
}

static void r31_reset_configuration(void **state)
{
	struct bed *bed = at_the_brink(0x6);

	(void)state;
	bed_count(bed, 1, 3, 0x2, 4, 1);
	bed_run(bed, "r B");
	bed_command(bed, UNFREEZE, 0);
	bed_run(bed, "r B 9");
	assert_int_equal(bed_value(bed, 1), 9);
	bed_command(bed, FREEZE, 0);
	bed_command(bed, RESET_CFG, 0);
	assert_int_equal(bed_rd64(bed, CFG(0)), 0);
	assert_int_equal(bed_rd64(bed, CFG(1)), 0);
	assert_int_equal(bed_rd32(bed, PTLFLTR(1)), 0);
	assert_int_equal(bed_rd64(bed, OVFSTS), 0);
	assert_int_equal(bed_rd64(bed, FRZSTS), 0);
	assert_int_equal(bed_value(bed, 0), 9);
	assert_int_equal(bed_value(bed, 1), 9);
	bed_free(bed);
}

/* 2.2: PERFCAP_REG.CWE (bit 48) says whether a counter that is enabled can be written. */
static void enabled_counters_are_written_where_cwe_is_set(void **state)
{
	(void)state;
	for (unsigned cwe = 0; cwe < 2; cwe++) {
		struct quipu_vtd_config config;
		struct bed *bed;

		quipu_vtd_config_init(&config, QUIPU_VTD_SPR);
		config.perfcap &= ~(UINT64_C(1) << 48);
		config.perfcap |= (uint64_t)cwe << 48;
		bed = bed_plain(&config);
		bed_wr64(bed, COUNTER(0), 5);
		bed_wr64(bed, CFG(0), UINT64_C(0x200000000));
		assert_int_equal(bed_command(bed, ENABLE, 0), 0);
		bed_wr64(bed, COUNTER(0), 7);
		assert_int_equal(bed_value(bed, 0), cwe ? 7 : 5);
		bed_command(bed, DISABLE, 0);
		bed_wr64(bed, COUNTER(0), 9);
		assert_int_equal(bed_value(bed, 0), 9);
		bed_free(bed);
	}
}

static void r32_counter_width(void **state)
{
	struct bed *bed = fresh(state);

	bed_wr64(bed, COUNTER(0), UINT64_MAX);
	assert_int_equal(bed_value(bed, 0), UINT64_C(0x0000FFFFFFFFFFFF));
	/* Halves, low first. */
	bed_wr32(bed, COUNTER(1), 0x11223344);
	bed_wr32(bed, COUNTER(1) + 4, 0xffff5566);
	assert_int_equal(bed_value(bed, 1), UINT64_C(0x556611223344));
	assert_int_equal(bed_rd32(bed, COUNTER(1) + 4), 0x5566);
	bed_free(bed);
}

int main(void)
{
	enum { NENABLE = sizeof(enable_cases) / sizeof(enable_cases[0]) };
	enum { NTYPE = sizeof(type_cases) / sizeof(type_cases[0]) };
	static const struct CMUnitTest plain[] = {
		cmocka_unit_test(r9_enable_shows),
		cmocka_unit_test(r10_enabled_is_locked),
		cmocka_unit_test(r14_two_events_are_summed),
		cmocka_unit_test(r20_filters_that_are_not_there),
		cmocka_unit_test(r21_overflow_is_held_while_masked),
		cmocka_unit_test(r22_unmasking_sends_what_is_held),
		cmocka_unit_test(r23_no_second_message_before_the_first_is_acknowledged),
		cmocka_unit_test(r24_both_status_registers_clear),
		cmocka_unit_test(r25_overflow_without_interrupt),
		cmocka_unit_test(r26_overflow_freezes_the_rest),
		cmocka_unit_test(r27_freeze_and_unfreeze),
		cmocka_unit_test(r28_disable_unfreezes_one),
		cmocka_unit_test(r29_enabled_again_it_counts),
		cmocka_unit_test(r30_reset_values),
		cmocka_unit_test(r31_reset_configuration),
		cmocka_unit_test(r32_counter_width),
		cmocka_unit_test(enabled_counters_are_written_where_cwe_is_set),
	};
	enum { NPLAIN = sizeof(plain) / sizeof(plain[0]) };
	enum { NVALUE = sizeof(value_cases) / sizeof(value_cases[0]) };
	enum { NPOOR = sizeof(poor_cases) / sizeof(poor_cases[0]) };
	struct CMUnitTest tests[NVALUE + NENABLE + NPOOR + NTYPE + NPLAIN] = {{0}};
	unsigned n = 0;

	for (unsigned i = 0; i < NVALUE; i++)
		tests[n++] = (struct CMUnitTest){value_cases[i].name, value_case, NULL, NULL,
						 (void *)&value_cases[i]};
	for (unsigned i = 0; i < NENABLE; i++)
		tests[n++] = (struct CMUnitTest){enable_cases[i].name, enable_case, NULL, NULL,
						 (void *)&enable_cases[i]};
	for (unsigned i = 0; i < NPOOR; i++)
		tests[n++] = (struct CMUnitTest){poor_cases[i].name, poor_case, NULL, NULL,
						 (void *)&poor_cases[i]};
	for (unsigned i = 0; i < NTYPE; i++)
		tests[n++] = (struct CMUnitTest){type_cases[i].name, type_case, NULL, NULL,
						 (void *)&type_cases[i]};
	for (unsigned i = 0; i < NPLAIN; i++)
		tests[n++] = plain[i];
	return _cmocka_run_group_tests("conformance vtd registers", tests, n, NULL, NULL);
}
