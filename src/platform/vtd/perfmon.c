// SPDX-License-Identifier: BSD-2-Clause
/*
 * Performance monitoring of a remapping unit (chapter 10, 11.4.13, 11.4.14): counters, their
 * configuration and filters, enhanced commands, freeze, overflow and its interrupt. Where the text
 * leaves something open, README.md says what was chosen. Counters above 64 are not modelled.
 */
#include <errno.h>
#include <string.h>

#include "unit.h"

static bool present(const struct quipu_vtd *u)
{
	return u->config.ecap & ECAP_PMS;
}

/* ---- which filters go with which event (Table 49) ---- */

#define F(f) (1u << FILTER_##f)
static const struct {
	uint16_t event;
	uint8_t filters;
} event_filters[] = {
	{EV_REQUESTS, F(AT)},
	{EV_SS_HIT, F(PTL)},
	{EV_FS_HIT, F(PTL)},
	{EV_IOTLB_HIT, F(PTL)},
	{EV_HPT_NONLEAF_LOOKUP, F(AT)},
	{EV_HPT_NONLEAF_HIT, F(AT) | F(PTL)},
	{EV_HPT_LEAF_LOOKUP, F(AT)},
	{EV_HPT_LEAF_HIT, F(PTL)},
};

static unsigned filters_of(const struct quipu_vtd *u, unsigned group, unsigned bit)
{
	unsigned event = VTD_EVENT(group, bit), accepted = 0;

	for (size_t i = 0; i < sizeof(event_filters) / sizeof(event_filters[0]); i++)
		if (event_filters[i].event == event)
			accepted = event_filters[i].filters;
	if (!u->config.filters_extended)
		return accepted;
	if (group == 4)
		return accepted | F(RID);
	if (event == EV_CLOCKS || event == EV_TOTAL_OCCUPANCY || event == EV_MEM_OCCUPANCY)
		return accepted;
	return accepted | F(RID) | F(DID) | F(PASID);
}

/* ---- who listens to what ---- */

static void listen_all(struct quipu_vtd *u)
{
	memset(u->listening, 0, sizeof(u->listening));
	memset(u->listeners, 0, sizeof(u->listeners));
	memset(u->type_pass, 0, sizeof(u->type_pass));
	memset(u->level_pass, 0, sizeof(u->level_pass));
	u->choosy = 0;
	u->last_who = ~UINT64_C(0);
	for (uint64_t left = u->enabled & ~u->frozen; left; left &= left - 1) {
		unsigned c = bits_low(left);
		unsigned group = CNTRCFG_EGI(u->counter[c].config);
		uint32_t events = CNTRCFG_ES(u->counter[c].config);

		u->listening[group] |= events;
		for (; events; events &= events - 1)
			u->listeners[VTD_EVENT(group, bits_low(events))] |= bits_one(c);
		for (unsigned i = 0; i < 32; i++) {
			u->type_pass[i] |= (uint64_t)(u->pass[c].types >> i & 1) << c;
			u->level_pass[i] |= (uint64_t)(u->pass[c].levels >> i & 1) << c;
		}
		u->choosy |= (uint64_t)(u->pass[c].care != 0) << c;
	}
}

static void set_enabled(struct quipu_vtd *u, uint64_t enabled)
{
	/* Reprogramming under a freeze takes no time: it does not begin a new period of counting.
	 */
	if (!u->enabled && enabled && u->counting_until != u->now_ns)
		u->counting_since = u->now_ns;
	if (u->enabled && !enabled)
		u->counting_until = u->now_ns;
	u->enabled = enabled;
	listen_all(u);
}

static void set_frozen(struct quipu_vtd *u, uint64_t frozen)
{
	u->frozen = frozen;
	listen_all(u);
}

bool quipu_vtd_counting(const struct quipu_vtd *u, uint64_t *since)
{
	if (since)
		*since = u->counting_since;
	return u->enabled;
}

/* ---- counting ---- */

/* Interrupt condition: a second one while the first is not yet acknowledged changes nothing. */
static void interrupt(struct quipu_vtd *u)
{
	if (vtd_reg32(u, PERFINTRSTS_REG) & 1)
		return;
	vtd_set32(u, PERFINTRSTS_REG, 1);
	vtd_irq_raise(u, PERFINTRCTL_REG);
}

static void overflow(struct quipu_vtd *u, uint64_t counters)
{
	uint64_t freeze = 0, raise = 0;

	u->overflowed |= counters;
	for (; counters; counters &= counters - 1) {
		unsigned c = bits_low(counters);

		if (u->counter[c].config & CNTRCFG_GFO)
			freeze = bits_mask(u->ncounters);
		if (u->counter[c].config & CNTRCFG_IO)
			raise |= bits_one(c);
	}
	if (freeze)
		set_frozen(u, u->frozen | freeze);
	if (raise)
		interrupt(u);
}

/* Counters that do not mind @who. Requests come in runs of the same: the latest answer is kept. */
static uint64_t who_pass(struct quipu_vtd *u, uint64_t who)
{
	uint64_t pass = ~UINT64_C(0);

	if (who == u->last_who)
		return u->last_pass;
	for (uint64_t left = u->choosy; left; left &= left - 1) {
		unsigned c = bits_low(left);

		if ((who ^ u->pass[c].want) & u->pass[c].care)
			pass &= ~bits_one(c);
	}
	u->last_who = who;
	u->last_pass = pass;
	return pass;
}

/* All counters see the same occurrence before any of them freezes the others. */
static inline void deliver(struct quipu_vtd *u, uint64_t counters, uint64_t n)
{
	uint64_t over = 0;

	for (; counters; counters &= counters - 1) {
		unsigned c = bits_low(counters);
		uint64_t left = u->left[c];

		u->left[c] = left - n;
		if (__builtin_expect(left < n, 0)) {
			u->left[c] = (left - n) & u->counter[c].mask;
			over |= bits_one(c);
		}
	}
	if (__builtin_expect(over != 0, 0))
		overflow(u, over);
}

void vtd_tally_deliver(struct quipu_vtd *u, uint64_t who)
{
	const struct vtd_tally *t = &u->tally;

	uint64_t pass = who_pass(u, who);

	for (unsigned i = 0; i < t->n; i++)
		deliver(u,
			u->listeners[t->item[i].event] & pass & u->type_pass[t->item[i].at] &
				u->level_pass[t->item[i].level],
			t->item[i].n);
}

/* Up to and with the next overflow of a listening counter, so that what it freezes stops at the
 * right occurrence. */
static uint64_t until_overflow(const struct quipu_vtd *u, uint64_t listeners)
{
	uint64_t least = UINT64_MAX;

	for (; listeners; listeners &= listeners - 1)
		if (u->left[bits_low(listeners)] < least)
			least = u->left[bits_low(listeners)];
	return least == UINT64_MAX ? least : least + 1;
}

void vtd_perfmon_count(struct quipu_vtd *u, enum vtd_event event, uint64_t n)
{
	while (n && u->listeners[event]) {
		uint64_t step = until_overflow(u, u->listeners[event]);

		if (step > n)
			step = n;
		deliver(u,
			u->listeners[event] & who_pass(u, 0) & u->type_pass[NO_AT] &
				u->level_pass[NO_LEVEL],
			step);
		n -= step;
	}
}

/* ---- enhanced commands ---- */

static unsigned check_enable(const struct quipu_vtd *u, const struct vtd_counter *c)
{
	uint32_t events = CNTRCFG_ES(c->config);
	unsigned group = CNTRCFG_EGI(c->config), filters = 0;

	for (unsigned f = 0; f < FILTERS; f++)
		filters |= c->filter[f] & FILTER_EN ? 1u << f : 0;
	if (bits_count(events) > 1 && filters)
		return ECMD_FAILED;
	if (group >= PERFCAP_EGCNT(u->config.perfcap) || !c->events[group])
		return ECMD_FAILED;
	if (!events || (events & ~c->events[group]))
		return ECMD_FAILED;
	if (((c->config & CNTRCFG_IO) && !c->ios) || ((c->config & CNTRCFG_GFO) && !c->gfs))
		return ECMD_FAILED;
	if (filters & ~filters_of(u, group, bits_low(events)))
		return ECMD_FAILED;
	if ((filters & F(PASID)) && bits_get(c->filter[FILTER_PASID], 21, 20) == 3)
		return ECMD_FAILED;
	return ECMD_SUCCESS;
}

/* Sets of NO_AT and NO_LEVEL are in no filter: what has none passes only a counter that does not
 * ask. */
static void compile(const struct vtd_counter *c, struct vtd_pass *pass)
{
	uint32_t pasid = c->filter[FILTER_PASID];

	pass->want = pass->care = 0;
	pass->types = pass->levels = UINT32_MAX;
	if (c->filter[FILTER_RID] & FILTER_EN) {
		pass->want |= WHO_REQUEST | WHO_RID(c->filter[FILTER_RID] & 0xffff);
		pass->care |= WHO_REQUEST | WHO_RID(0xffff);
	}
	if (c->filter[FILTER_DID] & FILTER_EN) {
		pass->want |= WHO_HAS_DID | WHO_DID(c->filter[FILTER_DID] & 0xffff);
		pass->care |= WHO_HAS_DID | WHO_DID(0xffff);
	}
	if (pasid & FILTER_EN) {
		unsigned mode = (unsigned)bits_get(pasid, 21, 20);

		pass->want |= WHO_REQUEST | (mode == PFM_NONE ? 0 : WHO_HAS_PASID);
		pass->care |= WHO_REQUEST | WHO_HAS_PASID;
		if (mode == PFM_EQUAL) {
			pass->want |= WHO_PASID(pasid & 0xfffff);
			pass->care |= WHO_PASID(0xfffff);
		}
	}
	if (c->filter[FILTER_AT] & FILTER_EN)
		pass->types = c->filter[FILTER_AT] & 0x1f;
	if (c->filter[FILTER_PTL] & FILTER_EN)
		pass->levels = c->filter[FILTER_PTL] & 0x1f;
}

static unsigned enable(struct quipu_vtd *u, uint64_t operand)
{
	struct vtd_counter *c;
	unsigned status;

	if (operand >= u->ncounters)
		return ECMD_FAILED;
	if (u->enabled >> operand & 1)
		return ECMD_SUCCESS;
	c = &u->counter[operand];
	status = check_enable(u, c);
	if (status)
		return status;
	compile(c, &u->pass[operand]);
	set_enabled(u, u->enabled | bits_one((unsigned)operand));
	return ECMD_SUCCESS;
}

static unsigned disable(struct quipu_vtd *u, uint64_t operand)
{
	if (operand >= u->ncounters)
		return ECMD_FAILED;
	u->frozen &= ~bits_one((unsigned)operand);
	set_enabled(u, u->enabled & ~bits_one((unsigned)operand));
	return ECMD_SUCCESS;
}

static unsigned reset_config(struct quipu_vtd *u, uint64_t operand)
{
	(void)operand;
	for (unsigned c = 0; c < u->ncounters; c++) {
		u->counter[c].config = 0;
		memset(u->counter[c].filter, 0, sizeof(u->counter[c].filter));
	}
	u->frozen = u->overflowed = 0;
	set_enabled(u, 0);
	return ECMD_SUCCESS;
}

static unsigned reset_values(struct quipu_vtd *u, uint64_t operand)
{
	(void)operand;
	for (unsigned c = 0; c < u->ncounters; c++)
		u->left[c] = u->counter[c].mask;
	return ECMD_SUCCESS;
}

static unsigned freeze(struct quipu_vtd *u, uint64_t operand)
{
	(void)operand;
	set_frozen(u, bits_mask(u->ncounters));
	return ECMD_SUCCESS;
}

static unsigned unfreeze(struct quipu_vtd *u, uint64_t operand)
{
	(void)operand;
	set_frozen(u, 0);
	return ECMD_SUCCESS;
}

static unsigned (*const commands[])(struct quipu_vtd *, uint64_t operand) = {
	[ECMD_ENABLE - ECMD_ENABLE] = enable,
	[ECMD_DISABLE - ECMD_ENABLE] = disable,
	[ECMD_RESET_CONFIG - ECMD_ENABLE] = reset_config,
	[ECMD_RESET_VALUES - ECMD_ENABLE] = reset_values,
	[ECMD_FREEZE - ECMD_ENABLE] = freeze,
	[ECMD_UNFREEZE - ECMD_ENABLE] = unfreeze,
};

void vtd_command(struct quipu_vtd *u, uint64_t ecmd)
{
	unsigned code = ecmd & 0xff, status = ECMD_UNSUPPORTED;
	bool known = code >= ECMD_ENABLE && code <= ECMD_UNFREEZE;

	if (known && present(u) && (u->config.eccap[code / 64] >> code % 64 & 1))
		status = commands[code - ECMD_ENABLE](u, ecmd >> 16);
	u->ecrsp = (uint64_t)status << 1;
	u->ecmd_left = u->config.ecmd_latency;
}

uint64_t vtd_command_status(struct quipu_vtd *u)
{
	if (!u->ecmd_left)
		return u->ecrsp;
	u->ecmd_left--;
	return ECRSP_IP;
}

/* ---- registers ---- */

/* A 32-bit register inside a counter's configuration block. */
static uint32_t read_block(const struct quipu_vtd *u, unsigned c, uint32_t offset)
{
	const struct vtd_counter *counter = &u->counter[c];
	const struct quipu_vtd_config *config = &u->config;

	if (offset == 0)
		return (uint32_t)counter->config | (u->enabled >> c & 1 ? (uint32_t)CNTRCFG_EN : 0);
	if (offset == 4)
		return (uint32_t)(counter->config >> 32);
	if (offset >= CFG_FILTER && offset < CFG_FILTER + 4 * FILTERS)
		return counter->filter[(offset - CFG_FILTER) / 4];
	if (!(config->perfcap & PERFCAP_PCCS))
		return 0;
	if (offset == CFG_CNTRCAP)
		return config->perfcntrcap[c];
	if (offset >= CFG_CNTREVCAP &&
	    (offset - CFG_CNTREVCAP) / 4 < CNTRCAP_EGCNT(config->perfcntrcap[c]))
		return config->perfcntrevcap[c][(offset - CFG_CNTREVCAP) / 4];
	return 0;
}

static uint32_t filter_mask(const struct quipu_vtd *u, unsigned filter)
{
	static const uint32_t value[FILTERS] = {0xffff, 0xffff, 0x3fffff, 0x17, 0x1f};
	uint32_t mask = value[filter] | (uint32_t)FILTER_EN;

	if (!(PERFCAP_FILTERS(u->config.perfcap) >> filter & 1))
		return 0;
	if (filter == FILTER_AT && !(u->config.ecap & ECAP_HPTS))
		mask &= ~(1u << AT_PREFETCH);
	return mask;
}

static void write_block(struct quipu_vtd *u, unsigned c, uint32_t offset, uint32_t value)
{
	struct vtd_counter *counter = &u->counter[c];
	unsigned filter = (offset - CFG_FILTER) / 4;

	if (u->enabled >> c & 1)
		return;
	if (offset == 0)
		counter->config =
			(counter->config & ~UINT64_C(0xffffffff)) | (value & CNTRCFG_WRITABLE);
	else if (offset == 4)
		counter->config =
			(uint32_t)counter->config | ((uint64_t)value << 32 & CNTRCFG_WRITABLE);
	else if (offset >= CFG_FILTER && filter < FILTERS)
		counter->filter[filter] = value & filter_mask(u, filter);
}

static void write_counter(struct quipu_vtd *u, unsigned c, bool high, uint32_t half)
{
	uint64_t mask = u->counter[c].mask, value = mask - u->left[c];
	unsigned shift = high ? 32 : 0;

	if ((u->enabled >> c & 1) && !(u->config.perfcap & PERFCAP_CWE))
		return;
	value &= ~(UINT64_C(0xffffffff) << shift);
	value |= (uint64_t)half << shift;
	u->left[c] = mask - (value & mask);
}

enum area { AREA_NONE, AREA_FREEZE, AREA_OVERFLOW, AREA_BLOCK, AREA_COUNTER };

/* Which of the relocatable areas has @offset; *c the counter, *at the offset in what belongs to it.
 */
static enum area area_of(const struct quipu_vtd *u, uint32_t offset, unsigned *c, uint32_t *at)
{
	const struct quipu_vtd_config *config = &u->config;
	uint32_t stride = PERFCAP_STRIDE(config->perfcap);

	if (!present(u) || !u->ncounters)
		return AREA_NONE;
	*c = 0;
	*at = offset & 7;
	if (offset - config->perffrzoff < 8)
		return AREA_FREEZE;
	if (offset - config->perfovfoff < 8)
		return AREA_OVERFLOW;
	*c = (offset - config->perfcfgoff) / CFG_BLOCK;
	*at = (offset - config->perfcfgoff) % CFG_BLOCK;
	if (offset >= config->perfcfgoff && *c < u->ncounters)
		return AREA_BLOCK;
	*c = (offset - config->perfcntroff) / stride;
	*at = (offset - config->perfcntroff) % stride;
	if (offset >= config->perfcntroff && *c < u->ncounters && *at < 8)
		return AREA_COUNTER;
	return AREA_NONE;
}

bool vtd_perfmon_read(struct quipu_vtd *u, uint32_t offset, unsigned width, uint64_t *value)
{
	unsigned c;
	uint32_t at;
	uint64_t v = 0;

	(void)width; /* words; registers.c joins them */
	switch (area_of(u, offset, &c, &at)) {
	case AREA_NONE: return false;
	case AREA_FREEZE: v = u->frozen >> 8 * at; break;
	case AREA_OVERFLOW: v = u->overflowed >> 8 * at; break;
	case AREA_BLOCK: v = read_block(u, c, at); break;
	case AREA_COUNTER: v = (u->counter[c].mask - u->left[c]) >> 8 * at; break;
	}
	*value = (uint32_t)v;
	return true;
}

static bool write_word(struct quipu_vtd *u, uint32_t offset, uint32_t value)
{
	unsigned c;
	uint32_t at;

	switch (area_of(u, offset, &c, &at)) {
	case AREA_NONE: return false;
	case AREA_FREEZE: break;
	case AREA_OVERFLOW: u->overflowed &= ~((uint64_t)value << 8 * at); break;
	case AREA_BLOCK: write_block(u, c, at, value); break;
	case AREA_COUNTER: write_counter(u, c, at, value); break;
	}
	return true;
}

bool vtd_perfmon_write(struct quipu_vtd *u, uint32_t offset, unsigned width, uint64_t value)
{
	if (!write_word(u, offset, (uint32_t)value))
		return false;
	if (width == 8)
		write_word(u, offset + 4, (uint32_t)(value >> 32));
	return true;
}

/* ---- life ---- */

/* What counter @c can count: the unit's sets, or its own list. */
static void counter_init(struct quipu_vtd *u, unsigned c)
{
	const struct quipu_vtd_config *config = &u->config;
	struct vtd_counter *counter = &u->counter[c];
	uint32_t cap = config->perfcap & PERFCAP_PCCS ? config->perfcntrcap[c] : 0;
	unsigned groups = PERFCAP_EGCNT(config->perfcap);
	bool own = cap & CNTRCAP_PCC;

	counter->mask = bits_mask(own ? CNTRCAP_CW(cap) : PERFCAP_CW(config->perfcap));
	counter->ios = own ? cap & CNTRCAP_IOS : config->perfcap & PERFCAP_IOS;
	counter->gfs = own ? cap & CNTRCAP_GFS : config->perfcap & PERFCAP_GFS;
	for (unsigned g = 0; g < groups; g++)
		counter->events[g] = own ? 0 : EVCAP_ES(config->perfevntcap[g]);
	for (unsigned k = 0; own && k < CNTRCAP_EGCNT(cap); k++) {
		uint32_t entry = config->perfcntrevcap[c][k];

		if (EVCAP_EGI(entry) < groups)
			counter->events[EVCAP_EGI(entry)] = EVCAP_ES(entry);
	}
}

static const char *check(const struct quipu_vtd_config *c, unsigned n)
{
	uint64_t last = n ? n - 1 : 0;

	if (n > QUIPU_VTD_MAX_COUNTERS)
		return "more than 64 counters (PERFCAP_REG.NCNTR)";
	if (PERFCAP_EGCNT(c->perfcap) > QUIPU_VTD_MAX_GROUPS)
		return "more than 15 event groups (PERFCAP_REG.EGCNT)";
	if (PERFCAP_CW(c->perfcap) < 1 || PERFCAP_CW(c->perfcap) > 64)
		return "the counter width (PERFCAP_REG.CW) is not 1 to 64 bits";
	if (c->perfcfgoff % CFG_BLOCK || c->perffrzoff % 8 || c->perfovfoff % 8 ||
	    c->perfcntroff % PERFCAP_STRIDE(c->perfcap))
		return "a perfmon offset is not aligned";
	if (c->perfcfgoff + last * CFG_BLOCK + CFG_BLOCK > c->window ||
	    c->perffrzoff + 8ull > c->window || c->perfovfoff + 8ull > c->window ||
	    c->perfcntroff + last * PERFCAP_STRIDE(c->perfcap) + 8 > c->window)
		return "perfmon registers lie outside the register window";
	for (unsigned i = 0; i < n; i++)
		if ((c->perfcntrcap[i] & CNTRCAP_PCC) && (c->perfcap & PERFCAP_PCCS) &&
		    (CNTRCAP_CW(c->perfcntrcap[i]) < 1 || CNTRCAP_CW(c->perfcntrcap[i]) > 64))
			return "a counter's width (PERFCNTRCAP_REG.CW) is not 1 to 64 bits";
	return NULL;
}

int vtd_perfmon_init(struct quipu_vtd *u, const char **why)
{
	unsigned n = PERFCAP_NCNTR(u->config.perfcap);

	if (!present(u) || !u->config.perfcap)
		return 0;
	*why = check(&u->config, n);
	if (*why)
		return -EINVAL;
	u->ncounters = n;
	for (unsigned c = 0; c < n; c++)
		counter_init(u, c);
	return 0;
}

void vtd_perfmon_reset(struct quipu_vtd *u)
{
	u->ecrsp = 0;
	u->ecmd_left = 0;
	reset_config(u, 0);
	reset_values(u, 0);
	u->counting_since = 0;
	u->counting_until = UINT64_MAX;
}
