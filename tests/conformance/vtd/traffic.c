// SPDX-License-Identifier: BSD-2-Clause
/*
 * D39 and the number of the document (9.2): what the devices of a machine ask of their units. Each
 * expected value is worked out beside it from what the device does, not from the model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bed.h"
#include "lab.h"

#define SECOND UINT64_C(1000000000)

/* ---- one device on one unit ---- */

static struct dma_traffic *device(struct bed *bed, struct dma_config *c)
{
	struct dma_traffic *t = dma_traffic_new(bed->unit, bed->memory, &bed->queue);

	assert_non_null(t);
	c->rid = RID;
	c->iova = B;
	c->msi_addr = 0xfee00000;
	assert_int_equal(dma_traffic_add(t, c, bed->domain, UINT64_C(0x2000000000)), 0);
	return t;
}

/* Command 64 B: 1 read. Data 4096 B at 256 B: 16 writes. Completion: 1 write. One interrupt. */
static void d39_nvme_read(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY};
	struct bed *bed = bed_new(&setup);
	struct dma_config c;
	struct dma_totals totals;
	struct dma_traffic *t;

	(void)state;
	dma_config_init(&c, DMA_NVME);
	c.rate = 1;
	c.stop_ns = 1;
	c.pool_pages = 512;
	t = device(bed, &c);
	bed_count(bed, 13, 0, 0x2, -1, 0);
	dma_traffic_run(t, SECOND);
	assert_int_equal(bed_value(bed, 13), 18);
	assert_int_equal(bed->msis, 1);
	dma_traffic_totals(t, &totals);
	assert_int_equal(totals.items, 1);
	assert_int_equal(totals.requests, 18);
	assert_int_equal(totals.faults, 0);
	dma_traffic_free(t);
	bed_free(bed);
}

/*
 * 64 received frames of 1500 B in buffers of 2 KiB: descriptors are read 8 at a time (128 B, one
 * read): 8. A frame is ceil(1500 / 256) = 6 writes: 384. A write-back each: 64. Every 16 frames an
 * interrupt: 4.
 */
static void ring_of_received_frames(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY};
	struct bed *bed = bed_new(&setup);
	struct dma_config c;
	struct dma_traffic *t;

	(void)state;
	dma_config_init(&c, DMA_RING_NIC);
	c.rate = 64;
	c.stop_ns = SECOND;
	t = device(bed, &c);
	bed_count(bed, 13, 0, 0x2, -1, 0);
	bed_count(bed, 0, 3, 0x1, -1, 0);
	bed_count(bed, 1, 3, 0x2, -1, 0);
	dma_traffic_run(t, 2 * SECOND);
	assert_int_equal(bed_value(bed, 13), 8 + 384 + 64);
	assert_int_equal(bed_value(bed, 0), 8 + 384 + 64);
	/* 64 descriptors lie in one page, 64 buffers in 32: each misses once. */
	assert_int_equal(bed_value(bed, 0) - bed_value(bed, 1), 1 + 32);
	assert_int_equal(bed->msis, 4);
	dma_traffic_free(t);
	bed_free(bed);
}

/* Unmapping after each frame: the next frame in that page misses again. Two buffers a page: 64
 * misses, and descriptors. */
static void strict_unmapping_costs_a_walk_a_frame(void **state)
{
	struct bed_setup setup = {.kind = BED_LEGACY};
	struct bed *bed = bed_new(&setup);
	struct dma_config c;
	struct dma_traffic *t;

	(void)state;
	dma_config_init(&c, DMA_RING_NIC);
	c.rate = 64;
	c.stop_ns = SECOND;
	c.unmap = DMA_STRICT;
	t = device(bed, &c);
	bed_count(bed, 0, 3, 0x1, -1, 0);
	bed_count(bed, 1, 3, 0x2, -1, 0);
	dma_traffic_run(t, 2 * SECOND);
	assert_int_equal(bed_value(bed, 0) - bed_value(bed, 1), 1 + 64);
	dma_traffic_free(t);
	bed_free(bed);
}

/*
 * A device TLB over 8 pages, 4 accesses a page: each page is asked for once (8 translation
 * requests), each access goes out translated (32). With page requests each page is missing first: 8
 * requests, and asked for again after each.
 */
static void device_tlb_with_page_requests(void **state)
{
	(void)state;
	for (unsigned pri = 0; pri < 2; pri++) {
		struct bed_setup setup = {.kind = BED_FS, .pages = pri ? 1 : 8};
		struct bed *bed = bed_new(&setup);
		struct dma_config c;
		struct dma_totals totals;
		struct dma_traffic *t;

		if (pri) /* not even the first page */
			assert_int_equal(quipu_vtd_unmap(bed->domain, B, 4096), 0);
		bed_wr64(bed, 0xd0, quipu_vtd_memory_alloc(bed->memory, 1));
		dma_config_init(&c, DMA_GPU_STREAM);
		c.pasid = 5;
		c.rate = 32;
		c.stop_ns = SECOND;
		c.bytes = 8 * 4096;
		c.stride = 1024;
		c.ats = true;
		c.outstanding = 1;
		c.pri = pri;
		t = device(bed, &c);
		bed_count(bed, 13, 0, 0x2, 3, 1 << 1);
		bed_count(bed, 12, 0, 0x2, 3, 1 << 2);
		bed_count(bed, 0, 1, 0x40, -1, 0);
		dma_traffic_run(t, 2 * SECOND);
		dma_traffic_totals(t, &totals);
		assert_int_equal(bed_value(bed, 13), pri ? 16 : 8);
		assert_int_equal(bed_value(bed, 12), 32);
		assert_int_equal(bed_value(bed, 0), pri ? 8 : 0);
		assert_int_equal(totals.page_requests, pri ? 8 : 0);
		assert_int_equal(bed->responses, pri ? 8 : 0);
		assert_int_equal(totals.faults, 0);
		dma_traffic_free(t);
		bed_free(bed);
	}
}

/* ---- whole machines ---- */

/*
 * The document's command: 20,497 commands x 18 requests, and one administrative completion.
 * Whenever it is run, and also when the host lets perf wait for most of a second before it stops
 * counting; then for more seconds at one time.
 */
static void the_number_of_the_document(void **state)
{
	static const struct {
		uint64_t ns, bursts;
	} rows[] = {
		{1002592074, 1},	   {SECOND, 1},
		{UINT64_C(1790000000), 1}, {2 * SECOND, 2},
		{UINT64_C(2790000000), 2}, {4 * SECOND, 4},
	};
	struct lab *lab = lab_new("vtd", NULL, -1);

	(void)state;
	for (unsigned run = 0; run < sizeof(rows) / sizeof(rows[0]); run++) {
		struct quipu_event *e;

		lab_pass(lab, run * UINT64_C(777123456));
		e = lab_open(lab, "dmar1/iommu_requests,filter_ats_en=0x1,filter_ats=0x1/", true,
			     NULL);
		quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0);
		lab_pass(lab, rows[run].ns);
		quipu_event_ioctl(e, PERF_EVENT_IOC_DISABLE, 0);
		assert_int_equal(lab_count(e), 368947 * rows[run].bursts);
		quipu_event_close(e);
	}
	lab_free(lab);
}

/* Events that take turns stop and start all counters every 4 ms; the devices do not begin anew. */
static void taking_turns_repeats_nothing(void **state)
{
	struct lab *lab = lab_new("vtd", NULL, -1);
	struct dma_totals totals;

	(void)state;
	for (unsigned i = 0; i < 13; i++)
		lab_open(lab, "dmar1/iotlb_lookup/", false, NULL);
	lab_pass(lab, SECOND);
	dma_traffic_totals(vtd_room_traffic(lab->room, 1), &totals);
	assert_int_equal(totals.items, 20497);
	assert_int_equal(totals.requests, 368947);
	lab_free(lab);
}

/* Read often or once: the same. (Traffic is made when it is looked at; it must not matter when.) */
static void looking_changes_nothing(void **state)
{
	static const char *const events[] = {"dmar0/iommu_requests/", "dmar0/iotlb_hit/",
					     "dmar0/iommu_mrds/", "dmar0/int_cache_lookup/"};
	uint64_t value[2][4];

	(void)state;
	for (unsigned often = 0; often < 2; often++) {
		struct lab *lab = lab_new("vtd", NULL, -1);
		struct quipu_event *e[4];

		for (unsigned i = 0; i < 4; i++)
			e[i] = lab_open(lab, events[i], false, NULL);
		for (unsigned i = 0; i < 997; i++) {
			lab_pass(lab, 1000000);
			for (unsigned k = 0; often && k < 4; k++)
				lab_count(e[k]);
		}
		for (unsigned i = 0; i < 4; i++)
			value[often][i] = lab_count(e[i]);
		lab_free(lab);
	}
	assert_memory_equal(value[0], value[1], sizeof(value[0]));
	for (unsigned i = 0; i < 4; i++)
		assert_true(value[0][i] > 0);
}

/* A unit that nobody looked at for an hour is up to date at once, and the same every time. */
static void an_hour_unwatched(void **state)
{
	uint64_t value[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct lab *lab = lab_new("vtd", NULL, -1);
		struct quipu_event *e;

		lab->now = 3600 * SECOND;
		e = lab_open(lab, "dmar0/iommu_requests/", false, NULL);
		lab_pass(lab, SECOND / 10);
		value[i] = lab_count(e);
		lab_free(lab);
	}
	assert_int_equal(value[0], value[1]);
	/*
	 * A tenth of a second: 2000 frames (250 reads of descriptors, a write-back each; three
	 * quarters received with 6 writes, one quarter sent with ceil(1500 / 512) = 3 reads) and
	 * 1000 commands of 18 requests (700 of reads) or, for those that write the disk, 2 and 4096
	 * / 512 = 8 reads.
	 */
	assert_int_equal(value[0], 250 + 2000 + 1500 * 6 + 500 * 3 + 700 * 18 + 300 * 10);
}

/* The machine tells its time or does not: devices that nobody counted have done the same. */
static void time_told_changes_nothing(void **state)
{
	uint64_t value[2];

	(void)state;
	for (unsigned told = 0; told < 2; told++) {
		struct lab *lab = lab_new("vtd", NULL, -1);
		struct quipu_event *e;

		for (unsigned i = 0; i < 500; i++) {
			lab->now += 10000000;
			if (told)
				quipu_platform_vtd.advance(lab->room, lab->now);
		}
		e = lab_open(lab, "dmar0/iotlb_hit/", false, NULL);
		for (unsigned i = 0; i < 50; i++) {
			lab->now += 1000000;
			if (told)
				quipu_platform_vtd.advance(lab->room, lab->now);
		}
		value[told] = lab_count(e);
		lab_free(lab);
	}
	assert_int_equal(value[0], value[1]);
	assert_true(value[0] > 0);
}

/* Two counters whose filters exclude each other share the traffic between them; without filter it
 * is the sum. */
static void filters_partition_the_traffic(void **state)
{
	struct lab *lab = lab_new("vtd-full", NULL, -1);
	static const char *const events[] = {
		"dmar0/iommu_requests/",
		"dmar0/iommu_requests,filter_requester_id_en=1,filter_requester_id=0x1800/",
		"dmar0/iommu_requests,filter_requester_id_en=1,filter_requester_id=0x1900/",
		"dmar0/iommu_requests,filter_requester_en=1,filter_requester_id=0x3b00/",
		"dmar0/iommu_requests,filter_pasid_en=1,filter_pasid=5/",
		"dmar0/iommu_requests,filter_pasid_en=1,filter_pasid=0x200000/",
		"dmar0/iotlb_lookup/",
		"dmar0/iotlb_lookup,filter_domain_en=1,filter_domain=2/",
		"dmar0/iotlb_lookup,filter_domain_en=1,filter_domain=1/",
		"dmar0/iotlb_lookup,filter_domain_en=1,filter_domain=4/",
		"dmar0/"
		"iotlb_hit,filter_page_table_en=1,filter_page_table=2,filter_requester_id_en=1,"
		"filter_requester_id=0x3b00/",
		"dmar0/"
		"iotlb_hit,filter_page_table_en=1,filter_page_table=1,filter_requester_id_en=1,"
		"filter_requester_id=0x3b00/",
	};
	struct quipu_event *e[sizeof(events) / sizeof(events[0])];
	uint64_t v[sizeof(events) / sizeof(events[0])];

	(void)state;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		e[i] = lab_open(lab, events[i], false, NULL);
	lab_pass(lab, SECOND);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		v[i] = lab_count(e[i]);
	assert_int_equal(v[0], v[1] + v[2] + v[3]);
	assert_int_equal(v[0], v[4] + v[5]);
	assert_int_equal(v[3], v[4]); /* only the GPU has a PASID */
	assert_int_equal(v[6], v[7] + v[8] + v[9]);
	/* The access at time 0 came before the counters. */
	assert_int_equal(v[3], 50000);
	assert_int_equal(v[8], 50000);
	/*
	 * 50001 accesses at 256 bytes cover 12.8 MB: pages 0 to 6 of 2 MiB. Page 0 was met before
	 * the counters; of each page one access in four writes, and the first of these misses once
	 * more, to set the dirty bit: 6 + 7 misses. All hits are of 2 MiB pages.
	 */
	assert_int_equal(v[10], 50000 - 6 - 7);
	assert_int_equal(v[11], 0);
	lab_free(lab);
}

/* Every event of the full machine can move. */
static void every_event_moves(void **state)
{
	struct lab *lab = lab_new("vtd-full", NULL, -1);
	static const struct {
		const char *name;
		unsigned unit;
	} still[] = {{"hpt_nonleaf_lookup", 0},
		     {"hpt_nonleaf_hit", 0},
		     {"hpt_leaf_lookup", 0},
		     {"hpt_leaf_hit", 0}};

	(void)state;
	for (size_t i = 0; i < vtd_event_names_n; i++) {
		uint64_t total = 0;
		bool moves = true;

		for (size_t k = 0; k < sizeof(still) / sizeof(still[0]); k++)
			moves &= strcmp(still[k].name, vtd_event_names[i].name) != 0;
		for (unsigned unit = 0; unit < 2; unit++) {
			struct quipu_event *e;
			char text[96];

			snprintf(text, sizeof(text), "dmar%u/%s/", unit, vtd_event_names[i].name);
			e = lab_open(lab, text, false, NULL);
			lab_pass(lab, SECOND / 20);
			total += lab_count(e);
			quipu_event_close(e);
		}
		if (moves && !total)
			fail_msg("%s stays 0", vtd_event_names[i].name);
	}
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(d39_nvme_read),
		cmocka_unit_test(ring_of_received_frames),
		cmocka_unit_test(strict_unmapping_costs_a_walk_a_frame),
		cmocka_unit_test(device_tlb_with_page_requests),
		cmocka_unit_test(the_number_of_the_document),
		cmocka_unit_test(taking_turns_repeats_nothing),
		cmocka_unit_test(looking_changes_nothing),
		cmocka_unit_test(an_hour_unwatched),
		cmocka_unit_test(time_told_changes_nothing),
		cmocka_unit_test(filters_partition_the_traffic),
		cmocka_unit_test(every_event_moves),
	};

	return cmocka_run_group_tests_name("conformance vtd traffic", tests, NULL, NULL);
}
