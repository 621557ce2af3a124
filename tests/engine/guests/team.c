/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * team N TURNS: N threads at once, each with TURNS turns of work. No instruction of it depends on
 * who comes first: the threads share nothing, and main waits for the end of each by one system
 * call, whether that one is still there or not. (Nor by pthread_join: it looks first.) So what all
 * of them retire is the same every time.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

#define MOST  256
#define STACK 16384

static long turns;
static int tid[MOST];

NAMED int work(void *arg)
{
	uint64_t x = (uintptr_t)arg;

	for (long i = 0; i < turns; i++)
		__asm__ volatile("" : "+r"(x));
	return 0;
}

/* The result is not looked at: errno would be another path. */
static void wait_for(int *word, int was)
{
#ifdef __riscv
	register long a0 __asm__("a0") = (long)word, a1 __asm__("a1") = FUTEX_WAIT,
			 a2 __asm__("a2") = was, a3 __asm__("a3") = 0, a7 __asm__("a7") = SYS_futex;

	__asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a7) : "memory");
#else
	syscall(SYS_futex, word, FUTEX_WAIT, was, NULL);
#endif
}

int main(int argc, char **argv)
{
	long n = guest_arg(argc, argv, 1, 8);
	int known[MOST];

	turns = guest_arg(argc, argv, 2, 1000);
	if (n < 1 || n > MOST)
		return 2;
	for (long i = 0; i < n; i++) {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);
		int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			    CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

		if (stack == MAP_FAILED)
			return 1;
		known[i] = clone(work, stack + STACK, flags, NULL, &tid[i], NULL, &tid[i]);
		if (known[i] < 0)
			return 1;
	}
	for (long i = 0; i < n; i++)
		wait_for(&tid[i], known[i]);
	return 0;
}
