/* SPDX-License-Identifier: BSD-2-Clause */
/* A machine to look at: its PMUs made and registered, with no program and no engine process behind
 * them. */
#ifndef QUIPU_CLI_MODEL_H
#define QUIPU_CLI_MODEL_H

#include <quipu/system.h>

struct model {
	struct quipu_machine *machine; /* owned */
	struct quipu_manual_signals *signals;
	struct quipu_system *system;
	struct quipu_core *core; /* of the system */
};

/*
 * model_open - takes @machine over, also when it fails (-errno, with a note of kind WRONG). The
 * signals are those that the engine would count, so that every event is as available as it would be
 * for a program.
 */
int model_open(struct model *, struct quipu_machine *machine, struct quipu_notes *);
void model_close(struct model *);

enum event_kind { EVENT_HARDWARE, EVENT_SOFTWARE, EVENT_CACHE, EVENT_PMU, EVENT_RAW, EVENT_KINDS };

/* An event that a user can name on this machine. */
struct model_event {
	enum event_kind kind;
	char *name;	   /* as -e takes it: "cycles", "cpu/loads/" */
	const char *alias; /* or NULL */
	const char *desc;  /* or NULL */
	const char *terms; /* of a PMU event */
	const char *unit;  /* or NULL */
	const char *scale; /* or NULL */
	const struct quipu_pmu *pmu;
	uint32_t type; /* of a generic event */
	uint64_t config;
	bool has_signal;
	quipu_signal signal;
	enum quipu_exactness exactness;
	char *unavailable; /* why it cannot be counted; NULL: it can */
};

struct model_events {
	struct model_event *items;
	size_t n;
};

/* model_events - every event, in the order of perf list: hardware, software, cache, each PMU's own,
 * raw. 0, -ENOMEM. */
int model_events(const struct model *, struct model_events *);
void model_events_free(struct model_events *);

/* "exact", "modelled", "host", or "not modelled" for one that is unavailable. */
const char *model_event_label(const struct model_event *);
const char *model_event_kind(enum event_kind);

#endif
