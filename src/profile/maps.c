/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads and mappings, kept in trees by id; a process's mappings sorted by address and never
 * overlapping.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/hypervisor.h"
#include "profile/maps.h"
#include "profile/unwind.h"

/* pid of mappings that are every process's: the kernel's. */
#define KERNEL_PID UINT32_MAX

struct map {
	uint64_t start, end, pgoff;
	struct profile_object *object;
};

struct process {
	uint32_t pid;
	struct map *maps;
	size_t n, room;
	uint64_t changes;
};

struct thread {
	uint32_t tid;
	const char *comm;
};

struct profile_maps {
	struct profile_symbols *symbols;
	void *processes, *threads;
	/* Asked for last: they will be asked for again. */
	struct process *last;
	struct thread *last_thread;
	struct profile_unwind *unwind;
	const struct profile_hypervisor *hypervisor;
};

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_tid(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

struct profile_maps *profile_maps_new(struct profile_symbols *symbols)
{
	struct profile_maps *m = calloc(1, sizeof(*m));

	if (m)
		m->symbols = symbols;
	return m;
}

static void free_process(void *p)
{
	free(((struct process *)p)->maps);
	free(p);
}

void profile_maps_free(struct profile_maps *m)
{
	if (!m)
		return;
	tdestroy(m->processes, free_process);
	tdestroy(m->threads, free);
	profile_unwind_free(m->unwind);
	free(m);
}

static struct process *process(struct profile_maps *m, uint32_t pid, bool make)
{
	struct process key = {.pid = pid}, *p;
	void *found;

	if (m->last && m->last->pid == pid)
		return m->last;
	found = tfind(&key, &m->processes, by_pid);
	if (found)
		return m->last = *(struct process **)found;
	if (!make)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	if (!tsearch(p, &m->processes, by_pid)) {
		free(p);
		return NULL;
	}
	return p;
}

static struct thread *thread(struct profile_maps *m, uint32_t tid, bool make)
{
	struct thread key = {.tid = tid}, *t;
	void *found;

	if (m->last_thread && m->last_thread->tid == tid)
		return m->last_thread;
	found = tfind(&key, &m->threads, by_tid);
	if (found)
		return m->last_thread = *(struct thread **)found;
	if (!make)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	if (!tsearch(t, &m->threads, by_tid)) {
		free(t);
		return NULL;
	}
	return t;
}

/* ---- mappings ---- */

static int insert(struct process *p, size_t at, const struct map *map)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 16;
		struct map *v = realloc(p->maps, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		p->maps = v;
		p->room = room;
	}
	memmove(p->maps + at + 1, p->maps + at, (p->n - at) * sizeof(*p->maps));
	p->maps[at] = *map;
	p->n++;
	return 0;
}

static void erase(struct process *p, size_t at)
{
	p->n--;
	memmove(p->maps + at, p->maps + at + 1, (p->n - at) * sizeof(*p->maps));
}

/* Index of the first mapping that ends behind @addr. */
static size_t position(const struct process *p, uint64_t addr)
{
	size_t lo = 0, hi = p->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->maps[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* A new mapping covers what was there: older ones are cut, split or gone. */
static int map_over(struct process *p, const struct map *map)
{
	size_t at = position(p, map->start);
	int r;

	if (at < p->n && p->maps[at].start < map->start) {
		struct map tail = p->maps[at];

		p->maps[at].end = map->start;
		at++;
		if (tail.end > map->end) {
			tail.pgoff += map->end - tail.start;
			tail.start = map->end;
			r = insert(p, at, &tail);
			if (r)
				return r;
		}
	}
	while (at < p->n && p->maps[at].end <= map->end)
		erase(p, at);
	if (at < p->n && p->maps[at].start < map->end) {
		p->maps[at].pgoff += map->end - p->maps[at].start;
		p->maps[at].start = map->end;
	}
	return insert(p, at, map);
}

/* perf's name for the kernel's text mapping carries the symbol it was placed by. */
static const char *kernel_name(const char *name)
{
	return !strncmp(name, "[kernel.kallsyms]", 17) ? "[kernel.kallsyms]" : name;
}

static int take_mmap(struct profile_maps *m, const struct profile_record *r)
{
	bool kernel = (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	struct process *p = process(m, kernel ? KERNEL_PID : r->mmap.pid, true);
	struct map map = {r->mmap.addr, r->mmap.addr + r->mmap.len, r->mmap.pgoff, NULL};
	char jit[64];
	const char *name = kernel ? kernel_name(r->mmap.name) : r->mmap.name;

	if (!r->mmap.len || map.end < map.start)
		return 0;
	if (!strcmp(name, "//anon")) {
		/* As perf has it: the place where a JIT compiler would tell of its code. */
		snprintf(jit, sizeof(jit), "/tmp/perf-%u.map", r->mmap.pid);
		name = jit;
	}
	map.object = profile_symbols_object(m->symbols, name);
	if (!p || !map.object)
		return -ENOMEM;
	if (kernel)
		profile_object_is_kernel(map.object);
	if (r->mmap.build_id)
		profile_symbols_expect(m->symbols, name, r->mmap.build_id, r->mmap.build_id_size);
	p->changes++;
	return map_over(p, &map);
}

/* ---- threads ---- */

static int take_comm(struct profile_maps *m, const struct profile_record *r)
{
	struct thread *t = thread(m, r->comm.tid, true);
	struct process *p;

	if (!t)
		return -ENOMEM;
	t->comm = profile_symbols_intern(m->symbols, r->comm.comm);
	/* A new program starts with an empty address space. */
	p = r->comm.exec ? process(m, r->comm.pid, false) : NULL;
	if (p) {
		p->n = 0;
		p->changes++;
	}
	return t->comm ? 0 : -ENOMEM;
}

static int take_fork(struct profile_maps *m, const struct profile_record *r)
{
	struct thread *parent = thread(m, r->task.ptid, false), *t = thread(m, r->task.tid, true);
	struct process *from, *to;

	if (!t)
		return -ENOMEM;
	if (t != parent)
		t->comm = parent ? parent->comm : NULL;
	if (r->task.pid == r->task.ppid)
		return 0;
	from = process(m, r->task.ppid, false);
	to = process(m, r->task.pid, true);
	if (!to)
		return -ENOMEM;
	to->n = 0;
	to->changes++;
	for (size_t i = 0; from && i < from->n; i++)
		if (insert(to, to->n, &from->maps[i]))
			return -ENOMEM;
	return 0;
}

int profile_maps_record(struct profile_maps *m, const struct profile_record *r)
{
	switch (r->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: return take_mmap(m, r);
	case PERF_RECORD_COMM: return take_comm(m, r);
	case PERF_RECORD_FORK: return take_fork(m, r);
	default: /* EXIT: samples of that moment may follow; the next FORK takes the ids anew */
		return 0;
	}
}

const char *profile_maps_comm(struct profile_maps *m, uint32_t pid, uint32_t tid)
{
	struct thread *t = thread(m, tid, false);
	char text[16];
	const char *name;

	if (!tid && !pid)
		return "swapper";
	if (t && t->comm)
		return t->comm;
	snprintf(text, sizeof(text), ":%u", tid);
	name = profile_symbols_intern(m->symbols, text);
	return name ? name : "?";
}

bool profile_maps_find(struct profile_maps *m, uint32_t pid, uint64_t ip,
		       struct profile_mapping *out)
{
	struct process *p = process(m, pid, false);
	size_t at = p ? position(p, ip) : 0;

	if (!p || at == p->n || p->maps[at].start > ip)
		return false;
	*out = (struct profile_mapping){p->maps[at].start, p->maps[at].end, p->maps[at].pgoff,
					p->maps[at].object->path};
	return true;
}

uint64_t profile_maps_changes(struct profile_maps *m, uint32_t pid)
{
	struct process *p = process(m, pid, false);

	return p ? p->changes : 0;
}

struct profile_unwind *profile_maps_unwind(struct profile_maps *m)
{
	if (!m->unwind)
		m->unwind = profile_unwind_new();
	return m->unwind;
}

/*
 * The kernel lies elsewhere after each boot. Its mapping tells in pgoff where its text began when
 * the recording was made; the same address in the kernel that runs now.
 */
static uint64_t kernel_address(const struct map *map, uint64_t ip)
{
	uint64_t base = profile_object_base(map->object);

	return base && map->pgoff >> 32 ? ip - map->pgoff + base : ip;
}

void profile_maps_hypervisor(struct profile_maps *m, const struct profile_hypervisor *h)
{
	m->hypervisor = h;
}

/* No mapping tells of the hypervisor: its addresses are real ones, the same for all processes. */
static void resolve_hypervisor(struct profile_maps *m, uint64_t ip, struct profile_place *out)
{
	*out = (struct profile_place){.ip = ip, .offset = ip, .addr = ip, .level = 'H'};
	if (m->hypervisor)
		out->symbol = profile_hypervisor_find(m->hypervisor, ip);
	out->object = profile_symbols_object(m->symbols, "[hypervisor]");
}

void profile_maps_resolve(struct profile_maps *m, uint32_t pid, unsigned cpumode, uint64_t ip,
			  struct profile_place *out)
{
	static const char levels[] = "?k.Hgu??";
	bool kernel = cpumode == PERF_RECORD_MISC_KERNEL;
	struct process *p = process(m, kernel ? KERNEL_PID : pid, false);
	size_t at;

	if (cpumode == PERF_RECORD_MISC_HYPERVISOR) {
		resolve_hypervisor(m, ip, out);
		return;
	}
	*out = (struct profile_place){
		.ip = ip, .offset = ip, .addr = ip, .level = levels[cpumode & 7]};
	/* Another guest's addresses are not of this address space. */
	if (!p || (cpumode != PERF_RECORD_MISC_USER && !kernel))
		return;
	at = position(p, ip);
	if (at == p->n || p->maps[at].start > ip)
		return;
	out->object = p->maps[at].object;
	if (kernel) {
		out->offset = kernel_address(&p->maps[at], ip);
		out->symbol = profile_object_find(out->object, out->offset, NULL);
		return;
	}
	out->offset = ip - p->maps[at].start + p->maps[at].pgoff;
	out->symbol = profile_object_find(out->object, out->offset, &out->addr);
}
