// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu record on the host itself: the kernel samples, into a ring for each CPU, and what is in the
 * rings goes to the file as it is. Attributes as perf record's (perf ABI sheet B3); the tasks that
 * were there before (their names and mappings, from /proc) and the kernel's own mapping are told by
 * records of our making, of time 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/host.h"
#include "cli/progress.h"
#include "cli/record.h"
#include "cli/record_rings.h"
#include "cli/record_tasks.h"
#include "profile/kallsyms.h"

#define TICK_MS	       100
#define USUAL_FREQ     4000u /* where nothing says how many samples will come */
#define RECORD_BYTES   64u   /* a sample, and what comes with it in the middle */
#define CHAIN_BYTES    256u
#define USER_REGISTERS 0xff0fffu /* x86: all but the segments ds, es, fs, gs, which are no use */

struct host_recording {
	const struct record_options *options;
	struct host host;
	struct host_child child;
	bool program;
	pid_t *tids;
	size_t ntids;
	unsigned *cpus;
	size_t ncpus;
	struct quipu_event_list list;
	int *fds; /* [(event * ncpus + cpu) * targets + task]; -1 */
	size_t targets;
	struct record_rings rings; /* by position in cpus */
	struct perfdata_writer *file;
	struct progress progress;
	bool clock; /* cpu-clock stands in for cycles */
	bool lowered;
	uint64_t limit; /* samples a second that the kernel allows; 0: unknown */
};

/* ---- before it begins ---- */

int record_host_wanted(const struct record_options *o, bool *wanted)
{
	const struct host_wish wish = {
		.command = "sample",
		.run = &o->run,
		.events = &o->events,
		.defaults = "cycles",
		.sample = true,
		.cpus = o->system_wide || o->cpus,
		.processes = o->pids || o->tids,
		.argv = o->argv,
	};

	return host_chosen(&wish, wanted);
}

/* Does the kernel sample this? 0 or -errno. */
static int try_default(struct host_recording *r, const struct quipu_parsed *e)
{
	struct quipu_attr attr = e->attr;
	bool cpu = r->options->system_wide || r->options->cpus;
	struct host_opened out;
	int rc;

	attr.sample_freq = 1;
	attr.flags |= QUIPU_ATTR_FREQ | QUIPU_ATTR_DISABLED;
	rc = host_open(&attr, e->precise_max, cpu ? -1 : 0, cpu ? (int)r->cpus[0] : -1, -1, &out);
	if (!rc)
		close(out.fd);
	return rc;
}

static int choose_default(struct host_recording *r)
{
	int rc = host_events(&r->host, "cycles:P", &r->list);
	struct host_reason why;
	int err;

	if (rc)
		return rc;
	err = try_default(r, &r->list.items[0]);
	if (err != -ENOENT && err != -EOPNOTSUPP && err != -EINVAL && err != -ENODEV)
		return 0; /* it works, or cpu-clock would be refused as well */
	host_why(&r->host, &r->list.items[0], err, 0, 0, &why);
	quipu_event_list_free(&r->list);
	r->clock = true;
	fprintf(stderr,
		"quipu: %s; sampling by cpu-clock instead, the time on a CPU (-m x86: modelled cycles)\n",
		why.why);
	return host_events(&r->host, "cpu-clock", &r->list);
}

static int choose_events(struct host_recording *r)
{
	const struct options_events *e = &r->options->events;
	int rc = 0;

	if (!e->n)
		return choose_default(r);
	for (size_t i = 0; i < e->n && !rc; i++)
		rc = host_events(&r->host, e->texts[i], &r->list);
	return rc;
}

/* The kernel lowers its limit by itself when its interrupts take long; a default rate keeps below.
 */
static uint64_t rate_limit(void)
{
	char text[32];

	if (host_read_text("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof(text)))
		return 0;
	return strtoull(text, NULL, 10);
}

static int begin(struct host_recording *r)
{
	const struct record_options *o = r->options;
	int rc = host_start(&r->host, &o->run);

	r->limit = rate_limit();
	if (!rc)
		rc = host_online(&r->host, o->cpus, &r->cpus, &r->ncpus);
	if (!rc && (o->pids || o->tids))
		rc = host_targets(o->pids, o->tids, &r->tids, &r->ntids);
	if (!rc)
		rc = choose_events(r);
	if (rc || !o->argv[0])
		return rc;
	rc = host_hold(&r->child, o->argv);
	r->program = !rc;
	return rc ? cli_error("cannot make a process for %s: %s", o->argv[0], strerror(-rc)) : 0;
}

/* ---- opening ---- */

static bool on_cpus(const struct host_recording *r)
{
	return r->options->system_wide || r->options->cpus;
}

static int *slot(struct host_recording *r, size_t event, size_t cpu, size_t task)
{
	return &r->fds[(event * r->ncpus + cpu) * r->targets + task];
}

static void complete(struct host_recording *r, size_t i)
{
	const struct record_options *o = r->options;
	struct quipu_attr *a = &r->list.items[i].attr;

	record_complete(o, &r->list, i);
	if (r->limit && !o->freq && !r->list.items[i].has_freq && a->flags & QUIPU_ATTR_FREQ &&
	    a->sample_freq > r->limit) {
		a->sample_freq = r->limit;
		if (!r->lowered)
			fprintf(stderr,
				"quipu: this kernel allows %" PRIu64
				" samples a second, so that is the rate (as root: sysctl kernel.perf_event_max_sample_rate=4000)\n",
				r->limit);
		r->lowered = true;
	}
	if (o->chain == CHAIN_DWARF) {
		a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		a->sample_regs_user |= USER_REGISTERS;
		a->sample_stack_user = (uint32_t)o->stack_bytes;
		a->flags |= QUIPU_ATTR_EXCLUDE_CALLCHAIN_USER;
		/* perf looks up the unwinding tables in what is mapped, and they are no code. */
		if (i == 0)
			a->flags |= QUIPU_ATTR_MMAP_DATA;
	}
	/* Samples of several events, or of tasks that a ring mixes, name their event. */
	if (r->list.n > 1 || r->targets > 1)
		a->sample_type |= PERF_SAMPLE_IDENTIFIER;
}

static int open_one(struct host_recording *r, size_t i, size_t cpu, size_t task)
{
	struct quipu_parsed *e = &r->list.items[i];
	pid_t pid = on_cpus(r) ? -1 : r->ntids ? r->tids[task] : r->child.pid;
	int group = e->leader == i ? -1 : *slot(r, e->leader, cpu, task);
	struct quipu_attr attr = e->attr;
	struct host_opened out;
	int rc = host_open(&attr, e->precise_max, pid, (int)r->cpus[cpu], group, &out);

	if (rc == -ESRCH && r->ntids > 1)
		return 0; /* a thread that has ended meanwhile */
	if (rc)
		return host_refused(&r->host, "sample", e, rc, pid, (int)r->cpus[cpu]);
	*slot(r, i, cpu, task) = out.fd;
	if (out.user_only && !(e->attr.flags & QUIPU_ATTR_EXCLUDE_KERNEL))
		rc = host_user_only(e);
	e->attr = attr; /* what the file shall tell */
	return rc ? cli_error("out of memory") : 0;
}

/* Bytes a second that a busy CPU's ring may have to take. */
static uint64_t expected(const struct host_recording *r)
{
	const struct record_options *o = r->options;
	uint64_t bytes = RECORD_BYTES + (o->chain == CHAIN_FP ? CHAIN_BYTES : 0) +
			 (o->chain == CHAIN_DWARF ? CHAIN_BYTES + o->stack_bytes : 0);
	uint64_t sum = 0;

	for (size_t i = 0; i < r->list.n; i++) {
		const struct quipu_attr *a = &r->list.items[i].attr;
		uint64_t rate = a->flags & QUIPU_ATTR_FREQ ? a->sample_freq : USUAL_FREQ;

		/* More than the kernel allows does not come. */
		sum += bytes * (r->limit && rate > r->limit ? r->limit : rate);
	}
	return sum;
}

/* All that is sampled on a CPU goes into one ring. */
static int open_ring(struct host_recording *r, size_t cpu)
{
	size_t bytes = r->options->pages ? r->options->pages * (size_t)sysconf(_SC_PAGESIZE)
					 : record_rings_bytes(&r->rings, expected(r));
	int owner = -1, rc = 0;

	for (size_t i = 0; i < r->list.n; i++)
		for (size_t t = 0; t < r->targets && !rc; t++) {
			int fd = *slot(r, i, cpu, t);

			if (fd < 0)
				continue;
			if (owner >= 0) {
				rc = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, owner) ? -errno : 0;
				continue;
			}
			owner = fd;
			rc = host_ring_map(&r->rings.ring[cpu], fd, bytes);
		}
	r->rings.owner[cpu] = owner;
	if (rc == -EPERM || rc == -ENOMEM)
		return cli_error(
			"no memory may be locked for the ring of CPU %u; raise ulimit -l, or as "
			"root: sysctl kernel.perf_event_mlock_kb=%u",
			r->cpus[cpu], (unsigned)(2 * (bytes / 1024 + 4)));
	return rc ? cli_error("no ring for CPU %u: %s", r->cpus[cpu], strerror(-rc)) : 0;
}

static int open_all(struct host_recording *r)
{
	size_t n;
	int rc = 0;

	r->targets = r->ntids ? r->ntids : 1;
	n = r->list.n * r->ncpus * r->targets;
	r->fds = malloc(n * sizeof(*r->fds));
	if (record_rings_new(&r->rings, r->ncpus) || !r->fds)
		return cli_error("out of memory");
	memset(r->fds, -1, n * sizeof(*r->fds));
	for (size_t i = 0; i < r->list.n; i++)
		complete(r, i);
	for (size_t c = 0; c < r->ncpus && !rc; c++) {
		for (size_t i = 0; i < r->list.n; i++)
			for (size_t t = 0; t < r->targets && !rc; t++)
				rc = open_one(r, i, c, t);
		if (!rc)
			rc = open_ring(r, c);
	}
	return rc;
}

/* ---- the file ---- */

static int describe(struct host_recording *r)
{
	uint64_t *ids = calloc(r->ncpus * r->targets, sizeof(*ids));
	int rc = ids ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->list.n && !rc; i++) {
		const struct quipu_parsed *e = &r->list.items[i];
		size_t n = 0;

		for (size_t k = 0; k < r->ncpus * r->targets && !rc; k++) {
			int fd = *slot(r, i, k / r->targets, k % r->targets);

			if (fd >= 0)
				rc = host_event_id(fd, &ids[n++]);
		}
		if (!rc)
			rc = perfdata_add_event(r->file, &e->attr, ids, n, e->name,
						host_exactness(e->attr.type));
	}
	free(ids);
	return rc ? cli_error("%s: %s", r->options->output, strerror(-rc)) : 0;
}

/* The kernel's own mapping, its modules, and the tasks that are there already. */
static int tell_before(struct host_recording *r)
{
	int rc = record_tell_kernel(r->file);

	if (!rc && r->program)
		rc = record_tell_task(r->file, r->child.pid);
	for (size_t i = 0; i < r->ntids && !rc; i++)
		rc = record_tell_task(r->file, r->tids[i]);
	if (!rc && on_cpus(r))
		rc = record_tell_all(r->file);
	return rc;
}

static struct perfdata_pmu *pmu_list(struct host_recording *r, size_t *n)
{
	const struct quipu_catalog *c = host_catalog(&r->host);
	struct perfdata_pmu *v = c ? calloc(c->npmus + 1, sizeof(*v)) : NULL;

	*n = 0;
	for (size_t i = 0; v && i < c->npmus; i++)
		v[(*n)++] = (struct perfdata_pmu){c->pmus[i].type, c->pmus[i].name};
	return v;
}

/* By number of the CPU; the holes of those offline are core 0 of socket 0. */
static struct perfdata_cpu *topology(struct host_recording *r, uint32_t *n)
{
	struct perfdata_cpu *t;

	host_read_topology(&r->host);
	*n = r->host.cpus[r->host.ncpus - 1].id + 1;
	t = calloc(*n, sizeof(*t));
	for (size_t i = 0; t && i < r->host.ncpus; i++) {
		const struct host_cpu *c = &r->host.cpus[i];

		t[c->id] = (struct perfdata_cpu){c->core, c->die, c->socket, c->node};
	}
	return t;
}

static int finish_file(struct host_recording *r, char **argv)
{
	struct perfdata_info info = {.machine = "host", .cmdline = record_command(argv)};
	struct perfdata_group *groups = record_groups(&r->list, &info.nr_groups);
	struct perfdata_pmu *pmus = pmu_list(r, &info.nr_pmus);
	struct perfdata_cpu *cpus = topology(r, &info.cpus);
	void *tracing = host_tracing(&r->list, &info.tracing_size);
	char model[256], cpuid[64];
	uint8_t kernel[20];
	struct perfdata_error err;
	struct utsname u;
	int rc;

	record_describe_cpu(model, sizeof(model), cpuid, sizeof(cpuid));
	info.cpudesc = *model ? model : NULL;
	info.cpuid = *cpuid ? cpuid : NULL;
	info.cpus_online = (uint32_t)r->host.ncpus;
	info.memory_kb = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	info.groups = groups;
	info.pmus = pmus;
	info.topology = cpus;
	info.tracing = tracing;
	info.kernel_id = kernel;
	info.kernel_id_size = kallsyms_build_id(kernel);
	if (!uname(&u)) {
		info.hostname = u.nodename;
		info.osrelease = u.release;
		info.arch = u.machine;
	}
	rc = perfdata_finish(r->file, &info, &err);
	r->file = NULL;
	free((void *)info.cmdline);
	free(groups);
	free(pmus);
	free(cpus);
	free(tracing);
	return rc ? cli_error("%s", err.text) : 0;
}

/* ---- running ---- */

static void switch_leaders(struct host_recording *r, unsigned long request)
{
	for (size_t i = 0; i < r->list.n; i++)
		for (size_t k = 0; r->list.items[i].leader == i && k < r->ncpus * r->targets; k++) {
			int fd = *slot(r, i, k / r->targets, k % r->targets);

			if (fd >= 0)
				ioctl(fd, request, 0);
		}
}

static void show_progress(struct host_recording *r)
{
	if (!progress_due(&r->progress))
		return;
	pthread_mutex_lock(&r->rings.lock);
	progress_show(&r->progress, "[ quipu record: %" PRIu64 " samples, %.3f MB ]",
		      perfdata_samples(r->file), (double)perfdata_bytes(r->file) / 1e6);
	pthread_mutex_unlock(&r->rings.lock);
}

/* Nothing left to watch? */
static bool is_over(struct host_recording *r)
{
	if (r->program)
		return host_reap(&r->child, 0);
	for (size_t i = 0; i < r->ntids; i++)
		if (!kill(r->tids[i], 0) || errno == EPERM)
			return false;
	return r->ntids > 0;
}

/* Woken when a ring is half full, when the program ends, or to look around. */
static void watch(struct host_recording *r, const volatile int *stop)
{
	struct record_rings *rings = &r->rings;
	bool threads = rings->nr_readers > 0, over = is_over(r);
	struct pollfd *p = calloc(r->ncpus + 1, sizeof(*p));
	nfds_t n = 0;

	for (size_t c = 0; p && c < r->ncpus && !threads; c++)
		if (rings->owner[c] >= 0)
			p[n++] = (struct pollfd){.fd = rings->owner[c], .events = POLLIN};
	if (p)
		p[n++] = (struct pollfd){.fd = r->child.pidfd, .events = POLLIN};
	while (!over && !*stop && !record_rings_error(rings)) {
		int woken = poll(p, n, r->child.pidfd >= 0 ? 1000 : TICK_MS);

		if (!threads && (woken > 0 || r->options->system_wide))
			record_rings_drain(rings);
		show_progress(r);
		for (nfds_t i = 0; i < n; i++) /* a task's end hangs up its events */
			if (p[i].revents & (POLLHUP | POLLERR | POLLNVAL) && i + 1 < n)
				p[i].fd = -1;
		over = is_over(r);
	}
	free(p);
}

static int run(struct host_recording *r, const volatile int *stop)
{
	size_t readers;
	int rc = 0;

	if (!r->program || on_cpus(r) || r->ntids)
		switch_leaders(r, PERF_EVENT_IOC_ENABLE);
	if (r->program)
		rc = host_release(&r->child);
	if (rc) {
		cli_error("cannot run %s: %s", r->options->argv[0], strerror(-rc));
		return rc == -ENOENT || rc == -ENOTDIR ? 127 : 126;
	}
	progress_begin(&r->progress, !r->options->quiet);
	readers = record_rings_readers(&r->rings, expected(r));
	if (readers > 1)
		record_rings_read(&r->rings,
				  readers); /* where they cannot be had, this thread reads */
	watch(r, stop);
	if (r->program)
		host_end(&r->child);
	switch_leaders(r, PERF_EVENT_IOC_DISABLE);
	record_rings_end(&r->rings);
	record_rings_drain(&r->rings);
	progress_end(&r->progress);
	return 0;
}

/* ---- the end ---- */

static void tell_end(const struct host_recording *r, bool stopped)
{
	int status = r->child.status;

	if (stopped && r->program)
		fputs("quipu: interrupted; samples are those up to then\n", stderr);
	else if (r->program && WIFSIGNALED(status))
		fprintf(stderr,
			"quipu: the program was killed by signal %d (%s); samples are those up to then\n",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
}

static void tell_lost(const struct host_recording *r, uint64_t lost)
{
	if (lost)
		fprintf(stderr,
			"quipu: %" PRIu64
			" records were lost: the rings were full; sample less often (-F, -c), "
			"with smaller stacks, or with larger rings (--mmap-pages %u)\n",
			lost,
			(unsigned)(2 * r->rings.ring[0].size / (size_t)sysconf(_SC_PAGESIZE)));
}

static int record(struct host_recording *r, char **argv, const volatile int *stop)
{
	struct perfdata_error err;
	uint64_t samples, bytes, lost;
	int rc = begin(r), status;

	if (!rc)
		rc = open_all(r);
	if (rc)
		return rc;
	r->file = perfdata_create(r->options->output, &err);
	rc = r->file ? describe(r) : cli_error("%s", err.text);
	if (!rc && tell_before(r))
		rc = cli_error("%s: what runs on this host cannot be written down: %s",
			       r->options->output, strerror(errno));
	r->rings.file = r->file;
	if (!rc)
		rc = run(r, stop);
	if (rc)
		return rc;
	tell_end(r, *stop);
	samples = perfdata_samples(r->file);
	lost = perfdata_lost(r->file);
	bytes = perfdata_bytes(r->file);
	rc = finish_file(r, argv);
	if (rc)
		return rc;
	tell_lost(r, lost);
	if (!r->options->quiet)
		fprintf(stderr,
			"[ quipu record: Captured and wrote %.3f MB %s (%" PRIu64
			" samples, host) ]\n",
			(double)bytes / 1e6, r->options->output, samples);
	status = r->child.status;
	if (!r->program || *stop)
		return r->program && !WIFSIGNALED(status) ? WEXITSTATUS(status) : 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void release(struct host_recording *r)
{
	size_t n = r->list.n * r->ncpus * r->targets;

	if (r->program)
		host_end(&r->child);
	record_rings_free(&r->rings);
	for (size_t i = 0; r->fds && i < n; i++)
		if (r->fds[i] >= 0)
			close(r->fds[i]);
	perfdata_abort(r->file);
	quipu_event_list_free(&r->list);
	host_free(&r->host);
	free(r->fds);
	free(r->tids);
	free(r->cpus);
}

int record_host(const struct record_options *o, char **argv, const volatile int *stop)
{
	struct host_recording r = {
		.options = o,
		.child = {.pid = -1, .go = -1, .error = -1, .pidfd = -1},
		.rings.stop_fd = -1,
	};
	int rc;

	rc = record(&r, argv, stop);
	release(&r);
	return rc;
}
