// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names that need no PMU directory (perf ABI sheet A6: HARDWARE, SOFTWARE and HW_CACHE encodings;
 * spellings those that perf 6.1 takes), and the closest known name to a wrong one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "event/grammar_internal.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

struct generic {
	const char *name, *alias;
	uint32_t type;
	uint64_t config;
};

#define HW(n, a, c)                                                                                \
	{                                                                                          \
		n, a, PERF_TYPE_HARDWARE, c                                                        \
	}
#define SW(n, a, c)                                                                                \
	{                                                                                          \
		n, a, PERF_TYPE_SOFTWARE, c                                                        \
	}
#define CACHE(n, c, o, r)                                                                          \
	{                                                                                          \
		n, NULL, PERF_TYPE_HW_CACHE, (c) | (o) << 8 | (r) << 16                            \
	}

static const struct generic generics[] = {
	HW("cycles", "cpu-cycles", 0),
	HW("instructions", NULL, 1),
	HW("cache-references", NULL, 2),
	HW("cache-misses", NULL, 3),
	HW("branches", "branch-instructions", 4),
	HW("branch-misses", NULL, 5),
	HW("bus-cycles", NULL, 6),
	HW("stalled-cycles-frontend", "idle-cycles-frontend", 7),
	HW("stalled-cycles-backend", "idle-cycles-backend", 8),
	HW("ref-cycles", NULL, 9),
	SW("cpu-clock", NULL, 0),
	SW("task-clock", NULL, 1),
	SW("page-faults", "faults", 2),
	SW("context-switches", "cs", 3),
	SW("cpu-migrations", "migrations", 4),
	SW("minor-faults", NULL, 5),
	SW("major-faults", NULL, 6),
	SW("alignment-faults", NULL, 7),
	SW("emulation-faults", NULL, 8),
	SW("dummy", NULL, 9),
	SW("bpf-output", NULL, 10),
	SW("cgroup-switches", NULL, 11),
	CACHE("L1-dcache-loads", 0, 0, 0),
	CACHE("L1-dcache-load-misses", 0, 0, 1),
	CACHE("L1-dcache-stores", 0, 1, 0),
	CACHE("L1-dcache-store-misses", 0, 1, 1),
	CACHE("L1-dcache-prefetches", 0, 2, 0),
	CACHE("L1-dcache-prefetch-misses", 0, 2, 1),
	CACHE("L1-icache-loads", 1, 0, 0),
	CACHE("L1-icache-load-misses", 1, 0, 1),
	CACHE("L1-icache-prefetches", 1, 2, 0),
	CACHE("L1-icache-prefetch-misses", 1, 2, 1),
	CACHE("LLC-loads", 2, 0, 0),
	CACHE("LLC-load-misses", 2, 0, 1),
	CACHE("LLC-stores", 2, 1, 0),
	CACHE("LLC-store-misses", 2, 1, 1),
	CACHE("LLC-prefetches", 2, 2, 0),
	CACHE("LLC-prefetch-misses", 2, 2, 1),
	CACHE("dTLB-loads", 3, 0, 0),
	CACHE("dTLB-load-misses", 3, 0, 1),
	CACHE("dTLB-stores", 3, 1, 0),
	CACHE("dTLB-store-misses", 3, 1, 1),
	CACHE("dTLB-prefetches", 3, 2, 0),
	CACHE("dTLB-prefetch-misses", 3, 2, 1),
	CACHE("iTLB-loads", 4, 0, 0),
	CACHE("iTLB-load-misses", 4, 0, 1),
	CACHE("branch-loads", 5, 0, 0),
	CACHE("branch-load-misses", 5, 0, 1),
	CACHE("node-loads", 6, 0, 0),
	CACHE("node-load-misses", 6, 0, 1),
	CACHE("node-stores", 6, 1, 0),
	CACHE("node-store-misses", 6, 1, 1),
	CACHE("node-prefetches", 6, 2, 0),
	CACHE("node-prefetch-misses", 6, 2, 1),
};

struct spelling {
	const char *text;
	unsigned id;
};

static const struct spelling caches[] = {
	{"L1-dcache", 0}, {"l1-d", 0}, {"l1d", 0},   {"L1-data", 0},
	{"L1-icache", 1}, {"l1-i", 1}, {"l1i", 1},   {"L1-instruction", 1},
	{"LLC", 2},	  {"L2", 2},   {"dTLB", 3},  {"d-tlb", 3},
	{"Data-TLB", 3},  {"iTLB", 4}, {"i-tlb", 4}, {"Instruction-TLB", 4},
	{"branch", 5},	  {"bpu", 5},  {"btb", 5},   {"bpc", 5},
	{"node", 6},
};

#define RESULT 16u /* ids of results; below are operations */
static const struct spelling parts[] = {
	{"load", 0},
	{"loads", 0},
	{"read", 0},
	{"store", 1},
	{"stores", 1},
	{"write", 1},
	{"prefetch", 2},
	{"prefetches", 2},
	{"speculative-read", 2},
	{"speculative-load", 2},
	{"refs", RESULT},
	{"Reference", RESULT},
	{"ops", RESULT},
	{"access", RESULT},
	{"misses", RESULT + 1},
	{"miss", RESULT + 1},
};

/* Operations that a cache has: bit 0 read, 1 write, 2 prefetch. */
static const unsigned char cache_ops[] = {7, 5, 7, 7, 1, 1, 7};
static const char *const op_names[] = {"load", "store", "prefetch"};

bool span_is(struct span s, const char *text)
{
	return strlen(text) == s.n && !strncmp(s.p, text, s.n);
}

bool span_is_nocase(struct span s, const char *text)
{
	return strlen(text) == s.n && !strncasecmp(s.p, text, s.n);
}

char *span_dup(struct span s)
{
	return strndup(s.p, s.n);
}

int grammar_fail(struct cursor *c, const char *at, const char *fmt, ...)
{
	va_list ap;

	/* Terms of a PMU's own event file are no part of the string: then the event's name is to
	 * blame. */
	c->err->column = at >= c->text && at <= c->text + c->len ? (size_t)(at - c->text) : c->pos;
	va_start(ap, fmt);
	vsnprintf(c->err->reason, sizeof(c->err->reason), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *quipu_grammar_generic(size_t n, const char **alias, uint32_t *type, uint64_t *config)
{
	if (n >= COUNT(generics))
		return NULL;
	*alias = generics[n].alias;
	*type = generics[n].type;
	*config = generics[n].config;
	return generics[n].name;
}

bool grammar_symbol(struct span word, uint32_t *type, uint64_t *config)
{
	for (size_t i = 0; i < COUNT(generics) && generics[i].type != PERF_TYPE_HW_CACHE; i++) {
		const struct generic *g = &generics[i];

		if (!span_is(word, g->name) && !(g->alias && span_is(word, g->alias)))
			continue;
		*type = g->type;
		*config = g->config;
		return true;
	}
	return false;
}

/* The longest spelling that @word starts with and that ends there or at a dash. */
static const struct spelling *longest(const struct spelling *table, size_t n, struct span word)
{
	const struct spelling *best = NULL;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(table[i].text);

		if (k <= len || k > word.n || strncmp(table[i].text, word.p, k))
			continue;
		if (k < word.n && word.p[k] != '-')
			continue;
		best = &table[i];
		len = k;
	}
	return best;
}

int grammar_cache(struct cursor *c, struct span word, uint64_t *config)
{
	const struct spelling *cache = longest(caches, COUNT(caches), word);
	unsigned op = 0, result = 0;
	bool have_op = false, have_result = false;

	if (!cache)
		return 0;
	word.p += strlen(cache->text);
	word.n -= strlen(cache->text);
	/* perf reads two parts at most; a second operation or result says nothing. */
	for (unsigned i = 0; i < 2 && word.n; i++) {
		struct span rest = {word.p + 1, word.n - 1};
		const struct spelling *part = longest(parts, COUNT(parts), rest);

		if (!part)
			return grammar_fail(
				c, rest.p,
				"'%.*s' is no operation or result of a cache: load, store, "
				"prefetch, refs, misses",
				(int)rest.n, rest.p);
		if (part->id < RESULT && !have_op) {
			if (!(cache_ops[cache->id] >> part->id & 1))
				return grammar_fail(c, rest.p, "%s has no event for a %s",
						    cache->text, op_names[part->id]);
			op = part->id;
			have_op = true;
		} else if (part->id >= RESULT && !have_result) {
			result = part->id - RESULT;
			have_result = true;
		}
		word.p = rest.p + strlen(part->text);
		word.n = rest.n - strlen(part->text);
	}
	if (word.n)
		return grammar_fail(c, word.p, "a cache event has one operation and one result");
	*config = cache->id | op << 8 | result << 16;
	return 1;
}

int grammar_number(struct span s, uint64_t *value)
{
	unsigned base = 10;
	uint64_t v = 0;

	if (s.n > 2 && s.p[0] == '0' && s.p[1] == 'x') {
		base = 16;
		s.p += 2;
		s.n -= 2;
	}
	if (!s.n)
		return -EINVAL;
	for (; s.n; s.p++, s.n--) {
		unsigned d = *s.p >= '0' && *s.p <= '9'	  ? (unsigned)(*s.p - '0')
			     : *s.p >= 'a' && *s.p <= 'f' ? (unsigned)(*s.p - 'a') + 10
			     : *s.p >= 'A' && *s.p <= 'F' ? (unsigned)(*s.p - 'A') + 10
							  : 16;

		if (d >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return -ERANGE;
	}
	*value = v;
	return 0;
}

/* Edit distance of words up to WORD letters, letter case counting for nothing. */
#define WORD 63u
static unsigned distance(struct span a, const char *b, size_t n)
{
	unsigned char row[WORD + 2];

	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned char)j;
	for (size_t i = 1; i <= a.n; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned char)i;
		for (size_t j = 1; j <= n; j++) {
			bool same = !strncasecmp(a.p + i - 1, b + j - 1, 1);
			unsigned v = diagonal + !same;

			diagonal = row[j];
			if (row[j] + 1u < v)
				v = row[j] + 1u;
			if (row[j - 1] + 1u < v)
				v = row[j - 1] + 1u;
			row[j] = (unsigned char)v;
		}
	}
	return row[n];
}

void nearest_init(struct nearest *near, struct span word)
{
	near->word = word;
	near->best = (unsigned)word.n / 3 + 1; /* further away is no help */
	near->name[0] = '\0';
}

void nearest_offer(struct nearest *near, const char *name)
{
	size_t n = strlen(name);
	unsigned d;

	if (near->word.n > WORD || n > WORD || !near->word.n)
		return;
	d = distance(near->word, name, n);
	if (d > near->best || (d == near->best && near->name[0]))
		return;
	near->best = d;
	memcpy(near->name, name, n + 1);
}

void nearest_offer_events(struct nearest *near, const struct quipu_catalog *catalog)
{
	for (size_t i = 0; i < COUNT(generics); i++) {
		nearest_offer(near, generics[i].name);
		if (generics[i].alias)
			nearest_offer(near, generics[i].alias);
	}
	for (size_t i = 0; i < catalog->npmus; i++)
		for (size_t k = 0; k < catalog->pmus[i].nevents; k++)
			nearest_offer(near, catalog->pmus[i].events[k].name);
}

void nearest_store(const struct nearest *near, struct quipu_grammar_error *err)
{
	memcpy(err->suggestion, near->name, sizeof(err->suggestion));
}
