/* SPDX-License-Identifier: BSD-2-Clause */
/* The id table and the byte buffers of perfdata_format.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "profile/perfdata_format.h"

static int by_id(const void *a, const void *b)
{
	const struct profile_id *x = a, *y = b;

	return x->id != y->id ? (x->id < y->id ? -1 : 1)
			      : (x->event > y->event) - (x->event < y->event);
}

int profile_ids_build(struct profile_ids *ids, const struct perfdata_event *ev, size_t n)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += ev[i].nr_ids;
	*ids = (struct profile_ids){.v = calloc(total + 1, sizeof(*ids->v))};
	if (!ids->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ev[i].nr_ids; k++)
			ids->v[ids->n++] = (struct profile_id){ev[i].ids[k], (uint32_t)i};
	qsort(ids->v, ids->n, sizeof(*ids->v), by_id);
	return 0;
}

void profile_ids_free(struct profile_ids *ids)
{
	free(ids->v);
	*ids = (struct profile_ids){0};
}

bool profile_ids_event(const struct profile_ids *ids, const struct perfdata_event *ev, size_t n,
		       const void *record, size_t *event)
{
	size_t lo = 0, hi = ids->n;
	uint64_t id;

	*event = 0;
	if (n == 1 || !profile_record_id(record, &ev[0].attr, &id) || !id)
		return true;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ids->v[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == ids->n || ids->v[lo].id != id)
		return false;
	*event = ids->v[lo].event;
	return true;
}

/* Where the id lies, as far as it depends on sample_type. */
static uint64_t id_place(uint64_t type)
{
	const uint64_t fields = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |
				PERF_SAMPLE_CPU;

	return type & PERF_SAMPLE_IDENTIFIER ? PERF_SAMPLE_IDENTIFIER : type & fields;
}

bool profile_ids_agree(const struct perfdata_event *ev, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (id_place(ev[i].attr.sample_type) != id_place(ev[0].attr.sample_type))
			return false;
		if ((ev[i].attr.flags ^ ev[0].attr.flags) & QUIPU_ATTR_SAMPLE_ID_ALL)
			return false;
	}
	return n < 2 || ev[0].attr.sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID);
}

/* Room for @len more bytes, or NULL. */
static uint8_t *blob_more(struct blob *b, size_t len)
{
	size_t room = b->room ? b->room : 256;
	uint8_t *v;

	if (b->failed)
		return NULL;
	while (room - b->n < len)
		room *= 2;
	if (room != b->room) {
		v = realloc(b->v, room);
		if (!v) {
			b->failed = true;
			return NULL;
		}
		b->v = v;
		b->room = room;
	}
	b->n += len;
	return b->v + b->n - len;
}

void blob_add(struct blob *b, const void *data, size_t len)
{
	uint8_t *p = len ? blob_more(b, len) : NULL;

	if (p)
		memcpy(p, data, len);
}

void blob_zero(struct blob *b, size_t len)
{
	uint8_t *p = len ? blob_more(b, len) : NULL;

	if (p)
		memset(p, 0, len);
}

void blob_u32(struct blob *b, uint32_t v)
{
	blob_add(b, &v, sizeof(v));
}

void blob_u64(struct blob *b, uint64_t v)
{
	blob_add(b, &v, sizeof(v));
}

void blob_string(struct blob *b, const char *s)
{
	size_t len = strlen(s) + 1;
	size_t padded = (len + PERFDATA_STRING_ALIGN - 1) & ~(size_t)(PERFDATA_STRING_ALIGN - 1);

	blob_u32(b, (uint32_t)padded);
	blob_add(b, s, len);
	blob_zero(b, padded - len);
}

void blob_free(struct blob *b)
{
	free(b->v);
	*b = (struct blob){0};
}

int perfdata_fail(struct perfdata_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
	}
	return code;
}
