/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver of the POWER9 core PMU on bare metal: Linux 6.12 arch/powerpc/perf/core-book3s.c,
 * power9-pmu.c; power-cpu sheet section 5.
 *
 * Not there: event-based branches.
 * An event that the model cannot count is refused (property quipu,unknown-events = "zero": opens
 * and reads 0, as Linux would).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/attr.h>
#include <quipu/bits.h>

#include "platform/core_pmu.h"
#include "platform/power/driver.h"
#include "platform/power/events.h"

#define MAX_PERIOD  PMC_NEGATIVE /* a counter goes no farther than this before it interrupts */
#define ROLL_BACK   256u
#define GROUP_LIMIT 5u
#define CHAIN_MOST  1024u
#define PERFMON_ON  (UINT64_C(1) << 63)
#define REG_FREEZE  (MMCR0_FC | MMCR0_PMAE | MMCR0_PMAO | MMCR0_FC56)

struct driver_cpu {
	struct quipu_event *event[POWER_PMCS];
	unsigned n;
	unsigned slots; /* deadline slots in use, a bit each */
	bool changed;	/* since the registers were written */
	bool in_txn;
	bool enabled; /* H_PERFMON was called */
	uint64_t pmis;
};

struct power_driver {
	struct core_pmu base;
	struct power_pmu *hardware;
	struct driver_cpu *cpus;
	uint32_t pvr;
	bool zero;			      /* unknown events open */
	bool partition;			      /* under a hypervisor */
	bool start_quirk;		      /* Linux's start: see power_start */
	uint64_t chain[CHAIN_MOST];	      /* of the sample being made */
	struct quipu_pmu_event *list, *names; /* files of sysfs; names of the processor's manual */
};

/* What the driver keeps of an event: hw.config the code, config_base its freeze bits, event_base
 * its slot, idx PMC - 1. */

/* ---- registers ---- */

static uint64_t mfspr(const struct power_driver *d, unsigned cpu, unsigned spr)
{
	uint64_t value = 0;

	power_mfspr(d->hardware, cpu, spr, &value);
	core_pmu_trace(&d->base, "cpu %u: mfspr %u = 0x%" PRIx64, cpu, spr, value);
	return value;
}

static void mtspr(const struct power_driver *d, unsigned cpu, unsigned spr, uint64_t value)
{
	core_pmu_trace(&d->base, "cpu %u: mtspr %u <- 0x%" PRIx64, cpu, spr, value);
	power_mtspr(d->hardware, cpu, spr, value);
}

static unsigned pmc_spr(int idx)
{
	return SPR_PMC1 + (unsigned)idx;
}

static struct power_driver *driver_of(const struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

/* ---- which event ---- */

static int code_of(struct power_driver *d, const struct quipu_attr *attr, uint64_t *code)
{
	int err = 0;

	*code = attr->config;
	if (attr->type == PERF_TYPE_HARDWARE)
		err = power_hardware_code(attr->config, code);
	else if (attr->type == PERF_TYPE_HW_CACHE)
		err = power_cache_code(attr->config, code);
	else if (attr->type != PERF_TYPE_RAW)
		return -ENOENT;
	if (err) {
		quipu_core_reason(
			d->base.core,
			"the POWER9 core PMU has no such event; `quipu list` shows those it has");
		return err;
	}
	if (attr->type != PERF_TYPE_HARDWARE && power_blacklisted(d->pvr, *code)) {
		quipu_core_reason(d->base.core,
				  "event 0x%" PRIx64
				  " counts wrongly on this revision (PVR 0x%08x)",
				  *code, d->pvr);
		return -EINVAL;
	}
	return 0;
}

/* Values of sampling and threshold fields that the architecture reserves; looked for in the
 * caller's own config. */
static bool reserved_values(uint64_t config)
{
	static const uint8_t modes[] = {0x05, 0x09, 0x0c, 0x0d, 0x19, 0x1a, 0x1d, 0x1e};
	uint64_t mode = bits_get(config, POWER_SAMPLE);

	for (size_t i = 0; i < sizeof(modes); i++)
		if (mode == modes[i])
			return true;
	return (mode & 3) == 3 || bits_get(config, POWER_THRESH_START) == 15 ||
	       bits_get(config, POWER_THRESH_STOP) == 15;
}

/* On bare metal the kernel runs with HV set, and there is nothing else to leave out. */
static uint64_t freeze_of(const struct power_driver *d, uint64_t flags)
{
	uint64_t kernel = d->partition ? POWER_FCS : POWER_FCH;

	return (flags & QUIPU_ATTR_EXCLUDE_USER ? POWER_FCP : 0) |
	       (flags & QUIPU_ATTR_EXCLUDE_KERNEL ? kernel : 0) |
	       (d->partition && flags & QUIPU_ATTR_EXCLUDE_HV ? POWER_FCH : 0) |
	       (flags & QUIPU_ATTR_EXCLUDE_IDLE ? POWER_FCWAIT : 0);
}

/* The branch history holds all taken branches, or the calls among them: one filter at a time. */
static int check_branches(struct power_driver *d, const struct quipu_attr *attr)
{
	uint64_t kinds = attr->branch_sample_type & ~(uint64_t)PERF_SAMPLE_BRANCH_PLM_ALL;

	if (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK) || kinds == PERF_SAMPLE_BRANCH_ANY ||
	    kinds == PERF_SAMPLE_BRANCH_ANY_CALL)
		return 0;
	quipu_core_reason(d->base.core,
			  "the branch history holds all taken branches (-b, -j any) or calls alone "
			  "(-j any_call); it has no other filter");
	return -EOPNOTSUPP;
}

/* Does the group fit with one more? The chosen code of @e comes back. */
static int check_group(struct power_driver *d, struct quipu_event *e, uint64_t *code)
{
	struct quipu_event *leader = quipu_event_leader(e), *member;
	uint64_t codes[POWER_PMCS];
	bool task[POWER_PMCS];
	unsigned n = 0;
	int err;

	for (unsigned i = 0; leader != e && (member = quipu_event_member(leader, i)); i++) {
		if (member == e || quipu_event_pmu(member) != &d->base.pmu ||
		    quipu_event_state(member) == -1)
			continue;
		if (n == GROUP_LIMIT) {
			quipu_core_reason(d->base.core,
					  "a group has room for %u events of the core PMU",
					  GROUP_LIMIT);
			return -EINVAL;
		}
		codes[n] = quipu_event_hw(member)->config;
		task[n++] = quipu_event_task(member) != NULL;
	}
	codes[n] = *code;
	task[n] = quipu_event_task(e) != NULL;
	err = check_branches(d, quipu_event_attr(e));
	if (err)
		return err;
	if (power_fit(codes, task, n + 1)) {
		quipu_core_reason(
			d->base.core,
			n ? "with the other events of its group it does not fit the counters: several want the same one; "
			    "count them apart"
			  : "no counter can count this code (constraints of POWER9's event codes)");
		return -EINVAL;
	}
	*code = codes[n];
	return 0;
}

static bool counted(const struct power_driver *d, const struct power_event *x)
{
	return core_pmu_has(&d->base, x->signal) && core_pmu_has(&d->base, x->minus);
}

static bool want(const struct power_driver *d, quipu_signal s)
{
	return s == QUIPU_SIGNAL_NONE || !d->base.signals->ops->want ||
	       !d->base.signals->ops->want(d->base.signals, s);
}

static bool needs_full(const struct power_event *x)
{
	return x->signal == QUIPU_SIGNAL_STALL_FRONTEND || x->signal == QUIPU_SIGNAL_STALL_BACKEND;
}

/* Does a count without :u include what the hypervisor is declared to do? */
static bool hypervisor_adds(const struct power_driver *d, const struct power_event *x)
{
	return d->partition && x &&
	       (x->signal == QUIPU_SIGNAL_INSTRUCTIONS || x->signal == QUIPU_SIGNAL_CYCLES ||
		power_pmu_declared(d->hardware, x));
}

/* Is there a model behind the code? */
static int check_model(struct power_driver *d, uint64_t code)
{
	const struct power_event *x = power_event_by_code(code);

	if (!x) {
		if (d->zero) {
			quipu_core_reason(d->base.core,
					  "event 0x%" PRIx64 " is not modelled: reads 0", code);
			return 0;
		}
		quipu_core_reason(d->base.core,
				  "event 0x%" PRIx64
				  " is not modelled; no number is better than a false 0",
				  code);
		return -EOPNOTSUPP;
	}
	if (!counted(d, x)) {
		quipu_core_reason(d->base.core, "%s needs a model that does not run here%s",
				  x->name, needs_full(x) ? ": --timing full" : "");
		return -ENOENT;
	}
	/* An event that is one signal and nothing else is told to the engine by whoever opens it.
	 */
	if ((x->minus != QUIPU_SIGNAL_NONE || power_pmu_declared(d->hardware, x)) &&
	    (!want(d, x->signal) || !want(d, x->minus))) {
		quipu_core_reason(d->base.core, "the engine has no counter left for %s", x->name);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int power_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct power_driver *d = pmu->driver;
	const struct quipu_attr *attr = quipu_event_attr(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t code;
	int err = code_of(d, attr, &code);

	if (err)
		return err;
	if (attr->type == PERF_TYPE_RAW && reserved_values(attr->config)) {
		quipu_core_reason(d->base.core,
				  "config 0x%" PRIx64 " has reserved sampling or threshold values",
				  (uint64_t)attr->config);
		return -EINVAL;
	}
	err = check_group(d, e, &code);
	if (err)
		return err;
	if (bits_get(code, POWER_EBB)) {
		quipu_core_reason(d->base.core, "event-based branches are not modelled");
		return -EOPNOTSUPP;
	}
	err = check_model(d, code);
	if (err)
		return err;
	core_pmu_begin(&d->base, e, code);
	hw->config_base = freeze_of(d, attr->flags);
	if (attr->flags & QUIPU_ATTR_EXCLUDE_USER &&
	    (!d->partition || attr->flags & QUIPU_ATTR_EXCLUDE_HV))
		quipu_core_reason(
			d->base.core,
			"counts 0: a program under a user-mode engine has no kernel activity; drop :k");
	return 0;
}

/* ---- counting ---- */

static void update(struct power_driver *d, unsigned cpu, struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now = mfspr(d, cpu, pmc_spr(hw->idx)),
		 delta = (now - hw->prev_count) & bits_mask(32);

	/* Speculation can be rolled back: a counter that lost a little has not wrapped. */
	if (hw->prev_count > now && hw->prev_count - now < ROLL_BACK)
		delta = 0;
	if (!delta)
		return;
	core_pmu_count(e, now, delta);
}

static void power_read(struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);

	if (!(hw->state & QUIPU_HES_STOPPED) && hw->idx >= 0)
		update(driver_of(e), core_pmu_cpu(e), e);
}

/*
 * As in Linux, a counting event is started and stopped by add and del alone. Linux's start leaves
 * prev_count where the stop found it: where the period was set to another value in between (the
 * core zeroes what is left of it), the rest of the old one is counted on top at the next interrupt.
 */
static void power_start(struct quipu_event *e, int flags)
{
	struct power_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (hw->idx < 0 || !quipu_event_attr(e)->sample_period || !(hw->state & QUIPU_HES_STOPPED))
		return;
	hw->state = 0;
	if (d->start_quirk && hw->reload.period_left < (int64_t)PMC_NEGATIVE) {
		mtspr(d, core_pmu_cpu(e), pmc_spr(hw->idx),
		      PMC_NEGATIVE - (uint64_t)hw->reload.period_left);
		return;
	}
	core_pmu_set_period(&d->base, hw);
	mtspr(d, core_pmu_cpu(e), pmc_spr(hw->idx), hw->prev_count);
}

static void power_stop(struct quipu_event *e, int flags)
{
	struct power_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	if (hw->idx < 0 || !quipu_event_attr(e)->sample_period || (hw->state & QUIPU_HES_STOPPED))
		return;
	update(d, core_pmu_cpu(e), e);
	hw->state |= QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
	mtspr(d, core_pmu_cpu(e), pmc_spr(hw->idx), 0);
}

/* All events of a CPU: do they fit? The chosen codes go back into them. */
static int fit(struct driver_cpu *c)
{
	uint64_t codes[POWER_PMCS];
	bool task[POWER_PMCS];

	for (unsigned i = 0; i < c->n; i++) {
		codes[i] = quipu_event_hw(c->event[i])->config;
		task[i] = quipu_event_task(c->event[i]) != NULL;
	}
	if (power_fit(codes, task, c->n))
		return -EAGAIN;
	for (unsigned i = 0; i < c->n; i++)
		quipu_event_hw(c->event[i])->config = codes[i];
	return 0;
}

static int power_add(struct quipu_event *e, int flags)
{
	struct power_driver *d = driver_of(e);
	struct driver_cpu *c = &d->cpus[core_pmu_cpu(e)];
	struct quipu_hw_event *hw = quipu_event_hw(e);

	if (c->n == POWER_PMCS)
		return -EAGAIN;
	hw->idx = -1;
	hw->state = flags & QUIPU_EF_START ? 0 : QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
	c->event[c->n++] = e;
	if (!c->in_txn && fit(c)) {
		c->n--;
		quipu_core_reason(d->base.core, "the counters that it could use are taken");
		return -EAGAIN;
	}
	hw->event_base = bits_low(~(uint64_t)c->slots);
	c->slots |= 1u << hw->event_base;
	c->changed = true;
	return 0;
}

static void power_del(struct quipu_event *e, int flags)
{
	struct power_driver *d = driver_of(e);
	unsigned cpu = core_pmu_cpu(e), i = 0;
	struct driver_cpu *c = &d->cpus[cpu];
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	power_read(e);
	while (i < c->n && c->event[i] != e)
		i++;
	if (i == c->n)
		return;
	memmove(&c->event[i], &c->event[i + 1], (c->n - i - 1) * sizeof(c->event[0]));
	c->n--;
	c->slots &= ~(1u << hw->event_base);
	c->changed = true;
	if (hw->idx >= 0)
		mtspr(d, cpu, pmc_spr(hw->idx), 0);
	hw->idx = -1;
	hw->state |= QUIPU_HES_STOPPED | QUIPU_HES_UPTODATE;
}

/* Once for each CPU; the result is of no interest, as in Linux. */
static void enable_facility(struct power_driver *d, unsigned cpu)
{
	uint64_t mode = 0;
	int rc = power_h_perfmon(d->hardware, cpu, PERFMON_ON, 0, &mode);

	d->cpus[cpu].enabled = true;
	core_pmu_trace(&d->base, "cpu %u: H_PERFMON set 0x%" PRIx64 " = %d, mode 0x%" PRIx64, cpu,
		       PERFMON_ON, rc, mode);
}

static void power_disable(struct quipu_pmu *pmu, unsigned cpu)
{
	struct power_driver *d = pmu->driver;

	if (d->partition && !d->cpus[cpu].enabled)
		enable_facility(d, cpu);
	mtspr(d, cpu, SPR_MMCR0, (mfspr(d, cpu, SPR_MMCR0) & ~REG_FREEZE) | MMCR0_FC);
}

/* Give each event its counter: those that move are read first. */
static void place(struct power_driver *d, unsigned cpu, struct driver_cpu *c,
		  const struct power_values *v)
{
	for (unsigned i = 0; i < c->n; i++) {
		struct quipu_hw_event *hw = quipu_event_hw(c->event[i]);

		if (hw->idx < 0 || hw->idx == (int)v->pmc[i] - 1)
			continue;
		power_read(c->event[i]);
		mtspr(d, cpu, pmc_spr(hw->idx), 0);
		hw->idx = -1;
	}
	for (unsigned i = 0; i < c->n; i++) {
		struct quipu_hw_event *hw = quipu_event_hw(c->event[i]);

		power_pmu_set_slot(d->hardware, cpu, v->pmc[i], (unsigned)hw->event_base);
		if (hw->idx >= 0)
			continue;
		hw->idx = (int)v->pmc[i] - 1;
		core_pmu_set_period(&d->base, hw);
		mtspr(d, cpu, pmc_spr(hw->idx), hw->state & QUIPU_HES_STOPPED ? 0 : hw->prev_count);
	}
}

static void power_enable(struct quipu_pmu *pmu, unsigned cpu)
{
	struct power_driver *d = pmu->driver;
	struct driver_cpu *c = &d->cpus[cpu];
	uint64_t codes[POWER_PMCS], freeze[POWER_PMCS];
	struct power_values v;

	if (d->partition)
		power_vpa_in_use(d->hardware, cpu, c->n > 0);
	if (!c->n)
		return;
	for (unsigned i = 0; i < c->n; i++) {
		codes[i] = quipu_event_hw(c->event[i])->config;
		freeze[i] = quipu_event_hw(c->event[i])->config_base;
	}
	if (power_compute(codes, freeze, c->n, &v))
		return; /* cannot be: they fit when they were added */
	if (c->changed) {
		mtspr(d, cpu, SPR_MMCRA, v.mmcra & ~UINT64_C(1));
		mtspr(d, cpu, SPR_MMCR1, v.mmcr1);
		mtspr(d, cpu, SPR_MMCR2, v.mmcr2);
		place(d, cpu, c, &v);
		c->changed = false;
	}
	if (v.mmcra & 1)
		mtspr(d, cpu, SPR_MMCRA, v.mmcra);
	mtspr(d, cpu, SPR_MMCR0, v.mmcr0 | MMCR0_PMAE | MMCR0_FCECE);
}

static void power_start_txn(struct quipu_pmu *pmu, unsigned cpu, unsigned flags)
{
	struct power_driver *d = pmu->driver;

	if (!(flags & QUIPU_TXN_ADD))
		return;
	power_disable(pmu, cpu);
	d->cpus[cpu].in_txn = true;
}

static void power_cancel_txn(struct quipu_pmu *pmu, unsigned cpu)
{
	struct power_driver *d = pmu->driver;

	if (!d->cpus[cpu].in_txn)
		return;
	d->cpus[cpu].in_txn = false;
}

static int power_commit_txn(struct quipu_pmu *pmu, unsigned cpu)
{
	struct power_driver *d = pmu->driver;

	if (!d->cpus[cpu].in_txn)
		return 0;
	if (fit(&d->cpus[cpu]))
		return -EAGAIN;
	d->cpus[cpu].in_txn = false;
	return 0;
}

static int power_slot(struct quipu_event *e)
{
	return (int)quipu_event_hw(e)->event_base;
}

static int power_event_idx(struct quipu_event *e)
{
	return quipu_event_hw(e)->idx + 1;
}

static quipu_signal power_signal(const struct quipu_event *e, bool *filtered)
{
	uint64_t code = quipu_event_hw((struct quipu_event *)e)->config;
	const struct power_event *x = power_event_by_code(code);
	const struct power_driver *d = driver_of(e);
	uint64_t eligible = bits_get(code, POWER_SAMPLE) >> 2;

	*filtered = quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_USER;
	/* With what the hypervisor is declared to add, the engine's signal is not all of it. */
	if (!(quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_HV) && hypervisor_adds(d, x))
		return QUIPU_SIGNAL_NONE;
	if (x && bits_get(code, POWER_MARK))
		return eligible == ELIGIBLE_LOADS    ? QUIPU_SIGNAL_MARKED_LOADS
		       : eligible == ELIGIBLE_STORES ? QUIPU_SIGNAL_MARKED_STORES
						     : x->signal;
	return x && x->minus == QUIPU_SIGNAL_NONE ? x->signal : QUIPU_SIGNAL_NONE;
}

static enum quipu_exactness power_exactness(const struct quipu_event *e)
{
	bool filtered;
	const struct power_event *x =
		power_event_by_code(quipu_event_hw((struct quipu_event *)e)->config);

	/* Of other modes than the user's, and with what a hypervisor is declared to add, it is no
	 * count of the engine's. */
	if ((x && x->signal != QUIPU_SIGNAL_NONE &&
	     power_signal(e, &filtered) == QUIPU_SIGNAL_NONE) ||
	    quipu_event_attr(e)->flags & QUIPU_ATTR_EXCLUDE_USER)
		return QUIPU_MODELLED;
	return x ? x->exactness : QUIPU_MODELLED;
}

/* ---- the interrupt ---- */

/* What the handler finds in its registers, by bit of sample_regs_intr: NIP, TRAP, then SIER to
 * MMCR2, PMC1 to PMC6, SDAR, SIAR. General registers of a program are not known. */
#define REGS_KNOWN UINT64_C(0x07f8f90100000000)
#define REG_NIP	   32u

static const struct {
	unsigned bit, spr;
} sampled_regs[] = {
	{REG_NIP, 0},	    {40, 0},
	{43, SPR_SIER},	    {44, SPR_MMCRA},
	{45, SPR_MMCR0},    {46, SPR_MMCR1},
	{47, SPR_MMCR2},    {51, SPR_PMC1},
	{52, SPR_PMC1 + 1}, {53, SPR_PMC1 + 2},
	{54, SPR_PMC1 + 3}, {55, SPR_PMC1 + 4},
	{56, SPR_PMC1 + 5}, {57, SPR_SDAR},
	{58, SPR_SIAR},
};
#define NREGS	   (sizeof(sampled_regs) / sizeof(sampled_regs[0]))
#define VECTOR_PMI UINT64_C(0xf00)

unsigned power_sample_mode(uint64_t sier, bool user, bool bare, bool marked, bool *use_siar)
{
	*use_siar = marked || !user || !(sier & SIER_SIPR);
	if (!*use_siar)
		return PERF_RECORD_MISC_USER;
	if (sier & SIER_SIPR)
		return PERF_RECORD_MISC_USER;
	return sier & SIER_SIHV && !bare ? PERF_RECORD_MISC_HYPERVISOR : PERF_RECORD_MISC_KERNEL;
}

/* The interrupt came after the hypervisor returned: the registers are the partition's, SIAR and
 * SIER tell of the hypervisor. Its address goes before the partition's own. */
static void in_hypervisor(struct power_driver *d, const struct quipu_interrupt *irq, uint64_t siar,
			  struct quipu_sample *sample)
{
	size_t n = irq->nr_chain < CHAIN_MOST - 1 ? irq->nr_chain : CHAIN_MOST - 1;

	d->chain[0] = irq->pc;
	if (n)
		memcpy(d->chain + 1, irq->chain, n * sizeof(d->chain[0]));
	sample->ip = siar;
	sample->addr = 0;
	sample->chain = d->chain;
	sample->nr_chain = n + 1;
	sample->through_kernel = true;
}

/* perf_mem_data_src of a marked access, by type and source of SIER. */
static uint64_t data_source(uint64_t sier)
{
	static const struct {
		uint64_t level, number;
	} from[] = {
		[1] = {PERF_MEM_LVL_L1, PERF_MEM_LVLNUM_L1},
		[2] = {PERF_MEM_LVL_L2, PERF_MEM_LVLNUM_L2},
		[3] = {PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3},
		[SIER_SOURCE_MEMORY] = {PERF_MEM_LVL_LOC_RAM, PERF_MEM_LVLNUM_RAM},
	};
	uint64_t type = bits_get(sier, SIER_TYPE), source = bits_get(sier, SIER_SOURCE);

	if ((type != SIER_LOAD && type != SIER_STORE) || !source || source > SIER_SOURCE_MEMORY)
		return 0;
	return PERF_MEM_S(OP, LOAD) * (type == SIER_LOAD) |
	       PERF_MEM_S(OP, STORE) * (type == SIER_STORE) |
	       (PERF_MEM_LVL_HIT | from[source].level) << PERF_MEM_LVL_SHIFT |
	       PERF_MEM_S(SNOOP, HIT) | from[source].number << PERF_MEM_LVLNUM_SHIFT;
}

/* What the registers tell of a marked instruction's access. */
static void read_marked(struct power_driver *d, unsigned cpu, struct quipu_sample *sample)
{
	uint64_t sier = mfspr(d, cpu, SPR_SIER), mmcra = mfspr(d, cpu, SPR_MMCRA);

	sample->addr = sier & SIER_SDAR_VALID ? mfspr(d, cpu, SPR_SDAR) : 0;
	sample->data_src = data_source(sier);
	if (bits_get(sier, SIER_TYPE))
		sample->weight = bits_get(mmcra, MMCRA_MANTISSA)
				 << 2 * bits_get(mmcra, MMCRA_EXPONENT);
}

static void write_counter(struct core_pmu *base, struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)base;
	mtspr(driver_of(e), core_pmu_cpu(e), pmc_spr(hw->idx), hw->prev_count);
}

/* An interrupt: what was told of it, and the counters as they stood when it began. */
struct taken {
	const struct quipu_interrupt *irq; /* NULL: a write of a register raised it */
	uint64_t pmc[POWER_PMCS];
};

static void read_regs(struct power_driver *d, unsigned cpu, const struct taken *t,
		      uint64_t regs[NREGS])
{
	for (unsigned i = 0; i < NREGS; i++) {
		unsigned spr = sampled_regs[i].spr;

		if (spr - SPR_PMC1 < POWER_PMCS)
			regs[i] = t->pmc[spr - SPR_PMC1];
		else if (spr)
			regs[i] = mfspr(d, cpu, spr);
		else
			regs[i] = sampled_regs[i].bit == REG_NIP ? t->irq->pc : VECTOR_PMI;
	}
}

static void serve(struct power_driver *d, unsigned cpu, struct quipu_event *e,
		  const struct taken *t)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct quipu_sample sample = {.cpumode = PERF_RECORD_MISC_USER};
	uint64_t regs[NREGS];

	if (t->irq)
		core_pmu_sample(t->irq, &sample);
	if (t->irq && bits_get(hw->config, POWER_MARK))
		read_marked(d, cpu, &sample);
	if (t->irq && (quipu_event_attr(e)->sample_type & PERF_SAMPLE_REGS_INTR)) {
		read_regs(d, cpu, t, regs);
		sample.regs = regs;
		sample.regs_known = REGS_KNOWN;
	}
	if (t->irq && d->partition) {
		bool marked = bits_get(hw->config, POWER_MARK), use_siar;

		sample.cpumode =
			power_sample_mode(mfspr(d, cpu, SPR_SIER), true, false, marked, &use_siar);
		if (sample.cpumode == PERF_RECORD_MISC_HYPERVISOR)
			in_hypervisor(d, t->irq, mfspr(d, cpu, SPR_SIAR), &sample);
	}
	if (hw->state & QUIPU_HES_STOPPED) {
		mtspr(d, cpu, pmc_spr(hw->idx), 0);
		return;
	}
	update(d, cpu, e);
	core_pmu_overflow(&d->base, e, &sample);
}

void power_driver_interrupt(struct power_driver *d, unsigned cpu, const struct quipu_interrupt *irq)
{
	struct driver_cpu *c = &d->cpus[cpu];
	struct taken t = {.irq = irq};

	c->pmis++;
	for (unsigned i = 0; i < POWER_PMCS; i++)
		t.pmc[i] = mfspr(d, cpu, SPR_PMC1 + i);
	for (unsigned i = 0; i < POWER_PMCS; i++) {
		struct quipu_event *e = NULL;

		if (t.pmc[i] < PMC_NEGATIVE)
			continue;
		for (unsigned k = 0; k < c->n; k++)
			if (quipu_event_hw(c->event[k])->idx == (int)i)
				e = c->event[k];
		if (e)
			serve(d, cpu, e, &t);
		else
			mtspr(d, cpu, SPR_PMC1 + i, 0);
	}
	mtspr(d, cpu, SPR_MMCR0,
	      (mfspr(d, cpu, SPR_MMCR0) & ~(MMCR0_FC | MMCR0_PMAO)) | MMCR0_PMAE | MMCR0_FCECE);
}

uint64_t power_driver_pmis(const struct power_driver *d, unsigned cpu)
{
	return d->cpus[cpu].pmis;
}

/* ---- sysfs, life ---- */

static const struct quipu_pmu_format formats[] = {
	{"event", "config:0-51"},
	{"pmcxsel", "config:0-7"},
	{"mark", "config:8"},
	{"combine", "config:10-11"},
	{"unit", "config:12-15"},
	{"pmc", "config:16-19"},
	{"cache_sel", "config:20-23"},
	{"sample_mode", "config:24-28"},
	{"thresh_sel", "config:29-31"},
	{"thresh_stop", "config:32-35"},
	{"thresh_start", "config:36-39"},
	{"thresh_cmp", "config:40-49"},
	{"sdar_mode", "config:50-51"},
	{NULL, NULL},
};

static const struct quipu_pmu_file files[] = {{"caps/pmu_name", "POWER9", true}, {NULL}};

static const char *availability(const struct power_driver *d, const struct power_event *x)
{
	if (!x)
		return "not modelled";
	if (counted(d, x))
		return NULL;
	return needs_full(x) ? "counted with --timing full only"
			     : "needs a model that does not run here";
}

static int list_event(struct quipu_pmu_event *to, const struct power_driver *d, const char *name,
		      uint64_t code, const struct power_event *x)
{
	char *terms;

	if (asprintf(&terms, "event=0x%02" PRIx64, code) < 0)
		return -ENOMEM;
	*to = (struct quipu_pmu_event){
		.name = name,
		.terms = terms,
		.desc = x ? x->desc : NULL,
		.signal = x ? x->signal : QUIPU_SIGNAL_NONE,
		.exactness = x && !hypervisor_adds(d, x) ? x->exactness : QUIPU_MODELLED,
		.unavailable = availability(d, x),
	};
	return 0;
}

/* Linux shows the 24 files; the PM_ names are those of perf's own tables for this processor, which
 * only a perf built for it has. */
static int make_list(struct power_driver *d)
{
	unsigned n = 0, m = 0;
	int err = 0;

	while (power_files[n].name)
		n++;
	while (power_events[m].name)
		m++;
	d->list = calloc(n + 1, sizeof(*d->list));
	d->names = calloc(m + 1, sizeof(*d->names));
	if (!d->list || !d->names)
		return -ENOMEM;
	for (unsigned i = 0; !err && i < n; i++)
		err = list_event(&d->list[i], d, power_files[i].name, power_files[i].code,
				 power_event_by_code(power_files[i].code));
	m = 0;
	for (const struct power_event *x = power_events; !err && x->name; x++) {
		/* An event that several counters have is named once, by its first code. */
		if (x != power_events && !strcmp(x[-1].name, x->name))
			continue;
		err = list_event(&d->names[m++], d, x->name, x->code, x);
	}
	return err;
}

static void describe_pmu(struct power_driver *d)
{
	d->base.pmu = (struct quipu_pmu){
		.name = "cpu",
		.type = PERF_TYPE_RAW,
		.capabilities = QUIPU_PMU_CAP_EXTENDED_REGS,
		.context = QUIPU_CONTEXT_HARDWARE,
		.driver = d,
		.formats = formats,
		.events = d->list,
		.more = d->names,
		.files = files,
		.event_init = power_init,
		.add = power_add,
		.del = power_del,
		.start = power_start,
		.stop = power_stop,
		.read = power_read,
		.pmu_enable = power_enable,
		.pmu_disable = power_disable,
		.start_txn = power_start_txn,
		.commit_txn = power_commit_txn,
		.cancel_txn = power_cancel_txn,
		.event_idx = power_event_idx,
		.slot = power_slot,
		.signal = power_signal,
		.exactness = power_exactness,
	};
}

int power_driver_new(const struct quipu_platform_env *env, struct power_pmu *hardware,
		     struct power_driver **out)
{
	struct power_driver *d = calloc(1, sizeof(*d));
	int node = quipu_machine_find(env->machine, "quipu,power9-pmu"), err = -ENOMEM;
	const uint32_t *cells;

	if (!d)
		return err;
	core_pmu_setup(&d->base, env);
	d->base.width = 32;
	d->base.top = PMC_NEGATIVE;
	d->base.longest = MAX_PERIOD;
	d->base.write = write_counter;
	d->hardware = hardware;
	d->pvr = (uint32_t)quipu_machine_number(env->machine, env->machine->cpus[0].offset,
						"cpu-version", 0x004e1202);
	d->zero = node >= 0 &&
		  quipu_machine_has_string(env->machine, node, "quipu,unknown-events", "zero");
	d->start_quirk = node >= 0 &&
			 quipu_machine_cells(env->machine, node, "quipu,start-quirk", &cells) >= 0;
	d->base.stops =
		node >= 0 && quipu_machine_has_string(env->machine, node, "quipu,throttle", "stop");
	if (d->base.stops)
		power_pmu_set_bell(hardware);
	d->partition = quipu_machine_find(env->machine, "quipu,hypervisor") >= 0;
	d->cpus = calloc(d->base.ncpus, sizeof(*d->cpus));
	if (d->cpus)
		err = make_list(d);
	if (!err) {
		describe_pmu(d);
		err = quipu_core_register(env->core, &d->base.pmu);
	}
	if (err) {
		power_driver_free(d);
		return err;
	}
	*out = d;
	return 0;
}

void power_driver_free(struct power_driver *d)
{
	if (!d)
		return;
	core_pmu_free_list(d->list);
	core_pmu_free_list(d->names);
	free(d->cpus);
	free(d);
}

void power_driver_describe(const struct power_driver *d, quipu_describe_fn *fn, void *arg)
{
	char line[160];

	snprintf(
		line, sizeof(line),
		"core PMU \"cpu\" (type 4), PVR 0x%08x: four programmable counters, PMC5 instructions, PMC6 cycles",
		d->pvr);
	fn(arg, 0, line);
	fn(arg, 1,
	   "32-bit counters; sampling by interrupt, without skid; an unknown code is refused");
	for (unsigned cpu = 0; cpu < d->base.ncpus; cpu++) {
		if (!d->cpus[cpu].pmis)
			continue;
		snprintf(line, sizeof(line),
			 "CPU %u: %" PRIu64 " performance monitoring interrupts", cpu,
			 d->cpus[cpu].pmis);
		fn(arg, 1, line);
	}
}
