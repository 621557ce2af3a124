/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constraints and register values of the POWER9 core PMU: Linux 6.12
 * arch/powerpc/perf/isa207-common.c and core-book3s.c (power_check_constraints), power-cpu sheet
 * section 3. The two oddities of its set check are kept: an L2 or L3 event on counters 1 to 3 does
 * not fit alone, but does once the first pass has failed for another reason.
 */
#include "platform/power/constraint.h"

#include <string.h>

#include <quipu/bits.h>

#include "platform/power/events.h"

#define ADD_FIELDS  UINT64_C(0x1555)
#define TEST_ADDER  UINT64_C(0x3000)
#define CACHE_GROUP (UINT64_C(1) << 54)
#define RUN_INST    UINT64_C(0x500fa)
#define RUN_CYC	    UINT64_C(0x600f4)

struct constraint {
	uint64_t mask, value;
};

static void field(struct constraint *c, unsigned shift, unsigned width, uint64_t value)
{
	c->mask |= bits_mask(width) << shift;
	c->value |= value << shift;
}

/* What only the counters 1 to 4 have. */
static int programmable(uint64_t code, struct constraint *c)
{
	uint64_t unit = bits_get(code, POWER_UNIT), cmp = bits_get(code, POWER_THRESH_CMP);

	c->mask |= UINT64_C(1) << 15; /* number of events: a carry into here is one too many */
	c->value |= UINT64_C(1) << 12;
	if (unit >= 6 && unit <= 9) {
		field(c, 54, 1, bits_get(code, POWER_PMC) == 4);
		field(c, 55, 8, bits_get(code, POWER_PMCXSEL));
	} else {
		field(c, 22, 2, bits_get(code, POWER_CACHE_SEL) & 3);
	}
	if (bits_get(code, POWER_MARK))
		field(c, 16, 5, bits_get(code, POWER_SAMPLE));
	if (!bits_get(code, POWER_THRESH_SEL))
		return 0;
	if (cmp >> 7 && !(cmp & 0x60))
		return -1;
	field(c, 32, 21, bits_get(code, POWER_THRESH));
	return 0;
}

static int constraint_of(uint64_t code, struct constraint *c)
{
	unsigned pmc = (unsigned)bits_get(code, POWER_PMC);
	uint64_t ebb = bits_get(code, POWER_EBB), bhrb = bits_get(code, POWER_BHRB),
		 plain = code & bits_mask(60);

	memset(c, 0, sizeof(*c));
	if ((code & ~POWER_VALID) || pmc > POWER_PMCS)
		return -1;
	if ((pmc == 5 && plain != RUN_INST) || (pmc == 6 && plain != RUN_CYC))
		return -1;
	if (pmc) {
		c->mask |= UINT64_C(2) << 2 * (pmc - 1);
		c->value |= UINT64_C(1) << 2 * (pmc - 1);
	}
	if (pmc < 5 && programmable(code, c))
		return -1;
	if ((ebb && !pmc) || (bhrb && !ebb))
		return -1;
	field(c, 24, 1, ebb);
	if (bhrb)
		field(c, 25, 2, bits_get(code, POWER_IFM));
	return 0;
}

/* Join @c to @sum; false when it does not go. @group: the fields that are judged once all are in.
 */
static bool join(struct constraint *sum, const struct constraint *c, uint64_t group)
{
	uint64_t nv = (sum->value | c->value) + (sum->value & c->value & ADD_FIELDS);

	if ((((nv + TEST_ADDER) ^ sum->value) & sum->mask & ~group) ||
	    (((nv + TEST_ADDER) ^ c->value) & c->mask & ~group))
		return false;
	sum->value = nv;
	sum->mask |= c->mask;
	return true;
}

unsigned power_alternatives(uint64_t code, bool task, uint64_t out[8])
{
	static const uint64_t pairs[][2] = {
		{0x20036, 0x40036}, {0x200f2, 0x300f2}, {0x200f4, 0x600f4},
		{0x3e054, 0x400f0}, {0x400fa, 0x500fa},
	};
	static const uint64_t run[][2] = {{0x1e, RUN_CYC}, {0x2, RUN_INST}};
	unsigned n = 0, first;

	out[n++] = code;
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		for (unsigned k = 0; k < 2; k++)
			if (pairs[i][k] == code)
				out[n++] = pairs[i][!k];
	first = n;
	for (unsigned i = 0; task && i < first; i++)
		for (unsigned r = 0; r < 2; r++)
			for (unsigned k = 0; k < 2; k++)
				if (run[r][k] == out[i] && n < 8)
					out[n++] = run[r][!k];
	return n;
}

/* The codes as they are. 0 they fit, -1 they do not, 1 alternatives may. */
static int first_pass(const uint64_t *code, unsigned n)
{
	struct constraint sum = {0, 0}, c;

	for (unsigned i = 0; i < n; i++)
		if (constraint_of(code[i], &c) || !join(&sum, &c, CACHE_GROUP))
			return 1;
	return (sum.value & sum.mask & CACHE_GROUP) == (sum.mask & CACHE_GROUP) ? 0 : -1;
}

static bool search(uint64_t *code, const bool *task, unsigned n, unsigned i, struct constraint sum)
{
	uint64_t alternative[8];
	unsigned count;

	if (i == n)
		return true;
	count = power_alternatives(code[i], task[i], alternative);
	for (unsigned k = 0; k < count; k++) {
		struct constraint next = sum, c;
		uint64_t own = code[i];

		if (constraint_of(alternative[k], &c) || !join(&next, &c, 0))
			continue;
		code[i] = alternative[k];
		if (search(code, task, n, i + 1, next))
			return true;
		code[i] = own;
	}
	return false;
}

int power_fit(uint64_t *code, const bool *task, unsigned n)
{
	struct constraint c;
	int first;

	if (n > POWER_PMCS)
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (constraint_of(code[i], &c))
			return -1;
	first = first_pass(code, n);
	if (first <= 0)
		return first;
	return search(code, task, n, 0, (struct constraint){0, 0}) ? 0 : -1;
}

/* ---- values ---- */

static int assign(const uint64_t *code, unsigned n, unsigned *pmc)
{
	unsigned used = 0;

	for (unsigned i = 0; i < n; i++) {
		pmc[i] = (unsigned)bits_get(code[i], POWER_PMC);
		if (pmc[i] && used & 1u << pmc[i])
			return -1;
		used |= pmc[i] ? 1u << pmc[i] : 0;
	}
	for (unsigned i = 0; i < n; i++) {
		for (unsigned p = 1; p <= 4 && !pmc[i]; p++)
			if (!(used & 1u << p))
				pmc[i] = p;
		if (!pmc[i])
			return -1;
		used |= 1u << pmc[i];
	}
	return 0;
}

static uint64_t mmcr1_of(uint64_t code, unsigned p)
{
	uint64_t v = bits_get(code, POWER_UNIT) << (60 - 4 * (p - 1)) |
		     bits_get(code, POWER_COMBINE) << (38 - 2 * (p - 1)) |
		     bits_get(code, POWER_PMCXSEL) << (24 - 8 * (p - 1));
	uint64_t unit = bits_get(code, POWER_UNIT);

	if (unit < 6 || unit > 9)
		v |= (bits_get(code, POWER_CACHE_SEL) & 3) << 46;
	return v;
}

/* Sampling, thresholds and SDAR mode of one more event. */
static void add_mmcra(uint64_t code, uint64_t *mmcra)
{
	uint64_t sdar = bits_get(code, POWER_SDAR), sample = bits_get(code, POWER_SAMPLE);

	if (bits_get(code, POWER_MARK) || (*mmcra & 1))
		*mmcra &= ~(UINT64_C(3) << 42);
	else
		*mmcra |= (sdar ? sdar : 2) << 42;
	if (bits_get(code, POWER_MARK))
		*mmcra |= 1 | (sample & 3) << 1 | (sample >> 2) << 4;
	if (bits_get(code, POWER_THRESH_SEL))
		*mmcra |= bits_get(code, POWER_THRESH_START) << 12 |
			  bits_get(code, POWER_THRESH_STOP) << 8 |
			  bits_get(code, POWER_THRESH_SEL) << 16 |
			  bits_get(code, POWER_THRESH_CMP) << 45;
}

int power_compute(const uint64_t *code, const uint64_t *freeze, unsigned n, struct power_values *v)
{
	unsigned used = 0;

	memset(v, 0, sizeof(*v));
	if (n > POWER_PMCS || assign(code, n, v->pmc))
		return -1;
	for (unsigned i = 0; i < n; i++) {
		unsigned p = v->pmc[i];

		used |= 1u << p;
		if (p <= 4) {
			v->mmcr1 |= mmcr1_of(code[i], p);
			add_mmcra(code[i], &v->mmcra);
		}
		v->mmcr2 |= freeze[i] >> 9 * (p - 1);
	}
	v->mmcr0 = (used & 1u << 1 ? 0x8000 : 0) | (used & ~3u ? 0x4000 : 0) |
		   (used & (1u << 5 | 1u << 6) ? 0 : 0x10);
	return 0;
}
