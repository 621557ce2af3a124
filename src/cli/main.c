/* SPDX-License-Identifier: BSD-2-Clause */
/* quipu: finds the subcommand and runs it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "config.h"

const struct command commands[] = {
	{"list", "the events of a machine", cmd_list},
	{"stat", "run a program and count", cmd_stat},
	{"record", "run a program and sample it into perf.data", cmd_record},
	{"report", "where the samples of perf.data fell", cmd_report},
	{"script", "the samples of perf.data, one by one", cmd_script},
	{"exec", "run perf, any perf_event client, or a shell on a machine", cmd_exec},
	{"replay", "a trace on a machine: of a CPU, or of DMA on a remapping unit", cmd_replay},
	{"export", "a recording in a form for other tools", cmd_export},
	{"resolve", "addresses of hypervisor code become names", cmd_resolve},
	{"machine", "list, show and check machines", cmd_machine},
	{"doctor", "what this host can and cannot do, and why", cmd_doctor},
	{0},
};

int cli_error(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("quipu: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return 2;
}

bool cli_progress(void)
{
	return isatty(STDERR_FILENO);
}

bool cli_colour(void)
{
	return isatty(STDOUT_FILENO);
}

static void usage(FILE *f)
{
	fputs("usage: quipu COMMAND [OPTIONS] [--] [PROGRAM ...]\n\n", f);
	for (const struct command *c = commands; c->name; c++)
		fprintf(f, "  %-8s  %s\n", c->name, c->summary);
	fputs("\n`quipu help COMMAND` explains a command; `quipu doctor` explains this host.\n", f);
}

/* What was printed must have arrived: a full disk is an error of the command that filled it. */
static int finish(int status)
{
	int err = ferror(stdout) ? EIO : 0;

	errno = 0;
	if (fflush(stdout))
		err = errno;
	if (!err)
		return status;
	cli_error("standard output: %s", strerror(err));
	return status ? status : 1;
}

static int run(int argc, char **argv)
{
	for (const struct command *c = commands; c->name; c++)
		if (!strcmp(argv[0], c->name))
			return finish(c->main(argc, argv));
	return cli_error("no command '%s'; `quipu help` lists them", argv[0]);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "help") && argc > 2) { /* `help stat` is `stat --help` */
		char *const help[] = {argv[2], "--help", NULL};

		return run(2, (char **)help);
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return finish(0);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
		printf("quipu %s\n", QUIPU_VERSION);
		return finish(0);
	}
	return run(argc - 1, argv + 1);
}
