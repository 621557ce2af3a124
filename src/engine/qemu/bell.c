/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a vCPU waits for the machine, and the interrupt ring by which it usually does not have to.
 * Engine sheet 11.2.
 *
 * Every wait is bounded, and so is their number: a vCPU that is stuck in a callback blocks
 * exit_group and default signals of its process.
 */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "plugin.h"

#define SLICE_NS    100000000L
#define MOST_SLICES 100 /* 10 s: a machine that lives and does not answer */

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* True: it slept. */
static bool wake_machine(void)
{
	struct seg_header *h = engine.head;

	__atomic_fetch_or(&h->pending, UINT64_C(1) << engine.slot, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&h->machine_wake, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&h->machine_asleep, __ATOMIC_SEQ_CST))
		return false;
	syscall(SYS_futex, &h->machine_wake, FUTEX_WAKE, 1, NULL, NULL, 0);
	return true;
}

void bell_tell(void)
{
	wake_machine();
}

static bool answered(struct seg_vcpu *v)
{
	return __atomic_load_n(&v->ack, __ATOMIC_SEQ_CST) == v->bell;
}

/*
 * Signals still reach a process that has ended and that its parent has not waited for, but it has
 * no memory. Where that may not be asked it counts as alive. This way needs no descriptor, which
 * another thread of the guest could close or be given meanwhile.
 */
static bool has_ended(pid_t pid)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {NULL, 1};

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno == ESRCH)
		return true;
	return kill(pid, 0) && errno == ESRCH;
}

static bool machine_left(void)
{
	struct seg_header *h = engine.head;

	return __atomic_load_n(&h->closing, __ATOMIC_ACQUIRE) || has_ended((pid_t)h->machine_pid);
}

void bell_look(void)
{
	if (engine.slot >= 0 && machine_left())
		select_leave();
}

static bool spin(struct seg_vcpu *v)
{
	for (uint32_t i = engine.head->spin; i; i--) {
		if (answered(v))
			return true;
		pause_cpu();
	}
	return answered(v);
}

/* False: nobody answered. */
static bool sleep_until_answered(struct seg_vcpu *v)
{
	struct timespec slice = {0, SLICE_NS};
	uint32_t seen, beat = 0, now;
	int timeouts = 0;

	__atomic_store_n(&v->sleeping, 1, __ATOMIC_SEQ_CST);
	while ((seen = __atomic_load_n(&v->ack, __ATOMIC_SEQ_CST)) != v->bell) {
		long rc = syscall(SYS_futex, &v->ack, FUTEX_WAIT, seen, &slice, NULL, 0);

		now = __atomic_load_n(&engine.head->beat, __ATOMIC_RELAXED);
		if (now != beat && __atomic_load_n(&v->held, __ATOMIC_RELAXED))
			timeouts = 0; /* it waits for its turn, and the machine lives */
		beat = now;
		if (rc && errno == ETIMEDOUT && ++timeouts == MOST_SLICES)
			break;
		if (rc && errno != EINTR && machine_left())
			break;
	}
	__atomic_store_n(&v->sleeping, 0, __ATOMIC_SEQ_CST);
	return answered(v);
}

/* A wait ran out, of whatever process, and the machine has not come to serve anyone since. */
static bool silent(void)
{
	return __atomic_load_n(&engine.head->unheard, __ATOMIC_SEQ_CST);
}

static void lose(struct seg_vcpu *v)
{
	__atomic_store_n(&engine.head->unheard, 1, __ATOMIC_SEQ_CST);
	v->lost++;
	bell_look();
}

/* What a machine that lives again finds in the ring and in the counts anyway. */
#define REPEATED (SEG_BELL_DEADLINE | SEG_BELL_RING)

/*
 * For a machine that did not answer nobody waits a second time, or a program would spend such a
 * wait on each sample and each process it makes. They ring on, and what it has yet to hear is not
 * written over by what is repeated.
 */
void bell_ring(struct seg_vcpu *v, uint32_t reason, uint64_t arg, uint64_t slots, uint64_t pc)
{
	uint32_t state;
	int err = errno;
	bool slept, unheard;

	if (engine.slot < 0 || __atomic_load_n(&engine.head->closing, __ATOMIC_ACQUIRE))
		return;
	unheard = silent();
	if (unheard && !(reason & ~REPEATED)) {
		v->lost++;
		wake_machine();
		return;
	}
	v->reason = reason;
	v->arg = arg;
	v->slots = slots;
	v->pc = pc;
	state = __atomic_exchange_n(&v->state, SEG_WAITING, __ATOMIC_SEQ_CST);
	__atomic_store_n(&v->bell, v->bell + 1, __ATOMIC_RELEASE);
	/* A machine that slept takes longer to come than it pays to spin for. */
	slept = wake_machine();
	if (unheard || (!(slept ? answered(v) : spin(v)) && !sleep_until_answered(v)))
		lose(v);
	__atomic_store_n(&v->state, state, __ATOMIC_RELEASE);
	errno = err;
}

/* ---- the interrupt ring ---- */

static struct seg_ring *ring_of(const struct seg_vcpu *v)
{
	return &engine.rings[vcpu_index(v)];
}

static uint64_t used(struct seg_ring *r)
{
	return r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
}

/* With a record that does not fit before the end, the end is skipped. */
static bool fits(struct seg_ring *r, uint32_t size)
{
	uint64_t left = SEG_RING_BYTES - r->head % SEG_RING_BYTES;

	return used(r) + size + (size > left ? left : 0) <= SEG_RING_BYTES;
}

bool ring_room(struct seg_vcpu *v, uint32_t size)
{
	if (engine.slot < 0 || !engine.head->exact || fits(ring_of(v), size))
		return false;
	bell_ring(v, SEG_BELL_RING, 0, 0, 0);
	return true;
}

void *ring_reserve(struct seg_vcpu *v, uint32_t size)
{
	struct seg_ring *r;
	uint64_t at, left;

	if (engine.slot < 0)
		return NULL;
	r = ring_of(v);
	at = r->head % SEG_RING_BYTES;
	left = SEG_RING_BYTES - at;
	if (!fits(r, size)) {
		r->lost++;
		return NULL;
	}
	if (size > left) {
		struct seg_record *pad = (struct seg_record *)(r->data + at);

		pad->type = SEG_REC_PAD;
		pad->size = (uint32_t)left;
		__atomic_store_n(&r->head, r->head + left, __ATOMIC_RELEASE);
		at = 0;
	}
	return r->data + at;
}

void ring_commit(struct seg_vcpu *v, uint32_t size)
{
	struct seg_ring *r = ring_of(v);
	uint64_t before = used(r);

	__atomic_store_n(&r->head, r->head + size, __ATOMIC_RELEASE);
	if (before < SEG_RING_BYTES / 4 && before + size >= SEG_RING_BYTES / 4)
		wake_machine();
}
