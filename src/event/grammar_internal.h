/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the event grammar share: the cursor, names, and the terms between the slashes.
 */
#ifndef QUIPU_EVENT_GRAMMAR_INTERNAL_H
#define QUIPU_EVENT_GRAMMAR_INTERNAL_H

#include <quipu/grammar.h>

/* A piece of the user's string; not NUL-terminated. */
struct span {
	const char *p;
	size_t n;
};

/* The string that is being read; errors carry a column of @text. */
struct cursor {
	const struct quipu_catalog *catalog;
	const char *text;
	size_t pos;
	size_t len;
	struct quipu_event_list *list;
	struct quipu_grammar_error *err;
};

bool span_is(struct span, const char *);
/* As span_is, upper and lower case the same: names of events/ compare like this in perf. */
bool span_is_nocase(struct span, const char *);
char *span_dup(struct span);

/* Fill the error (printf style) and return -EINVAL. */
int grammar_fail(struct cursor *, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Closest of the names offered so far. */
struct nearest {
	struct span word;
	unsigned best; /* edit distance */
	char name[96];
};
void nearest_init(struct nearest *, struct span word);
void nearest_offer(struct nearest *, const char *name);
/* Offer every name that may stand alone: generic, cache, events of all PMUs. */
void nearest_offer_events(struct nearest *, const struct quipu_catalog *);
void nearest_store(const struct nearest *, struct quipu_grammar_error *);

/* Generic hardware or software name. */
bool grammar_symbol(struct span word, uint32_t *type, uint64_t *config);
/*
 * Cache name, any spelling. 1: it is one; 0: it does not start like one; -EINVAL with the error
 * filled: the cache has no such operation or the rest of the name is none.
 */
int grammar_cache(struct cursor *, struct span word, uint64_t *config);

/* A number as perf takes one: decimal, or hexadecimal after 0x. 0, -EINVAL, -ERANGE. */
int grammar_number(struct span, uint64_t *value);

/* Terms @body between slashes, applied to @e. @pmu NULL: a generic event, which takes only perf's
 * own terms. */
int grammar_terms(struct cursor *, struct span body, const struct quipu_catalog_pmu *pmu,
		  struct quipu_parsed *e);
/* grammar_kernel.c: events that only a kernel has. The cursor stands at the first letter and is
 * moved past what was read; 1: it was one, 0: it is none, else the error. */
int grammar_kernel_event(struct cursor *);
/* grammar.c, for the above. */
int grammar_init(struct quipu_parsed *, uint32_t type, uint64_t config);
int grammar_append(struct quipu_event_list *, struct quipu_parsed *);
void grammar_drop(struct quipu_parsed *);
bool grammar_glob(struct span pattern, const char *name);
bool catalog_has(const struct quipu_catalog *, struct span word);
const struct quipu_catalog_event *catalog_event(const struct quipu_catalog_pmu *, struct span name);
const struct quipu_catalog_format *catalog_format(const struct quipu_catalog_pmu *,
						  struct span name);

#endif
