// SPDX-License-Identifier: BSD-2-Clause
/*
 * gate: what the client gate of `quipu exec` costs beside the host's own kernel (perf ABI sheet
 * C4). One process asks both in turn, round by round, so that a slow moment of the host falls on
 * both: the gate through the C library, where the preload library stands; the kernel through the C
 * library's own functions, looked up behind its back. Figures are medians, of the host's time.
 *
 *	bench-gate QUIPU [ROUNDS]	runs itself in `quipu exec`: once with machine and client on
 *					one CPU, which is judged; once with the machine on any,
 *					whose figures are the host's scheduler's as much as ours
 *
 * Kernel: software events. ENABLE and DISABLE, open and close are of an event on another CPU than
 * the client's, for that is what an event of a machine is to its client: somewhere else.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 101
#define BATCHES	   60

/* One of the two that are asked. */
struct side {
	long (*syscall)(long nr, ...);
	ssize_t (*read)(int fd, void *buf, size_t n);
	int (*ioctl)(int fd, unsigned long cmd, ...);
	int (*close)(int fd);
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "bench-gate: %s: %s\n", what, strerror(errno));
	exit(1);
}

struct subject {
	const struct side *side;
	uint32_t type;
	uint64_t config;
	int cpu; /* of the events that are somewhere else */
	int fd;	 /* the one that is read or switched */
};

static int open_one(const struct subject *s, pid_t pid, int cpu, bool disabled)
{
	struct perf_event_attr a = {
		.type = s->type,
		.size = sizeof(a),
		.config = s->config,
		.disabled = disabled,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = (int)s->side->syscall(SYS_perf_event_open, &a, pid, cpu, -1, 0ul);

	if (fd < 0)
		die("perf_event_open");
	return fd;
}

static void read_batch(struct subject *s, unsigned n)
{
	uint64_t got[3];

	while (n--)
		if (s->side->read(s->fd, got, sizeof(got)) != sizeof(got))
			die("read");
}

static void switch_batch(struct subject *s, unsigned n)
{
	while (n--)
		if (s->side->ioctl(s->fd, PERF_EVENT_IOC_ENABLE, 0) ||
		    s->side->ioctl(s->fd, PERF_EVENT_IOC_DISABLE, 0))
			die("ioctl");
}

static void open_batch(struct subject *s, unsigned n)
{
	while (n--)
		s->side->close(open_one(s, -1, s->cpu, false));
}

/* A row: what is done, to an event of what kind, and what the gate may take of the kernel's time.
 */
static const struct row {
	const char *name;
	void (*batch)(struct subject *, unsigned n);
	unsigned n;	    /* in a batch */
	bool own, disabled; /* the event that it is done to: of the own task, off */
	double most;
} rows[] = {
	{"read, enabled, own task", read_batch, 100, true, false, 1.0},
	{"read, disabled, own task", read_batch, 100, true, true, 1.0},
	{"read, enabled, CPU", read_batch, 20, false, false, 1.0},
	{"ENABLE + DISABLE", switch_batch, 10, false, true, 1.0},
	{"ENABLE + DISABLE, own task", switch_batch, 10, true, true, 0},
	{"open + close", open_batch, 10, false, true, 1.5},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The best of a round's batches: what others do to the host's CPUs falls on the rest. */
static double run_round(const struct row *r, struct subject *s)
{
	uint64_t best = UINT64_MAX;

	s->fd = r->own ? open_one(s, 0, -1, r->disabled) : open_one(s, -1, s->cpu, r->disabled);
	r->batch(s, r->n);
	for (unsigned i = 0; i < BATCHES; i++) {
		uint64_t start = now_ns(), took;

		r->batch(s, r->n);
		took = now_ns() - start;
		if (took < best)
			best = took;
	}
	s->side->close(s->fd);
	return (double)best / r->n;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static struct side libc_behind(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	struct side side = {0};

	if (!libc)
		die("libc.so.6");
	*(void **)&side.syscall = dlsym(libc, "syscall");
	*(void **)&side.read = dlsym(libc, "read");
	*(void **)&side.ioctl = dlsym(libc, "ioctl");
	*(void **)&side.close = dlsym(libc, "close");
	return side;
}

/* The highest CPU of the host that this process is not on, or its own where there is one alone. */
static int another_cpu(const struct side *libc)
{
	unsigned mine = 0;
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	const char *host = getenv("BENCH_GATE_CPUS");

	if (host)
		n = atol(host);
	libc->syscall(SYS_getcpu, &mine, NULL, NULL);
	for (long c = n - 1; c > 0; c--)
		if (c != (long)mine)
			return (int)c;
	return 0;
}

/* The client stays where it is: an event on another CPU is on another all the time. */
static void stay(const struct side *libc)
{
	unsigned mine = 0;
	cpu_set_t one;

	libc->syscall(SYS_getcpu, &mine, NULL, NULL);
	CPU_ZERO(&one);
	CPU_SET(mine, &one);
	if (libc->syscall(SYS_sched_setaffinity, 0, sizeof(one), &one))
		die("sched_setaffinity");
}

static int inside(unsigned rounds, const char *only, bool judged)
{
	const struct side gate = {syscall, read, ioctl, close}, libc = libc_behind();
	struct subject k = {.side = &libc,
			    .type = PERF_TYPE_SOFTWARE,
			    .config = PERF_COUNT_SW_TASK_CLOCK},
		       g = {.side = &gate,
			    .type = PERF_TYPE_HARDWARE,
			    .config = PERF_COUNT_HW_INSTRUCTIONS,
			    .cpu = 0};
	static double times[2][MAX_ROUNDS], ratios[MAX_ROUNDS];
	bool met = true;

	stay(&libc);
	k.cpu = another_cpu(&libc);
	printf("  %-28s%14s%14s%10s%10s\n", "", "kernel, ns", "gate, ns", "ratio", "at most");
	for (size_t i = 0; i < ROWS; i++) {
		double ratio;

		if (only && !strstr(rows[i].name, only))
			continue;
		for (unsigned r = 0; r < rounds; r++) {
			times[0][r] = run_round(&rows[i], &k);
			times[1][r] = run_round(&rows[i], &g);
			ratios[r] = times[1][r] / times[0][r];
		}
		ratio = median(ratios, rounds);
		met = met && (!judged || !rows[i].most || ratio <= rows[i].most);
		printf("  %-28s%14.0f%14.0f%10.2f", rows[i].name, median(times[0], rounds),
		       median(times[1], rounds), ratio);
		if (judged && rows[i].most)
			printf("%10.2f  %s\n", rows[i].most,
			       ratio <= rows[i].most ? "met" : "NOT MET");
		else
			printf("%10s\n", "-");
	}
	fflush(stdout);
	return met ? 0 : 3;
}

static int outside(const char *self, const char *quipu, const char *rounds, bool one_cpu)
{
	char cpus[16];
	int status;
	pid_t pid;

	snprintf(cpus, sizeof(cpus), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	printf("gate, machine and client on %s, medians of %s rounds, host's time\n",
	       one_cpu ? "one CPU" : "any CPUs (printed, not judged)", rounds);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET(0, &one);
		setenv("BENCH_GATE_CPUS", cpus, 1);
		if (one_cpu && sched_setaffinity(0, sizeof(one), &one))
			die("sched_setaffinity");
		execl(quipu, quipu, "exec", "-m", "riscv", "--", self,
		      one_cpu ? "--inside" : "--beside", rounds, (char *)NULL);
		die(quipu);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status) == 3 ? 0 : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	const char *rounds = argc > 2 ? argv[2] : "5";
	unsigned n = (unsigned)atoi(rounds);
	int rc;

	if (argc < 2 || !n || n > MAX_ROUNDS) {
		fprintf(stderr, "usage: bench-gate QUIPU [ROUNDS], 1 to %d\n", MAX_ROUNDS);
		return 2;
	}
	if (!strcmp(argv[1], "--inside") || !strcmp(argv[1], "--beside"))
		return inside(n, argc > 3 ? argv[3] : NULL, argv[1][2] == 'i');
	rc = outside(argv[0], argv[1], rounds, true);
	return rc ? rc : outside(argv[0], argv[1], rounds, false);
}
