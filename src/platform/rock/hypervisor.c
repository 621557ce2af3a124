// SPDX-License-Identifier: BSD-2-Clause
/*
 * The hypervisor's call gate: software traps, version negotiation, and the thirteen calls of group
 * RKPERF. FWARC/2008/399 sections 5.1 and 5.2, FWARC/2005/116 for traps and status values; order of
 * checks: Rock sheet section 4.
 *
 * Every argument is a guest's: what passes the checks here may be relied on below. A call that
 * fails changes nothing and returns 0 in %o1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "platform/rock/chip.h"

#define ST(x) QUIPU_ROCK_##x

/* What a call works on. */
struct call {
	struct quipu_rock *r;
	unsigned strand;
	const uint64_t *arg;
	enum rock_type type;
	unsigned source;
	struct rock_pair *p;
	uint64_t ret1;
};

/* ---- version negotiation ---- */

/* The one group there is: major 1, minor 0. */
static uint64_t set_version(struct quipu_rock *r, unsigned strand, uint64_t o[6])
{
	struct rock_guest *g = &r->guest[r->strand[strand].guest];
	uint64_t group = o[0], major = o[1];

	o[1] = 0;
	if (group != API_GROUP_RKPERF)
		return ST(EINVAL);
	if (major > 1)
		return ST(ENOTSUPPORTED);
	g->enabled = major == 1;
	return ST(EOK);
}

static uint64_t get_version(struct quipu_rock *r, unsigned strand, uint64_t o[6])
{
	bool set = o[0] == API_GROUP_RKPERF && r->guest[r->strand[strand].guest].enabled;

	o[1] = set;
	o[2] = 0;
	return set ? ST(EOK) : ST(EINVAL);
}

static uint64_t core_trap(struct quipu_rock *r, unsigned strand, uint64_t o[6])
{
	unsigned guest = r->strand[strand].guest;

	switch (o[5]) {
	case API_SET_VERSION: return set_version(r, strand, o);
	case API_GET_VERSION: return get_version(r, strand, o);
	case API_PUTCHAR:
		if (r->console)
			r->console(r->console_arg, guest, (char)o[0]);
		return ST(EOK);
	case API_EXIT: quipu_rock_guest_reset(r, guest); return ST(EOK);
	default: return ST(EBADTRAP);
	}
}

/* ---- who may ---- */

static bool initialised(const struct rock_pair *p, enum rock_kind kind)
{
	return kind == ROCK_COUNTER ? p->counter.init : p->sampler.init;
}

/* STRANDS needs the chip to be the guest's alone; strands of nobody do not matter. */
static bool chip_shared(const struct quipu_rock *r, unsigned strand)
{
	unsigned first = strand / STRANDS * STRANDS;

	for (unsigned s = first; s < first + STRANDS; s++)
		if (r->strand[s].guest && r->strand[s].guest != r->strand[strand].guest)
			return true;
	return false;
}

static uint64_t may_init(const struct call *c)
{
	const struct quipu_rock *r = c->r;
	int owner = c->p->owner;

	if ((c->source & RK_PERF_SRC_STRANDS) && chip_shared(r, c->strand))
		return ST(ENOCPU);
	if (owner == NO_STRAND || owner == (int)c->strand)
		return ST(EOK);
	return r->strand[owner].guest == r->strand[c->strand].guest ? ST(EWOULDBLOCK)
								    : ST(ENOACCESS);
}

/* A source that is left out means the one of INIT. */
static uint64_t may_use(const struct call *c, enum rock_kind kind)
{
	unsigned source = kind == ROCK_COUNTER ? c->p->counter.source : c->p->sampler.source;

	if (!initialised(c->p, kind))
		return ST(EINVAL);
	if (c->p->owner != (int)c->strand)
		return ST(ENOACCESS);
	return c->source && c->source != source ? ST(EINVAL) : ST(EOK);
}

/* ---- counters ---- */

static uint64_t count_init(struct call *c)
{
	rock_counter_clear(c->r, c->p, c->type);
	c->p->owner = (int)c->strand;
	c->p->counter.init = true;
	c->p->counter.source = c->source;
	return ST(EOK);
}

static uint64_t count_release(struct call *c)
{
	rock_half_release(c->r, c->p, c->type, ROCK_COUNTER);
	return ST(EOK);
}

static uint64_t count_set(struct call *c)
{
	if (c->arg[1] & ~bits_mask(rock_type_width(c->type)))
		return ST(EINVAL);
	rock_counter_set(c->r, c->p, c->type, c->arg[1]);
	return ST(EOK);
}

static uint64_t count_get(struct call *c)
{
	c->ret1 = rock_counter_value(c->r, c->p, c->type);
	return ST(EOK);
}

static uint64_t count_start(struct call *c)
{
	rock_counter_start(c->r, c->p, c->type, c->arg[1]);
	return ST(EOK);
}

/* What has wrapped by now counts, seen by the trap strand or not yet. */
static uint64_t count_overflow(struct call *c)
{
	rock_terms_settle(c->r, c->p, c->type, ROCK_COUNTER);
	rock_deliver(c->r);
	c->ret1 = c->p->counter.overflows;
	c->p->counter.overflows = 0;
	return ST(EOK);
}

static uint64_t count_stop(struct call *c)
{
	rock_counter_stop(c->r, c->p, c->type);
	return ST(EOK);
}

/* ---- samplers ---- */

static uint64_t sample_init(struct call *c)
{
	struct quipu_rock *r = c->r;
	struct rock_sampler *s = &c->p->sampler;
	unsigned guest = r->strand[c->strand].guest;
	uint64_t ring = c->arg[1];
	const uint8_t *header =
		ring % 8 ? NULL : quipu_rock_memory(r, guest, ring, QUIPU_ROCK_RING_DATA);
	uint32_t size, tail;

	if (!header)
		return ST(ENORADDR);
	size = bits_be32(header + QUIPU_ROCK_RING_SIZE);
	tail = bits_be32(header + QUIPU_ROCK_RING_TAIL);
	if (!size || size % 8 || tail >= size || tail % 8 ||
	    !quipu_rock_memory(r, guest, ring, QUIPU_ROCK_RING_DATA + (uint64_t)size))
		return ST(ENORADDR);
	rock_sampler_clear(r, c->p, c->type);
	c->p->owner = (int)c->strand;
	s->init = true;
	s->source = c->source;
	s->ring = ring;
	s->size = size;
	s->tail = tail;
	return ST(EOK);
}

static uint64_t sample_release(struct call *c)
{
	rock_half_release(c->r, c->p, c->type, ROCK_SAMPLER);
	return ST(EOK);
}

static uint64_t sample_config(struct call *c)
{
	int reg = rock_register_find(c->r, c->type, false, c->arg[1]);

	if (reg < 0 || !rock_register_allows(c->type, (unsigned)reg, c->arg[2]))
		return ST(EINVAL);
	c->p->sampler.config[reg] = c->arg[2];
	rock_sampler_update(c->r, c->p, c->type);
	return ST(EOK);
}

/* The list is copied: it may lie on the caller's stack. */
static uint64_t read_list(struct call *c, uint8_t list[LIST_MAX])
{
	uint64_t bytes = c->arg[2], address = c->arg[3];
	const uint8_t *memory;

	if (!bytes || bytes % 8 || bytes > 8 * LIST_MAX)
		return ST(EINVAL);
	memory = address % 8
			 ? NULL
			 : quipu_rock_memory(c->r, c->r->strand[c->strand].guest, address, bytes);
	if (!memory)
		return ST(ENORADDR);
	for (unsigned i = 0; i < bytes / 8; i++) {
		int reg = rock_register_find(c->r, c->type, true, bits_be64(memory + 8 * i));

		if (reg < 0)
			return ST(EINVAL);
		list[i] = (uint8_t)reg;
	}
	return ST(EOK);
}

static uint64_t sample_start(struct call *c)
{
	struct rock_sampler *s = &c->p->sampler;
	uint64_t min, max, status;
	uint8_t list[LIST_MAX];

	rock_frequency_limits(c->type, &min, &max);
	if (c->arg[1] < min || c->arg[1] > max)
		return ST(EINVAL);
	status = read_list(c, list);
	if (status)
		return status;
	/* Elements of another size than before may not fit the tail that the last ones left. */
	if (s->size % c->arg[2] || s->size / c->arg[2] < 2 || s->tail % c->arg[2])
		return ST(EINVAL);
	memcpy(s->list, list, sizeof(list));
	s->nlist = (unsigned)(c->arg[2] / 8);
	rock_sampler_start(c->r, c->p, c->type, c->arg[1]);
	return ST(EOK);
}

static uint64_t sample_pending(struct call *c)
{
	rock_terms_settle(c->r, c->p, c->type, ROCK_SAMPLER);
	rock_deliver(c->r);
	c->ret1 = c->p->sampler.pending;
	c->p->sampler.pending = 0;
	return ST(EOK);
}

static uint64_t sample_stop(struct call *c)
{
	rock_sampler_stop(c->r, c->p, c->type);
	return ST(EOK);
}

/* ---- the gate ---- */

struct function {
	uint16_t number;
	uint8_t nargs;
	bool init;
	enum rock_kind kind;
	bool result;
	uint64_t (*run)(struct call *);
	const char *name;
};

static const struct function functions[] = {
	{RK_PERF_COUNT_INIT, 1, true, ROCK_COUNTER, false, count_init, "RK_PERF_COUNT_INIT"},
	{RK_PERF_COUNT_RELEASE, 1, false, ROCK_COUNTER, false, count_release,
	 "RK_PERF_COUNT_RELEASE"},
	{RK_PERF_COUNT_SET, 2, false, ROCK_COUNTER, false, count_set, "RK_PERF_COUNT_SET"},
	{RK_PERF_COUNT_GET, 1, false, ROCK_COUNTER, true, count_get, "RK_PERF_COUNT_GET"},
	{RK_PERF_COUNT_START, 2, false, ROCK_COUNTER, false, count_start, "RK_PERF_COUNT_START"},
	{RK_PERF_COUNT_OVERFLOW, 1, false, ROCK_COUNTER, true, count_overflow,
	 "RK_PERF_COUNT_OVERFLOW"},
	{RK_PERF_COUNT_STOP, 1, false, ROCK_COUNTER, false, count_stop, "RK_PERF_COUNT_STOP"},
	{RK_PERF_SAMPLE_INIT, 2, true, ROCK_SAMPLER, false, sample_init, "RK_PERF_SAMPLE_INIT"},
	{RK_PERF_SAMPLE_RELEASE, 1, false, ROCK_SAMPLER, false, sample_release,
	 "RK_PERF_SAMPLE_RELEASE"},
	{RK_PERF_SAMPLE_CONFIG, 3, false, ROCK_SAMPLER, false, sample_config,
	 "RK_PERF_SAMPLE_CONFIG"},
	{RK_PERF_SAMPLE_START, 4, false, ROCK_SAMPLER, false, sample_start, "RK_PERF_SAMPLE_START"},
	{RK_PERF_SAMPLE_PENDING, 1, false, ROCK_SAMPLER, true, sample_pending,
	 "RK_PERF_SAMPLE_PENDING"},
	{RK_PERF_SAMPLE_STOP, 1, false, ROCK_SAMPLER, false, sample_stop, "RK_PERF_SAMPLE_STOP"},
};

static const struct function *find(uint64_t number)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (functions[i].number == number)
			return &functions[i];
	return NULL;
}

static uint64_t run(struct call *c, const struct function *f)
{
	uint64_t status;

	if (!rock_type_decode(c->arg[0], f->init, &c->type, &c->source) ||
	    (f->kind == ROCK_SAMPLER && !rock_type_sampled(c->type)))
		return ST(EINVAL);
	c->p = rock_pair_of(c->r, c->strand, c->type);
	status = f->init ? may_init(c) : may_use(c, f->kind);
	return status ? status : f->run(c);
}

static void trace_call(const struct call *c, const struct function *f, uint64_t status)
{
	char line[160];
	int n;

	if (!c->r->trace)
		return;
	n = snprintf(line, sizeof(line), "strand %u: %s(", c->strand, f->name);
	for (unsigned i = 0; i < f->nargs; i++)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "%s0x%" PRIx64, i ? ", " : "",
			      c->arg[i]);
	n += snprintf(line + n, sizeof(line) - (size_t)n, ") -> %s",
		      quipu_rock_status_name(status));
	if (f->result && !status)
		snprintf(line + n, sizeof(line) - (size_t)n, ", 0x%" PRIx64, c->ret1);
	rock_trace(c->r, "%s", line);
}

static uint64_t fast_trap(struct quipu_rock *r, unsigned strand, uint64_t o[6])
{
	const struct function *f = r->guest[r->strand[strand].guest].enabled ? find(o[5]) : NULL;
	const uint64_t arg[4] = {o[0], o[1], o[2], o[3]};
	struct call c = {.r = r, .strand = strand, .arg = arg};
	uint64_t status;

	if (!f)
		return ST(EBADTRAP);
	status = run(&c, f);
	trace_call(&c, f, status);
	if (f->result)
		o[1] = status ? 0 : c.ret1;
	return status;
}

void quipu_rock_trap(struct quipu_rock *r, unsigned strand, unsigned trap, uint64_t o[6])
{
	uint64_t status = ST(EBADTRAP);

	/* A strand of nobody runs no code that could trap. */
	if (quipu_rock_guest_of(r, strand)) {
		if (trap == QUIPU_ROCK_CORE_TRAP)
			status = core_trap(r, strand, o);
		else if (trap == QUIPU_ROCK_FAST_TRAP)
			status = fast_trap(r, strand, o);
	}
	o[0] = status;
	rock_deliver(r);
}

uint64_t quipu_rock_hcall(struct quipu_rock *r, unsigned strand, uint64_t function,
			  const uint64_t args[4], uint64_t *ret1)
{
	uint64_t o[6] = {args[0], args[1], args[2], args[3], 0, function};
	const struct function *f = find(function);

	quipu_rock_trap(r, strand, QUIPU_ROCK_FAST_TRAP, o);
	if (ret1)
		*ret1 = f && f->result ? o[1] : 0;
	return o[0];
}

uint64_t quipu_rock_set_version(struct quipu_rock *r, unsigned strand, uint64_t group,
				uint64_t major, uint64_t minor, uint64_t *minor_out)
{
	uint64_t o[6] = {group, major, minor, 0, 0, API_SET_VERSION};

	quipu_rock_trap(r, strand, QUIPU_ROCK_CORE_TRAP, o);
	if (minor_out)
		*minor_out = o[1];
	return o[0];
}

const char *quipu_rock_status_name(uint64_t status)
{
	static const char *const names[] = {
		[ST(EOK)] = "EOK",
		[ST(ENOCPU)] = "ENOCPU",
		[ST(ENORADDR)] = "ENORADDR",
		[ST(EINVAL)] = "EINVAL",
		[ST(EBADTRAP)] = "EBADTRAP",
		[ST(EWOULDBLOCK)] = "EWOULDBLOCK",
		[ST(ENOACCESS)] = "ENOACCESS",
		[ST(ENOTSUPPORTED)] = "ENOTSUPPORTED",
	};

	return status < sizeof(names) / sizeof(names[0]) && names[status] ? names[status] : "?";
}

void quipu_rock_set_trace(struct quipu_rock *r, void (*fn)(void *arg, const char *line), void *arg)
{
	r->trace = fn;
	r->trace_arg = arg;
}

void quipu_rock_set_console(struct quipu_rock *r, void (*fn)(void *arg, unsigned guest, char c),
			    void *arg)
{
	r->console = fn;
	r->console_arg = arg;
}
