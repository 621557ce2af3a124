/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an instruction is, from its bytes: its class (quipu/signal.h) and how it moves control. Done once for each
 * translated instruction. Pure: no QEMU, no state. An instruction set is one row of the table in isa.c.
 */
#ifndef QUIPU_ENGINE_DECODE_H
#define QUIPU_ENGINE_DECODE_H

#include <stdint.h>

#include <quipu/signal.h>

/*
 * How the last instruction of a block leaves it. The order is used: kinds from FLOW_CALL on concern the call stack.
 */
enum flow {
	FLOW_NONE = 0,	/* falls through (or traps) */
	FLOW_COND,	/* direct, conditional */
	FLOW_JUMP,	/* direct */
	FLOW_SYSCALL,	/* asks the system; may be restarted */
	FLOW_IJUMP,	/* indirect */
	FLOW_CALL,	/* direct, linking */
	FLOW_ICALL,	/* indirect, linking */
	FLOW_RET,
	FLOW_COROUTINE, /* returns through one link register and links in the other: pop, then push */
};

struct decoded {
	uint8_t class; /* enum quipu_insn_class */
	uint8_t flow;  /* enum flow */
	uint8_t size;  /* bytes; 0: not decodable */
	uint64_t target; /* of a direct transfer */
};

/* What a system call number means to the engine. */
enum call {
	CALL_OTHER = 0,
	CALL_MMAP,
	CALL_MPROTECT,
	CALL_PRCTL,
	CALL_CLONE,
	CALL_EXECVE,
	CALL_EXIT,
	CALL_SIGACTION,
	CALL_SIGRETURN,
	CALL_OPENAT,
	CALL_NANOSLEEP,
	CALL_CLOCK_NANOSLEEP,
	CALL_PPOLL,
	CALL_PSELECT6,
	CALL_EPOLL_PWAIT,
	CALL_FUTEX,
	CALL_SIGTIMEDWAIT,
	CALL_TIME,   /* the result depends on the host's clock */
	CALL_RANDOM,
	CALL_PID,
	CALL_NETWORK,
};

struct call_row {
	uint16_t nr;
	uint8_t call; /* enum call */
};

struct isa {
	const char *name;	/* QEMU's target name */
	uint16_t elf_machine;
	uint32_t page;
	void (*decode)(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *);
	const struct call_row *calls;
	unsigned ncalls;
};

/* isa_find - the instruction set that QEMU calls @target_name, or NULL. */
const struct isa *isa_find(const char *target_name);
enum call isa_call(const struct isa *, int64_t nr);

/* decode_riscv64 - RV64GC, V and the ratified bit and cache-block extensions; every other encoding is an ALU class. */
void decode_riscv64(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *);

#endif
