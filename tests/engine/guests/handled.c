/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handled N: N signals to itself, handled on a stack of their own; handled wait N: a read that N
 * signals of a child interrupt and that goes on each time (SA_RESTART). Prints how many handlers
 * ran.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

static char stack[65536];
static volatile long seen;

static void handler(int sig)
{
	seen += sig != 0;
}

static int interrupted(long n)
{
	pid_t parent = getpid(), child;
	int fd[2];
	char byte;

	if (pipe(fd))
		return 1;
	child = fork();
	if (!child) {
		for (long i = 0; i < n; i++) {
			kill(parent, SIGUSR1);
			usleep(2000);
		}
		_exit(write(fd[1], "x", 1) != 1);
	}
	if (child < 0 || read(fd[0], &byte, 1) != 1)
		return 1;
	waitpid(child, NULL, 0);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK};
	stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};
	bool wait = argc > 2 && !strcmp(argv[1], "wait");
	long n = guest_arg(argc, argv, wait ? 2 : 1, 1000);
	int rc = 0;

	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	if (wait)
		rc = interrupted(n);
	else
		for (long i = 0; i < n; i++)
			syscall(SYS_kill, getpid(), SIGUSR1);
	printf("%ld\n", seen);
	return rc || (!wait && seen != n);
}
