/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client's preload library and the machine say to each other. perf ABI sheet D4 ("Client
 * protocol"), C3.
 *
 * A connection is SOCK_SEQPACKET, one per client process, to the abstract name of gate_name(). The
 * client sends one request, the machine answers with one reply; replies come in order. Both are of
 * one host: no byte order, no versions of layout beyond GATE_VERSION. Every word of a request is
 * checked by the machine; the client trusts the machine.
 *
 * An event's descriptor is the read end of a pipe whose other end is the machine's. fstat(2) tells
 * in any process which event it is: its mode is no other pipe's (gate_is_event), its number is in
 * the event's cell of the board (board_find). The machine sends one-byte tokens through it: a
 * wake-up, or with O_ASYNC an overflow. The end of the client's last copy is the end of the event,
 * and not before that the pipe may become another's.
 *
 * The board is a page of the machine's that every client maps for reading: what an event would
 * answer to read(2), as long as nothing has happened since (struct board_cell).
 *
 * Posted requests have no reply: the client goes on, the machine acts when it comes to it. Only
 * GATE_IOCTL may be posted, only what cannot fail, and only while the board says that nothing
 * moves but the clock, or threads that tell their time, of whom each may post for itself (enum
 * board_still). The request tells the time at which it was made, the host's and the thread's. The
 * posts page, which every client maps for writing, counts them, so that nobody reads a board that
 * does not know of them yet. Whoever scribbles over that page makes reads slow, no more.
 */
#ifndef QUIPU_CLIENT_PROTOCOL_H
#define QUIPU_CLIENT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#define GATE_VERSION 3u
#define GATE_ENV     "QUIPU_GATE"	 /* the machine's process id */
#define GATE_CPUS    "QUIPU_CPUS"	 /* how many CPUs it has */
#define GATE_HOST    "QUIPU_HOST_EVENTS" /* set: what is no PMU of the machine's is the host's */
#define GATE_TREE    "QUIPU_TREE" /* below which the machine's files lie; unset: they are mounted */
#define GATE_UNAME   "QUIPU_UNAME"  /* what uname(2) calls the machine; unset: as the host */
#define GATE_ENGINE  "QUIPU_ENGINE" /* set: this client runs under the engine */
#define GATE_SLEEPER "sleep"	    /* the program whose timeout is the machine's time */
#define GATE_TYPES   1024u	    /* with GATE_HOST: the first of its PMUs' types */
#define GATE_PAYLOAD 65536u	    /* most bytes behind a request or a reply */
#define GATE_ATTR    4096u
#define GATE_READ    16384u
#define GATE_FOREIGN UINT64_MAX /* group: a descriptor that is no event */

enum gate_op {
	GATE_HELLO = 1, /* args: GATE_VERSION; of the notifier (notifier.h) the process it speaks
			 * for, else 0. values: machine's CPUs; descriptors: the board, the posts
			 * page */
	GATE_OPEN, /* args: pid, cpu, group's id or 0 or GATE_FOREIGN, flags; payload: the readable
		    * part of the attr. values: id, cell; descriptor: the event */
	GATE_LOOKUP,	 /* event, or 0; args: the number of its pipe, then. values: id, cell */
	GATE_READ_EVENT, /* event, args: length. result: bytes; payload */
	GATE_IOCTL, /* event, args: command, value (SET_OUTPUT: id, 0 for -1, GATE_FOREIGN). values:
		       id for ID */
	GATE_MMAP,  /* event, args: length in bytes, writable, offset in bytes. descriptor: the ring
		     */
	GATE_MUNMAP, /* event */
	GATE_PRCTL,  /* args: 1 enable, 0 disable */
	GATE_ASYNC,  /* event, args: 1 on, 0 off */
	GATE_COMM,   /* payload: the caller's new name */
	GATE_POLL,   /* event. result: bits of poll(2); values: is anything in its buffer unread? */
	GATE_EXEC,   /* payload: path NUL argv[0] NUL. result: 1 run it as the payload says, 0 as it
		      * is.   values: words of the command; payload: the words, then changes of the
		      * environment ("NAME=value"   or "NAME" to take away), each ending in NUL */
	GATE_EXEC_FAILED, /* the exec that was announced on this connection did not happen */
	GATE_REASON,	  /* payload: why the last request of this connection was refused, text */
	GATE_SYNC,    /* what the host has told the caller (a child's end) the machine knows too */
	GATE_PLACE,   /* args: pid, a CPU, or -1: where that task shall run (sched_setaffinity) */
	GATE_HOTPLUG, /* payload: name of a PMU; args: 1 its device is put back, 0 taken out */
	GATE_EXEC_DONE, /* the exec that was announced on this connection has happened */
	GATE_BORN,	/* the caller is new, a fork or thread of thread args[0]: it may inherit */
	GATE_SLEEP,	/* args: ns. The caller, a client's GATE_SLEEPER, is about to sleep */
	GATE_SLEPT,	/* it does not any more */
	GATE_OPS
};

struct gate_request {
	uint32_t op;
	uint32_t tid; /* of the caller */
	uint64_t event;
	uint64_t args[6];
	uint64_t ran; /* CPU time of the calling thread, ns; 0: not told, nobody counts it */
};

#define GATE_POSTED 0x80000000u /* in op: no reply; args[2]: the host's time (CLOCK_MONOTONIC) */

struct gate_reply {
	int64_t result;	    /* 0 or more, or a negative errno */
	uint32_t size_back; /* E2BIG: what goes into attr.size */
	uint32_t length;    /* of the payload */
	uint64_t values[4];
};

#define BOARD_CELLS  65536u
#define BOARD_WORDS  5u
#define BOARD_HEADER 4096u

enum board_flag {
	BOARD_RING = 1u << 0, /* it has a buffer */
	BOARD_HUP = 1u << 1,  /* its task is gone: POLLHUP */
	BOARD_ERR = 1u << 2,  /* its PMU is gone: POLLERR */
};
#define BOARD_TASK 8 /* above: the thread that it counts, if it only counts that one, else 0 */

/* What moves while nothing is asked: so much may be posted. */
enum board_still {
	BOARD_MOVES = 0,
	BOARD_IS_STILL,	   /* nothing but the clock */
	BOARD_THREADS_MOVE /* threads that run natively: one may post of its own, with its time */
};

/* What moves the words of a cell while nothing else happens. */
enum board_clock {
	BOARD_STANDS = 0, /* nothing */
	BOARD_MONOTONIC,  /* the host's time: the machine's follows it */
	BOARD_THREAD,	  /* CPU time of thread tid: what an own task counts natively */
};
enum board_slope { BOARD_STILL = 0, BOARD_NS, BOARD_CYCLES };

/* One event. All words are the machine's. */
struct board_cell {
	uint32_t seq; /* odd while the cell changes */
	uint32_t flags;
	uint64_t id;	 /* 0: free */
	uint64_t epoch;	 /* the words stand as long as this is the board's; 0: never */
	uint32_t length; /* of what read(2) gives */
	uint32_t pipe;	 /* number of the pipe that is its descriptor */
	uint64_t words[BOARD_WORDS];
	uint64_t since; /* the clock's ns at which they were so */
	uint64_t until; /* ns behind since from which the machine must be asked again */
	uint64_t hz;	/* of cycles */
	uint32_t clock; /* enum board_clock */
	uint32_t tid;
	uint8_t slope[8]; /* of each word, enum board_slope */
	uint64_t signals; /* that O_ASYNC has sent */
	uint64_t ran_out; /* which of them was the last of a REFRESH (a kernel's POLL_HUP), 0: none
			   */
};
_Static_assert(sizeof(struct board_cell) == 128, "cell stride");

struct board {
	uint64_t epoch;	   /* grows when anything happens in the machine */
	uint64_t handled;  /* posted requests that the machine has seen */
	uint32_t still;	   /* enum board_still: which control calls may be posted */
	uint32_t followed; /* events that forks, threads or names of their task concern */
	uint8_t pad[BOARD_HEADER - 24];
	struct board_cell cells[BOARD_CELLS];
};
_Static_assert(offsetof(struct board, cells) == BOARD_HEADER, "board header");

/* The posts page. */
struct posts {
	uint64_t posted;
	uint8_t pad[4096 - 8];
};

/* The clock of a thread of one's own process, as clock_gettime(2) takes it. */
#define BOARD_THREAD_CLOCK(tid) ((clockid_t)((~(unsigned)(tid) << 3) | 6u))

static inline socklen_t gate_address(struct sockaddr_un *a, const char *name)
{
	size_t n = strlen(name);

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, name, n); /* abstract: a NUL in front, none behind */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

#define GATE_NAME_MAX 64

static inline void gate_name(char name[GATE_NAME_MAX], long machine)
{
	snprintf(name, GATE_NAME_MAX, "quipu/%ld/gate", machine);
}

/* How long a sleep of @t is; 0: a kernel refuses it. */
static inline int gate_sleep_ns(const struct timespec *t, uint64_t *ns)
{
	const uint64_t second = 1000000000u;

	if (t->tv_sec < 0 || t->tv_nsec < 0 || t->tv_nsec >= (long)second)
		return 0;
	*ns = (uint64_t)t->tv_sec < UINT64_MAX / second - 1
		      ? (uint64_t)t->tv_sec * second + (uint64_t)t->tv_nsec
		      : UINT64_MAX;
	return 1;
}

/* Read by its owner alone, and sticky, which means nothing: pipe(2) makes none of that kind. */
#define GATE_PIPE_MODE 01400u

/* Of a descriptor: could it be an event, of any machine? */
static inline int gate_is_event(const struct stat *st)
{
	return st->st_mode == (S_IFIFO | GATE_PIPE_MODE);
}

#define BOARD_PROBES 16u /* cells from a pipe's own on in which it is looked for */

/* The event whose descriptor is @pipe, and its cell; 0: the machine must be asked. */
static inline uint64_t board_find(const struct board *b, uint32_t pipe, unsigned *cell)
{
	for (unsigned i = 0; i < BOARD_PROBES; i++) {
		unsigned n = (pipe + i) % BOARD_CELLS;
		const struct board_cell *c = &b->cells[n];
		uint64_t id = __atomic_load_n(&c->id, __ATOMIC_ACQUIRE);

		if (id && __atomic_load_n(&c->pipe, __ATOMIC_ACQUIRE) == pipe &&
		    __atomic_load_n(&c->id, __ATOMIC_RELAXED) == id) {
			*cell = n;
			return id;
		}
	}
	return 0;
}

#endif
