/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and numbers of user registers in samples: asm/perf_regs.h of x86, riscv and powerpc (Linux
 * 6.12), perf ABI sheet A15. Pure. How QEMU calls them is the plugin's (engine/qemu/regs.c).
 */
#include <quipu/perf_regs.h>

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <quipu/bits.h>

static const char *const x86[QUIPU_PERF_REGS] = {
	"AX", "BX", "CX", "DX", "SI", "DI", "BP",  "SP",  "IP",	 "FLAGS", "CS",	 "SS",
	"DS", "ES", "FS", "GS", "R8", "R9", "R10", "R11", "R12", "R13",	  "R14", "R15",
};

static const char *const riscv[QUIPU_PERF_REGS] = {
	"pc", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
	"a1", "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
	"s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
};

static const char *const power[QUIPU_PERF_REGS] = {
	"r0",	"r1",  "r2",  "r3",    "r4",   "r5",  "r6",    "r7",	  "r8",
	"r9",	"r10", "r11", "r12",   "r13",  "r14", "r15",   "r16",	  "r17",
	"r18",	"r19", "r20", "r21",   "r22",  "r23", "r24",   "r25",	  "r26",
	"r27",	"r28", "r29", "r30",   "r31",  "nip", "msr",   "orig_r3", "ctr",
	"link", "xer", "ccr", "softe", "trap", "dar", "dsisr", "sier",	  "mmcra",
};

static const struct {
	const char *const *names;
	uint64_t valid, given;
} sets[QUIPU_ISAS] = {
	/* x86: those of a process of 64 bits have no DS, ES, FS, GS. */
	[QUIPU_ISA_X86_64] = {x86, UINT64_C(0xff0fff), UINT64_C(0xff0dff)},
	[QUIPU_ISA_RISCV64] = {riscv, UINT64_C(0xffffffff), UINT64_C(0xffffffff)},
	/* r0-r31, nip, ctr, link, xer, ccr */
	[QUIPU_ISA_PPC64LE] = {power, UINT64_C(0x1fffffffffff), UINT64_C(0x79ffffffff)},
};

const char *quipu_perf_reg_name(enum quipu_isa isa, unsigned i)
{
	return isa < QUIPU_ISAS && sets[isa].names && i < QUIPU_PERF_REGS ? sets[isa].names[i]
									  : NULL;
}

uint64_t quipu_perf_regs_valid(enum quipu_isa isa)
{
	return isa < QUIPU_ISAS ? sets[isa].valid : 0;
}

uint64_t quipu_perf_regs_given(enum quipu_isa isa)
{
	return isa < QUIPU_ISAS ? sets[isa].given : 0;
}

int quipu_perf_regs_parse(enum quipu_isa isa, const char *list, uint64_t *mask, const char **bad)
{
	uint64_t valid = quipu_perf_regs_valid(isa);

	*mask = 0;
	for (const char *word = list;; word++) {
		size_t len = strcspn(word, ",");
		uint64_t found = 0;

		for (uint64_t m = valid; m; m &= m - 1) {
			const char *name = quipu_perf_reg_name(isa, bits_low(m));

			if (name && strlen(name) == len && !strncasecmp(name, word, len))
				found = bits_one(bits_low(m));
		}
		if (!found) {
			*bad = word;
			return -EINVAL;
		}
		*mask |= found;
		word += len;
		if (!*word)
			return 0;
	}
}
