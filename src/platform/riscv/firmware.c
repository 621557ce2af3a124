/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware behind the SBI PMU extension: which logical counter monitors which event, and what
 * is written into the hart's registers for it. Everything reaches the hart through M-mode CSR
 * accesses.
 *
 * Follows RISC-V SBI 3.0, chapter "Performance Monitoring Unit Extension"; where the text leaves a
 * choice, RISC-V sheet 3.7 and 3.8 (decisions D-16 to D-18, D-29). With quipu,opensbi-compat it
 * deviates as OpenSBI 1.9 does, column by column of the sheet's 3.8. The unpacking of calls is
 * sbi.c's; supervisor software events (SSE) are not modelled.
 */
#include <stddef.h>
#include <string.h>

#include "platform/riscv/events.h"
#include "platform/riscv/hart.h"

#define FILTERS                                                                                    \
	(QUIPU_RISCV_MINH | QUIPU_RISCV_SINH | QUIPU_RISCV_UINH | QUIPU_RISCV_VSINH |              \
	 QUIPU_RISCV_VUINH)

#define EVENT_CYCLES	   0x00001u
#define EVENT_INSTRUCTIONS 0x00002u
#define EVENT_TYPE(e)	   (((e) >> 16) & 0xF)
#define EVENT_CODE(e)	   ((e)&0xFFFF)
enum { TYPE_GENERAL = 0, TYPE_CACHE = 1, TYPE_RAW = 2, TYPE_RAW_V2 = 3, TYPE_FIRMWARE = 15 };
#define GENERAL_EVENTS 11u

#define SNAPSHOT_BYTES	  4096u
#define SNAPSHOT_BITMAP	  0u
#define SNAPSHOT_VALUES	  8u
#define SNAPSHOT_SLOTS	  64u
#define EVENT_INFO_BYTES  16u
#define EVENT_INFO_OUTPUT 1u

static struct quipu_sbiret answer(int64_t error, uint64_t value)
{
	return (struct quipu_sbiret){.error = error, .value = value};
}

static bool hart_has(const struct quipu_riscv *rv, unsigned extension)
{
	return rv->harts[0].extensions & extension;
}

unsigned firmware_counters(const struct quipu_riscv *rv)
{
	return rv->num_hw + FW_COUNTERS;
}

static bool is_hardware(const struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	return i < rv->num_hw && (rv->harts[hart].implemented & bits_one(i));
}

static bool is_firmware(const struct quipu_riscv *rv, unsigned i)
{
	return i >= rv->num_hw && i < firmware_counters(rv);
}

void firmware_boot(struct quipu_riscv *rv, unsigned hart)
{
	struct hart *h = &rv->harts[hart];
	struct fw_hart *f = &rv->firmware[hart];

	hart_enter(h);
	hart_set(h, QUIPU_CSR_SCOUNTEREN, bits_one(1));
	hart_set(h, QUIPU_CSR_MCOUNTEREN, UINT32_MAX);
	hart_set(h, QUIPU_CSR_MCOUNTINHIBIT, HART_PROGRAMMABLE);
	hart_set(h, QUIPU_CSR_MIDELEG,
		 bits_one(1) | bits_one(5) | bits_one(9) | bits_one(QUIPU_RISCV_LCOFI));
	for (uint32_t m = h->implemented & HART_PROGRAMMABLE; m; m &= m - 1)
		hart_set(h, QUIPU_CSR_MHPMEVENT3 + bits_low(m) - 3,
			 h->extensions & EXT_SSCOFPMF ? QUIPU_RISCV_OF | QUIPU_RISCV_MINH : 0);
	if (h->extensions & EXT_SMSTATEEN)
		hart_set(h, CSR_MSTATEEN0, UINT64_MAX);
	for (unsigned i = 0; i < FW_MAX; i++)
		f->counter[i] = (struct fw_counter){.event = FW_UNBOUND};
	f->counter[0].event = EVENT_CYCLES;
	f->counter[2].event = EVENT_INSTRUCTIONS;
	f->shmem = FW_NO_SHMEM;
	hart_leave(h);
}

struct quipu_sbiret firmware_info(struct quipu_riscv *rv, unsigned hart, uint64_t index)
{
	unsigned width;

	if (index < FW_MAX && is_firmware(rv, (unsigned)index))
		return answer(0, bits_one(63) | UINT64_C(63) << 12);
	if (index >= FW_MAX || !is_hardware(rv, hart, (unsigned)index))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	width = index < 3 ? 64 : rv->harts[hart].width;
	return answer(0, (QUIPU_CSR_CYCLE + index) | (uint64_t)(width - 1) << 12);
}

/* ---- matching (3.7) ---- */

/*
 * Is the counter set {base + k} within the logical counters? On success *set has one bit per
 * logical counter.
 */
static bool counter_set(const struct quipu_riscv *rv, uint64_t base, uint64_t mask, uint64_t *set)
{
	unsigned total = firmware_counters(rv);

	if (!mask || base >= total || base + (63u - (unsigned)__builtin_clzll(mask)) >= total)
		return false;
	*set = mask << base;
	return true;
}

/* Is this an event at all? The status to refuse it with, or 0. */
static int64_t check_event(const struct quipu_riscv *rv, uint64_t event, uint64_t data)
{
	bool compat = rv->config.opensbi_compat;
	unsigned code = EVENT_CODE(event);

	if (event >> 20)
		return compat ? QUIPU_SBI_NOT_SUPPORTED : QUIPU_SBI_INVALID_PARAM;
	switch (EVENT_TYPE(event)) {
	case TYPE_GENERAL:
		if (compat && code == 0)
			return QUIPU_SBI_NOT_SUPPORTED;
		if (code == 0 || code >= GENERAL_EVENTS)
			return QUIPU_SBI_INVALID_PARAM;
		break;
	case TYPE_CACHE:
		if (code >> 3 >= 7 || ((code >> 1) & 3) == 3)
			return QUIPU_SBI_INVALID_PARAM;
		break;
	case TYPE_RAW_V2:
		if (rv->config.sbi_version < 0x03000000u)
			return QUIPU_SBI_INVALID_PARAM;
		/* fall through */
	case TYPE_RAW: return code ? QUIPU_SBI_INVALID_PARAM : 0;
	case TYPE_FIRMWARE:
		if (code >= RISCV_FW_EVENTS) /* no platform events either */
			return QUIPU_SBI_INVALID_PARAM;
		break;
	default: return QUIPU_SBI_INVALID_PARAM;
	}
	return data && !compat ? QUIPU_SBI_INVALID_PARAM : 0;
}

/* event_data of a raw event: the firmware owns the bits above 47 (type 2) or 55 (type 3). */
static int64_t check_raw_data(const struct quipu_riscv *rv, unsigned type, uint64_t *data)
{
	uint64_t mask = bits_mask(type == TYPE_RAW ? 48 : 56);

	if ((*data & ~mask) && !rv->config.opensbi_compat)
		return QUIPU_SBI_INVALID_PARAM;
	*data &= mask;
	return 0;
}

static uint64_t selector_of(const struct quipu_riscv *rv, uint32_t event, uint64_t data)
{
	const struct riscv_tables *t = &rv->tables;

	if (EVENT_TYPE(event) == TYPE_RAW || EVENT_TYPE(event) == TYPE_RAW_V2)
		return data;
	for (unsigned i = 0; i < t->naliases; i++)
		if (t->aliases[i].event == event)
			return t->aliases[i].selector;
	return event;
}

/* Counters that the tree allows for the event. */
static uint32_t mapped_counters(const struct quipu_riscv *rv, uint32_t event, uint64_t data)
{
	const struct riscv_tables *t = &rv->tables;

	if (EVENT_TYPE(event) == TYPE_RAW || EVENT_TYPE(event) == TYPE_RAW_V2) {
		for (unsigned i = 0; i < t->nraws; i++)
			if ((data & t->raws[i].mask) == t->raws[i].match)
				return t->raws[i].counters;
		return 0;
	}
	for (unsigned i = 0; i < t->nranges; i++)
		if (event >= t->ranges[i].first && event <= t->ranges[i].last)
			return t->ranges[i].counters;
	return 0;
}

/* The fixed counter of the event, or -1. */
static int fixed_counter(uint32_t event)
{
	if (event == EVENT_CYCLES)
		return 0;
	return event == EVENT_INSTRUCTIONS ? 2 : -1;
}

/*
 * A selector that nothing drives would count zero for ever. The firmware knows its hart and says so
 * at once, unless the machine asks for the behaviour of silicon (quipu,unmodelled = "zero").
 */
static bool selector_works(const struct quipu_riscv *rv, uint64_t selector)
{
	struct riscv_count count;

	if (!selector)
		return false;
	return rv->config.unmodelled_zero || riscv_events_modelled(rv, selector, &count);
}

uint32_t firmware_candidates(const struct quipu_riscv *rv, uint32_t event, uint64_t data,
			     uint64_t *selector)
{
	uint32_t counters =
		mapped_counters(rv, event, data) & HART_PROGRAMMABLE & rv->harts[0].implemented;
	int fixed = fixed_counter(event);

	*selector = selector_of(rv, event, data);
	if (!selector_works(rv, *selector))
		counters = 0;
	if (fixed >= 0 && (!hart_has(rv, EXT_SSCOFPMF) || hart_has(rv, EXT_SMCNTRPMF)))
		counters |= (uint32_t)bits_one((unsigned)fixed);
	return counters;
}

/* Counters that are stopped, as mcountinhibit says; without that register all are taken as such. */
static uint64_t stopped_counters(struct hart *h)
{
	return h->extensions & EXT_INHIBIT ? hart_get(h, QUIPU_CSR_MCOUNTINHIBIT) : UINT32_MAX;
}

/*
 * May the fixed counter serve another event with @filters? It is never bound away (its binding is
 * there from boot), so two events can share it; with different filters the second would change what
 * the first counts.
 */
static bool fixed_free(struct quipu_riscv *rv, unsigned hart, unsigned i, uint64_t filters)
{
	const struct fw_counter *c = &rv->firmware[hart].counter[i];

	return rv->config.opensbi_compat || !c->given || c->filters == filters;
}

static int match_hardware(struct quipu_riscv *rv, unsigned hart, uint64_t set, uint32_t event,
			  uint64_t data, uint64_t filters)
{
	const struct fw_counter *c = rv->firmware[hart].counter;
	bool filtering = hart_has(rv, EXT_SSCOFPMF);
	int fixed = fixed_counter(event);
	uint64_t selector, free = stopped_counters(&rv->harts[hart]);
	uint32_t candidates = firmware_candidates(rv, event, data, &selector);

	if (fixed >= 0 && !filtering) {
		bool allowed = (set & bits_one((unsigned)fixed)) || rv->config.opensbi_compat;

		return allowed ? fixed : -1;
	}
	for (uint64_t m = candidates & HART_PROGRAMMABLE & set & free; m; m &= m - 1)
		if (c[bits_low(m)].event == FW_UNBOUND)
			return (int)bits_low(m);
	if (fixed >= 0 && (candidates & bits_one((unsigned)fixed)) &&
	    (set & bits_one((unsigned)fixed)) && fixed_free(rv, hart, (unsigned)fixed, filters))
		return fixed;
	return -1;
}

static int match_firmware(struct quipu_riscv *rv, unsigned hart, uint64_t set)
{
	for (uint64_t m = set; m; m &= m - 1)
		if (is_firmware(rv, bits_low(m)) &&
		    rv->firmware[hart].counter[bits_low(m)].event == FW_UNBOUND)
			return (int)bits_low(m);
	return -1;
}

/* config_flags to filter bits. M-mode activity is the firmware's own: always filtered. */
static uint64_t filters_of(uint64_t flags)
{
	static const struct {
		uint64_t flag, filter;
	} map[] = {
		{QUIPU_SBI_CFG_SET_VUINH, QUIPU_RISCV_VUINH},
		{QUIPU_SBI_CFG_SET_VSINH, QUIPU_RISCV_VSINH},
		{QUIPU_SBI_CFG_SET_UINH, QUIPU_RISCV_UINH},
		{QUIPU_SBI_CFG_SET_SINH, QUIPU_RISCV_SINH},
		{QUIPU_SBI_CFG_SET_MINH, QUIPU_RISCV_MINH},
	};
	uint64_t filters = QUIPU_RISCV_MINH;

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (flags & map[i].flag)
			filters |= map[i].filter;
	return filters;
}

/*
 * Write the event register of a hardware counter. It is stopped; OF = 1 keeps it from interrupting
 * until started.
 */
static void program(struct quipu_riscv *rv, unsigned hart, unsigned i, uint64_t overflow)
{
	const struct fw_counter *c = &rv->firmware[hart].counter[i];
	struct hart *h = &rv->harts[hart];

	if (i < 3) {
		if (h->extensions & EXT_SMCNTRPMF)
			hart_set(h, i ? QUIPU_CSR_MINSTRETCFG : QUIPU_CSR_MCYCLECFG, c->filters);
		return;
	}
	hart_set(h, QUIPU_CSR_MHPMEVENT3 + i - 3,
		 h->extensions & EXT_SSCOFPMF ? c->selector | c->filters | overflow : c->selector);
}

/* Start one counter that exists and is bound. @value: what to load, or NULL. */
static int64_t start_one(struct quipu_riscv *rv, unsigned hart, unsigned i, const uint64_t *value)
{
	struct fw_counter *c = &rv->firmware[hart].counter[i];
	struct hart *h = &rv->harts[hart];
	bool inhibit = h->extensions & EXT_INHIBIT;
	uint64_t inhibited;

	if (is_firmware(rv, i)) {
		if (c->started)
			return QUIPU_SBI_ALREADY_STARTED;
		if (value)
			c->value = *value;
		c->started = true;
		return 0;
	}
	inhibited = inhibit ? hart_get(h, QUIPU_CSR_MCOUNTINHIBIT) : 0;
	if (inhibit && !(inhibited & bits_one(i))) {
		/* Nothing changes (D-29). OpenSBI has by then disarmed the pending overflow. */
		if (rv->config.opensbi_compat && i >= 3)
			program(rv, hart, i, QUIPU_RISCV_OF);
		return QUIPU_SBI_ALREADY_STARTED;
	}
	program(rv, hart, i, QUIPU_RISCV_OF);
	if (!(hart_get(h, QUIPU_CSR_MIP) & bits_one(QUIPU_RISCV_LCOFI)))
		program(rv, hart, i, 0);
	if (value)
		hart_set(h, QUIPU_CSR_MCYCLE + i, *value);
	c->started = true;
	if (inhibit)
		hart_set(h, QUIPU_CSR_MCOUNTINHIBIT, inhibited & ~bits_one(i));
	return 0;
}

/* Clear a counter's value while it is being configured. */
static void clear_value(struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	if (is_firmware(rv, i))
		rv->firmware[hart].counter[i].value = 0;
	else
		hart_set(&rv->harts[hart], QUIPU_CSR_MCYCLE + i, 0);
}

static void bind(struct quipu_riscv *rv, unsigned hart, unsigned i, uint32_t event, uint64_t data,
		 uint64_t filters)
{
	struct fw_counter *c = &rv->firmware[hart].counter[i];

	c->event = event;
	c->data = data;
	c->filters = filters;
	c->given = true;
	if (is_firmware(rv, i))
		return;
	c->selector = selector_of(rv, event, data);
	program(rv, hart, i, QUIPU_RISCV_OF);
}

/* Steps 5 to 7: choose and bind a counter. The logical counter or a status. */
static int64_t match_event(struct quipu_riscv *rv, unsigned hart, uint64_t set, uint64_t flags,
			   uint32_t event, uint64_t data)
{
	unsigned type = EVENT_TYPE(event);
	uint64_t filters = filters_of(flags);
	int64_t status;
	int i;

	if (type == TYPE_RAW || type == TYPE_RAW_V2) {
		status = check_raw_data(rv, type, &data);
		if (status)
			return status;
	}
	i = type == TYPE_FIRMWARE ? match_firmware(rv, hart, set)
				  : match_hardware(rv, hart, set, event, data, filters);
	if (i < 0)
		return QUIPU_SBI_NOT_SUPPORTED;
	bind(rv, hart, (unsigned)i, event, data, filters);
	return i;
}

struct quipu_sbiret firmware_match(struct quipu_riscv *rv, unsigned hart, uint64_t base,
				   uint64_t mask, uint64_t flags, uint64_t event, uint64_t data)
{
	uint64_t set;
	int64_t i;

	if (!counter_set(rv, base, mask, &set))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	if ((flags >> 8) && !rv->config.opensbi_compat)
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	i = check_event(rv, event, data);
	if (i)
		return answer(i, 0);
	if (flags & QUIPU_SBI_CFG_SKIP_MATCH) {
		i = bits_low(set);
		if (rv->firmware[hart].counter[i].event == FW_UNBOUND)
			return answer(QUIPU_SBI_INVALID_PARAM, 0); /* D-17 */
	} else {
		i = match_event(rv, hart, set, flags, (uint32_t)event, data);
		if (i < 0)
			return answer(i, 0);
	}
	if (flags & QUIPU_SBI_CFG_CLEAR_VALUE)
		clear_value(rv, hart, (unsigned)i);
	if (flags & QUIPU_SBI_CFG_AUTO_START)
		start_one(rv, hart, (unsigned)i, NULL);
	return answer(0, (uint64_t)i);
}

/* ---- sets of counters ---- */

/*
 * One status for a whole set: the first error decides, the valid counters are processed all the
 * same. OpenSBI leaves invalid ones out and answers with the result of the last one that it
 * processed.
 */
struct set_status {
	bool compat, any;
	int64_t error;
};

static void set_note(struct set_status *s, int64_t error)
{
	if (s->compat)
		s->error = error;
	else if (error == QUIPU_SBI_INVALID_PARAM || !s->error)
		s->error = error;
	s->any = true;
}

static int64_t set_result(const struct set_status *s)
{
	return s->any ? s->error : QUIPU_SBI_INVALID_PARAM;
}

static bool bound(const struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	return (is_hardware(rv, hart, i) || is_firmware(rv, i)) &&
	       rv->firmware[hart].counter[i].event != FW_UNBOUND;
}

static bool snapshots(const struct quipu_riscv *rv)
{
	return FW_FEATURE_SNAPSHOT(rv) && !rv->config.opensbi_compat;
}

/* The snapshot page of @hart, or NULL. */
static uint8_t *snapshot_page(struct quipu_riscv *rv, unsigned hart)
{
	uint64_t shmem = rv->firmware[hart].shmem;

	return shmem == FW_NO_SHMEM ? NULL : quipu_riscv_memory(rv, shmem, SNAPSHOT_BYTES);
}

/* The page is the supervisor's: little-endian, at an address that it chose. */
static uint64_t load64(const uint8_t *p)
{
	return bits_le64(p);
}

static void store64(uint8_t *p, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

struct quipu_sbiret firmware_start(struct quipu_riscv *rv, unsigned hart, uint64_t base,
				   uint64_t mask, uint64_t flags, uint64_t value)
{
	struct set_status status = {.compat = rv->config.opensbi_compat};
	const uint8_t *page = NULL;
	uint64_t set;

	if (!counter_set(rv, base, mask, &set))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	if (!status.compat && ((flags >> 2) || (flags & 3) == 3))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	if (flags & QUIPU_SBI_START_INIT_SNAPSHOT) {
		page = snapshot_page(rv, hart);
		if (!page)
			return answer(QUIPU_SBI_NO_SHMEM, 0);
	}
	for (uint64_t m = set; m; m &= m - 1) {
		unsigned i = bits_low(m);
		uint64_t slot;

		if (!bound(rv, hart, i)) {
			if (!status.compat)
				set_note(&status, QUIPU_SBI_INVALID_PARAM);
			continue;
		}
		if (page)
			slot = load64(page + SNAPSHOT_VALUES + 8 * (i - base));
		else
			slot = value;
		set_note(&status,
			 start_one(rv, hart, i,
				   page || (flags & QUIPU_SBI_START_INIT_VALUE) ? &slot : NULL));
	}
	return answer(set_result(&status), 0);
}

static bool counter_running(struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	struct hart *h = &rv->harts[hart];

	if (is_firmware(rv, i) || !(h->extensions & EXT_INHIBIT))
		return rv->firmware[hart].counter[i].started;
	return !(hart_get(h, QUIPU_CSR_MCOUNTINHIBIT) & bits_one(i));
}

static int64_t stop_one(struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	struct fw_counter *c = &rv->firmware[hart].counter[i];
	struct hart *h = &rv->harts[hart];
	bool running = counter_running(rv, hart, i);

	c->started = false;
	if (is_hardware(rv, hart, i)) {
		/* Privileged 1.10: nothing can stop it, and nobody complains (3.7). */
		if (!(h->extensions & EXT_INHIBIT))
			return 0;
		if (running)
			hart_set(h, QUIPU_CSR_MCOUNTINHIBIT,
				 hart_get(h, QUIPU_CSR_MCOUNTINHIBIT) | bits_one(i));
	}
	return running ? 0 : QUIPU_SBI_ALREADY_STOPPED;
}

/* RESET: the counter is free again. The fixed ones keep their binding. */
static void unbind(struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	struct fw_counter *c = &rv->firmware[hart].counter[i];

	if (i == 0 || i == 2) {
		c->filters = 0;
		c->given = false;
		return;
	}
	*c = (struct fw_counter){.event = FW_UNBOUND};
	if (is_hardware(rv, hart, i))
		hart_set(&rv->harts[hart], QUIPU_CSR_MHPMEVENT3 + i - 3, 0);
}

static bool counter_overflowed(struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	struct hart *h = &rv->harts[hart];

	return i >= 3 && is_hardware(rv, hart, i) && (h->extensions & EXT_SSCOFPMF) &&
	       (hart_get(h, QUIPU_CSR_MHPMEVENT3 + i - 3) & QUIPU_RISCV_OF);
}

static uint64_t counter_value(struct quipu_riscv *rv, unsigned hart, unsigned i)
{
	if (is_firmware(rv, i))
		return rv->firmware[hart].counter[i].value;
	return hart_get(&rv->harts[hart], QUIPU_CSR_MCYCLE + i);
}

/*
 * Store value and overflow of a counter that this call stopped; slots are relative to the call's
 * idx_base.
 */
static void snapshot_store(struct quipu_riscv *rv, unsigned hart, uint8_t *page, unsigned i,
			   unsigned slot)
{
	uint64_t bitmap = load64(page + SNAPSHOT_BITMAP) & ~bits_one(slot);

	if (counter_overflowed(rv, hart, i))
		bitmap |= bits_one(slot);
	store64(page + SNAPSHOT_VALUES + 8 * slot, counter_value(rv, hart, i));
	store64(page + SNAPSHOT_BITMAP, bitmap);
}

struct quipu_sbiret firmware_stop(struct quipu_riscv *rv, unsigned hart, uint64_t base,
				  uint64_t mask, uint64_t flags)
{
	struct set_status status = {.compat = rv->config.opensbi_compat};
	uint8_t *page = NULL;
	uint64_t set;

	if (!counter_set(rv, base, mask, &set))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	if (!status.compat && (flags >> 2))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	if (flags & QUIPU_SBI_STOP_TAKE_SNAPSHOT) {
		page = snapshot_page(rv, hart);
		if (!page)
			return answer(QUIPU_SBI_NO_SHMEM, 0);
	}
	for (uint64_t m = set; m; m &= m - 1) {
		unsigned i = bits_low(m);
		int64_t error;

		if (!bound(rv, hart, i)) {
			if (!status.compat)
				set_note(&status, QUIPU_SBI_INVALID_PARAM);
			continue;
		}
		error = stop_one(rv, hart, i);
		if (page && !error)
			snapshot_store(rv, hart, page, i, (unsigned)(i - base));
		if (flags & QUIPU_SBI_STOP_RESET)
			unbind(rv, hart, i);
		set_note(&status, error);
	}
	return answer(set_result(&status), 0);
}

struct quipu_sbiret firmware_read(struct quipu_riscv *rv, unsigned hart, uint64_t index)
{
	if (index >= FW_MAX || !is_firmware(rv, (unsigned)index) ||
	    !bound(rv, hart, (unsigned)index))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	return answer(0, rv->firmware[hart].counter[index].value);
}

void firmware_event(struct quipu_riscv *rv, unsigned hart, unsigned code)
{
	struct fw_counter *c = rv->firmware[hart].counter;

	for (unsigned i = rv->num_hw; i < firmware_counters(rv); i++) {
		if (!c[i].started || EVENT_TYPE(c[i].event) != TYPE_FIRMWARE ||
		    EVENT_CODE(c[i].event) != code)
			continue;
		c[i].value++;
		if (rv->config.opensbi_compat)
			return; /* the first only; else all that monitor it (D-16) */
	}
}

/* ---- shared memory ---- */

struct quipu_sbiret firmware_set_shmem(struct quipu_riscv *rv, unsigned hart, uint64_t lo,
				       uint64_t hi, uint64_t flags)
{
	struct fw_hart *f = &rv->firmware[hart];
	uint8_t *page;

	if (!snapshots(rv))
		return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
	if (flags)
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	if (lo == UINT64_MAX && hi == UINT64_MAX) {
		f->shmem = FW_NO_SHMEM;
		return answer(0, 0);
	}
	if (lo % SNAPSHOT_BYTES)
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	page = hi ? NULL : quipu_riscv_memory(rv, lo, SNAPSHOT_BYTES);
	if (!page)
		return answer(QUIPU_SBI_INVALID_ADDRESS, 0);
	memset(page, 0, SNAPSHOT_BYTES);
	f->shmem = lo;
	return answer(0, 0);
}

/* Can the platform count the event of this entry at all? */
static bool event_supported(const struct quipu_riscv *rv, uint32_t event, uint64_t data)
{
	unsigned type = EVENT_TYPE(event);
	uint64_t selector;

	if (check_event(rv, event, type == TYPE_RAW || type == TYPE_RAW_V2 ? 0 : data))
		return false;
	if (type == TYPE_FIRMWARE)
		return !rv->config.opensbi_compat;
	if ((type == TYPE_RAW || type == TYPE_RAW_V2) && check_raw_data(rv, type, &data))
		return false;
	return firmware_candidates(rv, event, data, &selector) != 0;
}

struct quipu_sbiret firmware_event_info(struct quipu_riscv *rv, uint64_t lo, uint64_t hi,
					uint64_t n, uint64_t flags)
{
	uint8_t *entries;

	if (flags || !n || lo % EVENT_INFO_BYTES)
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	if (hi || n > rv->memory_size / EVENT_INFO_BYTES)
		return answer(QUIPU_SBI_INVALID_ADDRESS, 0);
	entries = quipu_riscv_memory(rv, lo, n * EVENT_INFO_BYTES);
	if (!entries)
		return answer(QUIPU_SBI_INVALID_ADDRESS, 0);
	/* All are checked before any is answered: a refused call leaves the array as it was. */
	for (uint64_t k = 0; k < n && !rv->config.opensbi_compat; k++)
		if (bits_le32(entries + k * EVENT_INFO_BYTES) >> 20)
			return answer(QUIPU_SBI_INVALID_PARAM, 0);
	for (uint64_t k = 0; k < n; k++) {
		uint8_t *e = entries + k * EVENT_INFO_BYTES;
		uint64_t data = bits_le64(e + 8);
		uint8_t output[4] = {event_supported(rv, bits_le32(e), data) ? EVENT_INFO_OUTPUT
									     : 0};

		memcpy(e + 4, output, sizeof(output));
	}
	return answer(0, 0);
}
