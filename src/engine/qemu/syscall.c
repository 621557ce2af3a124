/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls of the guest: counted, and the few that the machine must hear of (mappings, names,
 * sleeps that ran out, exec). Engine sheet 10.2-10.7. Which numbers those are: isa.c.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "pages.h"
#include "plugin.h"
#include "plugin_abi.h"

/* QEMU's own result, never seen by the guest: the call will be made again. */
#define RESULT_RESTART (-512)

#define NS UINT64_C(1000000000)

static uint64_t guest64(const uint8_t *raw)
{
	return engine.isa->traits & ISA_BIG_ENDIAN ? bits_be64(raw) : bits_le64(raw);
}

/* A struct timespec, or timeval with parts of @unit ns, of a 64-bit guest. 0 when there is none, or
 * none to be read. */
static void read_time(uint64_t guest, uint64_t unit, uint64_t *ns)
{
	uint8_t raw[16];
	uint64_t sec;

	if (!guest || maps_read_guest(guest, raw, sizeof(raw)) != (long)sizeof(raw))
		return;
	sec = guest64(raw);
	*ns = sec > UINT64_MAX / NS - 1 ? UINT64_MAX : sec * NS + guest64(raw + 8) * unit;
}

static void read_timespec(uint64_t guest, uint64_t *ns)
{
	read_time(guest, 1, ns);
}

/* Where a call has its timeout. */
static void note_timeout(struct vcpu *p, const uint64_t a[6])
{
	unsigned cmd;

	p->call_ns = 0;
	p->call_absolute = false;
	switch (p->call) {
	case CALL_NANOSLEEP: read_timespec(a[0], &p->call_ns); break;
	case CALL_CLOCK_NANOSLEEP:
		p->call_absolute = a[1] & TIMER_ABSTIME;
		read_timespec(a[2], &p->call_ns);
		break;
	case CALL_POLL: p->call_ns = (int32_t)a[2] > 0 ? a[2] * 1000000 : 0; break;
	case CALL_SELECT: read_time(a[4], 1000, &p->call_ns); break;
	case CALL_PPOLL:
	case CALL_SIGTIMEDWAIT: read_timespec(a[2], &p->call_ns); break;
	case CALL_PSELECT6: read_timespec(a[4], &p->call_ns); break;
	case CALL_EPOLL_PWAIT: p->call_ns = (int32_t)a[3] > 0 ? a[3] * 1000000 : 0; break;
	case CALL_FUTEX:
		cmd = (unsigned)a[1] & FUTEX_CMD_MASK;
		p->call_absolute = cmd == FUTEX_WAIT_BITSET || cmd == FUTEX_LOCK_PI;
		if (cmd == FUTEX_WAIT || p->call_absolute)
			read_timespec(a[3], &p->call_ns);
		break;
	}
}

static bool timed_out(const struct vcpu *p, int64_t ret)
{
	switch (p->call) {
	case CALL_NANOSLEEP:
	case CALL_CLOCK_NANOSLEEP:
	case CALL_POLL:
	case CALL_PPOLL:
	case CALL_SELECT:
	case CALL_PSELECT6:
	case CALL_EPOLL_PWAIT: return ret == 0;
	case CALL_SIGTIMEDWAIT: return ret == -EAGAIN;
	case CALL_FUTEX: return ret == -ETIMEDOUT;
	}
	return false;
}

/* A point in time is the host's: how long the wait was in model time is not known, and a rerun may
 * differ. */
static void slept(struct seg_vcpu *v, const struct vcpu *p, int64_t ret)
{
	if (!p->call_ns || !timed_out(p, ret))
		return;
	if (p->call_absolute)
		process_own_call(SEG_CALL_TIME);
	fold_ring(v, SEG_BELL_SLEPT, p->call_absolute ? 0 : p->call_ns, p->call_pc);
}

/* Files whose contents are the host's and the moment's. */
static void note_path(uint64_t guest)
{
	static const char *const trees[] = {"/proc/", "/sys/", "/dev/random", "/dev/urandom"};
	char path[16];

	if (maps_read_string(guest, path, sizeof(path)) <= 0)
		return;
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		if (!strncmp(path, trees[i], strlen(trees[i])))
			process_own_call(SEG_CALL_HOST_FILES);
	}
}

/*
 * Does not return when the new program is followed. One that is not (of 32 bits, of a set without a
 * decoder) runs natively and uncounted: the machine must know before this one disappears.
 */
static void execing(struct seg_vcpu *v, const struct vcpu *p, const uint64_t a[6])
{
	char path[4096];

	fold_publish(v);
	if (maps_read_string(a[0], path, sizeof(path)) > 0 && !access(path, X_OK))
		pages_gone(v);
	if (maps_read_string(a[0], path, sizeof(path)) > 0 && !exec_follow(path, a[1], a[2]))
		fold_ring(v, SEG_BELL_FOREIGN, 1, p->call_pc);
}

/* The handler is the first word of the guest's struct sigaction. */
static void note_handler(uint64_t signal, uint64_t guest)
{
	uint8_t raw[8];

	if (guest && maps_read_guest(guest, raw, sizeof(raw)) == (long)sizeof(raw))
		engine_handler(guest64(raw), signal);
}

static void note_own(enum call call)
{
	static const struct {
		uint8_t call;
		uint8_t bit;
	} own[] = {
		{CALL_TIME, SEG_CALL_TIME},
		{CALL_RANDOM, SEG_CALL_RANDOM},
		{CALL_PID, SEG_CALL_PID},
		{CALL_NETWORK, SEG_CALL_NETWORK},
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (own[i].call == call)
			process_own_call(own[i].bit);
	}
}

static uint32_t shared(const struct seg_vcpu *v)
{
	return __atomic_load_n(&v->shared, __ATOMIC_RELAXED);
}

/* What may end threads of other CPUs: where they stand then is not the host's to say. */
static void in_order(struct seg_vcpu *v, const struct vcpu *p)
{
	if (shared(v))
		fold_ring(v, SEG_BELL_ORDER, 1, p->call_pc);
}

/*
 * No instruction of the thread follows. Others may wait for its end, and what they do then must not
 * be heard first: a thread's CPU is free for the next one.
 */
static void leaving(struct seg_vcpu *v, const struct vcpu *p)
{
	bool group = p->call == CALL_EXIT_GROUP, threads = engine.proc && engine.proc->nvcpus > 1;

	if (!vcpu_index(v)) /* the first thread's end is taken for the process's */
		pages_gone(v);
	if (threads && !group) {
		fold_ring(v, SEG_BELL_EXIT, 0, p->call_pc);
		v->state = SEG_DEAD;
	} else if (threads || engine.head->house || shared(v)) {
		fold_ring(v, SEG_BELL_LEAVING, group, p->call_pc);
	} else {
		fold_publish(v);
	}
}

/* exit and exec do not return: they are counted here, the rest when the result shows that they were
 * made. */
static void enter(struct seg_vcpu *v, struct vcpu *p, const uint64_t a[6])
{
	p->counted_call =
		p->call == CALL_EXIT || p->call == CALL_EXIT_GROUP || p->call == CALL_EXECVE;
	if (p->counted_call)
		fold_syscall(v, p->call_pc);
	note_timeout(p, a);
	p->resumes = p->call == CALL_SIGRETURN;
	switch (p->call) {
	case CALL_CLONE:
		if (shared(v))
			fold_ring(v, SEG_BELL_ORDER, 0, p->call_pc);
		else
			fold_publish(v);
		process_calling(v);
		break;
	case CALL_SIGACTION: note_handler(a[0], a[1]); break;
	case CALL_OPENAT: note_path(a[1]); break;
	case CALL_OPEN: note_path(a[0]); break;
	case CALL_EXECVE:
		in_order(v, p);
		execing(v, p, a);
		break;
	case CALL_KILL:
	case CALL_TGKILL: in_order(v, p); break;
	case CALL_EXIT:
	case CALL_EXIT_GROUP: leaving(v, p); break;
	case CALL_YIELD:
		if (shared(v))
			fold_ring(v, SEG_BELL_YIELD, 0, p->call_pc);
		break;
	default: note_own(p->call); break;
	}
}

/* By what the call is for: QEMU may sleep in any, for a lock of its own. */
static bool may_sleep(enum call call)
{
	switch (call) {
	case CALL_CLONE:
	case CALL_MMAP:
	case CALL_MUNMAP:
	case CALL_MREMAP:
	case CALL_MPROTECT:
	case CALL_BRK:
	case CALL_PRCTL:
	case CALL_SIGACTION:
	case CALL_SIGRETURN:
	case CALL_TIME:
	case CALL_PID: return false;
	default: return true;
	}
}

/* While a thread or a process is made, or ends, nothing is switched (select.c). */
static bool makes_or_ends(enum call call)
{
	return call == CALL_CLONE || call == CALL_EXIT || call == CALL_EXIT_GROUP;
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t nr, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	const uint64_t args[6] = {a1, a2, a3, a4, a5, a6};
	struct seg_vcpu *v = &engine_pub[vcpu];
	struct vcpu *p;

	(void)id;
	(void)a7;
	(void)a8;
	if (makes_or_ends(isa_call(engine.isa, nr)))
		select_hold();
	if (isa_call(engine.isa, nr) == CALL_CLONE)
		process_makes();
	if (vcpu >= SEG_VCPUS || engine.slot < 0)
		return;
	p = vcpu_private(v);
	/* Only here is the block sure to live: another thread may flush while this one waits. */
	p->call_pc = ((const struct block *)(uintptr_t)v->priv[HOT_PREV])->cti;
	p->call = (uint8_t)isa_call(engine.isa, nr);
	memcpy(p->call_arg, args, sizeof(args));
	if (p->start && engine.features & SEG_EMPTY) /* none of its blocks was seen */
		fold_request(v, p->call_pc);
	v->state = may_sleep(p->call) ? SEG_SYSCALL : SEG_CALLING;
	enter(v, p, args);
	if (shared(v) && v->state == SEG_SYSCALL)
		bell_tell(); /* it may sleep there */
}

/* What was made exists from here on, by the clock of its maker: who takes turns waits for it. */
static void made(struct seg_vcpu *v, struct vcpu *p, int64_t ret)
{
	uint64_t child = p->makes;

	process_calling(NULL);
	p->makes = 0;
	if (child && engine.head->exact && !engine.head->house)
		fold_ring(v, SEG_BELL_MADE, (child - 1) | (uint64_t)(ret > 0 ? ret : 0) << 32,
			  p->call_pc);
}

static void leave(struct seg_vcpu *v, struct vcpu *p, int64_t ret)
{
	const uint64_t *a = p->call_arg;
	char name[16] = "";

	switch (p->call) {
	case CALL_MMAP:
		if (ret >= 0 && (a[2] & PROT_EXEC))
			maps_mmap(v, (uint64_t)ret, a[1], (uint32_t)a[2], (uint32_t)a[3],
				  a[3] & MAP_ANONYMOUS ? -1 : (int)a[4], a[5]);
		break;
	case CALL_MPROTECT:
		if (!ret && (a[2] & PROT_EXEC))
			maps_mprotect(v, a[0], a[1], (uint32_t)a[2]);
		break;
	case CALL_PRCTL:
		if (!ret && a[0] == PR_SET_NAME && maps_read_string(a[1], name, sizeof(name)) >= 0)
			maps_comm(v, name);
		break;
	case CALL_CLONE: made(v, p, ret); break;
	default: slept(v, p, ret); break;
	}
	if (engine.head->watches && ret != RESULT_RESTART && !p->start)
		pages_call(v, p, ret);
}

/*
 * What a sleeper finds when it comes out of its call (a signal, some bytes, room for more) must not
 * depend on how much of what follows here it can see by then.
 */
static void woke(struct seg_vcpu *v, const struct vcpu *p, enum io io)
{
	if (shared(v) == SEG_WITH_SLEEPER &&
	    (io != IO_NONE || p->call == CALL_KILL || p->call == CALL_TGKILL))
		fold_ring(v, SEG_BELL_WOKE, 0, p->call_pc);
}

/* Out of a system call. The CPU may have been given to another thread meanwhile. */
static void go_on(struct seg_vcpu *v, const struct vcpu *p)
{
	uint32_t was = SEG_SYSCALL;

	if (!__atomic_compare_exchange_n(&v->state, &was, SEG_RUNNING, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST) &&
	    was == SEG_PARKED)
		fold_ring(v, SEG_BELL_TURN, 0, p->call_pc);
	v->state = SEG_RUNNING;
}

static void on_syscall_ret(qemu_plugin_id_t id, unsigned vcpu, int64_t nr, int64_t ret)
{
	struct seg_vcpu *v = &engine_pub[vcpu];
	struct vcpu *p;

	(void)id;
	if (isa_call(engine.isa, nr) == CALL_CLONE)
		process_made(vcpu, ret);
	if (makes_or_ends(isa_call(engine.isa, nr)))
		select_release();
	if (vcpu >= SEG_VCPUS || engine.slot < 0)
		return;
	p = vcpu_private(v);
	go_on(v, p);
	if (ret == RESULT_RESTART || ret == -EINTR) /* a signal, which may end all threads */
		in_order(v, p);
	/* A child of fork: the call was its parent's. */
	if (ret != RESULT_RESTART && !p->counted_call && !p->start) {
		enum io io = ret > 0 ? isa_io(engine.isa, nr) : IO_NONE;

		fold_syscall(v, p->call_pc);
		if (io != IO_NONE)
			fold_bytes(v, p->call_pc, engine.rates.bytes[io], (uint64_t)ret);
		woke(v, p, io);
	}
	leave(v, p, ret);
	select_look();
}

void syscall_callbacks(uint64_t id)
{
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_ret);
}
