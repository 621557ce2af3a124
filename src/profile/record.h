/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One record of a perf ring or perf.data, taken apart: samples (perf ABI sheet A15), the records of
 * tasks and mappings and the id trailer (A16). Every length inside is checked against the record's
 * size; nothing is copied, so pointers live as long as the record's bytes, which need no alignment.
 * Not taken apart: raw data, registers at the interrupt (stepped over), AUX area records.
 */
#ifndef QUIPU_PROFILE_RECORD_H
#define QUIPU_PROFILE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/attr.h>

/* Record types of perf.data that no ring has (tools/lib/perf of Linux 6.1). */
enum profile_user_record {
	PROFILE_RECORD_USER_START = 64,
	PROFILE_RECORD_HEADER_BUILD_ID = 67,
	PROFILE_RECORD_FINISHED_ROUND = 68,
	PROFILE_RECORD_AUXTRACE = 71,
	PROFILE_RECORD_COMPRESSED = 81,
	PROFILE_RECORD_COMPRESSED2 = 83,
};

#define PROFILE_CPU_NONE UINT32_MAX

struct profile_record {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
	size_t event; /* index of the event that it belongs to */
	/*
	 * Of a sample, or from the trailer of another record; 0 (CPU: PROFILE_CPU_NONE) when the
	 * file lacks them.
	 */
	uint64_t time;
	uint64_t id, stream_id;
	uint32_t pid, tid;
	uint32_t cpu;
	union {
		struct {
			uint64_t ip, addr, period;
			uint64_t weight, data_src, transaction, phys_addr;
			uint64_t nr_chain;
			const uint8_t *chain; /* nr_chain u64, context markers included */
			uint64_t nr_branches;
			const uint8_t *branches; /* nr_branches x {u64 from, to, flags} */
			const uint8_t *read;	 /* read_format values, or NULL */
			const uint8_t *regs;	 /* of the 64-bit user, by regs_mask; or NULL */
			uint64_t regs_mask;
			const uint8_t *stack; /* of the user, from its stack pointer on; or NULL */
			uint64_t stack_size;
		} sample;
		struct {
			uint32_t pid, tid;
			uint64_t addr, len, pgoff;
			uint32_t maj, min;
			uint64_t ino, ino_generation;
			uint32_t prot, flags;
			const uint8_t *build_id; /* MMAP2 with a build id, else NULL */
			uint8_t build_id_size;
			const char *name; /* NUL-terminated */
			bool data;	  /* not executable */
		} mmap;
		struct {
			uint32_t pid, tid;
			const char *comm;
			bool exec;
		} comm;
		struct {
			uint32_t pid, ppid, tid, ptid;
		} task; /* FORK, EXIT */
		struct {
			uint64_t id, lost;
		} lost; /* LOST; LOST_SAMPLES has lost only */
	};
};

/* Whether the addresses of @attr's samples are marked: first marker values of a call chain. */
#define PROFILE_CONTEXT_MAX    ((uint64_t)-4095)
#define PROFILE_CONTEXT_HV     ((uint64_t)-32)
#define PROFILE_CONTEXT_KERNEL ((uint64_t)-128)
#define PROFILE_CONTEXT_USER   ((uint64_t)-512)

/*
 * profile_record_frame - is there a whole record of at least a header at @data? Its size, or 0.
 * profile_record_id - the id of the event that a record belongs to, where its bytes have one at a
 *	place that all of @sample_type's records share. False when there is none.
 * profile_record_parse - take @data (one whole record) apart by @attr. 0, or -EINVAL when its body
 *	does not fit.
 */
size_t profile_record_frame(const void *data, size_t len);
bool profile_record_id(const void *data, const struct quipu_attr *attr, uint64_t *id);
int profile_record_parse(const void *data, const struct quipu_attr *attr,
			 struct profile_record *out);

#endif
