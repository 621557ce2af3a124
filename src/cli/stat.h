/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `quipu stat` share: stat.c (options, the story), stat_open.c (events),
 * stat_rows.c (from counts to lines), stat_host.c (where the host's kernel counts). */
#ifndef QUIPU_CLI_STAT_H
#define QUIPU_CLI_STAT_H

#include <locale.h>
#include <stdio.h>

#include "cli/events.h"
#include "cli/options.h"
#include "cli/stat_print.h"

struct stat_options {
	struct run_options run;
	struct options_events events;
	bool system_wide, no_inherit, no_merge, append, digits, per_mode;
	const char *pids, *tids; /* -p, -t: lists */
	unsigned detail;
	uint64_t runs, interval_ms;
	const char *cpus, *output, *separator;
	enum stat_format format;
	enum stat_aggregation aggregation;
	char **argv; /* the program */
};

/* An event on one CPU or thread. */
struct handle {
	struct quipu_event *event; /* NULL: refused, or the host's */
	int fd;			   /* the host's event; -1 */
	size_t where;		   /* index of stat.places */
	int cpu;		   /* -1: follows the task */
	pid_t pid;		   /* on the host: whom it follows, -1 */
	struct quipu_count last;   /* at the end of the last interval */
};

/* An event of the user's list, with its handles. */
struct counter {
	struct handle *handles;
	size_t n;
	enum stat_state refused; /* STAT_COUNTED: it was opened */
	char *reason;
	enum quipu_exactness exactness;
};

/* A CPU, core, socket or thread that has lines of its own. */
struct place {
	char label[48];
	unsigned key;
};

/* A line of output over several runs. */
struct series {
	double mean, m2, truth;
	double enabled, running; /* sums */
};

struct stat {
	const struct stat_options *options;
	struct run run;
	struct stat_host *host;	       /* the kernel counts; NULL: a modelled machine */
	struct quipu_catalog *catalog; /* of the modelled machine */
	struct quipu_event_list list;
	struct counter *counters; /* [list.n] */
	unsigned *cpus;
	size_t ncpus;
	struct place *places;
	size_t nplaces;
	FILE *out;
	char *title;
	struct stat_row *rows;
	size_t nrows;
	struct series *series;		 /* of each row; -r only */
	struct series elapsed, times[3]; /* times: elapsed, user, system of the host */
	unsigned done;			 /* runs */
	double last_at;
	bool printed, open, failed;
	bool partial;	 /* some of what ran was not counted */
	locale_t locale; /* of the table: thousands as the user writes them, as perf does */
};

/* ---- stat_open.c ---- */

/* Read the events that were asked for. 0 or an exit status. */
int stat_parse(struct stat *);
/* The events of @text at the end of the list; stat_host.c. */
int stat_host_parse(struct stat *, const char *text);
/* Open them all. 0 or an exit status. */
int stat_open(struct stat *);
/* Does the event belong to CPUs, not to tasks? */
bool stat_by_cpu(const struct stat *, const struct quipu_parsed *);
/* The leader's handle on the same CPU, task and place; NULL: @i leads itself. */
struct handle *stat_leader(const struct stat *, size_t i, const struct handle *);
/* The place of @key, made when it is new; SIZE_MAX: no memory. */
size_t stat_place(struct stat *, unsigned key, const char *label);
struct handle *stat_add_handle(struct counter *, size_t where, int cpu, pid_t);
void stat_close_counter(struct counter *);
/* The event is left out, for @reason. */
void stat_leave_out(struct counter *, const char *reason);
/* A thread was made: it gets events of its own (--per-thread). @arg: struct stat. */
void stat_on_task(void *arg, struct quipu_task *);

/* ---- stat_rows.c ---- */

/* Make the lines of what was counted since the last time. 0 or an exit status. */
int stat_rows(struct stat *);
/* Take this run's lines into the series, and turn them into means. */
int stat_add_run(struct stat *);
/* Standard deviation of the mean of @n runs. */
double stat_deviation(const struct series *, unsigned n);
void stat_series_add(struct series *, double v, unsigned n);

/* ---- stat_host.c ---- */

/*
 * stat_host_wanted - should the kernel count? Asked for by -m host, -p, -t or --sysfs, or the
 * program is the host's own and the kernel can count what was asked. When it is not, and could have
 *	been, one line says why. 0 or an exit status.
 * stat_host_* - the steps of a run there; each 0 or an exit status.
 */
struct stat_host *stat_host_new(void);
void stat_host_free(struct stat_host *);
int stat_host_wanted(const struct stat_options *, bool *wanted);
int stat_host_prepare(struct stat *);
int stat_host_open_tasks(struct stat *, size_t i);
int stat_host_open_one(struct stat *, size_t i, struct handle *);
/* What to do about an event that was refused: 0, it was left out; else an exit status. */
int stat_host_refuse(struct stat *, size_t i, int err);
int stat_host_cpus(struct stat *);
const struct host_cpu *stat_host_cpu(struct stat *, int cpu);
/* Run, and wait; @interval is called as often as was asked for. *status: the program's. */
int stat_host_go(struct stat *, const volatile int *stop, void (*interval)(void *, uint64_t now),
		 int *status);
double stat_host_elapsed(const struct stat *);
void stat_host_times(const struct stat *, double times[3]);
void stat_host_notes(struct stat *, bool interrupted);
void stat_host_close(struct stat *);

#endif
