/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The guest's user registers, for samples that ask for them: interface version 3 and later (QEMU 9,
 * 10). Engine sheet 12; QEMU 10.0's plugins/api.c.
 *
 * A sample has the registers with which its instruction began. While registers are asked for each
 * instruction is a block of its own (plugin.c), and where it begins they can be read: when a record
 * is written just there, they are. What an instruction's accesses or the outcome of a transfer make
 * is known later, when its registers are other ones, so of such an instruction they are kept from
 * its beginning on, while a deadline waits for such a thing. What is read is what was asked for, no
 * more.
 *
 * QEMU reads a register through glib's byte arrays, and names registers as its debugger stub does.
 * Not here: x86's flags, which QEMU computes when they are looked at, and does not for its plugins.
 */
#include <sched.h>
#include <string.h>

#include <quipu/bits.h>

#include "models.h"
#include "plugin.h"
#include "plugin_abi.h"

/* As the guest's perf_regs.h numbers them; "pc": known without QEMU. */
static const char *const x86_64[SEG_REGS_MOST] = {
	"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "pc",  NULL,  "cs",  "ss",
	NULL,  NULL,  NULL,  NULL,  "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
};

static const char *const riscv64[SEG_REGS_MOST] = {
	"pc", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "fp", "s1", "a0",
	"a1", "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
	"s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
};

static const char *const ppc64le[SEG_REGS_MOST] = {
	"r0",  "r1",  "r2",  "r3",  "r4",  "r5",  "r6",	 "r7",	"r8",  "r9",  "r10", "r11", "r12",
	"r13", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25",
	"r26", "r27", "r28", "r29", "r30", "r31", "pc",	 NULL,	NULL,  "ctr", "lr",  "xer", "cr",
};

static const struct {
	const char *isa;
	const char *const *names;
} sets[] = {{"x86_64", x86_64}, {"riscv64", riscv64}, {"ppc64le", ppc64le}};

/* What an instruction began with. */
struct shot {
	uint64_t pc;
	uint64_t known; /* bits of those that were read; 0: not yet */
	uint64_t value[SEG_REGS_MOST];
};

/* The present instruction's, and that of the one before. */
static struct {
	struct shot shot[2];
	uint8_t at;
} taken[SEG_VCPUS];

enum { HANDLES_NONE = 0, HANDLES_LOOKING, HANDLES_FOUND };
static uint32_t found;
static struct qemu_plugin_register *handle[SEG_REGS_MOST];
static uint64_t have; /* bits of those that have a handle, or need none */
static uint64_t pc_bit;

static const char *const *names_of(const char *isa)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (!strcmp(sets[i].isa, isa))
			return sets[i].names;
	return NULL;
}

uint32_t regs_lacking(const struct seg_header *h)
{
	if (strncmp(h->regs_isa, engine.isa->name, sizeof(h->regs_isa)))
		return SEG_LACKS_SET;
	if (!names_of(engine.isa->name))
		return SEG_LACKS_REGS;
	return plugin_reads_registers() ? 0 : SEG_LACKS_REGS;
}

static void look_for(const char *const *names, const qemu_plugin_reg_descriptor *d)
{
	for (unsigned i = 0; i < SEG_REGS_MOST; i++) {
		if (!names[i] || strcmp(names[i], d->name) || handle[i])
			continue;
		handle[i] = d->handle;
		have |= bits_one(i);
	}
}

/* Handles are the same for all vCPUs, and are known once one of them runs. */
static void find_handles(void)
{
	const char *const *names = names_of(engine.isa->name);
	struct plugin_array *all = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *d = all ? (const void *)all->data : NULL;

	for (unsigned i = 0; d && i < all->len; i++)
		if (d[i].name)
			look_for(names, &d[i]);
	for (unsigned i = 0; i < SEG_REGS_MOST; i++)
		if (names[i] && !strcmp(names[i], "pc"))
			pc_bit = bits_one(i);
	have |= pc_bit;
	if (all)
		g_array_free(all, 1);
}

static void know_handles(void)
{
	uint32_t was = HANDLES_NONE;

	if (__atomic_load_n(&found, __ATOMIC_ACQUIRE) == HANDLES_FOUND)
		return;
	if (__atomic_compare_exchange_n(&found, &was, HANDLES_LOOKING, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST)) {
		find_handles();
		__atomic_store_n(&found, HANDLES_FOUND, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&found, __ATOMIC_ACQUIRE) != HANDLES_FOUND)
		sched_yield();
}

static uint64_t read_one(struct plugin_array *bytes, unsigned i)
{
	bool big = engine.isa->traits & ISA_BIG_ENDIAN;
	uint8_t raw[8] = {0};
	unsigned n;

	g_byte_array_set_size(bytes, 0);
	if (qemu_plugin_read_register(handle[i], bytes) < 1)
		return 0;
	n = bytes->len < sizeof(raw) ? bytes->len : sizeof(raw);
	memcpy(big ? raw + sizeof(raw) - n : raw, bytes->data, n);
	return big ? bits_be64(raw) : bits_le64(raw);
}

static void take(struct shot *s)
{
	static __thread struct plugin_array *bytes;
	uint64_t *value = s->value;

	know_handles();
	if (!bytes)
		bytes = g_byte_array_new();
	s->known = __atomic_load_n(&engine.head->regs, __ATOMIC_RELAXED) & have;
	for (uint64_t m = s->known; m; m &= m - 1)
		*value++ = bits_one(bits_low(m)) == pc_bit ? s->pc : read_one(bytes, bits_low(m));
}

static struct shot *begin(unsigned vcpu, const struct block *b)
{
	struct shot *s;

	taken[vcpu].at ^= 1;
	s = &taken[vcpu].shot[taken[vcpu].at];
	s->pc = b->pc;
	s->known = 0;
	return s;
}

static void on_begin(unsigned vcpu, void *block)
{
	if (vcpu < SEG_VCPUS)
		begin(vcpu, block);
}

static void on_begin_kept(unsigned vcpu, void *block)
{
	if (vcpu < SEG_VCPUS)
		take(begin(vcpu, block));
}

/* Is a deadline armed on what moves behind the beginning of an instruction: all that is no sum over
 * classes, and cycles that may be lost? */
static bool waits_for_later(unsigned vcpu)
{
	uint64_t later = bits_mask(INDEXES) & ~(uint64_t)engine.rates.counted;

	later |= engine.model.full ? bits_one(SEG_LANE_CYCLES) : 0;
	for (uint64_t m = later; m; m &= m - 1)
		if (engine_pub[vcpu].nearest[bits_low(m)] != INT64_MAX)
			return true;
	return false;
}

static void on_begin_later(unsigned vcpu, void *block)
{
	struct shot *s;

	if (vcpu >= SEG_VCPUS)
		return;
	s = begin(vcpu, block);
	if (waits_for_later(vcpu))
		take(s);
}

/* Whose repetitions, or whose system call, are told while it lasts. */
static bool is_kept(const struct block *b)
{
	return b->flow == FLOW_SYSCALL || b->flow == FLOW_REP || engine.features & SEG_LABEL;
}

/* Is it known only behind its beginning what the instruction counts? */
static bool tells_later(const struct block *b)
{
	return b->flow != FLOW_NONE ||
	       (engine.features & (SEG_DATA | SEG_PAGES) && insn_accesses(block_classes(b)[0]));
}

void regs_translate(struct qemu_plugin_insn *insn, const struct block *b)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn,
					       is_kept(b)	? on_begin_kept
					       : tells_later(b) ? on_begin_later
								: on_begin,
					       QEMU_PLUGIN_CB_R_REGS, (void *)b);
}

void regs_begun(unsigned vcpu)
{
	struct shot *s = &taken[vcpu].shot[taken[vcpu].at];

	if (s->pc && !s->known && waits_for_later(vcpu))
		take(s);
}

void regs_forget(unsigned vcpu)
{
	memset(&taken[vcpu], 0, sizeof(taken[vcpu]));
}

unsigned regs_of(unsigned vcpu, uint64_t pc, bool of_prev, uint64_t *known, uint64_t *out)
{
	unsigned at = taken[vcpu].at;
	struct shot *s = &taken[vcpu].shot[of_prev ? at ^ 1 : at];

	*known = 0;
	if (!(engine.features & SEG_REGS))
		return 0;
	if (s->pc != pc) /* what became of the one before is told only now */
		s = &taken[vcpu].shot[at ^ 1];
	if (s->pc != pc)
		return 0;
	if (!s->known && s == &taken[vcpu].shot[at])
		take(s);
	*known = s->known;
	memcpy(out, s->value, bits_count(s->known) * sizeof(*out));
	return bits_count(s->known);
}
