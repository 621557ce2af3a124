/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A logical partition's door to names of hypervisor code: RTAS call ibm,lpar-perftools, the
 * firmware behind it, and a client of it. LoPAR 2.9, "ibm,lpar-perftools RTAS Call", R1-1 to R1-6.
 *
 * Three parts, each usable by itself: the map of a hypervisor's code (struct quipu_hvmap), the
 * firmware with its partitions (struct quipu_lpar), and the resolver (struct quipu_hvsym), which
 * reaches a firmware through a transport. All are safe to call from many threads.
 */
#ifndef QUIPU_LPAR_H
#define QUIPU_LPAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/machine.h>

/* ---- the map of the hypervisor's code ---- */

#define QUIPU_HVMAP_NAME    511u       /* most characters of a name; longer ones are cut */
#define QUIPU_HVMAP_SYMBOLS (4u << 20) /* most symbols of a map */
#define QUIPU_HVMAP_LINE    4096u      /* most bytes of a line */

struct quipu_hvmap; /* immutable, counted references */

/* A range of executable code, named where no function is known. */
struct quipu_hvmap_module {
	uint64_t start, size;
	const char *name;
	bool data; /* not code: its addresses are not valid ones */
};

struct quipu_hvmap_options {
	/* "nm" (System.map, skiboot.map), "kallsyms", "perfmap", "elf"; NULL or "auto": found out
	 */
	const char *format;
	const char *file; /* what the file is called: names the modules of an ELF file */
	bool has_base;	  /* text: @base is added to each address; ELF: the load address */
	uint64_t base;
	const struct quipu_hvmap_module *modules; /* or none */
	size_t nmodules;
};

/* What is wrong with a map. */
struct quipu_hvmap_error {
	unsigned line; /* of a text, from 1; 0: of the whole */
	char text[200];
};

/* Who owns an address. */
enum quipu_hvmap_kind { QUIPU_HVMAP_INVALID, QUIPU_HVMAP_MODULE, QUIPU_HVMAP_FUNCTION };
struct quipu_hvmap_hit {
	enum quipu_hvmap_kind kind;
	uint64_t start;	  /* of the owner; offset = address - start */
	uint64_t size;	  /* of the owner */
	const char *name; /* lives as long as the map; NULL of an invalid address */
};

/*
 * quipu_hvmap_read - make a map of the @len bytes of a symbol file (hostile input). 0 and *map with
 *	one reference; -EINVAL, -ENOMEM with @err. Formats, sizes and the choice among aliases: the
 *	room's README.
 * quipu_hvmap_get, quipu_hvmap_put - take and give back a reference; NULL is fine.
 * quipu_hvmap_find - the owner of @addr: the innermost function, else the module. O(log n), no
 *	allocation, no lock. Returns hit->kind.
 * quipu_hvmap_size - number of functions.
 * quipu_hvmap_symbol - the @i-th by address.
 * quipu_hvmap_modules - number of modules; quipu_hvmap_module - the @i-th.
 * quipu_hvmap_aliases - number of other names; quipu_hvmap_alias - the @i-th, with its address.
 * quipu_hvmap_named - the function called @name, or false.
 */
int quipu_hvmap_read(struct quipu_hvmap **map, const void *bytes, size_t len,
		     const struct quipu_hvmap_options *, struct quipu_hvmap_error *err);
struct quipu_hvmap *quipu_hvmap_get(struct quipu_hvmap *);
void quipu_hvmap_put(struct quipu_hvmap *);
enum quipu_hvmap_kind quipu_hvmap_find(const struct quipu_hvmap *, uint64_t addr,
				       struct quipu_hvmap_hit *);
size_t quipu_hvmap_size(const struct quipu_hvmap *);
void quipu_hvmap_symbol(const struct quipu_hvmap *, size_t i, struct quipu_hvmap_hit *);
size_t quipu_hvmap_modules(const struct quipu_hvmap *);
void quipu_hvmap_module(const struct quipu_hvmap *, size_t i, struct quipu_hvmap_module *);
size_t quipu_hvmap_aliases(const struct quipu_hvmap *);
void quipu_hvmap_alias(const struct quipu_hvmap *, size_t i, struct quipu_hvmap_hit *);
bool quipu_hvmap_named(const struct quipu_hvmap *, const char *name, struct quipu_hvmap_hit *);

/* ---- the firmware and its partitions ---- */

/* Status of an RTAS call (LoPAR, "RTAS Status Word Values"). */
#define QUIPU_RTAS_SUCCESS	  0
#define QUIPU_RTAS_HW_ERROR	  (-1)
#define QUIPU_RTAS_BUSY		  (-2)
#define QUIPU_RTAS_PARAM_ERROR	  (-3)
#define QUIPU_RTAS_TOO_SMALL	  (-5)
#define QUIPU_RTAS_NOT_AUTHORIZED (-9002)
#define QUIPU_RTAS_EXT_DELAY_MIN  9900 /* + x: about 10^x ms */
#define QUIPU_RTAS_EXT_DELAY_MAX  9905

#define QUIPU_LPAR_PERFTOOLS "ibm,lpar-perftools" /* property of /rtas with the call's token */
#define QUIPU_LPAR_CELLS     10 /* of its argument buffer: token, 5, 2, 5 in, 2 out */

struct quipu_lpar;	/* a machine's hypervisor firmware */
struct quipu_partition; /* one of its partitions */

struct quipu_lpar_stats {
	uint64_t calls, ok, invalid_address, module_hits, too_small, param_error, stale_number,
		no_authority, hw_error, busy, ext_delay[6], cancelled, chunks, overlap_count;
};

/*
 * quipu_lpar_new - the firmware that @machine's tree describes (nodes rtas and quipu,hypervisor;
 * the binding is in the room's README). NULL with a note of kind WRONG.
 * quipu_lpar_new_map - one
 * authorised partition (number 1) over @map, whose reference is taken over: what looks up addresses
 * offline. NULL: out of memory.
 * quipu_lpar_free - with all its partitions. NULL is fine.
 * quipu_lpar_partition - by number, NULL: none.
 * quipu_lpar_partitions - how many;
 *	quipu_lpar_partition_at - the @i-th.
 * quipu_lpar_set_clock - the machine's time in ns, for delays of mode "time".
 * quipu_lpar_map - the map in force, with a reference for the caller.
 * quipu_lpar_reload - another
 *	one from now on (its reference is taken over): running sequences are dead.
 * quipu_lpar_epoch - number of reloads.
 * quipu_lpar_token - the token of @function, or -ENOENT: the machine has no such call (R1-1).
 */
struct quipu_lpar *quipu_lpar_new(const struct quipu_machine *, struct quipu_notes *);
struct quipu_lpar *quipu_lpar_new_map(struct quipu_hvmap *);
void quipu_lpar_free(struct quipu_lpar *);
struct quipu_partition *quipu_lpar_partition(struct quipu_lpar *, unsigned number);
size_t quipu_lpar_partitions(const struct quipu_lpar *);
struct quipu_partition *quipu_lpar_partition_at(struct quipu_lpar *, size_t i);
void quipu_lpar_set_clock(struct quipu_lpar *, uint64_t (*now_ns)(void *arg), void *arg);
struct quipu_hvmap *quipu_lpar_map(struct quipu_lpar *);
void quipu_lpar_reload(struct quipu_lpar *, struct quipu_hvmap *);
uint64_t quipu_lpar_epoch(struct quipu_lpar *);
int64_t quipu_lpar_token(const struct quipu_lpar *, const char *function);

/* What is fixed of a partition. */
struct quipu_partition_info {
	unsigned number;
	const char *name;
	uint64_t rma;		/* bytes of the real mode area, from address 0 */
	unsigned cell_bytes;	/* 4 or 8: of an RTAS cell */
	uint64_t rmo, rmo_size; /* where its user space has buffers for RTAS; size 0: nowhere */
};
void quipu_partition_info(const struct quipu_partition *, struct quipu_partition_info *);
/* quipu_partition_has_cpu - is CPU @cpu of the machine a virtual processor of the partition? */
bool quipu_partition_has_cpu(const struct quipu_partition *, unsigned cpu);

/*
 * quipu_partition_write, quipu_partition_read - the partition's memory at real address @ra. 0,
 *	-EFAULT (not all of it is memory of the partition: nothing is done), -ENOMEM.
 * quipu_rtas_call - what branching to rtas-call does: @args is the real address of the argument
 *	buffer in the partition's memory. 0: the status is in the buffer. -EFAULT: the buffer is not
 *	8-byte aligned, or not inside the partition's RMA; no byte was written.
 * quipu_partition_reset - the partition boots: sequences end, numbers begin anew.
 * quipu_partition_authority - the management console allows or forbids the call.
 * quipu_partition_stats - what has been counted.
 */
int quipu_partition_write(struct quipu_partition *, uint64_t ra, const void *, size_t);
int quipu_partition_read(struct quipu_partition *, uint64_t ra, void *, size_t);
int quipu_rtas_call(struct quipu_partition *, uint64_t args);
void quipu_partition_reset(struct quipu_partition *);
void quipu_partition_authority(struct quipu_partition *, bool);
void quipu_partition_stats(struct quipu_partition *, struct quipu_lpar_stats *);

/*
 * Settings of a partition that a test changes; a tree sets the same by properties.
 *
 * quipu_partition_plan - delays: statuses (-2, 9900..9905) that each @period-th lookup gets before
 *	its answer. 0, or -EINVAL.
 * quipu_lpar_inject - the @nth call from now (1: the next) ends in
 *	@status (-1, -2, -3, -5, -9002, 990x). @every: and so does each @nth one after it. 0,
 * -EINVAL, -ENOSPC.
 * quipu_lpar_inject_clear - no more of them.
 * quipu_partition_option - switch one
 * of enum quipu_partition_option.
 * quipu_partition_next_number - the next sequence number that is
 * given out (tests of its wrap).
 */
enum quipu_partition_option {
	QUIPU_PARTITION_CHUNKED,     /* quipu,long-names = "chunked" */
	QUIPU_PARTITION_RECHECK_IAR, /* quipu,recheck-iar */
	QUIPU_PARTITION_SCRIBBLE,    /* quipu,scribble */
	QUIPU_PARTITION_ANYWHERE,    /* quipu,work-area-anywhere */
	QUIPU_PARTITION_TIME_MODE,   /* quipu,delay-mode = "time" */
};
int quipu_partition_plan(struct quipu_partition *, const int32_t *statuses, size_t n,
			 unsigned period);
int quipu_lpar_inject(struct quipu_partition *, unsigned nth, int32_t status, bool every);
void quipu_lpar_inject_clear(struct quipu_partition *);
void quipu_partition_option(struct quipu_partition *, enum quipu_partition_option, bool on);
void quipu_partition_next_number(struct quipu_partition *, uint32_t);

/* ---- the resolver ---- */

/*
 * The way to a partition's firmware. Errors are negative errno; the transport outlives its handles.
 * R1-6 allows a partition one call in process, so the lock is the partition's, whoever holds a
 * handle: @lock is held for a whole sequence of calls.
 */
struct quipu_rtas_transport {
	void *arg;
	/* -ENOENT: not implemented */
	int64_t (*token)(void *arg, const char *function);
	void (*lock)(void *arg); /* NULL: there is none, sequences may be cancelled by others */
	void (*unlock)(void *arg);
	/* Contiguous memory of the partition: *ra for the firmware, *va for us. */
	int (*alloc)(void *arg, size_t size, uint64_t *ra, void **va);
	void (*free)(void *arg, size_t size, uint64_t ra, void *va);
	/*
	 * Make the call. @cells: in host order, token, nargs, nret, args; the rets come back there.
	 * The work area is the @size bytes at @ra, @va, as alloc gave them.
	 */
	int (*call)(void *arg, uint32_t *cells, unsigned ncells, uint64_t ra, void *va,
		    size_t size);
};

/*
 * quipu_rtas_model - the transport to a partition of this process. 0, -ENOMEM, -ENOENT (no such
 *	partition).
 * quipu_rtas_model_free - after the last handle.
 */
int quipu_rtas_model(struct quipu_rtas_transport **, struct quipu_lpar *, unsigned partition);
void quipu_rtas_model_free(struct quipu_rtas_transport *);

/* Time as a resolver sees it. */
struct quipu_hvsym_clock {
	uint64_t (*now_ms)(void *arg);
	void (*sleep_ms)(void *arg, uint64_t ms); /* 0: let others run */
	void *arg;
};

#define QUIPU_HVSYM_SEQ_SAME 1u /* retries repeat the number instead of taking the next one */
#define QUIPU_HVSYM_NO_PROBE                                                                       \
	2u /* do not tell "invalid" from "first instruction" by a second call */
#define QUIPU_HVSYM_NO_CACHE 4u
#define QUIPU_HVSYM_BISECT   8u	 /* many: fewer calls, wrong where functions lie inside others */
#define QUIPU_HVSYM_STALE    16u /* store the address once only, as librtas does (tests) */

struct quipu_hvsym_opts {		       /* 0 of a number: its default */
	uint32_t buf_size, buf_max;	       /* 4096, 65536 bytes */
	uint32_t clamp_ms, deadline_ms;	       /* 1000, 10000; UINT32_MAX: no clamp */
	uint32_t max_calls, max_restarts;      /* 10000, 8; of one address */
	uint32_t flags;			       /* QUIPU_HVSYM_* */
	const char *invalid_text;	       /* NULL: the built-in ones */
	const struct quipu_hvsym_clock *clock; /* NULL: CLOCK_MONOTONIC */
	/* Each call, its cells complete, for a trace. */
	void (*trace)(void *arg, const uint32_t *cells, unsigned ncells, const void *work,
		      size_t n);
	void *trace_arg;
};

enum quipu_hvsym_state {
	QUIPU_HVSYM_OK,
	QUIPU_HVSYM_INVALID, /* no address of the hypervisor; name is its text */
	QUIPU_HVSYM_UNKNOWN, /* no answer, or one that may mean either */
};

struct quipu_hvsym_result {
	uint64_t iar, offset, start; /* start = iar - offset */
	const char *name;	     /* lives as long as the handle; NULL after an error */
	uint8_t state;		     /* enum quipu_hvsym_state */
	int32_t status;		     /* of the last RTAS call */
	int error;		     /* 0 or the negative errno of this address */
	uint32_t calls;		     /* RTAS calls that it took; 0: it was known */
};

struct quipu_hvsym_stats {
	uint64_t lookups, hits, calls, restarts, probes, grown, slept_ms;
};

struct quipu_hvsym; /* a handle; threads may share it */

/*
 * quipu_hvsym_open - 0, -ENOMEM, -EINVAL (sizes that make no sense).
 * quipu_hvsym_resolve - what @iar is. 0 with @result; else a negative errno, result->status the
 * last status: -ENOSYS no such call (R1-1), -EACCES no authority (-9002), -EIO hardware error (-1),
 *	-EINVAL parameters refused (-3), -EAGAIN cancelled again and again by others (R1-6),
 *	-EMSGSIZE buf_max is too small (-5), -ETIMEDOUT the deadline passed, -ELOOP max_calls,
 *	-EPROTO an answer that cannot be, -EPERM a handle of before fork, -ENOMEM, and what the
 *	transport says.
 * quipu_hvsym_resolve_many - the same for @n addresses, sorted and made unique first. Each result
 *	has its own error; *n_ok (may be NULL) how many have none. 0, or the error that ended it:
 * the rest is UNKNOWN with that error.
 * quipu_hvsym_flush - forget what is known, authority included
 * (migration, reload). Names that were handed out stay.
 * quipu_hvsym_strerror - one line for a
 * person: what @error with @status means and what to do.
 */
int quipu_hvsym_open(struct quipu_hvsym **, struct quipu_rtas_transport *,
		     const struct quipu_hvsym_opts *);
int quipu_hvsym_resolve(struct quipu_hvsym *, uint64_t iar, struct quipu_hvsym_result *);
int quipu_hvsym_resolve_many(struct quipu_hvsym *, const uint64_t *iar, size_t n,
			     struct quipu_hvsym_result *, size_t *n_ok);
void quipu_hvsym_flush(struct quipu_hvsym *);
void quipu_hvsym_stats(struct quipu_hvsym *, struct quipu_hvsym_stats *);
void quipu_hvsym_close(struct quipu_hvsym *);
const char *quipu_hvsym_strerror(int error);
/* quipu_rtas_status_name - "busy", "extended delay, about 100 ms" ... */
const char *quipu_rtas_status_name(int32_t status);

#endif
