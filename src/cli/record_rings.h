/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's rings while quipu record runs on the host, and who empties them: the command itself,
 * or as many threads as the samples to be expected need.
 */
#ifndef QUIPU_CLI_RECORD_RINGS_H
#define QUIPU_CLI_RECORD_RINGS_H

#include <pthread.h>

#include "platform/host/host.h"
#include "profile/perfdata.h"

struct record_reader;

struct record_rings {
	struct host_ring *ring; /* by position in the list of CPUs */
	int *owner;		/* the descriptor whose ring it is; -1 */
	size_t n;
	struct perfdata_writer *file; /* not owned */
	struct record_reader *readers;
	size_t nr_readers;
	int stop_fd; /* eventfd: readable when the readers shall end */
	/* under the lock, as the file is while there are readers */
	pthread_mutex_t lock;
	int error;	/* of a write */
	unsigned round; /* of all rings */
	size_t passed;	/* readers that were around theirs in this round */
};

/* record_rings_new - for @n CPUs, none mapped. 0, -ENOMEM. record_rings_free - unmaps them. */
int record_rings_new(struct record_rings *, size_t n);
void record_rings_free(struct record_rings *);

/*
 * record_rings_bytes - how large a ring shall be where @expected bytes a second come to each
 * CPU.
 * record_rings_readers - how many threads shall empty the rings; 1: none besides the caller.
 */
size_t record_rings_bytes(const struct record_rings *, uint64_t expected);
size_t record_rings_readers(const struct record_rings *, uint64_t expected);

/* record_rings_read - @n threads empty the rings from now on. 0 or -errno: none does.
 * record_rings_end - and no longer; what is left is record_rings_drain's. */
int record_rings_read(struct record_rings *, size_t n);
void record_rings_end(struct record_rings *);

/* record_rings_drain - once around all rings, where no thread does it. */
void record_rings_drain(struct record_rings *);
/* record_rings_error - errno of a write that failed, negative; 0. */
int record_rings_error(struct record_rings *);

#endif
