/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A repeated string instruction of x86-64 that QEMU runs within one block: that is how QEMU 10
 * translates it (target/i386/tcg/translate.c, do_gen_rep), where 7.2 enters a block anew for each
 * repetition (plugin.c, on_rep). What it repeats is seen by its accesses, each of which calls: with
 * the access that completes an iteration that one is counted. Where such a block is entered again,
 * as every 65536 iterations, or after a signal, nothing more is.
 *
 * What is counted is the same as under 7.2: a cycle and what it loads and stores for each
 * iteration; of a search (cmps, scas), whose first one has its cycle with the instruction, one
 * cycle less. It is more right for a search that finds nothing, or has nothing to look at: there is
 * no entry too many.
 */
#include "entry.h"

enum ends { AT_LOAD, AT_STORE, AT_SECOND_LOAD };

/* By the last byte of the instruction, without its lowest bit, the size. */
static const struct {
	uint8_t opcode;
	uint8_t ends; /* enum ends: which access completes an iteration */
	bool search;
} strings[] = {
	{0xa4, AT_STORE, false},      /* movs */
	{0xa6, AT_SECOND_LOAD, true}, /* cmps */
	{0xaa, AT_STORE, false},      /* stos */
	{0xac, AT_LOAD, false},	      /* lods */
	{0xae, AT_LOAD, true},	      /* scas */
};

/* @t: the instruction as a block of its own. */
static void iterated(struct seg_vcpu *v, const struct block *t, unsigned row)
{
	const struct rates *r = &engine.rates;
	bool full = entry_add_lanes(v, &r->lane_again[row]);

	for (unsigned k = 0; k < r->nscalars; k++) {
		v->scalar[k] += r->scalar_again[row][k];
		full |= (int64_t)v->scalar[k] >= v->nearest[SEG_LANES + k];
	}
	if (__builtin_expect(full, 0))
		fold_iteration(v, t, row >= AGAIN_FIRST);
}

static void on_moved(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t va, void *block)
{
	const struct block *t = block;

	(void)info;
	(void)va;
	if (vcpu < SEG_VCPUS)
		iterated(&engine_pub[vcpu], t, t->again);
}

static void searched(unsigned vcpu, const struct block *t)
{
	struct vcpu *p = &engine.vcpu[vcpu];
	unsigned first = p->search == SEARCH_BEGINS ? AGAIN_FIRST : 0;

	p->search = SEARCH_GOES_ON;
	iterated(&engine_pub[vcpu], t, t->again | first);
}

static void on_scanned(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t va, void *block)
{
	(void)info;
	(void)va;
	if (vcpu < SEG_VCPUS)
		searched(vcpu, block);
}

static void on_compared(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t va, void *block)
{
	(void)info;
	(void)va;
	if (vcpu >= SEG_VCPUS)
		return;
	engine.vcpu[vcpu].half = !engine.vcpu[vcpu].half;
	if (!engine.vcpu[vcpu].half)
		searched(vcpu, block);
}

/* Before the instruction, each time that its block is entered. */
static void on_search(unsigned vcpu, void *block)
{
	struct vcpu *p = &engine.vcpu[vcpu < SEG_VCPUS ? vcpu : 0];

	(void)block;
	if (vcpu >= SEG_VCPUS)
		return;
	p->half = false; /* a fault may have come between two loads */
	if (!p->entered_again)
		p->search = SEARCH_BEGINS;
	p->entered_again = false;
}

static void watch(struct qemu_plugin_insn *insn, unsigned which, const struct block *t)
{
	bool store = strings[which].ends == AT_STORE;
	qemu_plugin_vcpu_mem_cb seen = on_moved;

	if (strings[which].search)
		seen = strings[which].ends == AT_SECOND_LOAD ? on_compared : on_scanned;
	if (strings[which].search)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_search, QEMU_PLUGIN_CB_NO_REGS,
						       NULL);
	qemu_plugin_register_vcpu_mem_cb(insn, seen, QEMU_PLUGIN_CB_NO_REGS,
					 store ? QEMU_PLUGIN_MEM_W : QEMU_PLUGIN_MEM_R, (void *)t);
}

bool repeat_whole(void)
{
	return qemu_plugin_version >= 2;
}

void repeat_translate(struct qemu_plugin_insn *insn, const struct insn *in)
{
	const struct block *t;
	uint8_t bytes[16];
	uint64_t hash;

	if (in->flow != FLOW_REP || !repeat_whole() || !in->size || in->size > sizeof(bytes))
		return;
	plugin_insn_bytes(insn, bytes, in->size);
	hash = block_hash(BLOCK_HASH_START, bytes, in->size);
	t = block_intern(&engine.store, &engine.rates, in, 1, hash);
	for (unsigned i = 0; t && i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strings[i].opcode == (bytes[in->size - 1] & 0xfe))
			watch(insn, i, t);
}
