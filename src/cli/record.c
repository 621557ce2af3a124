/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu record: run a program on a machine, sample it, write perf.data. Option letters, defaults
 * and attributes are those of perf record (perf ABI sheet B3, B7 case 6); the file is
 * profile/perfdata.h's.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <quipu/bits.h>
#include <quipu/perf_regs.h>

#include "cli/cli.h"
#include "cli/hypervisor.h"
#include "cli/events.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "cli/record.h"
#include "cli/run.h"

#if defined(__x86_64__)
#define HOST_ISA QUIPU_ISA_X86_64
#else
#define HOST_ISA QUIPU_ISAS /* whose registers have no names here */
#endif

#define DATA_PAGES	128u
#define PAGE		4096u
#define RING_BYTES	((1 + DATA_PAGES) * (size_t)PAGE)
#define DEFAULT_FREQ	4000u
#define FALLBACK_EVENTS "cycles"
#define STACK_BYTES	8192u /* of a stack in each sample, as perf takes */

/* The ring of one CPU; every event of that CPU writes into it. */
struct ring {
	struct quipu_event *owner;
	uint8_t *mem;
};

struct recording {
	struct run run;
	struct record_options *options;
	struct quipu_catalog *catalog;
	struct quipu_event_list list;
	struct quipu_event **events; /* [event * ncpus + cpu] */
	size_t ncpus;
	unsigned *cpus;
	struct ring *rings; /* by position in cpus */
	uint8_t *memory;    /* theirs */
	uint8_t *straight;  /* a copy of what wraps in one of them */
	int *ring_of_cpu;   /* machine CPU -> position, -1 */
	struct perfdata_writer *file;
	int write_error;
	struct progress progress;
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
	"  -m, --machine M     a machine of `quipu machine list`, a .dts/.dtb file, or host: this host's own counters;\n"
	"                      default: by the program's ELF header (of the host's own: host)\n"
	"  -e, --event EVENT   what to sample, in perf's grammar; may be repeated (default: cycles)\n"
	"  -c, --count N       a sample every N events\n"
	"  -F, --freq HZ       samples per second (of model time on a modelled machine; default: 4000)\n"
	"  -g                  with call chains; on a modelled machine followed exactly from calls and returns\n"
	"      --call-graph fp|dwarf[,BYTES]  how the host finds them: by frame pointers, or by a copy of the stack\n"
	"  -b                  with the branch stack, where the machine records one\n"
	"      --user-regs[=LIST]  with the program's registers, all or those of LIST (riscv: pc,sp,a0); needs QEMU 9 or later\n"
	"  -a, -C, --cpu LIST  every CPU of the machine, or those of LIST, instead of the program's threads\n"
	"  -p, --pid LIST      processes of the host that run already;  -t, --tid LIST  threads\n"
	"  -i, --no-inherit    not the threads and children of the program\n"
	"  -o, --output FILE   default perf.data; an older one becomes perf.data.old\n"
	"  -L, --sysroot DIR   where the program's dynamic loader and libraries are\n"
	"      --mmap-pages N  pages of each CPU's ring on the host, a power of two\n"
	"      --sysfs DIR     read the PMUs from a recorded /sys instead of this host's\n"
	"      --timing base|full, --trace[=FILE], --paranoid N, -v, -q\n";

enum { OPT_CALL_GRAPH = OPT_OWN, OPT_PAGES, OPT_REGS };

static const struct option words[] = {
	OPTIONS_RUN_WORDS,
	OPTIONS_COUNT_WORDS,
	{"count", required_argument, NULL, 'c'},
	{"freq", required_argument, NULL, 'F'},
	{"call-graph", required_argument, NULL, OPT_CALL_GRAPH},
	{"pid", required_argument, NULL, 'p'},
	{"tid", required_argument, NULL, 't'},
	{"no-inherit", no_argument, NULL, 'i'},
	{"mmap-pages", required_argument, NULL, OPT_PAGES},
	{"branch-any", no_argument, NULL, 'b'},
	{"user-regs", optional_argument, NULL, OPT_REGS},
	{"quiet", no_argument, NULL, 'q'},
	{0},
};

static int parse_call_graph(struct record_options *o)
{
	char *end;

	o->run.stack = true;
	o->stack_bytes = STACK_BYTES;
	o->chain = CHAIN_FP;
	if (!strcmp(optarg, "fp"))
		return 0;
	if (strncmp(optarg, "dwarf", 5) || (optarg[5] && optarg[5] != ','))
		return cli_error("--call-graph takes fp, dwarf or dwarf,BYTES, not '%s'", optarg);
	o->chain = CHAIN_DWARF;
	if (!optarg[5])
		return 0;
	o->stack_bytes = strtoull(optarg + 6, &end, 0);
	if (*end || end == optarg + 6 || !o->stack_bytes || o->stack_bytes % 8 ||
	    o->stack_bytes > 65528)
		return cli_error("--call-graph dwarf,BYTES: a multiple of 8 up to 65528, not '%s'",
				 optarg + 6);
	return 0;
}

static int parse_pages(struct record_options *o)
{
	int rc = options_number("--mmap-pages", "pages", 1, 1u << 20, &o->pages);

	if (!rc && o->pages & (o->pages - 1))
		return cli_error("--mmap-pages takes a power of two, not '%s'", optarg);
	return rc;
}

static int parse_option(void *options, int c)
{
	struct record_options *o = options;

	switch (c) {
	case 'e': return options_event(&o->events);
	case 'c': return options_number("-c", "events", 1, UINT64_MAX, &o->period);
	case 'F': return options_number("-F", "samples a second", 1, UINT64_MAX, &o->freq);
	case 'g':
		o->run.stack = true;
		o->chain = o->chain ? o->chain : CHAIN_FP;
		return 0;
	case OPT_CALL_GRAPH: return parse_call_graph(o);
	case OPT_PAGES: return parse_pages(o);
	case OPT_REGS:
		o->with_regs = true;
		o->regs = optarg;
		return 0;
	case 'p': o->pids = optarg; return 0;
	case 't': o->tids = optarg; return 0;
	case 'i': o->no_inherit = true; return 0;
	case 'b': o->branches = o->run.branches = true; return 0;
	case 'a': o->system_wide = true; return 0;
	case 'C': o->cpus = optarg; return 0;
	case 'o': o->output = optarg; return 0;
	case 'q': o->quiet = true; return 0;
	}
	return OPTIONS_NOT_MINE;
}

/* Without a program: whole CPUs or processes of the host, until Ctrl-C. */
static bool may_be_bare(const void *options, const struct run_options *run)
{
	const struct record_options *o = options;

	return o->pids || o->tids ||
	       ((o->system_wide || o->cpus) && (!run->machine || !strcmp(run->machine, "host")));
}

/* 0: go on; -1: help was shown; else the exit status. */
static int parse_options(struct record_options *o, int argc, char **argv)
{
	static const struct options_set set = {
		.command = "record",
		.usage = usage,
		.example = "quipu record ./prog",
		.letters = "+:" OPTIONS_RUN_LETTERS "e:c:F:gbaC:o:qip:t:",
		.words = words,
		.own = parse_option,
		.bare = may_be_bare,
	};
	int rc;

	*o = (struct record_options){.output = "perf.data", .run.paranoid = -1};
	rc = options_parse(&set, o, &o->run, argc, argv, &o->argv);
	if (!rc && o->period && o->freq)
		rc = cli_error("-c and -F exclude each other: a fixed period has no frequency");
	if (!rc && o->pids && o->tids)
		rc = cli_error("-p and -t exclude each other");
	if (!rc && (o->pids || o->tids) && (o->system_wide || o->cpus))
		rc = cli_error("-p and -t follow processes, -a and -C whole CPUs: choose one");
	return rc;
}

/* ---- events ---- */

static int parse_events(struct recording *r)
{
	const struct options_events *e = &r->options->events;
	int rc = 0;

	r->catalog = events_catalog(r->run.core, e->texts, e->n);
	if (!r->catalog)
		return 2;
	for (size_t i = 0; i < e->n && !rc; i++)
		rc = events_parse(r->catalog, e->texts[i], &r->list);
	return e->n ? rc : events_parse(r->catalog, FALLBACK_EVENTS, &r->list);
}

int record_registers(struct record_options *o, enum quipu_isa isa, uint64_t given)
{
	uint64_t valid = quipu_perf_regs_valid(isa);
	const char *bad, *sep = "";
	char names[512];
	size_t n = 0;

	o->regs_mask = given;
	if (!o->with_regs || (valid && !o->regs) ||
	    (valid && !quipu_perf_regs_parse(isa, o->regs, &o->regs_mask, &bad)))
		return 0;
	if (!valid)
		return cli_error("--user-regs: perf has no registers of %s", quipu_isa_name(isa));
	for (uint64_t m = valid; m; m &= m - 1, sep = ", ")
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", sep,
				      quipu_perf_reg_name(isa, bits_low(m)));
	return cli_error("--user-regs: %s has no register '%.*s'; there are %s",
			 quipu_isa_name(isa), (int)strcspn(bad, ","), bad, names);
}

void record_complete(const struct record_options *o, struct quipu_event_list *list, size_t i)
{
	struct quipu_parsed *e = &list->items[i];
	struct quipu_attr *a = &e->attr;
	bool leads = e->leader == i, reads = list->items[e->leader].sample_read;
	bool on_cpus = o->system_wide || o->cpus;

	a->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
			  PERF_SAMPLE_PERIOD;
	if (list->n > 1)
		a->sample_type |= PERF_SAMPLE_IDENTIFIER;
	if (o->run.stack)
		a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (o->branches) {
		a->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		a->branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	}
	if (o->with_regs) {
		a->sample_type |= PERF_SAMPLE_REGS_USER;
		a->sample_regs_user = o->regs_mask;
	}
	a->read_format |= PERF_FORMAT_ID;
	if (reads) {
		a->sample_type |= PERF_SAMPLE_READ;
		a->read_format |= PERF_FORMAT_GROUP;
	}
	if (!e->has_period && !e->has_freq && (leads || !reads) &&
	    !(e->each && !o->period && !o->freq)) {
		a->sample_period = o->period ? o->period : o->freq ? o->freq : DEFAULT_FREQ;
		if (!o->period)
			a->flags |= QUIPU_ATTR_FREQ;
	}
	a->flags |= QUIPU_ATTR_SAMPLE_ID_ALL;
	if (leads)
		a->flags |= QUIPU_ATTR_DISABLED |
			    (on_cpus || o->pids || o->tids ? 0 : QUIPU_ATTR_ENABLE_ON_EXEC);
	if (!on_cpus && !o->no_inherit && !e->inherit_off)
		a->flags |= QUIPU_ATTR_INHERIT;
	if (i == 0)
		a->flags |= QUIPU_ATTR_MMAP | QUIPU_ATTR_MMAP2 | QUIPU_ATTR_COMM |
			    QUIPU_ATTR_COMM_EXEC | QUIPU_ATTR_TASK;
}

static int open_one(struct recording *r, size_t i, unsigned at)
{
	struct quipu_parsed *e = &r->list.items[i];
	const char *unmodelled = run_unmodelled(&e->attr);
	struct quipu_event *group = e->leader == i ? NULL : r->events[e->leader * r->ncpus + at];
	pid_t pid = r->options->system_wide || r->options->cpus ? -1 : quipu_task_pid(r->run.task);
	int rc;

	if (unmodelled)
		return cli_error("machine %s cannot sample %s: %s", r->run.machine->name, e->name,
				 unmodelled);
	rc = events_open(&r->run, e, &e->attr, pid, (int)r->cpus[at], group,
			 &r->events[i * r->ncpus + at]);
	return rc ? cli_error("machine %s cannot sample %s: %s (%s)", r->run.machine->name, e->name,
			      events_refusal(&r->run, rc), strerrorname_np(-rc))
		  : 0;
}

/*
 * An event that a driver accepts and no counter ever takes would end in a file without samples, so
 * it is tried before the program runs: alone and pinned on a CPU, where it reads as nothing if it
 * did not get a counter.
 */
static int try_to_count(struct recording *r, const struct quipu_parsed *e)
{
	struct quipu_attr attr = e->attr;
	struct quipu_event *alone;
	struct quipu_count count;
	uint64_t value[8];
	int rc = 0;

	if (attr.type == PERF_TYPE_SOFTWARE)
		return 0;
	attr.flags &= ~(QUIPU_ATTR_DISABLED | QUIPU_ATTR_ENABLE_ON_EXEC | QUIPU_ATTR_INHERIT);
	attr.flags |= QUIPU_ATTR_PINNED;
	attr.read_format = 0;
	if (events_open(&r->run, e, &attr, -1, (int)r->cpus[0], NULL, &alone))
		return 0;
	quipu_event_count(alone, &count);
	if (!quipu_event_read(alone, value, sizeof(value)))
		rc = cli_error("machine %s cannot sample %s: %s", r->run.machine->name, e->name,
			       count.reason ? count.reason : "no counter takes it");
	quipu_event_close(alone);
	return rc;
}

/* Fresh pages are zero and cost nothing before they are written, if they are small ones: most CPUs
 * never run. */
static bool map_rings(struct recording *r)
{
	void *memory = mmap(NULL, r->ncpus * RING_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	madvise(memory, r->ncpus * RING_BYTES, MADV_NOHUGEPAGE);
	r->memory = memory;
	return true;
}

static int open_ring(struct recording *r, unsigned at)
{
	struct ring *ring = &r->rings[at];
	int rc;

	ring->owner = r->events[at];
	ring->mem = r->memory + at * RING_BYTES;
	rc = quipu_event_map(ring->owner, &r->run.caller, ring->mem, DATA_PAGES, true);
	for (size_t i = 1; i < r->list.n && !rc; i++)
		rc = quipu_event_set_output(r->events[i * r->ncpus + at], ring->owner);
	return rc ? cli_error("cannot make the ring of CPU %u: %s", r->cpus[at], strerror(-rc)) : 0;
}

static int choose_cpus(struct recording *r)
{
	unsigned all = r->run.machine->ncpus;
	int rc = events_cpus(&r->run, r->options->cpus, &r->cpus, &r->ncpus);

	if (rc)
		return rc;
	r->ring_of_cpu = calloc(all, sizeof(*r->ring_of_cpu));
	if (!r->ring_of_cpu)
		return cli_error("out of memory");
	for (unsigned c = 0; c < all; c++)
		r->ring_of_cpu[c] = -1;
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
	r->straight = malloc(DATA_PAGES * (size_t)PAGE);
	if (!r->events || !r->rings || !r->straight || !map_rings(r))
		return cli_error("out of memory");
	for (size_t i = 0; i < r->list.n; i++)
		record_complete(r->options, &r->list, i);
	for (unsigned at = 0; at < r->ncpus; at++) {
		for (size_t i = 0; i < r->list.n && !rc; i++)
			rc = open_one(r, i, at);
		if (!rc)
			rc = open_ring(r, at);
		if (rc)
			return rc;
	}
	for (size_t i = 0; i < r->list.n && !rc; i++)
		rc = try_to_count(r, &r->list.items[i]);
	return rc;
}

/* ---- what the events are made of ---- */

static enum quipu_exactness require_signal(struct recording *r, size_t i)
{
	enum quipu_exactness exactness;

	events_require(&r->run, r->events[i * r->ncpus], &exactness);
	return exactness;
}

static int describe_events(struct recording *r)
{
	uint64_t *ids = calloc(r->ncpus, sizeof(*ids));
	int rc = ids ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->list.n && !rc; i++) {
		const struct quipu_parsed *e = &r->list.items[i];

		for (unsigned at = 0; at < r->ncpus; at++)
			ids[at] = quipu_event_id(r->events[i * r->ncpus + at]);
		rc = perfdata_add_event(r->file, &e->attr, ids, (uint32_t)r->ncpus, e->name,
					require_signal(r, i));
	}
	free(ids);
	return rc ? cli_error("%s: %s", r->options->output, strerror(-rc)) : 0;
}

/* ---- rings to file ---- */

static void show_progress(void *arg)
{
	struct recording *r = arg;

	if (progress_due(&r->progress))
		progress_show(&r->progress,
			      "[ quipu record: %" PRIu64
			      " samples, %.3f MB, %.3f s of model time ]",
			      perfdata_samples(r->file), (double)perfdata_bytes(r->file) / 1e6,
			      (double)quipu_system_time(r->run.system) / 1e9);
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
		memcpy(r->straight, data + at, size - at);
		memcpy(r->straight + (size - at), data, len - (size - at));
		data = r->straight;
		at = 0;
	}
	if (!r->write_error) {
		r->write_error = perfdata_append(r->file, data + at, len);
		if (r->write_error)
			interrupted = RUN_IN_VAIN;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
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

struct perfdata_group *record_groups(const struct quipu_event_list *list, size_t *n)
{
	struct perfdata_group *groups = calloc(list->n, sizeof(*groups));

	*n = 0;
	for (size_t i = 0; groups && i < list->n; i++)
		if (list->items[i].leader == i && list->items[i].members > 1)
			groups[(*n)++] = (struct perfdata_group){(uint32_t)i,
								 (uint32_t)list->items[i].members};
	return groups;
}

char **record_command(char **argv)
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

/* The answer is good on the machine that was recorded: names are asked for now. NULL: no sample is
 * the hypervisor's. */
static char *hypervisor_names(struct recording *r)
{
	const uint64_t *addresses;
	size_t n = perfdata_hypervisor(r->file, &addresses);
	char *text = NULL;
	struct hv hv;

	if (!n || quipu_machine_find(r->run.machine, "quipu,hypervisor") < 0)
		return NULL;
	if (!hv_of_machine(&hv, r->run.machine))
		text = hv_text(&hv, addresses, n);
	hv_close(&hv);
	return text;
}

static int finish_file(struct recording *r, char **argv)
{
	const struct quipu_machine *m = r->run.machine;
	struct perfdata_info info = {
		.arch = quipu_isa_name(m->isa),
		.cpudesc = m->model && *m->model ? m->model : m->name,
		.cpuid = m->name,
		.machine = m->name,
		.cmdline = record_command(argv),
		.cpus = m->ncpus,
		.cpus_online = m->ncpus,
		.memory_kb = m->memory_bytes / 1024,
		.partial = run_partial(&r->run),
	};
	char *names = hypervisor_names(r);
	struct perfdata_group *groups = record_groups(&r->list, &info.nr_groups);
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
	info.hypervisor = names;
	info.topology = topology;
	info.groups = groups;
	if (!uname(&host)) {
		info.hostname = host.nodename;
		info.osrelease = host.release;
	}
	rc = perfdata_finish(r->file, &info, &err);
	r->file = NULL;
	free((void *)info.cmdline);
	free(names);
	free(groups);
	free(topology);
	free(pmus);
	return rc ? cli_error("%s", err.text) : 0;
}

/* An event had a counter in a part of the time only: where the samples fell says little of the
 * rest. */
static void tell_of_share(const struct recording *r, size_t i, uint64_t running, uint64_t enabled)
{
	if (running < enabled / 100 * 99)
		fprintf(stderr,
			"quipu: %s had a counter in %.2f%% of the time of its tasks, and the samples "
			"are of that part: others held it (`quipu stat` tells what it would have "
			"counted)\n",
			r->list.items[i].name, 100.0 * (double)running / (double)enabled);
}

/* Events that never ran, or in a part of the time, and what the drivers remarked of the others. */
static void tell_of_events(const struct recording *r)
{
	for (size_t i = 0; i < r->list.n; i++) {
		const char *reason = NULL, *remark = NULL;
		uint64_t running = 0, enabled = 0;
		bool ran = false;

		for (unsigned at = 0; at < r->ncpus; at++) {
			struct quipu_count c;

			quipu_event_count(r->events[i * r->ncpus + at], &c);
			ran = ran || c.running;
			running += c.running;
			/* On whatever CPU its tasks are, each one's event is enabled. */
			enabled = c.enabled > enabled ? c.enabled : enabled;
			reason = reason ? reason : c.reason; /* programs begin on the first */
			remark = c.remark ? c.remark : remark;
		}
		if (!ran)
			fprintf(stderr, "quipu: %s never ran: %s\n", r->list.items[i].name,
				reason ? reason : "it was not enabled while the program ran");
		else if (remark)
			fprintf(stderr, "quipu: %s %s\n", r->list.items[i].name, remark);
		if (ran)
			tell_of_share(r, i, running, enabled);
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
		rc = record_registers(r->options, r->run.machine->isa,
				      quipu_perf_regs_given(r->run.machine->isa));
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
	progress_begin(&r->progress, !r->options->quiet);
	status = run_go(&r->run, &interrupted);
	progress_end(&r->progress);
	for (unsigned at = 0; at < r->ncpus; at++)
		drain_ring(r, &r->rings[at]);
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
	if (r->memory)
		munmap(r->memory, r->ncpus * RING_BYTES);
	free(r->straight);
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
	struct record_options o;
	int rc = parse_options(&o, argc, argv);
	bool host = false;

	if (!rc)
		rc = record_host_wanted(&o, &host);
	if (rc)
		return rc < 0 ? 0 : rc;
	if (host) {
		interrupted = 0;
		run_catch(on_signal);
		rc = record_registers(&o, HOST_ISA, quipu_perf_regs_valid(HOST_ISA));
		return rc ? rc : record_host(&o, argv, &interrupted);
	}
	o.run.wake = on_wake;
	o.run.wake_arg = &r;
	o.run.tick = show_progress;
	o.run.tick_arg = &r;
	r.options = &o;
	rc = record(&r, argv);
	release(&r);
	return rc;
}
