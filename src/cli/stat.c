// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu stat: run a program on a machine and count. Option letters, default events, attributes and
 * what happens on a refused open are those of perf stat (perf ABI sheet B3, B4, B7); the output is
 * stat_print.c's.
 *
 * Not here: -p and -t (a modelled machine has no process but those it runs), metrics (-M), perf
 * stat record/report.
 */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/events.h"
#include "cli/options.h"
#include "cli/stat_print.h"

#define MAX_RUNS     100000u
#define MAX_INTERVAL 86400000u /* ms: a day */
#define DEFAULT_EVENTS                                                                             \
	"task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"
#define DETAIL_1 "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses"
#define DETAIL_2                                                                                   \
	"L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses"
#define DETAIL_3 "L1-dcache-prefetches,L1-dcache-prefetch-misses"

struct options {
	struct run_options run;
	struct options_events events;
	bool system_wide, no_inherit, no_merge, append, digits;
	unsigned detail;
	uint64_t runs, interval_ms;
	const char *cpus, *output, *separator;
	enum stat_format format;
	enum stat_aggregation aggregation;
	char **argv; /* the program */
};

/* An event on one CPU or thread. */
struct handle {
	struct quipu_event *event; /* NULL: refused */
	size_t where;		   /* index of stat.places */
	int cpu;		   /* -1: follows the task */
	struct quipu_count last;   /* at the end of the last interval */
};

/* An event of the user's list, with its handles. */
struct counter {
	struct handle *handles;
	size_t n;
	enum stat_state refused; /* STAT_COUNTED: it was opened */
	char *reason;
	enum quipu_exactness exactness;
};

/* A CPU, core, socket or thread that has lines of its own. */
struct place {
	char label[48];
	unsigned key;
};

/* A line of output over several runs. */
struct series {
	double mean, m2, truth;
	double enabled, running; /* sums */
};

struct stat {
	const struct options *options;
	struct run run;
	struct quipu_catalog *catalog;
	struct quipu_event_list list;
	struct counter *counters; /* [list.n] */
	unsigned *cpus;
	size_t ncpus;
	struct place *places;
	size_t nplaces;
	FILE *out;
	char *title;
	struct stat_row *rows;
	size_t nrows;
	struct series *series; /* of each row; -r only */
	struct series elapsed, host[3];
	unsigned done; /* runs */
	double last_at;
	bool printed, open, failed;
	bool partial;	 /* some of what ran was not counted */
	locale_t locale; /* of the table: thousands as the user writes them, as perf does */
};

static volatile int interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = RUN_INTERRUPTED;
}

/* ---- options ---- */

static const char usage[] =
	"usage: quipu stat [-m M] [-e EVENT]... [OPTIONS] [--] PROGRAM [ARGS]\n"
	"\n"
	"  -m, --machine M      a machine of `quipu machine list`, or a .dts/.dtb file; default: by the program's ELF header\n"
	"  -e, --event EVENT    what to count, in perf's grammar: cycles:u, {a,b}, pmu/term=val/, r2a; may be repeated\n"
	"  -d                   more events of caches and TLBs; up to three times\n"
	"  -r, --repeat N       run N times; mean and deviation of the mean\n"
	"  -I, --interval-print MS  every MS milliseconds of model time\n"
	"  -a, --all-cpus       every CPU of the machine;  -C, --cpu LIST  the CPUs of LIST\n"
	"  -A, --no-aggr        a line per CPU;  --per-core, --per-socket, --per-thread\n"
	"  -i, --no-inherit     not the threads and children of the program\n"
	"  -x, --field-separator SEP  fields as perf prints them, then what the number is, then the truth of an estimate\n"
	"  -j, --json-output    one JSON object a line\n"
	"  -o, --output FILE    (--append: add to it)\n"
	"  -L, --sysroot DIR    where the program's dynamic loader and libraries are\n"
	"      --no-merge       a line per PMU where a name stands for several\n"
	"      --no-big-num     no thousands separators\n"
	"      --timing base|full, --trace[=FILE], --paranoid N, -v\n";

enum {
	OPT_APPEND = OPT_OWN,
	OPT_PER_CORE,
	OPT_PER_SOCKET,
	OPT_PER_THREAD,
	OPT_NO_MERGE,
	OPT_NO_BIG_NUM,
};

static const struct option words[] = {
	OPTIONS_RUN_WORDS,
	OPTIONS_COUNT_WORDS,
	{"detailed", no_argument, NULL, 'd'},
	{"repeat", required_argument, NULL, 'r'},
	{"interval-print", required_argument, NULL, 'I'},
	{"no-aggr", no_argument, NULL, 'A'},
	{"no-inherit", no_argument, NULL, 'i'},
	{"field-separator", required_argument, NULL, 'x'},
	{"json-output", no_argument, NULL, 'j'},
	{"pid", required_argument, NULL, 'p'},
	{"tid", required_argument, NULL, 't'},
	{"append", no_argument, NULL, OPT_APPEND},
	{"per-core", no_argument, NULL, OPT_PER_CORE},
	{"per-socket", no_argument, NULL, OPT_PER_SOCKET},
	{"per-thread", no_argument, NULL, OPT_PER_THREAD},
	{"no-merge", no_argument, NULL, OPT_NO_MERGE},
	{"no-big-num", no_argument, NULL, OPT_NO_BIG_NUM},
	{0},
};

static int set_aggregation(struct options *o, enum stat_aggregation a)
{
	if (o->aggregation != STAT_GLOBAL && o->aggregation != a)
		return cli_error(
			"only one of -A, --per-core, --per-socket and --per-thread can be given");
	o->aggregation = a;
	return 0;
}

static int set_separator(struct options *o)
{
	o->format = o->format == STAT_JSON ? o->format : STAT_CSV;
	o->separator = strcmp(optarg, "\\t") ? optarg : "\t";
	return *optarg ? 0 : cli_error("-x takes what stands between the fields, for example -x ,");
}

static int parse_option(void *options, int c)
{
	struct options *o = options;

	switch (c) {
	case 'e': return options_event(&o->events);
	case 'd': o->detail++; return 0;
	case 'r': return options_number("-r", "runs", 1, MAX_RUNS, &o->runs);
	case 'I': return options_number("-I", "milliseconds", 1, MAX_INTERVAL, &o->interval_ms);
	case 'a': o->system_wide = true; return 0;
	case 'C': o->cpus = optarg; return 0;
	case 'A': return set_aggregation(o, STAT_CPU);
	case OPT_PER_CORE: return set_aggregation(o, STAT_CORE);
	case OPT_PER_SOCKET: return set_aggregation(o, STAT_SOCKET);
	case OPT_PER_THREAD: return set_aggregation(o, STAT_THREAD);
	case 'i': o->no_inherit = true; return 0;
	case 'x': return set_separator(o);
	case 'j': o->format = STAT_JSON; return 0;
	case 'o': o->output = optarg; return 0;
	case OPT_APPEND: o->append = true; return 0;
	case OPT_NO_MERGE: o->no_merge = true; return 0;
	case OPT_NO_BIG_NUM: o->digits = true; return 0;
	case 'p':
	case 't':
		return cli_error(
			"-%c %s: a modelled machine has no process but those it runs; name the program instead",
			c, optarg);
	}
	return OPTIONS_NOT_MINE;
}

static int check_options(const struct options *o)
{
	bool per_cpu = o->aggregation != STAT_GLOBAL && o->aggregation != STAT_THREAD;

	if (o->separator && o->format == STAT_JSON)
		return cli_error("-x and -j exclude each other");
	if (o->append && !o->output)
		return cli_error("--append needs -o FILE");
	if (o->runs > 1 && o->interval_ms)
		return cli_error("-r and -I exclude each other: intervals belong to one run");
	if (o->runs > 1 && o->aggregation == STAT_THREAD)
		return cli_error(
			"-r and --per-thread exclude each other: each run has threads of its own");
	if (per_cpu && !o->system_wide && !o->cpus)
		return cli_error("-A, --per-core and --per-socket need CPUs: add -a or -C LIST");
	if (o->aggregation == STAT_THREAD && (o->system_wide || o->cpus))
		return cli_error("--per-thread follows the program's threads: leave out -a and -C");
	return 0;
}

/* 0: go on; -1: help was shown; else the exit status. */
static int parse_options(struct options *o, int argc, char **argv)
{
	static const struct options_set set = {
		.command = "stat",
		.usage = usage,
		.example = "quipu stat ./prog",
		.letters = "+:" OPTIONS_RUN_LETTERS "e:dr:I:aC:Aix:jo:p:t:",
		.words = words,
		.own = parse_option,
	};
	int rc;

	*o = (struct options){.runs = 1, .run.paranoid = -1};
	rc = options_parse(&set, o, &o->run, argc, argv, &o->argv);
	return rc ? rc : check_options(o);
}

/* ---- events ---- */

static int parse_events(struct stat *s)
{
	static const char *const details[] = {DETAIL_1, DETAIL_2, DETAIL_3};
	const struct options *o = s->options;
	int rc = 0;

	s->catalog = quipu_catalog_new(s->run.tree);
	if (!s->catalog)
		return cli_error("out of memory");
	for (size_t i = 0; i < o->events.n && !rc; i++)
		rc = events_parse(s->catalog, o->events.texts[i], &s->list);
	if (!o->events.n)
		rc = events_parse(s->catalog, DEFAULT_EVENTS, &s->list);
	for (size_t i = 0; i < 3 && i < o->detail && !rc; i++)
		rc = events_parse(s->catalog, details[i], &s->list);
	for (size_t i = 0; i < s->list.n && !rc; i++)
		if (s->list.items[i].has_freq || s->list.items[i].callgraph)
			rc = cli_error(
				"%s: freq= and call-graph= are for sampling; use `quipu record`",
				s->list.items[i].name);
	if (rc)
		return rc;
	s->counters = calloc(s->list.n, sizeof(*s->counters));
	return s->counters ? 0 : cli_error("out of memory");
}

static bool by_cpu(const struct stat *s, const struct quipu_parsed *e)
{
	return s->options->system_wide || s->options->cpus || e->uncore;
}

/* The place of @key, made when it is new. */
static size_t place_of(struct stat *s, unsigned key, const char *label)
{
	struct place *grown;

	for (size_t i = 0; i < s->nplaces; i++)
		if (s->places[i].key == key)
			return i;
	grown = realloc(s->places, (s->nplaces + 1) * sizeof(*grown));
	if (!grown)
		return SIZE_MAX;
	s->places = grown;
	s->places[s->nplaces].key = key;
	snprintf(s->places[s->nplaces].label, sizeof(s->places[0].label), "%s", label);
	return s->nplaces++;
}

static size_t place_of_cpu(struct stat *s, int cpu)
{
	const struct quipu_cpu *c = cpu < 0 ? NULL : &s->run.machine->cpus[cpu];
	char label[48];

	switch (s->options->aggregation) {
	case STAT_CPU:
		snprintf(label, sizeof(label), "CPU%d", cpu);
		return place_of(s, (unsigned)cpu, label);
	case STAT_CORE:
		snprintf(label, sizeof(label), "S%u-D%u-C%u", c->socket, c->die, c->core);
		break;
	case STAT_SOCKET: snprintf(label, sizeof(label), "S%u", c->socket); break;
	default: return place_of(s, 0, "");
	}
	/* The first CPU of the same label names the place. */
	for (size_t i = 0; i < s->nplaces; i++)
		if (!strcmp(s->places[i].label, label))
			return i;
	return place_of(s, (unsigned)cpu, label);
}

static size_t place_of_task(struct stat *s, struct quipu_task *task)
{
	const char *program = strrchr(s->options->argv[0], '/');
	char label[48];

	if (s->options->aggregation != STAT_THREAD)
		return place_of(s, 0, "");
	snprintf(label, sizeof(label), "%.15s-%d", program ? program + 1 : s->options->argv[0],
		 (int)quipu_task_tid(task));
	return place_of(s, (unsigned)quipu_task_tid(task), label);
}

static struct handle *add_handle(struct counter *c, size_t where, int cpu)
{
	struct handle *grown = realloc(c->handles, (c->n + 1) * sizeof(*grown));

	if (!grown || where == SIZE_MAX)
		return NULL;
	c->handles = grown;
	c->handles[c->n] = (struct handle){.where = where, .cpu = cpu};
	return &c->handles[c->n++];
}

/* The leader's event on the same CPU and of the same place. */
static struct quipu_event *leader_event(const struct stat *s, size_t i, const struct handle *h)
{
	const struct counter *leader = &s->counters[s->list.items[i].leader];

	if (s->list.items[i].leader == i)
		return NULL;
	for (size_t k = 0; k < leader->n; k++)
		if (leader->handles[k].cpu == h->cpu && leader->handles[k].where == h->where)
			return leader->handles[k].event;
	return NULL;
}

/* Errors of an open after which perf leaves the event out and goes on. */
static bool leaves_out(int err)
{
	return err == -EINVAL || err == -ENOSYS || err == -ENOENT || err == -EOPNOTSUPP ||
	       err == -ENXIO;
}

static int refuse(struct stat *s, size_t i, int err)
{
	const char *reason = events_refusal(&s->run, err);
	struct counter *c = &s->counters[i];

	if (!leaves_out(err))
		return cli_error("machine %s cannot count %s: %s (%s)", s->run.machine->name,
				 s->list.items[i].name, reason, strerrorname_np(-err));
	c->refused = STAT_NOT_SUPPORTED;
	if (!c->reason && asprintf(&c->reason, "%s", reason) < 0)
		c->reason = NULL;
	return 0;
}

/* @task: whom to follow, or NULL for the handle's CPU; @fresh: it runs already, so nothing will
 * enable the event. */
static int open_one(struct stat *s, size_t i, struct handle *h, struct quipu_task *task, bool fresh)
{
	const struct quipu_parsed *e = &s->list.items[i];
	struct quipu_event *group = leader_event(s, i, h);
	struct quipu_attr attr = e->attr;
	int rc;

	attr.sample_period = 0;
	attr.flags &= ~QUIPU_ATTR_FREQ;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (s->list.items[e->leader].members > 1)
		attr.read_format |= PERF_FORMAT_ID | PERF_FORMAT_GROUP;
	if (!group && !fresh)
		attr.flags |= QUIPU_ATTR_DISABLED | (task ? QUIPU_ATTR_ENABLE_ON_EXEC : 0);
	if (task && !s->options->no_inherit && !e->inherit_off &&
	    s->options->aggregation != STAT_THREAD)
		attr.flags |= QUIPU_ATTR_INHERIT;
	rc = events_open(&s->run, e, &attr, task ? quipu_task_tid(task) : -1, h->cpu, group,
			 &h->event);
	return rc ? rc : events_require(&s->run, h->event, &s->counters[i].exactness);
}

static int open_on_task(struct stat *s, size_t i, struct quipu_task *task, bool fresh)
{
	struct handle *h = add_handle(&s->counters[i], place_of_task(s, task), -1);

	if (!h)
		return -ENOMEM;
	return open_one(s, i, h, task, fresh);
}

/* On every CPU of the event's cpumask, of -C, or of the machine. */
static int open_on_cpus(struct stat *s, size_t i)
{
	const struct quipu_parsed *e = &s->list.items[i];
	unsigned *mask = NULL, *cpus = s->cpus;
	int n = (int)s->ncpus, rc = 0;

	if (e->cpus && !s->options->cpus) {
		mask = calloc(s->run.machine->ncpus, sizeof(*mask));
		n = mask ? quipu_cpu_list(e->cpus, mask, s->run.machine->ncpus) : -ENOMEM;
		cpus = mask;
	}
	if (n < 0)
		rc = n;
	for (int k = 0; k < n && !rc; k++) {
		struct handle *h =
			add_handle(&s->counters[i], place_of_cpu(s, (int)cpus[k]), (int)cpus[k]);

		rc = h ? open_one(s, i, h, NULL, false) : -ENOMEM;
	}
	free(mask);
	return rc;
}

static void close_counter(struct counter *c)
{
	for (size_t k = 0; k < c->n; k++)
		if (c->handles[k].event)
			quipu_event_close(c->handles[k].event);
	free(c->handles);
	free(c->reason);
	*c = (struct counter){0};
}

/* A weak group that the PMU refuses as a whole is taken apart: its events count alone. */
static void break_group(struct stat *s, size_t leader)
{
	for (size_t i = s->list.n; i-- > leader;) {
		if (s->list.items[i].leader != leader)
			continue;
		close_counter(&s->counters[i]);
		s->list.items[i].leader = i;
		s->list.items[i].members = 1;
	}
}

static int open_counter(struct stat *s, size_t i)
{
	const struct quipu_parsed *e = &s->list.items[i];
	const struct counter *leader = &s->counters[e->leader];
	const char *unmodelled;
	int rc;

	if (e->leader != i && leader->refused == STAT_NOT_SUPPORTED) {
		s->counters[i].refused = STAT_NOT_SUPPORTED;
		return asprintf(&s->counters[i].reason,
				"the leader of its group, %s, is not supported",
				s->list.items[e->leader].name) < 0
			       ? cli_error("out of memory")
			       : 0;
	}
	rc = by_cpu(s, e) ? open_on_cpus(s, i) : open_on_task(s, i, s->run.task, false);
	unmodelled = run_unmodelled(&e->attr);
	if (!rc && unmodelled) {
		s->counters[i].refused = STAT_NOT_MODELLED;
		s->counters[i].reason = strdup(unmodelled);
	}
	return rc ? refuse(s, i, rc) : 0;
}

static int open_events(struct stat *s)
{
	int rc = events_cpus(&s->run, s->options->cpus, &s->cpus, &s->ncpus);

	for (size_t i = 0; i < s->list.n && !rc; i++) {
		size_t leader = s->list.items[i].leader;

		if (s->counters[i].n || s->counters[i].refused != STAT_COUNTED)
			continue; /* of another group, when one was taken apart */
		rc = open_counter(s, i);
		if (!rc && leader != i && s->list.items[leader].weak &&
		    s->counters[i].refused == STAT_NOT_SUPPORTED &&
		    s->counters[leader].refused != STAT_NOT_SUPPORTED) {
			break_group(s, leader);
			i = leader - 1; /* open its events anew, each alone */
		}
	}
	return rc;
}

/* A thread was made: it gets events of its own (--per-thread). */
static void on_task(void *arg, struct quipu_task *task)
{
	struct stat *s = arg;

	if (!s->open || s->options->aggregation != STAT_THREAD)
		return;
	for (size_t i = 0; i < s->list.n; i++)
		if (s->counters[i].refused != STAT_NOT_SUPPORTED && !by_cpu(s, &s->list.items[i]))
			s->failed |= open_on_task(s, i, task, true) != 0;
}

/* ---- from counts to rows ---- */

static struct quipu_count since_last(struct stat *s, struct handle *h)
{
	struct quipu_count now = {0}, d;

	if (!h->event)
		return now;
	quipu_event_count(h->event, &now);
	d = now;
	if (s->options->interval_ms) {
		d.value -= h->last.value;
		d.enabled -= h->last.enabled;
		d.running -= h->last.running;
		d.truth -= h->last.truth;
		h->last = now;
	}
	return d;
}

/* The count had the event run all the time it was enabled, to the nearest whole as perf estimates
 * it. */
static double scaled(const struct quipu_count *c)
{
	if (!c->running)
		return 0;
	if (c->running >= c->enabled)
		return (double)c->value;
	return floor((double)c->value * (double)c->enabled / (double)c->running + 0.5);
}

/* What the handles of events first..end-1 in @place counted, added up. */
static void sum_row(struct stat *s, size_t first, size_t end, size_t place, struct stat_row *row)
{
	double value = 0, truth = 0;
	bool has_truth = true;

	for (size_t i = first; i < end; i++)
		for (size_t k = 0; k < s->counters[i].n; k++) {
			struct handle *h = &s->counters[i].handles[k];
			struct quipu_count c;

			if (h->where != place)
				continue;
			c = since_last(s, h);
			row->units++;
			row->enabled += c.enabled;
			row->running += c.running;
			value += scaled(&c);
			has_truth = has_truth && c.has_truth;
			truth += c.has_truth ? (double)c.truth : 0;
			if (!c.running && c.reason)
				row->reason = c.reason;
			if (c.remark)
				row->remark = c.remark;
		}
	row->value = value;
	row->truth = truth;
	row->has_truth = has_truth && row->units;
}

static const char *not_counted_reason(const struct stat_row *row)
{
	if (row->reason)
		return row->reason;
	return row->enabled ? "it was never on a counter: others filled them all the time"
			    : "it was not enabled while anything ran";
}

/* A 0 that could be nothing else says why. */
static const char *reason_for_zero(const struct quipu_attr *a)
{
	if (a->flags & QUIPU_ATTR_EXCLUDE_HOST)
		return "only guests of a hypervisor were asked for, and this machine runs none";
	if (a->flags & QUIPU_ATTR_EXCLUDE_USER)
		return "only kernel or hypervisor mode was asked for, and the engine runs user code alone";
	return NULL;
}

static void fill_row(struct stat *s, size_t first, size_t end, size_t place, struct stat_row *row)
{
	const struct quipu_parsed *e = &s->list.items[first];
	const struct counter *c = &s->counters[first];
	bool clock =
		e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config <= PERF_COUNT_SW_TASK_CLOCK;

	*row = (struct stat_row){
		.where_id = place,
		.where = s->options->aggregation == STAT_GLOBAL ? NULL : s->places[place].label,
		.name = e->name,
		.unit = clock ? "msec" : e->unit,
		.scale = clock ? 1e-6 : e->scale,
		.type = e->attr.type,
		.config = e->attr.config,
		.rings = (unsigned)(e->attr.flags / QUIPU_ATTR_EXCLUDE_USER) & 7,
		.exactness = c->exactness,
	};
	sum_row(s, first, end, place, row);
	row->state = c->refused;
	if (row->state != STAT_COUNTED) {
		row->reason = c->reason;
		row->remark = NULL;
		row->enabled = row->running = 0;
		row->has_truth = false;
	} else if (!row->running) {
		row->state = STAT_NOT_COUNTED;
		row->reason = not_counted_reason(row);
	} else {
		/* What the driver said of its own event is nearer to the cause. */
		row->reason = row->value || row->remark ? NULL : reason_for_zero(&e->attr);
	}
}

static bool has_place(const struct stat *s, size_t first, size_t end, size_t place)
{
	for (size_t i = first; i < end; i++)
		for (size_t k = 0; k < s->counters[i].n; k++)
			if (s->counters[i].handles[k].where == place)
				return true;
	return false;
}

/* The end of the events that share a line with @first. */
static size_t line_end(const struct stat *s, size_t first)
{
	size_t end = first + 1;

	if (s->options->no_merge || !s->list.items[first].merge)
		return end;
	while (end < s->list.n && s->list.items[end].term == s->list.items[first].term)
		end++;
	return end;
}

/* One row for each line and place; an event that was refused everywhere gets one row all the same.
 */
static int make_rows(struct stat *s)
{
	size_t places = s->nplaces ? s->nplaces : 1, n = 0;

	free(s->rows);
	s->rows = calloc(s->list.n * places, sizeof(*s->rows));
	if (!s->rows || (!s->nplaces && place_of(s, 0, "") == SIZE_MAX))
		return cli_error("out of memory");
	for (size_t i = 0, end; i < s->list.n; i = end) {
		end = line_end(s, i);
		for (size_t p = 0; p < s->nplaces; p++)
			if (has_place(s, i, end, p))
				fill_row(s, i, end, p, &s->rows[n++]);
		if (!n || s->rows[n - 1].name != s->list.items[i].name)
			fill_row(s, i, end, 0, &s->rows[n++]);
	}
	s->nrows = n;
	return 0;
}

/* ---- several runs ---- */

static void series_add(struct series *x, double v, unsigned n)
{
	double delta = v - x->mean;

	x->mean += delta / n;
	x->m2 += delta * (v - x->mean);
}

/* Standard deviation of the mean of @n runs. */
static double series_deviation(const struct series *x, unsigned n)
{
	return n < 2 ? 0 : sqrt(x->m2 / (n - 1) / n);
}

/* Take this run's rows into the series, and turn the rows into means. */
static int add_run(struct stat *s)
{
	double host[3];
	unsigned n = ++s->done;

	s->partial |= run_partial(&s->run);
	if (!s->series)
		s->series = calloc(s->nrows + 1, sizeof(*s->series));
	if (!s->series)
		return cli_error("out of memory");
	series_add(&s->elapsed, (double)quipu_system_time(s->run.system) / 1e9, n);
	session_host_times(s->run.session, &host[0], &host[1], &host[2]);
	for (unsigned i = 0; i < 3; i++)
		series_add(&s->host[i], host[i], n);
	for (size_t i = 0; i < s->nrows; i++) {
		struct stat_row *r = &s->rows[i];
		struct series *x = &s->series[i];
		double deviation;

		series_add(x, r->value, n);
		x->truth += r->truth;
		x->enabled += (double)r->enabled;
		x->running += (double)r->running;
		deviation = series_deviation(x, n);
		r->value = x->mean;
		r->truth = x->truth / n;
		r->enabled = (uint64_t)(x->enabled / n);
		r->running = (uint64_t)(x->running / n);
		r->deviation = x->mean ? 100 * deviation / x->mean : 0;
	}
	return 0;
}

/* ---- output ---- */

static void print_sheet(struct stat *s, double at, double elapsed)
{
	const struct options *o = s->options;
	struct stat_sheet sheet = {
		.format = o->format,
		.aggregation = o->aggregation,
		.separator = o->separator,
		.digits = o->digits,
		.title = s->title,
		.runs = s->done,
		.interval = o->interval_ms,
		.at = at,
		.elapsed = elapsed,
		.elapsed_deviation = series_deviation(&s->elapsed, s->done),
		.host_elapsed = s->host[0].mean,
		.host_user = s->host[1].mean,
		.host_system = s->host[2].mean,
		.partial = s->partial,
		.rows = s->rows,
		.n = s->nrows,
	};
	locale_t before = uselocale(s->locale);

	stat_print(s->out, &sheet, !s->printed);
	uselocale(before);
	s->printed = true;
}

static void print_interval(void *arg, uint64_t now)
{
	struct stat *s = arg;
	double at = (double)now / 1e9;

	if (at <= s->last_at || make_rows(s))
		return;
	s->partial |= run_partial(&s->run);
	print_sheet(s, at, at - s->last_at);
	fflush(s->out);
	s->last_at = at;
}

static int open_output(struct stat *s)
{
	const char *path = s->options->output;

	s->out = path ? fopen(path, s->options->append ? "ae" : "we") : stderr;
	return s->out ? 0 : cli_error("cannot write %s: %s", path, strerror(errno));
}

/* @keep: what was counted is in it. */
static int close_output(struct stat *s, bool keep)
{
	bool bad;
	int err;

	if (!s->out)
		return 0;
	errno = 0;
	bad = fflush(s->out) || ferror(s->out);
	if (s->out != stderr)
		bad = fclose(s->out) || bad;
	err = errno;
	s->out = NULL;
	/* A file that we began and could not finish is nobody's; what --append adds to stays. */
	if ((bad || !keep) && s->options->output && !s->options->append)
		cli_remove_file(s->options->output);
	return bad ? cli_error("cannot write %s: %s",
			       s->options->output ? s->options->output : "standard error",
			       strerror(err ? err : EIO))
		   : 0;
}

static int make_title(struct stat *s)
{
	const struct options *o = s->options;
	size_t len = 0;
	FILE *f;

	if (o->cpus)
		return asprintf(&s->title, "'CPU(s) %s'", o->cpus) < 0 ? cli_error("out of memory")
								       : 0;
	if (o->system_wide)
		return asprintf(&s->title, "'system wide'") < 0 ? cli_error("out of memory") : 0;
	f = open_memstream(&s->title, &len);
	if (!f)
		return cli_error("out of memory");
	putc('\'', f);
	for (char **a = o->argv; *a; a++)
		fprintf(f, "%s%s", a == o->argv ? "" : " ", *a);
	putc('\'', f);
	return fclose(f) ? cli_error("out of memory") : 0;
}

/* ---- the story ---- */

/* Events of CPUs have no exec to start them. */
static void enable_cpu_events(struct stat *s)
{
	for (size_t i = 0; i < s->list.n; i++)
		for (size_t k = 0; by_cpu(s, &s->list.items[i]) && k < s->counters[i].n; k++)
			if (s->counters[i].handles[k].event &&
			    !leader_event(s, i, &s->counters[i].handles[k]))
				quipu_event_ioctl(s->counters[i].handles[k].event,
						  PERF_EVENT_IOC_ENABLE, 0);
}

static void close_run(struct stat *s)
{
	s->open = false;
	for (size_t i = s->list.n; s->counters && i-- > 0;)
		close_counter(&s->counters[i]);
	free(s->counters);
	s->counters = NULL;
	free(s->cpus);
	s->cpus = NULL;
	free(s->places);
	s->places = NULL;
	s->nplaces = 0;
	free(s->rows);
	s->rows = NULL;
	quipu_event_list_free(&s->list);
	quipu_catalog_free(s->catalog);
	s->catalog = NULL;
	run_close(&s->run);
}

static int prepare(struct stat *s, const struct run_options *run)
{
	int rc = run_open(&s->run, run, s->options->argv);

	if (!rc)
		rc = parse_events(s);
	return rc ? rc : open_events(s);
}

static void finish(struct stat *s, bool last)
{
	double end = (double)quipu_system_time(s->run.system) / 1e9;

	if (s->options->interval_ms) {
		print_interval(s, quipu_system_time(s->run.system));
		return;
	}
	if (make_rows(s) || add_run(s) || !last)
		return;
	print_sheet(s, end, s->elapsed.mean);
}

/* One run. *status: what the program ended with. */
static int run_once(struct stat *s, bool last, int *status)
{
	struct run_options run = s->options->run;
	int rc;

	run.task_new = on_task;
	run.task_arg = s;
	rc = prepare(s, &run);
	if (rc) {
		close_run(s);
		return rc;
	}
	s->open = true;
	if (s->options->interval_ms)
		quipu_system_set_interval(s->run.system,
					  s->options->interval_ms * UINT64_C(1000000),
					  print_interval, s);
	enable_cpu_events(s);
	*status = run_go(&s->run, &interrupted);
	finish(s, last || interrupted);
	if (s->failed)
		cli_error("some threads could not be counted");
	run_notes(&s->run, s->options->run.verbose);
	close_run(s);
	return 0;
}

int cmd_stat(int argc, char **argv)
{
	struct options options;
	struct stat s = {.options = &options};
	int status = 0, rc = parse_options(&options, argc, argv);

	if (rc)
		return rc < 0 ? 0 : rc;
	/* Fields and JSON are for programs: they keep the decimal point. */
	s.locale = newlocale(LC_NUMERIC_MASK, options.format == STAT_TEXT ? "" : "C", (locale_t)0);
	if (!s.locale)
		s.locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	rc = open_output(&s);
	if (!rc)
		rc = make_title(&s);
	interrupted = 0;
	run_catch(on_signal);
	for (uint64_t i = 1; i <= options.runs && !rc && !interrupted; i++)
		rc = run_once(&s, i == options.runs, &status);
	if (rc)
		close_output(&s, false);
	else
		rc = close_output(&s, true);
	freelocale(s.locale);
	free(s.series);
	free(s.title);
	return rc ? rc : status;
}
