/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf's event strings: "cycles:u,{cpu/event=0x3/,r2a}:S" -> attributes for quipu_event_open.
 *
 * The language is that of perf 6.1 (tools/perf/Documentation/perf-list.txt; perf ABI sheet A6, A17,
 * B2, B3). Event names come from a catalog, which is made of a list of sysfs files, so that a
 * modelled machine and the host's own /sys are read by the same code. What only a kernel has
 * (tracepoints, breakpoints, probes) is understood where the catalog says who knows them. Not
 * covered: BPF objects, metrics.
 */
#ifndef QUIPU_GRAMMAR_H
#define QUIPU_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <quipu/attr.h>

struct quipu_tree;

/* One file of format/: value bit i of the term goes to the i-th lowest bit of @mask in config
 * @word. */
struct quipu_catalog_format {
	char *name;
	unsigned word; /* 0..3: config, config1, config2, config3 */
	uint64_t mask;
};

/* One file of events/. */
struct quipu_catalog_event {
	char *name;
	char *terms;  /* "event=0x3" */
	char *unit;   /* or NULL */
	double scale; /* 1 when there is no .scale file */
	bool has_scale;
	bool per_pkg, snapshot;
};

struct quipu_catalog_pmu {
	char *name;
	char *alias; /* another name that is accepted; NULL */
	uint32_t type;
	char *cpus;  /* text of cpumask (or cpus): "0,4"; NULL: the events of this PMU may follow a
			task */
	bool uncore; /* it has a cpumask file */
	struct quipu_catalog_format *formats;
	size_t nformats;
	struct quipu_catalog_event *events;
	size_t nevents;
};

/*
 * What a kernel has beside its PMUs. Both calls: 0, or a negative errno with the reason, in words,
 * in @why.
 *
 * tracepoints - call @found for every tracepoint whose system and name match the two words, in
 *	which '*' and '?' stand for letters; a non-zero return of @found ends the walk and is
 *	returned.
 * symbol - where in the file @path the function @symbol begins (offset in the file).
 */
struct quipu_catalog_kernel {
	void *arg;
	int (*tracepoints)(void *arg, const char *system, const char *event,
			   int (*found)(void *found_arg, const char *system, const char *event,
					uint64_t id),
			   void *found_arg, char *why, size_t len);
	int (*symbol)(void *arg, const char *path, const char *symbol, uint64_t *offset, char *why,
		      size_t len);
};

struct quipu_catalog {
	struct quipu_catalog_pmu *pmus; /* sorted by name */
	size_t npmus;
	const struct quipu_catalog_kernel *kernel; /* NULL: a modelled machine, which has none */
};

/*
 * quipu_catalog_new - the PMUs below /sys/bus/event_source/devices of @tree (links are followed
 * inside the tree). A directory without a readable `type`, or with a format file that cannot be
 * read, is no PMU, as for perf. NULL: no memory.
 */
struct quipu_catalog *quipu_catalog_new(const struct quipu_tree *);
void quipu_catalog_free(struct quipu_catalog *);
const struct quipu_catalog_pmu *quipu_catalog_find(const struct quipu_catalog *, const char *pmu);
/*
 * quipu_catalog_hybrid - is @pmu one of several core PMUs (cpu_core, cpu_atom), each for CPUs of
 * its own? Generic names stand for one event on each of those.
 */
bool quipu_catalog_hybrid(const struct quipu_catalog_pmu *pmu);

/* One event to open. */
struct quipu_parsed {
	struct quipu_attr attr; /* size, type, config*, exclude_*, precise, pinned, exclusive;
				   period or freq if named */
	char *name;		/* as perf prints it: what was typed, or the name= term */
	char *pmu;		/* PMU of the event, or NULL for generic names and rHEX */
	char *unit;		/* "" when it has none */
	double scale;		/* printed value = count * scale */
	char *cpus;    /* CPUs the event must be opened on, or NULL (follows tasks, or every CPU) */
	bool uncore;   /* cpus is a cpumask: no task events */
	size_t leader; /* index of the group's leader; its own when it leads or stands alone */
	size_t members; /* of the group; only at the leader; 1 when alone */
	size_t term; /* events that one term of the string made (wildcards) have the same number ...
		      */
	bool merge;  /* ... and are printed as one line, their counts added */
	bool precise_max; /* modifier P: try 3, 2, 1, 0 */
	bool sample_read; /* modifier S */
	bool weak;	  /* modifier W: a group that does not fit is opened as single events */
	bool has_period;  /* attr.sample_period is the user's */
	bool has_freq;	  /* attr.sample_freq is the user's, QUIPU_ATTR_FREQ is set */
	bool per_pkg, snapshot;
	bool inherit_off; /* no-inherit term */
	bool guest_host;  /* modifiers G or H were given */
	bool callgraph;	  /* call-graph term other than "no" */
	bool each;	  /* attr.sample_period is 1 because every occurrence counts (tracepoints,
			     breakpoints), not by the user's wish */
	char *probe;	  /* of a uprobe the file, of a kprobe the function: what config1 points to;
			     or NULL */
};

struct quipu_event_list {
	struct quipu_parsed *items;
	size_t n;
	size_t terms; /* next value of quipu_parsed.term */
};

struct quipu_grammar_error {
	size_t column;	     /* 0-based byte where it goes wrong; may be the length of the string */
	char reason[256];    /* "unknown event 'cyles'" */
	char suggestion[96]; /* closest known name, or "" */
};

/*
 * quipu_grammar_parse - append the events of @text to @list (several -e: call again). 0; -EINVAL
 * with @err filled and
 * @list as it was; -ENOMEM. Any bytes are safe: at most QUIPU_GRAMMAR_MAX of them are looked at,
 * longer is an error.
 */
#define QUIPU_GRAMMAR_MAX 65536u
/*
 * quipu_grammar_all_generic - are all events of @text the generic ones, which need nothing of what
 * a PMU has in events/ and format/? Then a catalog without those reads it in the same way.
 */
bool quipu_grammar_all_generic(const char *text);
int quipu_grammar_parse(const struct quipu_catalog *, const char *text,
			struct quipu_event_list *list, struct quipu_grammar_error *err);
/* quipu_event_list_free - free the items; the list is empty and usable afterwards. */
void quipu_event_list_free(struct quipu_event_list *);

/*
 * quipu_grammar_explain - the error as perf shows one: the string, a caret under the column, reason
 * and suggestion; long strings are cut around the column. Three lines, each ended by '\n'. Returns
 * the length, as snprintf.
 */
int quipu_grammar_explain(const char *text, const struct quipu_grammar_error *, char *buf,
			  size_t len);

/*
 * quipu_grammar_generic - the n-th generic name that needs no PMU directory: hardware, software and
 * cache events
 * ("cycles", "task-clock", "L1-dcache-load-misses"), with its aliases in @alias (or NULL). NULL
 * past the last.
 * @type, @config: what it stands for.
 */
const char *quipu_grammar_generic(size_t n, const char **alias, uint32_t *type, uint64_t *config);

/* quipu_cpu_list - parse "0-3,8" into @cpus (capacity @max). Number of CPUs, ascending, or -EINVAL,
 * -E2BIG. */
int quipu_cpu_list(const char *text, unsigned *cpus, size_t max);

#endif
