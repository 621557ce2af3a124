/* SPDX-License-Identifier: BSD-2-Clause */
/* libFuzzer target: any bytes as perf.data, read and added up as report does it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/aggregate.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
	struct profile profile;
	struct profile_aggregate *sums;
};

static int take(void *arg, const struct profile_record *r)
{
	struct walk *w = arg;

	if (r->type == PERF_RECORD_SAMPLE)
		return profile_aggregate_sample(w->sums, w->profile.maps, r);
	return profile_maps_record(w->profile.maps, r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile_options opt = {.keys = 63, .children = true, .chains = true};
	struct walk w = {.sums = profile_aggregate_new(&opt)};
	int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct perfdata_error err;
	char path[64];
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (w.sums && fd >= 0 && write(fd, data, size) == (ssize_t)size &&
	    !profile_open(&w.profile, path, &err)) {
		perfdata_each(w.profile.data, take, &w);
		profile_aggregate_sort(w.sums, &n);
	}
	profile_close(&w.profile);
	profile_aggregate_free(w.sums);
	close(fd);
	return 0;
}
