/* SPDX-License-Identifier: BSD-2-Clause */
/* See hypervisor.h. The map behind the lookups is that of the LPAR room. */
#include "profile/hypervisor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#define TITLE	   "# quipu hypervisor 1\n"
#define INVALID	   "# invalid "
#define ERROR	   "# error "
#define TEXT_MOST  (64u << 20)
#define INSN_BYTES 4u

/* ---- sets of addresses ---- */

static size_t place(const struct profile_addresses *s, uint64_t addr)
{
	size_t i = (addr ^ addr >> 17) * UINT64_C(0x9e3779b97f4a7c15) & (s->room - 1);

	while (s->count[i] && s->v[i] != addr)
		i = (i + 1) & (s->room - 1);
	return i;
}

static int grow(struct profile_addresses *s)
{
	struct profile_addresses more = {.room = s->room ? 2 * s->room : 256, .n = s->n};

	more.v = calloc(more.room, sizeof(*more.v));
	more.count = calloc(more.room, sizeof(*more.count));
	if (!more.v || !more.count) {
		profile_addresses_free(&more);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->room; i++)
		if (s->count[i]) {
			size_t at = place(&more, s->v[i]);

			more.v[at] = s->v[i];
			more.count[at] = s->count[i];
		}
	profile_addresses_free(s);
	*s = more;
	return 0;
}

int profile_addresses_add(struct profile_addresses *s, uint64_t addr)
{
	size_t at;

	if (2 * s->n >= s->room && grow(s))
		return -ENOMEM;
	at = place(s, addr);
	s->n += !s->count[at];
	s->v[at] = addr;
	s->count[at]++;
	return 0;
}

struct pair {
	uint64_t addr, count;
};

static int by_addr(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void profile_addresses_sort(struct profile_addresses *s)
{
	struct pair *pairs = calloc(s->n ? s->n : 1, sizeof(*pairs));
	size_t n = 0;

	if (!pairs) { /* unsorted then, but packed */
		for (size_t i = 0; i < s->room; i++)
			if (s->count[i]) {
				s->v[n] = s->v[i];
				s->count[n++] = s->count[i];
			}
		return;
	}
	for (size_t i = 0; i < s->room; i++)
		if (s->count[i])
			pairs[n++] = (struct pair){s->v[i], s->count[i]};
	qsort(pairs, n, sizeof(*pairs), by_addr);
	for (size_t i = 0; i < n; i++) {
		s->v[i] = pairs[i].addr;
		s->count[i] = pairs[i].count;
	}
	free(pairs);
}

void profile_addresses_free(struct profile_addresses *s)
{
	free(s->v);
	free(s->count);
	*s = (struct profile_addresses){0};
}

/* A sample's own address; what follows a hypervisor marker in its chain. */
static int take(void *arg, const struct profile_record *r)
{
	bool hypervisor = (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_HYPERVISOR;
	bool marked = false;
	int err = 0;

	if (r->type != PERF_RECORD_SAMPLE)
		return 0;
	if (hypervisor)
		err = profile_addresses_add(arg, r->sample.ip);
	for (uint64_t i = 0; !err && i < r->sample.nr_chain; i++) {
		uint64_t ip = bits_le64(r->sample.chain + 8 * i);

		if (ip >= PROFILE_CONTEXT_MAX)
			marked = ip == PROFILE_CONTEXT_HV;
		else if (marked && !(hypervisor && ip == r->sample.ip))
			err = profile_addresses_add(arg, ip);
	}
	return err;
}

int profile_hypervisor_addresses(const struct perfdata *data, uint64_t **addresses,
				 uint64_t **counts, size_t *n)
{
	struct profile_addresses set = {0};
	int err = perfdata_each(data, take, &set);

	if (err) {
		profile_addresses_free(&set);
		return err;
	}
	profile_addresses_sort(&set);
	*addresses = set.v;
	*counts = set.count;
	*n = set.n;
	return 0;
}

/* ---- the text ---- */

static int by_start(const void *a, const void *b)
{
	const struct quipu_hvsym_result *x = *(const struct quipu_hvsym_result *const *)a,
					*y = *(const struct quipu_hvsym_result *const *)b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void write_text(FILE *f, const struct quipu_hvsym_result **r, size_t n, const char *where,
		       const char *error)
{
	fputs(TITLE, f);
	fprintf(f, "# %s\n", where);
	if (error)
		fprintf(f, ERROR "%s\n", error);
	for (size_t i = 0; i < n; i++)
		if (r[i]->state == QUIPU_HVSYM_INVALID)
			fprintf(f, INVALID "%016" PRIx64 "\n", r[i]->iar);
	/* The last of those with one start has the largest offset. */
	for (size_t i = 0; i < n; i++)
		if (r[i]->name && r[i]->state != QUIPU_HVSYM_INVALID &&
		    (i + 1 == n || r[i + 1]->start != r[i]->start || !r[i + 1]->name))
			fprintf(f, "%" PRIx64 " %" PRIx64 " %s\n", r[i]->start,
				r[i]->offset + INSN_BYTES, r[i]->name);
}

char *profile_hypervisor_text(const struct quipu_hvsym_result *results, size_t n, const char *where,
			      const char *error)
{
	const struct quipu_hvsym_result **sorted = calloc(n ? n : 1, sizeof(*sorted));
	char *text = NULL;
	size_t len;
	FILE *f = sorted ? open_memstream(&text, &len) : NULL;

	for (size_t i = 0; f && i < n; i++)
		sorted[i] = &results[i];
	if (f) {
		qsort(sorted, n, sizeof(*sorted), by_start);
		write_text(f, sorted, n, where, error);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	free(sorted);
	return text;
}

/* ---- what is in a file ---- */

struct profile_hypervisor {
	struct quipu_hvmap *map; /* NULL: no names at all */
	struct profile_symbol *symbols;
	size_t n;
	struct profile_symbol *invalid;
	size_t ninvalid;
	char *where, *error;
};

static char *line_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at ? strndup(at + strlen(word), strcspn(at + strlen(word), "\n")) : NULL;
}

static int take_invalid(struct profile_hypervisor *h, const char *text)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, INVALID)); at++)
		n++;
	h->invalid = calloc(n ? n : 1, sizeof(*h->invalid));
	for (const char *at = text; h->invalid && (at = strstr(at, INVALID)) && h->ninvalid < n;
	     at++) {
		uint64_t addr = strtoull(at + strlen(INVALID), NULL, 16);
		char *name;

		if (asprintf(&name, "<invalid> 0x%016" PRIx64, addr) < 0)
			return -ENOMEM;
		h->invalid[h->ninvalid++] = (struct profile_symbol){addr, addr + 1, name, false};
	}
	return h->invalid ? 0 : -ENOMEM;
}

static int take_symbols(struct profile_hypervisor *h, const char *text)
{
	const struct quipu_hvmap_options o = {.format = "perfmap"};
	struct quipu_hvmap_hit s;

	if (quipu_hvmap_read(&h->map, text, strlen(text), &o, NULL))
		return 0; /* comments alone: nothing has a name */
	h->n = quipu_hvmap_size(h->map);
	h->symbols = calloc(h->n, sizeof(*h->symbols));
	for (size_t i = 0; h->symbols && i < h->n; i++) {
		quipu_hvmap_symbol(h->map, i, &s);
		h->symbols[i] = (struct profile_symbol){s.start, s.start + s.size, s.name, false};
	}
	return h->symbols ? 0 : -ENOMEM;
}

struct profile_hypervisor *profile_hypervisor_read(const char *bytes, size_t len)
{
	struct profile_hypervisor *h;
	char *text;

	if (len > TEXT_MOST || len < strlen(TITLE) || strncmp(bytes, TITLE, strlen(TITLE)) != 0)
		return NULL;
	text = strndup(bytes, len);
	h = text ? calloc(1, sizeof(*h)) : NULL;
	if (h && (take_invalid(h, text) || take_symbols(h, text))) {
		profile_hypervisor_free(h);
		h = NULL;
	}
	if (h) {
		h->error = line_after(text, ERROR);
		h->where = line_after(text + strlen(TITLE), "# ");
	}
	free(text);
	return h;
}

void profile_hypervisor_free(struct profile_hypervisor *h)
{
	if (!h)
		return;
	quipu_hvmap_put(h->map);
	free(h->symbols);
	for (size_t i = 0; i < h->ninvalid; i++)
		free((char *)h->invalid[i].name);
	free(h->invalid);
	free(h->where);
	free(h->error);
	free(h);
}

const struct profile_symbol *profile_hypervisor_find(const struct profile_hypervisor *h,
						     uint64_t addr)
{
	struct quipu_hvmap_hit hit;
	size_t lo = 0, hi = h->n;

	for (size_t i = 0; i < h->ninvalid; i++)
		if (h->invalid[i].start == addr)
			return &h->invalid[i];
	if (!h->map || quipu_hvmap_find(h->map, addr, &hit) != QUIPU_HVMAP_FUNCTION)
		return NULL;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (h->symbols[mid].start < hit.start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &h->symbols[lo];
}

const char *profile_hypervisor_error(const struct profile_hypervisor *h)
{
	return h->error;
}

const char *profile_hypervisor_where(const struct profile_hypervisor *h)
{
	return h->where ? h->where : "";
}

size_t profile_hypervisor_count(const struct profile_hypervisor *h)
{
	return h->n;
}

const struct profile_symbol *profile_hypervisor_symbol(const struct profile_hypervisor *h, size_t i)
{
	return &h->symbols[i];
}
