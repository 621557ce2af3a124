/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SBI PMU driver: counts and samples through the SBI PMU extension and the S-level CSRs, as
 * Linux 6.12 does (drivers/perf/riscv_pmu.c, riscv_pmu_sbi.c), or 6.1 where the machine asks for
 * it. RISC-V sheet section 5.
 *
 * Deviations, each decided on the sheet: the user page never offers counters (D-22); the restart
 * after an overflow uses index base 0 with snapshots too (D-21). A sampling event is not left on a
 * fixed counter, which raises no interrupt. T-Head's and Andes' own overflow interrupts are not
 * driven (D-1), nor are SSE and counter delegation (D-13).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "platform/riscv/driver.h"

#define COUNTERS_MAX 64u
#define LCOFI_BIT    bits_one(QUIPU_RISCV_LCOFI)
#define PAGE_BYTES   4096u
#define ENOTSUPP     524 /* Linux: not in errno.h, and it reaches no user */

/* scounteren: time only, or cycle, time and instret. */
#define SCOUNTEREN_TIME 2u
#define SCOUNTEREN_ALL	7u

/* event_idx (SBI, "Event Encoding") */
#define IDX_CACHE    0x10000u
#define IDX_RAW	     0x20000u
#define IDX_FIRMWARE 0xF0000u
#define FW_CODES     22u
#define FW_PLATFORM  0xFFFFu

#define INFO_FIRMWARE	 bits_one(63)
#define INFO_CSR(info)	 ((unsigned)bits_get((info), 11, 0))
#define INFO_WIDTH(info) ((unsigned)bits_get((info), 17, 12) + 1)

/* A snapshot page: bitmap, then values (SBI, "Set PMU snapshot shared memory"). */
#define SNAP_VALUE(i) (8u + 8u * (i))

struct sbi_cpu {
	struct quipu_event *events[COUNTERS_MAX];
	uint64_t used_hw, used_fw;
	uint64_t page; /* physical address of the snapshot page */
	uint64_t interrupts;
	bool online;
};

struct sbi_driver {
	struct quipu_pmu pmu;
	struct riscv_driver_env env;
	struct sbi_cpu *cpus;
	uint64_t valid;			 /* counters that exist */
	uint64_t info[COUNTERS_MAX];	 /* as counter_get_info answered */
	bool general[PERF_COUNT_HW_MAX]; /* probed: some counter takes it */
	bool cache[PERF_COUNT_HW_CACHE_MAX][PERF_COUNT_HW_CACHE_OP_MAX]
		  [PERF_COUNT_HW_CACHE_RESULT_MAX];
	bool snapshot;
	unsigned user_access;
	unsigned nr_fw, nr_hw;
};

/* ---- the floor below ---- */

static struct quipu_sbiret ecall(struct sbi_driver *d, unsigned cpu, unsigned function, uint64_t a0,
				 uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4)
{
	uint64_t args[6] = {a0, a1, a2, a3, a4};

	return quipu_riscv_ecall(d->env.harts, cpu, QUIPU_SBI_PMU, function, args);
}

static struct quipu_sbiret pmu_stop(struct sbi_driver *d, unsigned cpu, uint64_t base,
				    uint64_t mask, uint64_t flags)
{
	return ecall(d, cpu, QUIPU_SBI_PMU_COUNTER_STOP, base, mask, flags, 0, 0);
}

static struct quipu_sbiret pmu_start(struct sbi_driver *d, unsigned cpu, uint64_t base,
				     uint64_t mask, uint64_t flags, uint64_t value)
{
	return ecall(d, cpu, QUIPU_SBI_PMU_COUNTER_START, base, mask, flags, value, 0);
}

static uint64_t csr_get(struct sbi_driver *d, unsigned cpu, unsigned csr)
{
	uint64_t value = 0;

	quipu_riscv_csr_read(d->env.harts, cpu, QUIPU_RISCV_S, csr, &value);
	return value;
}

static void csr_set(struct sbi_driver *d, unsigned cpu, unsigned csr, uint64_t value)
{
	quipu_riscv_csr_write(d->env.harts, cpu, QUIPU_RISCV_S, csr, value);
}

/* Linux's errno for an SBI status. */
static int sbi_errno(int64_t error)
{
	switch (error) {
	case QUIPU_SBI_SUCCESS: return 0;
	case QUIPU_SBI_DENIED: return -EPERM;
	case QUIPU_SBI_INVALID_PARAM: return -EINVAL;
	case QUIPU_SBI_INVALID_ADDRESS: return -EFAULT;
	default: return -ENOTSUPP;
	}
}

static uint8_t *snapshot_page(struct sbi_driver *d, unsigned cpu)
{
	return quipu_riscv_memory(d->env.harts, d->cpus[cpu].page, PAGE_BYTES);
}

static uint64_t snapshot_get(struct sbi_driver *d, unsigned cpu, unsigned i)
{
	return bits_le64(snapshot_page(d, cpu) + SNAP_VALUE(i));
}

static void snapshot_put(struct sbi_driver *d, unsigned cpu, unsigned i, uint64_t value)
{
	uint8_t *p = snapshot_page(d, cpu) + SNAP_VALUE(i);

	for (unsigned b = 0; b < 8; b++)
		p[b] = (uint8_t)(value >> (8 * b));
}

static bool is_fw(const struct sbi_driver *d, unsigned i)
{
	return d->info[i] & INFO_FIRMWARE;
}

/* ---- event mapping (5.2) ---- */

static struct sbi_driver *driver_of(const struct quipu_event *e)
{
	return quipu_event_pmu(e)->driver;
}

static uint64_t width_mask(const struct sbi_driver *d, const struct quipu_hw_event *hw)
{
	return bits_mask(INFO_WIDTH(d->info[hw->idx < 0 ? 0 : hw->idx]));
}

/* Why the event with this index cannot be counted, said to the core. */
static void tell_why(struct sbi_driver *d, const char *what, uint32_t event, uint64_t data)
{
	char buf[160];
	const char *why = d->env.why_not(d->env.harts, event, data, buf, sizeof(buf));

	quipu_core_reason(d->env.core, "%s: %s", what,
			  why ? why : "no counter of this machine takes it");
}

static int map_hardware(struct sbi_driver *d, uint64_t config, uint32_t *event)
{
	if (config >= PERF_COUNT_HW_MAX) {
		quipu_core_reason(d->env.core,
				  "there is no generic hardware event %llu: Linux has 0 to %u",
				  (unsigned long long)config, PERF_COUNT_HW_MAX - 1);
		return -EINVAL;
	}
	*event = (uint32_t)config + 1;
	if (d->env.kernel >= 612 && !d->general[config]) {
		tell_why(d, "generic hardware event", *event, 0);
		return -ENOENT;
	}
	return 0;
}

static int map_cache(struct sbi_driver *d, uint64_t config, uint32_t *event)
{
	unsigned cache = config & 0xFF, op = (config >> 8) & 0xFF, result = (config >> 16) & 0xFF;

	if (cache >= PERF_COUNT_HW_CACHE_MAX || op >= PERF_COUNT_HW_CACHE_OP_MAX ||
	    result >= PERF_COUNT_HW_CACHE_RESULT_MAX) {
		quipu_core_reason(d->env.core,
				  "0x%llx is no cache event: cache 0-6, operation 0-2, result 0-1",
				  (unsigned long long)config);
		return -EINVAL;
	}
	*event = IDX_CACHE | cache << 3 | op << 1 | result;
	if (d->env.kernel >= 612 && !d->cache[cache][op][result]) {
		tell_why(d, "cache event", *event, 0);
		return -ENOENT;
	}
	return 0;
}

/* 6.1 knows one flag, bit 63: firmware. 6.12 reads the two top bits. */
static int map_raw(struct sbi_driver *d, uint64_t config, uint32_t *event, uint64_t *data)
{
	unsigned kind = (unsigned)(config >> 62);

	*data = config & bits_mask(48);
	*event = IDX_RAW;
	if (d->env.kernel < 612) {
		if (!(kind & 2))
			return 0;
		*event = IDX_FIRMWARE | (uint32_t)(*data & 0xFFFF);
		if (*data < FW_CODES)
			return 0;
		quipu_core_reason(d->env.core, "firmware event %llu: there are 0 to %u",
				  (unsigned long long)*data, FW_CODES - 1);
		return -EINVAL;
	}
	switch (kind) {
	case 0: return 0;
	case 1:
		quipu_core_reason(d->env.core, "firmware=1 is no event type of this driver: 0 raw, "
					       "2 firmware, 3 platform");
		return -ENOENT;
	case 2:
		*event = IDX_FIRMWARE | (uint32_t)(config & 0xFFFF);
		*data = 0;
		return 0;
	default:
		*event = IDX_FIRMWARE | FW_PLATFORM;
		*data = config & bits_mask(62);
		return 0;
	}
}

static int map_event(struct sbi_driver *d, const struct quipu_attr *attr, uint32_t *event,
		     uint64_t *data)
{
	*data = 0;
	switch (attr->type) {
	case PERF_TYPE_HARDWARE: return map_hardware(d, attr->config, event);
	case PERF_TYPE_HW_CACHE: return map_cache(d, attr->config, event);
	case PERF_TYPE_RAW: return map_raw(d, attr->config, event, data);
	default: return d->env.kernel >= 612 ? -ENOENT : -EINVAL;
	}
}

/* Accepted, and a surprise unless it is said: counts that will be 0. */
static void warn_of_zero(struct sbi_driver *d, const struct quipu_attr *attr, uint32_t event)
{
	if ((attr->flags & QUIPU_ATTR_EXCLUDE_USER) && !d->env.kernel_activity)
		quipu_core_reason(d->env.core, "counts 0: a program under a user-mode engine has "
					       "no kernel activity, and this machine "
					       "declares no charge for its system calls; drop :k, "
					       "or set quipu,charge-syscall-instructions");
	else if (attr->sample_period && event >= IDX_FIRMWARE)
		quipu_core_reason(
			d->env.core,
			"never samples: firmware counters raise no interrupt; count it instead");
	else if (event >= IDX_FIRMWARE)
		quipu_core_reason(d->env.core, "counts what the kernel asks of its firmware: a "
					       "program under a user-mode engine asks nothing");
}

/*
 * Linux 6.12 knows no recorder of branches on RISC-V. A machine may have one all the same
 * (quipu,branch-records): the control transfer records of Smctr and Ssctr, every taken transfer of
 * user level, without its cycles and flags.
 */
static int check_branches(struct sbi_driver *d, const struct quipu_attr *attr)
{
	const uint64_t known = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER |
			       PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV |
			       PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES;

	if (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK))
		return 0;
	if (!d->env.branch_records) {
		quipu_core_reason(
			d->env.core,
			"this driver records no branch stacks; use call graphs (-g) instead of -b, "
			"or a machine with quipu,branch-records");
		return -EOPNOTSUPP;
	}
	if (!(attr->branch_sample_type & ~known))
		return 0;
	quipu_core_reason(d->env.core, "branch stacks here hold every branch of user level; no "
				       "other filter (-j any,u)");
	return -EOPNOTSUPP;
}

static int sbi_event_init(struct quipu_pmu *pmu, struct quipu_event *e)
{
	struct sbi_driver *d = pmu->driver;
	const struct quipu_attr *attr = quipu_event_attr(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint32_t event;
	uint64_t data;
	int r;

	r = check_branches(d, attr);
	if (r)
		return r;
	r = map_event(d, attr, &event, &data);
	if (r)
		return r;
	if (d->env.want && d->env.want(d->env.harts, event, data)) {
		quipu_core_reason(d->env.core,
				  "the engine does not count that many different things at "
				  "once; open fewer events");
		return -EOPNOTSUPP;
	}
	hw->config = data;
	hw->event_base = event;
	hw->config_base = d->user_access; /* as it is at the open */
	hw->idx = -1;
	hw->reload.max_left = width_mask(d, hw) >> 1;
	if (!attr->sample_period) {
		hw->reload.sample_period = width_mask(d, hw) >> 1;
		hw->reload.last_period = hw->reload.sample_period;
		hw->reload.period_left = (int64_t)hw->reload.sample_period;
	}
	warn_of_zero(d, attr, event);
	return 0;
}

/* 5.3 */
static uint64_t filter_flags(const struct sbi_driver *d, const struct quipu_attr *attr)
{
	bool guest = d->env.kernel >= 612 && (attr->config1 & 1);
	const struct {
		uint64_t exclude, flags;
	} map[] = {
		{QUIPU_ATTR_EXCLUDE_KERNEL,
		 guest ? QUIPU_SBI_CFG_SET_VSINH : QUIPU_SBI_CFG_SET_SINH},
		{QUIPU_ATTR_EXCLUDE_USER, guest ? QUIPU_SBI_CFG_SET_VUINH : QUIPU_SBI_CFG_SET_UINH},
		{QUIPU_ATTR_EXCLUDE_HV, guest ? QUIPU_SBI_CFG_SET_SINH : 0},
		{QUIPU_ATTR_EXCLUDE_HOST, QUIPU_SBI_CFG_SET_UINH | QUIPU_SBI_CFG_SET_SINH},
		{QUIPU_ATTR_EXCLUDE_GUEST, QUIPU_SBI_CFG_SET_VSINH | QUIPU_SBI_CFG_SET_VUINH},
	};
	uint64_t flags = 0;

	for (size_t i = 0; i < (d->env.kernel >= 612 ? 5u : 2u); i++)
		if (attr->flags & map[i].exclude)
			flags |= map[i].flags;
	return flags;
}

/* ---- counting (5.4) ---- */

static unsigned cpu_of(const struct quipu_event *e)
{
	return (unsigned)quipu_event_cpu_now(e);
}

static uint64_t counter_read(struct sbi_driver *d, unsigned cpu, const struct quipu_hw_event *hw)
{
	unsigned i = (unsigned)hw->idx;
	struct quipu_sbiret r;

	if (d->snapshot && (hw->state & QUIPU_HES_STOPPED))
		return snapshot_get(d, cpu, i);
	if (!is_fw(d, i))
		return csr_get(d, cpu, INFO_CSR(d->info[i]));
	r = ecall(d, cpu, QUIPU_SBI_PMU_COUNTER_FW_READ, i, 0, 0, 0, 0);
	return r.error ? 0 : r.value;
}

static void fold(struct sbi_driver *d, unsigned cpu, struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	uint64_t now, delta;

	if (d->env.kernel >= 612 && (hw->state & QUIPU_HES_UPTODATE))
		return;
	now = counter_read(d, cpu, hw);
	delta = (now - hw->prev_count) & width_mask(d, hw);
	hw->prev_count = now;
	quipu_event_add_count(e, delta);
	quipu_reload_fold(&hw->reload, delta);
}

/* 5.5; the counter will start at prev_count. */
static bool set_period(const struct sbi_driver *d, struct quipu_hw_event *hw)
{
	bool overflow;

	hw->reload.max_left = width_mask(d, hw) >> 1;
	overflow = quipu_reload_set_period(&hw->reload);
	hw->prev_count = -hw->reload.programmed;
	return overflow;
}

static void sbi_read(struct quipu_event *e)
{
	fold(driver_of(e), cpu_of(e), e);
}

static void sbi_start(struct quipu_event *e, int flags)
{
	struct sbi_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);

	(void)flags;
	hw->state = 0;
	set_period(d, hw);
	/*
	 * "Already started" is no error here: the core restarts events that its own handler has
	 * just restarted.
	 */
	pmu_start(d, cpu_of(e), (unsigned)hw->idx, 1, QUIPU_SBI_START_INIT_VALUE,
		  hw->prev_count & width_mask(d, hw));
}

/*
 * A stop of one counter leaves its value in slot 0, relative to the call's base: put it where it
 * belongs.
 */
static void move_snapshot(struct sbi_driver *d, unsigned cpu, unsigned i)
{
	if (!i)
		return;
	snapshot_put(d, cpu, i, snapshot_get(d, cpu, 0));
	snapshot_put(d, cpu, 0, 0);
}

static void sbi_stop(struct quipu_event *e, int flags)
{
	struct sbi_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct quipu_sbiret r;

	(void)flags;
	if (hw->state & QUIPU_HES_STOPPED)
		return;
	r = pmu_stop(d, cpu_of(e), (unsigned)hw->idx, 1,
		     d->snapshot ? QUIPU_SBI_STOP_TAKE_SNAPSHOT : 0);
	if (d->snapshot && !r.error)
		move_snapshot(d, cpu_of(e), (unsigned)hw->idx);
	hw->state |= QUIPU_HES_STOPPED;
	fold(d, cpu_of(e), e);
	hw->state |= QUIPU_HES_UPTODATE;
}

/* Say why no counter took the event: nobody ever would, or all are taken just now. */
static void tell_refused(struct sbi_driver *d, const struct quipu_event *e)
{
	const struct quipu_hw_event *hw = quipu_event_hw((struct quipu_event *)e);
	uint32_t event = (uint32_t)hw->event_base;
	char buf[160];
	const char *why = d->env.why_not(d->env.harts, event, hw->config, buf, sizeof(buf));

	if (!why)
		quipu_core_reason(d->env.core, "every counter that it could use is taken");
	else if (event == IDX_RAW)
		quipu_core_reason(d->env.core,
				  "no counter of this machine takes that raw code 0x%llx (%s)",
				  (unsigned long long)hw->config, why);
	else
		quipu_core_reason(d->env.core, "%s", why);
}

/*
 * A fixed counter raises no interrupt: a sampling event would never sample there. It waits for
 * another.
 */
static bool useless(const struct sbi_driver *d, const struct quipu_event *e, unsigned i)
{
	return d->env.filtering && i < 3 && quipu_event_attr(e)->sample_period;
}

/*
 * perf_user_access 2: programs read cycle and instret by themselves, so the generic events must be
 * on them. 0: no such rule.
 */
static uint64_t forced_counter(const struct sbi_driver *d, const struct quipu_event *e)
{
	const struct quipu_attr *attr = quipu_event_attr(e);

	if (d->env.kernel < 612 || quipu_event_hw((struct quipu_event *)e)->config_base != 2 ||
	    attr->type != PERF_TYPE_HARDWARE)
		return 0;
	if (attr->config == PERF_COUNT_HW_CPU_CYCLES)
		return bits_one(0);
	return attr->config == PERF_COUNT_HW_INSTRUCTIONS ? bits_one(2) : 0;
}

static int choose_counter(struct sbi_driver *d, unsigned cpu, struct quipu_event *e)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct sbi_cpu *c = &d->cpus[cpu];
	uint64_t forced = forced_counter(d, e);
	struct quipu_sbiret r = ecall(
		d, cpu, QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING, 0, forced ? forced : d->valid,
		filter_flags(d, quipu_event_attr(e)) | (forced ? QUIPU_SBI_CFG_SKIP_MATCH : 0),
		hw->event_base, hw->config);

	if (r.error) {
		tell_refused(d, e);
		return sbi_errno(r.error);
	}
	if (r.value >= COUNTERS_MAX || !(d->valid & bits_one((unsigned)r.value)))
		return -ENOENT;
	if (c->events[r.value]) {
		quipu_core_reason(d->env.core, "every counter that it could use is taken");
		return -ENOENT;
	}
	if (useless(d, e, (unsigned)r.value)) {
		pmu_stop(d, cpu, r.value, 1, QUIPU_SBI_STOP_RESET);
		quipu_core_reason(
			d->env.core,
			"every counter that can sample is taken; the one left raises no interrupt");
		return -ENOENT;
	}
	return (int)r.value;
}

static int sbi_add(struct quipu_event *e, int flags)
{
	struct sbi_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	unsigned cpu = cpu_of(e);
	struct sbi_cpu *c = &d->cpus[cpu];
	int i = choose_counter(d, cpu, e);

	if (i < 0)
		return i;
	hw->idx = i;
	c->events[i] = e;
	*(is_fw(d, (unsigned)i) ? &c->used_fw : &c->used_hw) |= bits_one((unsigned)i);
	hw->state = QUIPU_HES_UPTODATE | QUIPU_HES_STOPPED;
	if (flags & QUIPU_EF_START)
		sbi_start(e, QUIPU_EF_RELOAD);
	return 0;
}

static void sbi_del(struct quipu_event *e, int flags)
{
	struct sbi_driver *d = driver_of(e);
	struct quipu_hw_event *hw = quipu_event_hw(e);
	struct sbi_cpu *c = &d->cpus[cpu_of(e)];
	unsigned i = (unsigned)hw->idx;

	(void)flags;
	sbi_stop(e, QUIPU_EF_UPDATE);
	pmu_stop(d, cpu_of(e), i, 1, QUIPU_SBI_STOP_RESET);
	c->events[i] = NULL;
	c->used_hw &= ~bits_one(i);
	c->used_fw &= ~bits_one(i);
	hw->idx = -1;
}

static int sbi_slot(struct quipu_event *e)
{
	struct sbi_driver *d = driver_of(e);
	int i = quipu_event_hw(e)->idx;

	return d->env.filtering && i >= 3 && !is_fw(d, (unsigned)i) ? i : -1;
}

static quipu_signal sbi_signal(const struct quipu_event *e, bool *filtered)
{
	struct sbi_driver *d = driver_of(e);
	const struct quipu_hw_event *hw = quipu_event_hw((struct quipu_event *)e);
	uint64_t flags = quipu_event_attr(e)->flags;

	*filtered = flags & (QUIPU_ATTR_EXCLUDE_USER | QUIPU_ATTR_EXCLUDE_HOST);
	/*
	 * With kernel activity declared the user-level signal is not all that an unfiltered event
	 * counts.
	 */
	if (d->env.kernel_activity && !(flags & QUIPU_ATTR_EXCLUDE_KERNEL))
		return QUIPU_SIGNAL_NONE;
	return d->env.signal(d->env.harts, (uint32_t)hw->event_base, hw->config);
}

/* ---- overflow (5.6) ---- */

static void clear_pending(struct sbi_driver *d, unsigned cpu)
{
	csr_set(d, cpu, QUIPU_CSR_SIP, csr_get(d, cpu, QUIPU_CSR_SIP) & ~LCOFI_BIT);
}

/*
 * Overflow bits by logical index. scountovf shows what firmware set as well: only armed counters
 * are looked at.
 */
static uint64_t overflowed(struct sbi_driver *d, unsigned cpu)
{
	const struct sbi_cpu *c = &d->cpus[cpu];
	uint64_t bits = 0, csrs;

	if (d->snapshot)
		return bits_le64(snapshot_page(d, cpu)) & c->used_hw;
	csrs = csr_get(d, cpu, QUIPU_CSR_SCOUNTOVF);
	for (uint64_t m = c->used_hw; m; m &= m - 1)
		if (csrs & bits_one(INFO_CSR(d->info[bits_low(m)]) - QUIPU_CSR_CYCLE))
			bits |= bits_one(bits_low(m));
	return bits;
}

/* One event whose counter overflowed. */
static void serve(struct sbi_driver *d, unsigned cpu, struct quipu_event *e,
		  const struct quipu_interrupt *irq)
{
	struct quipu_hw_event *hw = quipu_event_hw(e);
	bool kernel = csr_get(d, cpu, QUIPU_CSR_SSTATUS) & QUIPU_RISCV_SSTATUS_SPP;
	struct quipu_sample sample = {.cpumode = kernel ? PERF_RECORD_MISC_KERNEL : 0};

	if (irq)
		sample = (struct quipu_sample){
			.ip = irq->pc,
			.addr = irq->addr,
			.chain = irq->chain,
			.nr_chain = irq->nr_chain,
			.branches = irq->branches,
			.nr_branches = irq->nr_branches,
			.user = irq->user,
			.pid = irq->pid,
			.tid = irq->tid,
			.cpumode = sample.cpumode,
		};
	hw->state |= QUIPU_HES_STOPPED;
	fold(d, cpu, e);
	hw->state |= QUIPU_HES_UPTODATE;
	/*
	 * The core may ask to stop the event (throttling): this driver, as Linux's, goes on all the
	 * same.
	 */
	if (set_period(d, hw))
		quipu_event_overflow(e, &sample);
	hw->state = 0;
}

/* Start again: those that did not overflow go on, the others from their next period. */
static void restart(struct sbi_driver *d, unsigned cpu, uint64_t stopped, uint64_t over)
{
	struct sbi_cpu *c = &d->cpus[cpu];

	if (!d->snapshot)
		pmu_start(d, cpu, 0, stopped & ~over & c->used_hw, 0, 0);
	for (uint64_t m = over & c->used_hw; m; m &= m - 1) {
		unsigned i = bits_low(m);
		const struct quipu_hw_event *hw = quipu_event_hw(c->events[i]);
		uint64_t value = hw->prev_count & width_mask(d, hw);

		if (d->snapshot)
			snapshot_put(d, cpu, i, value);
		else
			pmu_start(d, cpu, i, 1, QUIPU_SBI_START_INIT_VALUE, value);
	}
	if (d->snapshot && (stopped & c->used_hw))
		pmu_start(d, cpu, 0, stopped & c->used_hw, QUIPU_SBI_START_INIT_SNAPSHOT, 0);
}

void sbi_driver_interrupt(struct sbi_driver *d, unsigned cpu, const struct quipu_interrupt *irq)
{
	struct sbi_cpu *c = &d->cpus[cpu];
	uint64_t stopped = c->used_hw, over;

	c->interrupts++;
	if (!stopped) {
		clear_pending(d, cpu);
		return;
	}
	pmu_stop(d, cpu, 0, stopped, d->snapshot ? QUIPU_SBI_STOP_TAKE_SNAPSHOT : 0);
	over = overflowed(d, cpu);
	/* After the stop, so that no overflow can slip in between. */
	clear_pending(d, cpu);
	if (!over)
		return;
	for (uint64_t m = over; m; m &= m - 1) {
		struct quipu_event *e = c->events[bits_low(m)];

		if (e && quipu_event_attr(e)->sample_period)
			serve(d, cpu, e, irq);
		else
			over &= ~bits_one(bits_low(m));
	}
	restart(d, cpu, stopped, over);
}

uint64_t sbi_driver_interrupts(const struct sbi_driver *d, unsigned cpu)
{
	return d->cpus[cpu].interrupts;
}

bool sbi_driver_interrupts_at_all(const struct sbi_driver *d)
{
	return !(d->pmu.capabilities & QUIPU_PMU_CAP_NO_INTERRUPT);
}

/* ---- CPUs and probing (5.1) ---- */

static uint64_t scounteren(const struct sbi_driver *d)
{
	return d->env.kernel < 612 || d->user_access == 2 ? SCOUNTEREN_ALL : SCOUNTEREN_TIME;
}

static void cpu_start(struct sbi_driver *d, unsigned cpu)
{
	struct sbi_cpu *c = &d->cpus[cpu];

	if (c->online)
		return;
	c->online = true;
	csr_set(d, cpu, QUIPU_CSR_SCOUNTEREN, scounteren(d));
	pmu_stop(d, cpu, 0, d->valid, QUIPU_SBI_STOP_RESET);
	if (d->env.filtering) {
		clear_pending(d, cpu);
		csr_set(d, cpu, QUIPU_CSR_SIE, csr_get(d, cpu, QUIPU_CSR_SIE) | LCOFI_BIT);
	}
	if (d->snapshot)
		ecall(d, cpu, QUIPU_SBI_PMU_SNAPSHOT_SET_SHMEM, c->page, 0, 0, 0, 0);
}

static void cpu_die(struct sbi_driver *d, unsigned cpu)
{
	struct sbi_cpu *c = &d->cpus[cpu];

	if (!c->online)
		return;
	c->online = false;
	if (d->env.filtering)
		csr_set(d, cpu, QUIPU_CSR_SIE, csr_get(d, cpu, QUIPU_CSR_SIE) & ~LCOFI_BIT);
	csr_set(d, cpu, QUIPU_CSR_SCOUNTEREN, 0);
	if (d->snapshot)
		ecall(d, cpu, QUIPU_SBI_PMU_SNAPSHOT_SET_SHMEM, UINT64_MAX, UINT64_MAX, 0, 0, 0);
}

void sbi_driver_online(struct sbi_driver *d, unsigned cpu, bool online)
{
	if (cpu >= d->env.machine->ncpus)
		return;
	(online ? cpu_start : cpu_die)(d, cpu);
}

static void sbi_cpu_online(struct quipu_pmu *pmu, unsigned cpu)
{
	cpu_start(pmu->driver, cpu);
}

static void sbi_cpu_offline(struct quipu_pmu *pmu, unsigned cpu)
{
	cpu_die(pmu->driver, cpu);
}

/* Linux 6.1 has no such switch; the legacy driver has none at all. */
#define USER_ACCESS(value)                                                                         \
	{                                                                                          \
		{"/proc/sys/kernel/perf_user_access", value},                                      \
		{                                                                                  \
			NULL, NULL                                                                 \
		}                                                                                  \
	}
static const struct quipu_pmu_file files_612[3][2] = {USER_ACCESS("0"), USER_ACCESS("1"),
						      USER_ACCESS("2")};

int sbi_driver_user_access(struct sbi_driver *d, unsigned value)
{
	if (value > 2)
		return -EINVAL;
	d->user_access = value;
	if (d->pmu.files)
		d->pmu.files = files_612[value];
	for (unsigned cpu = 0; cpu < d->env.machine->ncpus; cpu++)
		if (d->cpus[cpu].online)
			csr_set(d, cpu, QUIPU_CSR_SCOUNTEREN, scounteren(d));
	return 0;
}

/* The sysctl is the only such file. */
static int sbi_file_written(struct quipu_pmu *pmu, const char *path, long value)
{
	(void)path;
	return value < 0 || value > 2 ? -EINVAL
				      : sbi_driver_user_access(pmu->driver, (unsigned)value);
}

static int probe_counters(struct sbi_driver *d)
{
	struct quipu_sbiret n = ecall(d, 0, QUIPU_SBI_PMU_NUM_COUNTERS, 0, 0, 0, 0, 0);

	if (n.error)
		return sbi_errno(n.error);
	for (unsigned i = 0; i < n.value && i < COUNTERS_MAX; i++) {
		struct quipu_sbiret r = ecall(d, 0, QUIPU_SBI_PMU_COUNTER_GET_INFO, i, 0, 0, 0, 0);

		if (r.error)
			continue; /* a hole */
		d->info[i] = r.value;
		d->valid |= bits_one(i);
		*(is_fw(d, i) ? &d->nr_fw : &d->nr_hw) += 1;
	}
	return d->valid & 1 ? 0 : -ENODEV;
}

/* Does any counter take it? Asked once, of the first CPU. */
static bool probe_event(struct sbi_driver *d, uint32_t event)
{
	struct quipu_sbiret r =
		ecall(d, 0, QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING, 0, d->valid, 0, event, 0);

	if (r.error)
		return r.error != QUIPU_SBI_NOT_SUPPORTED;
	pmu_stop(d, 0, r.value, 1, QUIPU_SBI_STOP_RESET);
	return true;
}

static void probe_events(struct sbi_driver *d)
{
	for (unsigned i = 0; i < PERF_COUNT_HW_MAX; i++)
		d->general[i] = probe_event(d, i + 1);
	for (unsigned c = 0; c < PERF_COUNT_HW_CACHE_MAX; c++)
		for (unsigned o = 0; o < PERF_COUNT_HW_CACHE_OP_MAX; o++)
			for (unsigned r = 0; r < PERF_COUNT_HW_CACHE_RESULT_MAX; r++)
				d->cache[c][o][r] = probe_event(d, IDX_CACHE | c << 3 | o << 1 | r);
}

static void probe_snapshot(struct sbi_driver *d)
{
	uint64_t base = quipu_riscv_memory_base(d->env.harts);
	struct quipu_sbiret r;

	for (unsigned cpu = 0; cpu < d->env.machine->ncpus; cpu++)
		d->cpus[cpu].page = base + (uint64_t)cpu * PAGE_BYTES;
	/* 6.1 is older than the function. */
	if (d->env.kernel < 612)
		return;
	r = ecall(d, 0, QUIPU_SBI_PMU_SNAPSHOT_SET_SHMEM, d->cpus[0].page, 0, 0, 0, 0);
	d->snapshot = !r.error;
}

static const struct quipu_pmu_format formats_612[] = {
	{"event", "config:0-47"},
	{"firmware", "config:62-63"},
	{NULL, NULL},
};
static const struct quipu_pmu_format formats_601[] = {
	{"event", "config:0-47"},
	{"firmware", "config:63"},
	{NULL, NULL},
};

static void describe_pmu(struct sbi_driver *d)
{
	d->pmu = (struct quipu_pmu){
		.name = "cpu",
		.type = PERF_TYPE_RAW,
		.capabilities = d->env.filtering
					? 0
					: QUIPU_PMU_CAP_NO_INTERRUPT | QUIPU_PMU_CAP_NO_EXCLUDE,
		.context = QUIPU_CONTEXT_HARDWARE,
		.driver = d,
		.formats = d->env.kernel >= 612 ? formats_612 : formats_601,
		.events = d->env.events,
		.files = d->env.kernel >= 612 ? files_612[d->env.user_access] : NULL,
		.event_init = sbi_event_init,
		.add = sbi_add,
		.del = sbi_del,
		.start = sbi_start,
		.stop = sbi_stop,
		.read = sbi_read,
		.cpu_online = sbi_cpu_online,
		.cpu_offline = sbi_cpu_offline,
		.file_written = sbi_file_written,
		.slot = sbi_slot,
		.signal = sbi_signal,
	};
}

int sbi_driver_new(const struct riscv_driver_env *env, struct quipu_notes *notes,
		   struct sbi_driver **out)
{
	const uint64_t probe[6] = {QUIPU_SBI_PMU};
	struct sbi_driver *d = calloc(1, sizeof(*d));
	int r = -ENOMEM;

	if (!d)
		return r;
	d->env = *env;
	d->user_access = env->user_access;
	d->cpus = calloc(env->machine->ncpus, sizeof(*d->cpus));
	if (!d->cpus)
		goto fail;
	if (!quipu_riscv_ecall(env->harts, 0, QUIPU_SBI_BASE, 3, probe).value) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "/pmu", "the firmware has no PMU extension");
		r = -ENODEV;
		goto fail;
	}
	r = probe_counters(d);
	if (r) {
		quipu_note(notes, QUIPU_NOTE_WRONG, "/pmu", "the firmware offers no counters");
		goto fail;
	}
	for (unsigned cpu = 0; cpu < env->machine->ncpus; cpu++)
		cpu_start(d, cpu);
	probe_snapshot(d);
	if (env->kernel >= 612)
		probe_events(d);
	for (unsigned cpu = 1; cpu < env->machine->ncpus && d->snapshot; cpu++)
		ecall(d, cpu, QUIPU_SBI_PMU_SNAPSHOT_SET_SHMEM, d->cpus[cpu].page, 0, 0, 0, 0);
	describe_pmu(d);
	r = quipu_core_register(env->core, &d->pmu);
	if (r)
		goto fail;
	*out = d;
	return 0;
fail:
	sbi_driver_free(d);
	return r;
}

void sbi_driver_free(struct sbi_driver *d)
{
	if (!d)
		return;
	free(d->cpus);
	free(d);
}

void sbi_driver_describe(const struct sbi_driver *d, void (*fn)(void *, unsigned, const char *),
			 void *arg)
{
	char line[160];

	snprintf(line, sizeof(line), "driver: SBI PMU of Linux %s, PMU \"cpu\" (type 4)%s",
		 d->env.kernel >= 612 ? "6.12" : "6.1", d->snapshot ? ", snapshots in use" : "");
	fn(arg, 1, line);
	fn(arg, 2, "SBI PMU extension is available");
	snprintf(line, sizeof(line), "%u firmware and %u hardware counters", d->nr_fw, d->nr_hw);
	fn(arg, 2, line);
	if (d->snapshot)
		fn(arg, 2, "SBI PMU snapshot detected");
	if (!d->env.filtering)
		fn(arg, 2,
		   "Perf sampling/filtering is not supported as sscof extension is not available");
}
