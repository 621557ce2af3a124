/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where names of hypervisor code come from: the machine of the `quipu exec` around us, a machine by
 * name or file, or a symbol file.
 */
#ifndef QUIPU_CLI_HYPERVISOR_H
#define QUIPU_CLI_HYPERVISOR_H

#include <quipu/lpar.h>

#include "profile/profile.h"

enum hv_transport {
	HV_ANY,	    /* what machine and map say; else the machine around, else machine lpar */
	HV_MODEL,   /* a firmware of this process */
	HV_MACHINE, /* the machine around */
	HV_LINUX,   /* the partition that this host is */
};

struct hv_options {
	const char *machine; /* -m, or NULL */
	const char *map;     /* --map, or NULL */
	const char *format;  /* of the map */
	const char *base;    /* of the map; NULL: as it is */
	unsigned partition;
	enum hv_transport transport;
	bool no_lock; /* do not agree with other processes */
	bool wait;    /* delays of a modelled machine take their time */
	struct quipu_hvsym_opts sym;
};

struct hv {
	struct quipu_machine *machine;
	struct quipu_lpar *lpar;
	struct quipu_rtas_transport *t, *remote, *host; /* host: remote is it */
	struct quipu_hvsym *sym;
	struct quipu_hvsym_clock clock;
	uint64_t now;	 /* of a clock that nobody waits for, ms */
	char where[160]; /* "machine lpar partition 1 epoch 0" */
};

/* The exit status of a request that the platform does not serve; of a transport that fails. */
#define HV_EXIT_REFUSED	  3
#define HV_EXIT_TRANSPORT 4

/*
 * hv_open - 0, or an exit status with the reason printed: 2 (options, files), HV_EXIT_REFUSED: no
 *	hypervisor there, and why. hv_close - one that was opened, or zeroed.
 * hv_is_inside - are we inside a `quipu exec` whose machine has one?
 * hv_of_machine - names from @machine itself, for the end of a recording. As hv_open.
 * hv_text - the text for a recording of these addresses; to be freed.
 * hv_profile - give @profile its names when the file has none: from the machine around, or from
 *	@options if they name one. 0, or an exit status. hv_footer - what the report says of them;
 * NULL: nothing (no hypervisor samples, all named).
 */
int hv_open(struct hv *, const struct hv_options *);
void hv_close(struct hv *);
bool hv_is_inside(void);
int hv_of_machine(struct hv *, const struct quipu_machine *);
char *hv_text(struct hv *, const uint64_t *addresses, size_t n);
int hv_profile(struct profile *, const struct hv_options *);
char *hv_footer(const struct profile *);

#endif
