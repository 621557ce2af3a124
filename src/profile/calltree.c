/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chains of samples (calltree.h). Nodes stand in one array, a caller always before what it calls,
 * and are found by a hash table. No recursion anywhere: a tree is as deep as a chain is long.
 *
 * What an entry's tree weighs follows from sums over the whole tree. Of a node, `total` is the
 * weight of all chains through it, and, while the tree of entry E is made, `part` that of those
 * which end in E. A chain that ends in E is E's from its outermost function on (weights: part);
 * another one through E from E's outermost node on (weights: total - part).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/calltree.h"

struct node {
	struct profile_frame frame;
	struct profile_entry *entry;
	uint64_t own;		 /* of chains that end here */
	uint64_t total;		 /* and below: calltree_sum */
	uint64_t part;		 /* calltree_chains */
	uint32_t parent;	 /* 0: none */
	uint32_t child, sibling; /* 0: none */
	uint32_t same,
		next_same; /* the nearest caller of its entry; the entry's node made before */
	uint32_t depth;	   /* 1: outermost */
	uint32_t deepest;  /* of the ends below */
	bool end;	   /* of a chain */
};

struct slot {
	uint32_t node; /* 0: free */
	uint32_t hash;
};

#define CHUNK_NODES 512u
struct chunk {
	struct chunk *next;
	size_t n;
	struct profile_node v[CHUNK_NODES];
};

struct calltree {
	bool callee, children, offsets;
	struct node *v; /* [0] is nobody */
	uint32_t n, room;
	struct slot *slots;
	size_t nr_slots; /* a power of two */
	struct chunk *made;
};

struct calltree *calltree_new(const struct profile_options *opt)
{
	struct calltree *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->callee = opt->callee;
	t->children = opt->children;
	t->offsets = opt->offsets;
	t->n = 1;
	t->room = 1024;
	t->nr_slots = 2048;
	t->v = calloc(t->room, sizeof(*t->v));
	t->slots = calloc(t->nr_slots, sizeof(*t->slots));
	if (!t->v || !t->slots) {
		calltree_free(t);
		return NULL;
	}
	return t;
}

void calltree_free(struct calltree *t)
{
	if (!t)
		return;
	for (struct chunk *c = t->made, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(t->v);
	free(t->slots);
	free(t);
}

bool profile_same_function(const struct profile_frame *a, const struct profile_frame *b)
{
	if (a->object != b->object || a->symbol != b->symbol || a->level != b->level)
		return false;
	return a->symbol || a->addr == b->addr;
}

/* ---- finding and adding ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static uint32_t hash_of(const struct calltree *t, uint32_t parent, const struct profile_frame *f,
			const struct profile_entry *e)
{
	uint64_t h = mix(parent, (uintptr_t)f->object);

	h = mix(h, (uintptr_t)f->symbol);
	h = mix(h, !f->symbol || t->offsets ? f->ip : 0);
	h = mix(h, parent ? 0 : (uintptr_t)e);
	return (uint32_t)mix(h, (uint64_t)f->level);
}

/* What is shown of a place without a name is its address, in the process that was there first. */
static bool is_node(const struct calltree *t, const struct node *n, uint32_t parent,
		    const struct profile_frame *f, const struct profile_entry *e)
{
	return n->parent == parent && profile_same_function(&n->frame, f) &&
	       ((f->symbol && !t->offsets) || n->frame.ip == f->ip) && (parent || n->entry == e);
}

uint32_t calltree_find(const struct calltree *t, uint32_t parent, const struct profile_frame *f,
		       const struct profile_entry *e)
{
	uint32_t hash = hash_of(t, parent, f, e);
	size_t at = hash & (t->nr_slots - 1);

	for (; t->slots[at].node; at = (at + 1) & (t->nr_slots - 1))
		if (t->slots[at].hash == hash && is_node(t, &t->v[t->slots[at].node], parent, f, e))
			return t->slots[at].node;
	return 0;
}

static void put(struct slot *slots, size_t n, struct slot s)
{
	size_t at = s.hash & (n - 1);

	while (slots[at].node)
		at = (at + 1) & (n - 1);
	slots[at] = s;
}

static bool make_room(struct calltree *t)
{
	struct slot *slots;
	struct node *v;

	if (t->n < t->room)
		return true;
	if (t->room > UINT32_MAX / 4)
		return false;
	slots = calloc(2 * t->nr_slots, sizeof(*slots));
	v = realloc(t->v, 2 * (size_t)t->room * sizeof(*v));
	if (v) {
		t->v = v;
		t->room *= slots ? 2 : 1;
	}
	if (!v || !slots) {
		free(slots);
		return false;
	}
	for (size_t i = 0; i < t->nr_slots; i++)
		if (t->slots[i].node)
			put(slots, 2 * t->nr_slots, t->slots[i]);
	free(t->slots);
	t->slots = slots;
	t->nr_slots *= 2;
	return true;
}

uint32_t calltree_add(struct calltree *t, uint32_t parent, const struct profile_frame *f,
		      struct profile_entry *e)
{
	uint32_t at, same = parent;

	if (!make_room(t))
		return 0;
	while (same && t->v[same].entry != e)
		same = t->v[same].parent;
	at = t->n++;
	t->v[at] = (struct node){.frame = *f,
				 .entry = e,
				 .parent = parent,
				 .sibling = t->v[parent].child,
				 .same = same,
				 .next_same = e->nodes,
				 .depth = t->v[parent].depth + 1};
	t->v[parent].child = e->nodes = at;
	put(t->slots, t->nr_slots, (struct slot){at, hash_of(t, parent, f, e)});
	return at;
}

struct profile_entry *calltree_weigh(struct calltree *t, uint32_t node, uint64_t period)
{
	t->v[node].own += period;
	t->v[node].end = true;
	return t->v[node].entry;
}

/* ---- sums ---- */

static void sum_children(const struct calltree *t, const struct node *n)
{
	uint32_t longest = n->deepest - n->depth + 1;
	struct profile_entry *e = n->entry;

	if (t->callee || (n->end && n->depth > longest))
		longest = n->depth;
	if (longest > (e->rank < 0 ? -e->rank : e->rank))
		e->rank = t->callee ? -(int64_t)longest : longest;
	if (n->same) /* its caller has it already */
		return;
	e->total += n->total;
	e->chained += n->total;
}

void calltree_sum(struct calltree *t)
{
	for (uint32_t i = t->n; --i > 0;) {
		struct node *n = &t->v[i], *parent = &t->v[n->parent];

		n->total += n->own;
		if (n->end && n->depth > n->deepest)
			n->deepest = n->depth;
		parent->total += n->total;
		if (n->deepest > parent->deepest)
			parent->deepest = n->deepest;
	}
	for (uint32_t i = 1; i < t->n; i++) {
		if (t->children)
			sum_children(t, &t->v[i]);
		else
			t->v[i].entry->chained += t->v[i].own;
	}
}

/* ---- the chains of an entry ---- */

/* A node of the tree as far as it is one of the entry's: with which of its weights. */
struct item {
	uint32_t node;
	uint32_t first; /* node by whose making a sample first came this way */
	bool self;	/* of chains that end in the entry */
	uint64_t weight;
};

struct items {
	struct item *v;
	size_t n, room;
};

/* Nodes of one function that have the same callers (callee: that call the same ones). */
struct group {
	struct profile_node node;
	uint32_t first; /* that was seen */
	size_t from, n; /* among the items */
};

/* What is called from node @parent of the entry's tree is yet to be made, out of items. */
struct job {
	struct profile_node *parent; /* NULL: of the entry itself */
	struct items items;
};

struct maker {
	struct calltree *t;
	struct profile_entry *entry;
	double least;
	uint64_t whole;
	struct job *jobs;
	size_t n, room;
};

static bool add_item(struct items *l, struct item item)
{
	if (!item.weight)
		return true;
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 8;
		struct item *v = realloc(l->v, room * sizeof(*v));

		if (!v)
			return false;
		l->v = v;
		l->room = room;
	}
	l->v[l->n++] = item;
	return true;
}

static uint64_t weight(const struct node *n, bool self)
{
	return self ? n->part : n->total - n->part;
}

static uint64_t own_weight(const struct maker *m, const struct item *i)
{
	const struct node *n = &m->t->v[i->node];

	if (m->t->callee)
		return n->parent ? 0 : i->weight;
	return (n->entry == m->entry) == i->self ? n->own : 0;
}

static bool add_next(const struct maker *m, struct items *l, const struct item *i)
{
	const struct node *v = m->t->v, *n = &v[i->node];

	if (m->t->callee)
		return !n->parent ||
		       add_item(l, (struct item){n->parent, i->first, i->self, i->weight});
	for (uint32_t c = n->child; c; c = v[c].sibling)
		if (!add_item(l, (struct item){c, c, i->self, weight(&v[c], i->self)}))
			return false;
	return true;
}

/* Of chains that end in the entry, the outermost functions; of others through it, its own nodes. */
static bool start_callers(const struct maker *m, struct items *l)
{
	struct node *v = m->t->v;
	bool ok = true;

	for (uint32_t i = m->entry->nodes; i; i = v[i].next_same)
		for (uint32_t up = v[i].own ? i : 0; up; up = v[up].parent) {
			if (!v[up].parent && !v[up].part)
				ok &= add_item(l, (struct item){up, up, true, 1});
			v[up].part += v[i].own;
		}
	for (size_t i = 0; i < l->n; i++)
		l->v[i].weight = v[l->v[i].node].part;
	for (uint32_t i = m->t->children ? m->entry->nodes : 0; i; i = v[i].next_same)
		if (!v[i].same)
			ok &= add_item(l, (struct item){i, i, false, weight(&v[i], false)});
	return ok;
}

/* The entry's innermost node of each chain; without children only where it is the last one. */
static bool start_callees(const struct maker *m, struct items *l)
{
	struct node *v = m->t->v;
	bool ok = true;

	for (uint32_t i = m->entry->nodes; i; i = v[i].next_same)
		v[v[i].same].part += v[i].total;
	for (uint32_t i = m->entry->nodes; i; i = v[i].next_same)
		ok &= add_item(l, (struct item){i, i, false,
						m->t->children ? weight(&v[i], false) : v[i].own});
	return ok;
}

static void clear_parts(const struct maker *m)
{
	struct node *v = m->t->v;

	for (uint32_t i = m->entry->nodes; i; i = v[i].next_same)
		for (uint32_t up = i; up && v[up].part; up = v[up].parent)
			v[up].part = 0;
	v[0].part = 0;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_function(const void *x, const void *y, void *nodes)
{
	const struct item *i = x, *j = y;
	const struct profile_frame *a = &((struct node *)nodes)[i->node].frame,
				   *b = &((struct node *)nodes)[j->node].frame;
	int r = compare((uintptr_t)a->symbol, (uintptr_t)b->symbol);

	if (!r)
		r = compare((uintptr_t)a->object, (uintptr_t)b->object);
	if (!r)
		r = a->level - b->level;
	if (!r && !a->symbol)
		r = compare(a->addr, b->addr);
	return r ? r : compare(i->first, j->first);
}

static int by_weight(const void *x, const void *y)
{
	const struct group *a = x, *b = y;
	int r = compare(b->node.total, a->node.total);

	if (!r)
		r = profile_frame_order(&a->node.frame, &b->node.frame);
	return r ? r : compare(a->first, b->first);
}

/* The group of the items from @from on. */
static struct group group_of(const struct maker *m, const struct items *l, size_t from)
{
	const struct node *first = &m->t->v[l->v[from].node];
	struct group g = {.node.frame = first->frame, .first = l->v[from].first, .from = from};

	for (size_t i = from; i < l->n; i++, g.n++) {
		if (!profile_same_function(&first->frame, &m->t->v[l->v[i].node].frame))
			break;
		g.node.total += l->v[i].weight;
		g.node.own += own_weight(m, &l->v[i]);
	}
	return g;
}

static struct profile_node *new_node(struct calltree *t, const struct profile_node *n)
{
	if (!t->made || t->made->n == CHUNK_NODES) {
		struct chunk *c = malloc(sizeof(*c));

		if (!c)
			return NULL;
		c->next = t->made;
		c->n = 0;
		t->made = c;
	}
	t->made->v[t->made->n] = *n;
	return &t->made->v[t->made->n++];
}

static bool add_job(struct maker *m, struct profile_node *parent, struct items items)
{
	if (m->n == m->room) {
		size_t room = m->room ? 2 * m->room : 16;
		struct job *v = realloc(m->jobs, room * sizeof(*v));

		if (!v)
			return false;
		m->jobs = v;
		m->room = room;
	}
	m->jobs[m->n++] = (struct job){parent, items};
	return true;
}

/* What comes below the nodes of a group is left to do. */
static bool go_on(struct maker *m, struct profile_node *n, const struct items *l,
		  const struct group *g)
{
	struct items next = {0};

	bool ok = true;

	for (size_t i = g->from; i < g->from + g->n; i++)
		ok &= add_next(m, &next, &l->v[i]);
	if (ok && next.n && add_job(m, n, next))
		return true;
	free(next.v);
	return ok && !next.n;
}

/* The nodes that the items of a job make, largest first; those too small are left out. */
static bool make_siblings(struct maker *m, const struct job *job, struct group *groups)
{
	struct profile_node **list = job->parent ? &job->parent->child : &m->entry->chains;
	const struct items *l = &job->items;
	size_t n = 0;

	if (!l->n)
		return true;
	qsort_r(l->v, l->n, sizeof(*l->v), by_function, m->t->v);
	for (size_t i = 0; i < l->n;) {
		groups[n] = group_of(m, l, i);
		i += groups[n].n;
		if (profile_percent(groups[n].node.total, m->whole) >= m->least)
			n++;
		else if (job->parent)
			job->parent->hidden = true;
	}
	qsort(groups, n, sizeof(*groups), by_weight);
	for (size_t i = 0; i < n; i++) {
		*list = new_node(m->t, &groups[i].node);
		if (!*list || !go_on(m, *list, l, &groups[i]))
			return false;
		list = &(*list)->next;
	}
	return true;
}

int calltree_chains(struct calltree *t, struct profile_entry *entry, double least, uint64_t whole)
{
	struct maker m = {.t = t, .entry = entry, .least = least, .whole = whole};
	struct items start = {0};
	bool ok = t->callee ? start_callees(&m, &start) : start_callers(&m, &start);

	ok = ok && add_job(&m, NULL, start);
	if (!ok)
		free(start.v);
	while (m.n) {
		struct job job = m.jobs[--m.n];
		struct group *groups = ok ? calloc(job.items.n + 1, sizeof(*groups)) : NULL;

		ok = groups && make_siblings(&m, &job, groups);
		free(groups);
		free(job.items.v);
	}
	free(m.jobs);
	clear_parts(&m);
	return ok ? 0 : -ENOMEM;
}
