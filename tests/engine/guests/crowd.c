/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crowd WHAT N: N threads at once that depend on one another: each waits for all others (barrier),
 * for the one before it (order; for a byte of it, pipe; for signals and bytes, which it gets as
 * they come, kick), in a loop (spin, yield), forks (fork), or sleeps beside the others (sleep); or
 * the last one ends it all while the others run for ever: exit, exec, a fault, SIGTERM, SIGKILL.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

#define MOST 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long turn, n;
static int pipes[MOST][2];
static pthread_t thread[MOST];
static volatile int flag;
static char **words;
static char *volatile nowhere = (char *)8;

static void compute(long turns)
{
	for (volatile long i = 0; i < turns; i++)
		;
}

static void in_order(long me)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		while (turn != me)
			pthread_cond_wait(&moved, &lock);
		turn = (turn + 1) % n;
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
}

/* Each wakes the next one, and sleeps until its turn comes round. */
static void by_pipe(long me)
{
	char byte = 0;

	for (int i = 0; i < 20; i++) {
		if (!me && write(pipes[1][1], &byte, 1) != 1)
			return;
		if (read(pipes[me][0], &byte, 1) != 1)
			return;
		compute(1000 * me);
		if (me && write(pipes[(me + 1) % n][1], &byte, 1) != 1)
			return;
	}
}

static void on_signal(int sig)
{
	(void)sig;
}

/* A signal and two bytes for the next, one by one: how many calls the next needs for them says how
 * far this one had come. */
static void kick(long me)
{
	struct sigaction act = {.sa_handler = on_signal};
	long next = (me + 1) % n;
	char bytes[8] = "";

	if (!me)
		sigaction(SIGUSR1, &act, NULL);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 20; i++) {
		if (i || me)
			for (ssize_t got = 0; got < 2;) {
				ssize_t k = read(pipes[me][0], bytes, sizeof(bytes));

				got += k > 0 ? k : 0;
			}
		compute(1000 * me);
		pthread_kill(thread[next], SIGUSR1);
		for (int k = 0; k < 2; k++)
			if (write(pipes[next][1], bytes, 1) != 1)
				abort();
	}
	pthread_barrier_wait(&barrier); /* nobody is signalled who was joined */
}

static void sleeps(long me)
{
	for (int i = 0; i < 5; i++) {
		struct timespec ts = {0, 1000000 * me};

		compute(100000);
		nanosleep(&ts, NULL);
	}
}

static void all_together(long me)
{
	for (int i = 0; i < 20; i++) {
		compute(1000 * me);
		pthread_barrier_wait(&barrier);
	}
}

static void forks(long me)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		free(malloc(1000 * (size_t)(me + 1)));
	}
}

static void wait_in(long me, void (*pause)(void))
{
	if (!me) {
		compute(1000000);
		flag = 1;
	}
	while (!flag)
		if (pause)
			pause();
}

static void yield(void)
{
	sched_yield();
}

static void spins(long me)
{
	wait_in(me, NULL);
}

static void yields(long me)
{
	wait_in(me, yield);
}

static void ends(long me)
{
	char *const next[] = {words[0], "none", "1", NULL};

	if (me < n - 1)
		for (;;)
			;
	compute(100000);
	if (!strcmp(words[1], "exit"))
		exit(7);
	if (!strcmp(words[1], "exec"))
		execv("/proc/self/exe", next);
	if (!strcmp(words[1], "fault"))
		*(volatile int *)nowhere = 1;
	kill(getpid(), strcmp(words[1], "kill") ? SIGTERM : SIGKILL);
}

static const struct {
	const char *name;
	void (*work)(long me);
} whats[] = {
	{"order", in_order}, {"barrier", all_together}, {"fork", forks},
	{"spin", spins},     {"yield", yields},		{"exit", ends},
	{"exec", ends},	     {"fault", ends},		{"term", ends},
	{"kill", ends},	     {"pipe", by_pipe},		{"sleep", sleeps},
	{"kick", kick},
};

static void *start(void *arg)
{
	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++)
		if (!strcmp(whats[i].name, words[1]))
			whats[i].work((long)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	words = argv;
	n = guest_arg(argc, argv, 2, 4);
	if (argc < 2 || !strcmp(argv[1], "none") || n < 1 || n > MOST)
		return 5;
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (long i = 0; i < n; i++)
		if (pipe(pipes[i]))
			return 1;
	for (long i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, start, (void *)i))
			return 1;
	for (long i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
