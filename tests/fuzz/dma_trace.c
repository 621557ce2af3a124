// SPDX-License-Identifier: BSD-2-Clause
/* DMA traces fed by libFuzzer, text or binary, replayed on a unit. What is read must come back from
 * its binary form. */
#include <stdlib.h>
#include <string.h>

#include "engine/dma/trace.h"

static void *page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(arg, addr, write);
}

static const struct quipu_vtd_ops ops = {.page = page};

static void replay(struct dma_replay *p, struct dma_record *r)
{
	uint8_t bytes[DMA_BINARY_RECORD], again[DMA_BINARY_RECORD];
	struct dma_record back;
	const char *why;

	dma_trace_encode(r, bytes);
	if (!dma_trace_record(bytes, &back, &why)) {
		dma_trace_encode(&back, again);
		if (memcmp(bytes, again, sizeof(bytes)))
			abort();
	}
	/* A map of gigabytes is right, and slow. */
	if ((r->kind == DMA_RECORD_MAP || r->kind == DMA_RECORD_UNMAP) && r->size > 1 << 20)
		return;
	dma_replay_record(p, r, &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct quipu_vtd_memory *memory = quipu_vtd_memory_new(UINT64_C(1) << 40, 0x1000);
	enum quipu_vtd_mode mode = len && data[0] & 1 ? QUIPU_VTD_SCALABLE : QUIPU_VTD_LEGACY;
	struct quipu_vtd_config config;
	struct quipu_vtd *unit;
	struct dma_replay *p;
	struct dma_cursor cursor;
	struct dma_record r;
	const char *why;
	int more;

	quipu_vtd_config_init(&config, QUIPU_VTD_FULL);
	unit = quipu_vtd_new(&config, &ops, memory, NULL);
	p = dma_replay_new(unit, memory, mode);
	if (!dma_cursor_open(&cursor, data, len))
		while ((more = dma_cursor_next(&cursor, &r, &why)) != 0)
			if (more > 0)
				replay(p, &r);
	dma_replay_free(p);
	quipu_vtd_free(unit);
	quipu_vtd_memory_free(memory);
	return 0;
}
