/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `quipu record` share: record.c (options, a modelled machine) and record_host.c
 * (where the host's kernel samples). */
#ifndef QUIPU_CLI_RECORD_H
#define QUIPU_CLI_RECORD_H

#include <quipu/machine.h>

#include "cli/events.h"
#include "cli/options.h"
#include "profile/perfdata.h"

enum record_chain { CHAIN_NONE, CHAIN_FP, CHAIN_DWARF };

struct record_options {
	struct run_options run;
	struct options_events events;
	uint64_t period, freq;
	bool system_wide, branches, quiet, no_inherit;
	enum record_chain chain;
	uint64_t stack_bytes; /* of --call-graph dwarf,N */
	uint64_t pages;	      /* --mmap-pages; 0: chosen */
	bool with_regs;	      /* --user-regs */
	const char *regs;     /* of those, which; NULL: all there are */
	uint64_t regs_mask;   /* the same, of the machine (record_registers) */
	const char *cpus, *pids, *tids;
	const char *output;
	char **argv; /* the program */
};

/* record_complete - the attribute of event @i as perf record makes it (perf ABI sheet B3). */
void record_complete(const struct record_options *, struct quipu_event_list *, size_t i);
/* record_registers - what --user-regs asked for, on a machine of @isa, whose samples have @given.
 * 0, or an exit status. */
int record_registers(struct record_options *, enum quipu_isa isa, uint64_t given);
/* record_groups - the groups among the events, to be freed; NULL when there are none. */
struct perfdata_group *record_groups(const struct quipu_event_list *, size_t *n);
/* record_command - @argv as cmd_record got it, with the command itself in front; to be freed. */
char **record_command(char **argv);

/*
 * record_host_wanted - shall the host's kernel sample? As stat_host_wanted.
 * record_host - do it. An exit status.
 */
int record_host_wanted(const struct record_options *, bool *wanted);
int record_host(const struct record_options *, char **argv, const volatile int *stop);

#endif
