/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client may ask of the machine: one function per request of protocol.h. Everything in a
 * request is the client's and untrusted; errno are those of perf_event_open(2), read, ioctl and
 * mmap (perf ABI sheet A4-A16).
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/gate_impl.h"

#define PAGE 4096u
#define GRACE_NS                                                                                   \
	UINT64_C(200000000) /* a client that reads after its program's end sees the program's time \
			       alone */
#define IOC_NR(cmd) ((cmd)&0xff)
/* What makes an event care for a task's forks, threads and names. */
#define FOLLOWS                                                                                    \
	(QUIPU_ATTR_INHERIT | QUIPU_ATTR_TASK | QUIPU_ATTR_COMM | QUIPU_ATTR_MMAP |                \
	 QUIPU_ATTR_MMAP2 | QUIPU_ATTR_MMAP_DATA)
enum { NR_DISABLE = 1, NR_SET_OUTPUT = 5, NR_ID = 7 };

/* ---- the machine's time ---- */

/* An idle CPU's clock goes to @time; on the way events take turns when it is due. */
static void idle_until(struct gate *g, unsigned cpu, uint64_t time)
{
	uint64_t due;

	while ((due = quipu_core_next_rotation(g->core, cpu)) <= time) {
		quipu_system_wake(g->system, cpu, due);
		quipu_system_timer(g->system, cpu);
	}
	quipu_system_wake(g->system, cpu, time);
}

/*
 * While no program runs under the engine the machine's clock follows the host's, for a client that
 * only watches. It moves when a client looks (reads, disables), never when one prepares: what
 * passed before a program starts is not counted, so a program's times do not depend on how long it
 * took to start it.
 */
void ask_clock(struct gate *g, uint64_t now)
{
	uint64_t time, limit = sleepers_limit(g, now);

	if (session_guests(g->session) || g->sleeper_ended)
		g->follow_from = now + GRACE_NS;
	g->sleeper_ended = false;
	if (now <= g->follow_from || sleepers_start(g))
		return;
	time = quipu_system_time(g->system) + (now - g->follow_from);
	g->follow_from = now;
	g->watched = true;
	ask_clock_to(g, time < limit ? time : limit);
}

void ask_clock_to(struct gate *g, uint64_t time)
{
	if (time <= quipu_system_time(g->system))
		return;
	if (quipu_core_current(g->core, 0))
		quipu_system_wake(g->system, 0, time);
	else
		idle_until(g, 0, time);
}

/* Watching begins with the last event that is opened or enabled before the first look. */
static void begin_watching(struct gate *g, uint64_t now)
{
	if (!g->watched && g->follow_from < now)
		g->follow_from = now;
}

/* An idle CPU's clock moves up to the machine's before its events are looked at or change. */
static void sync_cpu(struct gate *g, const struct quipu_event *e)
{
	int cpu = quipu_event_cpu(e);

	if (cpu < 0 || quipu_core_current(g->core, (unsigned)cpu))
		return;
	idle_until(g, (unsigned)cpu, quipu_system_time(g->system));
}

/* Everything that has happened up to the host's time @now is known, as far as it concerns @e (NULL:
 * anything); @look: the clock too; thread @told has told its time. */
static void catch_up_to(struct gate *g, const struct quipu_event *e, bool look, uint64_t now,
			pid_t told)
{
	session_serve(g->session);
	if (session_guests(g->session))
		session_refresh(g->session);
	tasks_run_but(g, told);
	if (look || g->sleepers) /* beside a sleep time passes, whatever is asked */
		ask_clock(g, now);
	else
		begin_watching(g, now);
	if (e && !quipu_event_task(e))
		sync_cpu(g, e);
}

static void catch_up(struct gate *g, const struct quipu_event *e, bool look)
{
	catch_up_to(g, e, look, gate_host_ns(), 0);
}

/* ---- who asks ---- */

static bool is_thread_of(pid_t tid, pid_t pid)
{
	char path[64];

	if (tid == pid)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	return !access(path, F_OK);
}

/* The thread that asks: its word is taken when it is one of the client's. */
static pid_t caller_tid(const struct client *c, const struct gate_request *q)
{
	return is_thread_of((pid_t)q->tid, c->who.pid) ? (pid_t)q->tid : c->who.pid;
}

/* ---- events ---- */

static void drop_ring(struct gate *g, struct gate_event *e)
{
	struct ring_memory *r = e->ring;

	e->ring = NULL;
	board_ring(g, e);
	if (!r || --r->refs)
		return;
	munmap(r->mem, r->bytes);
	close(r->fd);
	free(r);
}

static void take_ring(struct gate *g, struct gate_event *e, struct ring_memory *r)
{
	if (r)
		r->refs++;
	drop_ring(g, e);
	e->ring = r;
	board_ring(g, e);
}

/* The last mapping is gone: the buffer leaves all its events, as in the core. */
static void drop_everywhere(struct gate *g, const struct ring_memory *r)
{
	unsigned left = r->refs;

	for (unsigned i = 0; i < EVENT_BUCKETS && left; i++)
		for (struct gate_event *e = g->events[i]; e && left; e = e->chain)
			if (e->ring == r) {
				left--;
				drop_ring(g, e);
			}
}

static void forget(struct gate *g, struct gate_event *e)
{
	struct gate_event **at = &g->events[e->id % EVENT_BUCKETS];

	while (*at != e)
		at = &(*at)->chain;
	*at = e->chain;
	g->nsampling -= e->sampling;
	session_drop(g->session, &e->wants);
	if (--g->nevents == 0)
		g->watched = false;
	g->board->followed -= e->followed;
	if (e->tid)
		tasks_release(g, e->tid);
	else
		tasks_forget(g); /* an event of a CPU may be the last one that goes */
	drop_ring(g, e);
	__atomic_store_n(&g->board->cells[e->cell].id, 0, __ATOMIC_RELEASE);
	descriptor_leave(g, e);
}

static void unmap_event(struct gate *g, struct gate_event *e)
{
	struct ring_memory *r = e->ring;

	if (!e->maps || !r)
		return;
	e->maps--;
	quipu_event_unmap(e->event);
	if (!e->maps && e->closed) {
		r->refs++; /* keep it past forget */
		forget(g, e);
		r->refs--;
	} else if (!e->maps) {
		r->refs++;
		drop_ring(g, e);
		r->refs--;
	}
	if (--r->maps == 0 && r->refs) {
		drop_everywhere(g, r);
	} else if (!r->refs) {
		munmap(r->mem, r->bytes);
		close(r->fd);
		free(r);
	}
}

/* The last copy of the client's descriptor is closed. A mapping keeps the event, as it keeps a
 * file. */
/* The kernel's own clocks are no model's. */
static void note_native(struct gate *g, const struct gate_event *e)
{
	struct quipu_count n;

	if (!e->native || g->counted_native ||
	    quipu_event_attr(e->event)->type == PERF_TYPE_SOFTWARE)
		return;
	quipu_event_count(e->event, &n);
	g->counted_native = n.running;
}

/* perf shows it as not counted, and cannot tell why. */
static void note_helper(struct gate *g, const struct gate_event *e)
{
	struct quipu_count n;

	if (g->uncounted_helper || !e->tid || e->tid != g->helper ||
	    quipu_event_attr(e->event)->type == PERF_TYPE_SOFTWARE)
		return;
	quipu_event_count(e->event, &n);
	if (n.running)
		return;
	g->uncounted_helper = true;
}

void ask_event_hung_up(struct gate *g, struct gate_event *e)
{
	if (e->closed)
		return;
	catch_up(g, e->event, false);
	note_native(g, e);
	note_helper(g, e);
	e->closed = true;
	quipu_event_close(e->event);
	if (!e->maps)
		forget(g, e);
	session_sync(g->session);
	gate_changed(g);
}

void ask_client_left(struct gate *g, struct client *c)
{
	ask_exec_done(g, c);
	for (size_t i = 0; i < c->nmaps; i++)
		for (; c->maps[i].count; c->maps[i].count--) {
			struct gate_event *e = gate_find(g, c->maps[i].event);

			if (e)
				unmap_event(g, e);
		}
	gate_changed(g);
}

/* ---- open ---- */

/* The engine must count what the event is made of. */
static int require(struct gate *g, struct quipu_event *e)
{
	struct quipu_pmu *pmu = quipu_event_pmu(e);
	struct quipu_signals *signals = quipu_system_signals(g->system);
	bool filtered = false;
	quipu_signal signal = pmu->signal ? pmu->signal(e, &filtered) : QUIPU_SIGNAL_NONE;

	if (quipu_event_attr(e)->sample_type & PERF_SAMPLE_CALLCHAIN)
		session_want_stack(g->session);
	if (quipu_event_attr(e)->sample_type & PERF_SAMPLE_BRANCH_STACK)
		session_want_branches(g->session);
	if (quipu_event_attr(e)->sample_type & PERF_SAMPLE_REGS_USER)
		session_want_registers(g->session, quipu_event_attr(e)->sample_regs_user);
	if (signal == QUIPU_SIGNAL_NONE || !signals->ops->has(signals, signal))
		return 0;
	if (session_require(g->session, signal)) {
		quipu_core_reason(
			g->core,
			"too many different events in one session: the engine has no counter left for this one");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Opens what @q asks for, and learns what that needs of the engine. */
static int open_event(struct gate *g, const struct quipu_caller *who, const struct gate_request *q,
		      size_t payload, struct quipu_event *group, struct answer *a,
		      struct quipu_event **event, struct session_wants *wants)
{
	int rc;

	session_collect(g->session);
	rc = quipu_event_open(g->core, who, payload ? g->payload : NULL, payload, (pid_t)q->args[0],
			      (int)q->args[1], group, (unsigned long)q->args[3],
			      &a->reply.size_back, event);
	if (!rc) {
		rc = require(g, *event);
		if (rc)
			quipu_event_close(*event);
	}
	*wants = session_collected(g->session);
	return rc;
}

/*
 * An event begins when all that it is made of is counted. Programs that run and do not count it yet
 * are switched first, and the event is opened behind that.
 */
static int open_counted(struct gate *g, const struct quipu_caller *who,
			const struct gate_request *q, size_t payload, struct quipu_event *group,
			struct answer *a, struct quipu_event **event, struct session_wants *wants)
{
	int rc = open_event(g, who, q, payload, group, a, event, wants);

	if (rc)
		return rc;
	session_hold(g->session, wants);
	if (session_select(g->session)) {
		struct session_wants again;

		quipu_event_close(*event);
		catch_up(g, group && group != QUIPU_EVENT_FOREIGN ? group : NULL, false);
		rc = open_event(g, who, q, payload, group, a, event, &again);
	}
	if (rc)
		session_drop(g->session, wants);
	return rc;
}

/* Wherever it runs, and nobody that descends from it. */
static bool counts_one_thread(const struct gate_event *e)
{
	const struct quipu_attr *a = quipu_event_attr(e->event);

	return e->tid && (uint32_t)e->tid < 1u << (32 - BOARD_TASK) && !e->sampling &&
	       !(a->flags & QUIPU_ATTR_INHERIT) && quipu_event_cpu(e->event) < 0;
}

static int adopt_event(struct gate *g, struct quipu_event *event, const struct session_wants *wants,
		       struct gate_event **out)
{
	int cell, fd;
	struct gate_event *e = descriptor_take(g, &fd);

	if (!e)
		return fd;
	e->event = event;
	e->wants = *wants;
	e->id = quipu_event_id(event);
	if (quipu_event_task(event)) {
		e->pid = quipu_task_pid(quipu_event_task(event));
		e->tid = quipu_task_tid(quipu_event_task(event));
	}
	cell = board_take(g, e->id, e->pipe);
	if (cell < 0) {
		close(fd);
		descriptor_leave(g, e);
		return cell;
	}
	e->cell = (unsigned)cell;
	e->closed = false;
	e->chain = g->events[e->id % EVENT_BUCKETS];
	g->events[e->id % EVENT_BUCKETS] = e;
	g->nevents++;
	e->sampling = quipu_event_attr(event)->sample_period;
	if (counts_one_thread(e))
		g->board->cells[cell].flags |= (uint32_t)e->tid << BOARD_TASK;
	g->nsampling += e->sampling;
	e->followed = e->tid && quipu_event_attr(event)->flags & FOLLOWS;
	__atomic_store_n(&g->board->followed, g->board->followed + e->followed, __ATOMIC_SEQ_CST);
	if (e->tid)
		tasks_hold(g, e->tid);
	*out = e;
	return fd;
}

/* Not the client's limit but ours: nobody would think of that. */
static void tell_full(struct gate *g, int err)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	quipu_core_reason(g->core,
			  "the machine has %zu events open and no descriptor left for another (%s; "
			  "its limit is %llu)",
			  g->nevents, strerrorname_np(-err), (unsigned long long)limit.rlim_cur);
	if (!g->told_full && !g->config.verbose)
		fprintf(stderr,
			"quipu: %s; raise the hard limit (ulimit -Hn) before quipu exec, or open fewer events\n",
			quipu_core_last_reason(g->core));
	g->told_full = true;
}

static void ask_open(struct gate *g, struct client *c, const struct gate_request *q, size_t payload,
		     struct answer *a)
{
	struct quipu_caller who = c->who;
	struct quipu_event *group = NULL, *event;
	struct gate_event *leader = NULL, *e = NULL;
	struct session_wants wants;
	pid_t pid = (pid_t)q->args[0];
	int rc;

	who.tid = caller_tid(c, q);
	if (q->args[2] && q->args[2] != GATE_FOREIGN)
		leader = gate_find(g, q->args[2]);
	if (q->args[2])
		group = leader && !leader->closed ? leader->event : QUIPU_EVENT_FOREIGN;
	catch_up(g, group && group != QUIPU_EVENT_FOREIGN ? group : NULL, false);
	if (pid != -1 && !(q->args[3] & PERF_FLAG_PID_CGROUP))
		tasks_find(g, pid ? pid : who.tid);
	rc = open_counted(g, &who, q, payload, group, a, &event, &wants);
	if (rc) {
		a->reply.result = rc;
		tasks_forget(g);
		return;
	}
	rc = adopt_event(g, event, &wants, &e);
	if (rc == -EMFILE || rc == -ENFILE)
		tell_full(g, rc);
	if (rc < 0) {
		session_drop(g->session, &wants);
		quipu_event_close(event);
		a->reply.result = rc;
		return;
	}
	if (!quipu_event_task(event))
		sync_cpu(g, event);
	if (quipu_event_task(event) &&
	    !(quipu_event_attr(event)->flags & QUIPU_ATTR_ENABLE_ON_EXEC))
		e->native = tasks_count(g, quipu_task_tid(quipu_event_task(event)));
	if (q->args[3] & PERF_FLAG_FD_OUTPUT && leader)
		take_ring(g, e, leader->ring);
	a->fd[0] = rc;
	a->reply.values[0] = e->id;
	a->reply.values[1] = e->cell;
}

/* ---- the rest ---- */

/* The notifier speaks for a process of the user's. */
static int speak_for(struct gate *g, struct client *c, pid_t pid)
{
	char path[64];
	struct stat st;
	int rc;

	if (!g->config.notifier || c->who.pid != g->child)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st))
		return -ESRCH;
	rc = gate_speaks_for(g, c, pid, st.st_uid);
	if (rc)
		return rc;
	c->spoken_for = true;
	return 0;
}

static void ask_hello(struct gate *g, struct client *c, const struct gate_request *q,
		      struct answer *a)
{
	if (q->args[0] != GATE_VERSION) {
		a->reply.result = -EPROTO;
		return;
	}
	if (q->args[1]) {
		a->reply.result = speak_for(g, c, (pid_t)q->args[1]);
		if (a->reply.result)
			return;
	}
	c->hello = true;
	a->fd[0] = g->board_fd;
	a->fd[1] = g->posts_fd;
	a->reply.values[0] = g->ncpus;
}

static void ask_read(struct gate *g, struct gate_event *e, const struct gate_request *q,
		     struct answer *a)
{
	uint64_t length = q->args[0] < GATE_READ ? q->args[0] : GATE_READ;
	struct motion m;
	ssize_t n;

	catch_up(g, e->event, true);
	n = quipu_event_read(e->event, g->answer, length);
	a->reply.result = n;
	if (n <= 0)
		return;
	a->reply.length = (uint32_t)n;
	if (!(quipu_event_attr(e->event)->read_format & PERF_FORMAT_GROUP) &&
	    (size_t)n <= 8 * BOARD_WORDS && board_foresees(g, e->event, &m))
		board_write(g, e, g->answer, (size_t)n, &m);
}

static int set_output(struct gate *g, struct gate_event *e, uint64_t id)
{
	struct gate_event *to = id && id != GATE_FOREIGN ? gate_find(g, id) : NULL;
	int rc;

	if (id && (!to || to->closed))
		return -EBADF;
	rc = quipu_event_set_output(e->event, to ? to->event : NULL);
	if (!rc)
		take_ring(g, e, to ? to->ring : NULL);
	if (!rc && to)
		quipu_event_describe(e->event);
	return rc;
}

static void ask_ioctl(struct gate *g, struct gate_event *e, const struct gate_request *q,
		      struct answer *a)
{
	unsigned long cmd = (unsigned long)q->args[0];
	uint64_t now = gate_host_ns();

	if (q->op & GATE_POSTED && q->args[2] < now)
		now = q->args[2];
	catch_up_to(g, e->event, IOC_NR(cmd) == NR_DISABLE, now,
		    q->op & GATE_POSTED && q->ran ? (pid_t)q->tid : 0);
	if (IOC_NR(cmd) == NR_ID)
		a->reply.values[0] = e->id;
	else if (IOC_NR(cmd) == NR_SET_OUTPUT)
		a->reply.result = set_output(g, e, q->args[1]);
	else
		a->reply.result = quipu_event_ioctl(e->event, cmd, q->args[1]);
	session_sync(g->session);
}

static struct ring_memory *make_ring(size_t bytes, int *err)
{
	struct ring_memory *r = calloc(1, sizeof(*r));

	*err = -ENOMEM;
	if (!r)
		return NULL;
	r->bytes = bytes;
	r->fd = memfd_create("quipu-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (r->fd < 0) {
		*err = -errno;
		free(r);
		return NULL;
	}
	r->mem = MAP_FAILED;
	if (!ftruncate(r->fd, (off_t)bytes) &&
	    !fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		r->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->mem != MAP_FAILED)
		return r;
	close(r->fd);
	free(r);
	return NULL;
}

static int remember_map(struct client *c, uint64_t id)
{
	struct client_map *m;

	for (size_t i = 0; i < c->nmaps; i++)
		if (c->maps[i].event == id || !c->maps[i].count) {
			c->maps[i].event = id;
			c->maps[i].count++;
			return 0;
		}
	m = realloc(c->maps, (c->nmaps + 1) * sizeof(*m));
	if (!m)
		return -ENOMEM;
	c->maps = m;
	m[c->nmaps++] = (struct client_map){.event = id, .count = 1};
	return 0;
}

static bool forget_map(struct client *c, uint64_t id)
{
	for (size_t i = 0; i < c->nmaps; i++)
		if (c->maps[i].event == id && c->maps[i].count) {
			c->maps[i].count--;
			return true;
		}
	return false;
}

static int map_event(struct gate *g, struct client *c, struct gate_event *e, uint64_t bytes,
		     bool writable)
{
	struct ring_memory *r = e->ring;
	struct rlimit limit;
	int rc;

	if (!bytes || bytes % PAGE || bytes > (uint64_t)INT_MAX)
		return -EINVAL;
	if (!r)
		r = make_ring(bytes, &rc);
	if (!r)
		return rc;
	c->who.memlock = prlimit(c->who.pid, RLIMIT_MEMLOCK, NULL, &limit) ? 0 : limit.rlim_cur;
	rc = quipu_event_map(e->event, &c->who, r->mem, bytes / PAGE - 1, writable);
	if (!rc)
		rc = remember_map(c, e->id);
	if (rc) {
		if (!e->ring) {
			munmap(r->mem, r->bytes);
			close(r->fd);
			free(r);
		}
		return rc;
	}
	if (!e->ring)
		take_ring(g, e, r);
	r->maps++;
	if (e->maps++ == 0)
		quipu_event_describe(e->event); /* /proc tells the engine's, not its program's */
	return 0;
}

static void ask_mmap(struct gate *g, struct client *c, struct gate_event *e,
		     const struct gate_request *q, struct answer *a)
{
	catch_up(g, e->event, false);
	a->reply.result = q->args[2] ? -EINVAL : map_event(g, c, e, q->args[0], q->args[1]);
	if (!a->reply.result)
		a->fd[0] = e->ring->fd;
}

static void ask_munmap(struct gate *g, struct client *c, const struct gate_request *q,
		       struct answer *a)
{
	struct gate_event *e = gate_find(g, q->event);

	if (!e || !forget_map(c, q->event)) {
		a->reply.result = -EINVAL;
		return;
	}
	catch_up(g, e->event, false);
	unmap_event(g, e);
	session_sync(g->session);
}

static void ask_reason(struct gate *g, struct client *c, struct answer *a)
{
	a->reply.length = (uint32_t)strlen(c->reason) + 1;
	memcpy(g->answer, c->reason, a->reply.length);
}

/* A thread of the host has a new name. */
static void ask_comm(struct gate *g, struct client *c, const struct gate_request *q, size_t payload)
{
	struct quipu_task *task = is_thread_of((pid_t)q->tid, c->who.pid)
					  ? quipu_task_find(g->core, (pid_t)q->tid)
					  : NULL;
	char comm[16] = "";

	memcpy(comm, g->payload, payload < 15 ? payload : 15);
	catch_up(g, NULL, false);
	if (task)
		quipu_task_comm(task, comm, 0);
}

/* ---- who asks what ---- */

/* The client's side of it is the client's, and believed: it is the one who is woken. */
static bool has_unread(const struct gate_event *e)
{
	const struct perf_event_mmap_page *page = e->ring ? e->ring->mem : NULL;

	return page && __atomic_load_n(&page->data_head, __ATOMIC_RELAXED) !=
			       __atomic_load_n(&page->data_tail, __ATOMIC_RELAXED);
}

static struct gate_event *find_by_pipe(const struct gate *g, uint32_t pipe)
{
	for (unsigned i = 0; i < EVENT_BUCKETS; i++)
		for (struct gate_event *e = g->events[i]; e; e = e->chain)
			if (e->pipe == pipe)
				return e;
	return NULL;
}

static void ask_of_event(struct gate *g, struct client *c, const struct gate_request *q,
			 struct answer *a)
{
	struct gate_event *e = q->op == GATE_LOOKUP && !q->event
				       ? find_by_pipe(g, (uint32_t)q->args[0])
				       : gate_find(g, q->event);

	if (!e || e->closed) {
		a->reply.result = -EBADF;
		return;
	}
	switch (q->op) {
	case GATE_LOOKUP:
		a->reply.values[0] = e->id;
		a->reply.values[1] = e->cell;
		break;
	case GATE_READ_EVENT: ask_read(g, e, q, a); break;
	case GATE_IOCTL: ask_ioctl(g, e, q, a); break;
	case GATE_MMAP: ask_mmap(g, c, e, q, a); break;
	case GATE_ASYNC:
		e->async = q->args[0];
		quipu_event_set_async(e->event, e->async);
		session_sync(g->session);
		break;
	case GATE_POLL:
		a->reply.result = quipu_event_poll(e->event);
		a->reply.values[0] = has_unread(e);
		break;
	}
}

/* A miss says why: to whoever asks for it (GATE_REASON), and with -v to the user. */
static void remember_reason(struct gate *g, struct client *c, uint32_t op, int err)
{
	static const char *const names[GATE_OPS] = {
		[GATE_OPEN] = "perf_event_open", [GATE_READ_EVENT] = "read",
		[GATE_IOCTL] = "ioctl",		 [GATE_MMAP] = "mmap",
		[GATE_MUNMAP] = "munmap",	 [GATE_PRCTL] = "prctl",
	};
	const char *why = quipu_core_last_reason(g->core);

	snprintf(c->reason, sizeof(c->reason), "%s", why);
	if (g->config.verbose && op < GATE_OPS && names[op])
		fprintf(stderr, "quipu: %s of process %d: %s%s%s\n", names[op], (int)c->who.pid,
			strerrorname_np(err), *why ? ": " : "", why);
}

/* Requests after which what the board says still stands. */
static bool changes_nothing(uint32_t op)
{
	return op == GATE_HELLO || op == GATE_LOOKUP || op == GATE_READ_EVENT ||
	       op == GATE_REASON || op == GATE_POLL;
}

/* What cannot fail needs no answer. */
void ask_posted(struct gate *g, struct client *c, const struct gate_request *q)
{
	struct gate_event *e = gate_find(g, q->event);
	struct answer a = {0};

	gate_changed(g);
	if (q->ran)
		tasks_claim(g, caller_tid(c, q), q->ran);
	if (!e || e->closed)
		a.reply.result = -EBADF;
	else
		ask_ioctl(g, e, q, &a);
	if (a.reply.result < 0)
		remember_reason(g, c, GATE_IOCTL, (int)-a.reply.result);
}

void ask(struct gate *g, struct client *c, const struct gate_request *q, size_t payload,
	 struct answer *a)
{
	if (!changes_nothing(q->op))
		gate_changed(g);
	if (q->ran)
		tasks_claim(g, caller_tid(c, q), q->ran);
	if (c->spoken_for) { /* its waits for children are not seen */
		session_serve(g->session);
		tasks_reap(g);
	}
	switch (q->op) {
	case GATE_HELLO: ask_hello(g, c, q, a); break;
	case GATE_OPEN: ask_open(g, c, q, payload, a); break;
	case GATE_LOOKUP:
	case GATE_READ_EVENT:
	case GATE_IOCTL:
	case GATE_MMAP:
	case GATE_ASYNC:
	case GATE_POLL: ask_of_event(g, c, q, a); break;
	case GATE_MUNMAP: ask_munmap(g, c, q, a); break;
	case GATE_PRCTL:
		catch_up(g, NULL, !q->args[0]);
		quipu_core_prctl(g->core, caller_tid(c, q), q->args[0]);
		session_sync(g->session);
		break;
	case GATE_HOTPLUG:
		catch_up(g, NULL, true);
		g->payload[payload < GATE_PAYLOAD ? payload : GATE_PAYLOAD - 1] = 0;
		a->reply.result = gate_hotplug(g, (const char *)g->payload, q->args[0]);
		break;
	case GATE_COMM: ask_comm(g, c, q, payload); break;
	case GATE_SYNC:
		session_serve(g->session);
		tasks_reap(g);
		break;
	case GATE_BORN:
		catch_up(g, NULL, false);
		tasks_born(g, c->who.pid, caller_tid(c, q), (pid_t)q->args[0]);
		session_sync(g->session);
		break;
	case GATE_PLACE:
		if (g->config.host_events)
			catch_up(g, NULL, false);
		tasks_place(g, (pid_t)q->args[0], q->args[1]);
		if ((pid_t)q->args[0] == caller_tid(c, q))
			tasks_visit(g, (pid_t)q->args[0]);
		break;
	case GATE_EXEC: ask_exec(g, c, payload, a); return;
	case GATE_EXEC_DONE: ask_exec_done(g, c); break;
	case GATE_EXEC_FAILED:
		c->execing = false;
		tasks_stay(g, c->who.pid);
		sleepers_stay(g, c->who.pid);
		break;
	case GATE_SLEEP: sleepers_begin(g, c->who.pid, q->args[0]); break;
	case GATE_SLEPT: sleepers_end(g, c->who.pid); break;
	case GATE_REASON: ask_reason(g, c, a); return;
	default: a->reply.result = -ENOSYS;
	}
	if (a->reply.result < 0)
		remember_reason(g, c, q->op, (int)-a->reply.result);
}
