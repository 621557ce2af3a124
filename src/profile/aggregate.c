/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of samples. Entries in a hash table over the chosen keys; call chains in a tree of all
 * (calltree.c), by which a sample with a chain finds its entry, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "profile/aggregate.h"
#include "profile/calltree.h"
#include "profile/unwind.h"

#define UNWIND_MAX 127u /* frames of a stack, as in perf */

struct profile_aggregate {
	struct profile_options opt;
	struct profile_entry **entries;
	size_t n, room, nr_shown;
	uint32_t *table; /* index + 1 into entries */
	size_t slots;	 /* power of two */
	uint64_t period, samples;
	bool has_chains;
	bool sorted;
	struct profile_frame *frames; /* scratch */
	struct calltree *tree;
};

struct profile_aggregate *profile_aggregate_new(const struct profile_options *opt)
{
	struct profile_aggregate *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->opt = *opt;
	a->slots = 1024;
	a->table = calloc(a->slots, sizeof(*a->table));
	a->frames = calloc(PROFILE_FRAMES_MAX, sizeof(*a->frames));
	a->tree = calltree_new(opt);
	if (!a->table || !a->frames || !a->tree) {
		profile_aggregate_free(a);
		return NULL;
	}
	return a;
}

void profile_aggregate_free(struct profile_aggregate *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++)
		free(a->entries[i]);
	free(a->entries);
	free(a->table);
	free(a->frames);
	calltree_free(a->tree);
	free(a);
}

/* ---- frames ---- */

static void add_frame(struct profile_frame *f, const struct profile_place *p,
		      const struct profile_symbol *symbol)
{
	*f = (struct profile_frame){.object = p->object,
				    .symbol = symbol,
				    .ip = p->ip,
				    .addr = p->addr,
				    .offset = p->offset,
				    .level = p->level};
}

static size_t add_place(struct profile_maps *maps, uint32_t pid, unsigned mode, uint64_t ip,
			bool inlines, struct profile_frame *f, size_t room)
{
	const struct profile_symbol *const *in = NULL;
	struct profile_place p;
	size_t n = 0, nr_in = 0;

	profile_maps_resolve(maps, pid, mode, ip, &p);
	if (inlines && p.object && p.level == '.')
		nr_in = profile_object_inlines(p.object, p.offset, &in);
	for (size_t i = 0; i < nr_in && n < room; i++)
		add_frame(&f[n++], &p, in[i]);
	if (n < room)
		add_frame(&f[n++], &p, p.symbol);
	return n;
}

/*
 * A marker in a chain says of what mode the addresses behind it are; 0 for those that no mode of
 * ours fits.
 */
static unsigned marker_mode(uint64_t marker)
{
	switch (marker) {
	case PROFILE_CONTEXT_USER: return PERF_RECORD_MISC_USER;
	case PROFILE_CONTEXT_KERNEL: return PERF_RECORD_MISC_KERNEL;
	case PROFILE_CONTEXT_HV: return PERF_RECORD_MISC_HYPERVISOR;
	default: return PERF_RECORD_MISC_CPUMODE_UNKNOWN;
	}
}

/* The program's frames of a sample that carries its stack instead of a chain of it. */
static size_t add_unwound(struct profile_maps *maps, const struct profile_record *r, bool inlines,
			  struct profile_frame *f, size_t max)
{
	struct profile_unwind *u =
		r->sample.regs && r->sample.stack ? profile_maps_unwind(maps) : NULL;
	uint64_t pcs[UNWIND_MAX];
	size_t n = 0, frames;

	if (!u)
		return 0;
	frames = profile_unwind_frames(u, maps, r, pcs, UNWIND_MAX);
	for (size_t i = 0; i < frames && n < max; i++)
		n += add_place(maps, r->pid, PERF_RECORD_MISC_USER, pcs[i], inlines, f + n,
			       max - n);
	return n;
}

size_t profile_frames(struct profile_maps *maps, const struct profile_record *r, bool inlines,
		      struct profile_frame *f, size_t max)
{
	unsigned mode = r->misc & PERF_RECORD_MISC_CPUMODE_MASK, own = mode;
	/* Linux on POWER puts the sampled address under the kernel's or the program's marker. */
	bool hypervisor = own == PERF_RECORD_MISC_HYPERVISOR;
	size_t n = 0;

	for (uint64_t i = 0; i < r->sample.nr_chain && n < max; i++) {
		uint64_t ip = bits_le64(r->sample.chain + 8 * i);

		if (ip >= PROFILE_CONTEXT_MAX)
			mode = marker_mode(ip);
		else
			n += add_place(maps, r->pid, hypervisor && ip == r->sample.ip ? own : mode,
				       ip, inlines, f + n, max - n);
	}
	n += add_unwound(maps, r, inlines, f + n, max - n);
	if (!n)
		n = add_place(maps, r->pid, r->misc & PERF_RECORD_MISC_CPUMODE_MASK, r->sample.ip,
			      inlines, f, max);
	return n;
}

/* ---- entries ---- */

static bool keyed(const struct profile_aggregate *a, enum profile_key k)
{
	return a->opt.keys >> k & 1;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

/* An entry with the fields that are no key left at 0, so that equal keys are equal entries. */
static void make_key(const struct profile_aggregate *a, const char *comm,
		     const struct profile_record *r, const struct profile_frame *f,
		     struct profile_entry *key)
{
	memset(key, 0, sizeof(*key));
	if (keyed(a, PROFILE_KEY_COMM))
		key->comm = comm;
	if (keyed(a, PROFILE_KEY_OBJECT) || keyed(a, PROFILE_KEY_SYMBOL))
		key->frame.object = f->object;
	if (keyed(a, PROFILE_KEY_SYMBOL)) {
		key->frame.symbol = f->symbol;
		key->frame.level = f->level;
		key->frame.addr = f->symbol ? 0 : f->addr;
		if (a->opt.offsets && f->symbol && !f->symbol->inlined)
			key->frame.offset = f->addr - f->symbol->start;
	}
	if (keyed(a, PROFILE_KEY_PID))
		key->pid = r->pid;
	if (keyed(a, PROFILE_KEY_TID))
		key->tid = r->tid;
	if (keyed(a, PROFILE_KEY_CPU))
		key->cpu = r->cpu;
}

static uint64_t hash_key(const struct profile_entry *k)
{
	uint64_t h = mix(0, (uintptr_t)k->comm);

	h = mix(h, (uintptr_t)k->frame.object);
	h = mix(h, (uintptr_t)k->frame.symbol);
	h = mix(h, k->frame.addr);
	h = mix(h, k->frame.offset);
	h = mix(h, (uint64_t)k->pid << 32 | k->tid);
	return mix(h, k->cpu);
}

static bool same_key(const struct profile_entry *a, const struct profile_entry *b)
{
	return a->comm == b->comm && profile_same_function(&a->frame, &b->frame) &&
	       a->frame.offset == b->frame.offset && a->pid == b->pid && a->tid == b->tid &&
	       a->cpu == b->cpu;
}

static int grow_table(struct profile_aggregate *a)
{
	size_t slots = 2 * a->slots;
	uint32_t *table = calloc(slots, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < a->n; i++) {
		size_t at = hash_key(a->entries[i]) & (slots - 1);

		while (table[at])
			at = (at + 1) & (slots - 1);
		table[at] = (uint32_t)i + 1;
	}
	free(a->table);
	a->table = table;
	a->slots = slots;
	return 0;
}

static struct profile_entry *add_entry(struct profile_aggregate *a, const struct profile_entry *key)
{
	struct profile_entry *e;

	if (a->n == a->room) {
		size_t room = a->room ? 2 * a->room : 256;
		struct profile_entry **v =
			realloc(a->entries, room * sizeof(struct profile_entry *));

		if (!v)
			return NULL;
		a->entries = v;
		a->room = room;
	}
	e = malloc(sizeof(*e));
	if (!e)
		return NULL;
	*e = *key;
	a->entries[a->n++] = e;
	return e;
}

static struct profile_entry *entry(struct profile_aggregate *a, const struct profile_entry *key)
{
	struct profile_entry *e;
	size_t at;

	if (2 * a->n >= a->slots && grow_table(a))
		return NULL;
	for (at = hash_key(key) & (a->slots - 1); a->table[at]; at = (at + 1) & (a->slots - 1))
		if (same_key(a->entries[a->table[at] - 1], key))
			return a->entries[a->table[at] - 1];
	e = add_entry(a, key);
	if (e)
		a->table[at] = (uint32_t)a->n;
	return e;
}

/* ---- samples ---- */

static void reverse(struct profile_frame *f, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct profile_frame t = f[i];

		f[i] = f[n - 1 - i];
		f[n - 1 - i] = t;
	}
}

/* The entry of the innermost frame of a chain, outermost first, which goes into the tree. */
static struct profile_entry *add_chain(struct profile_aggregate *a, const char *comm,
				       const struct profile_record *r, size_t n)
{
	struct profile_entry key, *e;
	uint32_t at = 0;

	make_key(a, comm, r, &a->frames[0], &key);
	e = entry(a, &key);
	for (size_t i = 0; e && i < n; i++) {
		const struct profile_frame *f = &a->frames[i];
		uint32_t parent = at;

		at = calltree_find(a->tree, parent, f, e);
		if (at)
			continue;
		make_key(a, comm, r, f, &key);
		e = entry(a, &key);
		at = e ? calltree_add(a->tree, parent, f, e) : 0;
		if (!at)
			return NULL;
	}
	return e ? calltree_weigh(a->tree, at, r->sample.period) : NULL;
}

int profile_aggregate_sample(struct profile_aggregate *a, struct profile_maps *maps,
			     const struct profile_record *r)
{
	size_t n = profile_frames(maps, r, a->opt.inlines, a->frames, PROFILE_FRAMES_MAX);
	const char *comm = profile_maps_comm(maps, r->pid, r->tid);
	bool chained = r->sample.nr_chain > 0 || (r->sample.regs && r->sample.stack);
	struct profile_entry key, *e;

	a->samples++;
	a->period += r->sample.period;
	a->has_chains |= chained;
	if (chained && (a->opt.chains || a->opt.children)) {
		reverse(a->frames, n);
		e = add_chain(a, comm, r, n);
	} else {
		make_key(a, comm, r, &a->frames[0], &key);
		e = entry(a, &key);
	}
	if (!e)
		return -ENOMEM;
	/* With children, what is in the tree is added to the totals at the end. */
	if (!a->opt.children || !chained)
		e->total += r->sample.period;
	e->self += r->sample.period;
	e->samples++;
	return 0;
}

/* ---- order ---- */

static int by_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

int profile_frame_order(const struct profile_frame *a, const struct profile_frame *b)
{
	int r = by_text(a->object ? a->object->path : NULL, b->object ? b->object->path : NULL);

	if (!r)
		r = by_text(a->symbol ? a->symbol->name : NULL, b->symbol ? b->symbol->name : NULL);
	if (!r && a->symbol && b->symbol)
		r = (a->symbol->start > b->symbol->start) - (a->symbol->start < b->symbol->start);
	return r ? r : (a->addr > b->addr) - (a->addr < b->addr);
}

static int by_weight(const void *x, const void *y)
{
	const struct profile_entry *a = *(struct profile_entry *const *)x,
				   *b = *(struct profile_entry *const *)y;
	int r;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	r = by_text(a->comm, b->comm);
	if (!r)
		r = profile_frame_order(&a->frame, &b->frame);
	if (!r)
		r = (a->frame.offset > b->frame.offset) - (a->frame.offset < b->frame.offset);
	if (!r)
		r = (a->pid > b->pid) - (a->pid < b->pid);
	if (!r)
		r = (a->tid > b->tid) - (a->tid < b->tid);
	return r ? r : (a->cpu > b->cpu) - (a->cpu < b->cpu);
}

/* Entries of callers that are no samples' own are for children: in front those that are shown. */
static void choose_entries(struct profile_aggregate *a)
{
	a->nr_shown = 0;
	for (size_t i = 0; i < a->n; i++) {
		struct profile_entry *e = a->entries[i];

		if (!a->opt.children && !e->samples)
			continue;
		a->entries[i] = a->entries[a->nr_shown];
		a->entries[a->nr_shown++] = e;
	}
}

static bool has_chains(const struct profile_aggregate *a, const struct profile_entry *e,
		       double least)
{
	return a->opt.chains && profile_percent(e->total, a->period) >= least;
}

const struct profile_entry *const *profile_aggregate_sort(struct profile_aggregate *a, double least,
							  size_t *n)
{
	*n = 0;
	if (!a->sorted) {
		a->sorted = true;
		calltree_sum(a->tree);
		choose_entries(a);
		if (a->nr_shown)
			qsort(a->entries, a->nr_shown, sizeof(*a->entries), by_weight);
		for (size_t i = 0; i < a->nr_shown; i++)
			if (has_chains(a, a->entries[i], least) &&
			    calltree_chains(a->tree, a->entries[i], least, a->period))
				return NULL;
	}
	*n = a->nr_shown;
	return (const struct profile_entry *const *)a->entries;
}

uint64_t profile_aggregate_period(const struct profile_aggregate *a)
{
	return a->period;
}

uint64_t profile_aggregate_samples(const struct profile_aggregate *a)
{
	return a->samples;
}

bool profile_aggregate_has_chains(const struct profile_aggregate *a)
{
	return a->has_chains;
}
