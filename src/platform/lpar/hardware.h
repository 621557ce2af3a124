/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hypervisor's side of the room: partitions with their memory, and the map of its code. What
 * RTAS makes of it is rtas.c.
 */
#ifndef QUIPU_PLATFORM_LPAR_HARDWARE_H
#define QUIPU_PLATFORM_LPAR_HARDWARE_H

#include <pthread.h>

#include <quipu/lpar.h>

#define LPAR_PARTITIONS 64u
#define LPAR_RANGES	16u
#define LPAR_PLAN	64u
#define LPAR_INJECTIONS 16u
#define LPAR_PAGE	4096u /* of partition memory; made when first written */
#define LPAR_BUCKETS	256u
#define LPAR_PAGES	65536u /* most pages of a partition: 256 MiB of the host's */

struct lpar_range {
	uint64_t start, size;
};

struct lpar_page {
	uint64_t number;
	struct lpar_page *next;
	uint8_t *bytes;
};

/* The host's memory behind pages: a page of its own, or the whole RMO buffer. */
struct lpar_block {
	struct lpar_block *next;
	uint8_t bytes[];
};

struct lpar_injection {
	unsigned left, period; /* calls until it comes; then again, 0: never */
	int32_t status;
};

/* A sequence of calls in process (sheet 3.1). */
struct lpar_sequence {
	bool active;
	uint32_t expect; /* the number that was issued last */
	uint32_t last;	 /* of the call before, */
	bool retry;	 /* which was told to come again */
	uint64_t iar;	 /* as it was when the sequence began */
	size_t emitted;	 /* characters of the name that were delivered */
	bool delivering; /* the delay is over: chunks follow */
};

struct quipu_partition {
	struct quipu_lpar *lpar;
	unsigned number;
	char name[64];
	uint64_t rma, rmo, rmo_size;
	unsigned cell_bytes;
	struct lpar_range ranges[LPAR_RANGES]; /* [0]: the RMA */
	unsigned nranges;
	bool authority, chunked, recheck, scribble, anywhere, time_mode;
	int32_t plan[LPAR_PLAN];
	unsigned nplan, period;
	unsigned char *cpus; /* a byte for each CPU of the machine; NULL: all */
	unsigned ncpus;

	pthread_mutex_t lock; /* everything below, for the whole of a call */
	struct lpar_sequence seq;
	uint32_t next_id;
	uint64_t epoch;	  /* the reload that the sequence belongs to */
	uint64_t lookups; /* that were answered */
	unsigned plan_pos;
	bool waiting;	   /* a window of the plan is open, */
	uint64_t ready_at; /* until then, ns */
	struct lpar_injection inject[LPAR_INJECTIONS];
	unsigned ninject;
	struct quipu_lpar_stats stats;

	pthread_mutex_t memory_lock; /* pages; taken last */
	struct lpar_page *pages[LPAR_BUCKETS];
	unsigned npages;
	struct lpar_block *blocks;
	uint8_t *window; /* the RMO buffer in one piece, once someone uses it */

	/* What the partition's operating system keeps: who may call, which buffers are in use. */
	pthread_mutex_t os_lock;
	pthread_mutex_t buffer_lock;
	uint8_t *buffers; /* a byte for each page of the RMO buffer */
};

struct quipu_lpar {
	struct quipu_partition *partition[LPAR_PARTITIONS];
	size_t npartitions;
	bool has_token;
	uint32_t token;
	uint64_t base, size; /* RTAS private area */
	char invalid_text[128];
	uint64_t (*now_ns)(void *arg);
	void *now_arg;
	pthread_mutex_t map_lock; /* taken after a partition's, never before one */
	struct quipu_hvmap *map;
	uint64_t epoch;
};

/* A partition with the defaults of the binding, not authorised. NULL: out of memory. */
struct quipu_partition *lpar_partition_new(struct quipu_lpar *, unsigned number);
struct quipu_lpar *lpar_new(struct quipu_hvmap *);
/* The RMO buffer as one piece of the host's memory, made when first asked for. NULL: it has none,
 * or out of memory. */
uint8_t *lpar_window(struct quipu_partition *);
/* Is all of [ra, ra + size) in one range? */
bool lpar_in_memory(const struct quipu_partition *, uint64_t ra, uint64_t size);
uint64_t lpar_now(const struct quipu_lpar *);

/* tree.c: node "quipu,hypervisor", or negative. */
int lpar_tree_node(const struct quipu_machine *);

#endif
