/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the client gate share. */
#ifndef QUIPU_CLIENT_GATE_IMPL_H
#define QUIPU_CLIENT_GATE_IMPL_H

#include <time.h>

#include "client/gate.h"
#include "client/protocol.h"

/* What the event loop waits on. */
enum source_kind {
	SOURCE_LISTENER,
	SOURCE_BELL,
	SOURCE_CHILDREN,
	SOURCE_CLIENT,
	SOURCE_EVENT,
	SOURCE_TASK,
	SOURCE_TREE,
	SOURCE_FIRMWARE,
	SOURCE_SLEEPER,
};

struct source {
	enum source_kind kind;
	int fd;
	bool dead;	     /* closed within this round of the loop */
	struct source *next; /* of the dead */
};

/* The memory of a buffer; the core writes, clients map it. */
struct ring_memory {
	int fd;
	void *mem;
	size_t bytes;
	unsigned maps; /* of all events */
	unsigned refs; /* events that name it */
};

/* An event and the machine's end of its descriptor. */
struct gate_event {
	struct source source;
	struct quipu_event *event;
	uint64_t id;
	unsigned cell;
	struct ring_memory *ring;
	unsigned maps;
	bool async, closed;
	uint32_t pipe; /* its number (protocol.h) */
	bool told;     /* that a token is in it, perhaps */
	char name[12]; /* of our end, among our descriptors */
	bool sampling;
	bool followed;	/* counted in the board's word of that name */
	bool hangs_up;	/* its task has ended, the process is about to */
	pid_t pid, tid; /* of its task, 0 */
	bool native;	/* that runs natively */
	struct session_wants wants;
	struct gate_event *chain; /* of the table by id, or of those kept */
};

struct client_map {
	uint64_t event;
	unsigned count;
};

/* A connection. */
struct client {
	struct source source;
	struct quipu_caller who;
	bool hello;
	bool spoken_for; /* by the notifier */
	bool execing;	 /* announced the exec of a program that runs natively, */
	char comm[16];	 /* called so */
	struct client_map *maps;
	size_t nmaps;
	char reason[512];
	struct client *prev, *next;
};

#define HOST_MAPS 64u

/* A process or thread of the host that events were opened on, or that descends from one. */
struct host_task {
	struct source source; /* its pidfd */
	pid_t tid, tgid;
	int wish;	 /* the modelled CPU that it shall run on, -1 */
	int cpu;	 /* the modelled CPU on which its host time counts, -1: it does not count */
	uint64_t ran;	 /* ns of host CPU time that have been counted */
	int stat_fd;	 /* its schedstat, -1 */
	unsigned events; /* that were opened on it */
	bool prepared;	 /* ran is as of its exec, which was announced */
	bool born;	 /* a client's fork or thread, which told of itself */
	bool visits;	 /* a client that counts where it has moved to (tasks_visit) */
	bool shares;	 /* its CPU with others: they take turns */
	uint64_t ip;	 /* where it stood last */
	struct host_clock *clock; /* NULL: /proc must do */
	bool measured;		  /* it has had any, or descends from one that has */
	unsigned scans;		  /* looks at its mappings that are still to come, after an exec */
	uint64_t seen[HOST_MAPS]; /* start addresses of those that have been told */
	unsigned nseen;
	struct host_task *next;
};

#define EVENT_BUCKETS 4096u

struct gate {
	struct gate_config config;
	uint64_t interrupts_shown; /* sum of the counts in /proc/interrupts */
	struct quipu_system *system;
	struct quipu_core *core;
	struct session *session;
	unsigned ncpus;
	int epoll;
	pid_t pid;   /* of the machine */
	pid_t child; /* the client that it was started with, or who speaks for it (notifier.h) */
	struct source listener, bell, children, tree_files, firmware;
	struct tree_watch *tree_watch;
	struct source *dead;
	struct client *clients;
	struct gate_event *events[EVENT_BUCKETS];
	struct host_task *tasks;
	struct board *board;
	struct posts *posts;
	int board_fd, posts_fd;
	struct gate_event *spares; /* of no event, closed: their pipes are kept for later ones */
	unsigned nspares;
	int own_fds;	      /* the machine's /proc/self/fd, -1 */
	uint64_t follow_from; /* ns of the host's clock from which an idle machine's time follows it
			       */
	struct sleeper *sleepers;  /* sleepers.c */
	bool sleeper_ended;	   /* and nobody has looked since */
	bool told_full;		   /* that the machine's descriptors have run out */
	pid_t helper;		   /* the last measured task that became a helper */
	bool uncounted_helper;	   /* one has counted nothing, though it had hardware events */
	bool counted_native;	   /* a hardware event of a task that ran natively has counted */
	bool watched;		   /* a client has looked at the clock since there are events */
	size_t nevents, nsampling; /* of them, those that sample */
	uint8_t *payload;	   /* GATE_PAYLOAD, of the request */
	uint8_t *answer;	   /* GATE_PAYLOAD, of the reply */
};

/* A reply in the making. */
struct answer {
	struct gate_reply reply;
	int fd[2]; /* to pass, -1; not owned */
};

/* interrupts.c: the machine's /proc/interrupts is brought up to date. */
void interrupts_show(struct gate *);

/* server.c */
int gate_watch(struct gate *, struct source *, enum source_kind, int fd, uint32_t events);
/* Close it; its memory is freed (@source is the object's first member) when the loop's round is
 * over. */
void gate_bury(struct gate *, struct source *);
/* Something has changed: what the board says of any event stands no longer. */
void gate_changed(struct gate *);
/* The board tells whether control calls may be posted. */
void gate_tell_still(struct gate *);
struct gate_event *gate_find(const struct gate *, uint64_t id);
/* Did the machine start @pid? It is the subreaper of its own: they have it as an ancestor. */
bool gate_descends(const struct gate *, pid_t pid);
uint64_t gate_host_ns(void);
/* Who asks on this connection is process @pid; not one that the machine is not there for: EPERM. */
int gate_speaks_for(struct gate *, struct client *, pid_t pid, uid_t uid);

/* The process is gone: its events hang up. Not earlier: perf ends a program whose events have hung
 * up. */
void gate_hang_up(struct gate *, pid_t pid);
/* Thread @tid runs a program natively: what its events count is modelled by its CPU time. */
void gate_runs_natively(struct gate *, pid_t tid);

/* ask.c */
void ask(struct gate *, struct client *, const struct gate_request *, size_t payload,
	 struct answer *);
void ask_event_hung_up(struct gate *, struct gate_event *);
void ask_client_left(struct gate *, struct client *);
/* What the client's own clock adds to the words of a cell. */
struct motion {
	enum board_clock clock;
	uint64_t since, until;
	pid_t tid;
	uint8_t value, time; /* enum board_slope of the count, and of the two times */
};

/* ask_board.c: a free cell for event @id with descriptor @pipe, or negative errno; what it says,
 * @len bytes of @words that move so; can a client tell by itself how the event goes on until
 * something happens? Has it a buffer? */
int board_take(struct gate *, uint64_t id, uint32_t pipe);
void board_write(struct gate *, const struct gate_event *, const void *words, size_t len,
		 const struct motion *);
bool board_foresees(const struct gate *, const struct quipu_event *, struct motion *);
void board_ring(struct gate *, const struct gate_event *);
/*
 * descriptor.c: descriptor_take - an event with a descriptor, whose client's end is *@fd; NULL:
 * that is a negative errno.
 * descriptor_leave - the event is over: it may become another.
 * descriptor_token - a token for its client.
 */
struct gate_event *descriptor_take(struct gate *, int *fd);
void descriptor_leave(struct gate *, struct gate_event *);
void descriptor_token(struct gate_event *);
int descriptors_begin(struct gate *);
void descriptors_end(struct gate *);
/* ask_exec.c */
void ask_exec(struct gate *, struct client *, size_t payload, struct answer *);
void ask_exec_done(struct gate *, struct client *);
/* firmware.c: calls of the machine's firmware by other processes. */
int firmware_begin(struct gate *);
void firmware_called(struct gate *);
/* hotplug.c: errno of a PMU's device that is to come or go; the tree follows. */
int gate_hotplug(struct gate *, const char *name, bool present);
/* The machine's time follows the host's while nothing runs. ask_clock_to - or goes to @time. */
void ask_clock(struct gate *, uint64_t now);
void ask_clock_to(struct gate *, uint64_t time);
/* A request without a reply. */
void ask_posted(struct gate *, struct client *, const struct gate_request *);

/* tasks.c */
struct quipu_task *tasks_find(struct gate *, pid_t tid);
struct quipu_task *tasks_started(void *gate, pid_t pid, const char *comm);
void tasks_ended(struct gate *, struct host_task *);
/* @tid of process @pid is a fork or a thread of thread @parent that runs natively. */
void tasks_born(struct gate *, pid_t pid, pid_t tid, pid_t parent);
/*
 * A process is about to replace its program by one that runs natively: what it has run is no longer
 * its program's. Nothing changes until tasks_exec; tasks_stay takes it back.
 */
void tasks_prepare(struct gate *, pid_t pid);
void tasks_stay(struct gate *, pid_t pid);
/* A process has replaced its program by one that runs natively. */
void tasks_exec(struct gate *, pid_t pid, const char *comm);
/* Is what @pid is about to run measured, rather than a client or a helper? For programs that could
 * run natively. */
bool tasks_is_workload(struct gate *, pid_t pid);
/* tasks_is_measured - does a client count it: are there events on it or what it descends from? */
bool tasks_is_measured(struct gate *, pid_t pid);
/* Is @pid a client's child whose program, run natively, is none of the machine's? */
bool tasks_is_helper(const struct gate *, pid_t pid);
void tasks_guest_ended(void *gate, pid_t pid);
/* The time of @tid counts from now on: an event was opened on it. False: it does not run natively.
 * tasks_run - what all have run is counted. */
bool tasks_count(struct gate *, pid_t tid);
/* Its last event is gone: it does not count any longer. */
void tasks_release(struct gate *, pid_t tid);
/* Without any event, tasks that only were asked for are watched no longer. */
void tasks_forget(struct gate *);
void tasks_hold(struct gate *, pid_t tid);
void tasks_run(struct gate *);
/* All but @tid, which has told its time. */
void tasks_run_but(struct gate *, pid_t tid);
/* What thread @tid says that it has run: /proc lags behind for one that runs. */
void tasks_claim(struct gate *, pid_t tid, uint64_t ran);
void tasks_scan(struct gate *);
/* Is the host's CPU time of @tid counted (*cpu, where; *ran, up to which ns)? tasks_any -
 * anybody's? */
bool tasks_counted(const struct gate *, pid_t tid, unsigned *cpu, uint64_t *ran);
bool tasks_any(const struct gate *);
/* tasks_all_tell - do those whose time counts tell it themselves, and nobody samples them? */
bool tasks_all_tell(const struct gate *);
/* How many have their time counted on @cpu; more than one take turns. */
unsigned tasks_on(const struct gate *, int cpu);
/* Lets go of the host's descriptors of a task. */
void tasks_close(struct host_task *);
/*
 * tasks_reap - ends that the host has told others already.
 * tasks_place - the CPU that a task shall run on when it counts, and the program that it
 * becomes; past the last: any.
 * tasks_wish - that CPU, or -1.
 */
int tasks_wish(void *gate, pid_t pid);
void tasks_reap(struct gate *);
void tasks_place(struct gate *, pid_t tid, uint64_t cpu);
/* A client has moved there itself. */
void tasks_visit(struct gate *, pid_t tid);
/* Does any of them have to be looked at from time to time? */
bool tasks_waited_for(const struct gate *);
bool tasks_is_guest(const struct gate *, const struct quipu_task *);

/*
 * host_clock.c: the CPU time of a task of the host, from @ran on, with instruction addresses if
 * @samples. NULL: the host does not tell.
 * host_clock_ran - its CPU time now, at @least that.
 * host_clock_next - the next address, and the CPU time it is of.
 */
struct host_clock *host_clock_new(pid_t tid, uint64_t ran, bool samples);
uint64_t host_clock_ran(struct host_clock *, uint64_t least);
bool host_clock_next(struct host_clock *, uint64_t *ran, uint64_t *ip);
void host_clock_free(struct host_clock *);

/*
 * sleepers.c.
 * sleepers_exec - @c is about to run @path natively.
 * sleepers_stay - that did not happen.
 * sleepers_begin, sleepers_end - process @pid sleeps for @ns, or does not any more.
 * sleepers_limit - how far the machine's time may follow the host's.
 * sleepers_start - is there one that does not sleep yet? What passes until then is not lost: it
 * may be no sleep.
 */
struct sleeper;
void sleepers_exec(struct gate *, const struct client *, const char *path);
void sleepers_stay(struct gate *, pid_t pid);
void sleepers_begin(struct gate *, pid_t pid, uint64_t ns);
void sleepers_end(struct gate *, pid_t pid);
void sleepers_ended(struct gate *, struct sleeper *);
uint64_t sleepers_limit(struct gate *, uint64_t now);
bool sleepers_start(const struct gate *);
void sleepers_free(struct gate *);

/* hotplug.c: the files that clients see become those of the machine as it is. */
int gate_update_tree(struct gate *);

/* tree_watch.c: what clients write into the machine's files. */
int tree_watch_begin(struct gate *);
void tree_watch_serve(struct gate *);
void tree_watch_renew(struct gate *); /* PMUs came or went */
void tree_watch_end(struct gate *);

#endif
