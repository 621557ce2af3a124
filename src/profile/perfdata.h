/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf.data: the file of `perf record`, written so that the stock perf reads it, and read whoever
 * wrote it.
 *
 * Format: tools/perf/Documentation/perf.data-file-format.txt of Linux 6.1 (magic PERFILE2, seekable
 * layout), records as in the perf ABI sheet A15/A16. Not done: pipe mode, the directory format, AUX
 * area data, files of the other byte order; the reader refuses each with its reason.
 */
#ifndef QUIPU_PROFILE_PERFDATA_H
#define QUIPU_PROFILE_PERFDATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/attr.h>
#include <quipu/signal.h>

#include "profile/record.h"

/* One line for a person: what is wrong, and what to do about it. No newline. */
struct perfdata_error {
	char text[512];
};

/* ---- writer ---- */

struct perfdata_writer;

struct perfdata_cpu {
	uint32_t core, die, socket, node;
};

struct perfdata_pmu {
	uint32_t type;
	const char *name;
};

/* A group of events: @members of them in a row, the leader first. */
struct perfdata_group {
	uint32_t leader, members;
};

/* What the header of the file tells. A NULL string or a zero count leaves the feature out. */
struct perfdata_info {
	const char *hostname;  /* host fact: differs between hosts */
	const char *osrelease; /* host fact */
	const char *arch;      /* of the guest: "riscv64" */
	const char *cpudesc;
	const char *cpuid;
	const char *machine;  /* quipu's name of it; kept in quipu's own section */
	char *const *cmdline; /* NULL-terminated */
	uint32_t cpus, cpus_online;
	uint64_t memory_kb;
	const struct perfdata_cpu *topology; /* @cpus of them, or NULL */
	const struct perfdata_pmu *pmus;
	size_t nr_pmus;
	const struct perfdata_group *groups;
	size_t nr_groups;
	bool partial; /* some of what ran was not counted: what is labelled exact is not whole */
	const char *hypervisor;	  /* text of profile/hypervisor.h */
	const uint8_t *kernel_id; /* build id of the host's kernel */
	unsigned kernel_id_size;
	const void *tracing; /* formats of tracepoints, as trace-cmd lays them out */
	size_t tracing_size;
};

/*
 * perfdata_create - start a file that will be called @path. Until perfdata_finish it has no name,
 *	or a temporary one in the same folder, so that nothing ever looks like a whole perf.data
 *	that is not. "-" and other pipes are refused; a character device (/dev/null) is written to
 *	directly. NULL with @err.
 *
 * perfdata_add_event - the next event of the file; all events come before the first record. @ids:
 *	of every descriptor opened for it (inherited clones share their parent's id). 0, -ENOMEM,
 *	-EBUSY (records were written already).
 *
 * perfdata_append - whole records, straight from a ring (which may wrap: call it once for each part
 *	after joining the record that wraps). 0, -EINVAL when @data is not a sequence of whole
 *	records, or the errno of the write. After a failed write every further call returns the same
 *	error, and perfdata_finish tells it.
 * perfdata_reserve - the same for a large piece in two steps, for several threads that share a lock
 *	around all other calls: the records are noted and *@at is where they belong in the file;
 *	perfdata_fill writes them there, and needs no lock. 0 or -errno, which perfdata_spoil tells
 *	the file: it will not be whole.
 * perfdata_round - all rings were drained once (PERF_RECORD_FINISHED_ROUND): records that follow
 *	are not older than those before the previous round. Lets perf sort in pieces; a file without
 *	rounds is right too.
 * perfdata_comm, perfdata_mmap2 - synthesised records of what was there before sampling began: time
 *	0.
 *
 * perfdata_finish - header, features and build ids of the mapped ELF files; the file gets its name
 *	(an existing @path becomes @path.old, as perf does). Frees the writer in any case. 0 or
 *	-errno with @err; then no file is left.
 * perfdata_abort - throw the file away. NULL is fine.
 */
struct perfdata_writer *perfdata_create(const char *path, struct perfdata_error *err);
int perfdata_add_event(struct perfdata_writer *, const struct quipu_attr *, const uint64_t *ids,
		       size_t nr_ids, const char *name, enum quipu_exactness);
int perfdata_append(struct perfdata_writer *, const void *data, size_t len);
int perfdata_reserve(struct perfdata_writer *, const void *data, size_t len, uint64_t *at);
int perfdata_fill(const struct perfdata_writer *, const void *data, size_t len, uint64_t at);
void perfdata_spoil(struct perfdata_writer *, int error);
int perfdata_round(struct perfdata_writer *);
int perfdata_comm(struct perfdata_writer *, uint32_t pid, uint32_t tid, const char *comm);
struct perfdata_mapping {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
	const char *name;
};
int perfdata_mmap2(struct perfdata_writer *, const struct perfdata_mapping *);
/*
 * perfdata_kernel - the host's kernel (@name "[kernel.kallsyms]_text") or a module at
 * @start..@end; @base: where the kernel's text began.
 * perfdata_lost - samples that LOST records told of so far.
 */
int perfdata_kernel(struct perfdata_writer *, uint64_t start, uint64_t end, uint64_t base,
		    const char *name);
uint64_t perfdata_lost(const struct perfdata_writer *);
int perfdata_finish(struct perfdata_writer *, const struct perfdata_info *,
		    struct perfdata_error *err);
void perfdata_abort(struct perfdata_writer *);
/* Bytes and samples written so far: for the progress line. */
uint64_t perfdata_bytes(const struct perfdata_writer *);
uint64_t perfdata_samples(const struct perfdata_writer *);
/* The hypervisor addresses of the samples so far, sorted, each once; the writer's own. Their
 * number. */
size_t perfdata_hypervisor(struct perfdata_writer *, const uint64_t **addresses);

/* ---- reader ---- */

struct perfdata;

struct perfdata_event {
	struct quipu_attr attr;
	uint64_t *ids;
	size_t nr_ids;
	char *name; /* never NULL: made from type and config where the file has none */
	enum quipu_exactness exactness; /* of a file that quipu wrote; see perfdata_label */
};

struct perfdata_build_id {
	char *path;
	uint8_t id[20];
	uint8_t size;
};

/* The features that the file has; NULL or 0 for those it lacks. */
struct perfdata_features {
	char *hostname, *osrelease, *version, *arch, *cpudesc, *cpuid, *machine;
	char **cmdline;
	size_t nr_cmdline;
	uint32_t cpus, cpus_online;
	uint64_t memory_kb;
	bool has_time;
	uint64_t time_first, time_last;
	struct perfdata_build_id *build_ids;
	size_t nr_build_ids;
	bool by_quipu, partial;
	char *hypervisor; /* text of profile/hypervisor.h, NULL: none */
	size_t hypervisor_len;
	bool compressed;
	uint64_t set[4]; /* feature bits */
};

/*
 * perfdata_open - read a file into memory and check it: header, events, features, and the frame of
 *	every record. NULL with @err (missing, not a perf.data, truncated, a form that is not read).
 *
 * perfdata_events - its events; at least one.
 * perfdata_each - call @fn for every record, oldest first (records without a time first, in file
 *	order); records of equal time keep their order in the file. A non-zero return of @fn ends
 *	the walk and is returned. A record whose body is malformed is counted in perfdata_malformed
 *	and skipped.
 */
struct perfdata *perfdata_open(const char *path, struct perfdata_error *err);
void perfdata_close(struct perfdata *);
const struct perfdata_event *perfdata_events(const struct perfdata *, size_t *n);
const struct perfdata_features *perfdata_features(const struct perfdata *);
int perfdata_each(const struct perfdata *, int (*fn)(void *arg, const struct profile_record *),
		  void *arg);
/*
 * perfdata_label - what the numbers of event @i are: "exact", "modelled", "host" or "partial". NULL
 *	when perf wrote the file: it keeps no label, and its header cannot tell the host's own PMU
 *	from that of a machine.
 */
const char *perfdata_label(const struct perfdata *, size_t i);
size_t perfdata_malformed(const struct perfdata *);
size_t perfdata_unknown_ids(const struct perfdata *);

#endif
