/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CPU trace as an engine: a source of signals (quipu/signal.h) fed with instructions, so that an
 * RTL test bench or another simulator drives a machine. The format is README.md beside this file.
 * Pure: the caller reads the lines.
 *
 * Counts as the QEMU plugin does: the same decoders, costs, caches, TLBs and predictor, deadlines
 * reached at the instruction. Without call stacks, and without the core that runs ahead of its
 * misses.
 */
#ifndef QUIPU_ENGINE_REPLAY_CPU_H
#define QUIPU_ENGINE_REPLAY_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/machine.h>
#include <quipu/signal.h>

#define CPU_TRACE_ACCESSES 64u /* most accesses of one instruction */
#define CPU_TRACE_HEADER   "# quipu-cpu 1"

/* One line of a trace. */
struct cpu_record {
	enum { CPU_NOTHING, CPU_INSN, CPU_ON, CPU_SYSCALL } kind;
	unsigned cpu; /* CPU_ON */
	uint64_t pc;
	uint8_t nbytes; /* of code; 0: class and size are given */
	uint8_t code[16];
	uint8_t size;
	uint8_t class; /* enum quipu_insn_class */
	uint8_t naccesses;
	struct cpu_access {
		uint64_t addr;
		uint8_t size;
		bool store;
	} access[CPU_TRACE_ACCESSES];
};

/* cpu_trace_is - does a file that begins so hold a CPU trace? @len bytes of its first line. */
bool cpu_trace_is(const char *line, size_t len);
/* cpu_trace_line - one line without its newline. 0, or -EINVAL with @why. */
int cpu_trace_line(const char *line, size_t len, struct cpu_record *, const char **why);

struct cpu_replay;

/* cpu_replay_new - all counts 0. NULL: out of memory, or the machine's instruction set has no
 * decoder here. @machine must outlive it. */
struct cpu_replay *cpu_replay_new(const struct quipu_machine *machine);
void cpu_replay_free(struct cpu_replay *);
struct quipu_signals *cpu_replay_signals(struct cpu_replay *);
/* cpu_replay_record - it happened. 0; -EINVAL with @why (no such CPU, not an instruction). */
int cpu_replay_record(struct cpu_replay *, const struct cpu_record *, const char **why);
/* cpu_replay_cpu - the CPU that records stand on now. */
unsigned cpu_replay_cpu(const struct cpu_replay *);
/* cpu_replay_records - instructions so far, retired or not. */
uint64_t cpu_replay_records(const struct cpu_replay *);

#endif
