/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device traffic: modelled devices that make DMA requests, interrupts and page requests of a
 * remapping unit at rates in model time. Pure: it drives quipu/vtd.h, its caller says how far time
 * has come.
 */
#ifndef ENGINE_DMA_TRAFFIC_H
#define ENGINE_DMA_TRAFFIC_H

#include <quipu/vtd.h>

enum dma_kind { DMA_RING_NIC, DMA_NVME, DMA_GPU_STREAM, DMA_KINDS, DMA_TRACE = DMA_KINDS };
enum dma_unmap { DMA_RECYCLE, DMA_STRICT, DMA_LAZY };
/* What of a program a device's work follows (quipu,couple). */
enum dma_couple { DMA_READ, DMA_WRITTEN, DMA_SENT, DMA_RECEIVED, DMA_COUPLES };
enum dma_unit {
	DMA_TLP,
	DMA_PAGE,
	DMA_WHOLE
}; /* what one request is: a TLP, what lies in a page, all of it */

/* A device. dma_config_init fills the defaults. */
struct dma_config {
	enum dma_kind kind;
	uint16_t rid;
	int32_t pasid; /* -1: none */
	uint64_t seed;
	unsigned mps, mrrs; /* bytes of a write, of a read request, at most */
	enum dma_unit request_unit;
	uint64_t start_ns, stop_ns; /* stop 0: never */
	uint64_t iova;		    /* where its buffers begin */
	uint64_t page;		    /* page size of their mapping */
	uint64_t rate;		    /* work items a second: frames, commands, accesses; 0: none */
	/*
	 * A burst: so many items in each period, then one administrative completion; the first
	 * period begins when the unit's first counter is enabled. Whoever counts for N periods, and
	 * for up to eight tenths of one longer, gets N bursts exactly.
	 */
	uint64_t burst, burst_period_ns;
	unsigned couple;   /* bit i: enum dma_couple i; then rate and burst are 0 */
	uint64_t msi_addr; /* 0: no interrupts */
	uint32_t msi_data;
	unsigned int_every; /* items to an interrupt */

	/* ring-nic */
	unsigned ring, desc_bytes, desc_batch, frame, buf_size, rx_percent;
	enum dma_unmap unmap;
	/* nvme */
	unsigned qd, io_bytes, read_percent, pool_pages;
	bool prp_list;
	/* gpu-stream */
	uint64_t bytes;
	unsigned stride, access, write_percent;
	/* trace: not with dma_traffic_add */
	const void *trace; /* the bytes, which must outlive the traffic */
	size_t trace_len;
	bool loop;
	unsigned scale_num, scale_den; /* what its times are multiplied with */
	/* any of them behind a device TLB */
	bool ats, pri;
	unsigned dtlb_entries, dtlb_ways;
	unsigned outstanding; /* accesses that it makes at one moment */
	unsigned resident; /* pages that it is given at most, the oldest is taken back; 0: no limit
			    */
};

void dma_config_init(struct dma_config *, enum dma_kind);
/* Bytes from config.iova on that it touches. NULL, or what is wrong with it. */
const char *dma_config_check(const struct dma_config *, uint64_t *bytes);

struct dma_traffic;

/*
 * dma_traffic_new - traffic through @unit. @tables and @queue: for devices whose buffers are
 * mapped and unmapped as they go, and for page requests; may be NULL when no device needs them.
 * NULL: out of memory.
 * dma_traffic_add - a device; its buffers are mapped in @domain by the caller. @pa: where, for
 * later mappings. 0, -EINVAL, -ENOMEM.
 * dma_traffic_run - all work that is due up to and at @ns happens, in order; the unit's time is
 * @ns then.
 * dma_traffic_device_tlb - the unit invalidates a device TLB (struct quipu_vtd_ops.device_tlb).
 * dma_traffic_absent - the devices were not there from @from to @to: they go on at @to where
 * they were at @from, with empty device TLBs.
 */
struct dma_traffic *dma_traffic_new(struct quipu_vtd *unit, struct quipu_vtd_memory *,
				    struct quipu_vtd_queue *queue);
void dma_traffic_free(struct dma_traffic *);
int dma_traffic_add(struct dma_traffic *, const struct dma_config *,
		    struct quipu_vtd_domain *domain, uint64_t pa);
/*
 * dma_traffic_add_trace - config.trace is played, from its beginning whenever the unit's first
 * counter is enabled. Takes @replay (dma_replay_guest), whatever comes of it. A record that is
 * refused when its turn comes is counted in the totals.
 */
struct dma_replay;
int dma_traffic_add_trace(struct dma_traffic *, const struct dma_config *,
			  struct dma_replay *replay);
/*
 * dma_traffic_moved - the programs of the machine have read, written, sent and received so many
 * bytes in all: devices coupled to that do the work of the difference in the next dma_traffic_run.
 */
void dma_traffic_moved(struct dma_traffic *, const uint64_t bytes[DMA_COUPLES]);
void dma_traffic_run(struct dma_traffic *, uint64_t ns);
void dma_traffic_absent(struct dma_traffic *, uint64_t from, uint64_t to);
void dma_traffic_device_tlb(struct dma_traffic *, uint16_t rid, int32_t pasid, uint64_t addr,
			    uint64_t size, bool global);

/* What the devices of a unit have done so far. */
struct dma_totals {
	uint64_t items, requests, interrupts, page_requests, faults;
	uint64_t refused; /* records of traces */
};
void dma_traffic_totals(const struct dma_traffic *, struct dma_totals *);

#endif
