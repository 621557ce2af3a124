/* SPDX-License-Identifier: BSD-2-Clause */
/* forktree DEPTH: each process forks two children, DEPTH levels deep, and works a little; a vfork
 * at the root. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void tree(int depth)
{
	for (int i = 0; depth && i < 2; i++) {
		pid_t pid = fork();

		if (!pid) {
			tree(depth - 1);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	for (volatile int i = 0; i < 1000; i++)
		;
}

int main(int argc, char **argv)
{
	pid_t pid;

	tree(argc > 1 ? atoi(argv[1]) : 3);
	pid = vfork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return 0;
}
