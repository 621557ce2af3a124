/* SPDX-License-Identifier: BSD-2-Clause */
/* See bed.h. */
#include "bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#define SLACK 65536

void bed_tree(struct bed *b)
{
	const char *path = getenv("QUIPU_LPAR_DTB");
	FILE *f = fopen(path ? path : "machines/lpar.dtb", "rb");
	void *raw;
	long size;

	memset(b, 0, sizeof(*b));
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	raw = malloc((size_t)size);
	b->fdt = malloc((size_t)size + SLACK);
	assert_non_null(raw);
	assert_non_null(b->fdt);
	assert_int_equal(fread(raw, 1, (size_t)size, f), size);
	fclose(f);
	assert_int_equal(fdt_open_into(raw, b->fdt, (int)size + SLACK), 0);
	free(raw);
}

int bed_node(struct bed *b, const char *path)
{
	char full[256];
	int node;

	snprintf(full, sizeof(full), "/quipu,hypervisor%s%s", *path ? "/" : "", path);
	node = fdt_path_offset(b->fdt, full);
	assert_true(node >= 0);
	return node;
}

static uint64_t bed_now(void *arg)
{
	return ((struct bed *)arg)->ns;
}

void bed_start(struct bed *b)
{
	assert_int_equal(fdt_pack(b->fdt), 0);
	b->machine = quipu_machine_parse(b->fdt, fdt_totalsize(b->fdt), "test", &b->notes);
	assert_non_null(b->machine);
	b->lpar = quipu_lpar_new(b->machine, &b->notes);
	if (!b->lpar)
		return;
	quipu_lpar_set_clock(b->lpar, bed_now, b);
	b->p = quipu_lpar_partition(b->lpar, 1);
	b->other = quipu_lpar_partition(b->lpar, 2);
	assert_non_null(b->p);
	assert_non_null(b->other);
	quipu_partition_plan(b->p, NULL, 0, 1);
	quipu_partition_option(b->p, QUIPU_PARTITION_SCRIBBLE, true);
}

void bed_open(struct bed *b)
{
	bed_tree(b);
	bed_start(b);
	assert_non_null(b->lpar);
}

void bed_stop(struct bed *b)
{
	quipu_lpar_free(b->lpar);
	quipu_machine_free(b->machine);
	quipu_notes_free(&b->notes);
	free(b->fdt);
}

uint64_t bed_work(unsigned cpu)
{
	return WORK + cpu * UINT64_C(0x1000);
}

struct rets bed_call(struct quipu_partition *p, unsigned cpu, uint32_t subfunction, uint64_t work,
		     uint32_t size, uint32_t number)
{
	const uint32_t in[8] = {TOKEN,		5,    2,     subfunction, (uint32_t)(work >> 32),
				(uint32_t)work, size, number};
	uint64_t at = ARGS + cpu * UINT64_C(0x100);
	struct quipu_partition_info info;
	uint8_t cells[80];
	unsigned w;

	quipu_partition_info(p, &info);
	w = info.cell_bytes;
	memset(cells, 0xee, sizeof(cells));
	for (unsigned i = 0; i < 8; i++) {
		uint64_t wide = __builtin_bswap64((uint64_t)(int64_t)(int32_t)in[i]);

		memcpy(cells + i * w, (uint8_t *)&wide + 8 - w, w);
	}
	assert_int_equal(quipu_partition_write(p, at, cells, 10u * w), 0);
	assert_int_equal(quipu_rtas_call(p, at), 0);
	assert_int_equal(quipu_partition_read(p, at, cells, 10u * w), 0);
	return (struct rets){(int32_t)bits_be32(cells + 8 * w + w - 4),
			     bits_be32(cells + 9 * w + w - 4)};
}

void bed_put(struct quipu_partition *p, uint64_t ra, uint64_t value)
{
	uint64_t be = __builtin_bswap64(value);

	assert_int_equal(quipu_partition_write(p, ra, &be, 8), 0);
}

uint64_t bed_get(struct quipu_partition *p, uint64_t ra)
{
	uint8_t raw[8];

	assert_int_equal(quipu_partition_read(p, ra, raw, 8), 0);
	return bits_be64(raw);
}

struct rets bed_lookup(struct quipu_partition *p, unsigned cpu, uint64_t iar, uint32_t number)
{
	bed_put(p, bed_work(cpu), iar);
	return bed_call(p, cpu, 1, bed_work(cpu), 4096, number);
}

void bed_says(struct quipu_partition *p, uint64_t work, uint64_t offset, const char *name)
{
	char text[600];

	assert_true(strlen(name) < sizeof(text));
	assert_int_equal(quipu_partition_read(p, work + 8, text, strlen(name) + 1), 0);
	assert_int_equal(text[strlen(name)], 0);
	assert_string_equal(text, name);
	assert_int_equal(bed_get(p, work), offset);
}

void bed_is(struct rets r, int32_t status, uint32_t next)
{
	assert_int_equal(r.status, status);
	assert_int_equal(r.next, next);
}
