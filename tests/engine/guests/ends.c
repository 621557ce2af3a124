/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ends HOW TURNS: TURNS turns of work, then the end of the process, in one of the ways there are.
 * Each turn is the same instructions: what more turns add to the count must be all there however it
 * ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest.h"

static pthread_t first;
static char *volatile nowhere = (char *)8;

static void *end_of_all(void *arg)
{
	syscall(SYS_exit_group, 3);
	return arg;
}

static void *last_one(void *arg)
{
	pthread_join(first, NULL);
	return arg;
}

static void end(const char *how, char **argv)
{
	char *const again[] = {argv[0], "return", "1", NULL};
	pthread_t thread;

	first = pthread_self();
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "thread") && !pthread_create(&thread, NULL, end_of_all, NULL))
		for (;;)
			pause();
	if (!strcmp(how, "last") && !pthread_create(&thread, NULL, last_one, NULL))
		pthread_exit(NULL);
	if (!strcmp(how, "segv"))
		*(volatile int *)nowhere = 1;
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "exec"))
		execv("/proc/self/exe", again);
}

int main(int argc, char **argv)
{
	long turns = guest_arg(argc, argv, 2, 1000);
	const char *how = argc > 1 ? argv[1] : "return";

	for (volatile long i = 0; i < turns; i++)
		;
	end(how, argv);
	return 3;
}
