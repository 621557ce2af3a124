/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jumps: what disturbs a call stack: longjmp out of depth, signals with and without SA_RESTART, a
 * handler that leaves by siglongjmp, a fault whose instruction is repaired and run again, a fault
 * that a handler steps over. After each, the call stack must be as deep as before. Prints one line.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static jmp_buf env;
static sigjmp_buf senv;
static volatile long hits, steps;
static char *page;

__attribute__((noinline)) static long deep(int n)
{
	if (n == 0)
		longjmp(env, 1);
	return n < 0 ? 0 : deep(n - 1) + 1;
}

__attribute__((noinline)) static void jump_once(void)
{
	if (!setjmp(env))
		steps += deep(50);
	steps++;
}

static void count(int sig)
{
	(void)sig;
	hits++;
}

static void leave(int sig)
{
	(void)sig;
	hits++;
	siglongjmp(senv, 1);
}

__attribute__((noinline)) static void leave_once(void)
{
	if (!sigsetjmp(senv, 1))
		raise(SIGUSR2);
	steps++;
}

static void repair(int sig, siginfo_t *info, void *ctx)
{
	(void)sig;
	(void)info;
	(void)ctx;
	hits++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

#ifdef __riscv
static void step_over(int sig, siginfo_t *info, void *ctx)
{
	(void)sig;
	(void)info;
	hits++;
	((ucontext_t *)ctx)->uc_mcontext.__gregs[REG_PC] += 4;
}

/* Ten instructions around one store that faults. */
__attribute__((noinline)) static void store(char *to)
{
	__asm__ volatile(
		".option push; .option norvc; addi t0, x0, 1; addi t0, t0, 1; addi t0, t0, 1; sd t0, 0(%0);"
		"addi t0, t0, 1; addi t0, t0, 1; addi t0, t0, 1; addi t0, t0, 1; .option pop" ::"r"(
			to)
		: "t0", "memory");
}
#else
/* Other sets: the repaired fault alone. */
__attribute__((noinline)) static void store(char *to)
{
	*(volatile long *)to = 1;
}
#endif

int main(int argc, char **argv)
{
	struct sigaction fix = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
	int faults = argc > 1 ? argv[1][0] - '0' : 0;

	signal(SIGUSR1, count);
	signal(SIGUSR2, leave);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 1000; i++)
		jump_once();
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	for (int i = 0; i < 20; i++)
		leave_once();
	if (faults & 1) {
		sigaction(SIGSEGV, &fix, NULL);
		for (int i = 0; i < 10; i++) {
			mprotect(page, 4096, PROT_READ);
			store(page);
		}
	}
#ifdef __riscv
	if (faults & 2) {
		struct sigaction over = {.sa_sigaction = step_over, .sa_flags = SA_SIGINFO};

		sigaction(SIGSEGV, &over, NULL);
		for (int i = 0; i < 10; i++)
			store((char *)8);
	}
#endif
	printf("hits %ld steps %ld\n", hits, steps);
	return 0;
}
