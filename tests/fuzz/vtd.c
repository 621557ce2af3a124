// SPDX-License-Identifier: BSD-2-Clause
/*
 * A remapping unit fed by libFuzzer: register accesses of any kind, quadwords of its tables and
 * queues changed at will, requests, interrupts, page requests, invalidation descriptors. The
 * owner's memory is small and hands out pages of exact size, so that a read beside one is found.
 * What must hold in the end, unless the input has meddled with the counters: hits never exceed
 * lookups.
 */
#include <stdlib.h>
#include <string.h>

#include <quipu/vtd.h>

#define B     UINT64_C(0x100000000)
#define PAGES 64u

struct input {
	const uint8_t *at, *end;
};

struct world {
	struct quipu_vtd *unit;
	struct quipu_vtd_memory *memory;
	struct quipu_vtd_tables *tables;
	struct quipu_vtd_queue queue;
	uint64_t ns;
	bool meddled; /* with performance monitoring */
};

static uint64_t take(struct input *in, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(in->end - in->at) < n)
		n = (size_t)(in->end - in->at);
	memcpy(&v, in->at, n);
	in->at += n;
	return v;
}

static void *page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(((struct world *)arg)->memory, addr, write);
}

static const struct quipu_vtd_ops ops = {.page = page};

/* An address: mostly in the tables, mostly in what they map, or anything. */
static uint64_t address(struct input *in)
{
	switch (take(in, 1) % 4) {
	case 0: return B + (take(in, 3) & 0xffffff);
	case 1: return 0x1000 * (1 + take(in, 1) % PAGES) + (take(in, 2) & 0xfff);
	case 2: return UINT64_C(0xfee00000) + (take(in, 3) & 0xfffff);
	default: return take(in, 8);
	}
}

static int32_t pasid(struct input *in)
{
	uint64_t v = take(in, 3);

	return v & 1 ? -1 : (int32_t)(v >> 1 & 7 ? v >> 1 & 7 : v & 0x1fffff);
}

static uint16_t rid(struct input *in)
{
	uint64_t v = take(in, 2);

	return (uint16_t)(v & 3 ? 0x3a00 + (v >> 2 & 1) : v);
}

static void dma(struct world *w, struct input *in)
{
	struct quipu_vtd_request rq = {
		.rid = rid(in), .pasid = pasid(in), .addr = address(in), .len = 64};
	struct quipu_vtd_response rs;
	uint64_t how = take(in, 1);

	rq.at = how & 3;
	rq.op = how >> 2 & 7;
	rq.priv = how >> 5 & 1;
	quipu_vtd_dma(w->unit, &rq, &rs);
}

static void page_request(struct world *w, struct input *in)
{
	struct quipu_vtd_page_request rq = {
		.rid = rid(in), .pasid = pasid(in), .addr = address(in)};
	uint64_t how = take(in, 2);

	rq.r = how & 1;
	rq.w = how & 2;
	rq.last = how & 4;
	rq.group = (uint16_t)(how >> 4);
	quipu_vtd_page_request(w->unit, &rq, NULL);
}

/* The registers of a queue or of the interrupt table: somewhere in memory, of any size and width.
 */
static void queue_registers(struct world *w, struct input *in)
{
	static const uint32_t base[] = {0x90, 0xd0, 0xb8}, end[][2] = {{0x88, 0x88}, {0xc0, 0xc8}};
	uint64_t how = take(in, 1), at = 0x1000 * (1 + take(in, 1) % PAGES);
	unsigned which = how % 3;

	quipu_vtd_write(w->unit, base[which], 8, at | (how & 8 ? 0x800 : 0) | (how >> 4 & 7));
	if (which == 2)
		quipu_vtd_write(w->unit, 0x18, 4, 0x87000000u);
	else
		quipu_vtd_write(w->unit, end[which][how >> 7], 8, (take(in, 2) & 0x7fff) << 4);
}

static void step(struct world *w, struct input *in)
{
	uint64_t qw[4];

	switch (take(in, 1) % 9) {
	case 0: dma(w, in); break;
	case 1: {
		uint32_t offset = (uint32_t)take(in, 2);

		w->meddled |= offset >= 0x2f8 && (offset < 0x500 || offset >= 0x1000);
		quipu_vtd_write(w->unit, offset, take(in, 1) & 1 ? 8 : 4, take(in, 8));
		break;
	}
	case 2: {
		uint32_t offset = (uint32_t)take(in, 2);

		quipu_vtd_read(w->unit, offset, (unsigned)take(in, 1) % 10);
		break;
	}
	case 3: {
		uint64_t at = 0x1000 * (1 + take(in, 1) % PAGES) + (take(in, 2) & 0xff8);

		quipu_vtd_memory_store(w->memory, at, take(in, 8));
		break;
	}
	case 4: {
		uint16_t who = rid(in);
		uint64_t at = UINT64_C(0xfee00000) | take(in, 3);

		quipu_vtd_msi(w->unit, who, at, (uint32_t)take(in, 4), NULL);
		break;
	}
	case 5: page_request(w, in); break;
	case 6:
		for (unsigned i = 0; i < 4; i++)
			qw[i] = i < 2 ? take(in, 8) : take(in, 1) & 1 ? take(in, 8) : 0;
		quipu_vtd_queue_submit(&w->queue, qw);
		break;
	case 7: queue_registers(w, in); break;
	default: w->ns += take(in, 4); quipu_vtd_advance(w->unit, w->ns);
	}
}

/* Counter 2i counts lookups, 2i + 1 hits; of interrupts the hits are of two kinds. */
static const struct {
	unsigned group;
	uint32_t lookup, hit;
} pairs[] = {{3, 0x1, 0x2},   {2, 0x1, 0x2},   {2, 0x4, 0x8},
	     {2, 0x10, 0x20}, {2, 0x40, 0x80}, {4, 0x1, 0x6}};
#define NPAIRS (sizeof(pairs) / sizeof(pairs[0]))

static void count(struct world *w, unsigned c, unsigned group, uint32_t events)
{
	quipu_vtd_write(w->unit, 0x1000 + 0x100 * c, 8, (uint64_t)events << 32 | group << 8);
	quipu_vtd_write(w->unit, 0x400, 8, 0xf0 | (uint64_t)c << 16);
	if (quipu_vtd_read(w->unit, 0x410, 8))
		abort();
}

static void count_pairs(struct world *w)
{
	for (unsigned i = 0; i < NPAIRS; i++) {
		count(w, 2 * i, pairs[i].group, pairs[i].lookup);
		count(w, 2 * i + 1, pairs[i].group, pairs[i].hit);
	}
}

static void check_pairs(struct world *w)
{
	for (uint32_t i = 0; i < NPAIRS; i++)
		if (quipu_vtd_read(w->unit, 0x4000 + 0x400 * (2 * i + 1), 8) >
		    quipu_vtd_read(w->unit, 0x4000 + 0x400 * 2 * i, 8))
			abort();
}

static int open_world(struct world *w, uint64_t how)
{
	bool scalable = how & 1;
	struct quipu_vtd_config config;
	struct quipu_vtd_domain *d, *outer = NULL;
	enum quipu_vtd_stage stage =
		!scalable ? QUIPU_VTD_STAGE_SS : (enum quipu_vtd_stage)(1 + (how >> 1) % 4);

	quipu_vtd_config_init(&config, how & 8 ? QUIPU_VTD_FULL : QUIPU_VTD_SPR);
	config.replacement = (enum quipu_vtd_replacement)(how >> 4 & 3);
	config.queued = how & 0x40;
	config.context_first = how & 0x80;
	w->memory = quipu_vtd_memory_new(0x1000 * (PAGES + 1), 0x1000);
	w->unit = quipu_vtd_new(&config, &ops, w, NULL);
	w->tables =
		quipu_vtd_tables_new(w->memory, scalable ? QUIPU_VTD_SCALABLE : QUIPU_VTD_LEGACY);
	if (!w->unit || !w->tables)
		return -1;
	if (stage == QUIPU_VTD_STAGE_NESTED) {
		outer = quipu_vtd_domain_new(w->tables, 7, QUIPU_VTD_STAGE_SS, 4, NULL, 0);
		quipu_vtd_map(outer, 0, 0x20000, 0x10000, 4096, 3);
	}
	d = quipu_vtd_domain_new(w->tables, 5, stage, 4, outer, 0);
	if (!d)
		return -1;
	if (stage != QUIPU_VTD_STAGE_PT)
		quipu_vtd_map(d, B, 0x8000, 0x8000, 4096, 7);
	if (stage == QUIPU_VTD_STAGE_FS)
		quipu_vtd_attach_pasid(w->tables, 0x3a00, 5, d, QUIPU_VTD_ATS);
	else
		quipu_vtd_attach(w->tables, 0x3a00, d, QUIPU_VTD_ATS);
	quipu_vtd_queue_start(&w->queue, w->unit, w->memory, scalable);
	quipu_vtd_enable(w->unit, quipu_vtd_tables_root(w->tables),
			 scalable ? QUIPU_VTD_SCALABLE : QUIPU_VTD_LEGACY);
	count_pairs(w);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, data + len};
	struct world w = {0};

	if (!open_world(&w, take(&in, 1))) {
		while (in.at < in.end)
			step(&w, &in);
		if (!w.meddled)
			check_pairs(&w);
	}
	quipu_vtd_free(w.unit);
	quipu_vtd_tables_free(w.tables);
	quipu_vtd_memory_free(w.memory);
	return 0;
}
