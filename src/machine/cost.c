// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an instruction costs: the cost table, by instruction class (doc/architecture.md, "Cycles and
 * time").
 *
 * The defaults are declared, simple and the same for every machine; a tree overrides them with
 * quipu,cost-<class> on /cpus. Stalls and mispredictions are no part of it: they come from the
 * models when quipu,timing is "full".
 */
#include <errno.h>
#include <stdio.h>

#include "machine/internal.h"

static const struct {
	const char *name;
	uint16_t cycles;
} class[QUIPU_INSN_CLASSES] = {
	[QUIPU_INSN_ALU] = {"alu", 1},	     [QUIPU_INSN_MUL] = {"mul", 3},
	[QUIPU_INSN_DIV] = {"div", 20},	     [QUIPU_INSN_LOAD] = {"load", 1},
	[QUIPU_INSN_STORE] = {"store", 1},   [QUIPU_INSN_AMO] = {"amo", 8},
	[QUIPU_INSN_LR] = {"lr", 8},	     [QUIPU_INSN_SC] = {"sc", 8},
	[QUIPU_INSN_FLOAD] = {"fload", 1},   [QUIPU_INSN_FSTORE] = {"fstore", 1},
	[QUIPU_INSN_FADD] = {"fadd", 4},     [QUIPU_INSN_FMUL] = {"fmul", 4},
	[QUIPU_INSN_FMA] = {"fma", 4},	     [QUIPU_INSN_FDIV] = {"fdiv", 18},
	[QUIPU_INSN_FOTHER] = {"fother", 4}, [QUIPU_INSN_VECTOR] = {"vector", 1},
	[QUIPU_INSN_BRANCH] = {"branch", 1}, [QUIPU_INSN_JUMP] = {"jump", 1},
	[QUIPU_INSN_CALL] = {"call", 1},     [QUIPU_INSN_IJUMP] = {"ijump", 1},
	[QUIPU_INSN_ICALL] = {"icall", 1},   [QUIPU_INSN_RET] = {"ret", 1},
	[QUIPU_INSN_CRET] = {"cret", 1},     [QUIPU_INSN_CSR] = {"csr", 1},
	[QUIPU_INSN_FENCE] = {"fence", 1},   [QUIPU_INSN_SYSTEM] = {"system", 1},
	[QUIPU_INSN_TRAP] = {"trap", 1},
};

const char *quipu_insn_class_name(enum quipu_insn_class c)
{
	return (unsigned)c < QUIPU_INSN_CLASSES ? class[c].name : "?";
}

void costs_default(uint16_t cost[QUIPU_INSN_CLASSES])
{
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++)
		cost[c] = class[c].cycles;
}

void costs_read(struct quipu_machine *m, struct quipu_dt *dt, uint32_t node)
{
	for (unsigned c = 0; c < QUIPU_INSN_CLASSES; c++) {
		char name[32];
		uint64_t v;
		int err;

		snprintf(name, sizeof(name), "quipu,cost-%s", class[c].name);
		err = dt_number(dt, node, name, &v);
		if (err == -ENOENT)
			continue;
		if (err || v < 1 || v > QUIPU_MAX_COST) {
			dt_note(dt, QUIPU_NOTE_WRONG, node, name,
				"a cost is one number of 1 to %u cycles; it stays %u",
				QUIPU_MAX_COST, m->cost[c]);
			continue;
		}
		m->cost[c] = (uint16_t)v;
		dt_note(dt, QUIPU_NOTE_UNDERSTOOD, node, name, "%u cycles", m->cost[c]);
	}
}
