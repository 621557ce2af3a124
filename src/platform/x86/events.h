/* SPDX-License-Identifier: BSD-2-Clause */
/* Event codes of the modelled x86-64 PMU: what moves each one; see events.c. */
#ifndef QUIPU_PLATFORM_X86_EVENTS_H
#define QUIPU_PLATFORM_X86_EVENTS_H

#include <stdint.h>

#include <quipu/attr.h>
#include <quipu/signal.h>

#define X86_CODE(event, umask) ((uint16_t)((event) | (umask) << 8))
#define X86_FIXED_NONE	       0xff

struct x86_event {
	const char *name; /* in events/ */
	uint16_t code;	  /* event select, unit mask << 8 */
	uint8_t fixed;	  /* the fixed counter that counts it too, or X86_FIXED_NONE */
	quipu_signal signal;
	const char *desc;
};

extern const struct x86_event x86_events[];
extern const unsigned x86_nevents;

const struct x86_event *x86_event_by_code(uint16_t code);
const struct x86_event *x86_event_by_signal(quipu_signal);
/* The generic events of Linux. NULL: this PMU has none for it. */
const struct x86_event *x86_event_hardware(uint64_t config);
const struct x86_event *x86_event_cache(uint64_t config);

#endif
