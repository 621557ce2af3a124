/* SPDX-License-Identifier: BSD-2-Clause */
/* See cache.h. Readers share a lock; names are never freed before the cache is, so that results
 * that were handed out stay good. */
#include "platform/lpar/cache.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 65536u

struct hvsym_chunk {
	struct hvsym_chunk *next;
	size_t used, size;
	char text[];
};

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

static uint64_t hash_text(const char *s, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
	return mix(h);
}

void hvsym_cache_init(struct hvsym_cache *c)
{
	memset(c, 0, sizeof(*c));
	pthread_rwlock_init(&c->lock, NULL);
}

void hvsym_cache_free(struct hvsym_cache *c)
{
	while (c->chunks) {
		struct hvsym_chunk *next = c->chunks->next;

		free(c->chunks);
		c->chunks = next;
	}
	free(c->table);
	free(c->names);
	free(c->invalid);
	pthread_rwlock_destroy(&c->lock);
}

/* ---- answers ---- */

static struct hvsym_answer *place(const struct hvsym_cache *c, uint64_t iar)
{
	size_t i = mix(iar) & (c->size - 1);

	while (c->table[i].name && c->table[i].iar != iar)
		i = (i + 1) & (c->size - 1);
	return &c->table[i];
}

bool hvsym_cache_find(struct hvsym_cache *c, uint64_t iar, struct hvsym_answer *out)
{
	bool found = false;

	pthread_rwlock_rdlock(&c->lock);
	if (c->size) {
		*out = *place(c, iar);
		found = out->name != NULL;
	}
	pthread_rwlock_unlock(&c->lock);
	return found;
}

static bool grow(struct hvsym_cache *c)
{
	struct hvsym_cache bigger = *c;

	bigger.size = c->size ? 2 * c->size : 256;
	bigger.table = calloc(bigger.size, sizeof(*bigger.table));
	if (!bigger.table)
		return false;
	for (size_t i = 0; i < c->size; i++)
		if (c->table[i].name)
			*place(&bigger, c->table[i].iar) = c->table[i];
	free(c->table);
	c->table = bigger.table;
	c->size = bigger.size;
	return true;
}

void hvsym_cache_add(struct hvsym_cache *c, const struct hvsym_answer *a)
{
	struct hvsym_answer *at;

	pthread_rwlock_wrlock(&c->lock);
	if (c->used < CACHE_MOST && (2 * c->used < c->size || grow(c))) {
		at = place(c, a->iar);
		c->used += !at->name;
		*at = *a;
	}
	pthread_rwlock_unlock(&c->lock);
}

void hvsym_cache_flush(struct hvsym_cache *c)
{
	pthread_rwlock_wrlock(&c->lock);
	if (c->size)
		memset(c->table, 0, c->size * sizeof(*c->table));
	c->used = 0;
	c->ninvalid = 0;
	pthread_rwlock_unlock(&c->lock);
}

/* ---- names ---- */

static const char **name_place(const char **names, size_t size, const char *s, size_t len)
{
	size_t i = hash_text(s, len) & (size - 1);

	while (names[i] && (strncmp(names[i], s, len) != 0 || names[i][len]))
		i = (i + 1) & (size - 1);
	return &names[i];
}

static bool grow_names(struct hvsym_cache *c)
{
	size_t size = c->names_size ? 2 * c->names_size : 256;
	const char **names = calloc(size, sizeof(*names));

	if (!names)
		return false;
	for (size_t i = 0; i < c->names_size; i++)
		if (c->names[i])
			*name_place(names, size, c->names[i], strlen(c->names[i])) = c->names[i];
	free(c->names);
	c->names = names;
	c->names_size = size;
	return true;
}

static char *keep(struct hvsym_cache *c, const char *s, size_t len)
{
	size_t size = len + 1 > CHUNK_BYTES ? len + 1 : CHUNK_BYTES;
	struct hvsym_chunk *k = c->chunks;
	char *at;

	if (!k || k->size - k->used < len + 1) {
		k = malloc(sizeof(*k) + size);
		if (!k)
			return NULL;
		k->next = c->chunks;
		k->used = 0;
		k->size = size;
		c->chunks = k;
	}
	at = k->text + k->used;
	memcpy(at, s, len);
	at[len] = 0;
	k->used += len + 1;
	return at;
}

const char *hvsym_cache_name(struct hvsym_cache *c, const char *s, size_t len)
{
	const char **at, *name = NULL;

	pthread_rwlock_rdlock(&c->lock);
	if (c->names_size)
		name = *name_place(c->names, c->names_size, s, len);
	pthread_rwlock_unlock(&c->lock);
	if (name)
		return name;
	pthread_rwlock_wrlock(&c->lock);
	if (2 * c->names_used < c->names_size || grow_names(c)) {
		at = name_place(c->names, c->names_size, s, len);
		if (!*at) {
			*at = keep(c, s, len);
			c->names_used += *at != NULL;
		}
		name = *at;
	}
	pthread_rwlock_unlock(&c->lock);
	return name;
}

void hvsym_cache_add_invalid(struct hvsym_cache *c, const char *name)
{
	const char **more;

	pthread_rwlock_wrlock(&c->lock);
	more = reallocarray(c->invalid, c->ninvalid + 1, sizeof(*more));
	if (more) {
		c->invalid = more;
		c->invalid[c->ninvalid++] = name;
	}
	pthread_rwlock_unlock(&c->lock);
}

bool hvsym_cache_is_invalid(struct hvsym_cache *c, const char *name)
{
	bool found = false;

	pthread_rwlock_rdlock(&c->lock);
	for (size_t i = 0; i < c->ninvalid && !found; i++)
		found = c->invalid[i] == name;
	pthread_rwlock_unlock(&c->lock);
	return found;
}
