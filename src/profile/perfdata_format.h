/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What writer and reader of perf.data share: the places and numbers of the format (Linux 6.1,
 * tools/perf/Documentation/perf.data-file-format.txt), the table of event ids, and growing byte
 * buffers.
 *
 *	0	header: magic, sizes of header and file attr, sections attrs, data, event types;
 *		256 feature bits
 *	104	ids of all events, then the file attrs {perf_event_attr, section of its ids}
 *	...	data: records
 *	...	a section {offset, size} per feature bit set, in order; then their contents
 */
#ifndef QUIPU_PROFILE_PERFDATA_FORMAT_H
#define QUIPU_PROFILE_PERFDATA_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/perfdata.h"

#define PERFDATA_MAGIC	       "PERFILE2"
#define PERFDATA_HEADER_SIZE   104u
#define PERFDATA_OFF_ATTR_SIZE 16u
#define PERFDATA_OFF_ATTRS     24u
#define PERFDATA_OFF_DATA      40u
#define PERFDATA_OFF_FEATURES  72u
#define PERFDATA_FEATURES      256u
#define PERFDATA_SECTION_SIZE  16u
/* Strings in features are padded to this (perf's NAME_ALIGN). */
#define PERFDATA_STRING_ALIGN  64u
/* perf_event_attr of Linux 6.1: perf 6.1 refuses a longer one. */
#define PERFDATA_ATTR_V7       128u
#define PERFDATA_ATTR_MIN      64u

enum perfdata_feature {
	PERFDATA_TRACING_DATA = 1,
	PERFDATA_BUILD_ID = 2,
	PERFDATA_HOSTNAME = 3,
	PERFDATA_OSRELEASE = 4,
	PERFDATA_VERSION = 5,
	PERFDATA_ARCH = 6,
	PERFDATA_NRCPUS = 7,
	PERFDATA_CPUDESC = 8,
	PERFDATA_CPUID = 9,
	PERFDATA_TOTAL_MEM = 10,
	PERFDATA_CMDLINE = 11,
	PERFDATA_EVENT_DESC = 12,
	PERFDATA_CPU_TOPOLOGY = 13,
	PERFDATA_NUMA_TOPOLOGY = 14,
	PERFDATA_BRANCH_STACK = 15,
	PERFDATA_PMU_MAPPINGS = 16,
	PERFDATA_GROUP_DESC = 17,
	PERFDATA_AUXTRACE = 18,
	PERFDATA_SAMPLE_TIME = 21,
	PERFDATA_DIR_FORMAT = 24,
	PERFDATA_COMPRESSED = 27,
	/* Ours: far above perf's own (31 in 6.1); perf skips bits that it does not know. */
	PERFDATA_QUIPU = 240,
	PERFDATA_HYPERVISOR = 250, /* names of hypervisor code: hypervisor.h */
};

/*
 * Quipu's section: "QUIPU\0\0\1", then blocks {u32 tag, u32 size, size bytes, padded to 8}. A
 * reader skips tags that it does not know, so more can be told later (names of hypervisor code, for
 * one).
 */
#define PERFDATA_QUIPU_MAGIC "QUIPU\0\0\1"
enum perfdata_quipu_tag {
	PERFDATA_TAG_MACHINE = 1, /* name */
	PERFDATA_TAG_LABELS = 2,  /* one byte per event: enum quipu_exactness */
	PERFDATA_TAG_PARTIAL = 3, /* no contents: the run was not counted whole */
};

/* ---- ids ---- */

struct profile_id {
	uint64_t id;
	uint32_t event;
};

struct profile_ids {
	struct profile_id *v; /* sorted by id */
	size_t n;
};

/*
 * profile_ids_build - from @n events. 0 or -ENOMEM.
 * profile_ids_event - the event of a whole record: by its id; the first for id 0 (synthesised) and
 *	where the file has one event or no ids. False: the id is nobody's.
 * profile_ids_agree - can the id of every record be found whatever event it is of? perf refuses
 *	files where not.
 */
int profile_ids_build(struct profile_ids *, const struct perfdata_event *, size_t n);
void profile_ids_free(struct profile_ids *);
bool profile_ids_event(const struct profile_ids *, const struct perfdata_event *, size_t n,
		       const void *record, size_t *event);
bool profile_ids_agree(const struct perfdata_event *, size_t n);

/* ---- buffers ---- */

struct blob {
	uint8_t *v;
	size_t n, room;
	bool failed; /* out of memory: contents are worthless */
};

void blob_add(struct blob *, const void *data, size_t len);
void blob_zero(struct blob *, size_t len);
void blob_u32(struct blob *, uint32_t);
void blob_u64(struct blob *, uint64_t);
/* A string as features hold it: u32 length, bytes, padding. */
void blob_string(struct blob *, const char *);
void blob_free(struct blob *);

/* Formats into @err and returns @code. */
int perfdata_fail(struct perfdata_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
