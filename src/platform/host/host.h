/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's own kernel as a machine: its PMUs from sysfs, its tracepoints from tracefs, counting
 * and sampling by perf_event_open. Kernel documents: ABI/testing/sysfs-bus-event_source-devices*,
 * perf_event_open(2), tracefs. Unlike the other rooms this one does input and output, keeps no
 * model, and has no floors: the hardware is on the other side of the kernel.
 */
#ifndef QUIPU_PLATFORM_HOST_HOST_H
#define QUIPU_PLATFORM_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <quipu/attr.h>
#include <quipu/grammar.h>
#include <quipu/tree.h>

/* ---- what there is ---- */

/*
 * host_tree - sysfs below @root ("/sys", or a recording of another machine's) as a list of files:
 * /sys/bus/event_source/devices and no more. A folder that lacks it gives an empty tree. NULL: no
 * memory. Free with quipu_tree_free.
 */
struct quipu_tree *host_tree(const char *root);

struct host_cpu {
	unsigned id;
	unsigned core, die, socket, node;
};

/* A host: made at once, read when it is asked. */
struct host {
	char *root;	       /* of sysfs */
	bool recorded;	       /* another machine's: its events cannot be opened here */
	struct host_cpu *cpus; /* online, ascending */
	size_t ncpus;
	struct quipu_catalog *catalog; /* NULL until needed */
	struct quipu_catalog empty;    /* for what needs no PMU */
	struct quipu_catalog_kernel kernel;
};

/*
 * host_init - @root NULL: the running kernel's. 0, -ENOMEM; -ENOENT, -ENOTDIR ...: @root cannot be
 *	read.
 * host_catalog - its PMUs and, on the running kernel, what else it has. NULL: no memory.
 * host_parse - quipu_grammar_parse against this host. sysfs is read only for strings that need it.
 */
int host_init(struct host *, const char *root);
void host_free(struct host *);
const struct quipu_catalog *host_catalog(struct host *);
int host_parse(struct host *, const char *text, struct quipu_event_list *,
	       struct quipu_grammar_error *);
/* host_read_topology - fill core, die, socket and node of the CPUs. */
void host_read_topology(struct host *);
/* host_has_cpu_pmu - does sysfs show a PMU of the CPUs (cpu, cpu_core, armv8_pmuv3_0 ...)? */
bool host_has_cpu_pmu(struct host *);

/* host_read_text - the first @len - 1 bytes of a file, without the end of its last line. -errno. */
int host_read_text(const char *path, char *buf, size_t len);
/* host_paranoid - kernel.perf_event_paranoid; 2, the kernel's default, where it cannot be read. */
int host_paranoid(void);
/* host_capable - is capability @cap (CAP_PERFMON 38, CAP_SYS_ADMIN 21 ...) in force? */
bool host_capable(unsigned cap);
/*
 * host_in_user_namespace - is this not the first user namespace? The kernel's checks for
 *	perf_event_open ask for capabilities of the first.
 */
bool host_in_user_namespace(void);
#define HOST_CAP_SYS_ADMIN 21u
#define HOST_CAP_PERFMON   38u

/* ---- tracefs and symbols (kernel.c): what the grammar asks for ---- */

void host_kernel_init(struct quipu_catalog_kernel *);
/* Where tracefs is, or NULL with the reason. */
const char *host_tracefs(char *why, size_t len);

/*
 * host_tracing - the formats of the tracepoints in @list, for perf.data's feature TRACING_DATA; to
 * be freed. NULL and *size 0: it has none, or no memory.
 */
void *host_tracing(const struct quipu_event_list *list, size_t *size);

/* ---- events ---- */

/* What was changed to make the kernel take an event. */
struct host_opened {
	int fd;		/* -1: refused */
	bool user_only; /* the kernel's part was left out, for want of privilege */
};

/*
 * host_open - perf_event_open of @attr, with what perf tries again: a smaller attr, less precise
 *	(@precise_max), without exclude_guest where the PMU knows no guests, without the kernel
 *	where the user may not look there, and more descriptors up to the hard limit. What helped
 *	stays in @attr. 0 or -errno.
 * host_why - what the errno means for this event here, and what to do: one line, no newline.
 *	@remedy may come out empty.
 */
int host_open(struct quipu_attr *attr, bool precise_max, pid_t pid, int cpu, int group,
	      struct host_opened *out);
struct host_reason {
	char why[320], remedy[320];
};
void host_why(struct host *, const struct quipu_parsed *, int err, pid_t pid, int cpu,
	      struct host_reason *);

struct host_count {
	uint64_t value, enabled, running;
};
/* Read an event opened with both times in read_format and no group. 0 or -errno. */
int host_read(int fd, struct host_count *);
/* The id of an event's samples. */
int host_event_id(int fd, uint64_t *id);

/* ---- programs ---- */

struct host_child {
	pid_t pid;
	int go;	   /* closing it lets the program run */
	int error; /* an errno comes out of it when exec fails */
	int pidfd; /* -1 where the kernel has none */
	int status;
	bool reaped;
	struct rusage usage;
};

/*
 * host_hold - a child that waits before its exec. 0 or -errno.
 * host_release - let it go. 0, or the errno (negative) of its exec.
 * host_reap - wait for its end, at most @timeout_ms (-1: for ever, or until a signal comes). True
 *	when it has ended.
 * host_end - if it still runs, end it (SIGTERM, then wait).
 */
int host_hold(struct host_child *, char *const argv[]);
int host_release(struct host_child *);
bool host_reap(struct host_child *, int timeout_ms);
void host_end(struct host_child *);

/*
 * host_tasks - the threads of @pid, ascending, at most @max at first, to be freed. Their number or
 * -errno (-ESRCH: no such process).
 */
int host_tasks(pid_t pid, pid_t **tids);

/* ---- rings ---- */

struct host_ring {
	void *base;	   /* perf_event_mmap_page, then the data */
	size_t size;	   /* of the data, a power of two */
	uint8_t *straight; /* a copy of what wraps */
};

/*
 * host_ring_map - map @fd with at most @bytes of data (a power of two), less where the user may not
 *	lock so much memory. 0 or -errno.
 * host_ring_take - what is new, in one piece, or NULL; host_ring_release gives it back to the
 * kernel.
 */
int host_ring_map(struct host_ring *, int fd, size_t bytes);
void host_ring_unmap(struct host_ring *);
const void *host_ring_take(struct host_ring *, size_t *len, uint64_t *head);
void host_ring_release(struct host_ring *, uint64_t head);

#endif
