// SPDX-License-Identifier: BSD-2-Clause
/*
 * The terms of `pmu/term=value,.../`: format terms, names of events, and perf's own (perf ABI sheet
 * A17, B2). config= and its kin are assigned first, format terms are or-ed on top, as perf does.
 * The terms of an event file may not name events again, so nothing here recurses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "event/grammar_internal.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

struct term {
	struct span name;
	struct span value; /* n == 0 and no has_value: a bare name, which means 1 */
	bool has_value;
};

/* What one use of `pmu/.../` gathers. */
struct terms {
	struct cursor *c;
	const struct quipu_catalog_pmu *pmu;
	struct quipu_parsed *e;
	struct span body; /* all the user's terms: parameters are looked up here */
	uint64_t bits[4]; /* what format terms add to the config words */
	const struct quipu_catalog_event *scaled; /* the event whose unit or scale is in force */
};

static struct span span_trim(struct span s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* Take the next term of @rest, which is not empty. A value in single quotes may hold commas. */
static struct term next_term(struct span *rest)
{
	struct term t = {0};
	struct span all = *rest;
	const char *equals;
	bool quoted = false;
	size_t n = 0;

	while (n < rest->n && (quoted || rest->p[n] != ',')) {
		quoted ^= rest->p[n] == '\'';
		n++;
	}
	all.n = n;
	rest->p += n;
	rest->n -= n;
	equals = memchr(all.p, '=', all.n);
	t.name = all;
	if (equals) {
		t.has_value = true;
		t.name.n = (size_t)(equals - all.p);
		t.value = span_trim((struct span){equals + 1, all.n - t.name.n - 1});
	}
	t.name = span_trim(t.name);
	return t;
}

/* A text value; quotes around it do not belong to it. */
static struct span text_value(struct span v)
{
	if (v.n >= 2 && v.p[0] == '\'' && v.p[v.n - 1] == '\'') {
		v.p++;
		v.n -= 2;
	}
	return v;
}

static int number_value(struct cursor *c, const struct term *t, uint64_t *value)
{
	int ret;

	*value = 1;
	if (!t->has_value)
		return 0;
	ret = grammar_number(t->value, value);
	if (ret == -ERANGE)
		return grammar_fail(c, t->value.p, "value does not fit in 64 bits");
	if (ret)
		return grammar_fail(c, t->value.p, "expected a number, decimal or 0x...");
	return 0;
}

enum own {
	OWN_CONFIG,
	OWN_CONFIG1,
	OWN_CONFIG2,
	OWN_CONFIG3,
	OWN_NAME,
	OWN_PERIOD,
	OWN_FREQ,
	OWN_CALL_GRAPH,
	OWN_MAX_STACK,
	OWN_INHERIT,
	OWN_NO_INHERIT,
	OWN_IGNORED,
	OWN_REFUSED,
};

/* perf's own terms; a PMU's format terms with these names cannot be reached, there as here. */
static const struct {
	const char *name;
	enum own own;
} own_terms[] = {
	{"config", OWN_CONFIG},
	{"config1", OWN_CONFIG1},
	{"config2", OWN_CONFIG2},
	{"config3", OWN_CONFIG3},
	{"name", OWN_NAME},
	{"period", OWN_PERIOD},
	{"freq", OWN_FREQ},
	{"call-graph", OWN_CALL_GRAPH},
	{"max-stack", OWN_MAX_STACK},
	{"inherit", OWN_INHERIT},
	{"no-inherit", OWN_NO_INHERIT},
	{"metric-id", OWN_IGNORED},
	{"time", OWN_IGNORED},
	{"percore", OWN_REFUSED},
	{"branch_type", OWN_REFUSED},
	{"stack-size", OWN_REFUSED},
	{"nr", OWN_REFUSED},
	{"overwrite", OWN_REFUSED},
	{"no-overwrite", OWN_REFUSED},
	{"aux-output", OWN_REFUSED},
	{"aux-sample-size", OWN_REFUSED},
};

static int find_own(struct span name)
{
	for (size_t i = 0; i < COUNT(own_terms); i++)
		if (span_is(name, own_terms[i].name))
			return own_terms[i].own;
	return -1;
}

static uint64_t *config_word(struct quipu_attr *attr, unsigned word)
{
	uint64_t *const words[] = {&attr->config, &attr->config1, &attr->config2, &attr->config3};

	return words[word];
}

static int set_name(struct terms *ts, const struct term *t)
{
	struct span text = text_value(t->value);
	char *name;

	if (!text.n)
		return grammar_fail(ts->c, t->name.p, "name= needs a name");
	name = span_dup(text);
	if (!name)
		return -ENOMEM;
	free(ts->e->name);
	ts->e->name = name;
	return 0;
}

static int own_term(struct terms *ts, const struct term *t, enum own own)
{
	struct quipu_parsed *e = ts->e;
	uint64_t v = 0;
	int ret;

	if (own == OWN_NAME)
		return set_name(ts, t);
	if (own == OWN_CALL_GRAPH) {
		e->callgraph = !t->has_value || !span_is(t->value, "no");
		return 0;
	}
	if (own == OWN_REFUSED)
		return grammar_fail(ts->c, t->name.p, "term '%.*s' of perf is not served by quipu",
				    (int)t->name.n, t->name.p);
	if (own == OWN_IGNORED)
		return 0;
	ret = number_value(ts->c, t, &v);
	if (ret)
		return ret;
	switch (own) {
	case OWN_PERIOD:
	case OWN_FREQ:
		if (!v || v >> 63)
			return grammar_fail(ts->c, t->value.p, "%.*s must be 1 .. 2^63-1",
					    (int)t->name.n, t->name.p);
		e->attr.sample_period = v;
		e->has_period = own == OWN_PERIOD;
		e->has_freq = own == OWN_FREQ;
		e->attr.flags &= ~QUIPU_ATTR_FREQ;
		e->attr.flags |= e->has_freq ? QUIPU_ATTR_FREQ : 0;
		return 0;
	case OWN_MAX_STACK:
		if (v > UINT16_MAX)
			return grammar_fail(ts->c, t->value.p, "max-stack is at most %u",
					    UINT16_MAX);
		e->attr.sample_max_stack = (uint16_t)v;
		return 0;
	case OWN_INHERIT:
	case OWN_NO_INHERIT: e->inherit_off = own == OWN_NO_INHERIT ? v : !v; return 0;
	default: *config_word(&e->attr, (unsigned)(own - OWN_CONFIG)) = v; return 0;
	}
}

const struct quipu_catalog_format *catalog_format(const struct quipu_catalog_pmu *pmu,
						  struct span name)
{
	for (size_t i = 0; pmu && i < pmu->nformats; i++)
		if (span_is(name, pmu->formats[i].name))
			return &pmu->formats[i];
	return NULL;
}

const struct quipu_catalog_event *catalog_event(const struct quipu_catalog_pmu *pmu,
						struct span name)
{
	for (size_t i = 0; pmu && i < pmu->nevents; i++)
		if (span_is_nocase(name, pmu->events[i].name))
			return &pmu->events[i];
	return NULL;
}

/* The bits of @value, low to high, into the bits of @mask, low to high. */
static uint64_t deposit(uint64_t value, uint64_t mask)
{
	uint64_t out = 0;

	for (; mask; mask &= mask - 1, value >>= 1)
		if (value & 1)
			out |= mask & -mask;
	return out;
}

static int format_term(struct terms *ts, const struct quipu_catalog_format *f, const struct term *t)
{
	uint64_t max = bits_mask(bits_count(f->mask));
	uint64_t v;
	int ret = number_value(ts->c, t, &v);

	if (ret)
		return ret;
	if (v > max)
		return grammar_fail(ts->c, t->has_value ? t->value.p : t->name.p,
				    "value too big for format, maximum is %llu",
				    (unsigned long long)max);
	ts->bits[f->word] |= deposit(v, f->mask);
	return 0;
}

/* "split=?": the value that the user gave for the term of this name. */
static int parameter(struct terms *ts, const struct quipu_catalog_event *ev, struct term *t,
		     const char *at)
{
	struct span rest = ts->body;

	while (rest.n) {
		struct term u = next_term(&rest);

		if (u.name.n == t->name.n && !memcmp(u.name.p, t->name.p, t->name.n) &&
		    u.has_value && !span_is(u.value, "?")) {
			t->value = u.value;
			return 0;
		}
		if (rest.n) {
			rest.p++;
			rest.n--;
		}
	}
	return grammar_fail(ts->c, at, "event '%s' needs a value for '%.*s': write %s/%s,%.*s=N/",
			    ev->name, (int)t->name.n, t->name.p, ts->pmu->name, ev->name,
			    (int)t->name.n, t->name.p);
}

static int take_unit(struct terms *ts, const struct quipu_catalog_event *ev, const char *at)
{
	struct quipu_parsed *e = ts->e;

	e->per_pkg |= ev->per_pkg;
	e->snapshot |= ev->snapshot;
	if (!ev->unit && !ev->has_scale)
		return 0;
	if (ts->scaled)
		return grammar_fail(ts->c, at, "'%s' and '%s' both have a unit or scale",
				    ts->scaled->name, ev->name);
	ts->scaled = ev;
	e->scale = ev->scale;
	if (ev->unit) {
		free(e->unit);
		e->unit = strdup(ev->unit);
		if (!e->unit)
			return -ENOMEM;
	}
	return 0;
}

/* The terms of an event file. @at: where the user named it. */
static int event_terms(struct terms *ts, const struct quipu_catalog_event *ev, const char *at)
{
	struct span rest = {ev->terms, strlen(ev->terms)};

	/* An error inside the file is shown at the name: its text is no part of the user's string.
	 */
	ts->c->pos = (size_t)(at - ts->c->text);
	while (rest.n) {
		struct term t = next_term(&rest);
		const struct quipu_catalog_format *f = catalog_format(ts->pmu, t.name);
		int own = find_own(t.name);
		int ret;

		if (span_is(t.value, "?")) {
			ret = parameter(ts, ev, &t, at);
			if (ret)
				return ret;
		}
		if (own >= 0)
			ret = own_term(ts, &t, (enum own)own);
		else if (f)
			ret = format_term(ts, f, &t);
		else
			ret = grammar_fail(
				ts->c, at,
				"the machine's own file of event '%s' has the unknown term "
				"'%.*s'",
				ev->name, (int)t.name.n, t.name.p);
		if (ret)
			return ret;
		if (rest.n) {
			rest.p++;
			rest.n--;
		}
	}
	return take_unit(ts, ev, at);
}

/* Names of the format terms, as many as fit. */
static void list_formats(const struct quipu_catalog_pmu *pmu, char *list, size_t len)
{
	size_t n = 0;

	list[0] = '\0';
	for (size_t i = 0; pmu && i < pmu->nformats; i++) {
		size_t k = strlen(pmu->formats[i].name) + 2;

		if (n + k >= len)
			break;
		n += (size_t)snprintf(list + n, len - n, "%s, ", pmu->formats[i].name);
	}
}

static int unknown_term(struct terms *ts, const struct term *t)
{
	const struct quipu_catalog_pmu *pmu = ts->pmu;
	struct nearest near;
	char list[128];

	nearest_init(&near, t->name);
	for (size_t i = 0; pmu && i < pmu->nformats; i++)
		nearest_offer(&near, pmu->formats[i].name);
	for (size_t i = 0; pmu && i < pmu->nevents; i++)
		nearest_offer(&near, pmu->events[i].name);
	for (size_t i = 0; i < COUNT(own_terms); i++)
		if (own_terms[i].own != OWN_REFUSED)
			nearest_offer(&near, own_terms[i].name);
	nearest_store(&near, ts->c->err);
	list_formats(pmu, list, sizeof(list));
	return grammar_fail(ts->c, t->name.p,
			    "unknown term '%.*s' for %s; it takes %sconfig, name, period",
			    (int)(t->name.n < 40 ? t->name.n : 40), t->name.p,
			    pmu ? pmu->name : "a generic event", list);
}

/* The event that a term names: `name`, `name=1` or `event=name`. */
static const struct quipu_catalog_event *named_event(struct terms *ts, const struct term *t)
{
	uint64_t v = 1;

	if (t->has_value && grammar_number(t->value, &v)) {
		const struct quipu_catalog_event *ev =
			span_is_nocase(t->name, "event") ? catalog_event(ts->pmu, t->value) : NULL;
		return ev;
	}
	return v == 1 && !catalog_format(ts->pmu, t->name) ? catalog_event(ts->pmu, t->name) : NULL;
}

static bool is_raw(struct span name)
{
	struct span hex = {name.p + 1, name.n - 1};
	size_t skip = 0;

	if (name.n < 2 || name.p[0] != 'r')
		return false;
	if (hex.n > 2 && hex.p[0] == '0' && hex.p[1] == 'x')
		skip = 2;
	if (hex.n - skip > 16)
		return false;
	for (size_t i = skip; i < hex.n; i++)
		if (!strchr("0123456789abcdefABCDEF", hex.p[i]))
			return false;
	return true;
}

/* A name like "rd" is a raw code only where no PMU has an event of that name. */
static bool event_anywhere(const struct quipu_catalog *catalog, struct span name)
{
	for (size_t i = 0; i < catalog->npmus; i++)
		if (catalog_event(&catalog->pmus[i], name))
			return true;
	return false;
}

static int raw_term(struct terms *ts, const struct term *t)
{
	char text[24] = {0};

	memcpy(text, t->name.p + 1, t->name.n - 1);
	ts->e->attr.config = strtoull(text, NULL, 16);
	return 0;
}

static bool is_parameter_only(struct terms *ts, const struct term *t)
{
	/* A user's `split=3` that fills an event's `split=?` and is no format of its own. */
	struct span rest = ts->body;

	while (rest.n) {
		struct term u = next_term(&rest);
		const struct quipu_catalog_event *ev = named_event(ts, &u);
		struct span inner = {ev ? ev->terms : "", ev ? strlen(ev->terms) : 0};

		while (inner.n) {
			struct term p = next_term(&inner);

			if (span_is(p.value, "?") && p.name.n == t->name.n &&
			    !memcmp(p.name.p, t->name.p, p.name.n))
				return true;
			if (inner.n) {
				inner.p++;
				inner.n--;
			}
		}
		if (rest.n) {
			rest.p++;
			rest.n--;
		}
	}
	return false;
}

static int one_term(struct terms *ts, const struct term *t)
{
	const struct quipu_catalog_format *f;
	const struct quipu_catalog_event *ev;
	int own;

	if (!t->name.n)
		return grammar_fail(ts->c, t->name.p, "a term is missing here");
	own = find_own(t->name);
	if (own >= 0)
		return own_term(ts, t, (enum own)own);
	ev = named_event(ts, t);
	if (ev)
		return event_terms(ts, ev, t->name.p);
	f = catalog_format(ts->pmu, t->name);
	if (f && span_is(t->value, "?"))
		return grammar_fail(ts->c, t->value.p,
				    "'?' stands in event files; give a number here");
	if (f)
		return format_term(ts, f, t);
	if (ts->pmu && !t->has_value && is_raw(t->name) && !event_anywhere(ts->c->catalog, t->name))
		return raw_term(ts, t);
	if (is_parameter_only(ts, t))
		return 0;
	return unknown_term(ts, t);
}

static int all_terms(struct terms *ts)
{
	struct span rest = ts->body;

	for (;;) {
		struct term t = next_term(&rest);
		int ret = one_term(ts, &t);

		if (ret)
			return ret;
		if (!rest.n)
			break;
		rest.p++;
		rest.n--;
	}
	return 0;
}

int grammar_terms(struct cursor *c, struct span body, const struct quipu_catalog_pmu *pmu,
		  struct quipu_parsed *e)
{
	struct terms ts = {.c = c, .pmu = pmu, .e = e, .body = body};
	int ret;

	ret = all_terms(&ts);
	if (ret)
		return ret;
	for (unsigned i = 0; i < 4; i++)
		*config_word(&e->attr, i) |= ts.bits[i];
	return 0;
}
