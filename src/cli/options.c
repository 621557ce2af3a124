/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the command lines of stat, record and exec (options.h). The letters are perf's (perf ABI
 * sheet B3). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"

static int parse_paranoid(int *out)
{
	char *end;
	long v = strtol(optarg, &end, 10);

	if (end == optarg || *end || v < -1 || v > 4)
		return cli_error(
			"--paranoid takes -1 to 4, as /proc/sys/kernel/perf_event_paranoid, not '%s'",
			optarg);
	*out = (int)v;
	return 0;
}

static int parse_timing(int *timing)
{
	if (strcmp(optarg, "base") && strcmp(optarg, "full"))
		return cli_error("--timing takes base or full, not '%s'", optarg);
	*timing = optarg[0] == 'f' ? RUN_TIMING_FULL : RUN_TIMING_BASE;
	return 0;
}

static int parse_run(const struct options_set *set, struct run_options *r, int c, const char *text)
{
	switch (c) {
	case 'm': r->machine = optarg; return 0;
	case 'L': r->sysroot = optarg; return 0;
	case 'v': r->verbose = true; return 0;
	case 'h': fputs(set->usage, stdout); return -1;
	case OPT_TRACE: r->trace = optarg ? optarg : ""; return 0;
	case OPT_NO_LOCAL: r->bell = true; return 0;
	case OPT_SYSFS: r->sysfs = optarg; return 0;
	case OPT_PARANOID: return parse_paranoid(&r->paranoid);
	case OPT_TIMING: return parse_timing(&r->timing);
	case ':':
		return cli_error("option '%s' needs a value; `quipu %s --help` explains it", text,
				 set->command);
	}
	return cli_error("quipu %s has no option '%s'; `quipu %s --help` shows those it has",
			 set->command, text, set->command);
}

int options_parse(const struct options_set *set, void *options, struct run_options *run, int argc,
		  char **argv, char ***left)
{
	int c, rc;

	optind = 0; /* start over: getopt keeps its place between commands */
	opterr = 0;
	while ((c = getopt_long(argc, argv, set->letters, set->words, NULL)) != -1) {
		char letter[3] = {'-', (char)optopt, '\0'};

		rc = set->own(options, c);
		/* A bad letter may stand in the middle of an argument; a bad word is the argument
		 * just passed. */
		if (rc == OPTIONS_NOT_MINE)
			rc = parse_run(set, run, c,
				       optopt > 0 && optopt < 256 ? letter : argv[optind - 1]);
		if (rc)
			return rc;
	}
	if (optind == argc && !(set->bare && set->bare(options, run)))
		return cli_error("nothing to run: name a program, for example `%s`", set->example);
	*left = argv + optind;
	return 0;
}

int options_number(const char *what, const char *unit, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(optarg, &end, 0);
	if (!errno && end != optarg && !*end && *optarg != '-' && v >= min && v <= max) {
		*out = v;
		return 0;
	}
	if (max == UINT64_MAX)
		return cli_error("%s takes a whole number of %s above %" PRIu64 ", not '%s'", what,
				 unit, min - 1, optarg);
	return cli_error("%s takes a whole number of %s from %" PRIu64 " to %" PRIu64 ", not '%s'",
			 what, unit, min, max, optarg);
}

int options_event(struct options_events *e)
{
	if (e->n == OPTIONS_EVENTS)
		return cli_error("more than %u times -e; join events with commas", OPTIONS_EVENTS);
	e->texts[e->n++] = optarg;
	return 0;
}
