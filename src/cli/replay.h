/* SPDX-License-Identifier: BSD-2-Clause */
/* quipu replay: what its two kinds of traces share. */
#ifndef QUIPU_CLI_REPLAY_H
#define QUIPU_CLI_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct replay_options {
	const char *machine, *file; /* machine NULL: the default of the trace's kind */
	const char *events;	    /* CPU traces: -e */
	uint64_t period;	    /* -c; 0: no samples */
	int timing;		    /* enum run_timing */
	bool json;
};

/* replay_cpu - a CPU trace whose first line has been read. Returns the exit status. */
int replay_cpu(const struct replay_options *, FILE *);

#endif
