/* SPDX-License-Identifier: BSD-2-Clause */
/* What a resolver knows already: answers by address, and the one copy of each name. */
#ifndef QUIPU_PLATFORM_LPAR_CACHE_H
#define QUIPU_PLATFORM_LPAR_CACHE_H

#include <pthread.h>

#include <quipu/lpar.h>

#define CACHE_MOST (1u << 18) /* answers that are kept */

struct hvsym_answer {
	uint64_t iar, offset;
	const char *name; /* NULL: a free place of the table */
	uint8_t state;
};

struct hvsym_chunk;

struct hvsym_cache {
	pthread_rwlock_t lock;
	struct hvsym_answer *table; /* open addressing, a power of two, at most half full */
	size_t size, used;
	const char **names; /* hash table of the names */
	size_t names_size, names_used;
	struct hvsym_chunk *chunks; /* where the names lie; grows only */
	const char **invalid;	    /* texts that mean "no address" here */
	size_t ninvalid;
};

void hvsym_cache_init(struct hvsym_cache *);
void hvsym_cache_free(struct hvsym_cache *);
bool hvsym_cache_find(struct hvsym_cache *, uint64_t iar, struct hvsym_answer *);
/* Keep an answer; no memory for it is no error. */
void hvsym_cache_add(struct hvsym_cache *, const struct hvsym_answer *);
/* The one copy of @name, or NULL: out of memory. */
const char *hvsym_cache_name(struct hvsym_cache *, const char *name, size_t len);
/* Forget the answers, keep the names. */
void hvsym_cache_flush(struct hvsym_cache *);
/* @name, of the pool, turned out to mean "no address" here; and the question. */
void hvsym_cache_add_invalid(struct hvsym_cache *, const char *name);
bool hvsym_cache_is_invalid(struct hvsym_cache *, const char *name);

#endif
