/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine's engine when a trace is played (cpu.h). The order inside an instruction is that of
 * the plugin: the outcome of the transfer before, what it counts by its class, its fetch, its
 * accesses.
 */
#include "engine/replay/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/model.h>

#include "engine/qemu/decode.h"
#include "model/memory.h"
#include "model/predict.h"

#define MOST_AGAIN                                                                                 \
	64u /* interrupts at one instruction; a deadline that stays behind is dropped              \
	     */

/* A transfer whose outcome is seen when the next instruction comes. */
struct transfer {
	uint8_t flow; /* enum flow; FLOW_NONE: there is none */
	uint8_t delay;
	bool in_slot; /* the instruction after it was its delay slot */
	uint64_t pc, fall;
};

struct trace_cpu {
	uint64_t by_class[INSN_BYTES]; /* retired, by class byte */
	uint64_t cycles, taken, syscalls;
	uint64_t missed[MODEL_MISSES];
	uint64_t stalled; /* of the front end, by mispredictions */
	uint64_t armed;
	struct quipu_deadline deadline[QUIPU_SLOTS];
	struct transfer transfer;
	uint64_t rep; /* pc of the instruction before if it repeats, else 1 */
	struct model_memory memory;
	struct model_predictor predict;
	void *bytes;
	bool used;
};

struct cpu_replay {
	struct quipu_signals base;
	const struct quipu_machine *machine;
	const struct isa *isa;
	struct quipu_model model;
	unsigned ncpus, cpu;
	uint64_t records;
	struct trace_cpu *cpus;
	struct model_cache *level3; /* one for each group of CPUs */
	uint8_t **level3_bytes;
	unsigned groups;
};

/* Instruction sets by their ELF machine, in the order of enum quipu_isa. */
static const struct isa *isa_of(enum quipu_isa isa)
{
	static const uint16_t elf[] = {
		[QUIPU_ISA_RISCV64] = 243,
		[QUIPU_ISA_PPC64LE] = 21,
		[QUIPU_ISA_SPARC64] = 43,
		[QUIPU_ISA_X86_64] = 62,
	};

	return isa < sizeof(elf) / sizeof(elf[0]) ? isa_by_elf(elf[isa]) : NULL;
}

/* ---- signals ---- */

static struct cpu_replay *replay_of(struct quipu_signals *base)
{
	return (struct cpu_replay *)base;
}

static bool replay_has(struct quipu_signals *base, quipu_signal signal)
{
	if (quipu_signal_mask(signal))
		return true;
	switch (signal) {
	case QUIPU_SIGNAL_CYCLES:
	case QUIPU_SIGNAL_BRANCHES_TAKEN:
	case QUIPU_SIGNAL_SYSCALLS: return true;
	case QUIPU_SIGNAL_NONE: return false;
	}
	return quipu_model_counts(&replay_of(base)->model, signal);
}

static bool counts(quipu_signal signal, uint64_t mask, unsigned byte)
{
	unsigned class = byte & (INSN_LOAD - 1);

	return (signal == QUIPU_SIGNAL_LOADS && byte & INSN_LOAD) ||
	       (signal == QUIPU_SIGNAL_STORES && byte & INSN_STORE) ||
	       mask & QUIPU_CLASS_BIT(class);
}

static uint64_t class_sum(const struct trace_cpu *c, quipu_signal signal, uint64_t mask)
{
	uint64_t sum = 0;

	for (unsigned byte = 0; byte < INSN_BYTES; byte++)
		if (c->by_class[byte] && counts(signal, mask, byte))
			sum += c->by_class[byte];
	return sum;
}

static uint64_t model_sum(const struct cpu_replay *r, const struct trace_cpu *c,
			  quipu_signal signal)
{
	uint64_t direction = c->missed[MODEL_DIRECTION], back = c->missed[MODEL_RETURN];
	uint64_t target = c->missed[MODEL_TARGET] + back, sum = 0;

	(void)r;
	switch (signal) {
	case QUIPU_SIGNAL_BRANCH_MISSES: return direction + target;
	case QUIPU_SIGNAL_BRANCH_DIRECTION_MISSES: return direction;
	case QUIPU_SIGNAL_BRANCH_TARGET_MISSES: return target;
	case QUIPU_SIGNAL_RETURN_MISSES: return back;
	}
	for (unsigned k = 0; k < MODEL_COUNTS; k++)
		if (model_signal(k) == signal)
			sum += c->memory.count[k];
	return signal == QUIPU_SIGNAL_STALL_FRONTEND ? sum + c->stalled : sum;
}

static uint64_t read_signal(const struct cpu_replay *r, const struct trace_cpu *c,
			    quipu_signal signal)
{
	uint64_t mask;

	signal = quipu_model_alias(signal);
	mask = quipu_signal_mask(signal);
	if (mask)
		return class_sum(c, signal, mask);
	switch (signal) {
	case QUIPU_SIGNAL_CYCLES: return c->cycles;
	case QUIPU_SIGNAL_BRANCHES_TAKEN: return c->taken;
	case QUIPU_SIGNAL_SYSCALLS: return c->syscalls;
	}
	return model_sum(r, c, signal);
}

static uint64_t replay_read(struct quipu_signals *base, unsigned cpu, quipu_signal signal)
{
	const struct cpu_replay *r = replay_of(base);

	return cpu < r->ncpus ? read_signal(r, &r->cpus[cpu], signal) : 0;
}

static void replay_arm(struct quipu_signals *base, unsigned cpu, unsigned slot,
		       const struct quipu_deadline *d)
{
	struct cpu_replay *r = replay_of(base);

	if (cpu >= r->ncpus || slot >= QUIPU_SLOTS)
		return;
	r->cpus[cpu].deadline[slot] = *d;
	r->cpus[cpu].armed |= bits_one(slot);
}

static void replay_disarm(struct quipu_signals *base, unsigned cpu, unsigned slot)
{
	struct cpu_replay *r = replay_of(base);

	if (cpu < r->ncpus && slot < QUIPU_SLOTS)
		r->cpus[cpu].armed &= ~bits_one(slot);
}

static const struct quipu_signals_ops ops = {
	.has = replay_has,
	.read = replay_read,
	.arm = replay_arm,
	.disarm = replay_disarm,
};

/* ---- its life ---- */

static bool make_cpu(struct cpu_replay *r, struct trace_cpu *c, unsigned cpu)
{
	size_t bytes = model_memory_bytes(&r->model);
	unsigned group = cpu / (r->model.l3_cpus ? r->model.l3_cpus : 1);
	struct model_cache *l3 = r->model.l3.sets ? &r->level3[group] : NULL;

	if (c->used)
		return true;
	if (bytes && !(c->bytes = aligned_alloc(64, (bytes + 63) & ~(size_t)63)))
		return false;
	if (bytes)
		memset(c->bytes, 0, (bytes + 63) & ~(size_t)63);
	if (l3 && !r->level3_bytes[group]) {
		size_t size = model_cache_bytes(&r->model.l3);

		r->level3_bytes[group] = aligned_alloc(64, size);
		if (!r->level3_bytes[group])
			return false;
		memset(r->level3_bytes[group], 0, size);
		model_cache_init(l3, &r->model.l3, r->model.lru, r->level3_bytes[group]);
	}
	model_memory_init(&c->memory, &r->model, c->bytes, l3);
	model_predictor_init(&c->predict, &r->model);
	c->rep = 1;
	c->used = true;
	return true;
}

struct cpu_replay *cpu_replay_new(const struct quipu_machine *machine)
{
	struct cpu_replay *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->base.ops = &ops;
	r->machine = machine;
	r->isa = isa_of(machine->isa);
	r->ncpus = machine->ncpus;
	quipu_model_read(machine, &r->model, NULL);
	r->groups = r->ncpus / (r->model.l3_cpus ? r->model.l3_cpus : 1) + 1;
	r->cpus = calloc(r->ncpus ? r->ncpus : 1, sizeof(*r->cpus));
	r->level3 = calloc(r->groups, sizeof(*r->level3));
	r->level3_bytes = calloc(r->groups, sizeof(*r->level3_bytes));
	if (r->isa && r->cpus && r->level3 && r->level3_bytes && r->ncpus &&
	    make_cpu(r, &r->cpus[0], 0))
		return r;
	cpu_replay_free(r);
	return NULL;
}

void cpu_replay_free(struct cpu_replay *r)
{
	if (!r)
		return;
	for (unsigned i = 0; r->cpus && i < r->ncpus; i++)
		free(r->cpus[i].bytes);
	for (unsigned g = 0; r->level3_bytes && g < r->groups; g++)
		free(r->level3_bytes[g]);
	free(r->level3_bytes);
	free(r->level3);
	free(r->cpus);
	free(r);
}

struct quipu_signals *cpu_replay_signals(struct cpu_replay *r)
{
	return &r->base;
}

unsigned cpu_replay_cpu(const struct cpu_replay *r)
{
	return r->cpu;
}

uint64_t cpu_replay_records(const struct cpu_replay *r)
{
	return r->records;
}

/* ---- deadlines ---- */

static uint64_t reached(const struct cpu_replay *r, const struct trace_cpu *c)
{
	uint64_t slots = 0;

	for (uint64_t m = c->armed; m; m &= m - 1) {
		unsigned slot = bits_low(m);
		const struct quipu_deadline *d = &c->deadline[slot];

		/* Counts wrap: what is due lies no more than half a turn back. */
		if ((int64_t)(read_signal(r, c, d->signal) - d->at) >= 0)
			slots |= bits_one(slot);
	}
	return slots;
}

static void serve(struct cpu_replay *r, struct trace_cpu *c, uint64_t pc, uint64_t addr)
{
	for (unsigned n = 0; c->armed; n++) {
		struct quipu_interrupt i = {
			.cpu = r->cpu, .slots = reached(r, c), .pc = pc, .addr = addr};

		if (!i.slots)
			return;
		c->armed &= ~i.slots;
		if (n < MOST_AGAIN && r->base.interrupt)
			r->base.interrupt(r->base.arg, &i);
	}
}

/* ---- an instruction ---- */

static enum model_miss predict(struct trace_cpu *c, const struct transfer *t, uint64_t to,
			       bool left)
{
	uint32_t place = (uint32_t)(t->pc >> 1);
	enum model_miss missed;

	switch (t->flow) {
	case FLOW_COND:
		return model_predict_taken(&c->predict, place, left) ? MODEL_DIRECTION
								     : MODEL_PREDICTED;
	case FLOW_IJUMP: return model_predict_target(&c->predict, place, to);
	case FLOW_CALL: model_predict_call(&c->predict, t->fall); return MODEL_PREDICTED;
	case FLOW_ICALL:
		model_predict_call(&c->predict, t->fall);
		return model_predict_target(&c->predict, place, to);
	case FLOW_RET: return model_predict_return(&c->predict, to);
	case FLOW_COROUTINE:
		missed = model_predict_return(&c->predict, to);
		model_predict_call(&c->predict, t->fall);
		return missed;
	case FLOW_CRET:
		missed = model_predict_taken(&c->predict, place, left) ? MODEL_DIRECTION
								       : MODEL_PREDICTED;
		if (left && model_predict_return(&c->predict, to) && !missed)
			missed = MODEL_RETURN;
		return missed;
	}
	return MODEL_PREDICTED;
}

/* Where the transfer before went is where the next instruction is. */
static void resolve(struct cpu_replay *r, struct trace_cpu *c, uint64_t pc)
{
	struct transfer t = c->transfer;
	enum model_miss missed;
	bool left;

	if (t.flow == FLOW_NONE || t.flow == FLOW_SYSCALL || t.flow == FLOW_REP)
		return;
	if (t.delay && !t.in_slot && pc == t.pc + 4) {
		c->transfer.in_slot = true; /* its delay slot; the next one tells */
		return;
	}
	c->transfer.flow = FLOW_NONE;
	left = pc != t.fall;
	c->taken += left;
	if (r->model.counters) {
		missed = predict(c, &t, pc, left);
		c->missed[missed] += missed != MODEL_PREDICTED;
		if (missed && r->model.full) {
			c->cycles += r->model.mispredict;
			c->stalled += r->model.mispredict;
		}
	}
	serve(r, c, t.pc, 0);
}

static void fetch(struct cpu_replay *r, struct trace_cpu *c, uint64_t pc, unsigned size)
{
	uint64_t line = UINT64_C(1) << r->model.l1i.shift;

	uint64_t lines = (((pc & (line - 1)) + size - 1) >> r->model.l1i.shift) + 1;

	/* Counted: the last line of the address space has no next one. */
	for (uint64_t i = 0; i < lines; i++)
		c->cycles += model_fetch(&c->memory, i ? (pc & -line) + i * line : pc);
}

static void access(struct trace_cpu *c, const struct cpu_access *a)
{
	c->cycles += model_data(&c->memory, a->addr, a->size, a->store);
}

/* Only the decoder's own classes move: a record of the trace gives one without flow. */
static uint8_t flow_of(uint8_t class)
{
	switch (class) {
	case QUIPU_INSN_BRANCH: return FLOW_COND;
	case QUIPU_INSN_JUMP: return FLOW_JUMP;
	case QUIPU_INSN_CALL: return FLOW_CALL;
	case QUIPU_INSN_IJUMP: return FLOW_IJUMP;
	case QUIPU_INSN_ICALL: return FLOW_ICALL;
	case QUIPU_INSN_RET: return FLOW_RET;
	case QUIPU_INSN_CRET: return FLOW_CRET;
	}
	return FLOW_NONE;
}

static void retire(struct cpu_replay *r, struct trace_cpu *c, const struct decoded *d, uint64_t pc)
{
	unsigned cost = r->machine->cost[d->class];

	if (d->flow == FLOW_REP && c->rep == pc) { /* once more, no further instruction */
		c->cycles++;
		return;
	}
	c->rep = d->flow == FLOW_REP ? pc : 1;
	if (d->class != QUIPU_INSN_TRAP)
		c->by_class[(d->class | d->access) & (INSN_BYTES - 1)]++;
	c->cycles += cost ? cost : 1;
}

static int decode(const struct cpu_replay *r, const struct cpu_record *in, struct decoded *d)
{
	*d = (struct decoded){0};
	if (!in->nbytes) {
		d->class = in->class;
		d->size = in->size;
		d->flow = flow_of(in->class);
		return 0;
	}
	r->isa->decode(in->code, in->nbytes, in->pc, d);
	return d->size && d->size <= 16 ? 0 : -EINVAL;
}

static int instruction(struct cpu_replay *r, struct trace_cpu *c, const struct cpu_record *in,
		       const char **why)
{
	struct decoded d;
	int err = decode(r, in, &d);

	if (err) {
		*why = "these bytes are no instruction of the machine";
		return err;
	}
	r->records++;
	resolve(r, c, in->pc);
	retire(r, c, &d, in->pc);
	serve(r, c, in->pc, 0);
	fetch(r, c, in->pc, d.size);
	serve(r, c, in->pc, 0);
	for (unsigned i = 0; i < in->naccesses; i++) {
		access(c, &in->access[i]);
		serve(r, c, in->pc, in->access[i].addr);
	}
	if (d.flow != FLOW_NONE)
		c->transfer = (struct transfer){.flow = d.flow,
						.delay = d.delay,
						.pc = in->pc,
						.fall = in->pc + d.size + (d.delay ? 4u : 0u)};
	return 0;
}

int cpu_replay_record(struct cpu_replay *r, const struct cpu_record *in, const char **why)
{
	struct trace_cpu *c = &r->cpus[r->cpu];

	*why = NULL;
	switch (in->kind) {
	case CPU_ON:
		if (in->cpu >= r->ncpus) {
			*why = "the machine has no such CPU";
			return -EINVAL;
		}
		if (!make_cpu(r, &r->cpus[in->cpu], in->cpu))
			return -ENOMEM;
		r->cpu = in->cpu;
		return 0;
	case CPU_SYSCALL:
		c->syscalls++;
		serve(r, c, c->transfer.pc, 0);
		return 0;
	case CPU_INSN: return instruction(r, c, in, why);
	default: return 0;
	}
}
