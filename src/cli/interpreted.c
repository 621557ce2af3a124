/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that is a script: what the kernel makes of its first line (fs/binfmt_script.c,
 * execve(2)). What scripts run in turn is followed by the engine (src/engine/qemu/exec.c).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run.h"

#define MOST_SCRIPTS 4	 /* interpreters that are scripts themselves */
#define LINE_MAX_LEN 256 /* the kernel reads no more */

/* The line behind #!, trimmed. False: @path is no script. */
static bool first_line(const char *path, char line[LINE_MAX_LEN])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, line, LINE_MAX_LEN - 1);
	size_t len;

	if (fd >= 0)
		close(fd);
	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = 0;
	memmove(line, line + 2, (size_t)n - 1);
	len = strcspn(line, "\n");
	while (len && strchr(" \t\r", line[len - 1]))
		len--;
	line[len] = 0;
	memmove(line, line + strspn(line, " \t"), strlen(line + strspn(line, " \t")) + 1);
	return *line;
}

/* The words of @line and @path in place of argv[0]. */
static char **enter(char *line, const char *path, char *const argv[])
{
	char *argument = line + strcspn(line, " \t"), **out;
	size_t n = 0, at = 0;

	if (*argument)
		*argument++ = 0;
	argument += strspn(argument, " \t");
	while (argv[n])
		n++;
	out = calloc(n + 3, sizeof(*out));
	if (!out)
		return NULL;
	out[at++] = strdup(line);
	if (*argument)
		out[at++] = strdup(argument);
	out[at++] = strdup(path);
	for (size_t i = 1; i < n; i++)
		out[at++] = strdup(argv[i]);
	return out;
}

void cli_free_argv(char **argv)
{
	for (char **a = argv; a && *a; a++)
		free(*a);
	free(argv);
}

char **cli_interpreted(char *const argv[])
{
	char **now = NULL;

	for (unsigned depth = 0; depth < MOST_SCRIPTS; depth++) {
		char *const *present = now ? now : argv;
		char line[LINE_MAX_LEN], *path = cli_find_program(present[0]), **next = NULL;

		if (path && first_line(path, line))
			next = enter(line, path, present);
		free(path);
		if (!next)
			break;
		cli_free_argv(now);
		now = next;
	}
	return now;
}
