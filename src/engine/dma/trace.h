/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DMA traces: what devices asked of remapping units, one record a line (first line "# quipu-dma 1")
 * or 40 bytes each (header "QDMA"). Reading is pure: the caller brings the bytes.
 * src/engine/dma/README.md is the format.
 */
#ifndef ENGINE_DMA_TRACE_H
#define ENGINE_DMA_TRACE_H

#include <quipu/vtd.h>

enum dma_record_kind {
	DMA_RECORD_DMA = 1,
	DMA_RECORD_MSI,
	DMA_RECORD_PRQ,
	DMA_RECORD_MAP,
	DMA_RECORD_UNMAP,
	DMA_RECORD_INV,
	DMA_RECORD_REG,
	DMA_RECORD_ATTACH,
};

struct dma_record {
	enum dma_record_kind kind;
	uint64_t time; /* ns */
	uint16_t rid;
	int32_t pasid;	/* -1: none */
	bool by_pasid;	/* map, unmap: of rid:pasid; else of the domain did */
	uint16_t did;	/* attach as well */
	uint8_t at, op; /* enum quipu_vtd_at, quipu_vtd_op */
	bool r, w, x, priv, last;
	uint16_t group;
	uint64_t addr, size, pa;
	uint64_t qw[4];		/* inv */
	uint64_t data;		/* msi, reg */
	uint32_t offset, width; /* reg */
};

/*
 * dma_trace_line - one line of @len bytes, without its newline. 1: *r is a record; 0: a comment
 * or nothing; -EINVAL with *why.
 * dma_trace_is_text, dma_trace_is_binary - what the first bytes of a file say.
 */
int dma_trace_line(const char *line, size_t len, struct dma_record *r, const char **why);
bool dma_trace_is_text(const void *bytes, size_t len);
#define DMA_BINARY_HEADER 16u
#define DMA_BINARY_RECORD 40u
bool dma_trace_is_binary(const void *bytes, size_t len);
/* One binary record. 0, or -EINVAL with *why. */
int dma_trace_record(const uint8_t bytes[DMA_BINARY_RECORD], struct dma_record *r,
		     const char **why);
/* The same back: of kinds dma, msi, prq, map, unmap, inv (two quadwords), reg and attach. */
void dma_trace_encode(const struct dma_record *, uint8_t bytes[DMA_BINARY_RECORD]);
void dma_trace_encode_header(uint8_t bytes[DMA_BINARY_HEADER]);

/*
 * The records of a whole trace in memory, one after the other.
 * dma_cursor_open - 0, or -EINVAL when it is no trace of either form.
 * dma_cursor_next - 1: *r is the next record; 0: the end; -EINVAL, and then cursor.where is the
 * line or record that is wrong. The bytes stay the caller's.
 */
struct dma_cursor {
	const uint8_t *bytes;
	size_t len, at;
	uint64_t where; /* number of the latest line or record, from 1 */
	bool binary;
};
int dma_cursor_open(struct dma_cursor *, const void *bytes, size_t len);
int dma_cursor_next(struct dma_cursor *, struct dma_record *r, const char **why);

/*
 * Replay on one unit. Domains come into being at their first map or attach record. A requester goes
 * through the domain that an attach record or its own map records name, else through the first one
 * that is named by number.
 *
 * dma_replay_new - on @unit, whose owner reads tables from @memory. @translate: switch
 * translation on at the first map record; else requests pass as they are. NULL: out of memory.
 * dma_replay_record - do it. 0; -EINVAL with *why (times that go back, a map that contradicts an
 * earlier one); -ENOMEM.
 */
struct dma_replay;
struct dma_replay *dma_replay_new(struct quipu_vtd *unit, struct quipu_vtd_memory *memory,
				  enum quipu_vtd_mode mode);
/*
 * dma_replay_guest - on a unit that has its tables, queue and domains already, and translates.
 * dma_replay_domain - domain @did of these.
 * dma_replay_known - @rid is attached already.
 */
struct dma_replay *dma_replay_guest(struct quipu_vtd *unit, struct quipu_vtd_memory *memory,
				    enum quipu_vtd_mode mode, struct quipu_vtd_tables *tables,
				    struct quipu_vtd_queue *queue);
int dma_replay_domain(struct dma_replay *, uint16_t did, struct quipu_vtd_domain *);
void dma_replay_known(struct dma_replay *, uint16_t rid);
void dma_replay_free(struct dma_replay *);
int dma_replay_record(struct dma_replay *, const struct dma_record *, const char **why);

struct dma_replay_totals {
	uint64_t records, requests, faults, interrupts, page_requests, maps, invalidations;
	uint64_t end; /* ns */
};
void dma_replay_totals(const struct dma_replay *, struct dma_replay_totals *);

#endif
