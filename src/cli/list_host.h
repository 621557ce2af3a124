/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of the host itself, or of a recorded sysfs, for `quipu list`. */
#ifndef QUIPU_CLI_LIST_HOST_H
#define QUIPU_CLI_LIST_HOST_H

#include "cli/model.h"
#include "platform/host/host.h"

/*
 * list_host_events - in the order of perf list: hardware, software, cache, each PMU's own, and the
 *	tracepoints that match one of @words (there are thousands: none without a word
 * SYSTEM:EVENT). Generic ones are tried on the running kernel. 0, -ENOMEM. Strings live as long as
 * @host.
 */
int list_host_events(struct host *host, char **words, int nwords, struct model_events *);

#endif
