/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heavy forks|signals|jit N: N children one after the other, N signals to itself, or N times a
 * function of two variants that is written anew and called. Each costs the same every time, so that
 * what 2N cost less what N cost is N of them.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long seen;

static void handler(int sig)
{
	seen += sig != 0;
}

static int forks(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			for (volatile int k = 0; k < 1000; k++)
				;
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

static int signals(long n)
{
	struct sigaction sa = {.sa_handler = handler};
	long pid = syscall(SYS_getpid);

	sigaction(SIGUSR1, &sa, NULL);
	for (long i = 0; i < n; i++)
		syscall(SYS_kill, pid, SIGUSR1);
	return seen != n;
}

static int jit(long n)
{
	/* li a0,1 or li a0,2; ret */
	static const uint32_t variant[2][2] = {{0x00100513, 0x00008067}, {0x00200513, 0x00008067}};
	uint32_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long sum = 0;

	if (code == MAP_FAILED)
		return 1;
	for (long i = 0; i < n; i++) {
		code[0] = variant[i & 1][0];
		code[1] = variant[i & 1][1];
		__asm__ volatile("fence.i" ::: "memory");
		sum += ((long (*)(void))code)();
	}
	return sum != n / 2 * 3;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (n <= 0)
		return 2;
	if (!strcmp(argv[1], "forks"))
		return forks(n);
	if (!strcmp(argv[1], "signals"))
		return signals(n);
	return strcmp(argv[1], "jit") ? 2 : jit(n);
}
