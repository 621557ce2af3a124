/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients without a preload library (quipu exec --seccomp): static ones, Go's. Their calls come by
 * seccomp user notification to a process that speaks for them to the machine. perf ABI sheet C3.
 */
#ifndef QUIPU_CLIENT_NOTIFIER_H
#define QUIPU_CLIENT_NOTIFIER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct notifier_config {
	pid_t machine;
	unsigned cpus;		   /* of the machine */
	const char *uname;	   /* what uname(2) says of it, NULL: the host's */
	bool host_events;	   /* what is no PMU of the machine's is the host's */
	void (*client)(void *arg); /* becomes the client; returns if it cannot */
	void *arg;
};

/*
 * notifier_run - start the client below a filter and answer for the machine until the client and
 * all that it started are gone. The caller is a process of its own, which ends with *status, the
 * client's wait status. Negative errno with the reason in @why: there is no client.
 */
int notifier_run(const struct notifier_config *, int *status, char *why, size_t why_len);

#endif
