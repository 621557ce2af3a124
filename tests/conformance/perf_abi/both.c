/* SPDX-License-Identifier: BSD-2-Clause */
#include "both.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define HANDLES 2048

/* ---- the core ---- */

struct core_self {
	struct world w;
	struct quipu_event *e[HANDLES];
	uint8_t *mem[HANDLES];
	unsigned n;
};

static bool core_start(struct backend *b)
{
	struct core_self *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	b->self = s;
	world_init(&s->w, 4, -1);
	s->w.caller.perfmon = true;
	b->unused_pid = 4000000;
	b->other_pid = 200;
	assert_non_null(quipu_task_new(s->w.core, NULL, 200, 200, false, "other", 1));
	quipu_sched_in(s->w.core, 0, s->w.task);
	return true;
}

static void core_stop(struct backend *b)
{
	struct core_self *s = b->self;

	world_free(&s->w);
	for (unsigned i = 0; i < s->n; i++)
		free(s->mem[i]);
	free(s);
}

static long core_open(struct backend *b, const void *bytes, size_t len, pid_t pid, int cpu,
		      long group, unsigned long flags)
{
	struct core_self *s = b->self;
	uint32_t back;
	int r;

	assert_true(s->n < HANDLES);
	r = quipu_event_open(s->w.core, &s->w.caller, bytes, len, pid, cpu,
			     group < 0 ? NULL : s->e[group], flags, &back, &s->e[s->n]);
	if (r) /* the promise: every refusal says why */
		assert_true(quipu_core_last_reason(s->w.core)[0] != '\0');
	return r ? r : (long)s->n++;
}

static void core_close(struct backend *b, long h)
{
	struct core_self *s = b->self;

	quipu_event_close(s->e[h]);
	s->e[h] = NULL;
}

static long core_read(struct backend *b, long h, void *buf, size_t len)
{
	return quipu_event_read(((struct core_self *)b->self)->e[h], buf, len);
}

static int core_ioctl(struct backend *b, long h, unsigned long cmd, unsigned long arg)
{
	struct quipu_event *e = ((struct core_self *)b->self)->e[h];

	if (cmd == PERF_EVENT_IOC_PERIOD) /* the gate reads the pointed-to value */
		return quipu_event_set_period(e, *(uint64_t *)arg);
	return quipu_event_ioctl(e, cmd, arg);
}

static int core_set_output(struct backend *b, long h, long to)
{
	struct core_self *s = b->self;

	return quipu_event_set_output(s->e[h], to < 0 ? NULL : s->e[to]);
}

static int core_map(struct backend *b, long h, size_t pages, bool writable)
{
	struct core_self *s = b->self;
	uint8_t *mem = calloc(pages + 1, 4096);
	int r;

	assert_non_null(mem);
	r = quipu_event_map(s->e[h], &s->w.caller, mem, pages, writable);
	if (r || s->mem[h]) {
		free(mem);
		return r;
	}
	s->mem[h] = mem;
	return 0;
}

static uint8_t *core_memory(struct backend *b, long h)
{
	return ((struct core_self *)b->self)->mem[h];
}

static void core_unmap(struct backend *b, long h)
{
	quipu_event_unmap(((struct core_self *)b->self)->e[h]);
}

static int core_poll(struct backend *b, long h)
{
	return (int)quipu_event_poll(((struct core_self *)b->self)->e[h]);
}

static uint64_t core_id(struct backend *b, long h)
{
	return quipu_event_id(((struct core_self *)b->self)->e[h]);
}

static void core_work(struct backend *b)
{
	struct core_self *s = b->self;

	s->w.grain = 100000;
	world_work(&s->w, 0, 3000000);
}

const struct backend core_backend = {
	.name = "core",
	.start = core_start,
	.stop = core_stop,
	.open = core_open,
	.close = core_close,
	.read = core_read,
	.ioctl = core_ioctl,
	.set_output = core_set_output,
	.map = core_map,
	.memory = core_memory,
	.unmap = core_unmap,
	.poll = core_poll,
	.id = core_id,
	.work = core_work,
};

/* ---- the host ---- */

struct host_self {
	int fd[HANDLES];
	uint8_t *mem[HANDLES];
	size_t pages[HANDLES];
	unsigned n;
};

static long host_open(struct backend *b, const void *bytes, size_t len, pid_t pid, int cpu,
		      long group, unsigned long flags)
{
	struct host_self *s = b->self;
	/* The kernel reads as much as the attr's size says: whatever lies behind must be readable
	 * zeros. */
	uint8_t copy[8192] = {0};
	long fd;

	assert_true(s->n < HANDLES && len <= sizeof(copy));
	if (bytes)
		memcpy(copy, bytes, len);
	fd = syscall(SYS_perf_event_open, bytes ? (void *)copy : (void *)8, pid, cpu,
		     group < 0 ? -1 : s->fd[group], flags);
	if (fd < 0)
		return -errno;
	s->fd[s->n] = (int)fd;
	return s->n++;
}

static void host_close(struct backend *b, long h)
{
	struct host_self *s = b->self;

	if (s->mem[h])
		munmap(s->mem[h], (s->pages[h] + 1) * 4096);
	s->mem[h] = NULL;
	if (s->fd[h] >= 0)
		close(s->fd[h]);
	s->fd[h] = -1;
}

static bool host_start(struct backend *b)
{
	struct quipu_attr a =
		world_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, QUIPU_ATTR_EXCLUDE_KERNEL);
	long h;

	a.size = 128;
	b->self = calloc(1, sizeof(struct host_self));
	assert_non_null(b->self);
	b->unused_pid = 4194000;
	h = host_open(b, &a, sizeof(a), 0, -1, -1, 0);
	if (h < 0 || geteuid() != 0) {
		free(b->self);
		return false;
	}
	host_close(b, h);
	b->other_pid = fork();
	if (b->other_pid == 0) { /* gone with the test, however that ends */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		pause();
		_exit(0);
	}
	return b->other_pid > 0;
}

static void host_stop(struct backend *b)
{
	struct host_self *s = b->self;

	for (unsigned i = 0; i < s->n; i++)
		host_close(b, i);
	kill(b->other_pid, SIGKILL);
	waitpid(b->other_pid, NULL, 0);
	free(s);
}

static long host_read(struct backend *b, long h, void *buf, size_t len)
{
	ssize_t n = read(((struct host_self *)b->self)->fd[h], buf, len);

	return n < 0 ? -errno : n;
}

static int host_ioctl(struct backend *b, long h, unsigned long cmd, unsigned long arg)
{
	return ioctl(((struct host_self *)b->self)->fd[h], cmd, arg) < 0 ? -errno : 0;
}

static int host_set_output(struct backend *b, long h, long to)
{
	struct host_self *s = b->self;

	return ioctl(s->fd[h], PERF_EVENT_IOC_SET_OUTPUT, to < 0 ? -1L : (long)s->fd[to]) < 0
		       ? -errno
		       : 0;
}

static int host_map(struct backend *b, long h, size_t pages, bool writable)
{
	struct host_self *s = b->self;
	void *mem = mmap(NULL, (pages + 1) * 4096, writable ? PROT_READ | PROT_WRITE : PROT_READ,
			 MAP_SHARED, s->fd[h], 0);

	if (mem == MAP_FAILED)
		return -errno;
	if (s->mem[h]) {
		munmap(mem, (pages + 1) * 4096);
		return 0;
	}
	s->mem[h] = mem;
	s->pages[h] = pages;
	return 0;
}

static uint8_t *host_memory(struct backend *b, long h)
{
	return ((struct host_self *)b->self)->mem[h];
}

static void host_unmap(struct backend *b, long h)
{
	struct host_self *s = b->self;

	munmap(s->mem[h], (s->pages[h] + 1) * 4096);
	s->mem[h] = NULL;
}

static int host_poll(struct backend *b, long h)
{
	struct pollfd p = {.fd = ((struct host_self *)b->self)->fd[h], .events = POLLIN};

	poll(&p, 1, 0);
	return p.revents & (POLLIN | POLLHUP);
}

static uint64_t host_id(struct backend *b, long h)
{
	uint64_t id = 0;

	assert_int_equal(host_ioctl(b, h, PERF_EVENT_IOC_ID, (unsigned long)&id), 0);
	return id;
}

static void host_work(struct backend *b)
{
	struct timespec t;
	long until;

	(void)b;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	until = t.tv_sec * 1000000000L + t.tv_nsec + 3000000;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000000000L + t.tv_nsec < until);
	/* Kernel 6.18 brings a sibling cpu-clock up to date only when the task is switched out, if
	 * the group is read through another member: without a switch it may still read 0. */
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 1000}, NULL);
}

const struct backend host_backend = {
	.name = "host",
	.start = host_start,
	.stop = host_stop,
	.open = host_open,
	.close = host_close,
	.read = host_read,
	.ioctl = host_ioctl,
	.set_output = host_set_output,
	.map = host_map,
	.memory = host_memory,
	.unmap = host_unmap,
	.poll = host_poll,
	.id = host_id,
	.work = host_work,
};
