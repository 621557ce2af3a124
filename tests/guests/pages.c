/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages: maps memory, touches each 64 KiB of it, works a little, and gives it back, many times. In
 * a partition each first touch, each unmapping and each yield is the hypervisor's business too.
 */
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>

#define ROUNDS 300u
#define PAGES  64u
#define PAGE   65536u

__attribute__((noinline)) static uint64_t scramble(uint64_t v)
{
	for (unsigned i = 0; i < 100; i++)
		v = (v ^ v >> 29) * 0x9e3779b97f4a7c15;
	return v;
}

__attribute__((noinline)) static uint64_t touch(volatile unsigned char *memory)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		memory[(uint64_t)i * PAGE] = (unsigned char)i;
		sum += scramble(i + memory[(uint64_t)i * PAGE]);
	}
	return sum;
}

int main(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return 1;
		sum ^= touch(memory);
		munmap(memory, PAGES * PAGE);
		sched_yield();
	}
	return sum == 1;
}
