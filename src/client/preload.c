/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library: stands between a perf_event client's libc calls and the machine
 * (protocol.h). perf ABI sheet B9 (what is interposed and why), C3 (what the descriptor is), C6
 * (programs of another architecture).
 *
 * Nothing happens until the first call that concerns an event: no thread, no memory, no descriptor.
 * What is not an event's goes to the C library as it came. Depends on libc alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "client/preload.h"

#define MAPS	     8192
#define FAMILY(cmd)  (((cmd) >> 8) & 0xff)
#define EVENT_FAMILY '$'

REAL(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
REAL(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n))
REAL(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
REAL(int, close, (int fd), (fd))
REAL(int, dup, (int a), (a))
REAL(int, dup2, (int a, int b), (a, b))
REAL(int, dup3, (int a, int b, int f), (a, b, f))
REAL(ssize_t, recvmsg, (int fd, struct msghdr *m, int f), (fd, m, f))
REAL(int, munmap, (void *a, size_t n), (a, n))

/* ---- which descriptors are events ---- */

enum nature { UNKNOWN = 0, OTHER, EVENT };

struct known {
	unsigned char nature;
	unsigned cell;
	uint64_t id;
	uint64_t signals; /* that have come */
};

static struct known known[FDS];

long preload_machine(void)
{
	static long pid;
	const char *text;

	if (!pid) {
		text = getenv(GATE_ENV);
		pid = text ? atol(text) : -1;
	}
	return pid;
}

static struct known *remembered(int fd)
{
	return fd >= 0 && fd < FDS ? &known[fd] : NULL;
}

static void forget(int fd)
{
	struct known *k = remembered(fd);

	if (k)
		k->nature = UNKNOWN;
}

/* The event whose descriptor @fd is, and its cell; 0: of this machine none. */
static uint64_t look_up(int fd, unsigned *cell)
{
	struct exchange x = {.request = {.op = GATE_LOOKUP}};
	struct stat st;
	uint64_t id;

	if (fstat(fd, &st) || !gate_is_event(&st))
		return 0;
	id = preload_board ? board_find(preload_board, (uint32_t)st.st_ino, cell) : 0;
	if (id)
		return id;
	x.request.args[0] = (uint32_t)st.st_ino;
	if (!preload_exchange(&x) || x.reply.result < 0)
		return 0;
	*cell = (unsigned)x.reply.values[1];
	return x.reply.values[0];
}

/* Is @fd an event? Its id and, if wanted, cell. Descriptors come by open, dup, fork, exec and
 * messages alike. */
uint64_t preload_event(int fd, unsigned *cell)
{
	struct known *k = remembered(fd), here = {0};
	int err = errno;

	if (preload_machine() <= 0 || fd < 0)
		return 0;
	if (!k)
		k = &here;
	if (k->nature == UNKNOWN) {
		errno = 0;
		k->id = look_up(fd, &k->cell);
		if (errno != EBADF) /* what comes under a number that is free now may be one */
			k->nature = k->id ? EVENT : OTHER;
		errno = err;
	}
	if (k->nature != EVENT)
		return 0;
	if (cell)
		*cell = k->cell;
	return k->id;
}

const struct board_cell *preload_cell(uint64_t id, unsigned cell)
{
	const struct board_cell *c;

	if (!preload_board || cell >= BOARD_CELLS)
		return NULL;
	c = &preload_board->cells[cell];
	return __atomic_load_n(&c->id, __ATOMIC_ACQUIRE) == id ? c : NULL;
}

/* Signals are counted on both sides: those that came together as one are a kernel's first of them.
 */
bool preload_ran_out(int fd)
{
	struct known *k = remembered(fd);
	const struct board_cell *c;
	unsigned cell;
	uint64_t id = k ? preload_event(fd, &cell) : 0;

	c = id ? preload_cell(id, cell) : NULL;
	return c && ++k->signals == __atomic_load_n(&c->ran_out, __ATOMIC_ACQUIRE);
}

/* The next signal is the one after those that were sent by now. */
static void expect_signals(int fd, uint64_t id)
{
	struct known *k = remembered(fd);
	const struct board_cell *c = k ? preload_cell(id, k->cell) : NULL;

	if (c)
		k->signals = __atomic_load_n(&c->signals, __ATOMIC_RELAXED);
}

/* ---- perf_event_open ---- */

/* What of the attr can be read and may matter; its size field is the machine's to judge. */
static ssize_t read_attr(const void *attr, uint8_t copy[GATE_ATTR])
{
	uint32_t size;
	ssize_t n;

	n = preload_peek(attr, copy, sizeof(struct perf_event_attr));
	if (n < 8)
		n = preload_peek(attr, copy, 8);
	if (n < 8)
		return 0;
	memcpy(&size, copy + 4, 4);
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0 || size > GATE_ATTR)
		return 8;
	if (size > (size_t)n)
		n = preload_peek(attr, copy, size);
	return n < 8 ? 8 : n < size ? n : size;
}

/*
 * Most attrs are all there and no larger than ours: the kernel reads them as it sends. What of
 * another can be read is looked for.
 */
static bool ask_open(struct exchange *x, const void *attr, uint8_t copy[GATE_ATTR])
{
	x->payload = attr;
	x->length = sizeof(struct perf_event_attr);
	if (preload_exchange(x)) {
		if (x->reply.result != -EFAULT)
			return true;
	} else if (!x->fault) {
		return false;
	}
	x->payload = copy;
	x->length = (size_t)read_attr(attr, copy);
	return preload_exchange(x);
}

/* A kernel takes a descriptor before it looks for what may be missing then. */
static bool found_late(int err)
{
	return err == EBADF || err == ESRCH || err == ENOENT || err == EOPNOTSUPP ||
	       err == EOVERFLOW || err == ENODEV || err == EBUSY;
}

static long open_event(void *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	uint8_t copy[GATE_ATTR];
	struct exchange x = {
		.request = {.op = GATE_OPEN,
			    .args = {(uint64_t)(int64_t)pid, (uint64_t)(int64_t)cpu, 0, flags}},
		.cloexec = flags & PERF_FLAG_FD_CLOEXEC,
	};
	struct known *k;
	uint64_t leader;

	if (group != -1) {
		leader = preload_event(group, NULL);
		x.request.args[2] = leader ? leader : GATE_FOREIGN;
	}
	if (!ask_open(&x, attr, copy))
		return -1;
	if (x.reply.result == -E2BIG)
		preload_poke((uint8_t *)attr + 4, &x.reply.size_back, 4);
	if (x.reply.result < 0 && !(found_late((int)-x.reply.result) && preload_full()))
		return preload_result(&x);
	if (x.fd < 0) { /* the reply came, the descriptor found no room */
		errno = EMFILE;
		return -1;
	}
	k = remembered(x.fd);
	if (k)
		*k = (struct known){.nature = EVENT,
				    .id = x.reply.values[0],
				    .cell = (unsigned)x.reply.values[1]};
	return x.fd;
}

/* With --host-events: tracepoints, breakpoints, and what the host's kernel has numbered. */
static bool is_the_hosts(const void *attr)
{
	static int served = -1;
	uint32_t type;

	if (served < 0)
		served = getenv(GATE_HOST) != NULL;
	if (!served || preload_peek(attr, &type, sizeof(type)) != sizeof(type))
		return false;
	return type == PERF_TYPE_TRACEPOINT || type == PERF_TYPE_BREAKPOINT ||
	       (type > PERF_TYPE_BREAKPOINT && type < GATE_TYPES);
}

static long model_getcpu(unsigned *cpu, unsigned *node)
{
	struct exchange x = {.request = {.op = GATE_HELLO, .args = {GATE_VERSION}},
			     .cloexec = true};
	long rc = syscall(SYS_getcpu, cpu, node, NULL);

	if (preload_machine() > 0 && !preload_cpus && !preload_refused && preload_exchange(&x) &&
	    x.fd >= 0)
		real_close(x.fd);
	if (!rc && cpu && preload_cpus)
		*cpu %= preload_cpus;
	return rc;
}

EXPORT long syscall(long nr, ...)
{
	static long (*real)(long, ...);
	va_list ap;
	long a[6];

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	if (nr == SYS_perf_event_open && preload_machine() > 0 && !is_the_hosts((void *)a[0]))
		return open_event((void *)a[0], (pid_t)a[1], (int)a[2], (int)a[3],
				  (unsigned long)a[4]);
	return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- read ---- */

/* A cell as it was at one moment. */
static bool copy_cell(const struct board_cell *c, struct board_cell *copy)
{
	uint64_t epoch = __atomic_load_n(&preload_board->epoch, __ATOMIC_ACQUIRE);
	uint32_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);

	if (seq & 1 || c->epoch != epoch)
		return false;
	*copy = *c;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&c->seq, __ATOMIC_RELAXED) == seq &&
	       __atomic_load_n(&preload_board->epoch, __ATOMIC_RELAXED) == epoch &&
	       __atomic_load_n(&preload_board->handled, __ATOMIC_RELAXED) ==
		       __atomic_load_n(&preload_posts->posted, __ATOMIC_RELAXED);
}

/* How far its clock has come; false: ask. */
static bool elapsed(const struct board_cell *c, uint64_t *ns)
{
	uint64_t now = 0;

	*ns = 0;
	if (c->clock == BOARD_STANDS)
		return true;
	if (c->clock == BOARD_THREAD) {
		now = preload_thread_ns(c->tid);
		preload_counted = preload_counted || now;
	} else {
		now = preload_host_ns(CLOCK_MONOTONIC);
	}
	*ns = now > c->since ? now - c->since : 0;
	return now && *ns < c->until;
}

static uint64_t cycles_of(uint64_t ns, uint64_t hz)
{
	return hz == 1000000000u ? ns : (uint64_t)((unsigned __int128)ns * hz / 1000000000u);
}

/*
 * To the caller's buffer, which may not be there: the kernel looks, but for a page that it has
 * found there before, for its look takes longer than all the rest of a read.
 */
static bool hand_over(void *buf, const void *from, size_t n)
{
	static __thread uintptr_t good; /* number of the page */
	uintptr_t first = (uintptr_t)buf / PAGE, last = ((uintptr_t)buf + n - 1) / PAGE;

	if (first == last && first && first == good) {
		memcpy(buf, from, n);
		return true;
	}
	if (!preload_poke(buf, from, n))
		return false;
	good = first == last ? first : 0;
	return true;
}

/* What the board says, if it still stands. -1: ask. */
static ssize_t read_board(const struct board_cell *cell, void *buf, size_t n)
{
	struct board_cell c;
	uint64_t ns;

	if (!copy_cell(cell, &c) || !c.length || c.length > sizeof(c.words) || n < c.length ||
	    !elapsed(&c, &ns))
		return -1;
	for (unsigned i = 0; i < BOARD_WORDS; i++) {
		if (c.slope[i] == BOARD_NS)
			c.words[i] += ns;
		else if (c.slope[i] == BOARD_CYCLES)
			c.words[i] += cycles_of(ns, c.hz);
	}
	if (!hand_over(buf, c.words, c.length))
		return -EFAULT;
	return (ssize_t)c.length;
}

static ssize_t read_event(uint64_t id, unsigned cell, void *buf, size_t n)
{
	const struct board_cell *c = preload_cell(id, cell);
	struct exchange x = {.request = {.op = GATE_READ_EVENT, .event = id, .args = {n}}};
	uint8_t small[256], *big = NULL;
	ssize_t got = c ? read_board(c, buf, n) : -1;

	if (got == -EFAULT) {
		errno = EFAULT;
		return -1;
	}
	if (got >= 0)
		return got;
	x.room = n < GATE_READ ? n : GATE_READ;
	if (x.room > sizeof(small))
		big = malloc(GATE_READ);
	x.answer = big ? big : small;
	if (!big && x.room > sizeof(small))
		x.room = sizeof(small);
	got = preload_exchange(&x) ? preload_result(&x) : -1;
	if (got > 0 && !preload_poke(buf, x.answer, (size_t)got)) {
		errno = EFAULT;
		got = -1;
	}
	free(big);
	return got;
}

EXPORT ssize_t read(int fd, void *buf, size_t n)
{
	unsigned cell;
	uint64_t id = preload_event(fd, &cell);

	return id ? read_event(id, cell, buf, n) : real_read(fd, buf, n);
}

/* An event cannot be written: EINVAL, not a pipe's EBADF. */
EXPORT ssize_t write(int fd, const void *buf, size_t n)
{
	if (!preload_event(fd, NULL))
		return real_write(fd, buf, n);
	errno = EINVAL;
	return -1;
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
EXPORT ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
	if (n > room)
		abort();
	return read(fd, buf, n);
}

EXPORT ssize_t readv(int fd, const struct iovec *v, int n)
{
	unsigned cell;
	uint64_t id = preload_event(fd, &cell);
	uint8_t all[GATE_READ];
	size_t room = 0, at = 0;
	ssize_t got;

	if (!id)
		return real_readv(fd, v, n);
	for (int i = 0; i < n; i++)
		room += v[i].iov_len;
	got = read_event(id, cell, all, room < sizeof(all) ? room : sizeof(all));
	for (int i = 0; i < n && got > 0 && at < (size_t)got; i++) {
		size_t part = v[i].iov_len < (size_t)got - at ? v[i].iov_len : (size_t)got - at;

		memcpy(v[i].iov_base, all + at, part);
		at += part;
	}
	return got;
}

/* ---- ioctl ---- */

static enum board_still stillness(void)
{
	return preload_board && preload_posts
		       ? __atomic_load_n(&preload_board->still, __ATOMIC_ACQUIRE)
		       : BOARD_MOVES;
}

/* It counts the calling thread, and nobody else. */
static bool is_own(uint64_t id, unsigned cell)
{
	const struct board_cell *c = preload_cell(id, cell);

	return c && __atomic_load_n(&c->flags, __ATOMIC_ACQUIRE) >> BOARD_TASK == preload_tid();
}

/* Its PMU is, and the machine's answer is an error. */
static bool is_gone(uint64_t id, unsigned cell)
{
	const struct board_cell *c = preload_cell(id, cell);

	return c && __atomic_load_n(&c->flags, __ATOMIC_ACQUIRE) & BOARD_ERR;
}

/* Waits until the machine has done what was posted. */
static void fence(uint64_t id)
{
	struct exchange x = {.request = {.op = GATE_LOOKUP, .event = id}};

	preload_exchange(&x);
}

/*
 * ENABLE and DISABLE of a machine that stands still are not waited for: they take no effect but on
 * what is asked later, and that waits for them (protocol.h, "Posted"). False: ask.
 */
static bool post_ioctl(uint64_t id, unsigned cell, unsigned long cmd, unsigned long arg)
{
	struct exchange x = {.request = {.op = GATE_IOCTL | GATE_POSTED,
					 .event = id,
					 .args = {cmd, arg, preload_host_ns(CLOCK_MONOTONIC)}}};
	enum board_still still = stillness();
	bool ok;

	if (still == BOARD_MOVES || (still == BOARD_THREADS_MOVE && !is_own(id, cell)) ||
	    is_gone(id, cell))
		return false;
	x.request.tid = preload_tid();
	if (still == BOARD_THREADS_MOVE)
		x.request.ran = preload_thread_ns(x.request.tid);
	ok = preload_post(&x);
	if (ok && stillness() != still) /* something has begun to move meanwhile */
		fence(id);
	return ok;
}

static int ask_ioctl(uint64_t id, unsigned cell, unsigned long cmd, unsigned long arg)
{
	struct exchange x = {.request = {.op = GATE_IOCTL, .event = id, .args = {cmd, arg}}};
	uint64_t value;

	switch (cmd) {
	case PERF_EVENT_IOC_ENABLE:
	case PERF_EVENT_IOC_DISABLE:
		if (post_ioctl(id, cell, cmd, arg))
			return 0;
		break;
	case PERF_EVENT_IOC_PERIOD:
		if (preload_peek((const void *)arg, &value, 8) != 8) {
			errno = EFAULT;
			return -1;
		}
		x.request.args[1] = value;
		break;
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES: { /* its type alone matters */
		uint32_t type;

		if (preload_peek((const void *)arg, &type, 4) != 4) {
			errno = EFAULT;
			return -1;
		}
		x.request.args[1] = type;
		break;
	}
	case PERF_EVENT_IOC_SET_OUTPUT:
		value = (int)arg == -1 ? 0 : preload_event((int)arg, NULL);
		x.request.args[1] = (int)arg != -1 && !value ? GATE_FOREIGN : value;
		break;
	}
	if (!preload_exchange(&x))
		return -1;
	if (cmd == PERF_EVENT_IOC_ID && !x.reply.result &&
	    !preload_poke((void *)arg, &x.reply.values[0], 8)) {
		errno = EFAULT;
		return -1;
	}
	return (int)preload_result(&x);
}

EXPORT int ioctl(int fd, unsigned long cmd, ...)
{
	static int (*real)(int, unsigned long, ...);
	unsigned cell;
	uint64_t id;
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (FAMILY(cmd) == EVENT_FAMILY) {
		id = preload_event(fd, &cell);
		if (id && cmd == PERF_EVENT_IOC_REFRESH)
			expect_signals(fd, id);
		if (id)
			return ask_ioctl(id, cell, cmd, (unsigned long)arg);
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
	return real(fd, cmd, arg);
}

/* ---- mappings ---- */

struct mapping {
	uintptr_t at; /* 0: free */
	size_t length;
	uint64_t id;
};

static struct mapping mappings[MAPS];
static unsigned nmappings; /* highest used + 1 */

static struct mapping *free_mapping(void)
{
	for (unsigned i = 0; i < MAPS; i++)
		if (!mappings[i].at) {
			if (i >= nmappings)
				nmappings = i + 1;
			return &mappings[i];
		}
	return NULL;
}

static void *real_mmap64(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	static void *(*fn)(void *, size_t, int, int, int, off_t);

	if (!fn)
		*(void **)&fn = dlsym(RTLD_NEXT, "mmap64");
	return fn(at, length, prot, flags, fd, offset);
}

static void ask_unmap(uint64_t id)
{
	struct exchange x = {.request = {.op = GATE_MUNMAP, .event = id}};

	preload_exchange(&x);
}

static void *map_event(uint64_t id, void *at, size_t length, int prot, int flags, off_t offset)
{
	struct exchange x = {
		.request = {.op = GATE_MMAP,
			    .event = id,
			    .args = {length, prot & PROT_WRITE, (uint64_t)offset}},
		.cloexec = true,
	};
	struct mapping *m = free_mapping();
	void *mem;

	if (!(flags & MAP_SHARED)) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (!m) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (!preload_exchange(&x) || preload_result(&x) < 0)
		return MAP_FAILED;
	mem = real_mmap64(at, length, prot, flags & ~MAP_POPULATE, x.fd, 0);
	real_close(x.fd);
	if (mem == MAP_FAILED) {
		ask_unmap(id);
		return MAP_FAILED;
	}
	/* As the kernel's: not inherited, not dumped; only the control page can be written. */
	madvise(mem, length, MADV_DONTFORK);
	madvise(mem, length, MADV_DONTDUMP);
	if (prot & PROT_WRITE && length > PAGE)
		mprotect((char *)mem + PAGE, length - PAGE, prot & ~PROT_WRITE);
	*m = (struct mapping){.at = (uintptr_t)mem, .length = length, .id = id};
	return mem;
}

EXPORT void *mmap64(void *at, size_t length, int prot, int flags, int fd, off64_t offset)
{
	uint64_t id = flags & MAP_ANONYMOUS ? 0 : preload_event(fd, NULL);

	return id ? map_event(id, at, length, prot, flags, offset)
		  : real_mmap64(at, length, prot, flags, fd, offset);
}

EXPORT void *mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	return mmap64(at, length, prot, flags, fd, offset);
}

EXPORT int munmap(void *at, size_t length)
{
	uintptr_t from = (uintptr_t)at, to = from + length;

	for (unsigned i = 0; i < nmappings; i++) {
		struct mapping *m = &mappings[i];
		uint64_t id = m->id;
		int rc;

		if (!m->at || to <= m->at || from >= m->at + m->length)
			continue;
		if (from > m->at || to < m->at + m->length) {
			errno = EINVAL; /* a buffer cannot be split */
			return -1;
		}
		rc = real_munmap(at, length);
		m->at = 0;
		ask_unmap(id);
		return rc;
	}
	return real_munmap(at, length);
}

/* ---- descriptors come and go ---- */

EXPORT int close(int fd)
{
	if (fd >= 0 && fd == preload_connection) {
		errno = EBADF; /* ours: whoever closes everything keeps us working */
		return -1;
	}
	forget(fd);
	return real_close(fd);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	for (unsigned fd = first; fd <= last && fd < FDS; fd++)
		forget((int)fd);
	if (preload_connection >= 0 && first <= (unsigned)preload_connection &&
	    (unsigned)preload_connection <= last && !(flags & CLOSE_RANGE_CLOEXEC)) {
		if (first < (unsigned)preload_connection)
			syscall(SYS_close_range, (long)first, (long)preload_connection - 1,
				(long)flags);
		if ((unsigned)preload_connection == last)
			return 0;
		first = (unsigned)preload_connection + 1;
	}
	return (int)syscall(SYS_close_range, (long)first, (long)last, (long)flags);
}

static int copied(int from, int to)
{
	struct known *a = remembered(from), *b = remembered(to);

	if (to >= 0 && b && from != to) {
		if (a)
			*b = *a;
		else
			b->nature = UNKNOWN;
	}
	return to;
}

EXPORT int dup(int from)
{
	return copied(from, real_dup(from));
}

EXPORT int dup2(int from, int to)
{
	return copied(from, real_dup2(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
	return copied(from, real_dup3(from, to, flags));
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	struct cmsghdr *h;
	ssize_t n = real_recvmsg(fd, m, flags);

	if (n < 0 || !m->msg_control)
		return n;
	for (h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		size_t count = h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS
				       ? (h->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				       : 0;

		for (size_t i = 0; i < count; i++) {
			int got;

			memcpy(&got, CMSG_DATA(h) + i * sizeof(int), sizeof(int));
			forget(got);
		}
	}
	return n;
}

/* ---- fcntl: O_ASYNC ---- */

static int do_fcntl(int fd, int cmd, void *arg)
{
	static int (*real)(int, int, ...);
	uint64_t id = cmd == F_SETFL ? preload_event(fd, NULL) : 0;
	int rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fcntl64");
	rc = real(fd, cmd, arg);
	if (!rc && id) {
		struct exchange x = {.request = {.op = GATE_ASYNC,
						 .event = id,
						 .args = {!!((long)arg & O_ASYNC)}}};

		preload_exchange(&x);
	}
	if (rc >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
		copied(fd, rc);
	return rc;
}

EXPORT int fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return do_fcntl(fd, cmd, arg);
}

EXPORT int fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	return do_fcntl(fd, cmd, arg);
}

/* ---- prctl ---- */

EXPORT int prctl(int option, ...)
{
	static int (*real)(int, ...);
	struct exchange x = {
		.request = {.op = GATE_PRCTL, .args = {option == PR_TASK_PERF_EVENTS_ENABLE}}};
	unsigned long a[4];
	va_list ap;
	int rc;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (preload_machine() > 0 &&
	    (option == PR_TASK_PERF_EVENTS_ENABLE || option == PR_TASK_PERF_EVENTS_DISABLE))
		return preload_exchange(&x) ? (int)preload_result(&x) : -1;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "prctl");
	rc = real(option, a[0], a[1], a[2], a[3]);
	/* Whoever watches events watches names too; nobody else needs to tell. */
	if (option == PR_SET_NAME && !rc && (preload_connection >= 0 || preload_followed())) {
		struct exchange comm = {.request = {.op = GATE_COMM},
					.payload = (const char *)a[0],
					.length = strnlen((const char *)a[0], 15)};

		preload_exchange(&comm);
	}
	return rc;
}

/* ---- CPUs ---- */

EXPORT int sched_getcpu(void)
{
	unsigned cpu;

	if (preload_machine() > 0)
		return model_getcpu(&cpu, NULL) ? -1 : (int)cpu;
	return syscall(SYS_getcpu, &cpu, NULL, NULL) ? -1 : (int)cpu;
}

/* Programs that size themselves by what they may run on see the machine; where the host puts them
 * is its own matter. */
static unsigned modelled_cpus(void)
{
	const char *text = preload_machine() > 0 ? getenv(GATE_CPUS) : NULL;

	return text ? (unsigned)atoi(text) : 0;
}

EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	unsigned n = modelled_cpus();
	long rc;

	if (!n) {
		rc = syscall(SYS_sched_getaffinity, (long)pid, (long)size, (long)set);
		if (rc >= 0 && (size_t)rc < size)
			memset((char *)set + rc, 0, size - (size_t)rc);
		return rc < 0 ? -1 : 0;
	}
	if (size * 8 < n) {
		errno = EINVAL;
		return -1;
	}
	memset(set, 0, size);
	for (unsigned c = 0; c < n; c++)
		CPU_SET_S(c, size, set);
	return 0;
}

static void wish(pid_t pid, size_t size, const cpu_set_t *set)
{
	static bool wished; /* somebody, once: else there is nothing to take back */
	struct exchange x = {
		.request = {.op = GATE_PLACE,
			    .args = {(uint64_t)(pid ? pid : (pid_t)syscall(SYS_gettid)),
				     UINT64_MAX}}};

	bool one = CPU_COUNT_S(size, set) == 1;

	if (!one && !wished)
		return;
	for (size_t cpu = 0; one && cpu < 8 * size; cpu++)
		if (CPU_ISSET_S(cpu, size, set)) {
			x.request.args[1] = cpu;
			break;
		}
	wished = true;
	preload_exchange(&x);
}

EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	long rc = syscall(SYS_sched_setaffinity, (long)pid, (long)size, (long)set);
	int err = errno;

	/* A task that shall run on one CPU alone does so on the machine, whatever the host has. */
	if (modelled_cpus())
		wish(pid, size, set);
	errno = err;
	return rc && err == EINVAL && modelled_cpus() ? 0 : (int)rc;
}
