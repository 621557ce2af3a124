/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu record: run a program on a machine, sample it, write perf.data. Option letters, defaults
 * and attributes are those of perf record (perf ABI sheet B3, B7 case 6); the file is
 * profile/perfdata.h's.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <quipu/grammar.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "profile/perfdata.h"

#define DATA_PAGES	128u
#define PAGE		4096u
#define MAX_EVENT_ARGS	64u
#define DEFAULT_FREQ	4000u
#define FALLBACK_EVENTS "cycles"

struct options {
	struct run_options run;
	const char *events[MAX_EVENT_ARGS];
	size_t nevents;
	uint64_t period, freq;
	bool system_wide, branches, quiet;
	const char *cpus;
	const char *output;
	char **argv; /* the program */
};

/* The ring of one CPU; every event of that CPU writes into it. */
struct ring {
	struct quipu_event *owner;
	uint8_t *mem;
	uint8_t *straight; /* a copy of what wraps */
};

struct recording {
	struct run run;
	const struct options *options;
	struct quipu_catalog *catalog;
	struct quipu_event_list list;
	struct quipu_event **events; /* [event * ncpus + cpu] */
	unsigned ncpus;
	unsigned *cpus;
	struct ring *rings; /* by position in cpus */
	int *ring_of_cpu;   /* machine CPU -> position, -1 */
	struct perfdata_writer *file;
	int write_error;
	struct timespec shown; /* when the progress line was last drawn */
};

static volatile int interrupted;

static void on_signal(int sig)
{
	(void)sig;
	interrupted = RUN_INTERRUPTED;
}

/* ---- options ---- */

static const char usage[] =
	"usage: quipu record [-m M] [-e EVENT] [-c N | -F HZ] [-g] [-a | -C CPUS] [-o FILE] [--] PROGRAM [ARGS]\n"
	"\n"
	"  -m, --machine M     a machine of `quipu machine list`, or a .dts/.dtb file; default: by the program's ELF header\n"
	"  -e, --event EVENT   what to sample, in perf's grammar; may be repeated (default: cycles)\n"
	"  -c, --count N       a sample every N events\n"
	"  -F, --freq HZ       samples per second of model time (default: 4000)\n"
	"  -g                  with call chains, followed exactly from calls and returns\n"
	"  -b                  with the branch stack, where the machine records one\n"
	"  -a, -C, --cpu LIST  every CPU of the machine, or those of LIST, instead of the program's threads\n"
	"  -o, --output FILE   default perf.data; an older one becomes perf.data.old\n"
	"  -L, --sysroot DIR   where the program's dynamic loader and libraries are\n"
	"      --timing base|full, --trace[=FILE], --paranoid N, -v, -q\n";

enum { OPT_TRACE = 256, OPT_TIMING, OPT_PARANOID, OPT_NO_LOCAL };

static const struct option long_options[] = {
	{"machine", required_argument, NULL, 'm'},
	{"event", required_argument, NULL, 'e'},
	{"count", required_argument, NULL, 'c'},
	{"freq", required_argument, NULL, 'F'},
	{"call-graph", optional_argument, NULL, 'g'},
	{"all-cpus", no_argument, NULL, 'a'},
	{"cpu", required_argument, NULL, 'C'},
	{"output", required_argument, NULL, 'o'},
	{"sysroot", required_argument, NULL, 'L'},
	{"branch-any", no_argument, NULL, 'b'},
	{"trace", optional_argument, NULL, OPT_TRACE},
	{"timing", required_argument, NULL, OPT_TIMING},
	{"paranoid", required_argument, NULL, OPT_PARANOID},
	{"no-local", no_argument, NULL, OPT_NO_LOCAL},
	{"verbose", no_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int parse_number(const char *text, const char *what, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (errno || *end || !*text || *text == '-' || !*out)
		return cli_error("%s takes a whole number above 0, not '%s'", what, text);
	return 0;
}

static int parse_option(struct options *o, int c)
{
	switch (c) {
	case 'm': o->run.machine = optarg; return 0;
	case 'e':
		if (o->nevents == MAX_EVENT_ARGS)
			return cli_error("more than %u times -e; join events with commas",
					 MAX_EVENT_ARGS);
		o->events[o->nevents++] = optarg;
		return 0;
	case 'c': return parse_number(optarg, "-c", &o->period);
	case 'F': return parse_number(optarg, "-F", &o->freq);
	case 'g': o->run.stack = true; return 0;
	case 'b': o->branches = o->run.branches = true; return 0;
	case 'a': o->system_wide = true; return 0;
	case 'C': o->cpus = optarg; return 0;
	case 'o': o->output = optarg; return 0;
	case 'L': o->run.sysroot = optarg; return 0;
	case 'v': o->run.verbose = true; return 0;
	case 'q': o->quiet = true; return 0;
	case OPT_TRACE: o->run.trace = optarg ? optarg : ""; return 0;
	case OPT_NO_LOCAL: o->run.bell = true; return 0;
	case OPT_PARANOID: o->run.paranoid = atoi(optarg); return 0;
	case OPT_TIMING:
		if (strcmp(optarg, "base") && strcmp(optarg, "full"))
			return cli_error("--timing takes base or full, not '%s'", optarg);
		o->run.timing_full = optarg[0] == 'f';
		return 0;
	case 'h': fputs(usage, stdout); return -1;
	}
	fputs(usage, stderr);
	return 2;
}

/* 0: go on; -1: help was shown; else the exit status. */
static int parse_options(struct options *o, int argc, char **argv)
{
	int c, rc;

	*o = (struct options){.output = "perf.data", .run.paranoid = -1};
	optind = 0; /* start over: getopt keeps its place between commands */
	while ((c = getopt_long(argc, argv, "+m:e:c:F:gbaC:o:L:vqh", long_options, NULL)) != -1) {
		rc = parse_option(o, c);
		if (rc)
			return rc;
	}
	if (o->period && o->freq)
		return cli_error("-c and -F exclude each other: a fixed period has no frequency");
	if (optind == argc)
		return cli_error(
			"nothing to run: name a program, for example `quipu record ./prog`");
	o->argv = argv + optind;
	return 0;
}

/* ---- events ---- */

static int parse_events(struct recording *r)
{
	const struct options *o = r->options;
	struct quipu_grammar_error err;
	size_t n = o->nevents ? o->nevents : 1;

	r->catalog = quipu_catalog_new(r->run.tree);
	if (!r->catalog)
		return cli_error("out of memory");
	for (size_t i = 0; i < n; i++) {
		const char *text = o->nevents ? o->events[i] : FALLBACK_EVENTS;
		char where[512];

		if (!quipu_grammar_parse(r->catalog, text, &r->list, &err))
			continue;
		quipu_grammar_explain(text, &err, where, sizeof(where));
		fputs(where, stderr);
		return 2;
	}
	return 0;
}

static void complete_attr(const struct recording *r, size_t i)
{
	struct quipu_parsed *e = &r->list.items[i];
	struct quipu_attr *a = &e->attr;
	const struct options *o = r->options;
	bool leads = e->leader == i, reads = r->list.items[e->leader].sample_read;

	a->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			  PERF_SAMPLE_PERIOD;
	if (r->list.n > 1)
		a->sample_type |= PERF_SAMPLE_IDENTIFIER;
	if (o->run.stack)
		a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (o->branches) {
		a->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		a->branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	}
	a->read_format |= PERF_FORMAT_ID;
	if (reads) {
		a->sample_type |= PERF_SAMPLE_READ;
		a->read_format |= PERF_FORMAT_GROUP;
	}
	if (!e->has_period && !e->has_freq && (leads || !reads)) {
		a->sample_period = o->period ? o->period : o->freq ? o->freq : DEFAULT_FREQ;
		if (!o->period)
			a->flags |= QUIPU_ATTR_FREQ;
	}
	a->flags |= QUIPU_ATTR_SAMPLE_ID_ALL;
	if (leads)
		a->flags |= QUIPU_ATTR_DISABLED |
			    (o->system_wide || o->cpus ? 0 : QUIPU_ATTR_ENABLE_ON_EXEC);
	if (!o->system_wide && !o->cpus && !e->inherit_off)
		a->flags |= QUIPU_ATTR_INHERIT;
	if (i == 0)
		a->flags |= QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2 | QUIPU_ATTR_COMM |
			    QUIPU_ATTR_COMM_EXEC | QUIPU_ATTR_TASK;
}

static int refuse_event(const struct recording *r, const struct quipu_parsed *e, int err)
{
	const char *reason = quipu_core_last_reason(r->run.core);

	return cli_error("machine %s cannot sample %s: %s (%s)", r->run.machine->name, e->name,
			 *reason ? reason : strerror(-err), strerrorname_np(-err));
}

static int open_one(struct recording *r, size_t i, unsigned at)
{
	struct quipu_parsed *e = &r->list.items[i];
	const char *unmodelled = run_unmodelled(&e->attr);
	struct quipu_event *group = e->leader == i ? NULL : r->events[e->leader * r->ncpus + at];
	pid_t pid = r->options->system_wide || r->options->cpus ? -1 : quipu_task_pid(r->run.task);
	struct quipu_event **out = &r->events[i * r->ncpus + at];
	int precise = e->precise_max ? 3 : -1, rc;
	uint32_t size_back;

	if (unmodelled)
		return cli_error("machine %s cannot sample %s: %s", r->run.machine->name, e->name,
				 unmodelled);
	for (;;) {
		if (precise >= 0)
			e->attr.flags = (e->attr.flags & ~QUIPU_ATTR_PRECISE_MASK) |
					(uint64_t)precise << QUIPU_ATTR_PRECISE_SHIFT;
		rc = quipu_event_open(r->run.core, &r->run.caller, &e->attr, sizeof(e->attr), pid,
				      (int)r->cpus[at], group, 0, &size_back, out);
		if (rc && precise-- > 0)
			continue;
		/* perf's own default, not the user's wish: where a PMU cannot leave guests out,
		 * there are none. */
		if (rc != -EINVAL || !(e->attr.flags & QUIPU_ATTR_EXCLUDE_GUEST))
			return rc ? refuse_event(r, e, rc) : 0;
		e->attr.flags &= ~QUIPU_ATTR_EXCLUDE_GUEST;
	}
}

static int open_ring(struct recording *r, unsigned at)
{
	struct ring *ring = &r->rings[at];
	size_t bytes = (1 + DATA_PAGES) * (size_t)PAGE;
	int rc;

	ring->owner = r->events[at];
	ring->mem = aligned_alloc(PAGE, bytes);
	ring->straight = malloc(DATA_PAGES * (size_t)PAGE);
	if (!ring->mem || !ring->straight)
		return cli_error("out of memory");
	memset(ring->mem, 0, bytes);
	rc = quipu_event_map(ring->owner, &r->run.caller, ring->mem, DATA_PAGES, true);
	for (size_t i = 1; i < r->list.n && !rc; i++)
		rc = quipu_event_set_output(r->events[i * r->ncpus + at], ring->owner);
	return rc ? cli_error("cannot make the ring of CPU %u: %s", r->cpus[at], strerror(-rc)) : 0;
}

static int choose_cpus(struct recording *r)
{
	unsigned all = r->run.machine->ncpus;
	int n = (int)all;

	r->cpus = calloc(all, sizeof(*r->cpus));
	r->ring_of_cpu = calloc(all, sizeof(*r->ring_of_cpu));
	if (!r->cpus || !r->ring_of_cpu)
		return cli_error("out of memory");
	for (unsigned c = 0; c < all; c++) {
		r->cpus[c] = c;
		r->ring_of_cpu[c] = -1;
	}
	if (r->options->cpus)
		n = quipu_cpu_list(r->options->cpus, r->cpus, all);
	if (n <= 0 || r->cpus[n - 1] >= all)
		return cli_error("-C %s: machine %s has CPUs 0-%u", r->options->cpus,
				 r->run.machine->name, all - 1);
	r->ncpus = (unsigned)n;
	for (unsigned at = 0; at < r->ncpus; at++)
		r->ring_of_cpu[r->cpus[at]] = (int)at;
	return 0;
}

static int open_events(struct recording *r)
{
	int rc = choose_cpus(r);

	if (rc)
		return rc;
	r->events = calloc(r->list.n * r->ncpus, sizeof(struct quipu_event *));
	r->rings = calloc(r->ncpus, sizeof(*r->rings));
	if (!r->events || !r->rings)
		return cli_error("out of memory");
	for (size_t i = 0; i < r->list.n; i++)
		complete_attr(r, i);
	for (unsigned at = 0; at < r->ncpus; at++) {
		for (size_t i = 0; i < r->list.n && !rc; i++)
			rc = open_one(r, i, at);
		if (!rc)
			rc = open_ring(r, at);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- what the events are made of ---- */

static enum quipu_exactness require_signal(struct recording *r, size_t i)
{
	struct quipu_event *e = r->events[i * r->ncpus];
	struct quipu_pmu *pmu = quipu_event_pmu(e);
	bool filtered = false;
	quipu_signal signal = pmu->signal ? pmu->signal(e, &filtered) : QUIPU_SIGNAL_NONE;

	if (signal == QUIPU_SIGNAL_NONE)
		return QUIPU_MODELLED;
	session_require(r->run.session, signal);
	return quipu_signal_exactness(signal);
}

static int describe_events(struct recording *r)
{
	uint64_t *ids = calloc(r->ncpus, sizeof(*ids));
	int rc = ids ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->list.n && !rc; i++) {
		const struct quipu_parsed *e = &r->list.items[i];

		for (unsigned at = 0; at < r->ncpus; at++)
			ids[at] = quipu_event_id(r->events[i * r->ncpus + at]);
		rc = perfdata_add_event(r->file, &e->attr, ids, r->ncpus, e->name,
					require_signal(r, i));
	}
	free(ids);
	return rc ? cli_error("%s: %s", r->options->output, strerror(-rc)) : 0;
}

/* ---- rings to file ---- */

/* A line that is drawn over and over must not meet the program's output on one terminal. */
static bool draws(const struct recording *r)
{
	return !r->options->quiet && cli_progress() && !cli_colour();
}

static void show_progress(struct recording *r)
{
	struct timespec now;

	if (!draws(r))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec == r->shown.tv_sec && now.tv_nsec - r->shown.tv_nsec < 200000000)
		return;
	r->shown = now;
	/* The cursor goes back, so that what the program says of an error begins on the left. */
	fprintf(stderr, "\033[K[ quipu record: %" PRIu64 " samples, %.3f MB ]\r",
		perfdata_samples(r->file), (double)perfdata_bytes(r->file) / 1e6);
}

static void drain_ring(struct recording *r, struct ring *ring)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)ring->mem;
	const uint8_t *data = ring->mem + PAGE;
	const uint64_t size = DATA_PAGES * (uint64_t)PAGE;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	uint64_t at = tail % size, len = head - tail;

	if (!len)
		return;
	if (at + len > size) {
		memcpy(ring->straight, data + at, size - at);
		memcpy(ring->straight + (size - at), data, len - (size - at));
		data = ring->straight;
		at = 0;
	}
	if (!r->write_error) {
		r->write_error = perfdata_append(r->file, data + at, len);
		if (r->write_error)
			interrupted = RUN_IN_VAIN;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	show_progress(r);
}

static void on_wake(void *arg, struct quipu_event *event, unsigned bits)
{
	struct recording *r = arg;
	int cpu = quipu_event_cpu(event);

	(void)bits;
	if (r->rings && cpu >= 0 && r->ring_of_cpu[cpu] >= 0 && r->rings[r->ring_of_cpu[cpu]].mem)
		drain_ring(r, &r->rings[r->ring_of_cpu[cpu]]);
}

/* ---- the file's header ---- */

static struct perfdata_cpu *make_topology(const struct quipu_machine *m)
{
	struct perfdata_cpu *t = calloc(m->ncpus, sizeof(*t));

	for (unsigned c = 0; t && c < m->ncpus; c++)
		t[c] = (struct perfdata_cpu){.core = m->cpus[c].core,
					     .die = m->cpus[c].die,
					     .socket = m->cpus[c].socket,
					     .node = m->cpus[c].node};
	return t;
}

/* The groups among the events; NULL when there are none. */
static struct perfdata_group *find_groups(const struct recording *r, size_t *n)
{
	struct perfdata_group *groups = calloc(r->list.n, sizeof(*groups));

	*n = 0;
	for (size_t i = 0; groups && i < r->list.n; i++)
		if (r->list.items[i].leader == i && r->list.items[i].members > 1)
			groups[(*n)++] = (struct perfdata_group){
				(uint32_t)i, (uint32_t)r->list.items[i].members};
	return groups;
}

/* @argv as cmd_record got it, with the command itself in front. */
static char **whole_command(char **argv)
{
	size_t n = 0;
	char **out;

	while (argv[n])
		n++;
	out = calloc(n + 2, sizeof(*out));
	if (!out)
		return NULL;
	out[0] = (char *)"quipu";
	memcpy(out + 1, argv, n * sizeof(*out));
	return out;
}

static int finish_file(struct recording *r, char **argv)
{
	const struct quipu_machine *m = r->run.machine;
	struct perfdata_info info = {
		.arch = quipu_isa_name(m->isa),
		.cpudesc = m->model && *m->model ? m->model : m->name,
		.cpuid = m->name,
		.machine = m->name,
		.cmdline = whole_command(argv),
		.cpus = m->ncpus,
		.cpus_online = m->ncpus,
		.memory_kb = m->memory_bytes / 1024,
		.partial = run_partial(&r->run),
	};
	struct perfdata_group *groups = find_groups(r, &info.nr_groups);
	struct perfdata_cpu *topology = make_topology(m);
	struct perfdata_pmu *pmus;
	struct perfdata_error err;
	struct utsname host;
	struct quipu_pmu *const *all;
	int rc;

	all = quipu_core_pmus(r->run.core, &info.nr_pmus);
	pmus = calloc(info.nr_pmus, sizeof(*pmus));
	for (size_t i = 0; pmus && i < info.nr_pmus; i++)
		pmus[i] =
			(struct perfdata_pmu){.type = (uint32_t)all[i]->type, .name = all[i]->name};
	info.pmus = pmus;
	info.topology = topology;
	info.groups = groups;
	if (!uname(&host)) {
		info.hostname = host.nodename;
		info.osrelease = host.release;
	}
	rc = perfdata_finish(r->file, &info, &err);
	r->file = NULL;
	free((void *)info.cmdline);
	free(groups);
	free(topology);
	free(pmus);
	return rc ? cli_error("%s", err.text) : 0;
}

/* Events that never ran, and what the drivers remarked of the others. */
static void tell_of_events(const struct recording *r)
{
	for (size_t i = 0; i < r->list.n; i++) {
		const char *reason = NULL, *remark = NULL;
		bool ran = false;

		for (unsigned at = 0; at < r->ncpus; at++) {
			struct quipu_count c;

			quipu_event_count(r->events[i * r->ncpus + at], &c);
			ran = ran || c.running;
			reason = reason ? reason : c.reason; /* programs begin on the first */
			remark = c.remark ? c.remark : remark;
		}
		if (!ran)
			fprintf(stderr, "quipu: %s never ran: %s\n", r->list.items[i].name,
				reason ? reason : "it was not enabled while the program ran");
		else if (remark)
			fprintf(stderr, "quipu: %s %s\n", r->list.items[i].name, remark);
	}
}

static const char *labels(const struct recording *r, char *buf, size_t len)
{
	bool partial = run_partial(&r->run);
	size_t n = 0;

	for (unsigned x = QUIPU_EXACT; x <= QUIPU_HOST; x++)
		for (size_t i = 0; i < r->list.n; i++)
			if (require_signal((struct recording *)r, i) == (enum quipu_exactness)x) {
				n += (size_t)snprintf(
					buf + n, len - n, "%s%s", n ? " and " : "",
					partial && x == QUIPU_EXACT
						? "partial"
						: quipu_exactness_name((enum quipu_exactness)x));
				break;
			}
	return buf;
}

/* ---- the story ---- */

static int prepare(struct recording *r)
{
	struct perfdata_error err;
	int rc = run_open(&r->run, &r->options->run, r->options->argv);

	if (!rc)
		rc = parse_events(r);
	if (!rc)
		rc = open_events(r);
	if (rc)
		return rc;
	r->file = perfdata_create(r->options->output, &err);
	return r->file ? describe_events(r) : cli_error("%s", err.text);
}

static int record(struct recording *r, char **argv)
{
	int status, rc = prepare(r);
	uint64_t samples, bytes;
	char names[32];

	if (rc)
		return rc;
	interrupted = 0;
	run_catch(on_signal);
	if (r->options->system_wide || r->options->cpus)
		for (size_t i = 0; i < r->list.n * r->ncpus; i++)
			quipu_event_ioctl(r->events[i], PERF_EVENT_IOC_ENABLE, 0);
	status = run_go(&r->run, &interrupted);
	for (unsigned at = 0; at < r->ncpus; at++)
		drain_ring(r, &r->rings[at]);
	if (draws(r))
		fputs("\r\033[K", stderr);
	run_notes(&r->run, r->options->run.verbose);
	tell_of_events(r);
	labels(r, names, sizeof(names));
	samples = perfdata_samples(r->file);
	bytes = perfdata_bytes(r->file);
	rc = finish_file(r, argv);
	if (rc)
		return rc;
	if (!r->options->quiet)
		fprintf(stderr,
			"[ quipu record: Captured and wrote %.3f MB %s (%" PRIu64
			" samples, %s) ]\n",
			(double)bytes / 1e6, r->options->output, samples, names);
	return status;
}

static void release(struct recording *r)
{
	if (r->run.session)
		session_stop(r->run.session);
	for (unsigned at = 0; r->rings && at < r->ncpus; at++)
		if (r->rings[at].mem && r->rings[at].owner)
			quipu_event_unmap(r->rings[at].owner);
	for (size_t i = 0; r->events && i < r->list.n * r->ncpus; i++)
		if (r->events[i])
			quipu_event_close(r->events[i]);
	for (unsigned at = 0; r->rings && at < r->ncpus; at++) {
		free(r->rings[at].mem);
		free(r->rings[at].straight);
	}
	perfdata_abort(r->file);
	free(r->rings);
	r->rings = NULL;
	run_close(&r->run);
	quipu_catalog_free(r->catalog);
	quipu_event_list_free(&r->list);
	free(r->events);
	free(r->cpus);
	free(r->ring_of_cpu);
}

int cmd_record(int argc, char **argv)
{
	struct recording r = {0};
	struct options o;
	int rc = parse_options(&o, argc, argv);

	if (rc)
		return rc < 0 ? 0 : rc;
	o.run.wake = on_wake;
	o.run.wake_arg = &r;
	r.options = &o;
	rc = record(&r, argv);
	release(&r);
	return rc;
}
