/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Overflow and samples: what happens when a counter of a sampling event ran out (perf ABI sheet
 * A14), the layout of PERF_RECORD_SAMPLE (A15) and of the id trailer (A16).
 *
 * The period at an overflow is quipu_reload_frequency's alone: the engine process computes the same
 * one by itself.
 */
#include <poll.h>
#include <signal.h>
#include <errno.h>
#include <string.h>

#include <quipu/bits.h>

#include "internal.h"

#define SAMPLE_WEIGHT_STRUCT (UINT64_C(1) << 24)
#define BRANCH_HW_INDEX	     (UINT64_C(1) << 17)
#define DATA_SRC_UNKNOWN     UINT64_C(0x5080021) /* "not available" in every field */
#define CONTEXT_HV	     ((uint64_t)-32)
#define CONTEXT_KERNEL	     ((uint64_t)-128)
#define CONTEXT_USER	     ((uint64_t)-512)

uint64_t primary_id(const struct quipu_event *e)
{
	return e->parent ? e->parent->id : e->id;
}

/* A record under construction. @full: it did not fit 16 bits of size. */
struct out {
	uint8_t *p;
	size_t n;
	bool full;
};

static void put(struct out *o, const void *data, size_t len)
{
	if (o->full || len > RECORD_MAX - o->n) {
		o->full = true;
		return;
	}
	if (len)
		memcpy(o->p + o->n, data, len);
	o->n += len;
}

static void put64(struct out *o, uint64_t v)
{
	put(o, &v, sizeof(v));
}

static void put32x2(struct out *o, uint32_t a, uint32_t b)
{
	uint32_t v[2] = {a, b};

	put(o, v, sizeof(v));
}

/* ---- the sample ---- */

struct sampling {
	struct quipu_event *e;
	const struct quipu_sample *s;
	unsigned cpu;
	uint64_t now;
	uint32_t pid, tid;
};

static unsigned mode_of(const struct quipu_sample *s)
{
	return s->cpumode ? s->cpumode : PERF_RECORD_MISC_USER;
}

static void put_identifier(struct out *o, const struct sampling *x)
{
	put64(o, primary_id(x->e));
}

static void put_ip(struct out *o, const struct sampling *x)
{
	put64(o, x->s->ip);
}

static void put_tid(struct out *o, const struct sampling *x)
{
	put32x2(o, x->pid, x->tid);
}

static void put_time(struct out *o, const struct sampling *x)
{
	put64(o, x->now);
}

static void put_addr(struct out *o, const struct sampling *x)
{
	put64(o, x->s->addr);
}

static void put_stream_id(struct out *o, const struct sampling *x)
{
	put64(o, x->e->id);
}

static void put_cpu(struct out *o, const struct sampling *x)
{
	put32x2(o, x->cpu, 0);
}

static void put_period(struct out *o, const struct sampling *x)
{
	put64(o, x->e->hw.reload.last_period);
}

static void put_read(struct out *o, const struct sampling *x)
{
	uint64_t values[READ_MAX / 8 + 1];

	put(o, values, read_for_record(x->e, values));
}

/* Kernel or hypervisor part first, then the user's; each opens with its marker, the sampled ip
 * heads the first. */
static void put_callchain(struct out *o, const struct sampling *x)
{
	const struct quipu_sample *s = x->s;
	uint64_t flags = x->e->attr.flags;
	bool kernel = !(flags & QUIPU_ATTR_EXCLUDE_CALLCHAIN_KERNEL);
	bool user = !(flags & QUIPU_ATTR_EXCLUDE_CALLCHAIN_USER);
	bool from_user = mode_of(s) == PERF_RECORD_MISC_USER;
	size_t room = x->e->attr.sample_max_stack;
	uint64_t head[4];
	size_t nr = 0, sites = 0;

	if (s->no_chain)
		kernel = user = false;
	if (!from_user && kernel && room) {
		head[nr++] = mode_of(s) == PERF_RECORD_MISC_HYPERVISOR && !s->through_kernel
				     ? CONTEXT_HV
				     : CONTEXT_KERNEL;
		head[nr++] = s->ip;
		room--;
	}
	if (user && (from_user || s->nr_chain)) {
		head[nr++] = CONTEXT_USER;
		if (from_user && room) {
			head[nr++] = s->ip;
			room--;
		}
		sites = s->nr_chain < room ? s->nr_chain : room;
	}
	put64(o, nr + sites);
	put(o, head, nr * 8);
	put(o, s->chain, sites * 8);
}

static void put_raw(struct out *o, const struct sampling *x)
{
	static const uint8_t zero[8];
	size_t len = x->s->raw ? x->s->raw_size : 0;
	size_t padded = ((4 + (len ? len : 4) + 7) & ~(size_t)7) - 4;
	uint32_t size = (uint32_t)padded;

	put(o, &size, sizeof(size));
	put(o, x->s->raw, len);
	put(o, zero, padded - len);
}

static void put_branches(struct out *o, const struct sampling *x)
{
	size_t nr = x->s->branches ? x->s->nr_branches : 0;

	put64(o, nr);
	if (nr && (x->e->attr.branch_sample_type & BRANCH_HW_INDEX))
		put64(o, UINT64_MAX); /* no index of the hardware's own is known */
	put(o, x->s->branches, nr * 24);
}

/* All that are asked for, or none: a register that is not known has no value to show. */
static void put_regs(struct out *o, uint64_t want, uint64_t known, const uint64_t *value)
{
	if (!value || (want & ~known)) {
		put64(o, PERF_SAMPLE_REGS_ABI_NONE);
		return;
	}
	put64(o, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t m = want; m; m &= m - 1)
		put64(o, value[bits_count(known & bits_mask(bits_low(m)))]);
}

static void put_regs_intr(struct out *o, const struct sampling *x)
{
	put_regs(o, x->e->attr.sample_regs_intr, x->s->regs_known, x->s->regs);
}

static void put_regs_user(struct out *o, const struct sampling *x)
{
	put_regs(o, x->e->attr.sample_regs_user, x->s->user.known, x->s->user.value);
}

/* No stack, no physical address is known to any model: each says so in its own way, by a 0. */
static void put_zero(struct out *o, const struct sampling *x)
{
	(void)x;
	put64(o, 0);
}

static void put_weight(struct out *o, const struct sampling *x)
{
	put64(o, x->s->weight);
}

static void put_data_src(struct out *o, const struct sampling *x)
{
	put64(o, x->s->data_src ? x->s->data_src : DATA_SRC_UNKNOWN);
}

/* A15, in order of the record. */
static const struct {
	uint64_t bit;
	void (*put)(struct out *, const struct sampling *);
} fields[] = {
	{PERF_SAMPLE_IDENTIFIER, put_identifier},
	{PERF_SAMPLE_IP, put_ip},
	{PERF_SAMPLE_TID, put_tid},
	{PERF_SAMPLE_TIME, put_time},
	{PERF_SAMPLE_ADDR, put_addr},
	{PERF_SAMPLE_ID, put_identifier},
	{PERF_SAMPLE_STREAM_ID, put_stream_id},
	{PERF_SAMPLE_CPU, put_cpu},
	{PERF_SAMPLE_PERIOD, put_period},
	{PERF_SAMPLE_READ, put_read},
	{PERF_SAMPLE_CALLCHAIN, put_callchain},
	{PERF_SAMPLE_RAW, put_raw},
	{PERF_SAMPLE_BRANCH_STACK, put_branches},
	{PERF_SAMPLE_REGS_USER, put_regs_user},
	{PERF_SAMPLE_STACK_USER, put_zero},
	{PERF_SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT, put_weight},
	{PERF_SAMPLE_DATA_SRC, put_data_src},
	{PERF_SAMPLE_TRANSACTION, put_zero},
	{PERF_SAMPLE_REGS_INTR, put_regs_intr},
	{PERF_SAMPLE_PHYS_ADDR, put_zero},
	{UINT64_C(1) << 21, put_zero}, /* CGROUP */
	{UINT64_C(1) << 22, put_zero}, /* DATA_PAGE_SIZE */
	{UINT64_C(1) << 23, put_zero}, /* CODE_PAGE_SIZE */
	{UINT64_C(1) << 20, put_zero}, /* AUX */
};

static void whose(const struct quipu_core *core, unsigned cpu, uint32_t *pid, uint32_t *tid)
{
	const struct quipu_task *t = quipu_core_current(core, cpu);

	*pid = t ? (uint32_t)t->pid : 0;
	*tid = t ? (uint32_t)t->tid : 0;
}

static int output_sample(struct quipu_event *e, const struct quipu_sample *s, unsigned cpu,
			 uint64_t now)
{
	struct perf_event_header h = {.type = PERF_RECORD_SAMPLE, .misc = (uint16_t)mode_of(s)};
	struct sampling x = {.e = e, .s = s, .cpu = cpu, .now = now, .pid = s->pid, .tid = s->tid};
	struct out o = {.p = e->core->record, .n = sizeof(h)};

	if (!(e->parent ? e->parent->ring : e->ring))
		return -ENOSPC;
	if (!x.pid && !x.tid)
		whose(e->core, cpu, &x.pid, &x.tid);
	if (s->exact_ip)
		h.misc |= PERF_RECORD_MISC_EXACT_IP;
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (e->attr.sample_type & fields[i].bit)
			fields[i].put(&o, &x);
	}
	if (o.full) {
		/* Too large for any record (a driver's raw data): lost, and counted as such. */
		(e->parent ? e->parent : e)->lost++;
		return -ENOSPC;
	}
	h.size = (uint16_t)o.n;
	memcpy(o.p, &h, sizeof(h));
	return ring_output(e, o.p, o.n, true);
}

/* ---- the trailer ---- */

size_t sample_trailer_size(const struct quipu_event *e)
{
	const uint64_t parts = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;

	return e->attr.flags & QUIPU_ATTR_SAMPLE_ID_ALL
		       ? 8 * bits_count(e->attr.sample_type & parts)
		       : 0;
}

size_t sample_trailer(struct quipu_event *e, unsigned cpu, uint8_t *p)
{
	static const struct {
		uint64_t bit;
		void (*put)(struct out *, const struct sampling *);
	} trailer[] = {
		{PERF_SAMPLE_TID, put_tid},	  {PERF_SAMPLE_TIME, put_time},
		{PERF_SAMPLE_ID, put_identifier}, {PERF_SAMPLE_STREAM_ID, put_stream_id},
		{PERF_SAMPLE_CPU, put_cpu},	  {PERF_SAMPLE_IDENTIFIER, put_identifier},
	};
	struct sampling x = {.e = e, .cpu = cpu};
	struct out o = {.p = p};

	if (!(e->attr.flags & QUIPU_ATTR_SAMPLE_ID_ALL))
		return 0;
	x.now = core_now(e->core, cpu);
	whose(e->core, cpu, &x.pid, &x.tid);
	for (size_t i = 0; i < sizeof(trailer) / sizeof(*trailer); i++) {
		if (e->attr.sample_type & trailer[i].bit)
			trailer[i].put(&o, &x);
	}
	return o.n;
}

/* THROTTLE (@on) and UNTHROTTLE. */
void sample_throttle(struct quipu_event *e, bool on)
{
	struct perf_event_header h = {.type = on ? PERF_RECORD_THROTTLE : PERF_RECORD_UNTHROTTLE};
	unsigned cpu = (unsigned)e->oncpu;
	uint64_t body[3] = {core_now(e->core, cpu), primary_id(e), e->id};
	uint8_t record[8 + 24 + 48];
	size_t n = sizeof(h) + sizeof(body);

	memcpy(record + sizeof(h), body, sizeof(body));
	n += sample_trailer(e, cpu, record + n);
	h.size = (uint16_t)n;
	memcpy(record, &h, sizeof(h));
	ring_output(e, record, n, false);
}

/* ---- the overflow path ---- */

static unsigned samples_per_tick(const struct quipu_core *core)
{
	return (core->config.max_sample_rate + core->config.hz - 1) / core->config.hz;
}

/* A14 step 2. Ticks are numbered by model time, so that throttling needs no tick to happen. */
static bool account(struct quipu_event *e, uint64_t now)
{
	struct quipu_hw_event *hw = &e->hw;
	uint64_t seq = now / e->core->tick_ns;
	bool stop = false;

	if (seq != hw->interrupts_seq) {
		hw->interrupts_seq = seq;
		hw->interrupts = 1;
	} else if (++hw->interrupts >= samples_per_tick(e->core) && hw->interrupts != THROTTLED) {
		hw->interrupts = THROTTLED;
		sample_throttle(e, true);
		core_tell(e->core, (unsigned)e->oncpu);
		stop = true;
	}
	if (quipu_reload_frequency(&hw->reload, now)) {
		e->pmu->stop(e, QUIPU_EF_UPDATE);
		hw->reload.period_left = 0;
		e->pmu->start(e, QUIPU_EF_RELOAD);
	}
	return stop;
}

/* A14 step 3; the driver is at work on the event, so the disable itself waits for core_work. */
static bool count_limit(struct quipu_event *e)
{
	e->pending = POLL_IN;
	if (!e->limit || --e->limit)
		return false;
	e->pending = POLL_HUP;
	if (!e->pending_disable) {
		e->pending_disable = true;
		e->core->pending++;
	}
	return true;
}

int quipu_event_overflow(struct quipu_event *e, const struct quipu_sample *s)
{
	static const struct quipu_sample nothing;
	struct quipu_event *owner = e->parent ? e->parent : e;
	struct quipu_core *core = e->core;
	unsigned cpu;
	uint64_t now;
	bool stop;

	if (!attr_sampling(&e->attr) || e->oncpu < 0)
		return 0;
	if (!s)
		s = &nothing;
	cpu = (unsigned)e->oncpu;
	now = core_now(core, cpu);
	stop = account(e, now);
	stop |= count_limit(e);
	if ((e->attr.flags & QUIPU_ATTR_SIGTRAP) && core->ops->sigtrap && core->cpus[cpu].current)
		core->ops->sigtrap(core->arg, owner, core->cpus[cpu].current, s->addr);
	output_sample(e, s, cpu, now);
	if (owner->async && e->pending)
		event_wakeup(e);
	return stop;
}

int quipu_event_sample(struct quipu_event *e, const struct quipu_sample *s)
{
	unsigned cpu = (unsigned)e->oncpu;

	return e->oncpu < 0 ? -ENOSPC : output_sample(e, s, cpu, core_now(e->core, cpu));
}

int64_t quipu_event_since_tick(const struct quipu_event *e)
{
	return (int64_t)(e->count - e->hw.reload.freq_count);
}

bool quipu_event_needs_bell(const struct quipu_event *e)
{
	return e->limit || e->async || (e->parent && e->parent->async) ||
	       (e->attr.flags & QUIPU_ATTR_SIGTRAP);
}
