/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of the commands that run a program: how their command lines are read, and those that
 * all of them have. */
#ifndef QUIPU_CLI_OPTIONS_H
#define QUIPU_CLI_OPTIONS_H

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/run.h"

/* Words without a letter. A command's own begin at OPT_OWN. */
enum { OPT_TRACE = 256, OPT_TIMING, OPT_PARANOID, OPT_NO_LOCAL, OPT_SYSFS, OPT_OWN };

/* clang-format off */
#define OPTIONS_RUN_LETTERS "m:L:vh"
#define OPTIONS_RUN_WORDS                                                                          \
	{"machine", required_argument, NULL, 'm'},                                                 \
	{"sysroot", required_argument, NULL, 'L'},                                                 \
	{"verbose", no_argument, NULL, 'v'},                                                       \
	{"help", no_argument, NULL, 'h'},                                                          \
	{"trace", optional_argument, NULL, OPT_TRACE},                                             \
	{"paranoid", required_argument, NULL, OPT_PARANOID}
/* Of those that count: stat and record. */
#define OPTIONS_COUNT_WORDS                                                                        \
	{"event", required_argument, NULL, 'e'},                                                   \
	{"all-cpus", no_argument, NULL, 'a'},                                                      \
	{"cpu", required_argument, NULL, 'C'},                                                     \
	{"output", required_argument, NULL, 'o'},                                                  \
	{"timing", required_argument, NULL, OPT_TIMING},                                           \
	{"sysfs", required_argument, NULL, OPT_SYSFS},                                             \
	{"no-local", no_argument, NULL, OPT_NO_LOCAL}
/* clang-format on */

/* What a command's own parser returns for an option that it does not have. */
#define OPTIONS_NOT_MINE (-2)

struct options_set {
	const char *command; /* "stat" */
	const char *usage;   /* of --help */
	const char *example; /* of a whole command line */
	const char *letters; /* getopt's, "+:" in front */
	const struct option *words;
	/* Its own options, with getopt's optarg: 0, an exit status, or OPTIONS_NOT_MINE. */
	int (*own)(void *options, int c);
	/* May the program be left out, with these options? NULL: never. */
	bool (*bare)(const void *options, const struct run_options *);
};

/*
 * options_parse - read @argv: @set->own gets each option first, then those of @run. 0: go on, and
 * *left are the words after the options; -1: help was shown; else the exit status, after one line
 * that names the option.
 */
int options_parse(const struct options_set *set, void *options, struct run_options *run, int argc,
		  char **argv, char ***left);

/* A whole number from @min to @max in optarg; @what is the option and @unit what it takes. */
int options_number(const char *what, const char *unit, uint64_t min, uint64_t max, uint64_t *out);

/* Events as given by -e, in order. */
#define OPTIONS_EVENTS 64u

struct options_events {
	const char *texts[OPTIONS_EVENTS];
	size_t n;
};

/* One more -e, of optarg. */
int options_event(struct options_events *);

#endif
