/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the calls mean that the notifier hears (notifier.c): those of perf_event_open(2) and of an
 * event's descriptor become requests to the machine, as preload.c makes them; few more show the
 * machine's CPUs. perf ABI sheet B9, C3.
 *
 * A mapping is made by the calling thread itself, of the buffer's file under another number
 * (remote.h): its descriptor stays the event's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "client/notifier_impl.h"

#define PAGE 4096u

/* ---- events ---- */

static uint64_t id_of(struct call *c, int copy)
{
	struct exchange x = {.request = {.op = GATE_LOOKUP}};
	unsigned cell;
	struct stat st;
	uint64_t id;

	if (fstat(copy, &st) || !gate_is_event(&st))
		return 0;
	id = c->n->board ? board_find(c->n->board, (uint32_t)st.st_ino, &cell) : 0;
	if (id)
		return id;
	x.request.args[0] = (uint32_t)st.st_ino;
	return notifier_ask(c, &x) < 0 ? 0 : x.reply.values[0];
}

int notifier_event(struct call *c, int fd, uint64_t *id)
{
	int copy = fd < 0 ? -1 : pidfd_getfd(c->party->pidfd, fd, 0);

	*id = copy < 0 ? 0 : id_of(c, copy);
	if (*id)
		return copy;
	if (copy >= 0)
		close(copy);
	return -1;
}

static uint64_t event_id(struct call *c, int fd)
{
	uint64_t id;
	int copy = notifier_event(c, fd, &id);

	if (copy >= 0)
		close(copy);
	return id;
}

/* Those of events that are there no more make room. */
static void forget_closed(struct call *c)
{
	struct party *p = c->party;
	size_t kept = 0;

	for (size_t i = 0; i < p->nwatched; i++) {
		struct watched *w = &p->watched[i];
		const struct board_cell *cell = &c->n->board->cells[w->cell % BOARD_CELLS];

		if (__atomic_load_n(&cell->id, __ATOMIC_RELAXED) == w->id)
			p->watched[kept++] = *w;
		else
			p->nsets -= w->set >= 0;
	}
	p->nwatched = kept;
}

struct watched *notifier_watched(struct call *c, uint64_t id)
{
	struct exchange x = {.request = {.op = GATE_LOOKUP, .event = id}};
	struct party *p = c->party;
	struct watched *w;

	for (size_t i = 0; i < p->nwatched; i++)
		if (p->watched[i].id == id)
			return &p->watched[i];
	if (notifier_ask(c, &x) < 0)
		return NULL;
	if (c->n->board && p->nwatched % 64 == 63)
		forget_closed(c);
	w = realloc(p->watched, (p->nwatched + 1) * sizeof(*w));
	if (!w)
		return NULL;
	p->watched = w;
	w += p->nwatched++;
	*w = (struct watched){.id = id, .cell = (unsigned)x.reply.values[1], .set = -1};
	return w;
}

/* ---- perf_event_open ---- */

/* What of the attr can be read and may matter; its size field is the machine's to judge. */
static size_t read_attr(struct call *c, uint64_t from)
{
	uint8_t *copy = c->n->payload;
	uint32_t size;
	ssize_t n = notifier_peek(c, from, copy, sizeof(struct perf_event_attr));

	if (n < 8)
		n = notifier_peek(c, from, copy, 8);
	if (n < 8)
		return 0;
	memcpy(&size, copy + 4, 4);
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0 || size > GATE_ATTR)
		return 8;
	if (size > (size_t)n)
		n = notifier_peek(c, from, copy, size);
	return n < 8 ? 8 : (size_t)n < size ? (size_t)n : size;
}

/* With --host-events: tracepoints, breakpoints, and what the host's kernel has numbered. */
static bool is_the_hosts(const struct call *c, size_t length)
{
	uint32_t type;

	memcpy(&type, c->n->payload, sizeof(type));
	return c->n->config->host_events && length >= 8 &&
	       (type == PERF_TYPE_TRACEPOINT || type == PERF_TYPE_BREAKPOINT ||
		(type > PERF_TYPE_BREAKPOINT && type < GATE_TYPES));
}

static int64_t open_event(struct call *c)
{
	const uint64_t *a = c->args;
	int group = (int)a[3];
	struct exchange x = {
		.request = {.op = GATE_OPEN,
			    .args = {(uint64_t)(int64_t)(pid_t)a[1], (uint64_t)(int64_t)(int)a[2],
				     0, a[4]}},
		.payload = c->n->payload,
		.length = read_attr(c, a[0]),
	};
	uint64_t leader;
	int64_t rc;

	if (is_the_hosts(c, x.length))
		return PASS;
	if (group != -1) {
		leader = event_id(c, group);
		x.request.args[2] = leader ? leader : GATE_FOREIGN;
	}
	rc = notifier_ask(c, &x);
	if (rc == -E2BIG)
		notifier_poke(c, a[0] + 4, &x.reply.size_back, 4);
	if (rc < 0)
		return rc;
	if (x.fd[0] < 0)
		return -EMFILE;
	rc = notifier_give(c, x.fd[0], NOTIFIER_FIRST_FD, a[4] & PERF_FLAG_FD_CLOEXEC, true);
	close(x.fd[0]);
	return rc;
}

/* ---- what is done to an event's descriptor ---- */

static int64_t read_counts(struct call *c, uint64_t id, uint64_t n)
{
	struct exchange x = {.request = {.op = GATE_READ_EVENT,
					 .event = id,
					 .args = {n < GATE_READ ? n : GATE_READ}}};

	return notifier_ask(c, &x);
}

static int64_t read_event(struct call *c)
{
	uint64_t id = event_id(c, (int)c->args[0]);
	int64_t got = id ? read_counts(c, id, c->args[2]) : PASS;

	if (got > 0 && !notifier_poke(c, c->args[1], c->n->answer, (size_t)got))
		return -EFAULT;
	return got;
}

static int64_t readv_event(struct call *c)
{
	uint64_t id = event_id(c, (int)c->args[0]), room = 0;
	size_t n = (size_t)c->args[2], at = 0;
	struct iovec v[64];
	int64_t got;

	if (!id)
		return PASS;
	if (n > sizeof(v) / sizeof(v[0]))
		return -EINVAL;
	if (notifier_peek(c, c->args[1], v, n * sizeof(*v)) != (ssize_t)(n * sizeof(*v)))
		return -EFAULT;
	for (size_t i = 0; i < n; i++)
		room += v[i].iov_len < GATE_READ ? v[i].iov_len : GATE_READ;
	got = read_counts(c, id, room);
	for (size_t i = 0; i < n && got > 0 && at < (size_t)got; i++) {
		size_t part = v[i].iov_len < (size_t)got - at ? v[i].iov_len : (size_t)got - at;

		if (!notifier_poke(c, (uintptr_t)v[i].iov_base, c->n->answer + at, part))
			return -EFAULT;
		at += part;
	}
	return got;
}

/* An event cannot be written: EINVAL, not a pipe's EBADF. */
static int64_t write_event(struct call *c)
{
	return event_id(c, (int)c->args[0]) ? -EINVAL : PASS;
}

static int64_t ioctl_event(struct call *c)
{
	uint64_t id = event_id(c, (int)c->args[0]), value;
	uint32_t cmd = (uint32_t)c->args[1];
	struct exchange x = {.request = {.op = GATE_IOCTL, .event = id, .args = {cmd, c->args[2]}}};
	int64_t rc;

	if (!id)
		return PASS;
	if (cmd == PERF_EVENT_IOC_PERIOD) {
		if (notifier_peek(c, c->args[2], &value, 8) != 8)
			return -EFAULT;
		x.request.args[1] = value;
	} else if (cmd == PERF_EVENT_IOC_SET_OUTPUT) {
		value = (int)c->args[2] == -1 ? 0 : event_id(c, (int)c->args[2]);
		x.request.args[1] = (int)c->args[2] != -1 && !value ? GATE_FOREIGN : value;
	}
	rc = notifier_ask(c, &x);
	if (!rc && cmd == PERF_EVENT_IOC_ID && !notifier_poke(c, c->args[2], &x.reply.values[0], 8))
		return -EFAULT;
	return rc;
}

/* The copy has a number that is looked at, as the original. */
static int64_t copy_event(struct call *c, int at, bool cloexec)
{
	uint64_t id;
	int copy = notifier_event(c, (int)c->args[0], &id), rc;

	if (copy < 0)
		return PASS;
	rc = notifier_give(c, copy, at < NOTIFIER_FIRST_FD ? NOTIFIER_FIRST_FD : at, cloexec, true);
	close(copy);
	return rc;
}

static int64_t fcntl_event(struct call *c)
{
	struct exchange x = {.request = {.op = GATE_ASYNC, .args = {!!(c->args[2] & O_ASYNC)}}};

	switch ((int)c->args[1]) {
	case F_DUPFD: return copy_event(c, (int)c->args[2], false);
	case F_DUPFD_CLOEXEC: return copy_event(c, (int)c->args[2], true);
	case F_SETFL:
		x.request.event = event_id(c, (int)c->args[0]);
		if (x.request.event)
			notifier_ask(c, &x);
	}
	return PASS;
}

/* ---- mappings ---- */

/* As the kernel's: not inherited, not dumped; only the control page can be written. */
static void protect(struct remote *r, uint64_t at, uint64_t length, uint64_t prot)
{
	remote_call(r, SYS_madvise, (const uint64_t[6]){at, length, MADV_DONTFORK});
	remote_call(r, SYS_madvise, (const uint64_t[6]){at, length, MADV_DONTDUMP});
	if (prot & PROT_WRITE && length > PAGE)
		remote_call(r, SYS_mprotect,
			    (const uint64_t[6]){at + PAGE, length - PAGE,
						prot & ~(uint64_t)PROT_WRITE});
}

/* @fd is the buffer's file in the calling process. */
static void map_there(struct call *c, int fd, uint64_t id)
{
	const uint64_t *a = c->args;
	struct exchange undo = {.request = {.op = GATE_MUNMAP, .event = id}};
	struct remote r;
	long at;

	notifier_answer(c, -EINTR); /* replaced by what becomes of it */
	if (remote_begin(&r, c->tid)) {
		if (r.ended)
			notifier_ended(c->n, c->tid, r.status);
		notifier_ask(c, &undo);
		return;
	}
	at = remote_call(&r, SYS_mmap,
			 (const uint64_t[6]){a[0], a[1], a[2], a[3] & ~(uint64_t)MAP_POPULATE,
					     (uint64_t)fd, 0});
	if (at < 0 && at >= -4095)
		notifier_ask(c, &undo);
	else
		protect(&r, (uint64_t)at, a[1], a[2]);
	remote_call(&r, SYS_close, (const uint64_t[6]){(uint64_t)fd});
	remote_end(&r, at);
	if (r.ended)
		notifier_ended(c->n, c->tid, r.status);
}

static int64_t map_event(struct call *c)
{
	const uint64_t *a = c->args;
	uint64_t id = event_id(c, (int)a[4]);
	struct exchange x = {
		.request = {.op = GATE_MMAP, .event = id, .args = {a[1], a[2] & PROT_WRITE, a[5]}}};
	struct exchange undo = {.request = {.op = GATE_MUNMAP, .event = id}};
	int64_t rc;
	int fd;

	if (!id)
		return PASS;
	if (!(a[3] & MAP_SHARED))
		return -EINVAL;
	rc = notifier_ask(c, &x);
	if (rc < 0)
		return rc;
	rc = x.fd[0] < 0 ? -EMFILE : remote_seize(c->tid);
	fd = rc ? (int)rc : notifier_give(c, x.fd[0], -1, true, false);
	if (x.fd[0] >= 0)
		close(x.fd[0]);
	if (!rc && fd < 0) { /* seized already: it must be let go */
		struct remote r;

		notifier_answer(c, fd);
		if (!remote_begin(&r, c->tid))
			remote_release(&r);
	}
	if (fd < 0) {
		notifier_ask(c, &undo);
		return fd;
	}
	map_there(c, fd, id);
	return 0;
}

/* ---- the rest ---- */

static int64_t prctl_events(struct call *c)
{
	struct exchange x = {
		.request = {.op = GATE_PRCTL, .args = {c->args[0] == PR_TASK_PERF_EVENTS_ENABLE}}};
	struct exchange comm = {.request = {.op = GATE_COMM}, .payload = c->n->payload};

	if ((int)c->args[0] != PR_SET_NAME)
		return notifier_ask(c, &x);
	/* Whoever watches events watches names too; nobody else needs to tell. */
	if (c->party->connection >= 0 && notifier_peek(c, c->args[1], c->n->payload, 15) == 15) {
		comm.length = strnlen((char *)c->n->payload, 15);
		notifier_ask(c, &comm);
	}
	return PASS;
}

static int64_t get_affinity(struct call *c)
{
	uint64_t size = c->args[1], cpus = c->n->config->cpus, bytes = (cpus + 63) / 64 * 8;
	uint8_t *mask = c->n->answer;

	if (size * 8 < cpus || size & 7)
		return -EINVAL;
	memset(mask, 0, bytes);
	for (uint64_t i = 0; i < cpus; i++)
		mask[i / 8] |= (uint8_t)(1u << (i % 8));
	return notifier_poke(c, c->args[2], mask, bytes) ? (int64_t)bytes : -EFAULT;
}

/* A task that shall run on one CPU alone does so on the machine, whatever the host has. */
static int64_t set_affinity(struct call *c)
{
	struct exchange x = {.request = {.op = GATE_PLACE,
					 .args = {(pid_t)c->args[0] ? c->args[0] : (uint64_t)c->tid,
						  UINT64_MAX}}};
	uint64_t size = c->args[1] < GATE_PAYLOAD ? c->args[1] : GATE_PAYLOAD, set = 0;
	long host = sysconf(_SC_NPROCESSORS_CONF);
	uint8_t *mask = c->n->payload;
	bool exists = false;
	ssize_t got = notifier_peek(c, c->args[2], mask, size);

	for (uint64_t i = 0; got > 0 && i < 8 * (uint64_t)got; i++)
		if (mask[i / 8] >> (i % 8) & 1) {
			set++;
			exists = exists || i < (uint64_t)host;
			x.request.args[1] = i;
		}
	if (!set)
		return PASS;
	if (set != 1)
		x.request.args[1] = UINT64_MAX;
	if (set == 1 || c->party->connection >= 0)
		notifier_ask(c, &x);
	return exists ? PASS : 0;
}

/* Another UTS namespace than ours has names that we do not know. */
static bool same_names(const struct call *c)
{
	char path[64], ours[64] = "", theirs[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/uts", (int)c->tid);
	return readlink("/proc/self/ns/uts", ours, sizeof(ours) - 1) > 0 &&
	       readlink(path, theirs, sizeof(theirs) - 1) > 0 && !strcmp(ours, theirs);
}

static int64_t name_machine(struct call *c)
{
	struct utsname u;

	if (!c->n->config->uname || !same_names(c) || uname(&u))
		return PASS;
	memset(u.machine, 0, sizeof(u.machine));
	snprintf(u.machine, sizeof(u.machine), "%s", c->n->config->uname);
	return notifier_poke(c, c->args[0], &u, sizeof(u)) ? 0 : -EFAULT;
}

/*
 * A client's `sleep` is about to sleep: the host's kernel does it, the machine hears for how long.
 * That it woke is not heard: its last sleep is over when it sleeps again, or ends.
 */
static int64_t sleep_a_while(struct call *c)
{
	bool clock = c->nr == SYS_clock_nanosleep;
	struct exchange slept = {.request = {.op = GATE_SLEPT}},
			sleeps = {.request = {.op = GATE_SLEEP}};
	struct timespec t;

	if (!c->party->sleeper ||
	    notifier_peek(c, c->args[clock ? 2 : 0], &t, sizeof(t)) != sizeof(t) ||
	    !gate_sleep_ns(&t, &sleeps.request.args[0]))
		return PASS;
	notifier_ask(c, &slept);
	notifier_ask(c, &sleeps);
	return PASS;
}

int64_t notifier_call(struct call *c)
{
	static const struct {
		int nr;
		int64_t (*answer)(struct call *);
	} table[] = {
		{SYS_perf_event_open, open_event},
		{SYS_read, read_event},
		{SYS_readv, readv_event},
		{SYS_write, write_event},
		{SYS_ioctl, ioctl_event},
		{SYS_mmap, map_event},
		{SYS_prctl, prctl_events},
		{SYS_sched_getaffinity, get_affinity},
		{SYS_uname, name_machine},
		{SYS_sched_setaffinity, set_affinity},
		{SYS_fcntl, fcntl_event},
		{SYS_execve, notifier_exec},
		{SYS_execveat, notifier_exec},
		{SYS_ppoll, notifier_poll},
		{SYS_epoll_ctl, notifier_epoll_ctl},
		{SYS_nanosleep, sleep_a_while},
		{SYS_clock_nanosleep, sleep_a_while},
		{SYS_epoll_pwait, notifier_epoll_wait},
		{SYS_epoll_pwait2, notifier_epoll_wait},
		{SYS_pselect6, notifier_select},
#if defined(__x86_64__)
		{SYS_poll, notifier_poll},
		{SYS_select, notifier_select},
		{SYS_epoll_wait, notifier_epoll_wait},
#endif
	};

	if (c->nr == SYS_dup)
		return copy_event(c, NOTIFIER_FIRST_FD, false);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].nr == c->nr)
			return table[i].answer(c);
	return PASS;
}
