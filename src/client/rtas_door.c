/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See rtas_door.h. A request is a packet: what is wanted, then the cells and the work area as they
 * lie in the partition's memory; the answer brings both back. Every word of a request is checked by
 * the firmware itself, as a partition's would be. The lock between processes is a file (sheet 5.5).
 */
#include "client/rtas_door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "client/protocol.h"
#include "engine/session.h"

#define CLIENTS	  64
#define CELLS	  16u
#define WORK_MOST 16384u
#define WAIT_S	  30 /* for an answer of a machine that may be busy */
#define LOCK_MS	  10000
#define CHARGE_MS 5000 /* a machine that is too busy charges later */

enum wish { WISH_TOKEN = 1, WISH_CALL };

struct packet {
	uint32_t wish, partition, ncells, size; /* of the work area */
	int64_t result;				/* token, or negative errno */
	uint32_t cells[CELLS];
	uint8_t work[WORK_MOST];
};
#define PACKET_HEAD offsetof(struct packet, work)

static void door_name(char name[GATE_NAME_MAX], long pid)
{
	snprintf(name, GATE_NAME_MAX, "quipu/%ld/rtas", pid);
}

/* ---- the file that callers take turns by ---- */

#define LOCK_PATH 4096u

static void lock_folder(char path[LOCK_PATH])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && *runtime)
		snprintf(path, LOCK_PATH, "%s/quipu", runtime);
	else
		snprintf(path, LOCK_PATH, "/tmp/quipu-%u", (unsigned)getuid());
}

static void lock_name(char name[64], long pid, unsigned partition)
{
	snprintf(name, 64, "%ld-lpar-%u.perftools.lock", pid, partition);
}

/* Nobody is left to take turns: the machine is gone. */
static void remove_locks(struct quipu_lpar *lpar, long pid)
{
	char path[LOCK_PATH], name[64];
	int folder;

	lock_folder(path);
	folder = open(path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; folder >= 0 && i < quipu_lpar_partitions(lpar); i++) {
		struct quipu_partition_info info;

		quipu_partition_info(quipu_lpar_partition_at(lpar, i), &info);
		lock_name(name, pid, info.number);
		unlinkat(folder, name, 0);
	}
	if (folder >= 0)
		close(folder);
}

/* ---- the machine's side ---- */

struct door_client {
	int fd;
	pid_t pid;
	unsigned partition;		/* of the transport, */
	struct quipu_rtas_transport *t; /* made with the first request */
};

struct rtas_door {
	struct quipu_lpar *lpar;
	long pid; /* that it serves as */
	int listener, stop[2];
	pthread_t thread;
	bool running;
	struct door_client client[CLIENTS];
	unsigned n;
	struct packet packet;

	/* The call that is charged now; one at a time. */
	int called, charged; /* eventfds, -1 */
	pthread_mutex_t lock;
	bool waiting;
	struct rtas_door_call call;
};

static int transport_of(struct rtas_door *d, struct door_client *c, unsigned partition)
{
	int err;

	if (c->t && c->partition == partition)
		return 0;
	quipu_rtas_model_free(c->t);
	c->t = NULL;
	err = quipu_rtas_model(&c->t, d->lpar, partition);
	c->partition = partition;
	return err == -ENOENT ? -EINVAL : err;
}

/* One call, its work area in the partition's own memory for as long. */
static int64_t make_call(struct door_client *c, struct packet *p)
{
	uint64_t ra;
	void *va;
	int err = c->t->alloc(c->t->arg, p->size, &ra, &va);

	if (err)
		return err;
	memcpy(va, p->work, p->size);
	/* The caller does not know where the work area lies. */
	p->cells[4] = (uint32_t)(ra >> 32);
	p->cells[5] = (uint32_t)ra;
	err = c->t->call(c->t->arg, p->cells, p->ncells, ra, va, p->size);
	memcpy(p->work, va, p->size);
	c->t->free(c->t->arg, p->size, ra, va);
	return err;
}

/* Its thread waits for the machine's, which has the counters. */
static void charge(struct rtas_door *d, const struct door_client *c, unsigned partition)
{
	struct pollfd fds[2] = {{.fd = d->stop[0], .events = POLLIN},
				{.fd = __atomic_load_n(&d->charged, __ATOMIC_ACQUIRE),
				 .events = POLLIN}};
	uint64_t n;

	if (fds[1].fd < 0)
		return;
	pthread_mutex_lock(&d->lock);
	d->call = (struct rtas_door_call){c->pid, quipu_lpar_partition(d->lpar, partition)};
	d->waiting = true;
	pthread_mutex_unlock(&d->lock);
	eventfd_write(d->called, 1);
	while (poll(fds, 2, CHARGE_MS) < 0 && errno == EINTR)
		;
	if (fds[1].revents)
		eventfd_read(fds[1].fd, &n);
}

static int64_t answer(struct rtas_door *d, struct door_client *c, struct packet *p, size_t len)
{
	int err;

	if (len < PACKET_HEAD || p->size > WORK_MOST || len != PACKET_HEAD + p->size ||
	    p->ncells > CELLS)
		return -EBADMSG;
	err = transport_of(d, c, p->partition);
	if (err)
		return err;
	if (p->wish == WISH_TOKEN)
		return c->t->token(c->t->arg, QUIPU_LPAR_PERFTOOLS);
	return p->wish == WISH_CALL && p->ncells == QUIPU_LPAR_CELLS ? make_call(c, p) : -EBADMSG;
}

static void drop(struct rtas_door *d, unsigned i)
{
	close(d->client[i].fd);
	quipu_rtas_model_free(d->client[i].t);
	d->client[i] = d->client[--d->n];
}

static bool serve(struct rtas_door *d, struct door_client *c)
{
	struct packet *p = &d->packet;
	ssize_t n = recv(c->fd, p, sizeof(*p), 0);

	if (n <= 0)
		return n < 0 && errno == EINTR;
	p->result = answer(d, c, p, (size_t)n);
	if (p->result == -EBADMSG)
		return false;
	if (p->wish == WISH_CALL && !p->result)
		charge(d, c, p->partition);
	return send(c->fd, p, PACKET_HEAD + p->size, MSG_NOSIGNAL) > 0;
}

static void let_in(struct rtas_door *d)
{
	int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	struct ucred who;
	socklen_t len = sizeof(who);

	if (fd < 0)
		return;
	/* The machine is its user's own. */
	if (d->n == CLIENTS || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) ||
	    (who.uid != getuid() && who.uid != 0)) {
		close(fd);
		return;
	}
	d->client[d->n++] = (struct door_client){.fd = fd, .pid = who.pid};
}

static void *door_thread(void *arg)
{
	struct rtas_door *d = arg;

	for (;;) {
		struct pollfd fds[CLIENTS + 2] = {{.fd = d->stop[0], .events = POLLIN},
						  {.fd = d->listener, .events = POLLIN}};
		unsigned n = d->n;

		for (unsigned i = 0; i < n; i++)
			fds[i + 2] = (struct pollfd){.fd = d->client[i].fd, .events = POLLIN};
		if (poll(fds, n + 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents)
			return NULL;
		for (unsigned i = n; i-- > 0;)
			if (fds[i + 2].revents && !serve(d, &d->client[i]))
				drop(d, i);
		if (fds[1].revents)
			let_in(d);
	}
}

static uint64_t host_ns(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int listen_at(struct rtas_door *d, long pid)
{
	struct sockaddr_un a;
	char name[GATE_NAME_MAX];
	socklen_t len;

	door_name(name, pid);
	len = gate_address(&a, name);
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (d->listener < 0 || bind(d->listener, (struct sockaddr *)&a, len) ||
	    listen(d->listener, CLIENTS) || pipe2(d->stop, O_CLOEXEC))
		return -errno;
	return 0;
}

int rtas_door_start(struct rtas_door *d)
{
	int err = d ? session_thread(&d->thread, door_thread, d) : 0;

	if (d)
		d->running = !err;
	return err;
}

struct rtas_door *rtas_door_open(const struct quipu_machine *machine, long pid, int *error)
{
	struct quipu_notes notes = {0};
	struct rtas_door *d;

	*error = 0;
	if (quipu_machine_find(machine, "quipu,hypervisor") < 0)
		return NULL;
	d = calloc(1, sizeof(*d));
	*error = d ? 0 : -ENOMEM;
	if (!d)
		return NULL;
	d->pid = pid;
	d->listener = d->stop[0] = d->stop[1] = d->called = d->charged = -1;
	pthread_mutex_init(&d->lock, NULL);
	d->lpar = quipu_lpar_new(machine, &notes);
	quipu_notes_free(&notes);
	*error = d->lpar ? listen_at(d, pid) : -EINVAL;
	if (*error) {
		rtas_door_close(d);
		return NULL;
	}
	quipu_lpar_set_clock(d->lpar, host_ns, NULL);
	return d;
}

void rtas_door_close(struct rtas_door *d)
{
	if (!d)
		return;
	if (d->running) {
		close(d->stop[1]);
		d->stop[1] = -1;
		pthread_join(d->thread, NULL);
	}
	while (d->n)
		drop(d, 0);
	for (unsigned i = 0; i < 2; i++)
		if (d->stop[i] >= 0)
			close(d->stop[i]);
	if (d->listener >= 0)
		close(d->listener);
	if (d->lpar)
		remove_locks(d->lpar, d->pid);
	if (d->called >= 0)
		close(d->called);
	if (d->charged >= 0)
		close(d->charged);
	pthread_mutex_destroy(&d->lock);
	quipu_lpar_free(d->lpar);
	free(d);
}

/* ---- the machine's own thread: what calls cost ---- */

int rtas_door_charge(struct rtas_door *d)
{
	int charged = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	d->called = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (charged < 0 || d->called < 0) {
		if (charged >= 0)
			close(charged);
		return -errno;
	}
	__atomic_store_n(&d->charged, charged, __ATOMIC_RELEASE);
	return d->called;
}

bool rtas_door_call(struct rtas_door *d, struct rtas_door_call *call)
{
	uint64_t n;
	bool waiting;

	eventfd_read(d->called, &n);
	pthread_mutex_lock(&d->lock);
	waiting = d->waiting;
	d->waiting = false;
	*call = d->call;
	pthread_mutex_unlock(&d->lock);
	return waiting;
}

void rtas_door_charged(struct rtas_door *d)
{
	eventfd_write(d->charged, 1);
}

/* ---- the caller's side ---- */

struct remote {
	struct quipu_rtas_transport ops;
	int fd, lock_fd;
	unsigned partition;
	pthread_mutex_t mutex; /* threads of this process */
	struct packet packet;
};

static int64_t ask(struct remote *r)
{
	ssize_t n;

	r->packet.partition = r->partition;
	if (send(r->fd, &r->packet, PACKET_HEAD + r->packet.size, MSG_NOSIGNAL) < 0)
		return -ECONNRESET;
	do
		n = recv(r->fd, &r->packet, sizeof(r->packet), 0);
	while (n < 0 && errno == EINTR);
	return n < (ssize_t)PACKET_HEAD ? -ECONNRESET : r->packet.result;
}

static int64_t remote_token(void *arg, const char *function)
{
	struct remote *r = arg;
	int64_t token;

	if (strcmp(function, QUIPU_LPAR_PERFTOOLS) != 0)
		return -ENOENT;
	pthread_mutex_lock(&r->mutex);
	r->packet.wish = WISH_TOKEN;
	r->packet.ncells = r->packet.size = 0;
	token = ask(r);
	pthread_mutex_unlock(&r->mutex);
	return token;
}

static int remote_alloc(void *arg, size_t size, uint64_t *ra, void **va)
{
	(void)arg;
	if (size > WORK_MOST)
		return -ENOSPC;
	*ra = 0; /* the machine finds a place */
	*va = calloc(1, size);
	return *va ? 0 : -ENOMEM;
}

static void remote_free(void *arg, size_t size, uint64_t ra, void *va)
{
	(void)arg;
	(void)size;
	(void)ra;
	free(va);
}

static int remote_call(void *arg, uint32_t *cells, unsigned ncells, uint64_t ra, void *va,
		       size_t size)
{
	struct remote *r = arg;
	int64_t result;

	(void)ra;
	if (ncells > CELLS || size > WORK_MOST)
		return -EINVAL;
	pthread_mutex_lock(&r->mutex);
	r->packet.wish = WISH_CALL;
	r->packet.ncells = ncells;
	r->packet.size = (uint32_t)size;
	memcpy(r->packet.cells, cells, ncells * sizeof(*cells));
	memcpy(r->packet.work, va, size);
	result = ask(r);
	if (!result) {
		memcpy(cells, r->packet.cells, ncells * sizeof(*cells));
		memcpy(va, r->packet.work, size);
	}
	pthread_mutex_unlock(&r->mutex);
	return (int)result;
}

/* Waits a while; who cannot have it goes on without and relies on beginning again (R1-6). */
static void remote_lock(void *arg)
{
	const struct timespec pause = {0, 1000000};
	struct remote *r = arg;

	for (unsigned ms = 0; r->lock_fd >= 0 && ms < LOCK_MS; ms++) {
		if (!flock(r->lock_fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return;
		nanosleep(&pause, NULL);
	}
}

static void remote_unlock(void *arg)
{
	struct remote *r = arg;

	if (r->lock_fd >= 0)
		flock(r->lock_fd, LOCK_UN);
}

/* A folder of this user's own, or -1. */
static int own_folder(int at, const char *path)
{
	struct stat st;
	int fd;

	if (mkdirat(at, path, 0700) && errno != EEXIST)
		return -1;
	fd = openat(at, path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) || st.st_uid != getuid() || st.st_mode & 022)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_lock(long pid, unsigned partition)
{
	char path[LOCK_PATH], name[64];
	int folder, fd;

	lock_folder(path);
	folder = own_folder(AT_FDCWD, path);
	if (folder < 0)
		return -1;
	lock_name(name, pid, partition);
	fd = openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	close(folder);
	return fd;
}

static int connect_to(struct remote *r, long pid)
{
	const struct timeval patience = {.tv_sec = WAIT_S};
	struct sockaddr_un a;
	char name[GATE_NAME_MAX];
	socklen_t len;

	door_name(name, pid);
	len = gate_address(&a, name);
	r->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (r->fd < 0)
		return -errno;
	setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(r->fd, (struct sockaddr *)&a, len))
		return errno == ECONNREFUSED ? -ENOENT : -errno;
	return 0;
}

int rtas_connect(struct quipu_rtas_transport **out, long pid, unsigned partition, bool lock)
{
	struct remote *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	pthread_mutex_init(&r->mutex, NULL);
	r->partition = partition;
	r->lock_fd = -1;
	r->ops = (struct quipu_rtas_transport){
		.arg = r,
		.token = remote_token,
		.lock = lock ? remote_lock : NULL,
		.unlock = lock ? remote_unlock : NULL,
		.alloc = remote_alloc,
		.free = remote_free,
		.call = remote_call,
	};
	err = connect_to(r, pid);
	if (!err && remote_token(r, QUIPU_LPAR_PERFTOOLS) == -EINVAL)
		err = -EINVAL;
	if (err) {
		rtas_disconnect(&r->ops);
		return err;
	}
	if (lock)
		r->lock_fd = open_lock(pid, partition);
	*out = &r->ops;
	return 0;
}

void rtas_disconnect(struct quipu_rtas_transport *t)
{
	struct remote *r = t ? t->arg : NULL;

	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	pthread_mutex_destroy(&r->mutex);
	free(r);
}
