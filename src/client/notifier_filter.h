/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter below which clients without a preload library run (notifier.h). */
#ifndef QUIPU_CLIENT_NOTIFIER_FILTER_H
#define QUIPU_CLIENT_NOTIFIER_FILTER_H

#include <stdint.h>

/*
 * notifier_filter - put the calling process, and all that it will start, below the filter. An exec
 * whose sixth argument is @cookie passes. The listener's descriptor, or negative errno.
 */
int notifier_filter(uint64_t cookie);

#endif
