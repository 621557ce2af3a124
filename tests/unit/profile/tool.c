/* SPDX-License-Identifier: BSD-2-Clause */
/* report and script alone, as a command: what the tests compare with the stock perf. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

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

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	return strcmp(argv[1], "report") ? cmd_script(argc - 1, argv + 1)
					 : cmd_report(argc - 1, argv + 1);
}
