/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's way to the machine: a connection, requests and replies, the pages that
 * both sides map. perf ABI sheet D4 ("Client protocol").
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "client/preload.h"

REAL(int, close, (int fd), (fd))
REAL(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
REAL(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n))
REAL(ssize_t, recvmsg, (int fd, struct msghdr *m, int f), (fd, m, f))

const struct board *preload_board;
struct posts *preload_posts;
unsigned preload_cpus;
int preload_connection = -1;
bool preload_refused;
bool preload_counted;
static __thread uint32_t my_tid;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- asking the machine ---- */

uint64_t preload_host_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of a thread of this process; 0: of no such thread. */
uint64_t preload_thread_ns(uint32_t tid)
{
	return preload_host_ns(tid == my_tid ? CLOCK_THREAD_CPUTIME_ID : BOARD_THREAD_CLOCK(tid));
}

uint32_t preload_tid(void)
{
	if (!my_tid)
		my_tid = (uint32_t)syscall(SYS_gettid);
	return my_tid;
}

int preload_dial(void)
{
	struct sockaddr_un a;
	char name[GATE_NAME_MAX];
	socklen_t len;
	int fd, high;

	if (preload_machine() <= 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, LOW_LIMIT);
	if (high >= 0) {
		real_close(fd);
		fd = high;
	}
	gate_name(name, preload_machine());
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
bool preload_exchange_on(int fd, struct exchange *x)
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
	x->fault = false;
	if (!send_on(fd, x)) {
		x->fault = errno == EFAULT;
		return false;
	}
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
	pid_t parent = my_tid ? (pid_t)my_tid : getppid();

	if (preload_connection >= 0)
		real_close(preload_connection);
	preload_connection = -1;
	my_tid = 0;
	pthread_mutex_init(&lock, NULL);
	preload_born(parent);
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

	preload_connection = preload_dial();
	if (preload_connection < 0 || !preload_exchange_on(preload_connection, &x) ||
	    x.reply.result || x.fd < 0)
		return false;
	preload_cpus = (unsigned)x.reply.values[0];
	if (preload_board && preload_posts) {
		real_close(x.fd);
		real_close(x.fd2);
	} else {
		preload_board = map_page(x.fd, sizeof(struct board), PROT_READ);
		preload_posts = map_page(x.fd2, sizeof(struct posts), PROT_READ | PROT_WRITE);
	}
	if (!registered)
		pthread_atfork(NULL, NULL, after_fork_in_child);
	registered = true;
	return preload_board && preload_posts;
}

static void leave(void)
{
	if (preload_connection >= 0)
		real_close(preload_connection);
	preload_connection = -1;
	preload_refused = true;
}

/*
 * A request of this process. Signals wait meanwhile: a handler that asks too would get the other's
 * reply. False with errno: there is no machine.
 */
bool preload_exchange(struct exchange *x)
{
	sigset_t all, old;
	int err = errno;
	bool ok;

	x->request.tid = preload_tid();
	if (preload_counted)
		x->request.ran = preload_thread_ns(my_tid);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&lock);
	ok = !preload_refused && (preload_connection >= 0 || greet()) &&
	     preload_exchange_on(preload_connection, x);
	if (!ok && !x->fault)
		leave();
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = ok ? err : x->fault ? EFAULT : ENOSYS;
	return ok;
}

bool preload_post(struct exchange *x)
{
	sigset_t all, old;
	bool ok;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_mutex_lock(&lock);
	ok = !preload_refused && preload_connection >= 0;
	if (ok) {
		__atomic_fetch_add(&preload_posts->posted, 1, __ATOMIC_SEQ_CST);
		ok = send_on(preload_connection, x);
		if (!ok)
			leave();
	}
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ok;
}

bool preload_followed(void)
{
	return preload_board && __atomic_load_n(&preload_board->followed, __ATOMIC_ACQUIRE);
}

void preload_born(pid_t parent)
{
	struct exchange x = {.request = {.op = GATE_BORN, .args = {(uint64_t)parent}}};

	if (preload_followed() && !getenv(GATE_ENGINE)) /* the engine sees its forks itself */
		preload_exchange(&x);
}

void preload_sync(void)
{
	struct exchange x = {.request = {.op = GATE_SYNC}};

	if (preload_connection >= 0)
		preload_exchange(&x);
}

bool preload_full(void)
{
	int err = errno, fd = fcntl(preload_connection, F_DUPFD_CLOEXEC, 0);

	if (fd >= 0)
		real_close(fd);
	errno = err;
	return fd < 0;
}

long preload_result(const struct exchange *x)
{
	if (x->reply.result >= 0)
		return (long)x->reply.result;
	errno = (int)-x->reply.result;
	return -1;
}

/* ---- memory of the caller that may not be there ---- */

/*
 * The kernel looks for us. Where it may not look into a process's memory from outside (QEMU's user
 * mode does not know these calls), it does when it moves bytes through a pipe.
 */
static ssize_t through_pipe(const void *from, void *to, size_t n)
{
	ssize_t got = -1, put;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	put = real_write(ends[1], from, n);
	if (put > 0)
		got = real_read(ends[0], to, (size_t)put);
	real_close(ends[0]);
	real_close(ends[1]);
	return got;
}

ssize_t preload_peek(const void *from, void *to, size_t n)
{
	struct iovec local = {.iov_base = to, .iov_len = n},
		     remote = {.iov_base = (void *)from, .iov_len = n};
	int err = errno;
	ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	if (got < 0 && errno != EFAULT)
		got = through_pipe(from, to, n);
	errno = err;
	return got;
}

bool preload_poke(void *to, const void *from, size_t n)
{
	struct iovec local = {.iov_base = (void *)from, .iov_len = n},
		     remote = {.iov_base = to, .iov_len = n};
	int err = errno;
	ssize_t put = process_vm_writev(getpid(), &local, 1, &remote, 1, 0);

	if (put < 0 && errno != EFAULT)
		put = through_pipe(from, to, n);
	errno = err;
	return put == (ssize_t)n;
}
