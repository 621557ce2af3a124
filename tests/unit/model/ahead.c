/* SPDX-License-Identifier: BSD-2-Clause */
/* A core that runs ahead of its misses (src/model/ahead.h): Rock sheet section 10, row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/ahead.h"

static const struct ahead_times times = {.hit = 3, .l2 = 25, .l3 = 100, .memory = 250, .walk = 30};

#define L2_HIT (QUIPU_INSN_L1_MISS)
#define L3_HIT (QUIPU_INSN_L1_MISS | QUIPU_INSN_L2_MISS)
#define DRAM   (L3_HIT | QUIPU_INSN_LL_MISS)

struct core {
	struct ahead ahead;
	struct ahead_label label;
	uint64_t pc, cycle;
};

static void begin(struct core *c)
{
	*c = (struct core){.pc = 0x1000};
	ahead_init(&c->ahead, &times);
}

static const struct ahead_label *step(struct core *c, struct ahead_insn in)
{
	in.pc = in.pc ? in.pc : c->pc;
	in.cycle = ++c->cycle;
	c->pc += 4;
	ahead_step(&c->ahead, &in, &c->label);
	return &c->label;
}

static const struct ahead_label *alu(struct core *c, uint8_t dest, uint8_t source)
{
	return step(c, (struct ahead_insn){.class = QUIPU_INSN_ALU, .operands = {dest, {source}}});
}

static const struct ahead_label *load(struct core *c, uint8_t dest, uint64_t addr, uint32_t events)
{
	return step(c, (struct ahead_insn){.class = QUIPU_INSN_LOAD,
					   .addr = addr,
					   .bytes = 8,
					   .events = events,
					   .operands = {dest}});
}

static const struct ahead_label *store(struct core *c, uint64_t addr, uint8_t bytes)
{
	return step(c,
		    (struct ahead_insn){.class = QUIPU_INSN_STORE, .addr = addr, .bytes = bytes});
}

static void wait(struct core *c, unsigned cycles)
{
	c->cycle += cycles;
}

static void test_normal(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(alu(&c, 1, 2)->mode, QUIPU_MODE_NORMAL);
	assert_int_equal(load(&c, 1, 0x2000, 0)->mode, QUIPU_MODE_NORMAL);
	assert_int_equal(c.label.latency, 3);
	assert_int_equal(alu(&c, 1, 1)->mode, QUIPU_MODE_NORMAL);
}

static void test_out_of_order(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	assert_int_equal(load(&c, 9, 0x2000, L2_HIT)->mode, QUIPU_MODE_NORMAL);
	assert_int_equal(c.label.latency, 25);
	assert_int_equal(alu(&c, 1, 2)->mode, QUIPU_MODE_OUT_OF_ORDER);
	assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_DELAYED);
	assert_int_equal(alu(&c, 4, 3)->mode, QUIPU_MODE_DELAYED); /* through a register */
	assert_int_equal(alu(&c, 3, 2)->mode, QUIPU_MODE_OUT_OF_ORDER);
	assert_int_equal(alu(&c, 5, 3)->mode, QUIPU_MODE_OUT_OF_ORDER);
	wait(&c, 25);
	assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_NORMAL);
}

static void test_checkpoint(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	load(&c, 9, 0x2000, DRAM);
	assert_int_equal(c.label.latency, 250);
	assert_int_equal(alu(&c, 1, 2)->mode, QUIPU_MODE_AHEAD);
	assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_DEFERRED);
	assert_true(c.label.events & QUIPU_INSN_FROM_QUEUE);
	/* The outs of the caller are the ins of the callee. */
	step(&c, (struct ahead_insn){.operands = {.window = AHEAD_SAVE}});
	assert_int_equal(alu(&c, 1, 9 + 16)->mode, QUIPU_MODE_DEFERRED);
	assert_int_equal(alu(&c, 9, 9)->mode, QUIPU_MODE_AHEAD);
	step(&c, (struct ahead_insn){.operands = {.window = AHEAD_RESTORE}});
	assert_int_equal(alu(&c, 4, 9)->mode, QUIPU_MODE_DEFERRED);
	wait(&c, 250);
	assert_int_equal(alu(&c, 4, 9)->mode, QUIPU_MODE_NORMAL);
	/* A walk of the page tables is far as well. */
	load(&c, 9, 0x2000, QUIPU_INSN_TLB_MISS | QUIPU_INSN_STLB_MISS);
	assert_int_equal(alu(&c, 1, 2)->mode, QUIPU_MODE_AHEAD);
}

static void test_scout(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	load(&c, 9, 0x2000, DRAM);
	for (unsigned i = 0; i <= AHEAD_DEFERRED; i++)
		assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_DEFERRED);
	assert_int_equal(alu(&c, 1, 2)->mode, QUIPU_MODE_SCOUT); /* the queue is full */
	wait(&c, 250);
	load(&c, 9, 0x2000, DRAM);
	step(&c, (struct ahead_insn){.class = QUIPU_INSN_FENCE, .barrier = true});
	assert_int_equal(c.label.mode, QUIPU_MODE_SCOUT);
	wait(&c, 250);
	load(&c, 9, 0x2000, DRAM);
	assert_int_equal(step(&c, (struct ahead_insn){.class = QUIPU_INSN_AMO})->mode,
			 QUIPU_MODE_SCOUT);
	wait(&c, 250);
	assert_int_equal(alu(&c, 1, 2)->mode, QUIPU_MODE_NORMAL);
}

/* A deferred branch that went the other way: nothing that follows was right. */
static bool fail_once(struct core *c)
{
	c->pc = 0x4000;
	load(c, 9, 0x2000, DRAM);
	step(c, (struct ahead_insn){
			.class = QUIPU_INSN_BRANCH,
			.events = QUIPU_INSN_RESOLVED | QUIPU_INSN_MISPREDICTED,
			.operands = {0, {9}},
		});
	assert_int_equal(c->label.mode, QUIPU_MODE_DEFERRED);
	assert_true(alu(c, 1, 2)->events & QUIPU_INSN_FAILED);
	wait(c, 250);
	return alu(c, 1, 2)->livelock;
}

static void test_failures(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	for (unsigned i = 0; i < AHEAD_FAILURES - 1; i++)
		assert_false(fail_once(&c));
	assert_true(fail_once(&c));
	/* That instruction is executed without speculation, once. */
	c.pc = 0x4000;
	load(&c, 9, 0x2000, DRAM);
	assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_NORMAL);
	c.pc = 0x4000;
	load(&c, 9, 0x2000, DRAM);
	assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_DEFERRED);
}

static void test_yank(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	assert_false(
		step(&c, (struct ahead_insn){.class = QUIPU_INSN_SYSTEM, .trap = true})->yanked);
	load(&c, 9, 0x2000, L2_HIT);
	assert_false(
		step(&c, (struct ahead_insn){.class = QUIPU_INSN_SYSTEM, .trap = true})->yanked);
	load(&c, 9, 0x2000, DRAM);
	assert_true(
		step(&c, (struct ahead_insn){.class = QUIPU_INSN_SYSTEM, .trap = true})->yanked);
	assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_NORMAL);
	load(&c, 9, 0x2000, DRAM);
	assert_true(ahead_yank(&c.ahead));
	assert_false(ahead_yank(&c.ahead));
}

/* What other strands have written: a number for each of two lines. */
static uint64_t foreign[2];

static uint64_t foreign_write(void *arg, uint64_t line)
{
	(void)arg;
	return line == 0x3000 >> AHEAD_LINE ? foreign[0] : foreign[1];
}

static const struct ahead_label *read(struct core *c, uint64_t addr)
{
	return step(c, (struct ahead_insn){.class = QUIPU_INSN_LOAD,
					   .addr = addr,
					   .bytes = 8,
					   .written = foreign_write(NULL, addr >> AHEAD_LINE)});
}

static bool overtaken(struct core *c)
{
	return ahead_overtaken(&c->ahead, foreign_write, NULL);
}

/* A checkpoint, at a line that foreign[1] is of. */
static void miss(struct core *c)
{
	step(c, (struct ahead_insn){.class = QUIPU_INSN_LOAD,
				    .addr = 0x2000,
				    .bytes = 8,
				    .written = foreign[1],
				    .events = DRAM,
				    .operands = {9}});
}

static void test_overtaken(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	foreign[0] = 1;
	foreign[1] = 1;
	/* Outside of a window, and while the core only waits for its second level. */
	read(&c, 0x3000);
	foreign[0]++;
	assert_false(overtaken(&c));
	load(&c, 9, 0x2000, L2_HIT);
	read(&c, 0x3000);
	foreign[0]++;
	assert_false(overtaken(&c));
	wait(&c, 25);
	/* Inside: a line that was read, once; not one that was not, nor before it was. */
	miss(&c);
	foreign[0]++;
	read(&c, 0x3000);
	assert_false(overtaken(&c));
	assert_false(overtaken(&c));
	read(&c, 0x3008); /* the same line */
	foreign[0]++;
	assert_true(overtaken(&c));
	assert_false(overtaken(&c));
	assert_int_equal(alu(&c, 3, 9)->mode, QUIPU_MODE_NORMAL);
	/* What is no longer known is no write; the load of the checkpoint itself is read, too. */
	miss(&c);
	read(&c, 0x3000);
	foreign[0] = 0;
	assert_false(overtaken(&c));
	foreign[1]++;
	assert_true(overtaken(&c));
	/* The reads of a window end with it. */
	miss(&c);
	read(&c, 0x3000);
	wait(&c, 250);
	step(&c, (struct ahead_insn){.class = QUIPU_INSN_ALU});
	foreign[0] = 9;
	assert_false(overtaken(&c));
	miss(&c);
	assert_false(overtaken(&c));
	/* More than are watched. */
	for (unsigned i = 0; i < 2 * AHEAD_READS; i++)
		read(&c, 0x10000 + 64 * i);
	assert_false(overtaken(&c));
	foreign[1]++;
	assert_true(overtaken(&c));
}

static void test_buffers(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	store(&c, 0x3000, 8);
	assert_true(load(&c, 1, 0x3000, 0)->events & QUIPU_INSN_BYPASS);
	step(&c, (struct ahead_insn){.class = QUIPU_INSN_LOAD, .addr = 0x3004, .bytes = 8});
	assert_true(c.label.events & QUIPU_INSN_NO_BYPASS);
	assert_false(load(&c, 1, 0x3010, 0)->events & (QUIPU_INSN_BYPASS | QUIPU_INSN_NO_BYPASS));
	assert_true(load(&c, 1, 0x3010, L2_HIT)->events & QUIPU_INSN_STORE_PENDING);
	wait(&c, 100); /* it has drained */
	assert_false(load(&c, 1, 0x3000, 0)->events & QUIPU_INSN_BYPASS);
	/* A line that is on its way is no new miss. */
	load(&c, 1, 0x5000, DRAM);
	assert_true(load(&c, 2, 0x5008, 0)->events & QUIPU_INSN_PRIOR_MISS);
	wait(&c, 250);
	assert_false(load(&c, 2, 0x5008, 0)->events & QUIPU_INSN_PRIOR_MISS);
	for (unsigned i = 0; i < AHEAD_FILLS; i++)
		assert_false(load(&c, 1, 0x8000 + i * 64, DRAM)->events & QUIPU_INSN_LOADS_FULL);
	assert_true(load(&c, 1, 0x9000, 0)->events & QUIPU_INSN_LOADS_FULL);
	for (unsigned i = 0; i < 2 * AHEAD_STORES; i++)
		store(&c, 0x3000, 8);
	assert_true(c.label.events & QUIPU_INSN_STORES_FULL);
}

static bool made(const struct ahead_label *l, const uint8_t *kinds, unsigned n)
{
	bool same = l->ntransactions == n;

	for (unsigned i = 0; same && i < n; i++)
		same = l->transaction[i].kind == kinds[i];
	return same;
}

#define MADE(label, ...)                                                                           \
	assert_true(made(label, (const uint8_t[]){__VA_ARGS__},                                    \
			 sizeof((const uint8_t[]){__VA_ARGS__})))

static void test_transactions(void **state)
{
	struct core c;

	(void)state;
	begin(&c);
	assert_int_equal(load(&c, 1, 0x2000, 0)->ntransactions, 0);
	MADE(load(&c, 1, 0x2000, DRAM), QUIPU_TRANSACTION_LOAD);
	assert_true(c.label.transaction[0].events & QUIPU_INSN_LL_MISS);
	MADE(store(&c, 0x2000, 8), QUIPU_TRANSACTION_STORE);
	MADE(step(&c,
		  (struct ahead_insn){
			  .class = QUIPU_INSN_STORE, .addr = 0x7000, .bytes = 8, .events = L3_HIT}),
	     QUIPU_TRANSACTION_STORE_PREFETCH, QUIPU_TRANSACTION_STORE);
	assert_int_equal(c.label.transaction[1].events, 0);
	MADE(step(&c, (struct ahead_insn){.class = QUIPU_INSN_ALU, .fetch = L2_HIT}),
	     QUIPU_TRANSACTION_FETCH, QUIPU_TRANSACTION_FETCH_PREFETCH);
	assert_true(c.label.events & QUIPU_INSN_STALLED);
	MADE(step(&c, (struct ahead_insn){.class = QUIPU_INSN_AMO}), QUIPU_TRANSACTION_ATOMIC);
	MADE(step(&c, (struct ahead_insn){.class = QUIPU_INSN_FENCE, .flush = true}),
	     QUIPU_TRANSACTION_FLUSH);
}

/* The other strand holds all of the store buffer, and says so again and again. */
static unsigned stores_beside(struct core *c, unsigned n, struct ahead_held other, unsigned every)
{
	unsigned blocked = 0;

	for (unsigned i = 0; i < n; i++) {
		if (every && i % every == 0)
			ahead_other(&c->ahead, c->cycle, &other);
		blocked += store(c, 0x8000 + 8 * i, 8)->blocked;
	}
	return blocked;
}

static void test_other_strand_stores(void **state)
{
	const struct ahead_held full = {.stores = 32, .store_cycles = 192}, none = {0};
	struct core c;

	(void)state;
	begin(&c);
	/* Its own stores fill the buffer: nobody else is to blame. */
	assert_int_equal(stores_beside(&c, 5000, none, 100), 0);
	assert_true(c.label.events & QUIPU_INSN_STORES_FULL);
	begin(&c);
	/* From the first store, at cycle 1, to the one that has waited for 1024 cycles; and again.
	 */
	assert_int_equal(stores_beside(&c, 1024, full, 100), 0);
	assert_int_equal(stores_beside(&c, 1, full, 1), 1);
	assert_int_equal(stores_beside(&c, 1024, full, 100), 1);
	begin(&c);
	/* Told once, it holds them until they are drained. */
	ahead_other(&c.ahead, 0, &full);
	assert_true(store(&c, 0x8000, 8)->events & QUIPU_INSN_STORES_FULL);
	wait(&c, 200);
	assert_false(store(&c, 0x8000, 8)->events & QUIPU_INSN_STORES_FULL);
	assert_int_equal(stores_beside(&c, 5000, full, 0), 0);
	begin(&c);
	/* A slot is free for a while: the wait begins anew. */
	assert_int_equal(stores_beside(&c, 1000, full, 100), 0);
	wait(&c, 400);
	alu(&c, 1, 2);
	assert_int_equal(stores_beside(&c, 1000, full, 100), 0);
	/* A system call ends it as well. */
	step(&c, (struct ahead_insn){.class = QUIPU_INSN_TRAP, .trap = true});
	assert_int_equal(stores_beside(&c, 1000, full, 100), 0);
}

static void test_other_strand_queue(void **state)
{
	const struct ahead_held full = {.deferred = 64, .deferred_cycles = 300};
	unsigned blocked = 0;
	struct core c;

	(void)state;
	begin(&c);
	ahead_other(&c.ahead, 0, &full);
	load(&c, 1, 0x2000, DRAM);
	assert_int_equal(alu(&c, 2, 1)->mode, QUIPU_MODE_DEFERRED);
	/* There is no slot for another: it scouts. */
	assert_int_equal(alu(&c, 2, 1)->mode, QUIPU_MODE_SCOUT);
	begin(&c);
	for (unsigned i = 0; c.cycle < 2200; i++) {
		ahead_other(&c.ahead, c.cycle, &full);
		load(&c, 1, 0x2000 + 64 * i, DRAM);
		blocked += c.label.blocked;
		blocked += alu(&c, 2, 1)->blocked;
		wait(&c, 260);
		alu(&c, 3, 3);
	}
	/* One window of 250 cycles after the other, and a slot in none of them. */
	assert_int_equal(blocked, 2);
}

static void test_holds(void **state)
{
	struct ahead_held h;
	struct core c;

	(void)state;
	begin(&c);
	ahead_holds(&c.ahead, c.cycle, &h);
	assert_int_equal(h.stores | h.store_cycles | h.deferred | h.deferred_cycles, 0);
	store(&c, 0x8000, 8);
	store(&c, 0x8008, 8);
	ahead_holds(&c.ahead, c.cycle, &h);
	assert_int_equal(h.stores, 2);
	assert_int_equal(h.store_cycles, 11); /* two of 6 cycles, the first of them a cycle ago */
	load(&c, 1, 0x2000, DRAM);
	alu(&c, 2, 1);
	alu(&c, 3, 2);
	ahead_holds(&c.ahead, c.cycle, &h);
	assert_int_equal(h.deferred, 2);
	assert_int_equal(h.deferred_cycles, 248);
	wait(&c, 300);
	ahead_holds(&c.ahead, c.cycle, &h);
	assert_int_equal(h.stores | h.store_cycles | h.deferred | h.deferred_cycles, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_checkpoint),
		cmocka_unit_test(test_scout),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_yank),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_other_strand_stores),
		cmocka_unit_test(test_other_strand_queue),
		cmocka_unit_test(test_holds),
	};

	return cmocka_run_group_tests_name("ahead", tests, NULL, NULL);
}
