/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the writer of perf.data share. */
#ifndef QUIPU_PROFILE_PERFDATA_WRITER_H
#define QUIPU_PROFILE_PERFDATA_WRITER_H

#include "profile/buildid.h"
#include "profile/hypervisor.h"
#include "profile/perfdata.h"
#include "profile/perfdata_format.h"

#define MISC_KERNEL 1u
#define MISC_USER   2u

struct perfdata_writer {
	char *path;	 /* what the file will be called */
	char *temporary; /* its name until then; NULL while it has none */
	int fd;
	bool device;  /* written in place: has no name to be given */
	bool started; /* first record written: events are fixed */
	int error;    /* first failed write, negative errno */
	uint8_t *buf;
	size_t n;
	uint64_t pos; /* file offset of the end of buf */
	uint64_t data_start;
	struct blob attrs; /* section of the file attrs */
	struct perfdata_event *events;
	size_t nr_events;
	struct profile_ids ids;
	struct profile_addresses hypervisor;
	uint64_t samples, lost;
	bool has_time;
	uint64_t time_first, time_last;
	char **mapped; /* ELF files named by executable mappings, in order of appearance */
	size_t nr_mapped;
};

/* At the end of the file. */
void perfdata_put(struct perfdata_writer *, const void *data, size_t len);
/* All file attrs have one stride, that of the longest. */
uint32_t perfdata_stride(const struct perfdata_writer *);
/* Table and contents of the features; bit set in @bits for each that has something to say. 0 or
 * -errno. */
int perfdata_put_features(struct perfdata_writer *, const struct perfdata_info *, uint64_t bits[4]);

#endif
