/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording opened for looking at: the file, its objects and its processes. What report and
 * script have in common.
 */
#ifndef QUIPU_PROFILE_PROFILE_H
#define QUIPU_PROFILE_PROFILE_H

#include "profile/hypervisor.h"
#include "profile/maps.h"
#include "profile/perfdata.h"
#include "profile/symbols.h"

struct profile {
	struct perfdata *data;
	struct profile_symbols *symbols;
	struct profile_maps *maps;
	struct profile_hypervisor *hypervisor; /* names that the file has, or NULL */
};

/* profile_open - 0, or -errno with @err. profile_close - a profile that was opened, or zeroed. */
int profile_open(struct profile *, const char *path, struct perfdata_error *err);
void profile_close(struct profile *);

#endif
