/* SPDX-License-Identifier: BSD-2-Clause */
/* A program on a machine: what stat and record have in common. Machine, session, system, events,
 * exit status. */
#ifndef QUIPU_CLI_RUN_H
#define QUIPU_CLI_RUN_H

#include <stdio.h>

#include <quipu/system.h>
#include <quipu/tree.h>

#include "engine/session.h"

/* What a machine's cycles are made of: as its tree says unless the user does. */
enum run_timing { RUN_TIMING_TREE, RUN_TIMING_BASE, RUN_TIMING_FULL };

struct run_options {
	const char *machine; /* -m, or NULL: chosen by the program's ELF header */
	const char *sysroot; /* -L */
	const char *sysfs;   /* --sysfs: a recorded /sys for the host's own PMUs */
	bool stack;	     /* -g */
	bool branches;	     /* -b */
	bool bell;	     /* --no-local: every overflow waits for the machine (testing) */
	int timing;	     /* --timing: enum run_timing */
	const char
		*trace; /* --trace[=F]: calls between driver and firmware; "" for standard error */
	bool verbose;	/* -v */
	int paranoid;	/* -1 */
	int first_type; /* of the machine's PMUs; 0: as a kernel's */
	void (*task_new)(void *arg, struct quipu_task *);
	void *task_arg;
	void (*wake)(void *arg, struct quipu_event *, unsigned bits);
	void *wake_arg;
	void (*sigio)(void *arg, struct quipu_event *, int code); /* gets wake_arg */
	void (*tick)(void *arg); /* called all the time while a program runs, ten times a second at
				    least */
	void *tick_arg;
	bool house; /* quipu exec: an engine without a program of its own */
};

/* Why a program is ended before it is through. */
enum run_stop { RUN_ON, RUN_INTERRUPTED, RUN_IN_VAIN /* a disk is full; told by who found it */ };

struct run {
	struct quipu_machine *machine;
	struct quipu_system *system;
	struct quipu_core *core; /* of the system */
	struct quipu_tree *tree; /* with house: the generated sysfs that clients see */
	struct session *session; /* NULL when no program runs */
	struct quipu_task *task; /* the program's first thread */
	struct quipu_caller caller;
	struct quipu_manual_signals *manual; /* stands in for an engine when no program runs */
	void (*tick)(void *arg);
	void *tick_arg;
	char *plugin;
	char **argv; /* of a script: its interpreter's; NULL otherwise */
	FILE *trace_file;
	int stopped; /* enum run_stop: the program was ended by us */
};

/*
 * run_open - load the machine (by name, file, or the ELF header of @argv[0]), make session and
 * system, hold the program before its first instruction. @argv NULL: a machine without a program
 * (list; with house, one whose session is opened by whoever serves it). On error prints one line
 * "quipu: ..." with reason and remedy and returns the exit status (127 not found, 126 not
 * executable, 2 otherwise); 0 on success.
 */
int run_open(struct run *, const struct run_options *, char *const argv[]);
/*
 * run_go - let the program run to its end. Every event that must count is open by now. @ctl_stop:
 * enum run_stop, set by a signal handler to end early (the program is stopped, everything so far is
 * served). Returns the exit status to end with: the program's own, or 128 + signal.
 */
int run_go(struct run *, const volatile int *ctl_stop);
/* run_partial - did anything run uncounted, or was anything lost, up to now? */
bool run_partial(const struct run *);
/* run_unmodelled - why no machine counts @attr although it opens (a kernel's own events), or NULL.
 */
const char *run_unmodelled(const struct quipu_attr *attr);
/* run_notes - the lines that tell what is not whole or not repeatable, on standard error. */
void run_notes(const struct run *, bool verbose);
/* run_report - what the machine's rooms have to say of a run at its end (quipu_system_report). */
void run_report(const struct run *);
/* run_house_notes - the same of all programs that ran under quipu exec. */
void run_house_notes(const struct run *, bool verbose);
void run_close(struct run *);

/*
 * cli_interpreted - the command line that the kernel would run for the script argv[0]; NULL: it
 * is none.
 * cli_find_program - where execvp would find @name, NULL: nowhere. To be freed.
 */
char **cli_interpreted(char *const argv[]);
void cli_free_argv(char **argv);
char *cli_find_program(const char *name);

/* run_catch - @handler for the signals that ask a command to finish: Ctrl-C, kill, the terminal
 * that goes away (unless it was started to outlive that: nohup). */
void run_catch(void (*handler)(int));

/* cli_remove_file - remove @path if it is a regular file (not /dev/full, nor a pipe). */
void cli_remove_file(const char *path);

/* The QEMU plugin: QUIPU_PLUGIN, the build tree's, or the installed one. The caller frees it. */
char *cli_plugin_path(void);
/*
 * cli_module_path - a module of ours: @variable of the environment, @build_folder (relative to the
 * command's folder) in the build tree, or where modules are installed. The caller frees it.
 */
char *cli_module_path(const char *variable, const char *build_folder, const char *file);

#endif
