/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One test, two kernels: the event core of this project, and the host's own perf_event_open where
 * it can serve the case (software events). The same program must get the same answers from both.
 */
#ifndef TEST_PERF_ABI_BOTH_H
#define TEST_PERF_ABI_BOTH_H

#include <stdbool.h>

#include "../../unit/event/world.h"

struct backend {
	const char *name;
	bool (*start)(struct backend *); /* false: not available here */
	void (*stop)(struct backend *);
	/* A handle >= 0, or -errno. @group: a handle or -1. @bytes NULL: an unreadable pointer. */
	long (*open)(struct backend *, const void *bytes, size_t len, pid_t pid, int cpu,
		     long group, unsigned long flags);
	void (*close)(struct backend *, long h);
	long (*read)(struct backend *, long h, void *buf, size_t len);
	int (*ioctl)(struct backend *, long h, unsigned long cmd, unsigned long arg);
	int (*set_output)(struct backend *, long h, long to);
	int (*map)(struct backend *, long h, size_t pages, bool writable);
	uint8_t *(*memory)(struct backend *, long h);
	void (*unmap)(struct backend *, long h);
	int (*poll)(struct backend *, long h);
	uint64_t (*id)(struct backend *, long h);
	void (*work)(struct backend *); /* some ms of the calling task's time */
	pid_t unused_pid, other_pid;	/* no such task; a task that is not the caller */
	void *self;
};

extern const struct backend core_backend, host_backend;

#endif
