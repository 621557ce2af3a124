/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an instruction is, from its bytes: its class (quipu/signal.h) and how it moves control. Done
 * once for each translated instruction. Pure: no QEMU, no state. An instruction set is one row of
 * the table in isa.c.
 */
#ifndef QUIPU_ENGINE_DECODE_H
#define QUIPU_ENGINE_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include <quipu/signal.h>

#include "model/ahead.h"

/*
 * How the last instruction of a block leaves it. The order is used: kinds from FLOW_CALL on concern
 * the call stack.
 */
enum flow {
	FLOW_NONE = 0, /* falls through (or traps) */
	FLOW_COND,     /* direct, conditional */
	FLOW_JUMP,     /* direct */
	FLOW_SYSCALL,  /* asks the system; may be restarted */
	FLOW_REP,      /* one instruction, done again until its count is used up (x86) */
	FLOW_IJUMP,    /* indirect */
	FLOW_CALL,     /* direct, linking */
	FLOW_ICALL,    /* indirect, linking */
	FLOW_RET,
	FLOW_COROUTINE, /* returns through one link register and links in the other: pop, then push
			 */
	FLOW_CRET,	/* conditional return (ppc64le) */
};

/* Beside the class, for instructions that compute and access memory at once: in the class byte of a
 * block's record. */
#define INSN_LOAD     0x20u
#define INSN_STORE    0x40u
#define INSN_BYTES    128u /* values of them */
/* In the class byte too: a trap of the register window may end it before it has done anything
 * (sparc64). */
#define INSN_RESTARTS 0x80u
_Static_assert(QUIPU_INSN_CLASSES <= INSN_LOAD, "class and accesses share a byte");

/* The instruction behind a transfer that is executed before its target (sparc64). */
enum delay {
	DELAY_NONE = 0,
	DELAY_ALWAYS, /* annul bit 0, and transfers that have none */
	DELAY_TAKEN,  /* annulled unless taken */
	DELAY_NEVER,  /* always annulled */
};

/*
 * Where an instruction accesses memory that loads from, or stores to, one address, which is a
 * general register and a constant: nothing else makes it, and the access is all that it does to
 * memory. What is of no such kind, or not known to be, has no place.
 */
struct place {
	uint8_t base;  /* number of the register + 1; 0: no place */
	uint8_t bytes; /* log2, at most 4 */
	int32_t offset;
};

/*
 * The general registers that an instruction writes, after its access. It may have a second one,
 * whose new value is not known (x86's pop: the stack pointer grows by a constant, and the register
 * is loaded); when both are the same register, that is @reg, and does not grow.
 */
#define CHANGES_UNKNOWN 0u   /* more than these, or it is not known which */
#define CHANGES_NOTHING 255u /* else its number + 1 */
struct change {
	uint8_t reg;
	bool by_known; /* @reg grows by a constant */
	int32_t by;
	uint8_t also; /* the second, its number + 1; 0: none */
};

struct decoded {
	uint8_t class;	 /* enum quipu_insn_class */
	uint8_t flow;	 /* enum flow */
	uint8_t size;	 /* bytes; 0: not decodable */
	uint8_t access;	 /* INSN_LOAD, INSN_STORE, INSN_RESTARTS: beside what the class says */
	uint8_t again;	 /* FLOW_REP: the accesses of each repetition */
	uint8_t delay;	 /* enum delay */
	uint64_t target; /* of a direct transfer */
	struct place place;
	struct change change;
	struct ahead_operands operands; /* sparc64 */
	bool flush, barrier;		/* sparc64: flush; membar, stbar */
};

/* What a system call number means to the engine. */
enum call {
	CALL_OTHER = 0,
	CALL_MMAP,
	CALL_MPROTECT,
	CALL_PRCTL,
	CALL_CLONE, /* and fork, vfork */
	CALL_EXECVE,
	CALL_EXIT,
	CALL_EXIT_GROUP,
	CALL_SIGACTION,
	CALL_SIGRETURN,
	CALL_OPENAT,
	CALL_OPEN,
	CALL_NANOSLEEP,
	CALL_CLOCK_NANOSLEEP,
	CALL_POLL,
	CALL_PPOLL,
	CALL_SELECT,
	CALL_PSELECT6,
	CALL_EPOLL_PWAIT, /* and epoll_wait */
	CALL_FUTEX,
	CALL_SIGTIMEDWAIT,
	CALL_TIME, /* the result depends on the host's clock */
	CALL_RANDOM,
	CALL_PID,
	CALL_NETWORK,
	/* told to machines that watch for them: pages.c */
	CALL_MUNMAP,
	CALL_MREMAP,
	CALL_BRK,
	CALL_WAIT, /* other calls that block: wait4, waitid, pause */
	CALL_YIELD,
	CALL_WRITE, /* and writev */
	CALL_KILL,
	CALL_TGKILL,
};

struct call_row {
	uint16_t nr;
	uint8_t call; /* enum call */
};

/* What an instruction set asks of the engine. */
enum isa_trait {
	ISA_TRACK = 1u << 0,  /* the block before is always kept (FLOW_REP) */
	ISA_BRANCH = 1u << 1, /* blocks that are left half-way are ordinary (window traps): what
				 restarts is looked at, and with branches all successors are */
	ISA_PHANTOM =
		1u << 2, /* the last instruction of a block may not be in it (engine sheet 5.4) */
	ISA_BIG_ENDIAN = 1u << 3,
	ISA_WIDE = 1u << 4, /* it has vector registers of more than 16 bytes */
};

struct isa {
	const char *name; /* QEMU's target name */
	uint16_t elf_machine;
	uint32_t page;
	uint32_t traits;     /* enum isa_trait */
	const char *sysroot; /* of Debian's cross libc, NULL: the host's own root */
	const char *cpu;     /* QEMU's -cpu, NULL: its default */
	uint32_t faults;     /* bit of each signal that an instruction itself can raise */
	void (*decode)(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *);
	const struct call_row *calls;
	unsigned ncalls;
};

/* isa_find - the instruction set that QEMU calls @target_name, or NULL. */
const struct isa *isa_find(const char *target_name);
const struct isa *isa_by_elf(uint16_t elf_machine);
enum call isa_call(const struct isa *, int64_t nr);
/* What a system call moves when its result is a number of bytes. */
enum io { IO_READ, IO_WRITE, IO_SEND, IO_RECEIVE, IO_NONE };
enum io isa_io(const struct isa *, int64_t nr);

/* decode_riscv64 - RV64GC, V and the ratified bit and cache-block extensions; every other encoding
 * is an ALU class. */
void decode_riscv64(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *);
/* decode_ppc64le - Power ISA 3.0; prefixed instructions by length, and as loads or stores. */
void decode_ppc64le(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *);
/* decode_sparc64 - SPARC V9 in memory order (big-endian). */
void decode_sparc64(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *);
/* decode_x86_64 - 64-bit mode; VEX, and the lengths of EVEX. @len bytes are there, of which it may
 * use up to 15. */
void decode_x86_64(const uint8_t *bytes, unsigned len, uint64_t pc, struct decoded *);

#endif
