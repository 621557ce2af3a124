/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are announced by themselves. Engine sheet 10.1, and QEMU 10.0's plugins/core.c.
 *
 * QEMU 7.2 calls vcpu_init in the thread that makes another one, before that runs. QEMU 10 calls it
 * in the new thread, which knows its vCPU and not its maker; the maker learns the tid of what it
 * made from the result of its call, and not the vCPU. Both wait here for what the other knows: the
 * maker at the end of its call, the new thread before its first block counts. So the machine hears
 * of a thread from its maker first, as it does under 7.2, whoever is faster on the host.
 *
 * The maker waits outside of blocks, where QEMU does not wait for it; the new thread waits in its
 * first block for no longer than its maker's bell takes. Both waits are bounded: who gives up runs
 * on uncounted, and that is said.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "plugin.h"

#define NEWBORN	    512u /* of threads that are being made at a time */
#define SLICE_NS    100000000L
#define MOST_SLICES 100u /* 10 s, as of a bell */

static uint64_t newborn[NEWBORN]; /* tid << 32 | vCPU + 1; 0: free */
static uint32_t come;		  /* futex: one more has */

/* Until *@word is not @seen any more, or a little. False: no more patience. */
static bool wait_a_little(uint32_t *word, uint32_t seen, unsigned *slices)
{
	const struct timespec slice = {0, SLICE_NS};
	long rc = syscall(SYS_futex, word, FUTEX_WAIT, seen, &slice, NULL, 0);

	if (__atomic_load_n(&engine.head->closing, __ATOMIC_ACQUIRE))
		return false;
	return !(rc && errno == ETIMEDOUT && ++*slices == MOST_SLICES);
}

static void wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void births_come(unsigned index)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	uint64_t me = (uint64_t)tid << 32 | (index + 1);

	for (unsigned i = 0; i < NEWBORN; i++) {
		uint64_t none = 0;

		if (__atomic_compare_exchange_n(&newborn[(tid + i) % NEWBORN], &none, me, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			break;
	}
	__atomic_add_fetch(&come, 1, __ATOMIC_SEQ_CST);
	wake(&come);
}

static bool take(uint32_t tid, unsigned *index)
{
	for (unsigned i = 0; i < NEWBORN; i++) {
		uint64_t *place = &newborn[(tid + i) % NEWBORN];
		uint64_t word = __atomic_load_n(place, __ATOMIC_SEQ_CST);

		if (word >> 32 != tid)
			continue;
		__atomic_store_n(place, 0, __ATOMIC_SEQ_CST);
		*index = (uint32_t)word - 1;
		return true;
	}
	return false;
}

bool births_await(uint32_t tid, unsigned *index)
{
	unsigned slices = 0;
	int err = errno;
	bool found;

	for (;;) {
		uint32_t seen = __atomic_load_n(&come, __ATOMIC_SEQ_CST);

		found = take(tid, index);
		if (found || !wait_a_little(&come, seen, &slices))
			break;
	}
	errno = err;
	return found;
}

void births_told(struct vcpu *child, enum birth how)
{
	__atomic_store_n(&child->birth, how, __ATOMIC_SEQ_CST);
	wake(&child->birth);
}

bool births_known(struct vcpu *self)
{
	unsigned slices = 0;
	int err = errno;
	uint32_t how;

	while ((how = __atomic_load_n(&self->birth, __ATOMIC_SEQ_CST)) == BIRTH_UNKNOWN)
		if (!wait_a_little(&self->birth, BIRTH_UNKNOWN, &slices))
			break;
	errno = err;
	return how == BIRTH_TOLD;
}

void births_forget(void)
{
	memset(newborn, 0, sizeof(newborn));
}
