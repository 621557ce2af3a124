/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forker [CHILDREN [ITERATIONS]]: forks children one after the other; each calls child_work, the
 * parent parent_work. Ends with 0 when every child ended with 7.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

NAMED long child_work(long n)
{
	for (long i = 0; i < n; i++)
		__asm__ volatile("");
	return n;
}

NAMED long parent_work(long n)
{
	for (long i = 0; i < n; i++)
		__asm__ volatile("");
	return n;
}

int main(int argc, char **argv)
{
	long children = guest_arg(argc, argv, 1, 2), n = guest_arg(argc, argv, 2, 100000);

	for (long i = 0; i < children; i++) {
		int status;
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (pid == 0)
			_exit(child_work(n) == n ? 7 : 1);
		if (parent_work(n) != n || waitpid(pid, &status, 0) != pid)
			return 2;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
			return 1;
	}
	return 0;
}
