/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spawns N: N times each: system() of a shell that ends with 3, posix_spawn (vfork and exec) of
 * itself, a fork whose child execs itself. 0 when every status was the right one.
 */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

extern char **environ;

static int status_of(pid_t pid)
{
	int status = -1;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

int main(int argc, char **argv)
{
	char *child[] = {argv[0], "0", NULL};
	long n = guest_arg(argc, argv, 1, 1);

	if (!n)
		return 4;
	for (long i = 0; i < n; i++) {
		int status = system("exit 3");
		pid_t pid;

		if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
			return 1;
		if (posix_spawn(&pid, argv[0], NULL, NULL, child, environ) || status_of(pid) != 4)
			return 2;
		pid = fork();
		if (!pid) {
			execv(argv[0], child);
			_exit(127);
		}
		if (status_of(pid) != 4)
			return 3;
	}
	return 0;
}
