/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The OPAL call gate of in-memory collection: skiboot hw/imc.c, IMC sheet 2. Where its
 * documentation says otherwise, the code is followed: an unknown type succeeds and does nothing,
 * the address of INIT is not checked. No wake-up engine for deep idle states, no fused cores.
 */
#include "platform/imc/hardware.h"

#define EVENT_MASK   UINT64_C(0x0402010000000000)
#define HTM_DISABLED UINT64_C(0xe000000000000000)
#define HTM_ENABLED  UINT64_C(0xe800000000000000)

/* Exact mode has no half millisecond in which a command lies there: the microcode takes it at once.
 */
static void kick(struct quipu_imc *imc, struct imc_chip_state *chip)
{
	if (imc->exact)
		imc_chip_kick(imc, chip);
}

static struct imc_core *core_by_pir(struct quipu_imc *imc, uint64_t pir)
{
	for (unsigned cpu = 0; cpu < imc->machine->ncpus; cpu++)
		if (imc->machine->cpus[cpu].reg == pir)
			return &imc->core[imc->core_of[cpu]];
	return NULL;
}

static int64_t init(struct quipu_imc *imc, const uint64_t *args)
{
	uint32_t type = (uint32_t)args[0];
	struct imc_core *core = core_by_pir(imc, args[2]);

	if (type != QUIPU_OPAL_IMC_CORE && type != QUIPU_OPAL_IMC_TRACE)
		return QUIPU_OPAL_SUCCESS;
	if (!core)
		return QUIPU_OPAL_PARAMETER;
	imc_sync_core(imc,
		      core); /* a driver calls this for each thread; the nest is no part of it */
	if (type == QUIPU_OPAL_IMC_CORE) {
		core->pdbar = args[1] & QUIPU_IMC_ADDRESS;
		core->event_mask = EVENT_MASK;
		imc_core_set_htm(imc, core, HTM_DISABLED);
	} else {
		imc_core_set_htm(imc, core, HTM_DISABLED);
		core->trace_scom = QUIPU_TRACE_SCOM;
	}
	return QUIPU_OPAL_SUCCESS;
}

static int64_t command(struct quipu_imc *imc, const struct imc_core *core, uint64_t word)
{
	struct imc_chip_state *chip = &imc->chip[core->chip];
	uint64_t control = chip->region + imc->tree.control_offset;

	if (!chip->region || !imc_load(imc, control + QUIPU_NEST_STATUS))
		return QUIPU_OPAL_HARDWARE;
	imc_store(imc, control + QUIPU_NEST_COMMAND, word);
	kick(imc, chip);
	return QUIPU_OPAL_SUCCESS;
}

static int64_t control(struct quipu_imc *imc, const uint64_t *args, bool start)
{
	struct imc_core *core = core_by_pir(imc, args[1]);

	if (!core)
		return QUIPU_OPAL_PARAMETER;
	switch ((uint32_t)args[0]) {
	case QUIPU_OPAL_IMC_NEST:
		return command(imc, core, start ? QUIPU_NEST_RUN : QUIPU_NEST_PAUSE);
	case QUIPU_OPAL_IMC_CORE:
	case QUIPU_OPAL_IMC_TRACE:
		imc_core_set_htm(imc, core, start ? HTM_ENABLED : HTM_DISABLED);
		return QUIPU_OPAL_SUCCESS;
	}
	return QUIPU_OPAL_SUCCESS;
}

static bool implemented(uint64_t token)
{
	return token == QUIPU_OPAL_CHECK_TOKEN ||
	       (token >= QUIPU_OPAL_IMC_COUNTERS_INIT && token <= QUIPU_OPAL_IMC_COUNTERS_STOP);
}

int64_t quipu_opal_call(struct quipu_imc *imc, unsigned cpu, uint64_t token, const uint64_t args[8])
{
	if (cpu >= imc->machine->ncpus || !implemented(token))
		return QUIPU_OPAL_PARAMETER;
	if (token == QUIPU_OPAL_CHECK_TOKEN)
		return implemented(args[0]);
	if (token == QUIPU_OPAL_IMC_COUNTERS_INIT)
		return init(imc, args);
	imc_sync(imc);
	return control(imc, args, token == QUIPU_OPAL_IMC_COUNTERS_START);
}
