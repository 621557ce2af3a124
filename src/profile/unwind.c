// SPDX-License-Identifier: BSD-2-Clause
/*
 * Unwinding by libdwfl (unwind.h). A process keeps its Dwfl from sample to sample, as long as
 * nothing is mapped: to make one anew for each is what costs the time. Memory is the sample's copy
 * of the stack; what lies beyond it cannot be read, and the chain ends there.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <elfutils/libdwfl.h>

#include <quipu/bits.h>

#include "profile/unwind.h"

#define DWARF_REGISTERS 17u
/* x86-64: bits of perf's register mask (asm/perf_regs.h), in the order of DWARF's numbers. */
static const uint8_t perf_register[DWARF_REGISTERS] = {0,  3,  2,  1,  4,  5,  6,  7, 16,
						       17, 18, 19, 20, 21, 22, 23, 8};
#define DWARF_SP 7u

struct process {
	uint32_t pid;
	Dwfl *dwfl;
	bool attached;
	uint64_t changes; /* of the maps, when the Dwfl was made */
	struct profile_unwind *set;
};

struct profile_unwind {
	void *processes; /* tree of struct process */
	/* The sample that is being unwound. */
	struct profile_maps *maps;
	const struct profile_record *record;
	Dwarf_Word regs[DWARF_REGISTERS];
	uint64_t *pcs;
	size_t n, max;
};

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

struct profile_unwind *profile_unwind_new(void)
{
	return calloc(1, sizeof(struct profile_unwind));
}

static void free_process(void *p)
{
	dwfl_end(((struct process *)p)->dwfl);
	free(p);
}

void profile_unwind_free(struct profile_unwind *u)
{
	if (!u)
		return;
	tdestroy(u->processes, free_process);
	free(u);
}

/* ---- what libdwfl asks for ---- */

/* Call frame information is in the objects themselves (.eh_frame); nothing is fetched. */
static int no_debug_file(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)mod, (void)userdata, (void)name, (void)base;
	(void)file, (void)link, (void)crc, (void)found;
	return -1;
}

static int no_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base, char **file,
		  Elf **elf)
{
	(void)mod, (void)userdata, (void)name, (void)base, (void)file, (void)elf;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = no_elf,
	.find_debuginfo = no_debug_file,
	.section_address = dwfl_offline_section_address,
};

static pid_t one_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return dwfl_pid(dwfl);
}

static bool start_registers(Dwfl_Thread *thread, void *arg)
{
	return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS,
					   ((struct process *)arg)->set->regs);
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *out, void *arg)
{
	const struct profile_unwind *u = ((struct process *)arg)->set;
	uint64_t from = u->regs[DWARF_SP], size = u->record->sample.stack_size;

	(void)dwfl;
	if (addr < from || addr - from > size || size - (addr - from) < 8)
		return false;
	*out = bits_le64(u->record->sample.stack + (addr - from));
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = one_thread,
	.set_initial_registers = start_registers,
	.memory_read = read_word,
};

/* ---- a process ---- */

static struct process *process(struct profile_unwind *u, uint32_t pid)
{
	struct process key = {.pid = pid}, *p;
	void *found = tfind(&key, &u->processes, by_pid);

	if (found)
		return *(struct process **)found;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	p->set = u;
	if (!tsearch(p, &u->processes, by_pid)) {
		free(p);
		return NULL;
	}
	return p;
}

/* The object at @pc is known to the Dwfl from here on. */
static bool know_module(struct process *p, uint64_t pc)
{
	struct profile_mapping m;
	Dwfl_Module *mod;

	if (dwfl_addrmodule(p->dwfl, pc))
		return true;
	if (!profile_maps_find(p->set->maps, p->pid, pc, &m) || m.path[0] != '/')
		return false;
	dwfl_report_begin_add(p->dwfl);
	mod = dwfl_report_elf(p->dwfl, m.path, m.path, -1, m.start - m.pgoff, false);
	dwfl_report_end(p->dwfl, NULL, NULL);
	return mod && dwfl_addrmodule(p->dwfl, pc) == mod;
}

static bool ready(struct process *p, uint64_t pc)
{
	uint64_t changes = profile_maps_changes(p->set->maps, p->pid);

	if (p->dwfl && p->changes != changes) {
		dwfl_end(p->dwfl);
		p->dwfl = NULL;
	}
	if (!p->dwfl) {
		p->dwfl = dwfl_begin(&callbacks);
		p->attached = false;
		p->changes = changes;
	}
	if (!p->dwfl || !know_module(p, pc))
		return false;
	if (!p->attached)
		p->attached = dwfl_attach_state(p->dwfl, NULL, (pid_t)p->pid, &thread_callbacks, p);
	return p->attached;
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct process *p = arg;
	struct profile_unwind *u = p->set;
	bool active;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &active) || !pc || u->n == u->max)
		return DWARF_CB_ABORT;
	if (!active)
		pc--;
	know_module(p, pc);
	u->pcs[u->n++] = pc;
	return DWARF_CB_OK;
}

/* The sample's registers, in DWARF's order. False: some are missing. */
static bool load_registers(struct profile_unwind *u, const struct profile_record *r)
{
	for (size_t i = 0; i < DWARF_REGISTERS; i++) {
		uint64_t bit = UINT64_C(1) << perf_register[i];

		if (!(r->sample.regs_mask & bit))
			return false;
		u->regs[i] = bits_le64(r->sample.regs +
				       8 * (size_t)bits_count(r->sample.regs_mask & (bit - 1)));
	}
	return true;
}

size_t profile_unwind_frames(struct profile_unwind *u, struct profile_maps *maps,
			     const struct profile_record *r, uint64_t *pcs, size_t max)
{
	struct process *p;

	if (!r->sample.regs || !r->sample.stack || !max || !load_registers(u, r))
		return 0;
	u->maps = maps;
	u->record = r;
	u->pcs = pcs;
	u->n = 0;
	u->max = max;
	p = process(u, r->pid);
	if (p && ready(p, u->regs[DWARF_REGISTERS - 1]))
		dwfl_getthread_frames(p->dwfl, (pid_t)p->pid, take_frame, p);
	if (!u->n) /* not even the first step: where it was */
		pcs[u->n++] = u->regs[DWARF_REGISTERS - 1];
	return u->n;
}
