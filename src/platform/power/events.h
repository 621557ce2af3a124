/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the POWER9 core PMU: names, codes, what moves them; see events.c. */
#ifndef QUIPU_PLATFORM_POWER_EVENTS_H
#define QUIPU_PLATFORM_POWER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/signal.h>

/* Fields of an event code (sheet section 2), as highest and lowest bit. */
#define POWER_PMCXSEL	   7, 0
#define POWER_MARK	   8, 8
#define POWER_COMBINE	   11, 10
#define POWER_UNIT	   15, 12
#define POWER_PMC	   19, 16
#define POWER_CACHE_SEL	   23, 20
#define POWER_SAMPLE	   28, 24
#define POWER_THRESH	   49, 29 /* select, stop, start, compare */
#define POWER_THRESH_SEL   31, 29
#define POWER_THRESH_STOP  35, 32
#define POWER_THRESH_START 39, 36
#define POWER_THRESH_CMP   49, 40
#define POWER_SDAR	   51, 50
#define POWER_IFM	   61, 60
#define POWER_BHRB	   62, 62
#define POWER_EBB	   63, 63
#define POWER_VALID	   UINT64_C(0xf00ffffffffffdff)

struct power_event {
	const char *name;
	uint64_t code;
	quipu_signal signal; /* NONE: truly never happens */
	quipu_signal minus;  /* ... less this one; NONE: nothing is taken away */
	enum quipu_exactness exactness;
	const char *desc;
};

extern const struct power_event power_events[];

/* power_event_by_selection - what a counter of 1..6 counts with these fields of MMCR1. NULL:
 * nothing that is known. */
const struct power_event *power_event_by_selection(unsigned pmc, unsigned unit, unsigned combine,
						   unsigned pmcxsel);
/* power_event_by_code - the event behind a code, whatever its marking and thresholds; NULL:
 * unknown. */
const struct power_event *power_event_by_code(uint64_t code);

/* The codes of generic events. 0, -EOPNOTSUPP (none) or -EINVAL. */
int power_hardware_code(uint64_t config, uint64_t *code);
int power_cache_code(uint64_t config, uint64_t *code);
/* power_blacklisted - is @code one that this revision counts wrongly? */
bool power_blacklisted(uint32_t pvr, uint64_t code);

/* The files of events/, in sysfs's order of the driver; 24. */
struct power_file {
	const char *name;
	uint64_t code;
};
extern const struct power_file power_files[];

#endif
