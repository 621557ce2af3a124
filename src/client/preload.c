/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library: stands between a perf_event client's libc calls and the machine
 * (protocol.h). perf ABI sheet B9 (what is interposed and why), C3 (what the descriptor is), C6
 * (programs of another architecture).
 *
 * Nothing happens until the first call that concerns an event: no thread, no memory, no descriptor.
 * What is not an event's goes to the C library as it came. Depends on libc alone. It redirects no
 * paths: without a namespace clients find the machine's tree by SYSFS_PATH only.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/protocol.h"

#define EXPORT	     __attribute__((visibility("default")))
#define PAGE	     4096u
#define LOW_LIMIT    600  /* our own descriptors live above: programs and tests use low numbers */
#define FDS	     4096 /* descriptors whose nature is remembered */
#define MAPS	     8192
#define FAMILY(cmd)  (((cmd) >> 8) & 0xff)
#define EVENT_FAMILY '$'

/* ---- the C library's own ---- */

#define REAL(ret, name, params, args)                                                              \
	static ret real_##name params                                                              \
	{                                                                                          \
		static ret(*fn) params;                                                            \
		if (!fn)                                                                           \
			*(void **)&fn = dlsym(RTLD_NEXT, #name);                                   \
		return fn args;                                                                    \
	}

REAL(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
REAL(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n))
REAL(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
REAL(int, close, (int fd), (fd))
REAL(int, dup2, (int a, int b), (a, b))
REAL(int, dup3, (int a, int b, int f), (a, b, f))
REAL(int, poll, (struct pollfd * p, nfds_t n, int t), (p, n, t))
REAL(int, ppoll, (struct pollfd * p, nfds_t n, const struct timespec *t, const sigset_t *s),
     (p, n, t, s))
REAL(ssize_t, recvmsg, (int fd, struct msghdr *m, int f), (fd, m, f))
REAL(int, munmap, (void *a, size_t n), (a, n))
REAL(int, execve, (const char *p, char *const a[], char *const e[]), (p, a, e))
REAL(int, posix_spawn,
     (pid_t * p, const char *f, const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *sa,
      char *const a[], char *const e[]),
     (p, f, fa, sa, a, e))

/* ---- which descriptors are events ---- */

enum nature { UNKNOWN = 0, OTHER, EVENT };

struct known {
	unsigned char nature;
	unsigned cell;
	uint64_t id;
};

static struct known known[FDS];
static const struct board *board;
static struct posts *posts;
static unsigned machine_cpus;
static int connection = -1;
static bool refused; /* there is no machine: everything is the host's */
static bool counted; /* a thread of ours counts its CPU time: requests tell it */
static __thread uint32_t my_tid;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long machine_pid(void)
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

/* The id of an event from the name of its peer; 0: no event of this machine. */
static uint64_t ask_peer(int fd)
{
	struct sockaddr_un a;
	char prefix[GATE_NAME_MAX];
	socklen_t len = sizeof(a);
	uint64_t id = 0;
	size_t n, i;

	if (machine_pid() <= 0 || getpeername(fd, (struct sockaddr *)&a, &len) ||
	    a.sun_family != AF_UNIX || len <= offsetof(struct sockaddr_un, sun_path) + 1 ||
	    a.sun_path[0])
		return 0;
	snprintf(prefix, sizeof(prefix), "quipu/%ld/ev/", machine_pid());
	n = strlen(prefix);
	len -= (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
	if (len <= n || memcmp(a.sun_path + 1, prefix, n))
		return 0;
	for (i = n; i < len; i++) {
		if (a.sun_path[1 + i] < '0' || a.sun_path[1 + i] > '9')
			return 0;
		id = id * 10 + (uint64_t)(a.sun_path[1 + i] - '0');
	}
	return id;
}

/* ---- asking the machine ---- */

static uint64_t host_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of a thread of this process; 0: of no such thread. */
static uint64_t thread_ns(uint32_t tid)
{
	return host_ns(BOARD_THREAD_CLOCK(tid));
}

struct exchange {
	struct gate_request request;
	const void *payload;
	size_t length;
	struct gate_reply reply;
	void *answer; /* room for the reply's payload */
	size_t room;
	int fd;	      /* passed with the reply, -1 */
	int fd2;      /* the posts page behind the board */
	bool cloexec; /* of those descriptors */
};

static int dial(void)
{
	struct sockaddr_un a;
	char name[GATE_NAME_MAX];
	socklen_t len;
	int fd, high;

	if (machine_pid() <= 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, LOW_LIMIT);
	if (high >= 0) {
		real_close(fd);
		fd = high;
	}
	gate_name(name, machine_pid());
	len = gate_address(&a, name);
	if (!connect(fd, (struct sockaddr *)&a, len))
		return fd;
	real_close(fd);
	return -1;
}

static bool send_on(int fd, const struct exchange *x)
{
	struct iovec out[2] = {
		{.iov_base = (void *)&x->request, .iov_len = sizeof(x->request)},
		{.iov_base = (void *)x->payload, .iov_len = x->length},
	};
	struct msghdr send = {.msg_iov = out, .msg_iovlen = x->length ? 2 : 1};
	ssize_t n;

	do
		n = sendmsg(fd, &send, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

/* One request and its reply on @fd. False: the machine is gone. */
static bool exchange_on(int fd, struct exchange *x)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec in[2] = {
		{.iov_base = &x->reply, .iov_len = sizeof(x->reply)},
		{.iov_base = x->answer, .iov_len = x->room},
	};
	struct msghdr recv = {.msg_iov = in,
			      .msg_iovlen = 2,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *h;
	ssize_t n;

	x->fd = x->fd2 = -1;
	if (!send_on(fd, x))
		return false;
	do
		n = real_recvmsg(fd, &recv, x->cloexec ? MSG_CMSG_CLOEXEC : 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(x->reply))
		return false;
	h = CMSG_FIRSTHDR(&recv);
	if (h && h->cmsg_type == SCM_RIGHTS)
		memcpy(&x->fd, CMSG_DATA(h), sizeof(int));
	if (h && h->cmsg_type == SCM_RIGHTS && h->cmsg_len >= CMSG_LEN(2 * sizeof(int)))
		memcpy(&x->fd2, CMSG_DATA(h) + sizeof(int), sizeof(int));
	return true;
}

static void after_fork_in_child(void)
{
	if (connection >= 0)
		real_close(connection);
	connection = -1;
	my_tid = 0;
	pthread_mutex_init(&lock, NULL);
}

static void *map_page(int fd, size_t size, int prot)
{
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	if (fd >= 0)
		real_close(fd);
	return page == MAP_FAILED ? NULL : page;
}

/* Greets the machine, once in each process; its pages stay mapped over a fork. */
static bool greet(void)
{
	struct exchange x = {.request = {.op = GATE_HELLO, .args = {GATE_VERSION}},
			     .cloexec = true};
	static bool registered;

	connection = dial();
	if (connection < 0 || !exchange_on(connection, &x) || x.reply.result || x.fd < 0)
		return false;
	machine_cpus = (unsigned)x.reply.values[0];
	if (board && posts) {
		real_close(x.fd);
		real_close(x.fd2);
	} else {
		board = map_page(x.fd, sizeof(struct board), PROT_READ);
		posts = map_page(x.fd2, sizeof(struct posts), PROT_READ | PROT_WRITE);
	}
	if (!registered)
		pthread_atfork(NULL, NULL, after_fork_in_child);
	registered = true;
	return board && posts;
}

static void leave(void)
{
	if (connection >= 0)
		real_close(connection);
	connection = -1;
	refused = true;
}

/*
 * A request of this process. Signals wait meanwhile: a handler that asks too would get the other's
 * reply. False with errno: there is no machine.
 */
static bool exchange(struct exchange *x)
{
	sigset_t all, old;
	int err = errno;
	bool ok;

	if (!my_tid)
		my_tid = (uint32_t)syscall(SYS_gettid);
	x->request.tid = my_tid;
	if (counted)
		x->request.ran = thread_ns(my_tid);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&lock);
	ok = !refused && (connection >= 0 || greet()) && exchange_on(connection, x);
	if (!ok)
		leave();
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = ok ? err : ENOSYS;
	return ok;
}

static long result_of(const struct exchange *x)
{
	if (x->reply.result >= 0)
		return (long)x->reply.result;
	errno = (int)-x->reply.result;
	return -1;
}

static bool look_up(uint64_t id, unsigned *cell)
{
	struct exchange x = {.request = {.op = GATE_LOOKUP, .event = id}};

	if (!exchange(&x) || x.reply.result < 0)
		return false;
	*cell = (unsigned)x.reply.values[1];
	return true;
}

/* Is @fd an event? Its id and, if wanted, cell. Descriptors come by open, dup, fork, exec and
 * messages alike. */
static uint64_t event_of(int fd, unsigned *cell)
{
	struct known *k = remembered(fd), here = {0};
	int err = errno;

	if (machine_pid() <= 0 || fd < 0)
		return 0;
	if (!k)
		k = &here;
	if (k->nature == UNKNOWN) {
		k->id = ask_peer(fd);
		k->nature = k->id && look_up(k->id, &k->cell) ? EVENT : OTHER;
		errno = err;
	}
	if (k->nature != EVENT)
		return 0;
	if (cell)
		*cell = k->cell;
	return k->id;
}

static const struct board_cell *cell_of(uint64_t id, unsigned cell)
{
	const struct board_cell *c;

	if (!board || cell >= BOARD_CELLS)
		return NULL;
	c = &board->cells[cell];
	return __atomic_load_n(&c->id, __ATOMIC_ACQUIRE) == id ? c : NULL;
}

/* ---- memory of the caller that may not be there ---- */

static ssize_t peek(const void *from, void *to, size_t n)
{
	struct iovec local = {.iov_base = to, .iov_len = n},
		     remote = {.iov_base = (void *)from, .iov_len = n};
	int err = errno;
	ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	if (got < 0 && errno != EFAULT) { /* not allowed here: trust the caller */
		memcpy(to, from, n);
		got = (ssize_t)n;
	}
	errno = err;
	return got;
}

static bool poke(void *to, const void *from, size_t n)
{
	struct iovec local = {.iov_base = (void *)from, .iov_len = n},
		     remote = {.iov_base = to, .iov_len = n};
	int err = errno;
	ssize_t put = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);

	if (put < 0 && errno != EFAULT) {
		memcpy(to, from, n);
		put = (ssize_t)n;
	}
	errno = err;
	return put == (ssize_t)n;
}

/* ---- perf_event_open ---- */

/* What of the attr can be read and may matter; its size field is the machine's to judge. */
static ssize_t read_attr(const void *attr, uint8_t copy[GATE_ATTR])
{
	uint32_t size;
	ssize_t n;

	n = peek(attr, copy, sizeof(struct perf_event_attr));
	if (n < 8)
		n = peek(attr, copy, 8);
	if (n < 8)
		return 0;
	memcpy(&size, copy + 4, 4);
	if (!size)
		size = PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0 || size > GATE_ATTR)
		return 8;
	if (size > (size_t)n)
		n = peek(attr, copy, size);
	return n < 8 ? 8 : n < size ? n : size;
}

static long open_event(void *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	uint8_t copy[GATE_ATTR];
	struct exchange x = {
		.request = {.op = GATE_OPEN,
			    .args = {(uint64_t)(int64_t)pid, (uint64_t)(int64_t)cpu, 0, flags}},
		.payload = copy,
		.cloexec = flags & PERF_FLAG_FD_CLOEXEC,
	};
	struct known *k;
	uint64_t leader;

	x.length = (size_t)read_attr(attr, copy);
	if (group != -1) {
		leader = event_of(group, NULL);
		x.request.args[2] = leader ? leader : GATE_FOREIGN;
	}
	if (!exchange(&x))
		return -1;
	if (x.reply.result == -E2BIG)
		poke((uint8_t *)attr + 4, &x.reply.size_back, 4);
	if (x.reply.result < 0)
		return result_of(&x);
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

static long model_getcpu(unsigned *cpu, unsigned *node)
{
	struct exchange x = {.request = {.op = GATE_HELLO, .args = {GATE_VERSION}},
			     .cloexec = true};
	long rc = syscall(SYS_getcpu, cpu, node, NULL);

	if (machine_pid() > 0 && !machine_cpus && !refused && exchange(&x) && x.fd >= 0)
		real_close(x.fd);
	if (!rc && cpu && machine_cpus)
		*cpu %= machine_cpus;
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
	if (nr == SYS_perf_event_open && machine_pid() > 0)
		return open_event((void *)a[0], (pid_t)a[1], (int)a[2], (int)a[3],
				  (unsigned long)a[4]);
	return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- read ---- */

/* A cell as it was at one moment. */
static bool copy_cell(const struct board_cell *c, struct board_cell *copy)
{
	uint64_t epoch = __atomic_load_n(&board->epoch, __ATOMIC_ACQUIRE);
	uint32_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);

	if (seq & 1 || c->epoch != epoch)
		return false;
	*copy = *c;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&c->seq, __ATOMIC_RELAXED) == seq &&
	       __atomic_load_n(&board->epoch, __ATOMIC_RELAXED) == epoch &&
	       __atomic_load_n(&board->handled, __ATOMIC_RELAXED) ==
		       __atomic_load_n(&posts->posted, __ATOMIC_RELAXED);
}

/* How far its clock has come; false: ask. */
static bool elapsed(const struct board_cell *c, uint64_t *ns)
{
	uint64_t now = 0;

	*ns = 0;
	if (c->clock == BOARD_STANDS)
		return true;
	if (c->clock == BOARD_THREAD) {
		now = thread_ns(c->tid);
		counted = counted || now;
	} else {
		now = host_ns(CLOCK_MONOTONIC);
	}
	*ns = now > c->since ? now - c->since : 0;
	return now && *ns < c->until;
}

static uint64_t cycles_of(uint64_t ns, uint64_t hz)
{
	return hz == 1000000000u ? ns : (uint64_t)((unsigned __int128)ns * hz / 1000000000u);
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
	memcpy(buf, c.words, c.length);
	return (ssize_t)c.length;
}

static ssize_t read_event(uint64_t id, unsigned cell, void *buf, size_t n)
{
	const struct board_cell *c = cell_of(id, cell);
	struct exchange x = {.request = {.op = GATE_READ_EVENT, .event = id, .args = {n}}};
	uint8_t small[256], *big = NULL;
	ssize_t got = c ? read_board(c, buf, n) : -1;

	if (got >= 0)
		return got;
	x.room = n < GATE_READ ? n : GATE_READ;
	if (x.room > sizeof(small))
		big = malloc(GATE_READ);
	x.answer = big ? big : small;
	if (!big && x.room > sizeof(small))
		x.room = sizeof(small);
	got = exchange(&x) ? result_of(&x) : -1;
	if (got > 0 && !poke(buf, x.answer, (size_t)got)) {
		errno = EFAULT;
		got = -1;
	}
	free(big);
	return got;
}

EXPORT ssize_t read(int fd, void *buf, size_t n)
{
	unsigned cell;
	uint64_t id = event_of(fd, &cell);

	return id ? read_event(id, cell, buf, n) : real_read(fd, buf, n);
}

/* An event cannot be written; its socket could. */
EXPORT ssize_t write(int fd, const void *buf, size_t n)
{
	if (!event_of(fd, NULL))
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
	uint64_t id = event_of(fd, &cell);
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

static bool is_still(void)
{
	return board && posts && __atomic_load_n(&board->still, __ATOMIC_ACQUIRE);
}

/* Waits until the machine has done what was posted. */
static void fence(uint64_t id)
{
	struct exchange x = {.request = {.op = GATE_LOOKUP, .event = id}};

	exchange(&x);
}

/*
 * ENABLE and DISABLE of a machine that stands still are not waited for: they take no effect but on
 * what is asked later, and that waits for them (protocol.h, "Posted"). False: ask.
 */
static bool post_ioctl(uint64_t id, unsigned long cmd, unsigned long arg)
{
	struct exchange x = {.request = {.op = GATE_IOCTL | GATE_POSTED,
					 .event = id,
					 .args = {cmd, arg, host_ns(CLOCK_MONOTONIC)}}};
	sigset_t all, old;
	bool ok;

	if (!is_still())
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&lock);
	ok = !refused && connection >= 0;
	if (ok) {
		__atomic_fetch_add(&posts->posted, 1, __ATOMIC_SEQ_CST);
		ok = send_on(connection, &x);
		if (!ok)
			leave();
	}
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ok && !is_still()) /* something has begun to move meanwhile */
		fence(id);
	return ok;
}

static int ask_ioctl(uint64_t id, unsigned long cmd, unsigned long arg)
{
	struct exchange x = {.request = {.op = GATE_IOCTL, .event = id, .args = {cmd, arg}}};
	uint64_t value;

	switch (cmd) {
	case PERF_EVENT_IOC_ENABLE:
	case PERF_EVENT_IOC_DISABLE:
		if (post_ioctl(id, cmd, arg))
			return 0;
		break;
	case PERF_EVENT_IOC_PERIOD:
		if (peek((const void *)arg, &value, 8) != 8) {
			errno = EFAULT;
			return -1;
		}
		x.request.args[1] = value;
		break;
	case PERF_EVENT_IOC_SET_OUTPUT:
		value = (int)arg == -1 ? 0 : event_of((int)arg, NULL);
		x.request.args[1] = (int)arg != -1 && !value ? GATE_FOREIGN : value;
		break;
	}
	if (!exchange(&x))
		return -1;
	if (cmd == PERF_EVENT_IOC_ID && !x.reply.result &&
	    !poke((void *)arg, &x.reply.values[0], 8)) {
		errno = EFAULT;
		return -1;
	}
	return (int)result_of(&x);
}

EXPORT int ioctl(int fd, unsigned long cmd, ...)
{
	static int (*real)(int, unsigned long, ...);
	uint64_t id;
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (FAMILY(cmd) == EVENT_FAMILY) {
		id = event_of(fd, NULL);
		if (id)
			return ask_ioctl(id, cmd, (unsigned long)arg);
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

	exchange(&x);
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
	if (!exchange(&x) || result_of(&x) < 0)
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
	uint64_t id = flags & MAP_ANONYMOUS ? 0 : event_of(fd, NULL);

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
	if (fd >= 0 && fd == connection) {
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
	if (connection >= 0 && first <= (unsigned)connection && (unsigned)connection <= last &&
	    !(flags & CLOSE_RANGE_CLOEXEC)) {
		if (first < (unsigned)connection)
			syscall(SYS_close_range, (long)first, (long)connection - 1, (long)flags);
		if ((unsigned)connection == last)
			return 0;
		first = (unsigned)connection + 1;
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

/* ---- poll ---- */

static void drain_tokens(int fd)
{
	char bytes[64];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* What needs no waiting: an event without a buffer, or whose task is gone, hangs up. */
static short at_once(int fd)
{
	unsigned cell;
	uint64_t id = event_of(fd, &cell);
	const struct board_cell *c = id ? cell_of(id, cell) : NULL;
	uint32_t flags;

	if (!c)
		return 0;
	flags = __atomic_load_n(&c->flags, __ATOMIC_ACQUIRE);
	return flags & BOARD_HUP || !(flags & BOARD_RING) ? POLLHUP : 0;
}

/* The end of a wait: tokens are taken, and an end that came meanwhile is told instead of them. */
static int settle(struct pollfd *p, nfds_t n)
{
	int ready = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (p[i].revents && event_of(p[i].fd, NULL)) {
			drain_tokens(p[i].fd);
			p[i].revents = at_once(p[i].fd)
					       ? POLLHUP
					       : (short)(p[i].revents & (POLLIN | POLLRDNORM) &
							 p[i].events);
		}
		ready += p[i].revents != 0;
	}
	return ready;
}

static bool any_event(const struct pollfd *p, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (p[i].fd >= 0 && event_of(p[i].fd, NULL))
			return true;
	return false;
}

static bool any_at_once(const struct pollfd *p, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		if (p[i].fd >= 0 && at_once(p[i].fd))
			return true;
	return false;
}

/* Those that hang up already are told beside what else is ready now. */
static int poll_now(struct pollfd *p, nfds_t n)
{
	int rc = real_poll(p, n, 0);

	if (rc < 0)
		return rc;
	for (nfds_t i = 0; i < n; i++)
		if (p[i].fd >= 0 && at_once(p[i].fd))
			p[i].revents = POLLHUP;
	return settle(p, n);
}

EXPORT int ppoll(struct pollfd *p, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	int rc;

	if (machine_pid() <= 0 || !any_event(p, n))
		return real_ppoll(p, n, timeout, mask);
	do {
		if (any_at_once(p, n))
			return poll_now(p, n);
		rc = real_ppoll(p, n, timeout, mask);
		if (rc > 0)
			rc = settle(p, n) ? settle(p, n) : -2;
	} while (rc == -2 && !timeout); /* a token that was for nothing the caller waits for */
	return rc == -2 ? 0 : rc;
}

EXPORT int poll(struct pollfd *p, nfds_t n, int timeout)
{
	struct timespec t = {timeout / 1000, (timeout % 1000) * 1000000L};

	if (machine_pid() <= 0 || !any_event(p, n))
		return real_poll(p, n, timeout);
	return ppoll(p, n, timeout < 0 ? NULL : &t, NULL);
}

/* ---- fcntl: O_ASYNC ---- */

static int do_fcntl(int fd, int cmd, void *arg)
{
	static int (*real)(int, int, ...);
	uint64_t id = cmd == F_SETFL ? event_of(fd, NULL) : 0;
	int rc;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fcntl64");
	rc = real(fd, cmd, arg);
	if (!rc && id) {
		struct exchange x = {.request = {.op = GATE_ASYNC,
						 .event = id,
						 .args = {!!((long)arg & O_ASYNC)}}};

		exchange(&x);
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
	if (machine_pid() > 0 &&
	    (option == PR_TASK_PERF_EVENTS_ENABLE || option == PR_TASK_PERF_EVENTS_DISABLE))
		return exchange(&x) ? (int)result_of(&x) : -1;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "prctl");
	rc = real(option, a[0], a[1], a[2], a[3]);
	/* Whoever watches events watches names too; nobody else needs to tell. */
	if (option == PR_SET_NAME && !rc && connection >= 0) {
		struct exchange comm = {.request = {.op = GATE_COMM},
					.payload = (const char *)a[0],
					.length = strnlen((const char *)a[0], 15)};

		exchange(&comm);
	}
	return rc;
}

/* ---- CPUs ---- */

EXPORT int sched_getcpu(void)
{
	unsigned cpu;

	if (machine_pid() > 0)
		return model_getcpu(&cpu, NULL) ? -1 : (int)cpu;
	return syscall(SYS_getcpu, &cpu, NULL, NULL) ? -1 : (int)cpu;
}

/* Programs that size themselves by what they may run on see the machine; where the host puts them
 * is its own matter. */
static unsigned modelled_cpus(void)
{
	const char *text = machine_pid() > 0 ? getenv(GATE_CPUS) : NULL;

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

EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	long rc = syscall(SYS_sched_setaffinity, (long)pid, (long)size, (long)set);

	/* A CPU that only the machine has. */
	return rc && errno == EINVAL && modelled_cpus() ? 0 : (int)rc;
}

/* ---- exec ---- */

/*
 * A program of the machine's own instruction set runs under the engine, with the environment that
 * it would have without us; the exec of any other is announced, so that enable_on_exec happens.
 * Called between vfork and exec as well: nothing of the parent's memory changes, and each exec has
 * a connection of its own, whose end tells that it happened.
 */
extern char **environ;

struct plan {
	int fd;	    /* stays open until the exec closes it, -1 */
	long words; /* of the command, 0: run it as it is */
	char *text;
	size_t length;
};

static bool plan_exec(struct plan *plan, const char *path, const char *argv0, char *text,
		      size_t room)
{
	char names[2 * PAGE];
	struct exchange x = {
		.request = {.op = GATE_EXEC}, .payload = names, .answer = text, .room = room};
	size_t n = strlen(path) + 1, n0 = strlen(argv0) + 1;

	plan->fd = -1;
	plan->words = 0;
	if (machine_pid() <= 0 || n + n0 > sizeof(names) ||
	    faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
		return false;
	memcpy(names, path, n);
	memcpy(names + n, argv0, n0);
	x.length = n + n0;
	plan->fd = dial();
	if (plan->fd < 0)
		return false;
	if (!exchange_on(plan->fd, &x) || x.reply.result < 0)
		return false;
	plan->words = x.reply.result ? (long)x.reply.values[0] : 0;
	plan->text = text;
	plan->length = x.reply.length;
	return true;
}

static void plan_failed(struct plan *plan)
{
	struct exchange x = {.request = {.op = GATE_EXEC_FAILED}};
	int err = errno;

	if (plan->fd >= 0) {
		exchange_on(plan->fd, &x);
		real_close(plan->fd);
	}
	errno = err;
}

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n]) /* Linux takes a missing list for an empty one */
		n++;
	return n;
}

static size_t count_strings(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->length; i++)
		n += !p->text[i];
	return n;
}

/* One change: "NAME=value" or "NAME". The place in the list stays, so that the stack of the program
 * is the same. */
static size_t change(char **env, size_t n, char *edit)
{
	size_t len = strcspn(edit, "="), to = 0;
	bool found = false, set = edit[len] == '=';

	for (size_t i = 0; i < n; i++) {
		bool same = !strncmp(env[i], edit, len) && env[i][len] == '=';

		if (same && (!set || found))
			continue;
		env[to++] = same ? edit : env[i];
		found = found || same;
	}
	if (set && !found)
		env[to++] = edit;
	return to;
}

/* argv and environment of the program under the engine, in arrays with room for them. */
static void fill(const struct plan *p, char *const argv[], char *const envp[], char **words,
		 char **env)
{
	size_t n = count(envp), rest = count(argv), i = 0;
	char *t = p->text, *end = p->text + p->length;

	for (; t < end && i < (size_t)p->words; t += strlen(t) + 1)
		words[i++] = t;
	for (size_t k = 1; k < rest; k++)
		words[i++] = argv[k];
	words[i] = NULL;
	if (n)
		memcpy(env, envp, n * sizeof(*env));
	for (; t < end; t += strlen(t) + 1)
		n = change(env, n, t);
	env[n] = NULL;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	char text[GATE_PAYLOAD];
	struct plan plan;
	int rc;

	if (!plan_exec(&plan, path, count(argv) ? argv[0] : path, text, sizeof(text)) ||
	    !plan.words) {
		rc = real_execve(path, argv, envp);
	} else {
		char *words[(size_t)plan.words + count(argv) + 1];
		char *env[count(envp) + count_strings(&plan) + 1];

		fill(&plan, argv, envp, words, env);
		rc = real_execve(words[0], words, env);
	}
	plan_failed(&plan);
	return rc;
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

static int run_script(const char *path, char *const argv[], char *const envp[])
{
	size_t n = count(argv);
	char *words[n + 3];

	words[0] = (char *)"/bin/sh";
	words[1] = (char *)path;
	for (size_t i = 1; i < n; i++)
		words[i + 1] = argv[i];
	words[n > 0 ? n + 1 : 2] = NULL;
	return execve("/bin/sh", words, envp);
}

/* The @i-th candidate for @file in PATH; false past the last. */
static bool candidate(const char *file, unsigned i, char path[PAGE])
{
	const char *dirs = getenv("PATH");
	size_t n;

	if (strchr(file, '/'))
		return !i && snprintf(path, PAGE, "%s", file) < (int)PAGE;
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (; i; i--) {
		dirs += strcspn(dirs, ":");
		if (!*dirs++)
			return false;
	}
	n = strcspn(dirs, ":");
	return snprintf(path, PAGE, "%.*s%s%s", (int)n, dirs, n ? "/" : "", file) < (int)PAGE;
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	bool denied = false;
	char path[PAGE];

	if (!*file) {
		errno = ENOENT;
		return -1;
	}
	for (unsigned i = 0; candidate(file, i, path); i++) {
		execve(path, argv, envp);
		if (errno == ENOEXEC)
			return run_script(path, argv, envp);
		denied = denied || errno == EACCES;
		if (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ESTALE &&
		    errno != ENODEV)
			return -1;
	}
	if (denied)
		errno = EACCES;
	return -1;
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The words of an execl call. */
#define COLLECT(words, first, ap)                                                                  \
	size_t collect_n = 1;                                                                      \
	va_list collect_ap;                                                                        \
	va_copy(collect_ap, ap);                                                                   \
	while (va_arg(collect_ap, char *))                                                         \
		collect_n++;                                                                       \
	va_end(collect_ap);                                                                        \
	char *words[collect_n + 1];                                                                \
	words[0] = (char *)(first);                                                                \
	for (size_t collect_i = 1; collect_i <= collect_n; collect_i++)                            \
	words[collect_i] = va_arg(ap, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
	va_list ap;

	va_start(ap, first);
	COLLECT(words, first, ap);
	va_end(ap);
	return execve(path, words, environ);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	va_list ap;

	va_start(ap, first);
	COLLECT(words, first, ap);
	va_end(ap);
	return execvpe(file, words, environ);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	char *const *envp;
	va_list ap;

	va_start(ap, first);
	COLLECT(words, first, ap);
	envp = va_arg(ap, char *const *);
	va_end(ap);
	return execve(path, words, envp);
}

static int spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	char text[GATE_PAYLOAD];
	struct plan plan;
	int rc;

	if (!plan_exec(&plan, path, count(argv) ? argv[0] : path, text, sizeof(text)) ||
	    !plan.words) {
		plan_failed(&plan); /* its exec is not ours */
		return real_posix_spawn(pid, path, actions, attr, argv, envp);
	}
	char *words[(size_t)plan.words + count(argv) + 1];
	char *env[count(envp) + count_strings(&plan) + 1];

	fill(&plan, argv, envp, words, env);
	rc = real_posix_spawn(pid, words[0], actions, attr, words, env);
	real_close(plan.fd);
	return rc;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return spawn(pid, path, actions, attr, argv, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	char path[PAGE];

	for (unsigned i = 0; candidate(file, i, path); i++)
		if (!faccessat(AT_FDCWD, path, X_OK, AT_EACCESS))
			return spawn(pid, path, actions, attr, argv, envp);
	return ENOENT;
}
