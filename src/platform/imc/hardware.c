/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collection hardware of a machine: its registers, and bringing it up to date. IMC
 * sheet 2.2, 2.4 and 3. The parts are microcode.c (nest), engine.c (core and thread), trace.c,
 * memory.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include "platform/imc/hardware.h"

#define FIRST_ADDRESS UINT64_C(0x10000000) /* of what drivers allocate */
#define MAX_CORES     1024u

static void sync_core(struct quipu_imc *imc, struct imc_core *core, uint64_t now)
{
	imc_core_observe(imc, core, now);
	imc_core_post(imc, core, imc_tb(now), imc->exact);
}

void imc_sync_core(struct quipu_imc *imc, struct imc_core *core)
{
	uint64_t now = imc->now(imc->arg);

	if (imc->busy)
		return;
	imc->busy = true;
	for (unsigned i = 0; i < core->nthreads; i++)
		if (imc->thread[core->cpu[i]].trace_armed)
			imc_trace_clock(imc, core->cpu[i], imc_tb(now));
	sync_core(imc, core, now);
	imc->busy = false;
}

void imc_sync(struct quipu_imc *imc)
{
	uint64_t now = imc->now(imc->arg), tb = imc_tb(now);

	if (imc->busy)
		return;
	imc->busy = true;
	for (unsigned cpu = 0; cpu < imc->machine->ncpus; cpu++)
		if (imc->thread[cpu].trace_armed)
			imc_trace_clock(imc, cpu, tb);
	for (unsigned i = 0; i < imc->ncores; i++)
		sync_core(imc, &imc->core[i], now);
	for (unsigned i = 0; i < imc->nchips; i++) {
		imc_chip_advance(imc, &imc->chip[i], now);
		if (imc->exact)
			imc_chip_post(imc, &imc->chip[i]);
	}
	imc->busy = false;
}

void quipu_imc_advance(struct quipu_imc *imc)
{
	imc_sync(imc);
}

void quipu_imc_set_log(struct quipu_imc *imc, void (*log)(void *arg, const char *line), void *arg)
{
	imc->log = log;
	imc->log_arg = arg;
}

void quipu_imc_set_exact(struct quipu_imc *imc, bool exact)
{
	imc->exact = exact;
}

/* ---- SCOM ---- */

enum scom { SCOM_NONE, SCOM_PDBAR, SCOM_HTM_MODE, SCOM_EVENT_MASK, SCOM_TRACE };

static uint64_t quad_address(unsigned core, uint64_t low)
{
	static const uint64_t base[4] = {0x10012200, 0x10012300, 0x10012600, 0x10012700};

	return (uint64_t)((core & 0x1c) + 0x40) << 22 | base[core % 4] | low;
}

static uint64_t core_address(unsigned core, uint64_t base)
{
	return (uint64_t)((core & 0x1f) + 0x20) << 24 | base;
}

static enum scom decode(const struct quipu_imc *imc, uint32_t chip, uint64_t address,
			struct imc_core **core)
{
	for (unsigned i = 0; i < imc->ncores; i++) {
		struct imc_core *c = &imc->core[i];

		if (imc->chip[c->chip].id != chip)
			continue;
		*core = c;
		if (address == quad_address(c->number, 0xb))
			return SCOM_PDBAR;
		if (address == quad_address(c->number, 0))
			return SCOM_HTM_MODE;
		if (address == core_address(c->number, 0x20010aa8))
			return SCOM_EVENT_MASK;
		if (address == core_address(c->number, 0x20010aa9))
			return SCOM_TRACE;
	}
	return SCOM_NONE;
}

static uint64_t *scom_register(struct imc_core *core, enum scom which)
{
	switch (which) {
	case SCOM_PDBAR: return &core->pdbar;
	case SCOM_HTM_MODE: return &core->htm_mode;
	case SCOM_EVENT_MASK: return &core->event_mask;
	case SCOM_TRACE: return &core->trace_scom;
	default: return NULL;
	}
}

int quipu_imc_scom_read(struct quipu_imc *imc, uint32_t chip, uint64_t address, uint64_t *value)
{
	struct imc_core *core = NULL;
	enum scom which = decode(imc, chip, address, &core);

	if (which == SCOM_NONE)
		return -EINVAL;
	*value = *scom_register(core, which);
	return 0;
}

int quipu_imc_scom_write(struct quipu_imc *imc, uint32_t chip, uint64_t address, uint64_t value)
{
	struct imc_core *core = NULL;
	enum scom which = decode(imc, chip, address, &core);

	if (which == SCOM_NONE)
		return -EINVAL;
	imc_sync(imc);
	if (which == SCOM_HTM_MODE) {
		imc_core_set_htm(imc, core, value);
		return 0;
	}
	if (which == SCOM_PDBAR)
		imc_core_post(imc, core, imc_tb(imc->now(imc->arg)), true);
	*scom_register(core, which) = value;
	if (which == SCOM_TRACE)
		for (unsigned i = 0; i < core->nthreads; i++)
			imc_trace_load(imc, core->cpu[i]);
	return 0;
}

/* ---- LDBAR ---- */

int quipu_imc_ldbar_read(struct quipu_imc *imc, unsigned cpu, uint64_t *value)
{
	if (cpu >= imc->machine->ncpus)
		return -EINVAL;
	*value = imc->thread[cpu].ldbar;
	return 0;
}

int quipu_imc_ldbar_write(struct quipu_imc *imc, unsigned cpu, uint64_t value)
{
	if (cpu >= imc->machine->ncpus)
		return -EINVAL;
	if (!value && !imc->thread[cpu].ldbar)
		return 0; /* off stays off: firmware does that to every thread */
	imc_sync(imc);
	imc_thread_set_ldbar(imc, cpu, value);
	return 0;
}

/* ---- chips ---- */

static struct imc_chip_state *chip_by_id(const struct quipu_imc *imc, uint32_t id)
{
	for (unsigned i = 0; i < imc->nchips; i++)
		if (imc->chip[i].id == id)
			return &imc->chip[i];
	return NULL;
}

uint64_t quipu_imc_region(const struct quipu_imc *imc, uint32_t chip)
{
	const struct imc_chip_state *c = chip_by_id(imc, chip);

	return c ? c->region : 0;
}

uint64_t quipu_imc_control(const struct quipu_imc *imc, uint32_t chip)
{
	uint64_t region = quipu_imc_region(imc, chip);

	return region ? region + imc->tree.control_offset : 0;
}

void quipu_imc_traffic(struct quipu_imc *imc, uint32_t chip, unsigned port,
		       enum quipu_imc_traffic what, uint64_t n)
{
	struct imc_chip_state *c = chip_by_id(imc, chip);

	if (!c || port >= QUIPU_IMC_PORTS)
		return;
	imc_sync(imc);
	if (what == QUIPU_IMC_READ_64)
		c->r64[port] += n;
	else if (what == QUIPU_IMC_READ_LINE)
		c->r128[port] += n;
	else
		c->w128[port] += n;
}

uint32_t quipu_imc_pir(const struct quipu_imc *imc, unsigned cpu)
{
	return cpu < imc->machine->ncpus ? (uint32_t)imc->machine->cpus[cpu].reg : UINT32_MAX;
}

void quipu_imc_power_on(struct quipu_imc *imc)
{
	for (unsigned i = 0; i < imc->nchips; i++)
		imc_chip_power_on(imc, &imc->chip[i], imc->now(imc->arg));
}

/* ---- life ---- */

static bool has_cell(const struct imc_cells *cells, uint32_t offset)
{
	for (unsigned i = 0; i < cells->n; i++)
		if (cells->cell[i].offset == offset)
			return true;
	return false;
}

/* The cells that the units of a kind name; the first event in tree order decides what a cell
 * counts. */
static int make_cells(const struct imc_tree *t, struct imc_cells *out, enum imc_type type)
{
	unsigned room = 0;

	for (unsigned i = 0; i < t->nunits; i++)
		room += t->units[i].type == type ? t->units[i].nevents : 0;
	out->cell = calloc(room ? room : 1, sizeof(*out->cell));
	if (!out->cell)
		return -ENOMEM;
	for (unsigned i = 0; i < t->nunits; i++) {
		const struct imc_unit *u = &t->units[i];

		for (unsigned k = 0; u->type == type && k < u->nevents; k++) {
			const struct imc_event *e = &u->events[k];
			bool moved =
				e->source->kind != IMC_NOT_MODELLED && e->source->kind != IMC_ZERO;

			if (!moved || (uint64_t)e->config + 8 > u->size || has_cell(out, e->config))
				continue;
			out->cell[out->n++] = (struct imc_cell){
				.offset = e->config,
				.divisor = e->divisor,
				.source = e->source,
				.mode = e->mode,
				.index = imc_unit_index(u->node),
			};
		}
	}
	return 0;
}

static int make_chips(struct quipu_imc *imc)
{
	uint32_t ids[IMC_MAX_CHIPS];

	imc->nchips = imc_chips(imc->machine, ids);
	imc->chip = calloc(imc->nchips, sizeof(*imc->chip));
	for (unsigned i = 0; imc->chip && i < imc->nchips; i++) {
		struct imc_chip_state *c = &imc->chip[i];

		c->id = ids[i];
		c->counter = calloc(imc->nest.n ? imc->nest.n : 1, sizeof(*c->counter));
		c->memory = imc_memory_add(imc, imc_homer(i) + imc->tree.region_offset,
					   imc->tree.region_size);
		if (!c->counter || !c->memory)
			return -ENOMEM;
		c->region = c->memory->base;
	}
	return imc->chip ? 0 : -ENOMEM;
}

static unsigned chip_index(const struct quipu_imc *imc, uint32_t id)
{
	for (unsigned i = 0; i < imc->nchips; i++)
		if (imc->chip[i].id == id)
			return i;
	return 0; /* more chips than the hardware has: the first collects for them */
}

static struct imc_core *core_for(struct quipu_imc *imc, unsigned cpu)
{
	const struct quipu_cpu *c = &imc->machine->cpus[cpu];
	unsigned chip = chip_index(imc, c->socket);
	/* On hardware that numbers its threads so, the core is in the thread's number (sheet 2.2).
	 */
	unsigned number = (unsigned)(c->reg >> 2 & 0x3f);

	for (unsigned i = 0; i < imc->ncores; i++)
		if (imc->core[i].chip == chip && imc->core[i].number == number &&
		    imc->core[i].nthreads < IMC_MAX_THREADS)
			return &imc->core[i];
	imc->core[imc->ncores] = (struct imc_core){.chip = chip, .number = number};
	return &imc->core[imc->ncores++];
}

static int make_cores(struct quipu_imc *imc)
{
	unsigned ncpus = imc->machine->ncpus;

	imc->core = calloc(ncpus, sizeof(*imc->core));
	imc->thread = calloc(ncpus, sizeof(*imc->thread));
	imc->core_of = calloc(ncpus, sizeof(*imc->core_of));
	if (!imc->core || !imc->thread || !imc->core_of)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < ncpus; cpu++) {
		struct imc_core *core = core_for(imc, cpu);

		core->cpu[core->nthreads++] = cpu;
		imc->core_of[cpu] = (unsigned)(core - imc->core);
		imc->thread[cpu].counter = calloc(imc->thread_cells.n ? imc->thread_cells.n : 1,
						  sizeof(*imc->thread[cpu].counter));
		if (!imc->thread[cpu].counter)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < imc->ncores; i++) {
		imc->core[i].htm_mode = UINT64_C(0xe000000000000000);
		imc->core[i].counter = calloc(imc->core_cells.n ? imc->core_cells.n : 1,
					      sizeof(*imc->core[i].counter));
		if (!imc->core[i].counter)
			return -ENOMEM;
	}
	return 0;
}

static int make(struct quipu_imc *imc)
{
	int err = imc->lent ? 0 : imc_tree_read(imc->machine, true, NULL, &imc->tree);
	int top = quipu_machine_find(imc->machine, "ibm,opal-in-memory-counters");

	if (!err)
		err = make_cells(&imc->tree, &imc->nest, IMC_NEST);
	if (!err)
		err = make_cells(&imc->tree, &imc->core_cells, IMC_CORE);
	if (!err)
		err = make_cells(&imc->tree, &imc->thread_cells, IMC_THREAD);
	if (!err)
		err = make_chips(imc);
	if (!err)
		err = make_cores(imc);
	if (err)
		return err;
	imc->exact = imc->tree.exact;
	quipu_model_read(imc->machine, &imc->model, NULL);
	imc->line_weight = top >= 0 && quipu_machine_number(imc->machine, top,
							    "quipu,mcs-bytes-per-count", 128) == 64
				   ? 2
				   : 1;
	quipu_imc_power_on(imc);
	for (unsigned i = 0; !imc->tree.nest_down && i < imc->nchips; i++)
		imc_chip_boot(imc, &imc->chip[i]);
	return 0;
}

struct quipu_imc *imc_new(const struct quipu_machine *machine, struct quipu_signals *signals,
			  uint64_t (*now)(void *arg), void *arg, const struct imc_tree *tree)
{
	struct quipu_imc *imc = calloc(1, sizeof(*imc));

	if (!imc)
		return NULL;
	imc->machine = machine;
	imc->signals = signals;
	imc->now = now;
	imc->arg = arg;
	imc->next_address = FIRST_ADDRESS;
	imc->lent = tree;
	if (tree)
		imc->tree = *tree;
	if (make(imc)) {
		quipu_imc_free(imc);
		return NULL;
	}
	return imc;
}

struct quipu_imc *quipu_imc_new(const struct quipu_machine *machine, struct quipu_signals *signals,
				uint64_t (*now)(void *arg), void *arg)
{
	return imc_new(machine, signals, now, arg, NULL);
}

void quipu_imc_free(struct quipu_imc *imc)
{
	if (!imc)
		return;
	for (unsigned i = 0; imc->chip && i < imc->nchips; i++)
		free(imc->chip[i].counter);
	for (unsigned i = 0; imc->core && i < imc->ncores; i++)
		free(imc->core[i].counter);
	for (unsigned i = 0; imc->thread && i < imc->machine->ncpus; i++) {
		free(imc->thread[i].counter);
		free(imc->thread[i].trace_unread);
	}
	imc_memory_free(imc);
	if (!imc->lent)
		imc_tree_free(&imc->tree);
	free(imc->nest.cell);
	free(imc->core_cells.cell);
	free(imc->thread_cells.cell);
	free(imc->chip);
	free(imc->core);
	free(imc->thread);
	free(imc->core_of);
	free(imc);
}
