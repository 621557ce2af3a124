// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every return code of every call that FWARC/2008/399 lists (sections 5.1.1 to 5.2.6), in its words
 * where it has more than one reason for a code, and EBADTRAP of FWARC/2005/116. The last test holds
 * the table against the document: no pair of call and code is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/rock.h>

#define RING	0x1000u
#define LIST	0x8000u
#define MEMORY	0x10000u
#define OUTSIDE 0x20000u
#define STRAND	RK_PERF_SRC_STRAND
#define STRANDS RK_PERF_SRC_STRANDS

/* Strands: two of guest 1, one of guest 2 on the same chip; guest 1 alone has chip 1. */
enum { MINE = 0, SIBLING = 1, FOREIGN = 2, ALONE = 32 };

/* What strand MINE has done before. */
enum before { NOTHING, INIT, DISABLED };

struct row {
	const char *why; /* as the document says it */
	uint64_t function, status;
	enum before before;
	unsigned strand;
	uint64_t args[4];
};

#define C(source) QUIPU_ROCK_TYPE(RK_PERF_INSTR, source)
#define BAD	  QUIPU_ROCK_TYPE(0x300, STRAND)
#define SPEC	  QUIPU_ROCK_TYPE(RK_PERF_SPEC, STRAND)

/* What the calls have in common that only an owner may make. */
#define OWNED(f, ...)                                                                                \
	{"Success", f, QUIPU_ROCK_EOK, INIT, MINE, {C(STRAND), ##__VA_ARGS__}},                      \
		{"Invalid type", f, QUIPU_ROCK_EINVAL, INIT, MINE, {BAD, ##__VA_ARGS__}},            \
		{"Invalid type: SPEC has no layout",                                                 \
		 f,                                                                                  \
		 QUIPU_ROCK_EINVAL,                                                                  \
		 INIT,                                                                               \
		 MINE,                                                                               \
		 {SPEC, ##__VA_ARGS__}},                                                             \
		{"Un-initialized", f, QUIPU_ROCK_EINVAL, NOTHING, MINE, {C(STRAND), ##__VA_ARGS__}}, \
		{"Current strand is not the owner (same guest)",                                     \
		 f,                                                                                  \
		 QUIPU_ROCK_ENOACCESS,                                                               \
		 INIT,                                                                               \
		 SIBLING,                                                                            \
		 {C(STRAND), ##__VA_ARGS__}},                                                        \
		{"Current strand is not the owner (another guest)",                                  \
		 f,                                                                                  \
		 QUIPU_ROCK_ENOACCESS,                                                               \
		 INIT,                                                                               \
		 FOREIGN,                                                                            \
		 {C(STRAND), ##__VA_ARGS__}},                                                        \
	{                                                                                            \
		"the group is not negotiated", f, QUIPU_ROCK_EBADTRAP, DISABLED, MINE,               \
		{                                                                                    \
			C(STRAND), ##__VA_ARGS__                                                     \
		}                                                                                    \
	}

#define TAKEN(f, ...)                                                                              \
	{"Success", f, QUIPU_ROCK_EOK, NOTHING, MINE, {C(STRAND), ##__VA_ARGS__}},                 \
		{"Invalid type", f, QUIPU_ROCK_EINVAL, NOTHING, MINE, {BAD, ##__VA_ARGS__}},       \
		{"Invalid type: SPEC has no layout",                                               \
		 f,                                                                                \
		 QUIPU_ROCK_EINVAL,                                                                \
		 NOTHING,                                                                          \
		 MINE,                                                                             \
		 {SPEC, ##__VA_ARGS__}},                                                           \
		{"In use by a strand in a different guest",                                        \
		 f,                                                                                \
		 QUIPU_ROCK_ENOACCESS,                                                             \
		 INIT,                                                                             \
		 FOREIGN,                                                                          \
		 {C(STRAND), ##__VA_ARGS__}},                                                      \
		{"In use by a strand in the same guest",                                           \
		 f,                                                                                \
		 QUIPU_ROCK_EWOULDBLOCK,                                                           \
		 INIT,                                                                             \
		 SIBLING,                                                                          \
		 {C(STRAND), ##__VA_ARGS__}},                                                      \
		{"A CPU-ID of the source is not part of the current guest",                        \
		 f,                                                                                \
		 QUIPU_ROCK_ENOCPU,                                                                \
		 NOTHING,                                                                          \
		 MINE,                                                                             \
		 {C(STRANDS), ##__VA_ARGS__}},                                                     \
		{"Success: all strands of a chip of one's own",                                    \
		 f,                                                                                \
		 QUIPU_ROCK_EOK,                                                                   \
		 NOTHING,                                                                          \
		 ALONE,                                                                            \
		 {C(STRANDS), ##__VA_ARGS__}},                                                     \
	{                                                                                          \
		"the group is not negotiated", f, QUIPU_ROCK_EBADTRAP, DISABLED, MINE,             \
		{                                                                                  \
			C(STRAND), ##__VA_ARGS__                                                   \
		}                                                                                  \
	}

#define INVALID(why, f, ...)                                                                       \
	{                                                                                          \
		why, f, QUIPU_ROCK_EINVAL, INIT, MINE,                                             \
		{                                                                                  \
			C(STRAND), ##__VA_ARGS__                                                   \
		}                                                                                  \
	}
#define NO_ADDRESS(why, f, before, ...)                                                            \
	{                                                                                          \
		why, f, QUIPU_ROCK_ENORADDR, before, MINE,                                         \
		{                                                                                  \
			C(STRAND), ##__VA_ARGS__                                                   \
		}                                                                                  \
	}

static const struct row rows[] = {
	TAKEN(RK_PERF_COUNT_INIT),
	OWNED(RK_PERF_COUNT_RELEASE),
	OWNED(RK_PERF_COUNT_SET, 1000),
	INVALID("Counter out of range", RK_PERF_COUNT_SET, UINT64_C(1) << 39),
	OWNED(RK_PERF_COUNT_GET),
	OWNED(RK_PERF_COUNT_START, QUIPU_ROCK_TOE | QUIPU_ROCK_USER),
	OWNED(RK_PERF_COUNT_OVERFLOW),
	OWNED(RK_PERF_COUNT_STOP),
	TAKEN(RK_PERF_SAMPLE_INIT, RING),
	NO_ADDRESS("Invalid address", RK_PERF_SAMPLE_INIT, NOTHING, OUTSIDE),
	NO_ADDRESS("Invalid address: not aligned", RK_PERF_SAMPLE_INIT, NOTHING, RING + 4),
	OWNED(RK_PERF_SAMPLE_RELEASE),
	OWNED(RK_PERF_SAMPLE_CONFIG, QUIPU_ROCK_IS_CONTEXT_FILTER, 0x19),
	INVALID("Invalid ASI-VA specified", RK_PERF_SAMPLE_CONFIG, 0x20, 0),
	INVALID("Invalid ASI-VA: one to be sampled", RK_PERF_SAMPLE_CONFIG, QUIPU_ROCK_IS_INFO, 0),
	INVALID("too low a candidate counter is denial of service", RK_PERF_SAMPLE_CONFIG,
		QUIPU_ROCK_IS_CC_LATENCY_MASK, UINT64_C(49) << 22 | 0xfff),
	OWNED(RK_PERF_SAMPLE_START, 100, 16, LIST),
	INVALID("Frequency out of range", RK_PERF_SAMPLE_START, 49, 16, LIST),
	INVALID("Frequency out of range", RK_PERF_SAMPLE_START, 1024, 16, LIST),
	INVALID("a list that is no multiple of x-words", RK_PERF_SAMPLE_START, 100, 12, LIST),
	INVALID("a VA of the list that is not valid", RK_PERF_SAMPLE_START, 100, 8, LIST + 16),
	NO_ADDRESS("Invalid address in arg3", RK_PERF_SAMPLE_START, INIT, 100, 16, OUTSIDE),
	OWNED(RK_PERF_SAMPLE_PENDING),
	OWNED(RK_PERF_SAMPLE_STOP),
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void put64(uint8_t *p, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (56 - 8 * i));
}

static struct quipu_rock *chips(void)
{
	struct quipu_rock *r = quipu_rock_new(&(struct quipu_rock_config){.chips = 2});
	uint8_t *memory;

	assert_non_null(r);
	quipu_rock_bind(r, MINE, 1);
	quipu_rock_bind(r, SIBLING, 1);
	quipu_rock_bind(r, FOREIGN, 2);
	quipu_rock_bind(r, ALONE, 1);
	for (unsigned guest = 1; guest <= 2; guest++) {
		assert_int_equal(quipu_rock_memory_add(r, guest, 0, MEMORY), 0);
		memory = quipu_rock_memory(r, guest, 0, MEMORY);
		memory[RING + 10] = 0x10; /* size 0x1000 */
		put64(memory + LIST, QUIPU_ROCK_IS_INFO);
		put64(memory + LIST + 8, QUIPU_ROCK_IS_CONTEXT);
		put64(memory + LIST + 16, 0x777);
	}
	quipu_rock_set_version(r, MINE, API_GROUP_RKPERF, 1, 0, NULL);
	quipu_rock_set_version(r, FOREIGN, API_GROUP_RKPERF, 1, 0, NULL);
	return r;
}

static uint64_t hcall(struct quipu_rock *r, unsigned strand, uint64_t f, const uint64_t *args,
		      uint64_t *ret)
{
	uint64_t o[6] = {args[0], args[1], args[2], args[3], 0x4444, f};

	quipu_rock_trap(r, strand, QUIPU_ROCK_FAST_TRAP, o);
	*ret = o[1];
	return o[0];
}

/* What the owner sees of a counter, to tell whether a call has changed anything. */
static void look(struct quipu_rock *r, uint64_t seen[2])
{
	seen[0] = (uint64_t)quipu_rock_owner(r, 0, RK_PERF_INSTR);
	hcall(r, MINE, RK_PERF_COUNT_GET, (uint64_t[4]){C(STRAND)}, &seen[1]);
}

static bool has_result(uint64_t function)
{
	return function == RK_PERF_COUNT_GET || function == RK_PERF_COUNT_OVERFLOW ||
	       function == RK_PERF_SAMPLE_PENDING;
}

static void each_return_code(void **state)
{
	const struct row *row = *state;
	struct quipu_rock *r = chips();
	uint64_t ret, before[2], after[2], status;

	if (row->before == INIT) {
		assert_int_equal(hcall(r, MINE, RK_PERF_COUNT_INIT, (uint64_t[4]){C(STRAND)}, &ret),
				 0);
		assert_int_equal(hcall(r, MINE, RK_PERF_SAMPLE_INIT, (uint64_t[4]){C(STRAND), RING},
				       &ret),
				 0);
		assert_int_equal(
			hcall(r, MINE, RK_PERF_COUNT_SET, (uint64_t[4]){C(STRAND), 77}, &ret), 0);
	}
	if (row->before == DISABLED)
		quipu_rock_set_version(r, MINE, API_GROUP_RKPERF, 0, 0, NULL);
	look(r, before);
	status = hcall(r, row->strand, row->function, row->args, &ret);
	if (status != row->status)
		fail_msg("%s, not %s", quipu_rock_status_name(status),
			 quipu_rock_status_name(row->status));
	if (status) {
		look(r, after);
		if (has_result(row->function) && status != QUIPU_ROCK_EBADTRAP)
			assert_int_equal(ret, 0);
		assert_memory_equal(before, after, sizeof(before));
	}
	quipu_rock_free(r);
}

/* The document's lists of ret0, by call; and EBADTRAP. */
static void no_pair_is_missing(void **state)
{
	static const struct {
		uint64_t function;
		uint16_t codes; /* bit of each */
	} document[] = {
#define BIT(s) (1u << QUIPU_ROCK_##s)
#define OWNER  (BIT(EOK) | BIT(EINVAL) | BIT(ENOACCESS) | BIT(EBADTRAP))
#define TAKER  (OWNER | BIT(EWOULDBLOCK) | BIT(ENOCPU))
		{RK_PERF_COUNT_INIT, TAKER},
		{RK_PERF_COUNT_RELEASE, OWNER},
		{RK_PERF_COUNT_SET, OWNER},
		{RK_PERF_COUNT_GET, OWNER},
		{RK_PERF_COUNT_START, OWNER},
		{RK_PERF_COUNT_OVERFLOW, OWNER},
		{RK_PERF_COUNT_STOP, OWNER},
		{RK_PERF_SAMPLE_INIT, TAKER | BIT(ENORADDR)},
		{RK_PERF_SAMPLE_RELEASE, OWNER},
		{RK_PERF_SAMPLE_CONFIG, OWNER},
		{RK_PERF_SAMPLE_START, OWNER | BIT(ENORADDR)},
		{RK_PERF_SAMPLE_PENDING, OWNER},
		{RK_PERF_SAMPLE_STOP, OWNER},
	};

	(void)state;
	for (size_t d = 0; d < sizeof(document) / sizeof(document[0]); d++) {
		uint16_t seen = 0;

		for (size_t i = 0; i < ROWS; i++)
			if (rows[i].function == document[d].function)
				seen |= (uint16_t)(1u << rows[i].status);
		if (seen != document[d].codes)
			fail_msg("function 0x%llx: codes 0x%x of 0x%x",
				 (unsigned long long)document[d].function, seen, document[d].codes);
	}
}

static char names[ROWS + 1][120];

int main(void)
{
	struct CMUnitTest tests[ROWS + 1];

	for (size_t i = 0; i < ROWS; i++) {
		snprintf(names[i], sizeof(names[i]), "0x%llx %s: %s",
			 (unsigned long long)rows[i].function,
			 quipu_rock_status_name(rows[i].status), rows[i].why);
		tests[i] = (struct CMUnitTest){names[i], each_return_code, NULL, NULL,
					       (void *)&rows[i]};
	}
	tests[ROWS] = (struct CMUnitTest){"no pair of call and code is missing", no_pair_is_missing,
					  NULL, NULL, NULL};
	return _cmocka_run_group_tests("rock returns", tests, ROWS + 1, NULL, NULL);
}
