// SPDX-License-Identifier: BSD-2-Clause
/* See bed.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"

#define MEMORY_LIMIT (UINT64_C(1) << 40)
#define TABLES_AT    UINT64_C(0x4000000)
#define DATA_AT	     UINT64_C(0x2000000000)

static void *page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(((struct bed *)arg)->memory, addr, write);
}

static void msi(void *arg, uint64_t addr, uint32_t data)
{
	struct bed *bed = arg;

	bed->msis++;
	bed->msi_addr = addr;
	bed->msi_data = data;
}

static void device_tlb(void *arg, uint16_t rid, int32_t pasid, uint64_t addr, uint64_t size,
		       bool global)
{
	struct bed *bed = arg;

	(void)rid;
	(void)pasid;
	(void)global;
	bed->device_tlbs++;
	bed->device_tlb_addr = addr;
	bed->device_tlb_size = size;
}

static void page_response(void *arg, uint16_t rid, int32_t pasid, unsigned group, unsigned code)
{
	struct bed *bed = arg;

	(void)rid;
	(void)pasid;
	(void)group;
	bed->responses++;
	bed->response_code = code;
}

static const struct quipu_vtd_ops ops = {page, msi, device_tlb, page_response};

struct bed *bed_plain(const struct quipu_vtd_config *config)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	const char *why = NULL;

	assert_non_null(bed);
	bed->config = *config;
	bed->memory = quipu_vtd_memory_new(MEMORY_LIMIT, TABLES_AT);
	assert_non_null(bed->memory);
	bed->unit = quipu_vtd_new(config, &ops, bed, &why);
	if (!bed->unit)
		print_message("%s\n", why ? why : "out of memory");
	assert_non_null(bed->unit);
	return bed;
}

static void make_tables(struct bed *bed, const struct bed_setup *s)
{
	enum quipu_vtd_mode mode = s->kind == BED_LEGACY || (s->kind == BED_PT && !s->scalable)
					   ? QUIPU_VTD_LEGACY
					   : QUIPU_VTD_SCALABLE;
	unsigned levels = s->levels ? s->levels : 4, flags = s->no_ats ? 0 : QUIPU_VTD_ATS;
	uint64_t page_size = s->page ? s->page : 4096, data = DATA_AT;
	struct quipu_vtd_tables *t = quipu_vtd_tables_new(bed->memory, mode);

	bed->tables = t;
	assert_non_null(t);
	switch (s->kind) {
	case BED_LEGACY:
		bed->domain = quipu_vtd_domain_new(t, 5, QUIPU_VTD_STAGE_SS, levels, NULL, 0);
		break;
	case BED_SS:
		bed->domain = quipu_vtd_domain_new(t, 7, QUIPU_VTD_STAGE_SS, levels, NULL, 0);
		break;
	case BED_FS:
		bed->domain = quipu_vtd_domain_new(t, 1, QUIPU_VTD_STAGE_FS, levels, NULL, 0);
		break;
	case BED_NESTED:
		bed->outer = quipu_vtd_domain_new(t, 7, QUIPU_VTD_STAGE_SS, 4, NULL, 0);
		assert_int_equal(quipu_vtd_map(bed->outer, 0, DATA_AT, 8 << 20, 4096, 3), 0);
		bed->domain = quipu_vtd_domain_new(t, 7, QUIPU_VTD_STAGE_NESTED, levels, bed->outer,
						   0x200000);
		data = 0x600000;
		break;
	case BED_PT:
		bed->domain = quipu_vtd_domain_new(t, 1, QUIPU_VTD_STAGE_PT, 0, NULL, 0);
		break;
	}
	assert_non_null(bed->domain);
	if (s->kind != BED_PT) {
		unsigned pages = s->pages ? s->pages : s->kind == BED_NESTED ? 512 : 1024;

		assert_int_equal(
			quipu_vtd_map(bed->domain, B, data, pages * page_size, page_size, 7), 0);
	}
	if (s->kind == BED_FS) {
		assert_int_equal(quipu_vtd_attach_pasid(t, RID, 5, bed->domain, flags), 0);
		if (s->pasid6)
			assert_int_equal(quipu_vtd_attach_pasid(t, RID, 6, bed->domain, flags), 0);
	} else {
		assert_int_equal(quipu_vtd_attach(t, RID, bed->domain, flags), 0);
	}
	if (s->absent) {
		uint64_t at = quipu_vtd_context_address(t, RID),
			 entry = quipu_vtd_memory_load(bed->memory, at);

		quipu_vtd_memory_store(bed->memory, at,
				       s->absent == 1 ? entry & ~UINT64_C(1) : entry | 2);
	}
	assert_int_equal(quipu_vtd_queue_start(&bed->queue, bed->unit, bed->memory,
					       mode == QUIPU_VTD_SCALABLE),
			 0);
	if (!s->te_off)
		quipu_vtd_enable(bed->unit, quipu_vtd_tables_root(t), mode);
}

struct bed *bed_new(const struct bed_setup *s)
{
	struct quipu_vtd_config config;
	struct bed *bed;

	quipu_vtd_config_init(&config, s->full ? QUIPU_VTD_FULL : QUIPU_VTD_SPR);
	config.context_first = s->context_first;
	config.queued = s->queued;
	if (s->outstanding)
		config.max_outstanding = s->outstanding;
	bed = bed_plain(&config);
	make_tables(bed, s);
	return bed;
}

void bed_free(struct bed *bed)
{
	quipu_vtd_free(bed->unit);
	quipu_vtd_tables_free(bed->tables);
	quipu_vtd_memory_free(bed->memory);
	free(bed);
}

uint64_t bed_rd64(struct bed *bed, uint32_t offset)
{
	return quipu_vtd_read(bed->unit, offset, 8);
}

uint32_t bed_rd32(struct bed *bed, uint32_t offset)
{
	return (uint32_t)quipu_vtd_read(bed->unit, offset, 4);
}

void bed_wr64(struct bed *bed, uint32_t offset, uint64_t value)
{
	quipu_vtd_write(bed->unit, offset, 8, value);
}

void bed_wr32(struct bed *bed, uint32_t offset, uint32_t value)
{
	quipu_vtd_write(bed->unit, offset, 4, value);
}

uint64_t bed_command(struct bed *bed, unsigned code, uint64_t operand)
{
	bed_wr64(bed, 0x400, code | operand << 16);
	return bed_rd64(bed, 0x410);
}

void bed_count(struct bed *bed, unsigned c, unsigned group, uint32_t events, int filter,
	       uint32_t value)
{
	uint32_t block = 0x1000 + 0x100 * c;

	bed_wr64(bed, block, (uint64_t)events << 32 | group << 8);
	for (int f = 0; f < 5; f++)
		bed_wr32(bed, block + 8 + 4 * (uint32_t)f, f == filter ? value | 0x80000000u : 0);
	bed_wr64(bed, 0x4000 + 0x400 * c, 0);
	assert_int_equal(bed_command(bed, 0xf0, c), 0);
}

uint64_t bed_value(struct bed *bed, unsigned c)
{
	return bed_rd64(bed, 0x4000 + 0x400 * c);
}

static uint64_t address(const char *word)
{
	if (word[0] != 'B')
		return strtoull(word, NULL, 16);
	return word[1] == '+' ? B + strtoull(word + 2, NULL, 16) : B;
}

static void requests(struct bed *bed, int32_t pasid, char kind, char *words)
{
	static const char kinds[] = "rwaztTx";
	static const uint8_t op[] = {0, 1, 2, 3, 0, 1, 0}, at[] = {0, 0, 0, 0, 1, 1, 2};
	const char *which = strchr(kinds, kind);
	char *word = strtok(words, " "), *count = strtok(NULL, " "), *stride = strtok(NULL, " ");
	struct quipu_vtd_request rq = {.pasid = pasid, .len = 64, .rid = RID};
	unsigned long n = count ? strtoul(count, NULL, 0) : 1;

	assert_non_null(which);
	assert_non_null(word);
	rq.op = op[which - kinds];
	rq.at = at[which - kinds];
	rq.addr = address(word);
	for (unsigned long i = 0; i < n; i++) {
		quipu_vtd_dma(bed->unit, &rq, &bed->last);
		rq.addr += stride ? strtoull(stride, NULL, 0) : 0;
	}
}

static void step(struct bed *bed, char *text)
{
	unsigned long long qw0, qw1 = 0;
	int32_t pasid = -1;

	text += strspn(text, " ");
	if (!strncmp(text, "inv ", 4)) {
		assert_true(sscanf(text + 4, "%llx %llx", &qw0, &qw1) >= 1);
		assert_int_equal(quipu_vtd_queue_submit(&bed->queue, (uint64_t[4]){qw0, qw1}), 0);
		return;
	}
	if (*text == 'p') {
		pasid = (int32_t)strtol(text + 1, &text, 0);
		text += strspn(text, " ");
	}
	requests(bed, pasid, *text, text + 1);
}

void bed_run(struct bed *bed, const char *script)
{
	char copy[512], *next = copy;

	assert_true(strlen(script) < sizeof(copy));
	strcpy(copy, script);
	while (next) {
		char *text = strsep(&next, ";");

		if (text[strspn(text, " ")])
			step(bed, text);
	}
}
