// SPDX-License-Identifier: BSD-2-Clause
/*
 * No order of calls gives a counter two owners: two guests and four strands (and a fifth on the
 * other chip) fight at random for every counter and sampler, and each status is compared with a
 * model of ownership that knows nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <quipu/rock.h>

#define CALLS  1200000u
#define RING   0x1000u
#define LIST   0x8000u
#define MEMORY 0x10000u
#define NTYPES 7u
#define NOBODY (-1)

static const unsigned codes[NTYPES] = {0x100, 0x200, 0x400, 0x800, 0x2000, 0x4000, 0x8000};
static const unsigned strands[] = {0, 1, 2, 3, 33};

static uint64_t next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* The reference: who owns what, and under which source. */
struct half {
	int owner;
	unsigned source;
};
struct reference {
	unsigned guest[64];
	bool enabled[3];
	struct half half[2][NTYPES][2]; /* chip, type, counter or sampler */
};

static bool is_init(unsigned f)
{
	return f == RK_PERF_COUNT_INIT || f == RK_PERF_SAMPLE_INIT;
}

static bool is_sampler(unsigned f)
{
	return f >= RK_PERF_SAMPLE_INIT;
}

static bool valid(unsigned f, unsigned t, unsigned source)
{
	if (is_sampler(f) && (t == 0 || t > 3))
		return false;
	return !is_init(f) || (source && (t == 2 || source < RK_PERF_SRC_SIU));
}

static bool shared(const struct reference *m, unsigned strand)
{
	unsigned first = strand & ~31u;

	for (unsigned s = first; s < first + 32; s++)
		if (m->guest[s] && m->guest[s] != m->guest[strand])
			return true;
	return false;
}

/*
 * The status of a call that is well formed but for type, source and ownership; the model follows
 * it.
 */
static uint64_t expect(struct reference *m, unsigned strand, unsigned f, unsigned t,
		       unsigned source)
{
	struct half *h = m->half[strand / 32][t];
	struct half *mine = &h[is_sampler(f)];
	int owner = h[0].owner != NOBODY ? h[0].owner : h[1].owner;

	if (!m->guest[strand] || !m->enabled[m->guest[strand]])
		return QUIPU_ROCK_EBADTRAP;
	if (!valid(f, t, source))
		return QUIPU_ROCK_EINVAL;
	if (!is_init(f)) {
		if (mine->owner == NOBODY)
			return QUIPU_ROCK_EINVAL;
		if (mine->owner != (int)strand)
			return QUIPU_ROCK_ENOACCESS;
		if (source && source != mine->source)
			return QUIPU_ROCK_EINVAL;
		if (f == RK_PERF_COUNT_RELEASE || f == RK_PERF_SAMPLE_RELEASE)
			mine->owner = NOBODY;
		return QUIPU_ROCK_EOK;
	}
	if ((source & RK_PERF_SRC_STRANDS) && shared(m, strand))
		return QUIPU_ROCK_ENOCPU;
	if (owner != NOBODY && owner != (int)strand)
		return m->guest[owner] == m->guest[strand] ? QUIPU_ROCK_EWOULDBLOCK
							   : QUIPU_ROCK_ENOACCESS;
	*mine = (struct half){(int)strand, source};
	return QUIPU_ROCK_EOK;
}

static void forget(struct reference *m, unsigned strand)
{
	for (unsigned t = 0; t < NTYPES; t++)
		for (unsigned k = 0; k < 2; k++)
			if (m->half[strand / 32][t][k].owner == (int)strand)
				m->half[strand / 32][t][k].owner = NOBODY;
}

/* What happens to strands and guests, seldom. */
static void upheaval(struct quipu_rock *r, struct reference *m, uint64_t dice)
{
	unsigned strand = strands[dice % 5], guest = (unsigned)(dice >> 8) % 3;

	switch ((dice >> 16) % 4) {
	case 0:
		quipu_rock_strand_stop(r, strand);
		forget(m, strand);
		break;
	case 1:
		if (m->guest[strand] != guest)
			forget(m, strand);
		assert_int_equal(quipu_rock_bind(r, strand, guest), 0);
		m->guest[strand] = guest;
		break;
	case 2:
		quipu_rock_guest_reset(r, guest);
		for (unsigned s = 0; guest && s < 64; s++)
			if (m->guest[s] == guest)
				forget(m, s);
		m->enabled[guest] = false;
		break;
	default:
		if (m->guest[strand]) {
			bool on = dice >> 24 & 3;

			quipu_rock_set_version(r, strand, API_GROUP_RKPERF, on, 0, NULL);
			m->enabled[m->guest[strand]] = on;
		}
	}
}

static void setup(struct quipu_rock *r, struct reference *m)
{
	static const unsigned of[5] = {1, 1, 2, 2, 1};

	memset(m, 0, sizeof(*m));
	for (unsigned i = 0; i < 2 * NTYPES * 2; i++)
		(&m->half[0][0][0])[i].owner = NOBODY;
	for (unsigned i = 0; i < 5; i++) {
		quipu_rock_bind(r, strands[i], of[i]);
		m->guest[strands[i]] = of[i];
	}
	for (unsigned g = 1; g <= 2; g++) {
		uint8_t *memory;

		assert_int_equal(quipu_rock_memory_add(r, g, 0, MEMORY), 0);
		memory = quipu_rock_memory(r, g, 0, MEMORY);
		memory[RING + 10] = 0x10; /* size 0x1000 */
		memory[LIST + 6] = 0x01;  /* INFO of the INSTR sampler */
		memory[LIST + 7] = 0x48;
		memory[LIST + 13] = 0xf1; /* TXN_INFO of the L2 sampler */
		memory[LIST + 15] = 0x10;
		memory[LIST + 21] = 0xf2; /* TXN_INFO of the MMU sampler */
		memory[LIST + 23] = 0x10;
	}
	quipu_rock_set_version(r, 0, API_GROUP_RKPERF, 1, 0, NULL);
	quipu_rock_set_version(r, 2, API_GROUP_RKPERF, 1, 0, NULL);
	m->enabled[1] = m->enabled[2] = true;
}

/* Operands that the call takes whenever its caller may make it. */
static void operands(unsigned f, unsigned t, uint64_t args[4])
{
	static const uint64_t config[NTYPES] = {0, QUIPU_ROCK_IS_PC_MASK, QUIPU_ROCK_L2_EA_MASK,
						QUIPU_ROCK_MMU_EA_MASK};

	if (f == RK_PERF_SAMPLE_INIT)
		args[1] = RING;
	else if (f == RK_PERF_SAMPLE_CONFIG)
		args[1] = config[t];
	else if (f == RK_PERF_SAMPLE_START) {
		args[1] = 1000;
		args[2] = 8;
		args[3] = LIST + (t ? t - 1 : 0) * 8;
	}
}

static void never_two_owners(void **state)
{
	static const unsigned functions[] = {
		RK_PERF_COUNT_INIT,	RK_PERF_COUNT_INIT,	RK_PERF_COUNT_RELEASE,
		RK_PERF_COUNT_SET,	RK_PERF_COUNT_GET,	RK_PERF_COUNT_START,
		RK_PERF_COUNT_OVERFLOW, RK_PERF_COUNT_STOP,	RK_PERF_SAMPLE_INIT,
		RK_PERF_SAMPLE_INIT,	RK_PERF_SAMPLE_RELEASE, RK_PERF_SAMPLE_CONFIG,
		RK_PERF_SAMPLE_PENDING, RK_PERF_SAMPLE_START,	RK_PERF_SAMPLE_STOP,
		RK_PERF_COUNT_RELEASE,
	};
	struct quipu_rock *r = quipu_rock_new(&(struct quipu_rock_config){.chips = 2});
	struct reference m;
	uint64_t seed = 20080912, counts[16] = {0};

	(void)state;
	assert_non_null(r);
	setup(r, &m);
	for (unsigned i = 0; i < CALLS; i++) {
		uint64_t dice = next(&seed);
		unsigned strand = strands[dice % 5], f = functions[dice >> 8 & 15],
			 t = (unsigned)(dice >> 16) % NTYPES;
		unsigned source = dice >> 24 & 1 ? 1u : (unsigned)(dice >> 25) & 15;
		uint64_t args[4] = {codes[t] | source}, status, want;

		if ((dice >> 40) % 500 == 0)
			upheaval(r, &m, next(&seed));
		if (dice >> 60 & 1)
			args[0] = QUIPU_ROCK_TYPE(codes[t], source);
		operands(f, t, args);
		want = expect(&m, strand, f, t, source);
		status = quipu_rock_hcall(r, strand, f, args, NULL);
		if (status != want)
			fail_msg("call %u: strand %u function 0x%x type 0x%llx: %s, the model says "
				 "%s",
				 i, strand, f, (unsigned long long)args[0],
				 quipu_rock_status_name(status), quipu_rock_status_name(want));
		counts[status]++;
	}
	/* The fight was one: each status came up often. */
	for (unsigned s = 0; s < 11; s++)
		if (s == 0 || s == 1 || s == 6 || s == 7 || s == 9 || s == 10)
			assert_true(counts[s] > CALLS / 1000);
	quipu_rock_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(never_two_owners)};

	return cmocka_run_group_tests_name("rock ownership", tests, NULL, NULL);
}
