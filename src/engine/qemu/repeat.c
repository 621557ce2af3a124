/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A repeated string instruction of x86-64 whose repetitions are seen by its accesses, each of which
 * calls: with the access that completes an iteration that one is counted. Where its block is
 * entered again, nothing is.
 *
 * So it is for all of them where QEMU runs them within one block: that is how QEMU 10 translates
 * them (target/i386/tcg/translate.c, do_gen_rep), which enters the block again only every 65536
 * iterations, or after a signal. 7.2 enters a block anew for each iteration, and once more when the
 * count is used up; by these entries all but the searches (cmps, scas) are counted there (plugin.c,
 * on_rep), which costs less. A search may end before its count, and then has no such last entry.
 *
 * What is counted is the same: a cycle and what it loads and stores for each iteration; of a
 * search, whose first one has its cycle with the instruction, one cycle less.
 */
#include "entry.h"

enum ends { AT_LOAD, AT_STORE, AT_SECOND_LOAD };

/* By the last byte of the instruction, without its lowest bit, the size. */
static const struct string {
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

static void watch(struct qemu_plugin_insn *insn, const struct string *s, const struct block *t)
{
	bool store =
		s->ends == AT_STORE; /* 7.2 cannot be asked for reads alone (sheet 3.1, trap 1) */
	qemu_plugin_vcpu_mem_cb seen = on_moved;

	if (s->search)
		seen = s->ends == AT_SECOND_LOAD ? on_compared : on_scanned;
	if (s->search)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_search, QEMU_PLUGIN_CB_NO_REGS,
						       NULL);
	qemu_plugin_register_vcpu_mem_cb(insn, seen, QEMU_PLUGIN_CB_NO_REGS,
					 store ? QEMU_PLUGIN_MEM_W : QEMU_PLUGIN_MEM_RW, (void *)t);
}

/* The row of an instruction in the table above, or NULL. */
static const struct string *string_of(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strings[i].opcode == (bytes[size - 1] & 0xfe))
			return &strings[i];
	return NULL;
}

bool repeat_whole(const uint8_t *bytes, size_t size)
{
	const struct string *s = string_of(bytes, size);

	return s && (s->search || qemu_plugin_version >= 2);
}

void repeat_translate(struct qemu_plugin_insn *insn, const struct insn *in)
{
	const struct block *t;
	uint8_t bytes[16];
	uint64_t hash;

	if (!in->whole || in->size > sizeof(bytes))
		return;
	plugin_insn_bytes(insn, bytes, in->size);
	hash = block_hash(BLOCK_HASH_START, bytes, in->size);
	t = block_intern(&engine.store, &engine.rates, in, 1, hash);
	if (t)
		watch(insn, string_of(bytes, in->size), t);
}
