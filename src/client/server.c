/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's event loop while clients are served: connections, descriptors of events, the
 * engine's bell, processes. One thread; everything it calls returns at once. perf ABI sheet D4.
 * What a request means is ask.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/gate_impl.h"
#include "client/rtas_door.h"

#define ROUND 64 /* sources served between two waits */
#define LOOK_MS                                                                                    \
	4 /* how often the time of tasks of the host is looked at while something waits for it */

uint64_t gate_host_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- sources ---- */

int gate_watch(struct gate *g, struct source *s, enum source_kind kind, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	s->kind = kind;
	s->fd = fd;
	return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void gate_bury(struct gate *g, struct source *s)
{
	if (s->dead)
		return;
	if (s->fd >= 0)
		close(s->fd); /* leaves the epoll set by itself: no other descriptor names it */
	s->fd = -1;
	s->dead = true;
	s->next = g->dead;
	g->dead = s;
}

static void free_dead(struct gate *g)
{
	while (g->dead) {
		struct source *s = g->dead;

		g->dead = s->next;
		free(s);
	}
}

struct gate_event *gate_find(const struct gate *g, uint64_t id)
{
	struct gate_event *e = g->events[id % EVENT_BUCKETS];

	while (e && e->id != id)
		e = e->chain;
	return e;
}

void gate_changed(struct gate *g)
{
	__atomic_store_n(&g->board->epoch, g->board->epoch + 1, __ATOMIC_RELEASE);
}

void gate_tell_still(struct gate *g)
{
	uint32_t still = session_guests(g->session) ? BOARD_MOVES
			 : !tasks_any(g)	    ? BOARD_IS_STILL
			 : tasks_all_tell(g)	    ? BOARD_THREADS_MOVE
						    : BOARD_MOVES;

	__atomic_store_n(&g->board->still, still, __ATOMIC_RELEASE);
}

/* ---- what the core says of an event ---- */

static void set_flag(struct gate *g, struct gate_event *e, uint32_t flag)
{
	__atomic_fetch_or(&g->board->cells[e->cell].flags, flag, __ATOMIC_SEQ_CST);
}

/* With O_ASYNC each token is a signal, and only overflows signal: those come through gate_sigio. */
void gate_wake(void *arg, struct quipu_event *event, unsigned bits)
{
	struct gate *g = arg;
	struct gate_event *e = gate_find(g, quipu_event_id(event));

	if (!e)
		return;
	if ((bits & EPOLLHUP) && session_has(g->session, e->pid)) {
		e->hangs_up = true;
		return;
	}
	if (bits & (EPOLLHUP | EPOLLERR))
		set_flag(g, e, bits & EPOLLERR ? BOARD_ERR : BOARD_HUP);
	if (!e->async || (bits & (EPOLLHUP | EPOLLERR)))
		descriptor_token(e);
}

void gate_hang_up(struct gate *g, pid_t pid)
{
	for (unsigned i = 0; i < EVENT_BUCKETS; i++)
		for (struct gate_event *e = g->events[i]; e; e = e->chain)
			if (e->hangs_up && e->pid == pid) {
				e->hangs_up = false;
				set_flag(g, e, BOARD_HUP);
				descriptor_token(e);
			}
}

void gate_runs_natively(struct gate *g, pid_t tid)
{
	for (unsigned i = 0; i < EVENT_BUCKETS; i++)
		for (struct gate_event *e = g->events[i]; e; e = e->chain)
			e->native = e->native || e->tid == tid;
}

void gate_sigio(void *arg, struct quipu_event *event, int code)
{
	struct gate *g = arg;
	struct gate_event *e = gate_find(g, quipu_event_id(event));
	struct board_cell *c;

	if (!e)
		return;
	c = &g->board->cells[e->cell];
	__atomic_store_n(&c->signals, c->signals + 1, __ATOMIC_RELAXED);
	if (code == POLL_HUP)
		__atomic_store_n(&c->ran_out, c->signals, __ATOMIC_RELEASE);
	descriptor_token(e);
}

/* ---- clients ---- */

/* The capabilities that matter, of a process of our own user (or root's). */
static uint64_t effective_capabilities(pid_t pid)
{
	unsigned long long caps = 0;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps;
}

#define GENERATIONS   256
#define CAPABILITY(n) (UINT64_C(1) << (n))
#define ADMIN	      CAPABILITY(21) /* CAP_SYS_ADMIN */
#define PERFMON	      CAPABILITY(38)
#define IPC_LOCK      CAPABILITY(14)

bool gate_descends(const struct gate *g, pid_t pid)
{
	char path[64], line[256];

	for (unsigned i = 0; i < GENERATIONS && pid > 1 && pid != g->pid; i++) {
		FILE *f;
		int parent = 0;

		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "PPid: %d", &parent) == 1)
				break;
		if (f)
			fclose(f);
		pid = parent;
	}
	return pid == g->pid;
}

int gate_speaks_for(struct gate *g, struct client *c, pid_t pid, uid_t uid)
{
	bool trusted = !g->config.in_user_namespace || g->config.root;
	uint64_t caps;

	/* Abstract names are open to every user of the host; the machine is its user's own, and of
	 * whom its programs become. */
	if (uid != geteuid() && uid != 0 && !gate_descends(g, pid))
		return -EPERM;
	caps = trusted ? effective_capabilities(pid) : 0;
	c->who = (struct quipu_caller){
		.pid = pid,
		.tid = pid,
		.uid = uid,
		.perfmon = caps & (ADMIN | PERFMON),
		.ipc_lock = caps & IPC_LOCK,
	};
	return 0;
}

static int identify(struct gate *g, struct client *c)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(c->source.fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return gate_speaks_for(g, c, cred.pid, cred.uid);
}

static void remove_client(struct gate *g, struct client *c)
{
	ask_client_left(g, c);
	if (c->prev)
		c->prev->next = c->next;
	else
		g->clients = c->next;
	if (c->next)
		c->next->prev = c->prev;
	free(c->maps);
	c->maps = NULL;
	/* What it counted and never sent does not come any more. */
	g->board->handled = __atomic_load_n(&g->posts->posted, __ATOMIC_ACQUIRE);
	gate_bury(g, &c->source);
}

static void accept_client(struct gate *g)
{
	int fd = accept4(g->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (!c || gate_watch(g, &c->source, SOURCE_CLIENT, fd, EPOLLIN)) {
		close(fd);
		free(c);
		return;
	}
	c->next = g->clients;
	if (c->next)
		c->next->prev = c;
	g->clients = c;
	if (identify(g, c))
		remove_client(g, c);
}

static bool send_answer(struct client *c, const struct answer *a, const void *payload)
{
	union {
		char bytes[CMSG_SPACE(sizeof(a->fd))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov[2] = {
		{.iov_base = (void *)&a->reply, .iov_len = sizeof(a->reply)},
		{.iov_base = (void *)payload, .iov_len = a->reply.length},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = a->reply.length ? 2 : 1};
	size_t fds = a->fd[0] < 0 ? 0 : a->fd[1] < 0 ? sizeof(int) : 2 * sizeof(int);

	if (fds) {
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fds);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(fds);
		memcpy(CMSG_DATA(h), a->fd, fds);
	}
	return sendmsg(c->source.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* One request; true when another may have come with it. A client that breaks the protocol, or does
 * not take its answers, is let go. */
static bool hear_one(struct gate *g, struct client *c)
{
	struct gate_request request;
	struct answer answer = {.fd = {-1, -1}};
	struct iovec iov[2] = {
		{.iov_base = &request, .iov_len = sizeof(request)},
		{.iov_base = g->payload, .iov_len = GATE_PAYLOAD},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n = recvmsg(c->source.fd, &msg, MSG_DONTWAIT);
	int opened;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < (ssize_t)sizeof(request) || (msg.msg_flags & MSG_TRUNC)) {
		remove_client(g, c);
		return false;
	}
	if (request.op == (GATE_IOCTL | GATE_POSTED)) {
		ask_posted(g, c, &request);
		__atomic_fetch_add(&g->board->handled, 1, __ATOMIC_RELEASE);
		return true;
	}
	ask(g, c, &request, (size_t)n - sizeof(request), &answer);
	gate_tell_still(g);
	opened = request.op == GATE_OPEN ? answer.fd[0] : -1;
	if (!send_answer(c, &answer, g->answer))
		remove_client(g, c);
	if (opened >= 0)
		close(opened); /* the client has it now, or it hangs up and the event ends */
	return false;
}

static void hear_client(struct gate *g, struct client *c)
{
	for (unsigned i = 0; i < ROUND && hear_one(g, c); i++)
		;
}

static bool has_posted(const struct client *c)
{
	uint32_t op;

	return recv(c->source.fd, &op, sizeof(op), MSG_PEEK | MSG_DONTWAIT) == sizeof(op) &&
	       op == (GATE_IOCTL | GATE_POSTED);
}

/* What was posted goes before what others ask: they may ask because its poster told them. */
static void hear_posts(struct gate *g, struct epoll_event *ev, int n)
{
	if (__atomic_load_n(&g->posts->posted, __ATOMIC_SEQ_CST) == g->board->handled)
		return;
	for (int i = 0; i < n; i++) {
		struct source *s = ev[i].data.ptr;

		while (!s->dead && s->kind == SOURCE_CLIENT && has_posted((struct client *)s))
			hear_one(g, (struct client *)s);
	}
}

/* ---- the loop ---- */

static void reap(struct gate *g, pid_t child, int *status, bool *over)
{
	struct signalfd_siginfo info;
	int s;

	while (read(g->children.fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	for (;;) {
		pid_t pid = waitpid(-1, &s, WNOHANG);

		if (pid == child)
			*status = s;
		if (pid < 0 && errno == ECHILD)
			*over = true;
		if (pid <= 0)
			return;
	}
}

static void serve(struct gate *g, struct source *s)
{
	uint64_t count;

	switch (s->kind) {
	case SOURCE_LISTENER: accept_client(g); break;
	case SOURCE_BELL:
		eventfd_read(s->fd, &count);
		if (session_serve(g->session))
			gate_changed(g);
		break;
	case SOURCE_CLIENT: hear_client(g, (struct client *)s); break;
	case SOURCE_EVENT: ask_event_hung_up(g, (struct gate_event *)s); break;
	case SOURCE_TASK: tasks_ended(g, (struct host_task *)s); break;
	case SOURCE_TREE: tree_watch_serve(g); break;
	case SOURCE_FIRMWARE: firmware_called(g); break;
	case SOURCE_SLEEPER: sleepers_ended(g, (struct sleeper *)s); break;
	case SOURCE_CHILDREN: break;
	}
}

/*
 * Closing before asking: a client that closed an event and then asks for something finds its
 * counter free, for both are in this round, and hang-ups go first. Asking before programs: what a
 * client posted before it started one is done.
 */
#define TURNS 4

static int turn(enum source_kind kind)
{
	switch (kind) {
	case SOURCE_EVENT: return 0;
	case SOURCE_TREE: return 1;
	case SOURCE_CLIENT: return 2;
	default: return 3;
	}
}

static void serve_round(struct gate *g, struct epoll_event *ev, int n)
{
	hear_posts(g, ev, n);
	for (int pass = 0; pass < TURNS; pass++)
		for (int i = 0; i < n; i++) {
			struct source *s = ev[i].data.ptr;

			if (!s->dead && turn(s->kind) == pass)
				serve(g, s);
		}
	gate_tell_still(g);
	free_dead(g);
}

static int watch_children(struct gate *g)
{
	sigset_t set;
	int fd;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	return gate_watch(g, &g->children, SOURCE_CHILDREN, fd, EPOLLIN);
}

/* ms until something is to be done that nobody asks for. */
static int patience(struct gate *g)
{
	int linger = session_linger(g->session);

	if (!tasks_waited_for(g))
		return linger;
	return linger >= 0 && linger < LOOK_MS ? linger : LOOK_MS;
}

int gate_run(struct gate *g, pid_t child, int *status, volatile int *stop)
{
	struct epoll_event ev[ROUND];
	bool over = false;
	int err = session_serve_house(g->session);

	if (!err)
		err = rtas_door_start(g->config.door);
	if (err) {
		kill(child, SIGKILL);
		return err;
	}
	g->child = child;
	reap(g, child, status, &over);
	while (!over) {
		int n;

		interrupts_show(g);
		n = epoll_wait(g->epoll, ev, ROUND, patience(g));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (stop && *stop) {
			kill(child, *stop);
			*stop = 0;
		}
		if (!n) {
			tasks_run(g);
			tasks_scan(g);
			gate_changed(g);
		}
		for (int i = 0; i < n; i++)
			if (ev[i].data.ptr == &g->children)
				reap(g, child, status, &over);
		serve_round(g, ev, n < 0 ? 0 : n);
	}
	session_serve(g->session);
	return 0;
}

/* ---- life ---- */

/* A sealed memfd of ours, mapped. */
static int make_page(const char *name, size_t size, int seals, int *fd, void **mem)
{
	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, (off_t)size))
		return -errno;
	*mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (*mem == MAP_FAILED) {
		*mem = NULL;
		return -errno;
	}
	return fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | seals) ? -errno : 0;
}

static int make_board(struct gate *g)
{
	void *board = NULL, *posts = NULL;
	/* Ours stays writable; what clients map from now on is not. */
	int rc = make_page("quipu-board", sizeof(struct board), F_SEAL_FUTURE_WRITE, &g->board_fd,
			   &board);

	g->board = board;
	if (!rc)
		rc = make_page("quipu-posts", sizeof(struct posts), 0, &g->posts_fd, &posts);
	g->posts = posts;
	if (!rc)
		g->board->epoch = 1;
	return rc;
}

static int listen_for_clients(struct gate *g)
{
	struct sockaddr_un address;
	char name[GATE_NAME_MAX];
	socklen_t len;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	gate_name(name, getpid());
	len = gate_address(&address, name);
	if (bind(fd, (struct sockaddr *)&address, len) || listen(fd, SOMAXCONN)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return gate_watch(g, &g->listener, SOURCE_LISTENER, fd, EPOLLIN);
}

struct gate *gate_new(void)
{
	struct gate *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->listener.fd = g->bell.fd = g->children.fd = g->tree_files.fd = g->board_fd =
		g->posts_fd = g->own_fds = -1;
	g->pid = getpid();
	g->payload = malloc(GATE_PAYLOAD);
	g->answer = malloc(GATE_PAYLOAD);
	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!g->payload || !g->answer || g->epoll < 0 || make_board(g) || watch_children(g) ||
	    descriptors_begin(g)) {
		gate_free(g);
		return NULL;
	}
	return g;
}

int gate_attach(struct gate *g, struct quipu_system *system, const struct gate_config *config)
{
	struct session_hooks hooks = {
		.task = tasks_started, .place = tasks_wish, .ended = tasks_guest_ended, .arg = g};
	int bell;

	g->config = *config;
	g->system = system;
	g->core = quipu_system_core(system);
	g->session = config->session;
	g->ncpus = quipu_system_machine(system)->ncpus;
	g->follow_from = gate_host_ns();
	bell = session_open_house(g->session, &hooks);
	if (bell < 0)
		return bell;
	/* The session owns the descriptor. */
	if (gate_watch(g, &g->bell, SOURCE_BELL, bell, EPOLLIN))
		return -errno;
	if (tree_watch_begin(g) || firmware_begin(g))
		return -errno;
	return listen_for_clients(g);
}

/* Clients have no place for a label, or a reason, beside their numbers. */
static void tell_native(const struct gate *g)
{
	if (g->counted_native)
		fputs("quipu: what was counted of programs that ran natively is their CPU time on this host at "
		      "the machine's clock, an instruction a cycle, and 0 of other events: modelled (under the "
		      "engine instructions are counted exactly; --engine puts a client of the machine's "
		      "instruction set there too)\n",
		      stderr);
	if (g->uncounted_helper)
		fputs("quipu: a program that is none of this machine's instruction set ran natively beside the "
		      "machine and was not counted (a machine of its own set counts it, as -m x86 those for x86-64; "
		      "--host-events counts its CPU time)\n",
		      stderr);
}

void gate_free(struct gate *g)
{
	if (!g)
		return;
	descriptors_end(g);
	while (g->clients)
		remove_client(g, g->clients);
	for (unsigned i = 0; i < EVENT_BUCKETS; i++)
		while (g->events[i]) {
			struct gate_event *e = g->events[i];

			ask_event_hung_up(g, e);
			if (g->events[i] == e) { /* a mapping that nobody took back */
				g->events[i] = e->chain;
				gate_bury(g, &e->source);
			}
		}
	tell_native(g);
	while (g->tasks) {
		struct host_task *t = g->tasks;

		g->tasks = t->next;
		tasks_close(t);
		gate_bury(g, &t->source);
	}
	sleepers_free(g);
	tree_watch_end(g);
	free_dead(g);
	if (g->board)
		munmap(g->board, sizeof(struct board));
	if (g->posts)
		munmap(g->posts, sizeof(struct posts));
	if (g->board_fd >= 0)
		close(g->board_fd);
	if (g->posts_fd >= 0)
		close(g->posts_fd);
	if (g->listener.fd >= 0)
		close(g->listener.fd);
	if (g->children.fd >= 0)
		close(g->children.fd);
	if (g->epoll >= 0)
		close(g->epoll);
	free(g->payload);
	free(g->answer);
	free(g);
}
