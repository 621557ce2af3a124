/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of a run as the user named them: what stat and record have in common when they read,
 * open and account for them. */
#ifndef QUIPU_CLI_EVENTS_H
#define QUIPU_CLI_EVENTS_H

#include <quipu/grammar.h>

#include "cli/run.h"

/*
 * events_catalog - what the @n texts are read against, of the PMUs of @core: hundreds of names when
 * one of the texts may need them, else none. NULL after a message.
 */
struct quipu_catalog *events_catalog(const struct quipu_core *core, const char *const *texts,
				     size_t n);
/* events_parse - the events of @text at the end of @list. 0, or 2 after a message that points at
 * the column. */
int events_parse(struct quipu_catalog *, const char *text, struct quipu_event_list *list);
/*
 * events_cpus - the CPUs of @text (-C), or with NULL all of the machine, in *cpus (to be freed) and
 * *n. 0, or 2 after a message.
 */
int events_cpus(const struct run *, const char *text, unsigned **cpus, size_t *n);
/*
 * events_open - one open of @attr, with what perf tries again after a refusal: less precise where
 * @e wants all the precision there is, and without exclude_guest and exclude_host. @attr is then
 * what was opened. 0 or -errno.
 */
int events_open(struct run *, const struct quipu_parsed *e, struct quipu_attr *attr, pid_t pid,
		int cpu, struct quipu_event *group, struct quipu_event **out);
/* events_refusal - why the last open failed with @err, in the driver's words if it had any. */
const char *events_refusal(const struct run *, int err);
/* events_require - what the number of an open event is; the engine counts what it needs. 0 or
 * -errno. */
int events_require(struct run *, struct quipu_event *, enum quipu_exactness *);

#endif
