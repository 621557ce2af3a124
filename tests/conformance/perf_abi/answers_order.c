/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Of two faults in one open the earlier of perf ABI sheet A4 is told: every pair of them that goes
 * together (answers.h).
 */
#include "answers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct call {
	uint8_t bytes[256]; /* the attr, and zeros behind it */
	struct quipu_attr attr;
	bool no_attr, no_descriptor;
	pid_t pid;
	int cpu, group;
	unsigned long flags;
	int leader; /* an event of the caller's */
};

static void bad_flag(struct call *c)
{
	c->flags |= 16;
}

static void no_memory(struct call *c)
{
	c->no_attr = true;
}

static void bad_size(struct call *c)
{
	c->attr.size = 63;
}

static void reserved_word(struct call *c)
{
	c->attr.reserved_2 = 1;
}

static void bad_format(struct call *c)
{
	c->attr.read_format = 1 << 7;
}

static void bad_period(struct call *c)
{
	c->attr.sample_period = UINT64_C(1) << 63;
}

static void thread_without_inherit(struct call *c)
{
	c->attr.flags |= QUIPU_ATTR_INHERIT_THREAD;
}

static void no_descriptor(struct call *c)
{
	c->no_descriptor = true;
}

static void bad_group(struct call *c)
{
	c->group = 4095;
}

static void nobody(struct call *c)
{
	c->pid = 4194000;
}

static void other_cpus_group(struct call *c)
{
	c->group = c->leader;
	c->cpu = 0;
}

static void no_cpu(struct call *c)
{
	c->cpu = 100000;
}

static void no_event(struct call *c)
{
	c->attr.config = 99;
}

static void aux_output(struct call *c)
{
	c->attr.flags |= QUIPU_ATTR_AUX_OUTPUT;
}

static void deep_chain(struct call *c)
{
	c->attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	c->attr.sample_max_stack = 500;
}

static void bad_clock(struct call *c)
{
	c->attr.flags |= QUIPU_ATTR_USE_CLOCKID;
	c->attr.clockid = 99;
}

enum field { FLAGS = 1, ATTR = 2, GROUP = 4, PID = 8, CPU = 16, EVENT = 32, ROOM = 64 };

/* In the order in which Linux looks. */
static const struct {
	const char *name;
	void (*make)(struct call *);
	int err;
	unsigned fields; /* two that change one field cannot be together */
} faults[] = {
	{"an unknown flag", bad_flag, EINVAL, FLAGS},
	{"an attr that cannot be read", no_memory, EFAULT, ATTR},
	{"a wrong size", bad_size, E2BIG, ATTR},
	{"a reserved word", reserved_word, EINVAL, 0},
	{"an unknown read_format", bad_format, EINVAL, 0},
	{"inherit_thread alone", thread_without_inherit, EINVAL, 0},
	{"a period with bit 63", bad_period, EINVAL, 0},
	{"no descriptor left", no_descriptor, EMFILE, ROOM},
	{"a group that is none", bad_group, EBADF, GROUP},
	{"no such task", nobody, ESRCH, PID},
	{"no such CPU", no_cpu, EINVAL, CPU},
	{"no such event", no_event, ENOENT, EVENT},
	{"aux_output", aux_output, EOPNOTSUPP, 0},
	{"too deep a chain", deep_chain, EOVERFLOW, 0},
	{"an unknown clock", bad_clock, EINVAL, 0},
	{"another CPU's group", other_cpus_group, EINVAL, GROUP | CPU},
};

#define FAULTS (sizeof(faults) / sizeof(*faults))

static long make_call(struct call *c)
{
	struct rlimit old, none;
	long rc;
	int err;

	memcpy(c->bytes, &c->attr, sizeof(c->attr));
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = 3; /* what is open stays so */
	if (c->no_descriptor)
		setrlimit(RLIMIT_NOFILE, &none);
	rc = syscall(SYS_perf_event_open, c->no_attr ? (void *)8 : c->bytes, c->pid, c->cpu,
		     c->group, c->flags);
	err = errno;
	setrlimit(RLIMIT_NOFILE, &old);
	if (rc >= 0)
		close((int)rc);
	errno = err;
	return rc;
}

static void ask_both(size_t i, size_t k, int leader)
{
	struct call c = {
		.attr = soft(PERF_COUNT_SW_DUMMY, 0), .cpu = -1, .group = -1, .leader = leader};
	char step[160];

	faults[i].make(&c);
	if (k != i)
		faults[k].make(&c);
	snprintf(step, sizeof(step), k == i ? "A4 %s" : "A4 %s before %s", faults[i].name,
		 faults[k].name);
	answer_errno(step, make_call(&c), faults[i].err);
}

void answers_of_order(void)
{
	int leader = must_open(soft(PERF_COUNT_SW_DUMMY, 0), -1);

	for (size_t i = 0; i < FAULTS; i++)
		for (size_t k = i; k < FAULTS; k++)
			if (k == i || !(faults[i].fields & faults[k].fields))
				ask_both(i, k, leader);
	close(leader);
}
