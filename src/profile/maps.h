/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is who and what lies where: names of threads and mappings of processes, as records (oldest
 * first) tell of them. The state is that of the record given last; a sample is resolved before
 * later records are given.
 */
#ifndef QUIPU_PROFILE_MAPS_H
#define QUIPU_PROFILE_MAPS_H

#include "profile/record.h"
#include "profile/symbols.h"

struct profile_maps;

/* An address resolved. */
struct profile_place {
	uint64_t ip;
	uint64_t offset; /* in the object's file; the ip itself when no mapping is known */
	uint64_t addr;	 /* the object's own virtual address of it */
	struct profile_object *object;	     /* NULL: in no known mapping */
	const struct profile_symbol *symbol; /* NULL: no symbol there */
	char level; /* '.' user, 'k' kernel, 'H' hypervisor, 'g' and 'u' guest, '?' unknown */
};

struct profile_hypervisor;
struct profile_maps *profile_maps_new(struct profile_symbols *);
/* Names of hypervisor code (hypervisor.h); the caller keeps it. NULL: none. */
void profile_maps_hypervisor(struct profile_maps *, const struct profile_hypervisor *);
void profile_maps_free(struct profile_maps *);
/* Take a COMM, FORK, EXIT, MMAP or MMAP2 record; others are of no interest. 0 or -ENOMEM. */
int profile_maps_record(struct profile_maps *, const struct profile_record *);
/* The name of a thread, interned; ":TID" when no record told it. */
const char *profile_maps_comm(struct profile_maps *, uint32_t pid, uint32_t tid);
/* What is mapped at @ip of a process. False: nothing that is known. */
struct profile_mapping {
	uint64_t start, end, pgoff;
	const char *path;
};
bool profile_maps_find(struct profile_maps *, uint32_t pid, uint64_t ip, struct profile_mapping *);
/* How often the mappings of a process have changed. */
uint64_t profile_maps_changes(struct profile_maps *, uint32_t pid);
/* What unwinds stacks by these maps; made when first asked for. NULL: no memory. */
struct profile_unwind;
struct profile_unwind *profile_maps_unwind(struct profile_maps *);
/* @cpumode: PERF_RECORD_MISC_CPUMODE bits of a sample, or what a call chain's marker said. */
void profile_maps_resolve(struct profile_maps *, uint32_t pid, unsigned cpumode, uint64_t ip,
			  struct profile_place *);

#endif
