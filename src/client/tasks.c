/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tasks that clients name: processes and threads of the host. Those that run under the engine
 * are the session's; the others exist in the core so that events can be opened on them, wait for
 * their exec, and hang up at their end. perf ABI sheet A11, B6, C6.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/gate_impl.h"

#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD, Linux 6.9 */
#define GENERATIONS	16     /* how far up an ancestor with events is looked for */

struct facts {
	pid_t tgid, ppid;
	uid_t uid;
	char comm[16];
};

static int read_facts(pid_t tid, struct facts *f)
{
	char path[64], line[256];
	int n, seen = 0;
	unsigned uid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	file = fopen(path, "re");
	if (!file)
		return -ESRCH;
	memset(f, 0, sizeof(*f));
	f->uid = (uid_t)-1;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Name: %15[^\n]", f->comm) == 1)
			seen++;
		else if (sscanf(line, "State: %*c (zombie%n", &n) == 0 &&
			 strstr(line, "(zombie)") && line[0] == 'S')
			seen = -16; /* gone, but for its parent */
		else if (sscanf(line, "Tgid: %d", &n) == 1)
			f->tgid = n;
		else if (sscanf(line, "PPid: %d", &n) == 1)
			f->ppid = n;
		else if (sscanf(line, "Uid: %u", &uid) == 1) /* the file is root's after setuid */
			f->uid = uid;
	}
	fclose(file);
	return seen > 0 && f->tgid ? 0 : -ESRCH;
}

static void watch_task(struct gate *g, pid_t tid, pid_t tgid, bool measured)
{
	bool thread = tid != tgid;
	struct host_task *t = calloc(1, sizeof(*t));
	int fd = (int)syscall(SYS_pidfd_open, tid, thread ? PIDFD_OF_THREAD : 0);

	if (!t || fd < 0 || gate_watch(g, &t->source, SOURCE_TASK, fd, EPOLLIN)) {
		if (fd >= 0)
			close(fd);
		free(t);
		return;
	}
	t->tid = tid;
	t->tgid = tgid;
	t->cpu = t->wish = -1;
	t->stat_fd = -1;
	t->measured = measured;
	t->next = g->tasks;
	g->tasks = t;
}

static struct host_task *host_task(const struct gate *g, pid_t tid)
{
	struct host_task *t = g->tasks;

	while (t && t->tid != tid)
		t = t->next;
	return t;
}

static struct quipu_task *make_task(struct gate *g, pid_t tid, const struct facts *f,
				    struct quipu_task *parent)
{
	struct quipu_task *task =
		quipu_task_new(g->core, parent, f->tgid, tid, tid != f->tgid, f->comm, 0);

	if (!task)
		return NULL;
	quipu_task_set_uid(task, f->uid);
	watch_task(g, tid, f->tgid, parent != NULL);
	return task;
}

/* The task of a thread of the host, known or made now; NULL when there is no such thread. */
struct quipu_task *tasks_find(struct gate *g, pid_t tid)
{
	struct quipu_task *task = quipu_task_find(g->core, tid);
	struct facts f;

	if (task || tid <= 0 || read_facts(tid, &f))
		return task;
	return make_task(g, tid, &f, NULL);
}

/*
 * The nearest ancestor that is known has its events inherited down to @pid: forks of processes
 * without a perf call are not reported, so what happened is made up for here, before the new
 * program runs.
 */
static struct quipu_task *inherit_down(struct gate *g, pid_t pid, unsigned generations)
{
	struct quipu_task *parent, *task = quipu_task_find(g->core, pid);
	const struct host_task *t = host_task(g, pid);
	struct facts f;

	/* One that an event was only asked for, and refused, is nothing to descend from. */
	if (task && (!t || t->measured))
		return task;
	if (!generations || pid <= 1 || read_facts(pid, &f))
		return NULL;
	parent = inherit_down(g, f.ppid, generations - 1);
	if (!parent || task)
		return parent ? task : NULL;
	return make_task(g, pid, &f, parent);
}

/* ---- the time of tasks that do not run under the engine ---- */

/* The descriptor is kept: time is asked for at every look. */
static uint64_t host_cpu_ns(struct host_task *t)
{
	char path[64], text[64] = "";
	uint64_t ran;
	ssize_t n;

	if (t->stat_fd < 0) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)t->tgid,
			 (int)t->tid);
		t->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	n = t->stat_fd < 0 ? 0 : pread(t->stat_fd, text, sizeof(text) - 1, 0);
	ran = n > 0 ? strtoull(text, NULL, 10) : t->ran;
	return t->clock ? host_clock_ran(t->clock, ran) : ran;
}

/* @ip: where it stood then, 0: nobody knows. */
static void run_up_to(struct gate *g, struct host_task *t, uint64_t now, uint64_t ip)
{
	struct quipu_task *task;

	if (now <= t->ran)
		return;
	task = t->shares ? quipu_task_find(g->core, t->tid) : NULL;
	if (task && quipu_core_current(g->core, (unsigned)t->cpu) != task) /* its turn */
		quipu_system_run(g->system, (unsigned)t->cpu, task, quipu_system_time(g->system));
	session_host_run(g->session, (unsigned)t->cpu, t->tgid, t->tid, now - t->ran, ip);
	t->ran = now;
}

static void run_samples(struct gate *g, struct host_task *t, uint64_t now)
{
	uint64_t ran, ip;

	/* What it runs meanwhile is for the next look. */
	while (t->clock && t->ran < now && host_clock_next(t->clock, &ran, &ip)) {
		run_up_to(g, t, ran < now ? ran : now, ip);
		t->ip = ip;
	}
}

static void run_task(struct gate *g, struct host_task *t)
{
	uint64_t now;

	if (t->cpu < 0)
		return;
	now = host_cpu_ns(t);
	run_samples(g, t, now);
	run_up_to(g, t, now, t->ip);
}

void tasks_run_but(struct gate *g, pid_t tid)
{
	for (struct host_task *t = g->tasks; t; t = t->next)
		if (t->tid != tid)
			run_task(g, t);
}

void tasks_run(struct gate *g)
{
	tasks_run_but(g, 0);
}

/* Most that /proc may lag behind: ticks of the host. Who claims more is not believed. */
#define LAG_NS UINT64_C(50000000)

void tasks_claim(struct gate *g, pid_t tid, uint64_t ran)
{
	struct host_task *t = host_task(g, tid);

	if (!t || t->cpu < 0 || ran <= t->ran)
		return;
	if (ran - t->ran > LAG_NS && ran > host_cpu_ns(t) + LAG_NS)
		return;
	run_samples(g, t, ran);
	run_up_to(g, t, ran, t->ip);
}

bool tasks_counted(const struct gate *g, pid_t tid, unsigned *cpu, uint64_t *ran)
{
	const struct host_task *t = host_task(g, tid);

	if (!t || t->cpu < 0)
		return false;
	*cpu = (unsigned)t->cpu;
	*ran = t->ran;
	return true;
}

unsigned tasks_on(const struct gate *g, int cpu)
{
	unsigned n = 0;

	for (const struct host_task *t = g->tasks; t; t = t->next)
		n += t->cpu == cpu;
	return n;
}

bool tasks_any(const struct gate *g)
{
	for (const struct host_task *t = g->tasks; t; t = t->next)
		if (t->cpu >= 0)
			return true;
	return false;
}

static bool is_client(const struct gate *g, pid_t pid)
{
	for (const struct client *c = g->clients; c; c = c->next)
		if (c->hello && c->who.pid == pid)
			return true;
	return false;
}

bool tasks_all_tell(const struct gate *g)
{
	for (const struct host_task *t = g->tasks; t; t = t->next)
		if (t->cpu >= 0 && (t->clock || !is_client(g, t->tgid)))
			return false;
	return true;
}

bool tasks_waited_for(const struct gate *g)
{
	for (const struct host_task *t = g->tasks; t; t = t->next)
		if (t->scans || (t->cpu >= 0 && session_host_armed(g->session, (unsigned)t->cpu)))
			return true;
	return false;
}

static void begin_clock(struct gate *g, struct host_task *t)
{
	t->ip = 0;
	t->ran = host_cpu_ns(t); /* the descriptor stays open as long as it counts */
	/* A client tells its time itself, but for what it forgets to when it ends. */
	if (g->nsampling || t->born || t->visits || !is_client(g, t->tgid))
		t->clock = host_clock_new(t->tid, t->ran, g->nsampling);
}

/* Have such tasks every CPU of a machine of several? */
static bool all_taken(const struct gate *g)
{
	for (unsigned c = 0; c < g->ncpus; c++)
		if (!tasks_on(g, (int)c))
			return false;
	return g->ncpus > 1;
}

/* More tasks than CPUs: that with the fewest of them has one more. -1: none has any. */
static int share_cpu(struct gate *g)
{
	unsigned fewest = UINT_MAX;
	int cpu = -1;

	for (const struct host_task *t = g->tasks; t; t = t->next) {
		unsigned n = t->cpu < 0 ? UINT_MAX : tasks_on(g, t->cpu);

		if (n < fewest) {
			fewest = n;
			cpu = t->cpu;
		}
	}
	for (struct host_task *t = g->tasks; t && cpu >= 0; t = t->next)
		t->shares = t->shares || t->cpu == cpu;
	return cpu;
}

/* @t counts no more, and its CPU is another's or nobody's. */
static void leave_cpu(struct gate *g, struct host_task *t)
{
	unsigned cpu = (unsigned)t->cpu;

	t->cpu = -1;
	t->shares = false;
	if (!tasks_on(g, (int)cpu))
		quipu_system_leave(g->system, cpu);
}

bool tasks_count(struct gate *g, pid_t tid)
{
	struct host_task *t = host_task(g, tid);
	struct quipu_task *task = quipu_task_find(g->core, tid);

	/* The machine is no task of its own: to count what it runs it would run. */
	if (!t || !task || t->tgid == g->pid)
		return false;
	if (t->cpu >= 0)
		return true;
	t->cpu = t->wish >= 0 && quipu_system_place_at(g->system, (unsigned)t->wish)
			 ? t->wish
			 : quipu_system_place_last(g->system);
	if (t->cpu >= 0 && all_taken(g)) { /* one is left for programs under the engine */
		quipu_system_leave(g->system, (unsigned)t->cpu);
		t->cpu = -1;
	}
	if (t->cpu < 0) {
		t->cpu = share_cpu(g);
		t->shares = t->cpu >= 0;
	}
	if (t->cpu < 0)
		return false;
	if (!t->prepared)
		begin_clock(g, t);
	t->prepared = false;
	quipu_system_run(g->system, (unsigned)t->cpu, task, quipu_system_time(g->system));
	return true;
}

void tasks_close(struct host_task *t)
{
	if (t->stat_fd >= 0)
		close(t->stat_fd);
	t->stat_fd = -1;
	host_clock_free(t->clock);
	t->clock = NULL;
	t->prepared = false;
}

/*
 * It runs under the engine from now on, or a program that is none of this machine's. What it has
 * run since the last look was the exec, and the start of the engine: no program's time.
 */
static void count_no_more(struct gate *g, pid_t tid)
{
	struct host_task *t = host_task(g, tid);

	if (!t || t->cpu < 0)
		return;
	if (!t->shares ||
	    quipu_core_current(g->core, (unsigned)t->cpu) == quipu_task_find(g->core, tid))
		quipu_system_stop(g->system, (unsigned)t->cpu, false);
	leave_cpu(g, t);
	tasks_close(t);
}

void tasks_hold(struct gate *g, pid_t tid)
{
	struct host_task *t = host_task(g, tid);

	if (!t)
		return;
	t->events++;
	t->measured = true;
}

/* Off the list, its descriptors closed. */
static void drop_task(struct gate *g, struct host_task *t)
{
	struct host_task **at = &g->tasks;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	tasks_close(t);
	gate_bury(g, &t->source);
}

/* Nobody has asked for more than its place, or it is the engine's. */
static bool stays(const struct gate *g, const struct host_task *t)
{
	return t->wish >= 0 || session_has(g->session, t->tgid);
}

void tasks_forget(struct gate *g)
{
	struct host_task *t = g->tasks, *next;
	struct quipu_task *task;

	for (; t && !g->nevents; t = next) {
		next = t->next;
		count_no_more(g, t->tid);
		task = stays(g, t) ? NULL : quipu_task_find(g->core, t->tid);
		if (!stays(g, t))
			drop_task(g, t);
		if (task)
			quipu_task_exit(task, 0);
	}
}

/* What descends from a task counts on until there is no event at all: it may have inherited. */
void tasks_release(struct gate *g, pid_t tid)
{
	struct host_task *t = host_task(g, tid);

	if (t && t->events && --t->events == 0)
		count_no_more(g, tid);
	tasks_forget(g);
}

/* Are the host's own programs the machine's too? On any other machine a shell is a helper, whose
 * time is not its. */
static bool runs_here(const struct gate *g)
{
	enum quipu_isa isa = quipu_system_machine(g->system)->isa;

#if defined(__x86_64__)
	return isa == QUIPU_ISA_X86_64;
#elif defined(__riscv)
	return isa == QUIPU_ISA_RISCV64;
#elif defined(__powerpc64__)
	return isa == QUIPU_ISA_PPC64LE;
#else
	return isa == QUIPU_ISAS;
#endif
}

bool tasks_is_measured(struct gate *g, pid_t pid)
{
	return inherit_down(g, pid, GENERATIONS);
}

bool tasks_is_helper(const struct gate *g, pid_t pid)
{
	struct facts f;

	return !runs_here(g) && !g->config.host_events && !read_facts(pid, &f) &&
	       is_client(g, f.ppid);
}

bool tasks_is_workload(struct gate *g, pid_t pid)
{
	struct facts f;

	if (!runs_here(g) || g->config.engine || inherit_down(g, pid, GENERATIONS))
		return true;
	return !read_facts(pid, &f) && is_client(g, f.ppid);
}

struct quipu_task *tasks_started(void *arg, pid_t pid, const char *comm)
{
	struct gate *g = arg;
	struct quipu_task *task = inherit_down(g, pid, GENERATIONS);
	struct facts f;

	count_no_more(g, pid);
	if (!task)
		task = quipu_task_find(g->core, pid);
	if (task)
		return task;
	task = quipu_task_new(g->core, NULL, pid, pid, false, comm, 0);
	if (task && !read_facts(pid, &f))
		quipu_task_set_uid(task, f.uid);
	return task;
}

bool tasks_is_guest(const struct gate *g, const struct quipu_task *task)
{
	return session_has(g->session, quipu_task_pid(task));
}

/*
 * What a client's process forks inherits and counts as it does, from its first instruction: it says
 * so itself, before it does anything else. What it says of its parent is looked up.
 */
void tasks_born(struct gate *g, pid_t pid, pid_t tid, pid_t parent)
{
	struct quipu_task *of = quipu_task_find(g->core, parent);
	const struct host_task *p = host_task(g, parent);
	struct host_task *t;
	struct facts f;

	if (!of || !p || !p->measured || quipu_task_find(g->core, tid) ||
	    session_has(g->session, pid) || read_facts(tid, &f) ||
	    (tid == pid ? f.ppid : f.tgid) != p->tgid)
		return;
	if (!make_task(g, tid, &f, of))
		return;
	t = host_task(g, tid);
	if (!t)
		return;
	t->born = true;
	if (p->cpu >= 0)
		tasks_count(g, tid);
}

/* ---- the mappings of programs that run natively ---- */

#define SCANS 6 /* after an exec: the loader is still at work when it is told */

static bool told(struct host_task *t, uint64_t start)
{
	for (unsigned i = 0; i < t->nseen; i++)
		if (t->seen[i] == start)
			return true;
	if (t->nseen < HOST_MAPS)
		t->seen[t->nseen++] = start;
	return false;
}

static void scan_task(struct gate *g, struct host_task *t)
{
	struct quipu_task *task = quipu_task_find(g->core, t->tid);
	char path[64], line[PATH_MAX + 128], name[PATH_MAX];
	unsigned cpu = t->cpu < 0 ? 0 : (unsigned)t->cpu;
	FILE *f;

	t->scans--;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->tid);
	f = task ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof(line), f)) {
		struct quipu_mapping m = {
			.prot = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .name = name};
		unsigned long long start, end, offset, inode;
		char perms[8];

		name[0] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %4095[^\n]", &start, &end, perms,
			   &offset, &m.maj, &m.min, &inode, name) < 7 ||
		    perms[2] != 'x' || told(t, start))
			continue;
		m.addr = start;
		m.len = end - start;
		m.pgoff = offset;
		m.ino = inode;
		if (!name[0])
			m.name = "//anon";
		quipu_task_mmap(task, &m, cpu);
	}
	if (f)
		fclose(f);
}

void tasks_scan(struct gate *g)
{
	for (struct host_task *t = g->tasks; t; t = t->next)
		if (t->scans)
			scan_task(g, t);
}

void tasks_exec(struct gate *g, pid_t pid, const char *comm)
{
	struct quipu_task *task = inherit_down(g, pid, GENERATIONS);
	struct host_task *t = host_task(g, pid);

	if (!task)
		return;
	if (!runs_here(g) && !g->config.host_events) {
		count_no_more(g, pid);
		g->helper = pid;
	} else if (tasks_count(g, pid)) {
		gate_runs_natively(g, pid);
	}
	g->follow_from =
		gate_host_ns(); /* a helper that waits: the machine's time goes with the host's */
	quipu_task_exec(task, comm, t && t->cpu >= 0 ? (unsigned)t->cpu : 0);
	if (t) {
		t->nseen = 0;
		t->scans = SCANS;
		scan_task(g, t);
	}
	session_sync(g->session);
}

void tasks_prepare(struct gate *g, pid_t pid)
{
	struct host_task *t;

	if (!g->nevents || (!runs_here(g) && !g->config.host_events))
		return;
	inherit_down(g, pid, GENERATIONS);
	t = host_task(g, pid);
	if (!t || t->cpu >= 0 || t->prepared)
		return;
	begin_clock(g, t);
	t->prepared = true;
}

void tasks_stay(struct gate *g, pid_t pid)
{
	struct host_task *t = host_task(g, pid);

	if (!t || !t->prepared)
		return;
	t->prepared = false;
	tasks_close(t);
}

static void announced_exec(struct gate *g, pid_t pid)
{
	for (struct client *c = g->clients; c; c = c->next)
		if (c->who.pid == pid)
			ask_exec_done(g, c);
}

void tasks_ended(struct gate *g, struct host_task *ended)
{
	struct quipu_task *task;
	pid_t tid = ended->tid;

	announced_exec(g, tid); /* its end is known before that its connection has closed */
	run_task(g, ended);
	drop_task(g, ended);
	session_serve(g->session); /* what ran under the engine ends there */
	ask_clock(g, gate_host_ns());
	task = quipu_task_find(g->core, tid);
	if (task)
		quipu_task_exit(task, ended->cpu < 0 ? 0 : (unsigned)ended->cpu);
	if (ended->cpu >= 0 && !tasks_on(g, ended->cpu)) /* it is off the list */
		quipu_system_leave(g->system, (unsigned)ended->cpu);
	gate_changed(g);
}

void tasks_reap(struct gate *g)
{
	struct host_task *t = g->tasks, *next;

	for (; t; t = next) {
		struct pollfd p = {.fd = t->source.fd, .events = POLLIN};

		next = t->next;
		if (poll(&p, 1, 0) > 0)
			tasks_ended(g, t);
	}
}

void tasks_place(struct gate *g, pid_t tid, uint64_t cpu)
{
	bool one = cpu < g->ncpus;
	struct host_task *t = host_task(g, tid);

	if (tid == g->pid || (!t && !gate_descends(g, tid))) /* another's */
		return;
	/* Its ancestors' events first: a task that is only known inherits nothing any more. */
	if (!t && one && !inherit_down(g, tid, GENERATIONS) && !tasks_find(g, tid))
		return;
	t = host_task(g, tid);
	if (t)
		t->wish = one ? (int)cpu : -1;
}

/*
 * Where the host's programs are the machine's (--host-events), what a client does on a CPU that it
 * has moved to is work of that CPU, and counts in the events of it: so no CPU that perf switches
 * events on has nothing to count.
 */
void tasks_visit(struct gate *g, pid_t tid)
{
	struct host_task *t = g->config.host_events && g->nevents ? host_task(g, tid) : NULL;

	if (!t || t->measured || (!t->visits && t->wish < 0) || t->cpu == t->wish)
		return;
	count_no_more(g, tid);
	t->visits = t->wish >= 0;
	if (t->visits)
		tasks_count(g, tid);
}

int tasks_wish(void *arg, pid_t pid)
{
	const struct host_task *t = host_task(arg, pid);

	return t ? t->wish : -1;
}

/* The host's clock is followed again a while after the last program: its client reads first. */
void tasks_guest_ended(void *arg, pid_t pid)
{
	struct gate *g = arg;

	gate_hang_up(g, pid);
	g->follow_from = gate_host_ns() + UINT64_C(200000000);
}
