/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process slot and which vCPU records this process has: install, threads, fork, ends. Engine
 * sheet 10.1, 10.2, 10.4; DESIGN "The segment".
 *
 * The segment is opened through /proc at install and after a fork, mapped, and closed: the guest
 * sees every descriptor of its process and may close it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "models.h"
#include "pages.h"
#include "plugin.h"
#include "plugin_abi.h"

#define ENTRIES_MAX 65536u

/*
 * Replaced in place by the slot's shared records, so that their addresses are constants of the
 * code. Aligned for hosts with large pages.
 */
_Alignas(65536) struct seg_vcpu engine_pub[SEG_VCPUS];

/* The vCPU whose thread is in a system call that makes a thread or a process; NULL: one that is not
 * counted. */
static __thread struct seg_vcpu *calling;

/* And whether what it makes was seen there, as a thread under QEMU 7.2 is, and a process. */
static __thread enum { MAKING_NOTHING = 0, MAKING_BEGUN, MAKING_MADE } making;

/* Its record as it was when the fork began: the parent may be gone, and its slot another's, before
 * the child looks. */
static __thread struct seg_vcpu forking;

static int fail(const char *what, int err)
{
	fprintf(stderr, "quipu: engine: %s: %s\n", what, strerror(err));
	return -err;
}

/* ---- slots ---- */

static int claim_slot(void)
{
	uint64_t claimed = __atomic_load_n(&engine.head->claimed, __ATOMIC_ACQUIRE);

	while (~claimed) {
		unsigned slot = bits_low(~claimed);
		uint64_t old =
			__atomic_fetch_or(&engine.head->claimed, bits_one(slot), __ATOMIC_ACQ_REL);

		if (!(old & bits_one(slot)))
			return (int)slot;
		claimed = old | bits_one(slot);
	}
	return -1;
}

static void unmap_slot(void)
{
	if (engine.proc)
		munmap(engine.proc, SEG_PROC_BYTES);
	if (engine.area)
		munmap(engine.area, SEG_SLOT_BYTES - SEG_OFF_DEADLINES);
	engine.proc = NULL;
	engine.area = NULL;
}

static void *map_shared(void *at, int fixed, int fd, uint64_t offset, uint64_t size)
{
	return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | fixed, fd,
		    (off_t)offset);
}

static int map_slot(int fd, unsigned slot)
{
	uint64_t at = SEG_HEADER_BYTES + slot * SEG_SLOT_BYTES;
	void *proc = map_shared(NULL, 0, fd, at, SEG_PROC_BYTES);
	void *area =
		map_shared(NULL, 0, fd, at + SEG_OFF_DEADLINES, SEG_SLOT_BYTES - SEG_OFF_DEADLINES);

	engine.proc = proc == MAP_FAILED ? NULL : proc;
	engine.area = area == MAP_FAILED ? NULL : area;
	if (!engine.proc || !engine.area ||
	    map_shared(engine_pub, MAP_FIXED, fd, at + SEG_OFF_VCPUS, SEG_VCPUS_BYTES) !=
		    engine_pub) {
		unmap_slot();
		return -ENOMEM;
	}
	engine.deadlines = engine.area;
	engine.rings = (struct seg_ring *)(engine.deadlines + SEG_DEADLINE_BYTES);
	engine.slot = (int)slot;
	return 0;
}

/* This process runs on uncounted: its records are its own. */
static void go_uncounted(void)
{
	unmap_slot();
	engine.slot = -1;
	mmap(engine_pub, SEG_VCPUS_BYTES, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void fill_proc(uint32_t parent_slot)
{
	struct seg_proc *proc = engine.proc;

	if (!proc)
		return;
	proc->pid = (uint32_t)getpid();
	proc->parent_slot = parent_slot;
	proc->state = SEG_RUNNING;
	strncpy(proc->isa, engine.isa->name, sizeof(proc->isa) - 1);
}

static int open_segment(void)
{
	return open(engine.seg_path, O_RDWR | O_CLOEXEC);
}

static bool header_valid(const struct seg_header *h, int fd)
{
	struct stat st;

	return h->magic == SEG_MAGIC && h->version == SEG_VERSION && h->size == SEG_BYTES &&
	       h->hz && !fstat(fd, &st) && (uint64_t)st.st_size >= SEG_BYTES;
}

static int use_segment(int fd)
{
	void *head = map_shared(NULL, 0, fd, 0, SEG_HEADER_BYTES);
	int slot;

	if (head == MAP_FAILED)
		return fail("cannot map the segment", errno);
	engine.head = head;
	if (!header_valid(head, fd))
		return fail("the segment is not one of this version of quipu", EINVAL);
	slot = claim_slot();
	if (slot < 0) {
		__atomic_fetch_add(&engine.head->unslotted, 1, __ATOMIC_RELAXED);
		go_uncounted();
		return 0;
	}
	if (map_slot(fd, (unsigned)slot))
		return fail("cannot map the process slot", ENOMEM);
	return 0;
}

int process_open(const char *seg)
{
	int fd, rc;

	if (strlen(seg) >= sizeof(engine.seg_path))
		return fail("path of the segment", ENAMETOOLONG);
	strcpy(engine.seg_path, seg);
	fd = open_segment();
	if (fd < 0)
		return fail(seg, errno);
	rc = use_segment(fd);
	close(fd);
	if (rc)
		return rc;
	fill_proc((uint32_t)engine.slot);
	if (select_open() || pages_open())
		return -1;
	if (block_store_init(&engine.store))
		return fail("block records", ENOMEM);
	engine.entries.pc = mmap(NULL, ENTRIES_MAX * sizeof(uint64_t), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (engine.entries.pc != MAP_FAILED)
		engine.entries.max = ENTRIES_MAX;
	return 0;
}

void process_own_call(uint64_t bits)
{
	if (engine.proc && (engine.proc->own_calls[0] & bits) != bits)
		__atomic_fetch_or(&engine.proc->own_calls[0], bits, __ATOMIC_RELAXED);
}

/* ---- threads ---- */

void process_stack(struct seg_vcpu *v)
{
	void *frames;

	frames = (void *)(uintptr_t)v->priv[HOT_FRAMES];
	if (!frames)
		frames = mmap(NULL, STACK_FRAMES * sizeof(struct frame), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	v->priv[HOT_FRAMES] = frames == MAP_FAILED ? 0 : (uintptr_t)frames;
}

/* A record is used by one thread after another; nothing of the last one stays but its bell numbers,
 * how many of those were lost, and its ring. */
static void reset_vcpu(struct seg_vcpu *v, uint32_t start)
{
	struct vcpu *p = vcpu_private(v);

	memset(p, 0, sizeof(*p));
	p->start = start;
	v->priv[HOT_PREV] = (uintptr_t)&block_none;
	v->priv[HOT_TOP] = v->priv[HOT_WAS_TOP] = 0;
	if (engine.features & SEG_STACK)
		process_stack(v);
	regs_forget(vcpu_index(v));
	models_begin(v);
	fold_zero(v);
	v->state = SEG_RUNNING;
	v->tid = 0;
	v->generation++;
	v->request = engine.features & SEG_EMPTY ? 1 : 0; /* its first block is seen by that */
	for (unsigned slot = 0; engine.slot >= 0 && slot < QUIPU_SLOTS; slot++) {
		if (vcpu_deadline(vcpu_index(v), slot)->armed)
			vcpu_deadline(vcpu_index(v), slot)->armed = 0;
	}
}

/* @parent has made vCPU @index: the machine hears of it from there. */
static void announce(struct seg_vcpu *parent, unsigned index)
{
	engine_pub[index].parent = vcpu_index(parent);
	vcpu_private(parent)->makes = index + 1;
	fold_ring(parent, SEG_BELL_CLONE, index, vcpu_private(parent)->call_pc);
	births_told(&engine.vcpu[index], BIRTH_TOLD);
}

/* Threads begin on threads of their own under QEMU 10. */
static void grow_to(unsigned n)
{
	uint32_t was = engine.proc ? engine.proc->nvcpus : n;

	while (was < n && !__atomic_compare_exchange_n(&engine.proc->nvcpus, &was, n, false,
						       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

/* Of a thread: on the one that makes it, inside of its call; or (QEMU 10) on itself, at any time
 * before its first block. */
static void vcpu_init(qemu_plugin_id_t id, unsigned index)
{
	bool counted = index < SEG_VCPUS, made = making != MAKING_NOTHING;

	(void)id;
	if (index)
		engine.threaded = true;
	if (counted) {
		reset_vcpu(&engine_pub[index], index ? SEG_BELL_THREAD : SEG_BELL_START);
		grow_to(index + 1);
	} else if (engine.proc) {
		__atomic_fetch_add(&engine.proc->uncounted, 1, __ATOMIC_RELAXED);
	}
	if (made)
		making = MAKING_MADE;
	if (!made && index)
		births_come(index);
	else if (counted && calling)
		announce(calling, index);
	else if (counted)
		births_told(&engine.vcpu[index], BIRTH_ORPHAN);
}

void process_makes(void)
{
	making = MAKING_BEGUN;
}

void process_made(unsigned index, int64_t tid)
{
	bool made = making == MAKING_MADE;
	unsigned child;

	making = MAKING_NOTHING;
	if (made || tid <= 0 || !births_await((uint32_t)tid, &child) || child >= SEG_VCPUS)
		return;
	if (index < SEG_VCPUS && engine.slot >= 0)
		announce(&engine_pub[index], child);
	else
		births_told(&engine.vcpu[child], BIRTH_ORPHAN);
}

static void vcpu_exit(qemu_plugin_id_t id, unsigned index)
{
	struct seg_vcpu *v = &engine_pub[index];

	(void)id;
	if (index >= SEG_VCPUS || v->state == SEG_DEAD)
		return;
	fold_publish(v);
	if (!vcpu_private(v)->start)
		fold_ring(v, SEG_BELL_EXIT, 0, vcpu_private(v)->call_pc);
	v->state = SEG_DEAD;
}

/* A thread's end has held off switches since it was asked for (syscall.c). */
static void vcpu_gone(qemu_plugin_id_t id, unsigned index)
{
	vcpu_exit(id, index);
	/* Nothing is kept for it (select.c, plugin.c): the next one begins while others may stand.
	 */
	if (index < SEG_VCPUS)
		engine_pub[index].priv[HOT_PREV] = 0;
	select_release();
}

void process_calling(struct seg_vcpu *v)
{
	calling = v;
}

void process_begin(struct seg_vcpu *v)
{
	struct vcpu *p = vcpu_private(v);
	uint32_t reason = p->start;
	uint64_t arg = reason == SEG_BELL_FORK ? p->fork_from : 0;

	if (reason == SEG_BELL_THREAD && engine.slot >= 0)
		arg = !births_known(p);
	p->start = 0;
	v->tid = (uint32_t)syscall(SYS_gettid);
	v->state = SEG_RUNNING;
	if (reason == SEG_BELL_START)
		maps_program(v);
	bell_ring(v, reason, arg, 0, 0);
}

/* ---- fork ---- */

/* The new record of the thread that survived: as the old one, but for what it has counted. */
static void survive(const struct seg_vcpu *old, uint64_t from)
{
	struct seg_vcpu *v = &engine_pub[vcpu_index(calling)];
	struct vcpu *p = vcpu_private(v);

	memcpy(v->priv, old->priv, sizeof(v->priv));
	models_forget(v);
	fold_zero(v);
	v->state = SEG_SYSCALL;
	v->tid = (uint32_t)syscall(SYS_gettid);
	p->start = SEG_BELL_FORK;
	p->makes = 0;
	p->fork_from = from;
	p->narmed = 0;
	if (engine.proc)
		__atomic_store_n(&engine.proc->nvcpus, vcpu_index(v) + 1, __ATOMIC_RELEASE);
}

static void fork_prepare(void)
{
	if (making)
		making = MAKING_MADE;
	if (!calling)
		return;
	/* The machine settles when and where the child begins while the parent stands still. */
	if (engine.slot >= 0) {
		vcpu_private(calling)->makes = SEG_VCPUS + 1;
		fold_ring(calling, SEG_BELL_CLONE, SEG_VCPUS, 0);
	}
	forking = *calling;
}

/* In the child, on the thread that forked. Only calls that are safe there. */
static void fork_child(void)
{
	uint64_t from = (uint64_t)engine.slot;
	uint32_t parent = engine.proc ? engine.proc->pid : 0;
	int fd, slot = -1;

	select_forked();
	births_forget();
	if (!calling || engine.slot < 0)
		return;
	fd = open_segment();
	if (fd >= 0)
		slot = claim_slot();
	if (slot < 0)
		__atomic_fetch_add(&engine.head->unslotted, 1, __ATOMIC_RELAXED);
	unmap_slot();
	if (slot < 0 || map_slot(fd, (unsigned)slot)) {
		go_uncounted();
		select_leave();
	} else {
		fill_proc((uint32_t)from);
	}
	if (fd >= 0)
		close(fd);
	survive(&forking, from);
	if (!engine.proc)
		return;
	select_told();
	engine.proc->parent_pid = parent;
	memcpy(engine.proc->path, engine.program, sizeof(engine.proc->path));
}

/* ---- ends ---- */

/* All vCPUs are stopped and nothing else calls us any more. The machine reads the totals when the
 * process is gone. */
static void at_exit(qemu_plugin_id_t id, void *arg)
{
	(void)id;
	(void)arg;
	for (unsigned i = 0; engine.proc && i < engine.proc->nvcpus && i < SEG_VCPUS; i++) {
		struct seg_vcpu *v = &engine_pub[i];

		if (v->state == SEG_DEAD || vcpu_private(v)->start)
			continue;
		fold_publish(v);
		v->state = SEG_DEAD;
	}
	if (engine.proc)
		engine.proc->state = SEG_DEAD;
}

void process_callbacks(uint64_t id)
{
	reset_vcpu(&engine_pub[0], SEG_BELL_START);
	if (engine.proc)
		engine.proc->nvcpus = 1;
	qemu_plugin_register_vcpu_init_cb(id, vcpu_init);
	qemu_plugin_register_vcpu_exit_cb(id, vcpu_gone);
	qemu_plugin_register_atexit_cb(id, at_exit, NULL);
	if (pthread_atfork(fork_prepare, NULL, fork_child))
		fail("fork handlers", ENOMEM);
}
