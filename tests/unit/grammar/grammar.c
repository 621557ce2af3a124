// SPDX-License-Identifier: BSD-2-Clause
/*
 * The event grammar against tables: string -> attribute words, and wrong string -> column and
 * reason. Expected words are worked out from the formats in tree.h by hand; against_perf.c asks the
 * stock perf.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <quipu/grammar.h>

#include "tree.h"

#define U    QUIPU_ATTR_EXCLUDE_USER
#define K    QUIPU_ATTR_EXCLUDE_KERNEL
#define H    QUIPU_ATTR_EXCLUDE_HV
#define I    QUIPU_ATTR_EXCLUDE_IDLE
#define XH   QUIPU_ATTR_EXCLUDE_HOST
#define XG   QUIPU_ATTR_EXCLUDE_GUEST
#define P(n) ((uint64_t)(n) << QUIPU_ATTR_PRECISE_SHIFT)

static int setup(void **state)
{
	struct quipu_tree tree = {(struct quipu_tree_file *)test_files, TEST_FILES};

	*state = quipu_catalog_new(&tree);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	quipu_catalog_free(*state);
	return 0;
}

struct row {
	const char *text;
	uint32_t type;
	uint64_t config, config1, config2;
	uint64_t flags;
	const char *name; /* NULL: as typed */
};

static const struct row rows[] = {
	/* generic names and their aliases */
	{"cycles", 0, 0, 0, 0, XG},
	{"cpu-cycles", 0, 0, 0, 0, XG},
	{"instructions", 0, 1, 0, 0, XG},
	{"cache-references", 0, 2, 0, 0, XG},
	{"cache-misses", 0, 3, 0, 0, XG},
	{"branches", 0, 4, 0, 0, XG},
	{"branch-instructions", 0, 4, 0, 0, XG},
	{"branch-misses", 0, 5, 0, 0, XG},
	{"bus-cycles", 0, 6, 0, 0, XG},
	{"stalled-cycles-frontend", 0, 7, 0, 0, XG},
	{"idle-cycles-frontend", 0, 7, 0, 0, XG},
	{"stalled-cycles-backend", 0, 8, 0, 0, XG},
	{"idle-cycles-backend", 0, 8, 0, 0, XG},
	{"ref-cycles", 0, 9, 0, 0, XG},
	{"cpu-clock", 1, 0, 0, 0, XG},
	{"task-clock", 1, 1, 0, 0, XG},
	{"page-faults", 1, 2, 0, 0, XG},
	{"faults", 1, 2, 0, 0, XG},
	{"context-switches", 1, 3, 0, 0, XG},
	{"cs", 1, 3, 0, 0, XG},
	{"cpu-migrations", 1, 4, 0, 0, XG},
	{"migrations", 1, 4, 0, 0, XG},
	{"minor-faults", 1, 5, 0, 0, XG},
	{"major-faults", 1, 6, 0, 0, XG},
	{"alignment-faults", 1, 7, 0, 0, XG},
	{"emulation-faults", 1, 8, 0, 0, XG},
	{"dummy", 1, 9, 0, 0, XG},
	{"bpf-output", 1, 10, 0, 0, XG},
	{"cgroup-switches", 1, 11, 0, 0, XG},
	/* cache names perf takes beside the canonical ones (all of which are tested below) */
	{"L1-dcache", 3, 0, 0, 0, XG},
	{"l1-d", 3, 0, 0, 0, XG},
	{"l1d-read-miss", 3, 0x10000, 0, 0, XG},
	{"l1d-write", 3, 0x100, 0, 0, XG},
	{"L1-data-prefetch-refs", 3, 0x200, 0, 0, XG},
	{"l1i", 3, 1, 0, 0, XG},
	{"L1-instruction-misses", 3, 0x10001, 0, 0, XG},
	{"LLC-speculative-read", 3, 0x202, 0, 0, XG},
	{"LLC-speculative-load-miss", 3, 0x10202, 0, 0, XG},
	{"L2-loads", 3, 2, 0, 0, XG},
	{"L2-misses-store", 3, 0x10102, 0, 0, XG},
	{"d-tlb-load-Reference", 3, 3, 0, 0, XG},
	{"Data-TLB-store-access", 3, 0x103, 0, 0, XG},
	{"i-tlb-ops", 3, 4, 0, 0, XG},
	{"Instruction-TLB-read", 3, 4, 0, 0, XG},
	{"branch", 3, 5, 0, 0, XG},
	{"bpu-load-misses", 3, 0x10005, 0, 0, XG},
	{"btb-read", 3, 5, 0, 0, XG},
	{"bpc-misses", 3, 0x10005, 0, 0, XG},
	{"node-misses-prefetches", 3, 0x10206, 0, 0, XG},
	{"L1-dcache-load-load", 3, 0, 0, 0, XG},
	{"L1-dcache-load-misses:u", 3, 0x10000, 0, 0, K | H | XG},
	/* raw */
	{"r1", 4, 1, 0, 0, XG},
	{"r2a", 4, 0x2a, 0, 0, XG},
	{"rABC:k", 4, 0xabc, 0, 0, U | H},
	{"rffffffffffffffff", 4, UINT64_MAX, 0, 0, XG},
	{"rd0", 4, 0xd0, 0, 0, XG},
	/* a PMU's terms */
	{"cpu//", 4, 0, 0, 0, XG},
	{"cpu//u", 4, 0, 0, 0, K | H | XG},
	{"cpu/event=0x3/", 4, 3, 0, 0, XG},
	{"cpu/event=010/", 4, 10, 0, 0, XG},
	{"cpu/event/", 4, 1, 0, 0, XG},
	{"cpu/event=1,event=2/", 4, 3, 0, 0, XG},
	{"cpu/ event = 1 , edge /", 4, 0x8000000000000001, 0, 0, XG},
	{"cpu/edge/", 4, UINT64_C(1) << 63, 0, 0, XG},
	{"cpu/edge=0/", 4, 0, 0, 0, XG},
	{"cpu/split=0xff/", 4, 0, 0xf0f, 0, XG},
	{"cpu/split=0x12/", 4, 0, 0x102, 0, XG},
	{"cpu/wide=18446744073709551615/", 4, 0, 0, UINT64_MAX, XG},
	{"cpu/config=5,config=6/", 4, 6, 0, 0, XG},
	{"cpu/config=0x1234,event=1/", 4, 0x1235, 0, 0, XG},
	{"cpu/event=1,config=0x1234/", 4, 0x1235, 0, 0, XG},
	{"cpu/config1=5,config2=7/", 4, 0, 5, 7, XG},
	{"cpu/r2a/", 4, 0x2a, 0, 0, XG},
	{"cpu/r0x2a/", 4, 0x2a, 0, 0, XG},
	{"cpu/foo-bar/", 4, 3, 0, 0, XG},
	{"cpu/FOO-bar/uk", 4, 3, 0, 0, H | XG},
	{"cpu/foo-bar/:u", 4, 3, 0, 0, K | H | XG},
	{"cpu/foo-bar=1/", 4, 3, 0, 0, XG},
	{"cpu/event=foo-bar/", 4, 3, 0, 0, XG},
	{"cpu/foo-bar,event=0x10/", 4, 0x13, 0, 0, XG},
	{"cpu/need,split=3/", 4, 5, 3, 0, XG},
	{"cpu/split=0x11,need/", 4, 5, 0x101, 0, XG},
	{"cpu/two-words/", 4, 0x8000000000000007, 9, 0, XG},
	{"cpu/event=1,name=hey/", 4, 1, 0, 0, XG, "hey"},
	{"cpu/name='a b, c/d',event=1/u", 4, 1, 0, 0, K | H | XG, "a b, c/d"},
	{"nest0/umask=0x1ff/", 10, 0x1000000ff, 0, 0, XG},
	{"nest0/wr/", 10, 0x100000011, 0, 0, XG},
	{"nest_1/rd,umask=3/", 11, 0x13, 0, 0, XG},
	{"link/rd/", 12, 0x10, 0, 0, XG},
	/* an event without its PMU */
	{"foo-bar", 4, 3, 0, 0, XG},
	{"FOO-BAR:u", 4, 3, 0, 0, K | H | XG},
	/* generic names take perf's own terms */
	{"cycles//", 0, 0, 0, 0, XG},
	{"cycles/name=foo/", 0, 0, 0, 0, XG, "foo"},
	{"instructions/config=3/", 0, 3, 0, 0, XG},
	{"L1-dcache-loads/name=x/k", 3, 0, 0, 0, U | H, "x"},
	/* modifiers */
	{"cycles:", 0, 0, 0, 0, XG},
	{"cycles:u", 0, 0, 0, 0, K | H | XG},
	{"cycles:k", 0, 0, 0, 0, U | H},
	{"cycles:h", 0, 0, 0, 0, U | K},
	{"cycles:uk", 0, 0, 0, 0, H | XG},
	{"cycles:ukh", 0, 0, 0, 0, XG},
	{"cycles:I", 0, 0, 0, 0, I},
	{"cycles:G", 0, 0, 0, 0, XH},
	{"cycles:H", 0, 0, 0, 0, XG},
	{"cycles:GH", 0, 0, 0, 0, 0},
	{"cycles:uG", 0, 0, 0, 0, K | H | XH},
	{"cycles:Gu", 0, 0, 0, 0, K | H | XH},
	{"cycles:p", 0, 0, 0, 0, P(1) | XG},
	{"cycles:pp", 0, 0, 0, 0, P(2) | XG},
	{"cycles:upp", 0, 0, 0, 0, K | H | P(2) | XG},
	{"cycles:ppp", 0, 0, 0, 0, P(3) | XG},
	{"cycles:P", 0, 0, 0, 0, 0},
	{"cycles:S", 0, 0, 0, 0, 0},
	{"cycles:W", 0, 0, 0, 0, 0},
	{"cycles:D", 0, 0, 0, 0, QUIPU_ATTR_PINNED},
	{"cycles:e", 0, 0, 0, 0, QUIPU_ATTR_EXCLUSIVE},
	{"  cycles:u  ", 0, 0, 0, 0, K | H | XG, "cycles:u"},
	{"{cycles}", 0, 0, 0, 0, XG, "cycles"},
	{"{cycles}:uD", 0, 0, 0, 0, K | H | XG | QUIPU_ATTR_PINNED, "cycles"},
};

static void check_row(const struct quipu_catalog *c, const struct row *r)
{
	struct quipu_event_list list = {0};
	struct quipu_grammar_error err;
	int ret = quipu_grammar_parse(c, r->text, &list, &err);

	if (ret)
		fail_msg("'%s' refused: %s", r->text, err.reason);
	assert_int_equal(list.n, 1);
	if (list.items[0].attr.type != r->type || list.items[0].attr.config != r->config ||
	    list.items[0].attr.config1 != r->config1 || list.items[0].attr.config2 != r->config2 ||
	    list.items[0].attr.flags != r->flags)
		fail_msg("'%s' gives type %u config %llx/%llx/%llx flags %llx", r->text,
			 list.items[0].attr.type, (unsigned long long)list.items[0].attr.config,
			 (unsigned long long)list.items[0].attr.config1,
			 (unsigned long long)list.items[0].attr.config2,
			 (unsigned long long)list.items[0].attr.flags);
	assert_string_equal(list.items[0].name, r->name ? r->name : r->text);
	assert_int_equal(list.items[0].attr.size, 136);
	assert_int_equal(list.items[0].leader, 0);
	quipu_event_list_free(&list);
}

static void every_spelling_gives_perfs_words(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		check_row(*state, &rows[i]);
}

static void every_generic_name_means_itself(void **state)
{
	const char *name, *alias;
	struct row r = {.flags = XG};
	size_t n = 0;

	for (; (name = quipu_grammar_generic(n, &alias, &r.type, &r.config)); n++) {
		r.text = name;
		check_row(*state, &r);
		if (!alias)
			continue;
		r.text = alias;
		check_row(*state, &r);
	}
	assert_true(n > 50);
}

/* Of generic names alone, a catalog without events and formats makes the same. */
static void generic_names_need_no_pmus_names(void **state)
{
	static const char *const others[] = {
		"cpu/rd/",     "foo-bar",   "cycles,foo-bar",	"rd",
		"r1a",	       "m{cycles}", "cycles/period=3/", "cycles:ux",
		"cycles:u/x/", "nosuch",    "L1-dcache-nosuch"};
	static const char *const several[] = {"cycles,instructions:u", "{cycles,L1-dcache-loads}:S",
					      "cs LLC-loads:u", "", ","};
	struct quipu_tree_file files[TEST_FILES];
	struct quipu_tree tree = {files, 0};
	struct quipu_catalog *bare;
	size_t generic = 0;

	(void)state;
	for (size_t i = 0; i < TEST_FILES; i++)
		if (!strstr(test_files[i].path, "/events/") &&
		    !strstr(test_files[i].path, "/format/"))
			files[tree.n++] = test_files[i];
	bare = quipu_catalog_new(&tree);
	assert_non_null(bare);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (quipu_grammar_all_generic(rows[i].text)) {
			check_row(bare, &rows[i]);
			generic++;
		}
	assert_true(generic > 60);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (quipu_grammar_all_generic(others[i]))
			fail_msg("'%s' is not generic", others[i]);
	for (size_t i = 0; i < sizeof(several) / sizeof(*several); i++)
		if (!quipu_grammar_all_generic(several[i]))
			fail_msg("'%s' is generic", several[i]);
	quipu_catalog_free(bare);
}

/* Every term value up to its maximum lands in exactly the bits of its format. */
static void every_bit_of_a_split_format_lands(void **state)
{
	for (unsigned bit = 0; bit < 12; bit++) {
		char text[64];
		struct row r = {.text = text, .type = 10, .flags = XG};

		snprintf(text, sizeof(text), "nest0/umask=%u/", 1u << bit);
		r.config = bit < 8 ? UINT64_C(1) << bit : UINT64_C(1) << (bit - 8 + 32);
		check_row(*state, &r);
	}
}

struct wrong {
	const char *text;
	size_t column;
	const char *reason;	/* a part of it */
	const char *suggestion; /* "" for none, NULL: not looked at */
};

static const struct wrong wrongs[] = {
	{"", 0, "missing at the end", ""},
	{",", 0, "missing before ','", ""},
	{"cycles,", 7, "missing at the end", ""},
	{",cycles", 0, "missing before ','", ""},
	{"cycles,,cs", 7, "missing before ','", ""},
	{"cycles cs", 7, "unexpected 'c'", ""},
	{"cycles}", 6, "unexpected '}'", ""},
	{"{}", 1, "missing before '}'", ""},
	{"{cycles", 7, "group is not closed", ""},
	{"{cycles,", 8, "missing at the end", ""},
	{"{cycles,{cs}}", 8, "do not nest", ""},
	{"{cycles:u,cs}:q", 14, "unknown modifier 'q'", ""},
	{"{cycles}cs", 8, "unexpected 'c'", ""},
	{"cyles", 0, "unknown event 'cyles'", "cycles"},
	{"cycles,instrctions:u", 7, "unknown event 'instrctions'", "instructions"},
	{"rnotanevent", 0, "unknown event 'rnotanevent'", ""},
	{"{cycles,instructions},branches,r2a,rnotanevent", 35, "unknown event 'rnotanevent'", ""},
	{"r", 0, "unknown event 'r'", NULL},
	{"R2A", 0, "unknown event 'R2A'", NULL},
	{"r0x2a", 0, "unknown event", NULL},
	{"r12345678901234567", 0, "at most 16", ""},
	{"fo-bar", 0, "unknown event", "foo-bar"},
	{"cpu", 0, "write cpu/EVENT/", ""},
	{"Cycles", 0, "unknown event", "cycles"},
	{"cycles:x", 7, "unknown modifier 'x'", ""},
	{"cycles:uu", 8, "given twice", ""},
	{"cycles:pppp", 10, "at most three", ""},
	{"cycles:b", 7, "BPF", ""},
	{"cycles:u:k", 8, "unexpected ':'", ""},
	{"cpu/event=1", 11, "not closed", ""},
	{"cpu/event=1/x", 12, "unknown modifier", ""},
	{"cpu/event=1/uu", 13, "given twice", ""},
	{"cpu/,event=1/", 4, "term is missing", ""},
	{"cpu/event=1,/", 12, "term is missing", ""},
	{"cpu/event=/", 10, "expected a number", ""},
	{"cpu/event=0x/", 10, "expected a number", ""},
	{"cpu/event=-1/", 10, "expected a number", ""},
	{"cpu/event=xyz/", 10, "expected a number", ""},
	{"cpu/wide=18446744073709551616/", 9, "64 bits", ""},
	{"cpu/wide=0x10000000000000000/", 9, "64 bits", ""},
	{"cpu/split=256/", 10, "maximum is 255", ""},
	{"cpu/edge=2/", 9, "maximum is 1", ""},
	{"nest0/event=0x100000000/", 12, "maximum is 4294967295", ""},
	{"cs,cpu/event=1,evnt=2/", 15, "unknown term 'evnt' for cpu", "event"},
	{"cpu/EVENT=1/", 4, "unknown term", "event"},
	{"cpu/foo-bar=2/", 4, "unknown term", NULL},
	{"cpu/rd/", 4, "unknown term 'rd'", NULL},
	{"cpu/need/", 4, "needs a value for 'split'", ""},
	{"need", 0, "needs a value for 'split'", ""},
	{"cpu/need,split=0x100/", 15, "maximum is 255", ""},
	{"cpu/split=?/", 10, "give a number", ""},
	{"cpu/broken/", 4, "unknown term 'nosuch'", ""},
	{"cpu/name=/", 4, "needs a name", ""},
	{"cpu/percore/", 4, "not served", ""},
	{"cpu/period=0/", 11, "must be", ""},
	{"cpu/max-stack=65536/", 14, "at most", ""},
	{"nest0/rd,rd/", 9, "both have a unit", ""},
	{"nosuch/event=1/", 0, "no PMU 'nosuch'", ""},
	{"nset0/rd/", 0, "no PMU 'nset0'", "nest0"},
	{"notype/event=1/", 0, "no PMU", ""},
	{"bad/event=1/", 0, "no PMU", ""},
	{"CPU/event=1/", 0, "no PMU 'CPU'", "cpu"},
	{"/event=1/", 0, "PMU name is missing", ""},
	{"cycles/event=1/", 7, "unknown term 'event' for a generic event", ""},
	{"L1-icache-stores", 10, "no event for a store", NULL},
	{"L1-dcache-lods", 10, "no operation or result", "L1-dcache-loads"},
	{"L1-dcache-load-misses-x", 21, "one operation and one result", NULL},
	{"branch-mises", 7, "no operation or result", "branch-misses"},
	{"sched:sched_switch", 0, "tracepoints", ""},
	{"mem:0x1000", 0, "breakpoints", ""},
	{"duration_time", 0, "perf's own", ""},
};

static void every_wrong_string_is_pointed_at(void **state)
{
	struct quipu_event_list list = {0};

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
		const struct wrong *w = &wrongs[i];
		struct quipu_grammar_error err;
		int ret = quipu_grammar_parse(*state, w->text, &list, &err);

		if (ret != -EINVAL || err.column != w->column || !strstr(err.reason, w->reason) ||
		    (w->suggestion && strcmp(err.suggestion, w->suggestion)))
			fail_msg("'%s' gives %d, column %zu, \"%s\", suggestion \"%s\"", w->text,
				 ret, err.column, err.reason, err.suggestion);
		assert_int_equal(list.n, 0);
	}
	quipu_event_list_free(&list);
}

static struct quipu_event_list parsed(void **state, const char *text)
{
	struct quipu_event_list list = {0};
	struct quipu_grammar_error err;

	if (quipu_grammar_parse(*state, text, &list, &err))
		fail_msg("'%s' refused: %s", text, err.reason);
	return list;
}

static void group_members_name_their_leader(void **state)
{
	struct quipu_event_list l = parsed(state, "cs,g{cycles:k,instructions,branches}:uS,faults");
	static const size_t leaders[] = {0, 1, 1, 1, 4};

	assert_int_equal(l.n, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(l.items[i].leader, leaders[i]);
	assert_int_equal(l.items[1].members, 3);
	assert_true(l.items[1].sample_read);
	assert_false(l.items[4].sample_read);
	assert_int_equal(l.items[1].attr.flags, H | XG);
	assert_int_equal(l.items[2].attr.flags, K | H | XG);
	quipu_event_list_free(&l);
}

static void only_the_leader_is_pinned_or_exclusive(void **state)
{
	struct quipu_event_list l = parsed(state, "{cycles,cs}:De");

	assert_int_equal(l.items[0].attr.flags, XG | QUIPU_ATTR_PINNED | QUIPU_ATTR_EXCLUSIVE);
	assert_int_equal(l.items[1].attr.flags, XG);
	quipu_event_list_free(&l);
}

static void repeated_e_appends(void **state)
{
	struct quipu_event_list l = parsed(state, "cycles");
	struct quipu_grammar_error err;

	assert_int_equal(quipu_grammar_parse(*state, "{cs,faults}", &l, &err), 0);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.items[2].leader, 1);
	assert_int_equal(l.items[2].term, 2);
	assert_int_equal(quipu_grammar_parse(*state, "{cs,fults}", &l, &err), -EINVAL);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.terms, 3);
	quipu_event_list_free(&l);
}

static void wildcard_opens_every_instance_with_unit_and_cpus(void **state)
{
	static const char *const texts[] = {"nest/rd/", "nest*/rd/", "n??t*/rd/"};

	for (size_t k = 0; k < 3; k++) {
		struct quipu_event_list l = parsed(state, texts[k]);

		assert_int_equal(l.n, 2);
		assert_string_equal(l.items[0].pmu, "nest0");
		assert_string_equal(l.items[1].pmu, "nest_1");
		assert_int_equal(l.items[0].term, l.items[1].term);
		assert_true(l.items[0].merge && l.items[1].merge);
		assert_string_equal(l.items[1].unit, "MiB");
		assert_true(l.items[1].scale == 6.103515625e-5);
		assert_string_equal(l.items[1].cpus, "0,4");
		assert_true(l.items[1].uncore);
		assert_string_equal(l.items[1].name, texts[k]);
		quipu_event_list_free(&l);
	}
}

static void bare_name_opens_every_pmu_that_has_it(void **state)
{
	struct quipu_event_list l = parsed(state, "cs,rd,cs");

	assert_int_equal(l.n, 5);
	assert_int_equal(l.items[1].attr.type, 10);
	assert_int_equal(l.items[3].attr.type, 12);
	assert_true(l.items[1].merge);
	assert_false(l.items[0].merge);
	quipu_event_list_free(&l);
}

static void wildcards_in_a_group_lead_per_pmu(void **state)
{
	struct quipu_event_list l = parsed(state, "{nest/rd/,nest/wr/}");
	static const size_t leaders[] = {0, 1, 0, 1};

	assert_int_equal(l.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(l.items[i].leader, leaders[i]);
	assert_int_equal(l.items[0].members, 2);
	assert_int_equal(l.items[1].members, 2);
	quipu_event_list_free(&l);
}

static void period_and_frequency_terms(void **state)
{
	struct quipu_event_list l = parsed(
		state, "cpu/event=1,period=1000/,cycles/freq=99/,cs/no-inherit,call-graph=fp/");

	assert_true(l.items[0].has_period);
	assert_int_equal(l.items[0].attr.sample_period, 1000);
	assert_false(l.items[0].attr.flags & QUIPU_ATTR_FREQ);
	assert_true(l.items[1].has_freq);
	assert_int_equal(l.items[1].attr.sample_freq, 99);
	assert_true(l.items[1].attr.flags & QUIPU_ATTR_FREQ);
	assert_true(l.items[2].inherit_off && l.items[2].callgraph);
	quipu_event_list_free(&l);
}

static void catalog_leaves_out_what_perf_leaves_out(void **state)
{
	assert_null(quipu_catalog_find(*state, "bad"));
	assert_null(quipu_catalog_find(*state, "notype"));
	assert_non_null(quipu_catalog_find(*state, "cpu"));
	assert_int_equal(quipu_catalog_find(*state, "cpu")->nformats, 4);
	assert_int_equal(quipu_catalog_find(*state, "cpu")->nevents, 4);
	assert_null(quipu_catalog_find(*state, "cpu")->cpus);
	assert_int_equal(quipu_catalog_find(*state, "nest0")->nevents, 2);
}

static void caret_stands_under_the_column(void **state)
{
	static const char text[] = "cycles,instrctions";
	struct quipu_event_list list = {0};
	struct quipu_grammar_error err;
	char buf[512], longer[400];

	quipu_grammar_parse(*state, text, &list, &err);
	quipu_grammar_explain(text, &err, buf, sizeof(buf));
	assert_string_equal(
		buf,
		"event syntax error: 'cycles,instrctions'\n"
		"                            ^\n"
		"unknown event 'instrctions'; `quipu list` shows the events of the machine; did you "
		"mean 'instructions'?\n");

	/* A long string is cut; the caret still stands under the wrong letter. */
	for (size_t i = 0; i < 100; i++)
		memcpy(longer + 3 * i, "cs,", 3);
	strcpy(longer + 300, "wrong");
	assert_int_equal(quipu_grammar_parse(*state, longer, &list, &err), -EINVAL);
	assert_int_equal(err.column, 300);
	quipu_grammar_explain(longer, &err, buf, sizeof(buf));
	assert_int_equal(buf[strcspn(buf, "^") - strcspn(buf, "\n") - 1], 'w');
	quipu_event_list_free(&list);
}

/*
 * Random strings of the grammar's own pieces, and of random bytes: no crash (the sanitizer builds
 * look on), an error always has a reason and a column inside the string, and a string that is taken
 * gives a well-formed list.
 */
static void hostile_strings_do_no_harm(void **state)
{
	static const char *const pieces[] = {
		"cycles",
		"cpu",
		"/",
		"/",
		",",
		",",
		"{",
		"}",
		":",
		"u",
		"k",
		"ppp",
		"event",
		"=",
		"=",
		"0x3",
		"99999999999999999999",
		"nest",
		"nest*",
		"rd",
		"foo-bar",
		"need",
		"split",
		"?",
		"'",
		" ",
		"L1-dcache",
		"-load",
		"-misses",
		"r2a",
		"name=",
		"period=",
		"config",
		"*",
		"é",
		"\x01",
		"cs",
		"umask",
		"[",
		"uncore_",
		"-",
		"broken",
		"two-words",
	};
	struct quipu_catalog *c = *state;
	unsigned seed = 12345, taken = 0;

	for (unsigned round = 0; round < 30000; round++) {
		char text[256] = "";
		struct quipu_event_list list = {0};
		struct quipu_grammar_error err;
		size_t n = 0;

		seed = seed * 1103515245 + 12345;
		for (unsigned k = 0; k <= (seed >> 16) % 9; k++) {
			unsigned r = seed = seed * 1103515245 + 12345;
			const char *p = pieces[(r >> 12) % (sizeof(pieces) / sizeof(*pieces))];

			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", p);
			if ((r >> 28) == 0)
				text[n++] = (char)(r >> 20 ? r >> 20 : 1);
			text[n] = '\0';
		}
		if (quipu_grammar_parse(c, text, &list, &err)) {
			char buf[1024];

			assert_true(err.reason[0] && err.column <= strlen(text) && list.n == 0);
			quipu_grammar_explain(text, &err, buf, sizeof(buf));
		} else {
			taken++;
			assert_true(list.n > 0);
			for (size_t i = 0; i < list.n; i++)
				assert_true(list.items[i].leader <= i && list.items[i].name);
		}
		quipu_event_list_free(&list);
	}
	assert_true(taken > 300);
}

static void giant_strings_end_quickly(void **state)
{
	static const char *const repeat[] = {
		"{", "cpu/", "cs,", "nest/rd/,", "*", "cpu/event=1,", "'", "L1-dcache-", "u:"};
	char *text = malloc(QUIPU_GRAMMAR_MAX + 2);

	for (size_t i = 0; i < sizeof(repeat) / sizeof(*repeat); i++) {
		struct quipu_event_list list = {0};
		struct quipu_grammar_error err;
		size_t k = strlen(repeat[i]);

		for (size_t n = 0; n < QUIPU_GRAMMAR_MAX; n++)
			text[n] = repeat[i][n % k];
		text[QUIPU_GRAMMAR_MAX] = '\0';
		quipu_grammar_parse(*state, text, &list, &err);
		quipu_event_list_free(&list);
		text[QUIPU_GRAMMAR_MAX] = 'x';
		text[QUIPU_GRAMMAR_MAX + 1] = '\0';
		assert_int_equal(quipu_grammar_parse(*state, text, &list, &err), -EINVAL);
		assert_non_null(strstr(err.reason, "longer than"));
	}
	free(text);
}

static void cpu_lists(void **state)
{
	unsigned cpus[8];

	(void)state;
	assert_int_equal(quipu_cpu_list("0-2,5\n", cpus, 8), 4);
	assert_int_equal(cpus[3], 5);
	assert_int_equal(quipu_cpu_list("3,1,1,2", cpus, 8), 3);
	assert_int_equal(cpus[0], 1);
	assert_int_equal(cpus[2], 3);
	assert_int_equal(quipu_cpu_list("0-8", cpus, 8), -E2BIG);
	assert_int_equal(quipu_cpu_list("0-4000000000", cpus, 8), -EINVAL);
	assert_int_equal(quipu_cpu_list("", cpus, 8), -EINVAL);
	assert_int_equal(quipu_cpu_list("2-1", cpus, 8), -EINVAL);
	assert_int_equal(quipu_cpu_list("1,", cpus, 8), -EINVAL);
	assert_int_equal(quipu_cpu_list("a", cpus, 8), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_gives_perfs_words),
		cmocka_unit_test(every_generic_name_means_itself),
		cmocka_unit_test(generic_names_need_no_pmus_names),
		cmocka_unit_test(every_bit_of_a_split_format_lands),
		cmocka_unit_test(every_wrong_string_is_pointed_at),
		cmocka_unit_test(group_members_name_their_leader),
		cmocka_unit_test(only_the_leader_is_pinned_or_exclusive),
		cmocka_unit_test(repeated_e_appends),
		cmocka_unit_test(wildcard_opens_every_instance_with_unit_and_cpus),
		cmocka_unit_test(bare_name_opens_every_pmu_that_has_it),
		cmocka_unit_test(wildcards_in_a_group_lead_per_pmu),
		cmocka_unit_test(period_and_frequency_terms),
		cmocka_unit_test(catalog_leaves_out_what_perf_leaves_out),
		cmocka_unit_test(caret_stands_under_the_column),
		cmocka_unit_test(hostile_strings_do_no_harm),
		cmocka_unit_test(giant_strings_end_quickly),
		cmocka_unit_test(cpu_lists),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
