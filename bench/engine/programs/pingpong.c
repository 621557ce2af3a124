/* SPDX-License-Identifier: BSD-2-Clause */
/* pingpong [N]: two processes wake each other through a futex N times; prints the nanoseconds of a
 * round trip. What a doorbell is measured against (T11). */
#include <inttypes.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void wait_for(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		syscall(SYS_futex, word, FUTEX_WAIT, value - 1, NULL, NULL, 0);
}

static void wake(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 100000, *word;
	uint64_t begin;
	pid_t other;

	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (word == MAP_FAILED)
		return 2;
	other = fork();
	if (other < 0)
		return 2;
	if (!other) {
		for (uint32_t i = 1; i <= n; i++) {
			wait_for(&word[0], i);
			wake(&word[16], i);
		}
		return 0;
	}
	begin = now_ns();
	for (uint32_t i = 1; i <= n; i++) {
		wake(&word[0], i);
		wait_for(&word[16], i);
	}
	printf("%" PRIu64 "\n", (now_ns() - begin) / (n ? n : 1));
	waitpid(other, NULL, 0);
	return 0;
}
