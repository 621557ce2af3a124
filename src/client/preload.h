/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the preload library share (preload.c). Nothing of it is visible outside. */
#ifndef QUIPU_CLIENT_PRELOAD_H
#define QUIPU_CLIENT_PRELOAD_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/protocol.h"

#define EXPORT	  __attribute__((visibility("default")))
#define PAGE	  4096u
#define LOW_LIMIT 600  /* our own descriptors live above: programs and tests use low numbers */
#define FDS	  4096 /* descriptors whose nature is remembered */

/* The C library's own @name, as real_@name. */
#define REAL(ret, name, params, args)                                                              \
	static inline ret real_##name params                                                       \
	{                                                                                          \
		static ret(*fn) params;                                                            \
		if (!fn)                                                                           \
			*(void **)&fn = dlsym(RTLD_NEXT, #name);                                   \
		return fn args;                                                                    \
	}

/* ---- preload.c ---- */

/* The machine's process id; not above 0: there is none, and everything is the host's. */
long preload_machine(void);
/* Is @fd an event? Its id and, if wanted, cell. Descriptors come by open, dup, fork, exec and
 * messages alike. */
uint64_t preload_event(int fd, unsigned *cell);
/* The cell of an event; NULL: it is not there any more. */
const struct board_cell *preload_cell(uint64_t id, unsigned cell);

/* A signal of descriptor @fd has come: was it the last that a REFRESH had left? */
bool preload_ran_out(int fd);

/* ---- preload_poll.c ---- */

/* What poll(2) says of an event without waiting, or 0; the tokens that wait in its descriptor are
 * taken. */
short preload_poll_at_once(int fd);
void preload_drain(int fd);

/* ---- preload_ask.c ---- */

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
	bool fault;   /* the payload could not be read: nothing was sent */
};

extern const struct board *preload_board;
extern struct posts *preload_posts;
extern unsigned preload_cpus; /* of the machine, once it was asked */
extern int preload_connection;
extern bool preload_refused; /* there is no machine: everything is the host's */
extern bool preload_counted; /* a thread of ours counts its CPU time: requests tell it */

/* A connection of its own, -1; whoever calls closes it. */
int preload_dial(void);
/* One request and its reply on @fd. False: the machine is gone. */
bool preload_exchange_on(int fd, struct exchange *);
/*
 * A request of this process. Signals wait meanwhile: a handler that asks too would get the other's
 * reply. False with errno: there is no machine.
 */
bool preload_exchange(struct exchange *);
/* A request without a reply; false: it was not sent. */
bool preload_post(struct exchange *);
/* Is there an event that forks, threads or names of its task concern? */
bool preload_followed(void);
/* The calling thread is a new one, started by thread @parent: who follows that one hears of it. */
void preload_born(pid_t parent);
/* The machine learns what the host has told us by now; nothing for who never asked it anything. */
void preload_sync(void);
/* Of the calling thread. */
uint32_t preload_tid(void);
/* Is there no number for another descriptor? */
bool preload_full(void);
/* What libc would return for the reply: the result, or -1 with errno. */
long preload_result(const struct exchange *);
uint64_t preload_host_ns(clockid_t clock);
/* CPU time of a thread of this process; 0: of no such thread. */
uint64_t preload_thread_ns(uint32_t tid);
/* Memory of the caller that may not be there: bytes copied, or -1 with EFAULT; false with EFAULT.
 */
ssize_t preload_peek(const void *from, void *to, size_t n);
bool preload_poke(void *to, const void *from, size_t n);

#endif
