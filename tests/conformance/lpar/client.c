/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The resolver: RT-16 and RT-37 to RT-47 of the RTAS sheet, and every interleaving of two callers.
 * The clock is the test's own, so that nothing waits. Answers that no firmware of ours gives come
 * from a scripted transport.
 */
#include "bed.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libfdt.h>

/* ---- a clock that only the resolver moves ---- */

struct clock {
	uint64_t now;
	uint64_t sleeps[64];
	unsigned n;
};

static uint64_t clock_now(void *arg)
{
	return ((struct clock *)arg)->now;
}

static void clock_sleep(void *arg, uint64_t ms)
{
	struct clock *c = arg;

	if (!ms)
		return;
	c->now += ms;
	if (c->n < 64)
		c->sleeps[c->n++] = ms;
}

struct world {
	struct bed bed;
	struct clock clock;
	struct quipu_hvsym_clock ops;
	struct quipu_rtas_transport *t;
	struct quipu_hvsym *h;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	bed_open(&w->bed);
	w->ops = (struct quipu_hvsym_clock){clock_now, clock_sleep, &w->clock};
	assert_int_equal(quipu_rtas_model(&w->t, w->bed.lpar, 1), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	quipu_hvsym_close(w->h);
	quipu_rtas_model_free(w->t);
	bed_stop(&w->bed);
	free(w);
	return 0;
}

static void open_with(struct world *w, struct quipu_hvsym_opts o)
{
	quipu_hvsym_close(w->h);
	w->h = NULL;
	if (!o.clock)
		o.clock = &w->ops;
	assert_int_equal(quipu_hvsym_open(&w->h, w->t, &o), 0);
}

static struct quipu_hvsym_result ok(struct world *w, uint64_t iar, const char *name,
				    uint64_t offset)
{
	struct quipu_hvsym_result r;

	assert_int_equal(quipu_hvsym_resolve(w->h, iar, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_OK);
	assert_string_equal(r.name, name);
	assert_int_equal(r.offset, offset);
	assert_int_equal(r.start, iar - offset);
	return r;
}

static void error(struct world *w, uint64_t iar, int err, int32_t status)
{
	struct quipu_hvsym_result r;

	assert_int_equal(quipu_hvsym_resolve(w->h, iar, &r), err);
	assert_int_equal(r.error, err);
	assert_int_equal(r.status, status);
	assert_int_equal(r.state, QUIPU_HVSYM_UNKNOWN);
	assert_null(r.name);
	assert_true(strlen(quipu_hvsym_strerror(err)) > 10);
}

static uint64_t calls_of(struct quipu_partition *p)
{
	struct quipu_lpar_stats s;

	quipu_partition_stats(p, &s);
	return s.calls;
}

static void rt16(void **state)
{
	struct world w = {0};

	(void)state;
	bed_tree(&w.bed);
	assert_int_equal(fdt_delprop(w.bed.fdt, fdt_path_offset(w.bed.fdt, "/rtas"),
				     QUIPU_LPAR_PERFTOOLS),
			 0);
	bed_start(&w.bed);
	assert_non_null(w.bed.lpar);
	w.ops = (struct quipu_hvsym_clock){clock_now, clock_sleep, &w.clock};
	assert_int_equal(quipu_rtas_model(&w.t, w.bed.lpar, 1), 0);
	open_with(&w, (struct quipu_hvsym_opts){0});
	error(&w, ENTER, -ENOSYS, 0);
	assert_int_equal(calls_of(w.bed.p), 0);
	quipu_hvsym_close(w.h);
	quipu_rtas_model_free(w.t);
	bed_stop(&w.bed);
}

static void rt37(void **state)
{
	static const int32_t plan[] = {9900, 9901, 9902, 9903, 9904, 9905};
	static const uint64_t clamped[] = {1, 10, 100, 1000, 1000, 1000},
			      whole[] = {1, 10, 100, 1000, 10000, 100000};
	struct world *w = *state;

	quipu_partition_plan(w->bed.p, plan, 6, 1);
	open_with(w, (struct quipu_hvsym_opts){0});
	assert_int_equal(ok(w, ENTER, "qhv_h_enter", 0x40).calls, 7);
	assert_int_equal(w->clock.n, 6);
	assert_memory_equal(w->clock.sleeps, clamped, sizeof(clamped));
	w->clock.n = 0;
	open_with(w, (struct quipu_hvsym_opts){.clamp_ms = UINT32_MAX, .deadline_ms = 1000000});
	ok(w, ENTER, "qhv_h_enter", 0x40);
	assert_memory_equal(w->clock.sleeps, whole, sizeof(whole));
}

static void rt38(void **state)
{
	struct world *w = *state;
	uint64_t slept = 0;

	assert_int_equal(quipu_lpar_inject(w->bed.p, 1, -2, true), 0);
	open_with(w, (struct quipu_hvsym_opts){0});
	error(w, ENTER, -ELOOP, -2);
	assert_int_equal(calls_of(w->bed.p), 10000);
	assert_true(w->clock.now <= 10000);
	quipu_lpar_inject_clear(w->bed.p);
	assert_int_equal(quipu_lpar_inject(w->bed.p, 1, 9905, true), 0);
	w->clock = (struct clock){0};
	open_with(w, (struct quipu_hvsym_opts){.deadline_ms = 2500});
	error(w, ENTER, -ETIMEDOUT, 9905);
	for (unsigned i = 0; i < w->clock.n; i++)
		slept += w->clock.sleeps[i];
	assert_int_equal(slept, 2500); /* the last one cut to the rest */
	assert_int_equal(w->clock.sleeps[w->clock.n - 1], 500);
	quipu_lpar_inject_clear(w->bed.p);
	ok(w, ENTER, "qhv_h_enter", 0x40);
}

static void rt39(void **state)
{
	static const int32_t all[] = {-2, 9900, 9901, 9902, 9903, 9904, 9905};
	struct world *w = *state;
	struct quipu_hvsym_result r;

	quipu_partition_option(w->bed.p, QUIPU_PARTITION_RECHECK_IAR, true);
	quipu_partition_plan(w->bed.p, all, 7, 1);
	open_with(w, (struct quipu_hvsym_opts){0});
	assert_int_equal(ok(w, ENTER, "qhv_h_enter", 0x40).calls, 8);
	/* a client that stores it once is caught */
	open_with(w, (struct quipu_hvsym_opts){.flags = QUIPU_HVSYM_STALE, .max_restarts = 2});
	assert_int_equal(quipu_hvsym_resolve(w->h, ENTER, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_INVALID); /* what R1-5 left there */
}

static void rt40(void **state)
{
	struct world *w = *state;
	char map[600] = "1000 100 ", name[512];
	struct quipu_hvsym_stats stats;
	struct quipu_hvmap *m;

	open_with(w, (struct quipu_hvsym_opts){.buf_size = 16});
	assert_int_equal(ok(w, ENTER, "qhv_h_enter", 0x40).calls, 2);
	memset(name, 'n', 511);
	name[511] = 0;
	strcat(map, name);
	assert_int_equal(quipu_hvmap_read(&m, map, strlen(map), NULL, NULL), 0);
	quipu_lpar_reload(w->bed.lpar, m);
	open_with(w, (struct quipu_hvsym_opts){.buf_size = 16});
	assert_int_equal(ok(w, 0x1010, name, 0x10).calls, 7); /* 16, 32, ... 1024 */
	quipu_hvsym_stats(w->h, &stats);
	assert_int_equal(stats.grown, 6);
	open_with(w, (struct quipu_hvsym_opts){.buf_size = 16, .buf_max = 64});
	error(w, 0x1010, -EMSGSIZE, -5);
	assert_int_equal(quipu_hvsym_open(&w->h, w->t, &(struct quipu_hvsym_opts){.buf_size = 7}),
			 -EINVAL);
	assert_int_equal(
		quipu_hvsym_open(&w->h, w->t,
				 &(struct quipu_hvsym_opts){.buf_size = 64, .buf_max = 32}),
		-EINVAL);
}

static void rt41(void **state)
{
	struct world *w = *state;
	struct quipu_hvsym_stats stats;

	quipu_partition_plan(w->bed.p, (const int32_t[]){-2}, 1, 1);
	open_with(w, (struct quipu_hvsym_opts){0});
	quipu_lpar_inject(w->bed.p, 2, -3, false);
	assert_int_equal(ok(w, ENTER, "qhv_h_enter", 0x40).calls, 3);
	quipu_hvsym_stats(w->h, &stats);
	assert_int_equal(stats.restarts, 1);
	quipu_lpar_inject(w->bed.p, 2, -3, true);
	quipu_partition_plan(w->bed.p, (const int32_t[]){-2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -2,
							 -2, -2, -2, -2, -2, -2, -2, -2, -2, -2},
			     21, 1);
	open_with(w, (struct quipu_hvsym_opts){.max_restarts = 4});
	error(w, PREEMPT, -EAGAIN, -3);
	quipu_lpar_inject_clear(w->bed.p);
	quipu_lpar_inject(w->bed.p, 1, -3, false);
	open_with(w, (struct quipu_hvsym_opts){0});
	error(w, PREEMPT, -EINVAL, -3);
	quipu_lpar_inject(w->bed.p, 1, -1, false);
	error(w, PREEMPT, -EIO, -1);
	ok(w, PREEMPT, "qhv_vp_preempt", 0x10); /* errors are not kept */
}

static void rt42(void **state)
{
	struct world *w = *state;

	quipu_partition_authority(w->bed.p, false);
	open_with(w, (struct quipu_hvsym_opts){0});
	error(w, ENTER, -EACCES, -9002);
	assert_int_equal(calls_of(w->bed.p), 1);
	error(w, PREEMPT, -EACCES, 0);
	assert_int_equal(calls_of(w->bed.p), 1);
	quipu_partition_authority(w->bed.p, true);
	error(w, PREEMPT, -EACCES, 0);
	quipu_hvsym_flush(w->h);
	ok(w, PREEMPT, "qhv_vp_preempt", 0x10);
	assert_int_equal(calls_of(w->bed.p), 2);
}

static void rt43(void **state)
{
	struct world *w = *state;
	struct quipu_hvsym_result r;
	struct quipu_hvmap *m;
	static const char map[] = "1000 4 tiny\n1004 100 next\n2000 4 alone\n";
	uint32_t zero = 0;
	int node;

	(void)zero;
	open_with(w, (struct quipu_hvsym_opts){0});
	assert_int_equal(ok(w, 0xa01f00, "qhv_h_enter", 0).calls, 2);
	assert_int_equal(ok(w, 0xa01f00, "qhv_h_enter", 0).calls, 0); /* known */
	quipu_hvsym_close(w->h);
	w->h = NULL;
	quipu_rtas_model_free(w->t);
	bed_stop(&w->bed);
	/* a text that no client has in its list */
	bed_tree(&w->bed);
	node = bed_node(&w->bed, "");
	assert_int_equal(
		fdt_setprop_string(w->bed.fdt, node, "quipu,invalid-text", "adresse inconnue"), 0);
	bed_start(&w->bed);
	assert_int_equal(quipu_rtas_model(&w->t, w->bed.lpar, 1), 0);
	open_with(w, (struct quipu_hvsym_opts){0});
	assert_int_equal(quipu_hvsym_resolve(w->h, 0x1234, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_INVALID);
	assert_string_equal(r.name, "adresse inconnue");
	assert_int_equal(r.calls, 2);
	assert_int_equal(quipu_hvsym_resolve(w->h, 0x5678, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_INVALID);
	assert_int_equal(r.calls, 1);
	open_with(w, (struct quipu_hvsym_opts){.invalid_text = "adresse inconnue"});
	assert_int_equal(quipu_hvsym_resolve(w->h, 0x1234, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_INVALID);
	assert_int_equal(r.calls, 1);
	open_with(w, (struct quipu_hvsym_opts){.flags = QUIPU_HVSYM_NO_PROBE});
	assert_int_equal(quipu_hvsym_resolve(w->h, 0x1234, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_UNKNOWN);
	assert_int_equal(quipu_hvmap_read(&m, map, strlen(map), NULL, NULL), 0);
	quipu_lpar_reload(w->bed.lpar, m);
	open_with(w, (struct quipu_hvsym_opts){0});
	assert_int_equal(quipu_hvsym_resolve(w->h, 0x1000, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_UNKNOWN);
	assert_string_equal(r.name, "tiny");
	assert_int_equal(quipu_hvsym_resolve(w->h, 0x2000, &r), 0);
	assert_int_equal(r.state, QUIPU_HVSYM_UNKNOWN);
	assert_int_equal(quipu_hvsym_resolve(w->h, UINT64_MAX - 2, &r), 0);
	assert_int_not_equal(r.state, QUIPU_HVSYM_OK);
}

/* ---- RT-44: a transport that lies ---- */

struct liar {
	struct quipu_rtas_transport ops;
	int32_t status;
	uint32_t next;
	uint64_t offset;
	unsigned fill; /* characters without a NUL, or NUL behind so many */
	bool nul;
	int err;
};

static int64_t liar_token(void *arg, const char *function)
{
	(void)arg;
	(void)function;
	return 1;
}

static int liar_alloc(void *arg, size_t size, uint64_t *ra, void **va)
{
	(void)arg;
	*ra = 0;
	*va = malloc(size); /* of exactly this size: a read past it is found */
	return *va ? 0 : -ENOMEM;
}

static void liar_free(void *arg, size_t size, uint64_t ra, void *va)
{
	(void)arg;
	(void)size;
	(void)ra;
	free(va);
}

static int liar_call(void *arg, uint32_t *cells, unsigned ncells, uint64_t ra, void *va,
		     size_t size)
{
	struct liar *l = arg;
	uint64_t be = __builtin_bswap64(l->offset);
	size_t n = l->fill > size - 8 ? size - 8 : l->fill;

	(void)ra;
	assert_int_equal(ncells, 10);
	memcpy(va, &be, 8);
	memset((char *)va + 8, 'x', n);
	if (l->nul && n < size - 8)
		((char *)va)[8 + n] = 0;
	cells[8] = (uint32_t)l->status;
	cells[9] = l->next;
	return l->err;
}

static void rt44(void **state)
{
	static const struct {
		struct liar l;
		int err;
	} rows[] = {
		{{.next = 1, .offset = 1, .fill = 100000}, -EPROTO},
		{{.next = 1, .offset = 0x1001, .fill = 3, .nul = true}, -EPROTO},
		{{.next = 0, .offset = 1, .fill = 3, .nul = true}, -EPROTO},
		{{.next = 0x80000000, .offset = 1, .fill = 3, .nul = true}, -EPROTO},
		{{.next = 2, .offset = 1, .fill = 3, .nul = true}, -EPROTO}, /* pieces for ever */
		{{.status = 17, .next = 1}, -EPROTO},
		{{.status = -4, .next = 1}, -EPROTO},
		{{.status = 9906, .next = 1}, -EPROTO},
		{{.next = 1, .err = -ECONNRESET}, -ECONNRESET},
	};
	struct quipu_hvsym_result r;
	struct quipu_hvsym *h;
	struct clock clock = {0};
	struct quipu_hvsym_clock ops = {clock_now, clock_sleep, &clock};
	struct quipu_hvsym_opts o = {.buf_size = 64, .clock = &ops};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct liar l = rows[i].l;

		l.ops = (struct quipu_rtas_transport){.arg = &l,
						      .token = liar_token,
						      .alloc = liar_alloc,
						      .free = liar_free,
						      .call = liar_call};
		assert_int_equal(quipu_hvsym_open(&h, &l.ops, &o), 0);
		assert_int_equal(quipu_hvsym_resolve(h, 0x1000, &r), rows[i].err);
		assert_int_equal(r.status, rows[i].err == -ECONNRESET ? 0 : rows[i].l.status);
		quipu_hvsym_close(h);
	}
}

/* ---- many threads ---- */

#define THREADS 32u

struct worker {
	struct quipu_hvsym *h;
	struct quipu_hvmap *map;
	uint64_t seed;
	unsigned n, wrong, failed;
};

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

/* The judge: all symbols, one by one; functions of this map do not overlap. */
static bool right(const struct quipu_hvmap *map, const struct quipu_hvsym_result *r)
{
	for (size_t i = 0; i < quipu_hvmap_size(map); i++) {
		struct quipu_hvmap_hit s;

		quipu_hvmap_symbol(map, i, &s);
		if (r->iar - s.start < s.size)
			return r->state == QUIPU_HVSYM_OK && r->offset == r->iar - s.start &&
			       !strcmp(r->name, s.name);
	}
	for (size_t i = 0; i < quipu_hvmap_modules(map); i++) {
		struct quipu_hvmap_module m;

		quipu_hvmap_module(map, i, &m);
		if (r->iar - m.start < m.size)
			return r->offset == r->iar - m.start && !strcmp(r->name, m.name);
	}
	return r->state == QUIPU_HVSYM_INVALID;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < w->n; i++) {
		struct quipu_hvsym_result r;
		uint64_t iar = 0x9ffe00 + next_random(&w->seed) % 0x10400;

		if (quipu_hvsym_resolve(w->h, iar, &r))
			w->failed++;
		else if (!right(w->map, &r))
			w->wrong++;
	}
	return NULL;
}

static void run_threads(struct worker *w, unsigned n)
{
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static void rt45(void **state)
{
	struct world *w = *state;
	struct quipu_hvsym *h[2];
	struct quipu_rtas_transport *second;
	struct quipu_lpar_stats stats;
	struct worker workers[THREADS];
	struct quipu_hvmap *map = quipu_lpar_map(w->bed.lpar);

	quipu_partition_plan(w->bed.p, (const int32_t[]){-2, -2}, 2, 3);
	assert_int_equal(quipu_rtas_model(&second, w->bed.lpar, 1), 0);
	assert_int_equal(quipu_hvsym_open(&h[0], w->t, NULL), 0);
	assert_int_equal(quipu_hvsym_open(&h[1], second, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		workers[i] = (struct worker){h[i % 2], map, 0x1234567 + i, 10000, 0, 0};
	run_threads(workers, THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(workers[i].failed, 0);
		assert_int_equal(workers[i].wrong, 0);
	}
	quipu_partition_stats(w->bed.p, &stats);
	assert_int_equal(stats.overlap_count, 0);
	assert_int_equal(stats.stale_number, 0);
	assert_int_equal(stats.cancelled, 0);
	assert_true(stats.busy > 0);
	quipu_hvsym_close(h[0]);
	quipu_hvsym_close(h[1]);
	quipu_rtas_model_free(second);
	quipu_hvmap_put(map);
}

/* Without a lock, as between processes that do not agree on one: sequences are cancelled, and
 * nobody gets another's name. */
static void rt46(void **state)
{
	struct world *w = *state;
	struct quipu_rtas_transport bare = *w->t;
	struct quipu_hvsym_opts o = {.max_restarts = 100000, .deadline_ms = 600000};
	struct quipu_hvsym_stats stats[2];
	struct worker workers[2];
	struct quipu_hvmap *map = quipu_lpar_map(w->bed.lpar);

	bare.lock = bare.unlock = NULL;
	quipu_partition_plan(w->bed.p, (const int32_t[]){-2, -2, -2}, 3, 1);
	for (unsigned i = 0; i < 2; i++) {
		workers[i] = (struct worker){NULL, map, 77 + i, 60, 0, 0};
		assert_int_equal(quipu_hvsym_open(&workers[i].h, &bare, &o), 0);
	}
	run_threads(workers, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(workers[i].wrong, 0);
		assert_int_equal(workers[i].failed, 0);
		quipu_hvsym_stats(workers[i].h, &stats[i]);
		quipu_hvsym_close(workers[i].h);
	}
	print_message("# restarts: %llu and %llu\n", (unsigned long long)stats[0].restarts,
		      (unsigned long long)stats[1].restarts);
	quipu_hvmap_put(map);
}

static void rt47(void **state)
{
	static uint64_t iar[10000];
	static struct quipu_hvsym_result plain[10000], bisect[10000];
	struct world *w = *state;
	struct quipu_hvmap *map = quipu_lpar_map(w->bed.lpar);
	struct quipu_hvsym_stats stats;
	uint64_t seed = 4711;
	size_t n_ok, unique = 0;
	struct quipu_hvsym *first;
	static bool seen[0x10000];

	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < 10000; i++) {
		struct quipu_hvmap_hit s;

		quipu_hvmap_symbol(map, next_random(&seed) % 30, &s);
		iar[i] = s.start + 4 + next_random(&seed) % (s.size - 4);
		unique += !seen[iar[i] & 0xffff];
		seen[iar[i] & 0xffff] = true;
	}
	open_with(w, (struct quipu_hvsym_opts){0});
	assert_int_equal(quipu_hvsym_resolve_many(w->h, iar, 10000, plain, &n_ok), 0);
	assert_int_equal(n_ok, 10000);
	quipu_hvsym_stats(w->h, &stats);
	assert_int_equal(stats.calls, unique);
	for (size_t i = 0; i < 10000; i++)
		assert_true(right(map, &plain[i]));
	first = w->h;
	w->h = NULL;
	open_with(w, (struct quipu_hvsym_opts){.flags = QUIPU_HVSYM_BISECT});
	assert_int_equal(quipu_hvsym_resolve_many(w->h, iar, 10000, bisect, &n_ok), 0);
	quipu_hvsym_stats(w->h, &stats);
	assert_true(stats.calls < 500);
	for (size_t i = 0; i < 10000; i++) {
		assert_string_equal(plain[i].name, bisect[i].name);
		assert_int_equal(plain[i].offset, bisect[i].offset);
	}
	quipu_hvsym_close(first); /* its names with it */
	/* what ends it ends all */
	open_with(w, (struct quipu_hvsym_opts){0});
	quipu_lpar_inject(w->bed.p, 3, -1, false);
	assert_int_equal(quipu_hvsym_resolve_many(w->h, iar, 100, plain, &n_ok), -EIO);
	assert_int_equal(n_ok, 2);
	quipu_hvmap_put(map);
}

/* Every third call is delayed: by @odd and @even in turns. */
static void inject_in_turns(struct quipu_partition *p, int32_t odd, int32_t even)
{
	quipu_lpar_inject_clear(p);
	assert_int_equal(quipu_lpar_inject(p, 6, even, true), 0); /* the first one told wins */
	assert_int_equal(quipu_lpar_inject(p, 3, odd, true), 0);
}

/* Delays on every third call: right answers, and time on the resolver's clock is bounded. Of three
 * calls two are answers, so at most one delay comes with two calls; the second run is a million
 * addresses in a map of 20,000 functions, busy and an extended delay in turns. */
static void delays_injected(void **state)
{
	static const struct {
		size_t n;
		int32_t odd, even;
		uint64_t most; /* ms of a delay */
	} rows[] = {{3000, -2, -2, 0}, {3000, 9901, 9901, 10}, {3000, -2, 9905, 1000}};
	static uint64_t iar[3000];
	static struct quipu_hvsym_result r[3000];
	struct world *w = *state;
	struct quipu_hvmap *map = quipu_lpar_map(w->bed.lpar);
	uint64_t seed = 99;
	size_t n_ok;

	for (size_t i = 0; i < 3000; i++)
		iar[i] = 0xa00000 + next_random(&seed) % 0x10000;
	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		w->clock = (struct clock){0};
		inject_in_turns(w->bed.p, rows[k].odd, rows[k].even);
		open_with(w, (struct quipu_hvsym_opts){0});
		assert_int_equal(quipu_hvsym_resolve_many(w->h, iar, rows[k].n, r, &n_ok), 0);
		assert_int_equal(n_ok, rows[k].n);
		for (size_t i = 0; i < rows[k].n; i++)
			assert_true(right(map, &r[i]));
		assert_true(w->clock.now <= rows[k].most * rows[k].n);
	}
	quipu_hvmap_put(map);
}

#define MANY_SYMBOLS   20000u
#define MANY_ADDRESSES 1000000u

static void million_with_delays(void **state)
{
	struct world *w = *state;
	uint64_t *iar = calloc(MANY_ADDRESSES, sizeof(*iar)), seed = 31, at = 0xc000000000000000;
	uint64_t *start = calloc(MANY_SYMBOLS, sizeof(*start));
	struct quipu_hvsym_result *r = calloc(MANY_ADDRESSES, sizeof(*r));
	char *text = malloc(MANY_SYMBOLS * 48), name[32];
	struct quipu_lpar_stats stats;
	struct quipu_hvmap *map;
	size_t len = 0, n_ok;

	assert_true(iar && start && r && text);
	for (unsigned i = 0; i < MANY_SYMBOLS; i++) {
		start[i] = at;
		at += 4 * (8 + next_random(&seed) % 300);
		len += (size_t)sprintf(text + len, "%llx %llx hv_function_%u\n",
				       (unsigned long long)start[i],
				       (unsigned long long)(at - start[i]), i);
	}
	assert_int_equal(quipu_hvmap_read(&map, text, len, NULL, NULL), 0);
	quipu_lpar_reload(w->bed.lpar, map);
	for (unsigned i = 0; i < MANY_ADDRESSES; i++)
		iar[i] = start[next_random(&seed) % MANY_SYMBOLS] + 4 * (1 + i % 7);
	inject_in_turns(w->bed.p, -2, 9902);
	open_with(w, (struct quipu_hvsym_opts){0});
	assert_int_equal(quipu_hvsym_resolve_many(w->h, iar, MANY_ADDRESSES, r, &n_ok), 0);
	assert_int_equal(n_ok, MANY_ADDRESSES);
	/* the judge knows where each address was taken: so many words behind the n-th start */
	for (unsigned i = 0; i < MANY_ADDRESSES; i++) {
		uint64_t offset = 4 * (1 + i % 7);

		assert_int_equal(r[i].state, QUIPU_HVSYM_OK);
		assert_int_equal(r[i].offset, offset);
		sprintf(name, "hv_function_");
		assert_memory_equal(r[i].name, name, 12);
		assert_true(start[strtoul(r[i].name + 12, NULL, 10)] == iar[i] - offset);
	}
	quipu_partition_stats(w->bed.p, &stats);
	assert_int_equal(stats.calls, stats.ok + stats.busy + stats.ext_delay[2]);
	assert_int_equal(stats.busy + stats.ext_delay[2], stats.calls / 3);
	assert_int_equal(w->clock.now, 100 * stats.ext_delay[2]); /* and not a millisecond more */
	free(iar);
	free(start);
	free(r);
	free(text);
}

static void fork_is_seen(void **state)
{
	struct world *w = *state;
	struct quipu_hvsym_result r;
	int status;
	pid_t pid;

	open_with(w, (struct quipu_hvsym_opts){0});
	pid = fork();
	if (!pid)
		_exit(quipu_hvsym_resolve(w->h, ENTER, &r) == -EPERM ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	ok(w, ENTER, "qhv_h_enter", 0x40);
}

/* Names in pieces, and both readings of the retry rule. */
static void pieces_and_numbers(void **state)
{
	struct world *w = *state;

	quipu_partition_option(w->bed.p, QUIPU_PARTITION_CHUNKED, true);
	open_with(w, (struct quipu_hvsym_opts){.buf_size = 10});
	assert_int_equal(ok(w, ENTER, "qhv_h_enter", 0x40).calls, 11);
	quipu_partition_option(w->bed.p, QUIPU_PARTITION_CHUNKED, false);
	quipu_partition_plan(w->bed.p, (const int32_t[]){-2, 9900, -2}, 3, 1);
	open_with(w, (struct quipu_hvsym_opts){.flags = QUIPU_HVSYM_SEQ_SAME});
	assert_int_equal(ok(w, ENTER, "qhv_h_enter", 0x40).calls, 4);
}

/* ---- every interleaving of two callers ---- */

#define CALLS 8u

struct caller {
	uint64_t iar, offset;
	const char *name;
	uint32_t number; /* of its next call */
	bool alive;	 /* its sequence is the partition's */
	char text[32];
};

/* One call of caller @who; anew: from number 1. Everything that can come is checked. */
static void step(struct bed *b, struct caller *c, unsigned who, bool anew, uint32_t size)
{
	struct caller *me = &c[who], *other = &c[!who];
	bool first = anew || me->number == 1;
	struct rets r;
	char piece[32];

	if (first) {
		me->alive = true;
		other->alive = false; /* R1-6 */
		me->text[0] = 0;
	}
	bed_put(b->p, bed_work(who), me->iar);
	r = bed_call(b->p, who, 1, bed_work(who), size, first ? 1 : me->number);
	if (!me->alive) {
		bed_is(r, -3, 1);
		me->number = 1;
		return;
	}
	me->number = r.next;
	if (r.status == -2 || r.status >= 9900) {
		assert_int_not_equal(r.next, 1);
		return;
	}
	assert_int_equal(r.status, 0);
	assert_int_equal(bed_get(b->p, bed_work(who)), me->offset);
	quipu_partition_read(b->p, bed_work(who) + 8, piece, size - 8 < 32 ? size - 8 : 32);
	strcat(me->text, piece);
	if (r.next != 1)
		return;
	assert_string_equal(me->text, me->name);
	me->alive = false;
}

static void interleavings(void **state)
{
	static const struct {
		unsigned n;
		int32_t plan[3];
		uint32_t size;
	} rows[] = {{0, {0}, 64},  {1, {-2}, 64}, {2, {-2, 9900}, 64}, {3, {-2, -2, 9905}, 64},
		    {1, {-2}, 17}, {0, {0}, 14}};
	struct world *w = *state;
	struct bed *b = &w->bed;

	for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		quipu_partition_plan(b->p, rows[k].plan, rows[k].n, 1);
		quipu_partition_option(b->p, QUIPU_PARTITION_CHUNKED, rows[k].size < 64);
		quipu_partition_option(b->p, QUIPU_PARTITION_SCRIBBLE, k != 1);
		/* two bits a call: who calls, and whether it goes on or begins anew */
		for (unsigned path = 0; path < 1u << 2 * CALLS; path++) {
			struct caller c[2] = {
				{.iar = ENTER, .offset = 0x40, .name = "qhv_h_enter", .number = 1},
				{.iar = PREEMPT,
				 .offset = 0x10,
				 .name = "qhv_vp_preempt",
				 .number = 1}};

			quipu_partition_reset(b->p);
			for (unsigned i = 0; i < CALLS; i++) {
				unsigned who = path >> 2 * i & 1;
				bool anew = path >> (2 * i + 1) & 1;

				/* it begins anew anyway: the path without this bit is the same */
				if (anew && c[who].number == 1)
					break;
				step(b, c, who, anew, rows[k].size);
			}
		}
	}
}

#define CASE(name, fn)                                                                             \
	{                                                                                          \
		name, fn, setup, teardown, NULL                                                    \
	}

int main(void)
{
	const struct CMUnitTest cases[] = {
		{"RT-16 R1-1: no such call", rt16, NULL, NULL, NULL},
		CASE("RT-37 R1-2: waits of 10^x ms", rt37),
		CASE("RT-38 R1-2: bounds", rt38),
		CASE("RT-39 R1-5: the address is stored again", rt39),
		CASE("RT-40 R1-2: buffers grow", rt40),
		CASE("RT-41 R1-6: cancelled sequences begin again", rt41),
		CASE("RT-42 R1-2: no authority", rt42),
		CASE("RT-43 R1-3: first instruction or no address", rt43),
		{"RT-44: answers that cannot be", rt44, NULL, NULL, NULL},
		CASE("RT-45 R1-6: 32 threads, two handles, one lock", rt45),
		CASE("RT-46 R1-6: no lock", rt46),
		CASE("RT-47: many addresses", rt47),
		CASE("busy and extended delay on every third call", delays_injected),
		CASE("a million addresses, busy and extended delay in turns on every third call",
		     million_with_delays),
		CASE("a handle of before fork", fork_is_seen),
		CASE("names in pieces; the same number again", pieces_and_numbers),
		CASE("R1-6: every interleaving of two callers up to eight calls", interleavings),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
