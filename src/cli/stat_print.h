/* SPDX-License-Identifier: BSD-2-Clause */
/* What `quipu stat` prints: perf stat's table, its -x fields and its -j keys, each number with what
 * it is. Pure output. */
#ifndef QUIPU_CLI_STAT_PRINT_H
#define QUIPU_CLI_STAT_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <quipu/signal.h>

enum stat_state {
	STAT_COUNTED,
	STAT_NOT_COUNTED,   /* opened, but never on a counter */
	STAT_NOT_SUPPORTED, /* the open was refused */
	STAT_NOT_MODELLED, /* the kernel's own event, and the machine has no kernel that does such a
			      thing */
};

struct stat_row {
	size_t where_id; /* 0..; rows of one place (CPU, core, thread ...) derive their ratios from
			    each other */
	const char *where; /* "CPU0", "S0-D0-C1", "S0", "loop-4711"; NULL without aggregation */
	unsigned units;	   /* CPUs of a socket or core */
	const char *name;
	const char *unit; /* "" or "msec", "MiB" */
	double scale;	  /* printed = value * scale */
	uint32_t type;	  /* of the attribute: which ratios the row takes part in */
	uint64_t config;
	unsigned rings; /* exclude_user, _kernel, _hv as bits 0..2: ratios are made within the same
			   rings */
	enum stat_state state;
	double value;	  /* an estimate when running < enabled */
	double deviation; /* of the mean over several runs, percent */
	uint64_t enabled, running;
	bool has_truth; /* @truth: the count had the event been on the PMU all the time */
	double truth;
	enum quipu_exactness exactness;
	const char *reason; /* why there is no count, or why it can only be 0; or NULL */
	const char *remark; /* what its driver says of a count that is there ("counts every
			       privilege level"), or NULL */
};

enum stat_format { STAT_TEXT, STAT_CSV, STAT_JSON };
enum stat_aggregation { STAT_GLOBAL, STAT_CPU, STAT_CORE, STAT_SOCKET, STAT_THREAD };

struct stat_sheet {
	enum stat_format format;
	enum stat_aggregation aggregation;
	const char *separator; /* of -x */
	bool digits;	       /* no thousands separators */
	const char *title;     /* "'./prog'" or "CPU(s) 0,1" */
	unsigned runs;
	bool host;		  /* the host's kernel counted: its own time is the run's */
	bool interval;		  /* @at is the end of the interval; no title, no foot */
	double at;		  /* s, model time */
	double elapsed;		  /* s of model time that the rows stand for */
	double elapsed_deviation; /* s, of the mean over several runs */
	double host_elapsed, host_user, host_system; /* s, mean */
	bool partial;  /* some of what ran was not counted: nothing is exact */
	bool per_mode; /* rows are threes of one event: user, kernel, hypervisor */
	const struct stat_row *rows;
	size_t n;
};

/* stat_print - the sheet, with title and foot. @first: of a sequence of intervals. */
void stat_print(FILE *, const struct stat_sheet *, bool first);

#endif
