/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hostile clients: random and nearly right attrs, ioctls, maps, reads, with tasks that come, run,
 * fork and go. Nothing is expected but that it survives (run under the sanitizers), that nothing
 * reads back as counted that was not, and that running never exceeds enabled. Deterministic: the
 * same calls every time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "world.h"

#define EVENTS 24
#define TASKS  6

struct fuzz {
	struct world w;
	uint64_t seed;
	struct quipu_event *e[EVENTS];
	bool mapped[EVENTS];
	/* A buffer that several events map lives until the last unmap: keep all of them to the end.
	 */
	uint8_t *mem[4096];
	unsigned nmem;
	struct quipu_task *t[TASKS];
	pid_t next_pid;
	unsigned opened;
};

static uint64_t rnd(struct fuzz *f)
{
	f->seed ^= f->seed << 13;
	f->seed ^= f->seed >> 7;
	f->seed ^= f->seed << 17;
	return f->seed;
}

static uint64_t below(struct fuzz *f, uint64_t n)
{
	return rnd(f) % n;
}

/* Mostly plausible, sometimes anything. */
static void make_attr(struct fuzz *f, struct quipu_attr *a)
{
	uint8_t *bytes = (uint8_t *)a;

	*a = world_attr((uint32_t)below(f, 8), below(f, 13),
			rnd(f) & rnd(f) & rnd(f) & ((UINT64_C(1) << 37) - 1));
	a->read_format = below(f, 32);
	if (below(f, 2)) {
		a->sample_period = 1 + below(f, 5000);
		a->sample_type = rnd(f) & rnd(f) & ((1 << 25) - 1);
		a->wakeup_events = (uint32_t)below(f, 20);
	}
	a->branch_sample_type = 8;
	a->sample_regs_user = a->sample_regs_intr = 3;
	a->sample_max_stack = (uint16_t)below(f, 130);
	if (below(f, 10) == 0)
		bytes[below(f, sizeof(*a))] = (uint8_t)rnd(f);
	if (below(f, 50) == 0) {
		for (size_t i = 0; i < sizeof(*a); i++)
			bytes[i] = (uint8_t)rnd(f);
	}
}

static void close_event(struct fuzz *f, unsigned i)
{
	if (f->mapped[i])
		quipu_event_unmap(f->e[i]);
	f->mapped[i] = false;
	quipu_event_close(f->e[i]);
	f->e[i] = NULL;
}

static void do_open(struct fuzz *f, unsigned i)
{
	struct quipu_attr a;
	uint32_t back;
	struct quipu_task *t = f->t[below(f, TASKS)];
	pid_t pid = below(f, 3) ? (t ? quipu_task_tid(t) : 0) : -1;
	int cpu = (int)below(f, WORLD_CPUS + 2) - 1;
	unsigned long flags = below(f, 8) ? 0 : below(f, 32);

	if (f->e[i])
		close_event(f, i);
	make_attr(f, &a);
	quipu_event_open(f->w.core, &f->w.caller, &a,
			 below(f, 20) ? sizeof(a) : below(f, sizeof(a)), pid, cpu,
			 below(f, 2) ? f->e[below(f, EVENTS)] : NULL, flags, &back, &f->e[i]);
	f->opened += f->e[i] != NULL;
}

static void do_map(struct fuzz *f, unsigned i)
{
	size_t pages = below(f, 5) ? (size_t)1 << below(f, 3) : below(f, 9);
	uint8_t *mem;

	if (f->mapped[i] || f->nmem == sizeof(f->mem) / sizeof(*f->mem))
		return;
	mem = calloc(pages + 1, 4096);
	assert_non_null(mem);
	f->mem[f->nmem++] = mem;
	f->mapped[i] = quipu_event_map(f->e[i], &f->w.caller, mem, pages, below(f, 2)) == 0;
}

static void do_event(struct fuzz *f, unsigned i)
{
	struct quipu_event *e = f->e[i];
	uint64_t out[2048];
	struct quipu_count c;

	if (!e)
		return;
	switch (below(f, 8)) {
	case 0: quipu_event_ioctl(e, 0x2400 + below(f, 16), below(f, 3)); break;
	case 1: quipu_event_read(e, out, below(f, sizeof(out))); break;
	case 2: quipu_event_set_period(e, below(f, 3) ? 1 + below(f, 10000) : rnd(f)); break;
	case 3: quipu_event_set_output(e, f->e[below(f, EVENTS)]); break;
	case 4: do_map(f, i); break;
	case 5:
		quipu_event_poll(e);
		quipu_event_set_async(e, below(f, 2));
		break;
	case 6:
		quipu_event_count(e, &c);
		assert_true(c.running <= c.enabled);
		break;
	case 7: close_event(f, i); break;
	}
}

static void do_task(struct fuzz *f)
{
	unsigned i = (unsigned)below(f, TASKS), cpu = (unsigned)below(f, WORLD_CPUS);
	const struct quipu_mapping m = {
		.addr = rnd(f), .len = 4096, .prot = (uint32_t)below(f, 8), .name = "x"};
	struct quipu_task *parent = f->t[below(f, TASKS)];

	if (!f->t[i]) {
		f->next_pid++;
		f->t[i] = quipu_task_new(f->w.core, parent, f->next_pid, f->next_pid, below(f, 2),
					 "t", cpu);
		return;
	}
	switch (below(f, 8)) {
	case 0:
		quipu_task_exit(f->t[i], cpu);
		f->t[i] = NULL;
		break;
	case 1: quipu_task_exec(f->t[i], "a-name-longer-than-fifteen", cpu); break;
	case 2: quipu_task_mmap(f->t[i], &m, cpu); break;
	case 3: quipu_sched_out(f->w.core, cpu, below(f, 2)); break;
	case 4: quipu_core_set_online(f->w.core, cpu, below(f, 2)); break;
	default: quipu_sched_in(f->w.core, cpu, f->t[i]);
	}
}

/* One client's life from @seed. */
static unsigned live(uint64_t seed, unsigned steps)
{
	static struct fuzz f;

	memset(&f, 0, sizeof(f));
	f.seed = seed * 0x9e3779b97f4a7c15 + 1;
	world_init(&f.w, 3, -1);
	f.t[0] = f.w.task;
	f.next_pid = 1000;
	for (unsigned i = 0; i < steps; i++) {
		switch (below(&f, 6)) {
		case 0:
		case 1: do_open(&f, (unsigned)below(&f, EVENTS)); break;
		case 2: do_task(&f); break;
		case 3: world_work(&f.w, (unsigned)below(&f, WORLD_CPUS), below(&f, 5000)); break;
		default: do_event(&f, (unsigned)below(&f, EVENTS));
		}
	}
	world_free(&f.w);
	for (unsigned i = 0; i < f.nmem; i++)
		free(f.mem[i]);
	return f.opened;
}

static void test_survives(void **state)
{
	unsigned opened = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 150; seed++)
		opened += live(seed, 1500);
	assert_true(opened > 1000); /* else it was all refused and tested nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_survives)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
