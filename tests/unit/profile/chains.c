// SPDX-License-Identifier: BSD-2-Clause
/*
 * The chains of entries, against the plainest way to get them: each chain, from each of its
 * functions on, written down as a text and added up. Chains are drawn at random from few functions,
 * so that recursion of all kinds is common.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/aggregate.h"

#define SAMPLES	  300
#define FUNCTIONS 4
#define DEEP	  6
#define THREADS	  2

/* Of an entry ("1:a"), or of a node below one ("1:a>a>b"). */
struct sum {
	char name[64];
	uint64_t total, own, samples;
	int64_t rank;
	bool seen;
};

struct model {
	struct sum v[8192];
	size_t n;
	uint64_t whole;
};

struct kind {
	bool children, callee;
	unsigned seed;
	double least;
};

static struct sum *sum(struct model *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->v[i].name, name))
			return &m->v[i];
	assert_true(m->n < sizeof(m->v) / sizeof(m->v[0]));
	snprintf(m->v[m->n].name, sizeof(m->v[0].name), "%s", name);
	return &m->v[m->n++];
}

/* @chain in the order of the tree: its functions from @from on are those of the entry's. */
static void add_below(struct model *m, const char *entry, const char *chain, size_t from,
		      uint64_t period, bool callee)
{
	char name[64];
	struct sum *s = sum(m, entry);
	int64_t length = (int64_t)(strlen(chain) - from);

	if (length > (callee ? -s->rank : s->rank))
		s->rank = callee ? -length : length;
	snprintf(name, sizeof(name), "%s", entry);
	for (size_t n = strlen(name); chain[from]; from++) {
		n += (size_t)snprintf(name + n, sizeof(name) - n, ">%c", chain[from]);
		s = sum(m, name);
		s->total += period;
	}
	s->own += period;
}

static void model_sample(struct model *m, const struct kind *k, unsigned tid, const char *chain,
			 uint64_t period)
{
	size_t n = strlen(chain);
	char entry[16], self = chain[k->callee ? 0 : n - 1], seen[8] = {self};
	struct sum *s;

	m->whole += period;
	snprintf(entry, sizeof(entry), "%u:%c", tid, self);
	s = sum(m, entry);
	s->own += period;
	s->total += period;
	s->samples++;
	add_below(m, entry, chain, 0, period, k->callee);
	for (size_t i = 0; k->children && i < n; i++) {
		if (strchr(seen, chain[i]))
			continue;
		seen[strlen(seen)] = chain[i];
		snprintf(entry, sizeof(entry), "%u:%c", tid, chain[i]);
		sum(m, entry)->total += period;
		add_below(m, entry, chain, i, period, k->callee);
	}
}

static unsigned draw(unsigned *seed, unsigned n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 16) % n;
}

/* One sample to both. The kernel's order of a chain is innermost first. */
static void take(struct profile_aggregate *a, struct profile_maps *maps, struct model *m,
		 const struct kind *k, unsigned *seed)
{
	unsigned n = 1 + draw(seed, DEEP), tid = 1 + draw(seed, THREADS);
	uint64_t ips[DEEP + 1] = {PROFILE_CONTEXT_USER}, period = 1 + draw(seed, 9);
	char chain[DEEP + 1] = "";
	struct profile_record r = {.type = PERF_RECORD_SAMPLE,
				   .misc = PERF_RECORD_MISC_USER,
				   .pid = 1,
				   .tid = tid,
				   .sample = {.period = period, .nr_chain = n + 1}};

	for (unsigned i = 0; i < n; i++) {
		unsigned f = draw(seed, FUNCTIONS);

		ips[i + 1] = 0x1000 + f;
		chain[k->callee ? i : n - 1 - i] = (char)('a' + f);
	}
	r.sample.ip = ips[1];
	r.sample.chain = (const uint8_t *)ips;
	assert_int_equal(profile_aggregate_sample(a, maps, &r), 0);
	model_sample(m, k, tid, chain, period);
}

static size_t check_nodes(struct model *m, const struct kind *k, const char *above,
			  const struct profile_node *n)
{
	uint64_t last = UINT64_MAX;
	size_t nodes = 0;

	for (; n; n = n->next, nodes++) {
		char name[64];
		const struct sum *s;
		bool hidden = false;

		snprintf(name, sizeof(name), "%s>%c", above, (char)('a' + n->frame.addr - 0x1000));
		s = sum(m, name);
		assert_int_equal(n->total, s->total);
		assert_int_equal(n->own, s->own);
		assert_true(n->total <= last);
		last = n->total;
		for (char f = 'a'; f < 'a' + FUNCTIONS; f++) {
			char below[80];
			uint64_t total;

			snprintf(below, sizeof(below), "%s>%c", name, f);
			total = sum(m, below)->total;
			hidden |= total && profile_percent(total, m->whole) < k->least;
		}
		assert_int_equal(n->hidden, hidden);
		nodes += check_nodes(m, k, name, n->child);
	}
	return nodes;
}

static size_t check_entry(struct model *m, const struct kind *k, const struct profile_entry *e)
{
	char name[16];
	struct sum *s;

	/* comm is ":TID", for want of a record that tells it */
	snprintf(name, sizeof(name), "%s:%c", e->comm + 1, (char)('a' + e->frame.addr - 0x1000));
	s = sum(m, name);
	assert_false(s->seen);
	s->seen = true;
	assert_int_equal(e->self, s->own);
	assert_int_equal(e->total, s->total);
	assert_int_equal(e->chained, s->total);
	assert_int_equal(e->samples, s->samples);
	assert_int_equal(e->rank, k->children ? s->rank : 0);
	return check_nodes(m, k, name, e->chains);
}

static void check_kind(const struct kind *k)
{
	struct profile_options opt = {.keys = 1u << PROFILE_KEY_COMM | 1u << PROFILE_KEY_SYMBOL,
				      .chains = true,
				      .children = k->children,
				      .callee = k->callee};
	struct profile_symbols *symbols = profile_symbols_new();
	struct profile_maps *maps = profile_maps_new(symbols);
	struct profile_aggregate *a = profile_aggregate_new(&opt);
	struct model *m = calloc(1, sizeof(*m));
	const struct profile_entry *const *v;
	size_t n, nodes = 0, want_nodes = 0, want = 0, known;
	unsigned seed = k->seed;

	assert_non_null(m);
	for (unsigned i = 0; i < SAMPLES; i++)
		take(a, maps, m, k, &seed);
	known = m->n;
	v = profile_aggregate_sort(a, k->least, &n);
	assert_int_equal(profile_aggregate_period(a), m->whole);
	for (size_t i = 0; i < n; i++)
		nodes += check_entry(m, k, v[i]);
	for (size_t i = 0; i < known; i++) {
		if (!strchr(m->v[i].name, '>'))
			want++;
		else
			want_nodes += profile_percent(m->v[i].total, m->whole) >= k->least;
	}
	assert_int_equal(n, want);
	assert_int_equal(nodes, want_nodes);
	profile_aggregate_free(a);
	profile_maps_free(maps);
	profile_symbols_free(symbols);
	free(m);
}

static void chains_are_those_of_all_samples(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 12; i++)
		check_kind(&(struct kind){
			.children = i & 1, .callee = i >> 1 & 1, .seed = i, .least = i / 4 * 0.8});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_are_those_of_all_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
