// SPDX-License-Identifier: BSD-2-Clause
/*
 * Devices: a network card with descriptor rings, an NVMe controller with random access, a GPU that
 * streams with a PASID, each on its own or behind a device TLB (ATS, page requests). A work item of
 * a device (a frame, a command, an access) happens at one moment of model time, item i at start + i
 * / rate.
 *
 * A device here keeps no data and knows no protocol but its pattern of requests. Traffic of longer
 * ago than a second that no counter saw is skipped, except for its last tenth of a second, which
 * warms the caches.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "engine/dma/trace.h"
#include "engine/dma/traffic.h"

#define NS_PER_S    UINT64_C(1000000000)
#define NEVER	    UINT64_MAX
#define PAGE	    UINT64_C(4096)
#define SKIP_NS	    NS_PER_S
#define WARM_NS	    (NS_PER_S / 10)
#define LAZY_UNMAPS 256u
#define LAZY_NS	    UINT64_C(10000000)
#define MAX_RETRIES 4u
#define WARM_ITEMS  1000u
#define MAX_BYTES   (UINT64_C(1) << 36)
#define PQH	    0xc0u
#define PQT	    0xc8u
#define PQA	    0xd0u
#define PRS	    0xdcu

struct dtlb_line {
	uint64_t page, hpa, used;
	uint64_t size; /* 0: empty */
	bool r, w;
};

enum direction { BY_SHARE, INTO_MEMORY, OUT_OF_MEMORY };

struct device {
	struct dma_config config;
	struct quipu_vtd_domain *domain;
	uint64_t pa;
	uint64_t items; /* done since start, or since the period began */
	uint64_t total; /* done at all */
	uint64_t due;	/* when the next item is */
	uint64_t shift; /* ns that were skipped */
	uint64_t since; /* burst: what the period is counted from */
	uint64_t random;
	enum direction direction; /* of the item in hand, when it is coupled */
	uint64_t owed[2];	  /* coupled: bytes to work off, out of memory and into it */
	struct dtlb_line *dtlb;
	uint64_t tick;
	uint64_t *given; /* the pages it was given, as a ring of config.resident */
	uint64_t ngiven;
	unsigned unmapped; /* lazily, since the last flush */
	uint64_t flushed;
	struct dma_replay *replay; /* of a trace */
	struct dma_cursor cursor;
	struct dma_record record; /* the next one, when there is one; due at record_due */
	uint64_t record_due;
	uint64_t lap; /* ns from since to the beginning of this round */
};

struct dma_traffic {
	struct quipu_vtd *unit;
	struct quipu_vtd_memory *memory;
	struct quipu_vtd_queue *queue;
	struct device *devices;
	size_t n;
	uint64_t moved[DMA_COUPLES]; /* so far */
	struct dma_totals totals;
};

/* ---- configuration ---- */

void dma_config_init(struct dma_config *c, enum dma_kind kind)
{
	*c = (struct dma_config){
		.kind = kind,
		.pasid = -1,
		.seed = 1,
		.mps = 256,
		.mrrs = 512,
		.page = PAGE,
		.int_every = kind == DMA_RING_NIC ? 16 : 1,
		.ring = 512,
		.desc_bytes = 16,
		.desc_batch = 8,
		.frame = 1500,
		.buf_size = 2048,
		.rx_percent = 100,
		.qd = 32,
		.io_bytes = 4096,
		.read_percent = 100,
		.pool_pages = 65536,
		.bytes = 64 << 20,
		.stride = 256,
		.access = 128,
		.dtlb_entries = 64,
		.dtlb_ways = 4,
		.outstanding = 8,
		.scale_num = 1,
		.scale_den = 1,
	};
}

static const char *check_common(const struct dma_config *c)
{
	if (c->mps < 64 || c->mps > 4096 || c->mrrs < 64 || c->mrrs > 4096)
		return "mps and mrrs are 64 to 4096 bytes";
	if (c->rate > NS_PER_S || c->burst > 10000000)
		return "a device does at most 10^9 items a second, and 10^7 in a burst";
	if (c->burst && (!c->burst_period_ns || c->burst_period_ns < c->burst))
		return "the period of a burst is shorter than a nanosecond for each item";
	if (!c->int_every)
		return "int-every is at least 1";
	if (c->couple && (c->rate || c->burst || (c->kind != DMA_NVME && c->kind != DMA_RING_NIC)))
		return "only a network card and an NVMe controller are coupled, and then have no rate of "
		       "their own";
	if (c->ats && (!c->outstanding || c->outstanding > 4096))
		return "a device has 1 to 4096 accesses outstanding";
	if (c->resident > 1 << 24)
		return "a device is given at most 2^24 pages";
	if (c->ats && (!c->dtlb_entries || c->dtlb_entries > 65536 || !c->dtlb_ways ||
		       c->dtlb_entries % c->dtlb_ways))
		return "a device TLB has 1 to 65536 entries, a multiple of its ways";
	return NULL;
}

static const char *check_kind(const struct dma_config *c, uint64_t *bytes)
{
	switch (c->kind) {
	case DMA_RING_NIC:
		if (!c->ring || c->ring > 65536 || !c->desc_bytes || c->desc_bytes > 256 ||
		    !c->desc_batch || c->desc_batch > c->ring || !c->frame ||
		    c->frame > c->buf_size || c->buf_size > 65536 || c->rx_percent > 100)
			return "a ring has 1 to 65536 descriptors of 1 to 256 bytes, a frame fits "
			       "its buffer of at most 64 KiB";
		/* The buffers begin on a page of their own, so that unmapping one never takes a
		 * descriptor with it. */
		*bytes = ((uint64_t)c->ring * c->desc_bytes + PAGE - 1) / PAGE * PAGE +
			 (uint64_t)c->ring * c->buf_size;
		return NULL;
	case DMA_NVME:
		if (!c->qd || c->qd > 65535 || !c->io_bytes || c->io_bytes > 16 << 20 ||
		    c->read_percent > 100 || !c->pool_pages ||
		    (uint64_t)c->pool_pages * PAGE > MAX_BYTES ||
		    (uint64_t)c->pool_pages * PAGE < c->io_bytes)
			return "queue depth 1 to 65535, IO of 1 byte to 16 MiB, in a pool that "
			       "holds at least one of them";
		*bytes = ((uint64_t)c->pool_pages + 3) * PAGE + (uint64_t)c->qd * 80;
		return NULL;
	case DMA_GPU_STREAM:
		if (!c->bytes || c->bytes > MAX_BYTES || !c->stride || !c->access ||
		    c->access > 4096 || c->write_percent > 100)
			return "a stream covers 1 byte to 64 GiB, in accesses of 1 to 4096 bytes";
		*bytes = c->bytes + c->access;
		return NULL;
	default: return "no such device";
	}
}

const char *dma_config_check(const struct dma_config *c, uint64_t *bytes)
{
	const char *why = check_common(c);

	*bytes = 0;
	if (!why)
		why = check_kind(c, bytes);
	if (!why && c->iova + *bytes < c->iova)
		why = "its buffers wrap around the address space";
	return why;
}

/* ---- one request ---- */

static uint64_t next_random(struct device *d)
{
	d->random ^= d->random << 13;
	d->random ^= d->random >> 7;
	d->random ^= d->random << 17;
	return d->random;
}

static void issue(struct dma_traffic *t, const struct device *d, uint8_t at, uint8_t op,
		  uint64_t addr, uint32_t len, struct quipu_vtd_response *rs)
{
	struct quipu_vtd_request rq = {.addr = addr,
				       .pasid = d->config.pasid,
				       .len = len,
				       .rid = d->config.rid,
				       .at = at,
				       .op = op};

	/* Without the permission to send them (EPTR), translated requests carry no PASID. */
	if (at == QUIPU_VTD_TRANSLATED)
		rq.pasid = -1;
	quipu_vtd_dma(t->unit, &rq, rs);
	t->totals.requests++;
	t->totals.faults += rs->status != QUIPU_VTD_SUCCESS;
}

/* ---- device TLB and page requests ---- */

static struct dtlb_line *dtlb_set(struct device *d, uint64_t page)
{
	unsigned sets = d->config.dtlb_entries / d->config.dtlb_ways;

	return d->dtlb + page % sets * d->config.dtlb_ways;
}

static struct dtlb_line *dtlb_find(struct device *d, uint64_t addr)
{
	for (unsigned shift = 12; shift <= 30; shift += 9) {
		struct dtlb_line *set = dtlb_set(d, addr >> shift);

		for (unsigned w = 0; w < d->config.dtlb_ways; w++)
			if (set[w].size == bits_one(shift) && set[w].page == addr >> shift) {
				set[w].used = ++d->tick;
				return &set[w];
			}
	}
	return NULL;
}

static struct dtlb_line *dtlb_fill(struct device *d, uint64_t addr,
				   const struct quipu_vtd_response *rs)
{
	unsigned shift = bits_low(rs->size);
	struct dtlb_line *set = dtlb_set(d, addr >> shift), *line = set;

	for (unsigned w = 0; w < d->config.dtlb_ways; w++) {
		if (set[w].size == rs->size && set[w].page == addr >> shift) {
			line = &set[w];
			break;
		}
		if (set[w].used < line->used)
			line = &set[w];
	}
	*line = (struct dtlb_line){
		addr >> shift, rs->addr & ~(rs->size - 1), ++d->tick, rs->size, rs->r, rs->w};
	return line;
}

static void device_drop(struct device *d, uint64_t addr, uint64_t size)
{
	for (unsigned i = 0; i < d->config.dtlb_entries; i++) {
		struct dtlb_line *l = &d->dtlb[i];
		uint64_t first = l->size ? l->page * l->size : 0;

		/* Size 0 is the whole address space. */
		if (l->size &&
		    (!size || (first <= addr + (size - 1) && first + (l->size - 1) >= addr)))
			*l = (struct dtlb_line){0};
	}
}

void dma_traffic_device_tlb(struct dma_traffic *t, uint16_t rid, int32_t pasid, uint64_t addr,
			    uint64_t size, bool global)
{
	for (size_t i = 0; i < t->n; i++) {
		struct device *d = &t->devices[i];

		if (d->dtlb && d->config.rid == rid && (global || d->config.pasid == pasid))
			device_drop(d, addr, size);
	}
}

/* A page is taken back: unmapped, then forgotten by the unit and by the device. */
static void take_back(struct dma_traffic *t, struct device *d, uint64_t page)
{
	uint64_t did = (uint64_t)quipu_vtd_domain_id(d->domain) << 16, rid = d->config.rid;
	uint64_t pasid = d->config.pasid >= 0 ? (uint64_t)d->config.pasid << 32 : 0;
	unsigned am = bits_low(d->config.page) - 12;
	uint64_t range =
		page |
		(d->config.page / 2 - 1 > 0xfff ? (d->config.page / 2 - 1) & ~UINT64_C(0xfff) : 0);
	bool large = d->config.page > PAGE;

	quipu_vtd_unmap(d->domain, page, PAGE);
	if (d->config.pasid >= 0) {
		quipu_vtd_queue_submit(t->queue,
				       (uint64_t[4]){6 | 3 << 4 | did | pasid, page | am});
		quipu_vtd_queue_submit(t->queue, (uint64_t[4]){8 | rid << 16 | pasid,
							       range | (large ? 0x800 : 0)});
	} else {
		quipu_vtd_queue_submit(t->queue, (uint64_t[4]){2 | 3 << 4 | did, page | am});
		quipu_vtd_queue_submit(t->queue, (uint64_t[4]){3 | rid << 32, range | large});
	}
}

static void give(struct dma_traffic *t, struct device *d, uint64_t page)
{
	if (quipu_vtd_map(d->domain, page, d->pa + (page - d->config.iova), d->config.page,
			  d->config.page, QUIPU_VTD_R | QUIPU_VTD_W | QUIPU_VTD_U))
		return;
	if (!d->given)
		return;
	if (d->ngiven >= d->config.resident)
		take_back(t, d, d->given[d->ngiven % d->config.resident]);
	d->given[d->ngiven++ % d->config.resident] = page;
}

/* The operating system behind the queue: gives every page that is asked for, and says so. */
static void serve_pages(struct dma_traffic *t, struct device *d)
{
	uint64_t pqa = quipu_vtd_read(t->unit, PQA, 8), base = pqa & ~UINT64_C(0xfff);
	uint64_t bytes = PAGE << bits_get(pqa, 2, 0);
	uint64_t head = quipu_vtd_read(t->unit, PQH, 8), tail = quipu_vtd_read(t->unit, PQT, 8);

	for (; head != tail; head = (head + 32) & (bytes - 1)) {
		uint64_t lo = quipu_vtd_memory_load(t->memory, base + head);
		uint64_t hi = quipu_vtd_memory_load(t->memory, base + head + 8);
		uint64_t addr = hi & ~UINT64_C(0xfff), page = addr & ~(d->config.page - 1);

		if (page >= d->config.iova)
			give(t, d, page);
		quipu_vtd_queue_submit(t->queue, (uint64_t[4]){9 | (lo & 0x100 ? 0x10 : 0) |
								       (lo & 0xfffff00000000) |
								       (lo & 0xffff0000),
							       hi & 0xffc});
	}
	quipu_vtd_write(t->unit, PQH, 8, head);
	quipu_vtd_write(t->unit, PRS, 4, 3);
}

static bool ask_for_page(struct dma_traffic *t, struct device *d, uint64_t addr, bool write)
{
	struct quipu_vtd_page_request rq = {.addr = addr,
					    .pasid = d->config.pasid,
					    .rid = d->config.rid,
					    .r = true,
					    .w = write,
					    .last = true};

	if (!d->config.pri || !t->queue)
		return false;
	t->totals.page_requests++;
	if (quipu_vtd_page_request(t->unit, &rq, NULL) != QUIPU_VTD_PAGE_POSTED)
		return false;
	serve_pages(t, d);
	return true;
}

/* Translate in the device, then send a translated request. */
static void through_dtlb(struct dma_traffic *t, struct device *d, uint8_t op, uint64_t addr,
			 uint32_t len)
{
	bool write = op == QUIPU_VTD_WRITE;
	struct dtlb_line *line = dtlb_find(d, addr);
	struct quipu_vtd_response rs;

	for (unsigned i = 0; i < MAX_RETRIES && !(line && (write ? line->w : line->r)); i++) {
		issue(t, d, QUIPU_VTD_TRANSLATION, op, addr, 8, &rs);
		line = NULL;
		if (rs.status != QUIPU_VTD_SUCCESS)
			return;
		if (rs.size && (write ? rs.w : rs.r))
			line = dtlb_fill(d, addr, &rs);
		else if (!ask_for_page(t, d, addr, write))
			return;
	}
	if (line)
		issue(t, d, QUIPU_VTD_TRANSLATED, op, line->hpa | (addr & (line->size - 1)), len,
		      &rs);
}

/* @len bytes at @addr, in as many requests as the device's limits make of it. */
static void transfer(struct dma_traffic *t, struct device *d, uint8_t op, uint64_t addr,
		     uint64_t len)
{
	uint64_t most = op == QUIPU_VTD_WRITE ? d->config.mps : d->config.mrrs;
	struct quipu_vtd_response rs;

	if (d->config.request_unit != DMA_TLP)
		most = d->config.request_unit == DMA_PAGE ? PAGE : len;
	while (len) {
		uint64_t piece = len < most ? len : most, left = PAGE - (addr & (PAGE - 1));

		if (d->config.request_unit != DMA_WHOLE && piece > left)
			piece = left;
		if (d->dtlb)
			through_dtlb(t, d, op, addr, (uint32_t)piece);
		else
			issue(t, d, QUIPU_VTD_UNTRANSLATED, op, addr, (uint32_t)piece, &rs);
		addr += piece;
		len -= piece;
	}
}

static void interrupt(struct dma_traffic *t, const struct device *d)
{
	if (!d->config.msi_addr)
		return;
	quipu_vtd_msi(t->unit, d->config.rid, d->config.msi_addr, d->config.msi_data, NULL);
	t->totals.interrupts++;
}

/* ---- the devices ---- */

/* Item number i of 100 is one of @percent: spread evenly, so that any hundred in a row have exactly
 * so many. */
static bool share(uint64_t i, unsigned percent)
{
	return (i + 1) * percent / 100 != i * percent / 100;
}

static bool inward(const struct device *d, uint64_t i, unsigned percent)
{
	return d->direction == BY_SHARE ? share(i, percent) : d->direction == INTO_MEMORY;
}

static void flush_domain(struct dma_traffic *t, struct device *d, uint64_t now)
{
	uint16_t did = quipu_vtd_domain_id(d->domain);

	quipu_vtd_queue_submit(t->queue, (uint64_t[4]){2 | 2 << 4 | (uint64_t)did << 16});
	d->unmapped = 0;
	d->flushed = now;
}

/* The buffer of a frame is given back: its pages are unmapped, forgotten, and mapped again for the
 * next frame. */
static void recycle(struct dma_traffic *t, struct device *d, uint64_t addr, uint64_t now)
{
	uint64_t first = addr & ~(PAGE - 1),
		 end = (addr + d->config.buf_size + PAGE - 1) & ~(PAGE - 1);
	uint64_t pages = (end - first) / PAGE;
	unsigned am = pages > 1 ? 64 - (unsigned)__builtin_clzll(pages - 1) : 0;
	uint16_t did = quipu_vtd_domain_id(d->domain);

	if (d->config.unmap == DMA_RECYCLE || !t->queue)
		return;
	quipu_vtd_unmap(d->domain, first, end - first);
	if (d->config.unmap == DMA_STRICT) {
		quipu_vtd_queue_submit(t->queue, (uint64_t[4]){2 | 3 << 4 | (uint64_t)did << 16,
							       first | 0x40 | am});
	} else {
		d->unmapped++;
		if (d->unmapped >= LAZY_UNMAPS || now - d->flushed >= LAZY_NS)
			flush_domain(t, d, now);
	}
	quipu_vtd_map(d->domain, first, d->pa + (first - d->config.iova), end - first, PAGE,
		      QUIPU_VTD_R | QUIPU_VTD_W);
}

static void nic_frame(struct dma_traffic *t, struct device *d, uint64_t now)
{
	const struct dma_config *c = &d->config;
	uint64_t i = d->total, slot = i % c->ring, ring_bytes = (uint64_t)c->ring * c->desc_bytes;
	uint64_t buffer = c->iova + (ring_bytes + PAGE - 1) / PAGE * PAGE + slot * c->buf_size;
	uint64_t descriptor = c->iova + slot * c->desc_bytes;

	if (i % c->desc_batch == 0) {
		uint64_t len = (uint64_t)c->desc_batch * c->desc_bytes,
			 left = (c->ring - slot) * c->desc_bytes;

		transfer(t, d, QUIPU_VTD_READ, descriptor, len < left ? len : left);
	}
	transfer(t, d, inward(d, i, c->rx_percent) ? QUIPU_VTD_WRITE : QUIPU_VTD_READ, buffer,
		 c->frame);
	transfer(t, d, QUIPU_VTD_WRITE, descriptor, c->desc_bytes);
	if ((i + 1) % c->int_every == 0)
		interrupt(t, d);
	recycle(t, d, buffer, now);
}

/* Submission queue, completion queue, a page of PRP entries, then the pool. */
static void nvme_io(struct dma_traffic *t, struct device *d, uint64_t now)
{
	const struct dma_config *c = &d->config;
	uint64_t i = d->total, slot = i % c->qd, pages = (c->io_bytes + PAGE - 1) / PAGE;
	uint64_t submission = c->iova,
		 completion = submission + ((uint64_t)c->qd * 64 + PAGE - 1) / PAGE * PAGE;
	uint64_t list = completion + ((uint64_t)c->qd * 16 + PAGE - 1) / PAGE * PAGE,
		 pool = list + PAGE;
	uint64_t places = c->pool_pages - pages + 1;

	(void)now;
	transfer(t, d, QUIPU_VTD_READ, submission + slot * 64, 64);
	if (c->prp_list && pages > 2)
		transfer(t, d, QUIPU_VTD_READ, list, 8 * pages < PAGE ? 8 * pages : PAGE);
	/* A command that reads the disk writes memory. */
	transfer(t, d, inward(d, i, c->read_percent) ? QUIPU_VTD_WRITE : QUIPU_VTD_READ,
		 pool + next_random(d) % places * PAGE, c->io_bytes);
	transfer(t, d, QUIPU_VTD_WRITE, completion + slot * 16, 16);
	if ((i + 1) % c->int_every == 0)
		interrupt(t, d);
}

static void gpu_access(struct dma_traffic *t, struct device *d, uint64_t now)
{
	const struct dma_config *c = &d->config;
	uint64_t offset = (uint64_t)((unsigned __int128)d->total * c->stride % c->bytes);

	(void)now;
	transfer(t, d, share(d->total, c->write_percent) ? QUIPU_VTD_WRITE : QUIPU_VTD_READ,
		 c->iova + offset, c->access);
}

static void (*const work[DMA_KINDS])(struct dma_traffic *, struct device *, uint64_t now) = {
	[DMA_RING_NIC] = nic_frame,
	[DMA_NVME] = nvme_io,
	[DMA_GPU_STREAM] = gpu_access,
};

/* The completion of an administrative command (keep-alive) that ends a burst. */
static void administrative(struct dma_traffic *t, struct device *d)
{
	transfer(t, d, QUIPU_VTD_WRITE, d->config.iova, 16);
}

/* ---- time ---- */

/*
 * Item i: the items of the first period lie between its first tenth and its last, those of a later
 * one in the tenth before its last. Whoever counts for a period and somewhat longer, because his
 * host was busy, has eight tenths of one until the next item comes.
 */
static uint64_t burst_at(const struct device *d, uint64_t i)
{
	const struct dma_config *c = &d->config;
	uint64_t period = i / (c->burst + 1), k = i % (c->burst + 1),
		 tenth = c->burst_period_ns / 10, from = period ? 8 * tenth : tenth;
	unsigned __int128 at = (unsigned __int128)period * c->burst_period_ns + from;

	at += (unsigned __int128)(c->burst_period_ns - tenth - from) * k / (c->burst + 1);
	at += d->since;
	return at >= NEVER ? NEVER : (uint64_t)at;
}

static uint64_t item_at(const struct device *d, uint64_t i)
{
	const struct dma_config *c = &d->config;
	unsigned __int128 at;

	if (c->burst)
		return burst_at(d, i);
	if (!c->rate)
		return NEVER;
	if (c->ats)
		i -= i % c->outstanding;
	at = (unsigned __int128)i * NS_PER_S / c->rate + c->start_ns + d->shift;
	return at >= NEVER || (c->stop_ns && at >= c->stop_ns) ? NEVER : (uint64_t)at;
}

#define LAP_GAP UINT64_C(1000) /* between the last record of a round and the first of the next */

/* When the record in hand is due; the next round's first one behind the last. */
static uint64_t record_at(struct device *d)
{
	const struct dma_config *c = &d->config;
	uint64_t last = d->record.time;
	const char *why;
	int more = dma_cursor_next(&d->cursor, &d->record, &why);
	unsigned __int128 at;

	if (!more && c->loop) {
		d->lap += bits_muldiv(last, c->scale_num, c->scale_den) + LAP_GAP;
		dma_cursor_open(&d->cursor, c->trace, c->trace_len);
		more = dma_cursor_next(&d->cursor, &d->record, &why);
	}
	if (more <= 0)
		return NEVER;
	at = (unsigned __int128)d->record.time * c->scale_num / c->scale_den + d->lap + d->since;
	return at >= NEVER ? NEVER : (uint64_t)at;
}

static void rewind_trace(struct dma_traffic *t, struct device *d)
{
	uint64_t since;

	if (!quipu_vtd_counting(t->unit, &since)) {
		d->due = NEVER;
		return;
	}
	if (since != d->since) {
		d->since = since;
		d->lap = 0;
		dma_cursor_open(&d->cursor, d->config.trace, d->config.trace_len);
		d->record_due = record_at(d);
	}
	d->due = d->record_due;
}

static void play_record(struct dma_traffic *t, struct device *d)
{
	struct dma_replay_totals before, after;
	const char *why;

	dma_replay_totals(d->replay, &before);
	t->totals.refused += dma_replay_record(d->replay, &d->record, &why) != 0;
	dma_replay_totals(d->replay, &after);
	t->totals.items++;
	t->totals.requests += after.requests - before.requests;
	t->totals.interrupts += after.interrupts - before.interrupts;
	t->totals.page_requests += after.page_requests - before.page_requests;
	t->totals.faults += after.faults - before.faults;
	d->due = d->record_due = record_at(d);
}

/* ---- work that follows programs ---- */

/* A disk's read writes memory; so does what a network card receives. */
static const struct {
	enum dma_couple what;
	bool in;
} directions[] = {{DMA_READ, true}, {DMA_RECEIVED, true}, {DMA_WRITTEN, false}, {DMA_SENT, false}};

void dma_traffic_moved(struct dma_traffic *t, const uint64_t bytes[DMA_COUPLES])
{
	for (size_t k = 0; k < sizeof(directions) / sizeof(directions[0]); k++) {
		enum dma_couple what = directions[k].what;
		uint64_t more = bytes[what] > t->moved[what] ? bytes[what] - t->moved[what] : 0;

		t->moved[what] += more;
		for (size_t i = 0; i < t->n && more; i++)
			if (t->devices[i].config.couple >> what & 1)
				t->devices[i].owed[directions[k].in] += more;
	}
}

/* Whole items; what is left waits for more. Nobody counts: the last few stand for all of them. */
static void work_off(struct dma_traffic *t, struct device *d, uint64_t now)
{
	const struct dma_config *c = &d->config;
	uint64_t unit = c->kind == DMA_NVME ? c->io_bytes : c->frame;

	for (unsigned in = 2; in-- > 0;) {
		uint64_t n = d->owed[in] / unit;

		d->owed[in] %= unit;
		if (n > WARM_ITEMS && !quipu_vtd_counting(t->unit, NULL))
			n = WARM_ITEMS;
		d->direction = in ? INTO_MEMORY : OUT_OF_MEMORY;
		while (n--) {
			work[c->kind](t, d, now);
			d->total++;
			t->totals.items++;
		}
	}
}

static void set_due(struct dma_traffic *t, struct device *d)
{
	uint64_t since;

	if (d->replay) {
		rewind_trace(t, d);
		return;
	}

	/* Counters that are programmed anew count nothing for a moment; the period goes on behind
	 * it. */
	if (d->config.burst) {
		if (!quipu_vtd_counting(t->unit, &since)) {
			d->due = NEVER;
			return;
		}
		if (since != d->since) {
			d->since = since;
			d->items = 0;
		}
	}
	d->due = item_at(d, d->items);
}

static void do_item(struct dma_traffic *t, struct device *d)
{
	if (d->replay) {
		play_record(t, d);
		return;
	}
	if (d->config.burst && d->items % (d->config.burst + 1) == d->config.burst) {
		administrative(t, d);
	} else {
		work[d->config.kind](t, d, d->due);
		d->total++;
		t->totals.items++;
	}
	d->items++;
	d->due = item_at(d, d->items);
}

/* What nobody counted need not have happened; the last of it fills the caches as it would have. */
static void skip(struct dma_traffic *t, uint64_t ns)
{
	uint64_t now = quipu_vtd_time(t->unit), gap;

	if (quipu_vtd_counting(t->unit, NULL) || ns <= now || ns - now <= SKIP_NS)
		return;
	gap = ns - now - WARM_NS;
	for (size_t i = 0; i < t->n; i++)
		if (!t->devices[i].config.burst && t->devices[i].config.start_ns <= now)
			t->devices[i].shift += gap;
	quipu_vtd_advance(t->unit, now + gap);
}

void dma_traffic_absent(struct dma_traffic *t, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < t->n; i++) {
		struct device *d = &t->devices[i];

		if (!d->config.burst && d->config.start_ns <= from)
			d->shift += to - from;
		if (d->dtlb)
			memset(d->dtlb, 0, d->config.dtlb_entries * sizeof(*d->dtlb));
	}
}

void dma_traffic_run(struct dma_traffic *t, uint64_t ns)
{
	skip(t, ns);
	for (size_t i = 0; i < t->n; i++)
		set_due(t, &t->devices[i]);
	for (;;) {
		struct device *next = NULL;

		for (size_t i = 0; i < t->n; i++)
			if (t->devices[i].due <= ns && (!next || t->devices[i].due < next->due))
				next = &t->devices[i];
		if (!next)
			break;
		quipu_vtd_advance(t->unit, next->due);
		do_item(t, next);
	}
	quipu_vtd_advance(t->unit, ns);
	for (size_t i = 0; i < t->n; i++)
		if (t->devices[i].config.couple)
			work_off(t, &t->devices[i], ns);
}

/* ---- life ---- */

struct dma_traffic *dma_traffic_new(struct quipu_vtd *unit, struct quipu_vtd_memory *memory,
				    struct quipu_vtd_queue *queue)
{
	struct dma_traffic *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->unit = unit;
	t->memory = memory;
	t->queue = queue;
	return t;
}

void dma_traffic_free(struct dma_traffic *t)
{
	for (size_t i = 0; t && i < t->n; i++) {
		free(t->devices[i].dtlb);
		free(t->devices[i].given);
		dma_replay_free(t->devices[i].replay);
	}
	if (t)
		free(t->devices);
	free(t);
}

/* Room for one more, in place behind the others; t->n is for the caller to raise. */
static struct device *one_more(struct dma_traffic *t, const struct dma_config *config)
{
	struct device *devices = reallocarray(t->devices, t->n + 1, sizeof(*devices));

	if (!devices)
		return NULL;
	t->devices = devices;
	devices[t->n] = (struct device){.config = *config, .since = NEVER, .due = NEVER};
	return &devices[t->n];
}

int dma_traffic_add_trace(struct dma_traffic *t, const struct dma_config *config,
			  struct dma_replay *replay)
{
	struct dma_cursor cursor;
	struct device *d;

	if (!config->scale_num || !config->scale_den ||
	    dma_cursor_open(&cursor, config->trace, config->trace_len)) {
		dma_replay_free(replay);
		return -EINVAL;
	}
	d = one_more(t, config);
	if (!d) {
		dma_replay_free(replay);
		return -ENOMEM;
	}
	d->replay = replay;
	t->n++;
	return 0;
}

int dma_traffic_add(struct dma_traffic *t, const struct dma_config *config,
		    struct quipu_vtd_domain *domain, uint64_t pa)
{
	struct device *d;
	uint64_t bytes;

	if (dma_config_check(config, &bytes) || (config->unmap != DMA_RECYCLE && !t->queue))
		return -EINVAL;
	d = one_more(t, config);
	if (!d)
		return -ENOMEM;
	d->domain = domain;
	d->pa = pa;
	d->random = config->seed ? config->seed : 1;
	if (config->ats) {
		d->dtlb = calloc(config->dtlb_entries, sizeof(*d->dtlb));
		if (!d->dtlb)
			return -ENOMEM;
	}
	if (config->resident) {
		d->given = calloc(config->resident, sizeof(*d->given));
		if (!d->given) {
			free(d->dtlb);
			return -ENOMEM;
		}
	}
	t->n++;
	return 0;
}

void dma_traffic_totals(const struct dma_traffic *t, struct dma_totals *totals)
{
	*totals = t->totals;
}
