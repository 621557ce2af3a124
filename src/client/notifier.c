/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that speaks for clients without a preload library (notifier.h): it starts the client
 * below the filter, hears of its calls, and asks the machine as the preload library would, on a
 * connection for each process of the client's. What the calls mean is notifier_calls.c.
 *
 * One thread. Whatever it reads of a client may be gone or another's by then: the notification is
 * checked after each look (TOCTOU), and what does not hold is answered to nobody. It waits for
 * nothing that a client decides, but for memory that only root can make it wait for (userfaultfd).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/notifier_filter.h"
#include "client/notifier_impl.h"

#define OWN_PAGE 4096u

/* ---- the machine ---- */

static int dial_machine(const struct notifier *n)
{
	struct sockaddr_un a;
	char name[GATE_NAME_MAX];
	socklen_t len;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	gate_name(name, n->config->machine);
	len = gate_address(&a, name);
	if (!connect(fd, (struct sockaddr *)&a, len))
		return fd;
	close(fd);
	return -1;
}

static bool send_request(int fd, const struct exchange *x)
{
	struct iovec out[2] = {
		{.iov_base = (void *)&x->request, .iov_len = sizeof(x->request)},
		{.iov_base = (void *)x->payload, .iov_len = x->length},
	};
	struct msghdr msg = {.msg_iov = out, .msg_iovlen = x->length ? 2 : 1};

	return sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0;
}

static bool receive_reply(struct notifier *n, int fd, struct exchange *x)
{
	union {
		char bytes[CMSG_SPACE(sizeof(x->fd))];
		struct cmsghdr align;
	} control;
	struct iovec in[2] = {
		{.iov_base = &x->reply, .iov_len = sizeof(x->reply)},
		{.iov_base = n->answer, .iov_len = sizeof(n->answer)},
	};
	struct msghdr msg = {.msg_iov = in,
			     .msg_iovlen = 2,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *h;
	ssize_t got;

	do
		got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < (ssize_t)sizeof(x->reply))
		return false;
	h = CMSG_FIRSTHDR(&msg);
	if (h && h->cmsg_type == SCM_RIGHTS && h->cmsg_len <= CMSG_LEN(sizeof(x->fd)))
		memcpy(x->fd, CMSG_DATA(h), h->cmsg_len - CMSG_LEN(0));
	return true;
}

int64_t notifier_exchange(struct notifier *n, int connection, pid_t tid, struct exchange *x)
{
	x->fd[0] = x->fd[1] = -1;
	x->request.tid = (uint32_t)tid;
	if (connection < 0 || !send_request(connection, x) || !receive_reply(n, connection, x))
		return -ENOSYS;
	return x->reply.result;
}

static void take_board(struct notifier *n, struct exchange *x)
{
	void *board = n->board || x->fd[0] < 0 ? MAP_FAILED
					       : mmap(NULL, sizeof(struct board), PROT_READ,
						      MAP_SHARED, x->fd[0], 0);

	if (board != MAP_FAILED)
		n->board = board;
	for (int i = 0; i < 2; i++)
		if (x->fd[i] >= 0)
			close(x->fd[i]);
}

int notifier_dial(struct notifier *n, pid_t pid)
{
	struct exchange x = {.request = {.op = GATE_HELLO, .args = {GATE_VERSION, (uint64_t)pid}}};
	int fd = n->machine_gone ? -1 : dial_machine(n);

	if (fd < 0) {
		n->machine_gone = true;
		return -1;
	}
	if (!notifier_exchange(n, fd, pid, &x)) {
		take_board(n, &x);
		return fd;
	}
	close(fd);
	return -1;
}

bool notifier_greet(struct call *c)
{
	struct party *p = c->party;

	if (p->connection < 0)
		p->connection = notifier_dial(c->n, p->pid);
	return p->connection >= 0;
}

int64_t notifier_ask(struct call *c, struct exchange *x)
{
	x->fd[0] = x->fd[1] = -1;
	if (!notifier_greet(c))
		return -ENOSYS;
	return notifier_exchange(c->n, c->party->connection, c->tid, x);
}

/* Its mappings are gone: it has ended, or replaced its program. */
void notifier_hang_up(struct notifier *n, struct party *p)
{
	(void)n;
	if (p->connection >= 0)
		close(p->connection);
	p->connection = -1;
	p->nwatched = p->nsets = 0;
}

/* ---- memory of a client ---- */

bool notifier_valid(const struct call *c)
{
	return !ioctl(c->n->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->id);
}

ssize_t notifier_peek(const struct call *c, uint64_t from, void *to, size_t n)
{
	struct iovec local = {.iov_base = to, .iov_len = n},
		     remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = n};
	ssize_t got = n ? process_vm_readv(c->tid, &local, 1, &remote, 1, 0) : 0;

	if (got < 0)
		return -errno;
	return notifier_valid(c) ? got : -ESRCH;
}

bool notifier_poke(const struct call *c, uint64_t to, const void *from, size_t n)
{
	struct iovec local = {.iov_base = (void *)from, .iov_len = n},
		     remote = {.iov_base = (void *)(uintptr_t)to, .iov_len = n};

	if (!notifier_valid(c))
		return false;
	return !n || process_vm_writev(c->tid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

bool notifier_string(const struct call *c, uint64_t from, char *to, size_t room)
{
	size_t at = 0;

	while (at < room) { /* page by page: the next one may not be there */
		size_t part = OWN_PAGE - (from + at) % OWN_PAGE;
		ssize_t got;

		if (part > room - at)
			part = room - at;
		got = notifier_peek(c, from + at, to + at, part);
		if (got <= 0)
			return false;
		if (memchr(to + at, 0, (size_t)got))
			return true;
		at += (size_t)got;
	}
	return false;
}

/* ---- who calls ---- */

static pid_t process_of(pid_t tid)
{
	char path[64], line[128];
	int tgid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &tgid) == 1)
			break;
	if (f)
		fclose(f);
	return tgid;
}

static bool is_over(const struct party *p)
{
	struct pollfd over = {.fd = p->pidfd, .events = POLLIN};

	return poll(&over, 1, 0) > 0;
}

static void remove_party(struct notifier *n, struct party *p)
{
	struct party **at = &n->parties;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	notifier_hang_up(n, p);
	close(p->pidfd);
	free(p->watched);
	free(p);
}

static void remove_ended(struct notifier *n)
{
	struct party *next;

	for (struct party *p = n->parties; p; p = next) {
		next = p->next;
		if (is_over(p))
			remove_party(n, p);
	}
}

static struct party *party_of(struct notifier *n, pid_t pid)
{
	struct party *p = n->parties;
	struct epoll_event ev = {.events = EPOLLIN};

	while (p && p->pid != pid)
		p = p->next;
	if (p && !is_over(p))
		return p;
	if (p)
		remove_party(n, p);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct party){.pid = pid, .connection = -1, .next_fd = NOTIFIER_FIRST_FD};
	p->pidfd = pidfd_open(pid, 0);
	ev.data.ptr = p;
	if (p->pidfd < 0 || epoll_ctl(n->epoll, EPOLL_CTL_ADD, p->pidfd, &ev)) {
		if (p->pidfd >= 0)
			close(p->pidfd);
		free(p);
		return NULL;
	}
	p->next = n->parties;
	n->parties = p;
	return p;
}

/* ---- descriptors of a client ---- */

static bool is_free(const struct party *p, int fd)
{
	int copy = pidfd_getfd(p->pidfd, fd, 0);

	if (copy >= 0)
		close(copy);
	return copy < 0 && errno == EBADF;
}

/* The lowest free number from @at on, as far as that can be told without asking for each. */
static int free_number(struct party *p, int at)
{
	struct rlimit limit;
	int most;

	if (prlimit(p->pid, RLIMIT_NOFILE, NULL, &limit))
		return -ESRCH;
	most = limit.rlim_cur < NOTIFIER_FIRST_FD + NOTIFIER_MOST_FDS
		       ? (int)limit.rlim_cur
		       : NOTIFIER_FIRST_FD + NOTIFIER_MOST_FDS;
	if (at == NOTIFIER_FIRST_FD) {
		while (p->next_fd > at && is_free(p, p->next_fd - 1))
			p->next_fd--;
		at = p->next_fd;
	}
	for (int fd = at; fd < most; fd++)
		if (is_free(p, fd))
			return fd;
	for (int fd = NOTIFIER_FIRST_FD; fd < at && fd < most; fd++)
		if (is_free(p, fd))
			return fd;
	return -EMFILE;
}

int notifier_give(struct call *c, int fd, int at, bool cloexec, bool answer)
{
	struct seccomp_notif_addfd add = {
		.id = c->id,
		.flags = answer ? SECCOMP_ADDFD_FLAG_SEND : 0,
		.srcfd = (uint32_t)fd,
		.newfd_flags = cloexec ? O_CLOEXEC : 0,
	};
	int number = at < 0 ? 0 : free_number(c->party, at);

	if (number < 0)
		return number;
	if (at >= 0) {
		add.flags |= SECCOMP_ADDFD_FLAG_SETFD;
		add.newfd = (uint32_t)number;
	}
	number = ioctl(c->n->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	if (number < 0)
		return -errno;
	if (at >= 0 && number >= c->party->next_fd)
		c->party->next_fd = number + 1;
	c->answered = c->answered || answer;
	return number;
}

void notifier_answer(struct call *c, int64_t result)
{
	struct seccomp_notif_resp *r = c->n->resp;

	memset(r, 0, c->n->sizes.seccomp_notif_resp);
	r->id = c->id;
	if (result == PASS)
		r->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (result < 0)
		r->error = (int32_t)result;
	else
		r->val = result;
	ioctl(c->n->listener, SECCOMP_IOCTL_NOTIF_SEND, r); /* it may be gone */
	c->answered = true;
}

static void hear(struct notifier *n)
{
	struct call c = {.n = n};
	int64_t result;
	pid_t pid;

	memset(n->notif, 0, n->sizes.seccomp_notif);
	if (ioctl(n->listener, SECCOMP_IOCTL_NOTIF_RECV, n->notif))
		return;
	c.id = n->notif->id;
	c.tid = (pid_t)n->notif->pid;
	c.nr = n->notif->data.nr;
	c.args = (const uint64_t *)n->notif->data.args;
	pid = process_of(c.tid);
	c.party = pid > 0 ? party_of(n, pid) : NULL;
	/* Known by its number until here: it must be the caller's still. */
	if (!notifier_valid(&c))
		return;
	result = c.party ? notifier_call(&c) : PASS;
	if (!c.answered)
		notifier_answer(&c, result);
}

/* ---- the client ---- */

static bool send_listener(int to, int fd, int err)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = &err, .iov_len = sizeof(err)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *h;

	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(int));
	}
	return sendmsg(to, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(err);
}

static int receive_listener(int from)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	int err = 0, fd = -1;
	struct iovec iov = {.iov_base = &err, .iov_len = sizeof(err)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *h;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(err))
		return -EPIPE;
	h = CMSG_FIRSTHDR(&msg);
	if (h && h->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(h), sizeof(int));
	return fd >= 0 ? fd : err ? err : -EPIPE;
}

/* Numbers for descriptors of events, beside those that the client's own limit is for. */
static void raise_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= NOTIFIER_FIRST_FD + NOTIFIER_MOST_FDS)
		return;
	l.rlim_cur = l.rlim_max < NOTIFIER_FIRST_FD + NOTIFIER_MOST_FDS
			     ? l.rlim_max
			     : NOTIFIER_FIRST_FD + NOTIFIER_MOST_FDS;
	setrlimit(RLIMIT_NOFILE, &l);
}

static void become_client(const struct notifier *n, int to, const sigset_t *mask)
{
	pid_t parent = getppid();
	int listener;

	prctl(PR_SET_PDEATHSIG, SIGTERM); /* without answers it cannot go on */
	raise_limit();
	sigprocmask(SIG_SETMASK, mask, NULL);
	listener = notifier_filter(n->cookie);
	if (!send_listener(to, listener, listener) || listener < 0 || getppid() != parent)
		_exit(126);
	close(to);
	close(listener);
	n->config->client(n->config->arg);
	_exit(126);
}

static int start_client(struct notifier *n, const sigset_t *mask, char *why, size_t why_len)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	n->client = fork();
	if (!n->client) {
		close(ends[0]);
		become_client(n, ends[1], mask);
	}
	close(ends[1]);
	n->listener = n->client < 0 ? -errno : receive_listener(ends[0]);
	close(ends[0]);
	if (n->listener >= 0)
		return 0;
	if (n->client > 0)
		waitpid(n->client, NULL, 0);
	snprintf(
		why, why_len, "%s",
		n->listener == -EBUSY
			? "this runs below another --seccomp already, and a program has room for one; "
			  "leave it out here"
			: "the host's kernel refuses a seccomp filter with user notification (Linux 5.14 has it)");
	return n->listener;
}

/* ---- the loop ---- */

void notifier_ended(struct notifier *n, pid_t pid, int status)
{
	if (pid != n->client || WIFSTOPPED(status))
		return;
	n->client_over = true;
	n->status = status;
}

static void reap(struct notifier *n)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		notifier_exec_stopped(n, pid, status);
		notifier_ended(n, pid, status);
	}
}

static void hear_signals(struct notifier *n)
{
	struct signalfd_siginfo info;

	while (read(n->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD && !n->client_over)
			kill(n->client, (int)info.ssi_signo);
	reap(n);
}

static int watch(struct notifier *n, int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* The listener hangs up when nobody is left below the filter. */
static void loop(struct notifier *n)
{
	bool over = false;

	while (!over) {
		struct epoll_event ev[16];
		int got = epoll_wait(n->epoll, ev, 16, -1);
		bool ended = false;

		for (int i = 0; i < got; i++) {
			if (ev[i].data.ptr == &n->signals) {
				hear_signals(n);
			} else if (ev[i].data.ptr == &n->listener) {
				if (ev[i].events & EPOLLIN)
					hear(n);
				over = ev[i].events & (EPOLLHUP | EPOLLERR);
			} else {
				ended = true;
			}
		}
		if (ended)
			remove_ended(n);
	}
	while (!n->client_over) {
		if (waitpid(n->client, &n->status, 0) == n->client || errno != EINTR)
			n->client_over = true;
	}
}

static struct notifier *make(const struct notifier_config *config, const sigset_t *set)
{
	struct notifier *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->config = config;
	n->listener = n->signals = -1;
	n->epoll = epoll_create1(EPOLL_CLOEXEC);
	n->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &n->sizes))
		n->sizes.seccomp_notif = 0;
	if (n->sizes.seccomp_notif < sizeof(*n->notif))
		n->sizes.seccomp_notif = sizeof(*n->notif);
	if (n->sizes.seccomp_notif_resp < sizeof(*n->resp))
		n->sizes.seccomp_notif_resp = sizeof(*n->resp);
	n->notif = calloc(1, n->sizes.seccomp_notif);
	n->resp = calloc(1, n->sizes.seccomp_notif_resp);
	if (n->notif && n->resp && n->epoll >= 0 && n->signals >= 0 &&
	    getrandom(&n->cookie, sizeof(n->cookie), 0) == (ssize_t)sizeof(n->cookie))
		return n;
	return NULL;
}

int notifier_run(const struct notifier_config *config, int *status, char *why, size_t why_len)
{
	struct notifier *n;
	sigset_t set, old;
	int rc;

	*why = 0;
	if (!remote_supported()) {
		snprintf(why, why_len, "--seccomp is for x86-64 hosts");
		return -ENOSYS;
	}
	/* The machine's descriptors are not ours: its end must show. */
	close_range(STDERR_FILENO + 1, ~0u, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &old);
	n = make(config, &set);
	if (!n)
		return -ENOMEM; /* this process ends with it: nothing is given back */
	sigemptyset(&old);
	rc = start_client(n, &old, why, why_len);
	if (rc)
		return rc;
	rc = watch(n, n->listener, &n->listener);
	if (!rc)
		rc = watch(n, n->signals, &n->signals);
	if (rc)
		return rc;
	loop(n);
	*status = n->status;
	return 0;
}
