// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu stat: run a program on a machine, or on the host itself, and count. Option letters are
 * those of perf stat (perf ABI sheet B3); events are opened in stat_open.c, turned into lines in
 * stat_rows.c and printed by stat_print.c; what is the host's own is in stat_host.c.
 *
 * Not here: metrics (-M), perf stat record/report.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/stat.h"

#define MAX_RUNS     100000u
#define MAX_INTERVAL 86400000u /* ms: a day */

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
	"  -m, --machine M      a machine of `quipu machine list`, a .dts/.dtb file, or host: this host's own counters;\n"
	"                       default: by the program's ELF header (of the host's own: host where it can count what is\n"
	"                       asked, else x86)\n"
	"  -e, --event EVENT    what to count, in perf's grammar: cycles:u, {a,b}, pmu/term=val/, r2a; may be repeated\n"
	"  -d                   more events of caches and TLBs; up to three times\n"
	"  -r, --repeat N       run N times; mean and deviation of the mean\n"
	"  -I, --interval-print MS  every MS milliseconds (of model time on a modelled machine)\n"
	"  -a, --all-cpus       every CPU of the machine;  -C, --cpu LIST  the CPUs of LIST\n"
	"  -p, --pid LIST       processes of the host that run already;  -t, --tid LIST  threads\n"
	"      --per-mode       columns for user, kernel and hypervisor (cycles, instructions unless -e)\n"
	"  -A, --no-aggr        a line per CPU;  --per-core, --per-socket, --per-thread\n"
	"  -i, --no-inherit     not the threads and children of the program\n"
	"  -x, --field-separator SEP  fields as perf prints them, then what the number is, then the truth of an estimate\n"
	"  -j, --json-output    one JSON object a line\n"
	"  -o, --output FILE    (--append: add to it)\n"
	"  -L, --sysroot DIR    where the program's dynamic loader and libraries are\n"
	"      --no-merge       a line per PMU where a name stands for several\n"
	"      --no-big-num     no thousands separators\n"
	"      --sysfs DIR      read the PMUs from a recorded /sys instead of this host's\n"
	"      --timing base|full, --trace[=FILE], --paranoid N, -v\n";

enum {
	OPT_APPEND = OPT_OWN,
	OPT_PER_CORE,
	OPT_PER_SOCKET,
	OPT_PER_THREAD,
	OPT_NO_MERGE,
	OPT_NO_BIG_NUM,
	OPT_PER_MODE,
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
	{"per-mode", no_argument, NULL, OPT_PER_MODE},
	{0},
};

static int set_aggregation(struct stat_options *o, enum stat_aggregation a)
{
	if (o->aggregation != STAT_GLOBAL && o->aggregation != a)
		return cli_error(
			"only one of -A, --per-core, --per-socket and --per-thread can be given");
	o->aggregation = a;
	return 0;
}

static int set_separator(struct stat_options *o)
{
	o->format = o->format == STAT_JSON ? o->format : STAT_CSV;
	o->separator = strcmp(optarg, "\\t") ? optarg : "\t";
	return *optarg ? 0 : cli_error("-x takes what stands between the fields, for example -x ,");
}

static int parse_option(void *options, int c)
{
	struct stat_options *o = options;

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
	case OPT_PER_MODE: o->per_mode = true; return 0;
	case 'p': o->pids = optarg; return 0;
	case 't': o->tids = optarg; return 0;
	}
	return OPTIONS_NOT_MINE;
}

static int check_options(const struct stat_options *o)
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
	if (o->per_mode && (o->detail || o->aggregation != STAT_GLOBAL))
		return cli_error("--per-mode has its own columns: leave out -d, -A and --per-...");
	if (o->pids && o->tids)
		return cli_error("-p and -t exclude each other");
	if ((o->pids || o->tids) && (o->system_wide || o->cpus))
		return cli_error("-p and -t follow processes, -a and -C whole CPUs: choose one");
	if ((o->pids || o->tids) && o->runs > 1)
		return cli_error("-r runs a program several times; -p and -t watch one that runs");
	if (per_cpu && !o->system_wide && !o->cpus)
		return cli_error("-A, --per-core and --per-socket need CPUs: add -a or -C LIST");
	if (o->aggregation == STAT_THREAD && (o->system_wide || o->cpus))
		return cli_error("--per-thread follows the program's threads: leave out -a and -C");
	return 0;
}

/* Processes that run already are watched without a program, until Ctrl-C. */
static bool may_be_bare(const void *options, const struct run_options *run)
{
	const struct stat_options *o = options;

	return o->pids || o->tids ||
	       ((o->system_wide || o->cpus) && (!run->machine || !strcmp(run->machine, "host")));
}

/* 0: go on; -1: help was shown; else the exit status. */
static int parse_options(struct stat_options *o, int argc, char **argv)
{
	static const struct options_set set = {
		.command = "stat",
		.usage = usage,
		.example = "quipu stat ./prog",
		.letters = "+:" OPTIONS_RUN_LETTERS "e:dr:I:aC:Aix:jo:p:t:",
		.words = words,
		.own = parse_option,
		.bare = may_be_bare,
	};
	int rc;

	*o = (struct stat_options){.runs = 1, .run.paranoid = -1};
	rc = options_parse(&set, o, &o->run, argc, argv, &o->argv);
	return rc ? rc : check_options(o);
}

/* ---- output ---- */

static void print_sheet(struct stat *s, double at, double elapsed)
{
	const struct stat_options *o = s->options;
	struct stat_sheet sheet = {
		.format = o->format,
		.aggregation = o->aggregation,
		.separator = o->separator,
		.digits = o->digits,
		.title = s->title,
		.host = s->host != NULL,
		.runs = s->done,
		.interval = o->interval_ms,
		.at = at,
		.elapsed = elapsed,
		.elapsed_deviation = stat_deviation(&s->elapsed, s->done),
		.host_elapsed = s->times[0].mean,
		.host_user = s->times[1].mean,
		.host_system = s->times[2].mean,
		.partial = s->partial,
		.per_mode = o->per_mode,
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

	if (at <= s->last_at || stat_rows(s))
		return;
	s->partial |= !s->host && run_partial(&s->run);
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
	const struct stat_options *o = s->options;
	size_t len = 0;
	FILE *f;

	if (o->pids || o->tids)
		return asprintf(&s->title, "%s id '%s'", o->pids ? "process" : "thread",
				o->pids ? o->pids : o->tids) < 0
			       ? cli_error("out of memory")
			       : 0;
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
		for (size_t k = 0; stat_by_cpu(s, &s->list.items[i]) && k < s->counters[i].n; k++)
			if (s->counters[i].handles[k].event &&
			    !stat_leader(s, i, &s->counters[i].handles[k]))
				quipu_event_ioctl(s->counters[i].handles[k].event,
						  PERF_EVENT_IOC_ENABLE, 0);
}

static void close_run(struct stat *s)
{
	s->open = false;
	for (size_t i = s->list.n; s->counters && i-- > 0;)
		stat_close_counter(&s->counters[i]);
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
	if (s->host)
		stat_host_close(s);
	else
		run_close(&s->run);
}

static int prepare(struct stat *s, const struct run_options *run)
{
	int rc = s->host ? stat_host_prepare(s) : run_open(&s->run, run, s->options->argv);

	if (!rc)
		rc = stat_parse(s);
	return rc ? rc : stat_open(s);
}

static void finish(struct stat *s, bool last)
{
	double end =
		s->host ? stat_host_elapsed(s) : (double)quipu_system_time(s->run.system) / 1e9;

	if (s->options->interval_ms) {
		print_interval(s, (uint64_t)(end * 1e9));
		return;
	}
	if (stat_rows(s) || stat_add_run(s) || !last)
		return;
	print_sheet(s, end, s->elapsed.mean);
}

/* One run. *status: what the program ended with. */
static int run_once(struct stat *s, bool last, int *status)
{
	struct run_options run = s->options->run;
	int rc;

	run.task_new = stat_on_task;
	run.task_arg = s;
	rc = prepare(s, &run);
	if (rc) {
		close_run(s);
		return rc;
	}
	s->open = true;
	if (s->host) {
		rc = stat_host_go(s, &interrupted, print_interval, status);
		if (!rc)
			finish(s, last || interrupted);
		if (!rc)
			stat_host_notes(s, interrupted);
		close_run(s);
		return rc;
	}
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
	struct stat_options options;
	struct stat s = {.options = &options};
	int status = 0, rc = parse_options(&options, argc, argv);
	bool host = false;

	if (!rc)
		rc = stat_host_wanted(&options, &host);
	if (rc)
		return rc < 0 ? 0 : rc;
	if (host)
		s.host = stat_host_new();
	if (host && !s.host)
		return cli_error("out of memory");
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
	stat_host_free(s.host);
	freelocale(s.locale);
	free(s.series);
	free(s.title);
	return rc ? rc : status;
}
