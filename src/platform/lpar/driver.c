/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The resolver: an operating system's side of ibm,lpar-perftools (LoPAR 2.9, R1-2 to R1-6; sheet
 * 5). It makes the calls of one sequence after the other, waits as it is told, and says what an
 * answer means. Talks to the firmware through a transport alone.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "platform/lpar/cache.h"

#define NARGS	     5u
#define STATUS	     8u /* cells of the rets */
#define NEXT	     9u
#define OFFSET_BYTES 8u
#define LAST_NUMBER  0x7fffffffu
#define BUSY_SPINS   64u /* this many "busy" in a row before each costs a millisecond */
#define PIECES_MOST  64u
#define BUF_LEAST    OFFSET_BYTES
#define BUF_MOST     (16u << 20)
#define CACHED_MOST  65536u
#define PROBE	     4u /* the next instruction */

static const char *const invalid_texts[] = {"INVALID ADDRESS", NULL};

struct quipu_hvsym {
	struct quipu_rtas_transport *t;
	struct quipu_hvsym_opts o;
	struct quipu_hvsym_clock clock;
	struct hvsym_cache cache;
	pid_t pid;
	int denied;	      /* -9002 was said: until flush */
	int64_t token;	      /* once known; 0: not yet */
	pthread_mutex_t lock; /* the statistics */
	struct quipu_hvsym_stats stats;
};

/* One lookup: a sequence of calls, begun again when it was cancelled or its buffer too small. */
struct lookup {
	struct quipu_hvsym *h;
	uint64_t iar;
	uint32_t size, number;
	uint64_t ra;
	void *va;
	uint64_t deadline; /* ms */
	uint32_t calls, restarts, busy;
	bool stored; /* the address, QUIPU_HVSYM_STALE */
	int32_t status;
	uint32_t next;
	/* the answer, in pieces */
	uint64_t offset;
	char *text;
	size_t len, room;
	unsigned pieces;
};

/* ---- time ---- */

static uint64_t host_now(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void host_sleep(void *arg, uint64_t ms)
{
	struct timespec ts = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	(void)arg;
	if (ms)
		nanosleep(&ts, NULL);
	else
		sched_yield();
}

static void count(struct quipu_hvsym *h, uint64_t *what, uint64_t n)
{
	pthread_mutex_lock(&h->lock);
	*what += n;
	pthread_mutex_unlock(&h->lock);
}

static void wait_ms(struct lookup *l, uint64_t ms)
{
	struct quipu_hvsym *h = l->h;

	if (ms)
		count(h, &h->stats.slept_ms, ms);
	h->clock.sleep_ms(h->clock.arg, ms);
}

/* ---- one call ---- */

static void begin(struct lookup *l)
{
	l->number = 1;
	l->len = 0;
	l->pieces = 0;
}

static int make_call(struct lookup *l)
{
	struct quipu_hvsym *h = l->h;
	uint64_t be = __builtin_bswap64(l->iar);
	uint32_t cells[QUIPU_LPAR_CELLS] = {
		0, NARGS, 2, 1, (uint32_t)(l->ra >> 32), (uint32_t)l->ra, l->size, l->number};
	int64_t token = __atomic_load_n(&h->token, __ATOMIC_RELAXED);
	int err;

	if (!token) /* another thread has flushed what is known */
		token = h->t->token(h->t->arg, QUIPU_LPAR_PERFTOOLS);
	if (token < 0)
		return token == -ENOENT ? -ENOSYS : (int)token;
	cells[0] = (uint32_t)token;
	if (l->calls >= h->o.max_calls)
		return -ELOOP;
	l->calls++;
	/* R1-5: the call before may have destroyed it. */
	if (!l->stored || !(h->o.flags & QUIPU_HVSYM_STALE))
		memcpy(l->va, &be, sizeof(be));
	l->stored = true;
	err = h->t->call(h->t->arg, cells, QUIPU_LPAR_CELLS, l->ra, l->va, l->size);
	if (err)
		return err;
	l->status = (int32_t)cells[STATUS];
	l->next = cells[NEXT];
	if (h->o.trace)
		h->o.trace(h->o.trace_arg, cells, QUIPU_LPAR_CELLS, l->va, l->size);
	return 0;
}

/* ---- what a status asks for: 0 call again, 1 done, or -errno ---- */

static int append(struct lookup *l, const char *text, size_t len)
{
	if (l->len + len + 1 > l->room) {
		size_t room = 2 * (l->len + len + 1);
		char *p = realloc(l->text, room);

		if (!p)
			return -ENOMEM;
		l->text = p;
		l->room = room;
	}
	memcpy(l->text + l->len, text, len);
	l->len += len;
	l->text[l->len] = 0;
	return 0;
}

static int take_answer(struct lookup *l)
{
	const char *text = (const char *)l->va + OFFSET_BYTES;
	const char *nul = memchr(text, 0, l->size - OFFSET_BYTES);
	uint64_t offset = bits_be64(l->va);

	if (!nul || offset > l->iar || !l->next || l->next > LAST_NUMBER ||
	    (l->pieces && offset != l->offset))
		return -EPROTO;
	l->offset = offset;
	if (append(l, text, (size_t)(nul - text)))
		return -ENOMEM;
	if (l->next == 1)
		return 1;
	if (++l->pieces == PIECES_MOST)
		return -EPROTO;
	l->number = l->next;
	return 0;
}

static void next_number(struct lookup *l)
{
	if (l->next > 1 && !(l->h->o.flags & QUIPU_HVSYM_SEQ_SAME))
		l->number = l->next;
}

static int busy(struct lookup *l)
{
	next_number(l);
	if (l->h->clock.now_ms(l->h->clock.arg) > l->deadline)
		return -ETIMEDOUT;
	wait_ms(l, ++l->busy > BUSY_SPINS);
	return 0;
}

/* 10^x ms, which is advice: not longer than the caller allows, and one call at the very end. */
static int delayed(struct lookup *l)
{
	uint64_t ms = 1, now = l->h->clock.now_ms(l->h->clock.arg);

	next_number(l);
	l->busy = 0;
	if (now >= l->deadline)
		return -ETIMEDOUT;
	for (int32_t x = QUIPU_RTAS_EXT_DELAY_MIN; x < l->status; x++)
		ms *= 10;
	if (ms > l->h->o.clamp_ms)
		ms = l->h->o.clamp_ms;
	if (ms > l->deadline - now)
		ms = l->deadline - now;
	wait_ms(l, ms);
	return 0;
}

static int resize(struct lookup *l, uint32_t size)
{
	struct quipu_rtas_transport *t = l->h->t;
	int err;

	t->free(t->arg, l->size, l->ra, l->va);
	l->va = NULL;
	err = t->alloc(t->arg, size, &l->ra, &l->va);
	if (err) {
		l->va = NULL;
		return err;
	}
	l->size = size;
	l->stored = false;
	return 0;
}

static int too_small(struct lookup *l)
{
	struct quipu_hvsym *h = l->h;
	uint32_t size = l->size > h->o.buf_max / 2 ? h->o.buf_max : 2 * l->size;

	if (l->size >= h->o.buf_max)
		return -EMSGSIZE;
	count(h, &h->stats.grown, 1);
	begin(l);
	return resize(l, size);
}

/* R1-6: somebody else of this partition has begun a sequence. */
static int refused(struct lookup *l)
{
	struct quipu_hvsym *h = l->h;
	uint64_t ms;

	if (l->number == 1)
		return -EINVAL;
	if (++l->restarts > h->o.max_restarts)
		return -EAGAIN;
	count(h, &h->stats.restarts, 1);
	ms = l->restarts > 6 ? 64 : UINT64_C(1) << l->restarts;
	wait_ms(l, ms + (uint64_t)(h->pid % 8));
	begin(l);
	return 0;
}

static int serve(struct lookup *l)
{
	if (l->status >= QUIPU_RTAS_EXT_DELAY_MIN && l->status <= QUIPU_RTAS_EXT_DELAY_MAX)
		return delayed(l);
	switch (l->status) {
	case QUIPU_RTAS_SUCCESS: return take_answer(l);
	case QUIPU_RTAS_BUSY: return busy(l);
	case QUIPU_RTAS_TOO_SMALL: return too_small(l);
	case QUIPU_RTAS_PARAM_ERROR: return refused(l);
	case QUIPU_RTAS_HW_ERROR: return -EIO;
	case QUIPU_RTAS_NOT_AUTHORIZED:
		__atomic_store_n(&l->h->denied, 1, __ATOMIC_RELAXED);
		return -EACCES;
	}
	return -EPROTO;
}

/* Ask for @iar: the text is in @l, which the caller ends. The partition's lock is held. */
static int ask(struct lookup *l)
{
	struct quipu_hvsym *h = l->h;
	int rc = h->t->alloc(h->t->arg, h->o.buf_size, &l->ra, &l->va);

	if (rc)
		return rc;
	l->size = h->o.buf_size;
	l->deadline = h->clock.now_ms(h->clock.arg) + h->o.deadline_ms;
	begin(l);
	while (!rc) {
		rc = make_call(l);
		if (!rc)
			rc = serve(l);
	}
	if (l->va)
		h->t->free(h->t->arg, l->size, l->ra, l->va);
	l->va = NULL;
	count(h, &h->stats.calls, l->calls);
	return rc < 0 ? rc : 0;
}

/* ---- what an answer means ---- */

static bool known_invalid(const struct quipu_hvsym *h, const char *text)
{
	if (h->o.invalid_text && !strcmp(text, h->o.invalid_text))
		return true;
	for (size_t i = 0; invalid_texts[i]; i++)
		if (!strcmp(text, invalid_texts[i]))
			return true;
	return false;
}

/*
 * Offset 0 is the first instruction of something, or no address at all. The instruction behind it
 * tells: two addresses cannot both be the start of the same thing.
 */
static enum quipu_hvsym_state probe(struct lookup *l, const char *name)
{
	struct lookup second = {.h = l->h, .iar = l->iar + PROBE};
	enum quipu_hvsym_state state = QUIPU_HVSYM_UNKNOWN;

	if (l->h->o.flags & QUIPU_HVSYM_NO_PROBE || second.iar < l->iar)
		return state;
	count(l->h, &l->h->stats.probes, 1);
	if (!ask(&second) && !strcmp(second.text, name)) {
		if (second.offset == PROBE)
			state = QUIPU_HVSYM_OK;
		else if (!second.offset)
			state = QUIPU_HVSYM_INVALID;
	}
	l->calls += second.calls;
	free(second.text);
	return state;
}

static enum quipu_hvsym_state classify(struct lookup *l, const char *name)
{
	struct quipu_hvsym *h = l->h;
	enum quipu_hvsym_state state;

	if (l->offset)
		return QUIPU_HVSYM_OK;
	if (known_invalid(h, name) || hvsym_cache_is_invalid(&h->cache, name))
		return QUIPU_HVSYM_INVALID;
	state = probe(l, name);
	if (state == QUIPU_HVSYM_INVALID)
		hvsym_cache_add_invalid(&h->cache, name);
	return state;
}

static void fill(struct quipu_hvsym_result *r, const struct hvsym_answer *a)
{
	r->offset = a->offset;
	r->start = r->iar - a->offset;
	r->name = a->name;
	r->state = a->state;
}

/* The sequence, its meaning, and the memory of both. The partition's lock is held. */
static int ask_and_learn(struct quipu_hvsym *h, struct quipu_hvsym_result *r, bool cached)
{
	struct lookup l = {.h = h, .iar = r->iar};
	struct hvsym_answer a = {.iar = r->iar};
	int err = ask(&l);

	r->status = l.status;
	if (!err) {
		a.offset = l.offset;
		a.name = hvsym_cache_name(&h->cache, l.text, l.len);
		err = a.name ? 0 : -ENOMEM;
	}
	if (!err) {
		a.state = classify(&l, a.name);
		fill(r, &a);
		if (cached)
			hvsym_cache_add(&h->cache, &a);
	}
	r->calls = l.calls;
	free(l.text);
	return err;
}

/* ---- resolve ---- */

static bool known(struct quipu_hvsym *h, struct quipu_hvsym_result *r)
{
	struct hvsym_answer a;

	if (!hvsym_cache_find(&h->cache, r->iar, &a))
		return false;
	fill(r, &a);
	return true;
}

static int check(struct quipu_hvsym *h)
{
	int64_t token = __atomic_load_n(&h->token, __ATOMIC_RELAXED);

	if (__atomic_load_n(&h->denied, __ATOMIC_RELAXED))
		return -EACCES;
	if (token)
		return 0;
	token = h->t->token(h->t->arg, QUIPU_LPAR_PERFTOOLS);
	if (token == -ENOENT)
		return -ENOSYS;
	if (token < 0)
		return (int)token;
	__atomic_store_n(&h->token, token, __ATOMIC_RELAXED);
	return 0;
}

static int resolve(struct quipu_hvsym *h, struct quipu_hvsym_result *r, bool cached)
{
	bool hit = cached && known(h, r);
	int err = hit ? 0 : check(h);

	if (hit || err)
		goto out;
	if (h->t->lock)
		h->t->lock(h->t->arg);
	/* Another thread may have asked the same, or been refused, while this one waited. */
	hit = cached && known(h, r);
	if (!hit)
		err = check(h);
	if (!hit && !err)
		err = ask_and_learn(h, r, cached);
	if (h->t->unlock)
		h->t->unlock(h->t->arg);
out:
	pthread_mutex_lock(&h->lock);
	h->stats.lookups++;
	h->stats.hits += hit;
	pthread_mutex_unlock(&h->lock);
	r->error = err;
	return err;
}

static void blank(struct quipu_hvsym_result *r, uint64_t iar)
{
	*r = (struct quipu_hvsym_result){.iar = iar, .start = iar, .state = QUIPU_HVSYM_UNKNOWN};
}

int quipu_hvsym_resolve(struct quipu_hvsym *h, uint64_t iar, struct quipu_hvsym_result *r)
{
	blank(r, iar);
	if (h->pid != getpid())
		return r->error = -EPERM;
	return resolve(h, r, !(h->o.flags & QUIPU_HVSYM_NO_CACHE));
}

/* ---- many ---- */

struct many {
	struct quipu_hvsym *h;
	struct quipu_hvsym_result *results;
	uint32_t *order; /* of the results, by address, equal ones once */
	size_t n;
	int error;   /* that ends it */
	bool cached; /* not so many that remembering costs more than asking again */
};

/* The order of @n addresses: a radix sort, sixteen bits at a time, bytes that are all equal left
 * out. NULL: out of memory. */
static uint32_t *sorted(const uint64_t *iar, size_t n)
{
	uint32_t *order = malloc((n ? n : 1) * sizeof(*order));
	uint32_t *other = malloc((n ? n : 1) * sizeof(*other));
	uint32_t *start = malloc(65536 * sizeof(*start));
	uint64_t all = ~UINT64_C(0), any = 0;

	for (size_t i = 0; order && i < n; i++) {
		order[i] = (uint32_t)i;
		all &= iar[i];
		any |= iar[i];
	}
	for (unsigned shift = 0; order && other && start && shift < 64; shift += 16) {
		uint32_t at = 0, *swap;

		if (!((all ^ any) >> shift & 0xffff))
			continue;
		memset(start, 0, 65536 * sizeof(*start));
		for (size_t i = 0; i < n; i++)
			start[iar[i] >> shift & 0xffff]++;
		for (unsigned d = 0; d < 65536; d++) {
			uint32_t here = start[d];

			start[d] = at;
			at += here;
		}
		for (size_t i = 0; i < n; i++)
			other[start[iar[order[i]] >> shift & 0xffff]++] = order[i];
		swap = order;
		order = other;
		other = swap;
	}
	if (!other || !start) {
		free(order);
		order = NULL;
	}
	free(other);
	free(start);
	return order;
}

static bool ends_all(int err)
{
	return err == -EACCES || err == -ENOSYS || err == -EIO || err == -ENOMEM;
}

static void one(struct many *m, size_t i)
{
	struct quipu_hvsym_result *r = &m->results[m->order[i]];
	int err;

	if (m->error) {
		r->error = m->error;
		return;
	}
	err = resolve(m->h, r, m->cached);
	if (ends_all(err))
		m->error = err;
}

static bool same_owner(const struct quipu_hvsym_result *a, const struct quipu_hvsym_result *b)
{
	return !a->error && !b->error && a->state == QUIPU_HVSYM_OK && b->state == QUIPU_HVSYM_OK &&
	       a->start == b->start && a->name == b->name;
}

/* Both ends of (@lo, @hi) are known: what lies between is the same, or is asked in halves. */
static void between(struct many *m, size_t lo, size_t hi)
{
	const struct quipu_hvsym_result *a = &m->results[m->order[lo]];
	size_t mid = lo + (hi - lo) / 2;

	if (hi - lo < 2)
		return;
	if (!same_owner(a, &m->results[m->order[hi]])) {
		one(m, mid);
		between(m, lo, mid);
		between(m, mid, hi);
		return;
	}
	for (size_t i = lo + 1; i < hi; i++) {
		struct quipu_hvsym_result *r = &m->results[m->order[i]];

		r->start = a->start;
		r->offset = r->iar - a->start;
		r->name = a->name;
		r->state = a->state;
	}
}

static void ask_all(struct many *m)
{
	if (m->h->o.flags & QUIPU_HVSYM_BISECT && m->n > 2) {
		one(m, 0);
		one(m, m->n - 1);
		between(m, 0, m->n - 1);
		return;
	}
	for (size_t i = 0; i < m->n; i++)
		one(m, i);
}

int quipu_hvsym_resolve_many(struct quipu_hvsym *h, const uint64_t *iar, size_t n,
			     struct quipu_hvsym_result *results, size_t *n_ok)
{
	struct many m = {.h = h, .results = results};
	uint32_t *twin = NULL;
	size_t ok = 0;

	if (n_ok)
		*n_ok = 0;
	for (size_t i = 0; i < n; i++)
		blank(&results[i], iar[i]);
	if (h->pid != getpid())
		return -EPERM;
	if (n > UINT32_MAX)
		return -EINVAL;
	m.cached = !(h->o.flags & QUIPU_HVSYM_NO_CACHE) && n <= CACHED_MOST;
	m.order = sorted(iar, n);
	twin = malloc((n ? n : 1) * sizeof(*twin));
	if (!m.order || !twin) {
		free(m.order);
		free(twin);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		if (!m.n || iar[m.order[m.n - 1]] != iar[m.order[i]])
			m.order[m.n++] = m.order[i];
		else
			twin[ok++] = m.order[i];
	}
	ask_all(&m);
	/* Twins are in order of address too: they are found by walking along. */
	for (size_t i = 0, k = 0; i < ok; i++) {
		while (iar[m.order[k]] != iar[twin[i]])
			k++;
		results[twin[i]] = results[m.order[k]];
		results[twin[i]].calls = 0;
	}
	ok = 0;
	for (size_t i = 0; i < n; i++)
		ok += !results[i].error;
	if (n_ok)
		*n_ok = ok;
	free(m.order);
	free(twin);
	return m.error;
}

/* ---- life ---- */

static void defaults(struct quipu_hvsym_opts *o)
{
	o->buf_size = o->buf_size ? o->buf_size : 4096;
	o->buf_max = o->buf_max ? o->buf_max : o->buf_size > 65536 ? o->buf_size : 65536;
	o->clamp_ms = o->clamp_ms ? o->clamp_ms : 1000;
	o->deadline_ms = o->deadline_ms ? o->deadline_ms : 10000;
	o->max_calls = o->max_calls ? o->max_calls : 10000;
	o->max_restarts = o->max_restarts ? o->max_restarts : 8;
}

int quipu_hvsym_open(struct quipu_hvsym **out, struct quipu_rtas_transport *t,
		     const struct quipu_hvsym_opts *opts)
{
	struct quipu_hvsym *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	if (opts)
		h->o = *opts;
	defaults(&h->o);
	if (h->o.buf_size < BUF_LEAST || h->o.buf_size > h->o.buf_max || h->o.buf_max > BUF_MOST) {
		free(h);
		return -EINVAL;
	}
	h->t = t;
	h->clock =
		h->o.clock ? *h->o.clock : (struct quipu_hvsym_clock){host_now, host_sleep, NULL};
	h->pid = getpid();
	pthread_mutex_init(&h->lock, NULL);
	hvsym_cache_init(&h->cache);
	*out = h;
	return 0;
}

void quipu_hvsym_flush(struct quipu_hvsym *h)
{
	hvsym_cache_flush(&h->cache);
	__atomic_store_n(&h->denied, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&h->token, 0, __ATOMIC_RELAXED);
}

void quipu_hvsym_stats(struct quipu_hvsym *h, struct quipu_hvsym_stats *stats)
{
	pthread_mutex_lock(&h->lock);
	*stats = h->stats;
	pthread_mutex_unlock(&h->lock);
}

void quipu_hvsym_close(struct quipu_hvsym *h)
{
	if (!h)
		return;
	hvsym_cache_free(&h->cache);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

const char *quipu_hvsym_strerror(int error)
{
	static const struct {
		int error;
		const char *text;
	} rows[] = {
		{ENOSYS, "call not implemented: the firmware has no " QUIPU_LPAR_PERFTOOLS},
		{EACCES,
		 "no authority (-9002): the partition must be allowed performance information on its "
		 "management console (quipu,perf-authority of a modelled one)"},
		{EIO,
		 "hardware error (-1): the firmware could not look the address up; try again later"},
		{EINVAL, "parameter error (-3): the firmware refuses buffer or subfunction"},
		{EAGAIN,
		 "cancelled again and again by other callers of this partition (R1-6); try again when they are done"},
		{EMSGSIZE, "the name does not fit the largest buffer (-5); allow a larger one"},
		{ETIMEDOUT, "the firmware kept putting it off until the deadline; allow more time"},
		{ELOOP, "the firmware was busy (-2) for as many calls as are allowed"},
		{EPROTO, "the firmware's answer is none that the call may give"},
		{EPERM, "opened before a fork: each process opens its own"},
		{ENOMEM, "out of memory"},
		{ENOSPC, "the partition has no free buffer for RTAS"},
		{EFAULT, "the firmware does not take the argument buffer"},
		{ECONNRESET, "the machine is gone"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].error == -error)
			return rows[i].text;
	return strerror(-error);
}
