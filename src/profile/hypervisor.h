/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of hypervisor code in a recording (RTAS sheet 6.3): a text that is made when recording ends
 * and kept in the file as feature 250, and what report and script look up in it.
 *
 *	# quipu hypervisor 1
 *	# machine lpar partition 1 epoch 0
 *	# error TEXT			why some addresses have no name
 *	# invalid 0000000000a20000	an address that the firmware said is none
 *	a01f00 44 qhv_h_enter		start, size, name: perf's map; size up to the last address
 * seen
 */
#ifndef QUIPU_PROFILE_HYPERVISOR_H
#define QUIPU_PROFILE_HYPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/lpar.h>

#include "profile/perfdata.h"
#include "profile/symbols.h"

struct profile_hypervisor;

/*
 * profile_hypervisor_text - the text of results; @where: "machine lpar partition 1 epoch 0";
 *	@error: or NULL. To be freed; NULL: out of memory.
 * profile_hypervisor_read - of a text (of a file: hostile). NULL: it is none, or out of memory.
 * profile_hypervisor_addresses - the hypervisor addresses of a recording, sorted, each once, with
 *	how many samples they have. 0 or -ENOMEM; both arrays to be freed.
 */
char *profile_hypervisor_text(const struct quipu_hvsym_result *, size_t n, const char *where,
			      const char *error);
struct profile_hypervisor *profile_hypervisor_read(const char *text, size_t len);
void profile_hypervisor_free(struct profile_hypervisor *);
int profile_hypervisor_addresses(const struct perfdata *, uint64_t **addresses, uint64_t **counts,
				 size_t *n);
/* The function at @addr; "<invalid> 0x..." where the firmware said that it is no address; or NULL.
 */
const struct profile_symbol *profile_hypervisor_find(const struct profile_hypervisor *,
						     uint64_t addr);
const char *profile_hypervisor_error(const struct profile_hypervisor *);
const char *profile_hypervisor_where(const struct profile_hypervisor *);
size_t profile_hypervisor_count(const struct profile_hypervisor *);
const struct profile_symbol *profile_hypervisor_symbol(const struct profile_hypervisor *, size_t i);

/* A set of addresses in the making. */
struct profile_addresses {
	uint64_t *v, *count;
	size_t n, room; /* hash table; room is a power of two */
};
int profile_addresses_add(struct profile_addresses *, uint64_t addr);
/* Sorted and packed: the first n of v and count. */
void profile_addresses_sort(struct profile_addresses *);
void profile_addresses_free(struct profile_addresses *);

#endif
