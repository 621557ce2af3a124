/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * obey: takes what standard input says, a byte at a time, does it and says so on standard output: w
 * a piece of work, f the same in a child, s goes round until SIGUSR1; c makes a thread that obeys
 * like the first. What w and f cost does not depend on who does it, or on when.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

#define STEPS 20000

static volatile sig_atomic_t enough;
static volatile char table[1 << 16];

static void stop(int signal)
{
	(void)signal;
	enough = 1;
}

NAMED void work(void)
{
	unsigned at = 1;

	for (int i = 0; i < STEPS; i++) {
		at = at * 1103515245 + 12345;
		if (at & 1 << 20)
			table[at >> 16] = 1;
	}
}

static void in_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		work();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void go_round(void)
{
	while (!enough)
		work();
	enough = 0;
}

static void *obey(void *arg)
{
	pthread_t thread;
	char what;

	(void)arg;
	while (read(0, &what, 1) == 1) {
		if (what == 'f')
			in_child();
		else if (what == 's')
			go_round();
		else if (what == 'c')
			pthread_create(&thread, NULL, obey, NULL);
		else
			work();
		if (write(1, &what, 1) != 1)
			break;
	}
	return NULL;
}

int main(void)
{
	signal(SIGUSR1, stop);
	obey(NULL);
	return 0;
}
