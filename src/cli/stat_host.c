// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu stat on the host itself: the kernel counts, through perf_event_open, and time is the
 * host's. Attributes as perf stat's (perf ABI sheet B3), but each event is read by its own
 * descriptor: a group's leader would give its members' counts as they were at the last context
 * switch.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/host.h"
#include "cli/stat.h"

#define WATCH_MS     100
#define REMEDIES_MAX 4u

struct stat_host {
	struct host host;
	struct host_child child;
	bool program; /* there is a child */
	pid_t *tids;  /* of -p and -t */
	size_t ntids;
	struct timespec start, end;
	bool running;
	char remedies[REMEDIES_MAX][320]; /* of what was left out, each once */
	size_t nremedies;
};

struct stat_host *stat_host_new(void)
{
	return calloc(1, sizeof(struct stat_host));
}

void stat_host_free(struct stat_host *h)
{
	if (h)
		host_free(&h->host);
	free(h);
}

int stat_host_wanted(const struct stat_options *o, bool *wanted)
{
	const struct host_wish wish = {
		.command = "count",
		.run = &o->run,
		.events = &o->events,
		.defaults = "cycles,instructions",
		.cpus = o->system_wide || o->cpus,
		.processes = o->pids || o->tids,
		.argv = o->argv,
	};
	int rc = host_chosen(&wish, wanted);

	if (rc || !*wanted || o->aggregation != STAT_THREAD || o->pids || o->tids)
		return rc;
	return cli_error(
		"--per-thread on the host needs -p PID or -t TID: the kernel tells no one of the "
		"threads that a program will make (-m x86 has a line for each)");
}

/* ---- preparing ---- */

int stat_host_prepare(struct stat *s)
{
	const struct stat_options *o = s->options;
	struct stat_host *h = s->host;
	int rc = 0;

	h->child = (struct host_child){.pid = -1, .go = -1, .error = -1, .pidfd = -1};
	h->program = false;
	if (!h->host.root)
		rc = host_start(&h->host, &o->run);
	if (!rc && (o->aggregation == STAT_CORE || o->aggregation == STAT_SOCKET))
		host_read_topology(&h->host);
	if (!rc && (o->pids || o->tids))
		rc = host_targets(o->pids, o->tids, &h->tids, &h->ntids);
	if (rc || !o->argv[0])
		return rc;
	rc = host_hold(&h->child, o->argv);
	if (rc)
		return cli_error("cannot make a process for %s: %s", o->argv[0], strerror(-rc));
	h->program = true;
	return 0;
}

int stat_host_parse(struct stat *s, const char *text)
{
	return host_events(&s->host->host, text, &s->list);
}

int stat_host_cpus(struct stat *s)
{
	return host_online(&s->host->host, s->options->cpus, &s->cpus, &s->ncpus);
}

const struct host_cpu *stat_host_cpu(struct stat *s, int cpu)
{
	const struct host *h = &s->host->host;

	for (size_t i = 0; i < h->ncpus; i++)
		if ((int)h->cpus[i].id == cpu)
			return &h->cpus[i];
	return NULL;
}

/* ---- opening ---- */

int stat_host_open_one(struct stat *s, size_t i, struct handle *h)
{
	struct quipu_parsed *e = &s->list.items[i];
	struct handle *leader = stat_leader(s, i, h);
	struct quipu_attr attr = e->attr;
	bool task = h->cpu < 0, leads = e->leader == i;
	struct host_opened out;
	int rc;

	attr.sample_period = 0;
	attr.sample_type = 0;
	attr.flags &= ~QUIPU_ATTR_FREQ;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (leads)
		attr.flags |= QUIPU_ATTR_DISABLED;
	if (leads && task && !s->host->ntids)
		attr.flags |= QUIPU_ATTR_ENABLE_ON_EXEC;
	if (task && !s->options->no_inherit && !e->inherit_off &&
	    s->options->aggregation != STAT_THREAD)
		attr.flags |= QUIPU_ATTR_INHERIT;
	rc = host_open(&attr, e->precise_max, h->pid, h->cpu, leader ? leader->fd : -1, &out);
	if (rc)
		return rc;
	h->fd = out.fd;
	s->counters[i].exactness = host_exactness(attr.type);
	if (out.user_only && !(e->attr.flags & QUIPU_ATTR_EXCLUDE_KERNEL)) {
		/* The next ones begin there, and the name is changed once. */
		e->attr.flags |= QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV;
		return host_user_only(e);
	}
	return 0;
}

static size_t place_of_thread(struct stat *s, pid_t tid)
{
	char path[64], comm[32], label[48];

	if (s->options->aggregation != STAT_THREAD)
		return stat_place(s, 0, "");
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	if (host_read_text(path, comm, sizeof(comm)))
		snprintf(comm, sizeof(comm), "gone");
	snprintf(label, sizeof(label), "%.15s-%d", comm, (int)tid);
	return stat_place(s, (unsigned)tid, label);
}

int stat_host_open_tasks(struct stat *s, size_t i)
{
	const struct stat_host *h = s->host;
	const pid_t *tids = h->ntids ? h->tids : &h->child.pid;
	size_t n = h->ntids ? h->ntids : 1, opened = 0;

	for (size_t k = 0; k < n; k++) {
		struct handle *handle =
			stat_add_handle(&s->counters[i], place_of_thread(s, tids[k]), -1, tids[k]);
		int rc = handle ? stat_host_open_one(s, i, handle) : -ENOMEM;

		/* Threads come and go while their events are opened. */
		if (rc && rc != -ESRCH)
			return rc;
		opened += !rc;
	}
	return opened ? 0 : -ESRCH;
}

static void add_remedy(struct stat_host *h, const char *text)
{
	for (size_t i = 0; i < h->nremedies; i++)
		if (!strcmp(h->remedies[i], text))
			return;
	if (*text && h->nremedies < REMEDIES_MAX)
		snprintf(h->remedies[h->nremedies++], sizeof(h->remedies[0]), "%s", text);
}

int stat_host_refuse(struct stat *s, size_t i, int err)
{
	const struct quipu_parsed *e = &s->list.items[i];
	bool cpu = stat_by_cpu(s, e);
	pid_t pid = cpu ? -1 : s->host->ntids ? s->host->tids[0] : s->host->child.pid;
	struct host_reason r;

	switch (-err) {
	case EINVAL:
	case ENOSYS:
	case ENOENT:
	case EOPNOTSUPP:
	case ENXIO:
	case ENODEV:
		host_why(&s->host->host, e, err, pid, cpu && s->ncpus ? (int)s->cpus[0] : -1, &r);
		stat_leave_out(&s->counters[i], r.why);
		add_remedy(s->host, r.remedy);
		return 0;
	}
	return host_refused(&s->host->host, "count", e, err, pid, cpu ? (int)s->cpus[0] : -1);
}

/* ---- running ---- */

static double seconds_since(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

double stat_host_elapsed(const struct stat *s)
{
	struct timespec now = s->host->end;

	if (s->host->running)
		clock_gettime(CLOCK_MONOTONIC, &now);
	return seconds_since(&s->host->start, &now);
}

void stat_host_times(const struct stat *s, double times[3])
{
	const struct rusage *u = &s->host->child.usage;

	times[0] = stat_host_elapsed(s);
	times[1] = (double)u->ru_utime.tv_sec + (double)u->ru_utime.tv_usec / 1e6;
	times[2] = (double)u->ru_stime.tv_sec + (double)u->ru_stime.tv_usec / 1e6;
}

/* What no exec enables: events of CPUs, and of processes that run already. */
static void switch_leaders(struct stat *s, unsigned long request)
{
	for (size_t i = 0; i < s->list.n; i++) {
		struct counter *c = &s->counters[i];
		bool by_exec = !stat_by_cpu(s, &s->list.items[i]) && !s->host->ntids;

		if (s->list.items[i].leader != i || (by_exec && request == PERF_EVENT_IOC_ENABLE))
			continue;
		for (size_t k = 0; k < c->n; k++)
			if (c->handles[k].fd >= 0)
				ioctl(c->handles[k].fd, request, 0);
	}
}

static int start_program(struct stat *s)
{
	int rc = host_release(&s->host->child);

	if (!rc)
		return 0;
	cli_error("cannot run %s: %s", s->options->argv[0], strerror(-rc));
	return rc == -ENOENT || rc == -ENOTDIR ? 127 : 126;
}

/* Wait up to @ms; true when there is nothing left to watch. */
static bool watch(struct stat *s, int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	if (s->host->program)
		return host_reap(&s->host->child, ms);
	nanosleep(&t, NULL);
	for (size_t i = 0; i < s->host->ntids; i++)
		if (!kill(s->host->tids[i], 0) || errno == EPERM)
			return false;
	return s->host->ntids > 0;
}

static int exit_status(const struct stat_host *h)
{
	int status = h->child.status;

	if (!h->program)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void run_intervals(struct stat *s, const volatile int *stop,
			  void (*interval)(void *, uint64_t))
{
	double step = (double)s->options->interval_ms / 1e3, next = step;
	bool over = false;

	while (!over && !*stop) {
		double left = next - stat_host_elapsed(s);

		over = watch(s, left > 0 ? (int)(left * 1e3) + 1 : 0);
		if (over || *stop || stat_host_elapsed(s) < next)
			continue;
		interval(s, (uint64_t)(stat_host_elapsed(s) * 1e9));
		while (next <= stat_host_elapsed(s))
			next += step;
	}
}

int stat_host_go(struct stat *s, const volatile int *stop, void (*interval)(void *, uint64_t),
		 int *status)
{
	struct stat_host *h = s->host;
	int rc = 0;

	switch_leaders(s, PERF_EVENT_IOC_ENABLE);
	clock_gettime(CLOCK_MONOTONIC, &h->start);
	h->running = true;
	if (h->program)
		rc = start_program(s);
	if (!rc && s->options->interval_ms)
		run_intervals(s, stop, interval);
	while (!rc && !*stop && !watch(s, h->program ? 1000 : WATCH_MS))
		;
	if (h->program)
		host_end(&h->child);
	switch_leaders(s, PERF_EVENT_IOC_DISABLE);
	clock_gettime(CLOCK_MONOTONIC, &h->end);
	h->running = false;
	*status = exit_status(h);
	return rc;
}

void stat_host_notes(struct stat *s, bool interrupted)
{
	struct stat_host *h = s->host;
	int status = h->child.status;

	if (interrupted && h->program)
		fputs("quipu: interrupted; counts are those up to then\n", stderr);
	else if (h->program && WIFSIGNALED(status))
		fprintf(stderr,
			"quipu: the program was killed by signal %d (%s); counts are those up to then\n",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (s->options->format == STAT_TEXT)
		for (size_t i = 0; i < h->nremedies; i++)
			fprintf(stderr, "quipu: what is not supported: %s\n", h->remedies[i]);
	h->nremedies = 0;
}

void stat_host_close(struct stat *s)
{
	struct stat_host *h = s->host;

	if (h->program)
		host_end(&h->child);
	h->program = false;
	free(h->tids);
	h->tids = NULL;
	h->ntids = 0;
}
