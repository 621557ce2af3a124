/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of the guest that have been accessed since they were mapped, and system calls that may wake
 * a hypervisor (enum quipu_activity): for machines that watch for them (seg_header.watches). RTAS
 * sheet 7.2.
 *
 * A page is 64 KiB, as in Linux on POWER. What the guest's kernel accesses for it (the buffer of a
 * read) is not seen. A page of code is accessed when its first block is translated, which is told
 * at the next access of data: nothing can be told while QEMU translates.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <quipu/bits.h>
#include <quipu/platform.h>

#include "pages.h"
#include "plugin.h"
#include "plugin_abi.h"

#define SHIFT	  16
#define ADDRESS	  47 /* bits of a guest's address */
#define PAGES	  (UINT64_C(1) << (ADDRESS - SHIFT))
#define BITS	  64u
#define PAGE_NONE UINT64_MAX

static uint64_t *touched; /* a bit each; sparse */
static uint64_t ntouched;
static uint32_t pending; /* pages of code that are not told yet */

/* The page that a vCPU accessed last, in a line of its own. */
static struct {
	_Alignas(64) uint64_t page;
} last[SEG_VCPUS];

int pages_open(void)
{
	void *p;

	for (unsigned i = 0; i < SEG_VCPUS; i++)
		last[i].page = PAGE_NONE;
	if (!(engine.features & SEG_PAGES))
		return 0;
	p = mmap(NULL, PAGES / 8, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		fprintf(stderr, "quipu: engine: no memory for the guest's pages\n");
		return -1;
	}
	touched = p;
	return 0;
}

/* 1: it was not accessed before. */
static unsigned touch(uint64_t page)
{
	uint64_t bit = bits_one(page % BITS);

	if (page >= PAGES || touched[page / BITS] & bit ||
	    __atomic_fetch_or(&touched[page / BITS], bit, __ATOMIC_RELAXED) & bit)
		return 0;
	__atomic_add_fetch(&ntouched, 1, __ATOMIC_RELAXED);
	return 1;
}

void pages_code(uint64_t first, uint64_t end)
{
	unsigned n = 0;

	for (uint64_t page = first >> SHIFT; touched && page <= end >> SHIFT; page++)
		n += touch(page);
	if (n)
		__atomic_add_fetch(&pending, n, __ATOMIC_RELAXED);
}

static COLD void touched_now(struct seg_vcpu *v, uint64_t va, uint32_t info, unsigned index)
{
	uint64_t end = va + (1u << qemu_plugin_mem_size_shift(info)) - 1;
	const struct block *t = (const struct block *)(uintptr_t)v->priv[HOT_PREV];
	uint64_t n = __atomic_exchange_n(&pending, 0, __ATOMIC_RELAXED);

	n += touch(va >> SHIFT);
	if (end >> SHIFT != va >> SHIFT)
		n += touch(end >> SHIFT);
	last[vcpu_index(v)].page = end >> SHIFT;
	if (n)
		fold_activity(v, t, index, index < t->n ? block_insn(t, index) : t->pc,
			      QUIPU_ACTIVITY_PAGE_FAULT, n);
}

static void on_access(unsigned vcpu, uint32_t info, uint64_t va, void *udata)
{
	if (vcpu >= SEG_VCPUS || __builtin_expect(va >> SHIFT == last[vcpu].page && !pending, 1))
		return;
	touched_now(&engine_pub[vcpu], va, info, (unsigned)(uintptr_t)udata);
}

void pages_translate(struct qemu_plugin_insn *insn, unsigned index, bool accesses)
{
	if (engine.features & SEG_PAGES && accesses)
		qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)index);
}

/* ---- system calls ---- */

static void forget_last(void)
{
	for (unsigned i = 0; i < SEG_VCPUS; i++)
		__atomic_store_n(&last[i].page, PAGE_NONE, __ATOMIC_RELAXED);
}

/* The bits of word @w that lie in [first, end). */
static uint64_t in_word(uint64_t w, uint64_t first, uint64_t end)
{
	uint64_t mask = ~UINT64_C(0);

	if (w == first / BITS)
		mask &= ~bits_mask(first % BITS);
	if (w == end / BITS)
		mask &= bits_mask(end % BITS);
	return mask;
}

/* Whole pages in [addr, addr + len) that were accessed; with @clear they are no longer. */
static uint64_t in_range(uint64_t addr, uint64_t len, bool clear)
{
	uint64_t size = UINT64_C(1) << SHIFT, limit = UINT64_C(1) << ADDRESS, n = 0, first, end;

	if (!touched || addr >= limit || !len)
		return 0;
	if (len > limit - addr)
		len = limit - addr;
	first = (addr + size - 1) >> SHIFT;
	end = (addr + len) >> SHIFT;
	for (uint64_t w = first / BITS; first < end && w <= end / BITS && w < PAGES / BITS; w++) {
		uint64_t mask = in_word(w, first, end);

		if (!touched[w])
			continue;
		n += bits_count(touched[w] & mask);
		if (clear)
			__atomic_fetch_and(&touched[w], ~mask, __ATOMIC_RELAXED);
	}
	if (n && clear) {
		__atomic_sub_fetch(&ntouched, n, __ATOMIC_RELAXED);
		forget_last();
	}
	return n;
}

static void tell(struct seg_vcpu *v, const struct vcpu *p, enum quipu_activity what, uint64_t n)
{
	if (n && engine.slot >= 0 && engine.head->watches >> what & 1)
		fold_activity(v, NULL, 0, p->call_pc, what, n);
}

static void unmapped(struct seg_vcpu *v, const struct vcpu *p, uint64_t addr, uint64_t len)
{
	tell(v, p, QUIPU_ACTIVITY_PAGE_UNMAP, in_range(addr, len, true));
}

void pages_gone(struct seg_vcpu *v)
{
	tell(v, vcpu_private(v), QUIPU_ACTIVITY_PAGE_UNMAP, ntouched);
}

static void remapped(struct seg_vcpu *v, const struct vcpu *p, int64_t ret)
{
	uint64_t addr = p->call_arg[0], was = p->call_arg[1], now = p->call_arg[2];

	if ((uint64_t)ret != addr)
		unmapped(v, p, addr, was);
	else if (now < was)
		unmapped(v, p, addr + now, was - now);
}

static void moved_break(struct seg_vcpu *v, const struct vcpu *p, int64_t ret)
{
	static uint64_t brk;

	if (brk && (uint64_t)ret < brk)
		unmapped(v, p, (uint64_t)ret, brk - (uint64_t)ret);
	brk = (uint64_t)ret;
}

static void futex_done(struct seg_vcpu *v, const struct vcpu *p, int64_t ret)
{
	switch (p->call_arg[1] & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET: tell(v, p, QUIPU_ACTIVITY_IDLE, 1); break;
	case FUTEX_WAKE:
	case FUTEX_WAKE_BITSET: tell(v, p, QUIPU_ACTIVITY_WAKE, ret > 0 ? (uint64_t)ret : 0); break;
	}
}

void pages_call(struct seg_vcpu *v, const struct vcpu *p, int64_t ret)
{
	const uint64_t *a = p->call_arg;

	switch (p->call) {
	case CALL_NANOSLEEP:
	case CALL_CLOCK_NANOSLEEP:
	case CALL_POLL:
	case CALL_PPOLL:
	case CALL_SELECT:
	case CALL_PSELECT6:
	case CALL_EPOLL_PWAIT:
	case CALL_SIGTIMEDWAIT:
	case CALL_WAIT: tell(v, p, QUIPU_ACTIVITY_IDLE, 1); break;
	case CALL_FUTEX: futex_done(v, p, ret); break;
	case CALL_YIELD: tell(v, p, QUIPU_ACTIVITY_YIELD, 1); break;
	case CALL_WRITE:
		if (ret > 0 && engine.head->watches >> QUIPU_ACTIVITY_CONSOLE & 1 &&
		    isatty((int)a[0]))
			tell(v, p, QUIPU_ACTIVITY_CONSOLE, (uint64_t)ret);
		break;
	case CALL_KILL: tell(v, p, QUIPU_ACTIVITY_WAKE, !ret && a[0] != (uint64_t)getpid()); break;
	case CALL_TGKILL: tell(v, p, QUIPU_ACTIVITY_WAKE, !ret && a[1] != v->tid); break;
	case CALL_MUNMAP:
		if (!ret)
			unmapped(v, p, a[0], a[1]);
		break;
	case CALL_MREMAP:
		if (ret >= 0)
			remapped(v, p, ret);
		break;
	case CALL_MMAP:
		if (ret >= 0 && a[3] & MAP_FIXED)
			unmapped(v, p, (uint64_t)ret, a[1]);
		break;
	case CALL_MPROTECT:
		if (!ret)
			tell(v, p, QUIPU_ACTIVITY_PAGE_PROTECT, in_range(a[0], a[1], false));
		break;
	case CALL_BRK: moved_break(v, p, ret); break;
	}
}
