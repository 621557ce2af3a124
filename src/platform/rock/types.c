// SPDX-License-Identifier: BSD-2-Clause
/*
 * The type argument of the RKPERF calls, and the registers of the samplers as tables.
 * FWARC/2008/399 section 5 for types and sources; widths, VAs and limits from the OpenSolaris
 * client (Rock sheet sections 3 and 6.2). Holds no state.
 */
#include "platform/rock/chip.h"

/*
 * SPEC (0x1000) is no row: the document lists it without a configuration, the client holds it
 * reserved.
 */
static const struct {
	uint16_t code;
	uint8_t width;
	bool sampled;
	const char *name;
} types[ROCK_TYPES] = {
	[TYPE_CYC] = {RK_PERF_CYC, 39, false, "CYC"},
	[TYPE_INSTR] = {RK_PERF_INSTR, 39, true, "INSTR"},
	[TYPE_L2] = {RK_PERF_L2, 48, true, "L2"},
	[TYPE_MMU] = {RK_PERF_MMU, 48, true, "MMU"},
	[TYPE_YANK] = {RK_PERF_YANK, 64, false, "YANK"},
	[TYPE_SIBLK] = {RK_PERF_SIBLK, 64, false, "SIBLK"},
	[TYPE_LVLK] = {RK_PERF_LVLK, 64, false, "LVLK"},
};

unsigned rock_type_code(enum rock_type t)
{
	return types[t].code;
}

const char *rock_type_name(enum rock_type t)
{
	return types[t].name;
}

unsigned rock_type_width(enum rock_type t)
{
	return types[t].width;
}

bool rock_type_sampled(enum rock_type t)
{
	return types[t].sampled;
}

bool rock_type_sod(enum rock_type t)
{
	return t >= TYPE_YANK;
}

/*
 * The document puts the source into the upper word, the only known client into bits 3:0. They
 * cannot collide.
 */
bool rock_type_decode(uint64_t arg, bool init, enum rock_type *type, unsigned *source)
{
	uint32_t code = (uint32_t)arg & ~SOURCES;
	uint64_t low = arg & SOURCES, high = arg >> 32;
	unsigned t = 0;

	while (t < ROCK_TYPES && types[t].code != code)
		t++;
	if (t == ROCK_TYPES || high > SOURCES || (low && high && low != high))
		return false;
	*type = (enum rock_type)t;
	*source = (unsigned)(low | high);
	if (!init)
		return true;
	return *source && (t == TYPE_L2 || !(*source & (RK_PERF_SRC_SIU | RK_PERF_SRC_MMU)));
}

/*
 * A candidate counter that is too small would trap at once and for ever: the document's "denial of
 * service".
 */
static const struct rock_register configs[ROCK_SAMPLERS][REGS_MAX] = {
	[TYPE_INSTR] =
		{
			[IS_PC_MASK] = {.va = QUIPU_ROCK_IS_PC_MASK},
			[IS_PC_MATCH] = {.va = QUIPU_ROCK_IS_PC_MATCH},
			[IS_CC_LATENCY] = {.va = QUIPU_ROCK_IS_CC_LATENCY_MASK,
					   .low_mask = 0x3ff,
					   .low_shift = 22,
					   .low_min = 50,
					   .low_max = 1023},
			[IS_CONTEXT_FILTER] = {.va = QUIPU_ROCK_IS_CONTEXT_FILTER},
			[IS_INFO_MASK] = {.va = QUIPU_ROCK_IS_INFO_MASK},
			[IS_INFO_MATCH] = {.va = QUIPU_ROCK_IS_INFO_MATCH},
		},
	[TYPE_L2] =
		{
			[TX_EA_MASK] = {.va = QUIPU_ROCK_L2_EA_MASK},
			[TX_EA_MATCH] = {.va = QUIPU_ROCK_L2_EA_MATCH},
			[TX_FILTER] = {.va = QUIPU_ROCK_L2_TXN_INFO_FILTER},
			[TX_CC] = {.va = QUIPU_ROCK_L2_CC,
				   .low_mask = UINT64_MAX,
				   .low_min = 250,
				   .low_max = 65535},
		},
	[TYPE_MMU] =
		{
			[TX_EA_MASK] = {.va = QUIPU_ROCK_MMU_EA_MASK, .model_only = true},
			[TX_EA_MATCH] = {.va = QUIPU_ROCK_MMU_EA_MATCH, .model_only = true},
			[TX_FILTER] = {.va = QUIPU_ROCK_MMU_TXN_INFO_FILTER, .model_only = true},
			[TX_CC] = {.va = QUIPU_ROCK_MMU_CC,
				   .model_only = true,
				   .low_mask = UINT64_MAX,
				   .low_min = 250,
				   .low_max = 65535},
		},
};

static const struct rock_register samples[ROCK_SAMPLERS][REGS_MAX] = {
	[TYPE_INSTR] =
		{
			[IS_INFO] = {.va = QUIPU_ROCK_IS_INFO},
			[IS_CONTEXT] = {.va = QUIPU_ROCK_IS_CONTEXT},
			[IS_PC] = {.va = QUIPU_ROCK_IS_PC, .model_only = true},
			[IS_EA] = {.va = QUIPU_ROCK_IS_EA, .model_only = true},
			[IS_LATENCY] = {.va = QUIPU_ROCK_IS_LATENCY, .model_only = true},
		},
	[TYPE_L2] =
		{
			[TX_INFO] = {.va = QUIPU_ROCK_L2_TXN_INFO},
			[TX_EA] = {.va = QUIPU_ROCK_L2_EA, .model_only = true},
		},
	[TYPE_MMU] =
		{
			[TX_INFO] = {.va = QUIPU_ROCK_MMU_TXN_INFO, .model_only = true},
			[TX_EA] = {.va = QUIPU_ROCK_MMU_EA, .model_only = true},
		},
};

int rock_register_find(const struct quipu_rock *r, enum rock_type type, bool sample, uint64_t va)
{
	const struct rock_register *table = sample ? samples[type] : configs[type];

	for (unsigned i = 0; i < REGS_MAX; i++)
		if (table[i].va && table[i].va == va)
			return table[i].model_only && r->config.strict ? -1 : (int)i;
	return -1;
}

bool rock_register_allows(enum rock_type type, unsigned reg, uint64_t value)
{
	const struct rock_register *c = &configs[type][reg];
	uint64_t field = value >> c->low_shift & c->low_mask;

	return !c->low_mask || (field >= c->low_min && field <= c->low_max);
}

void rock_frequency_limits(enum rock_type type, uint64_t *min, uint64_t *max)
{
	const struct rock_register *c =
		&configs[type][type == TYPE_INSTR ? (unsigned)IS_CC_LATENCY : (unsigned)TX_CC];

	*min = c->low_min;
	*max = c->low_max;
}
