// SPDX-License-Identifier: BSD-2-Clause
/* The host as a machine of the command line (host.h): when it is chosen, and what stat and record
 * say of it alike. */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/host.h"
#include "client/protocol.h"
#include "engine/elf.h"

#define PIDS_MAX      4096u
#define HOST_CPUS_MAX 8192u

#if defined(__x86_64__)
#define HOST_ELF EM_X86_64
#elif defined(__powerpc64__)
#define HOST_ELF EM_PPC64
#elif defined(__aarch64__)
#define HOST_ELF EM_AARCH64
#elif defined(__riscv)
#define HOST_ELF EM_RISCV
#elif defined(__s390x__)
#define HOST_ELF EM_S390
#elif defined(__sparc__)
#define HOST_ELF EM_SPARCV9
#else
#define HOST_ELF EM_NONE
#endif

int host_start(struct host *h, const struct run_options *run)
{
	int ret = host_init(h, run->sysfs);

	if (ret == -ENOMEM)
		return cli_error("out of memory");
	if (ret)
		return cli_error(
			"--sysfs %s: no recorded sysfs there: it has no bus/event_source/devices (%s)",
			run->sysfs, strerror(-ret));
	return 0;
}

int host_events(struct host *h, const char *text, struct quipu_event_list *list)
{
	struct quipu_grammar_error err;
	char where[1024];
	int ret = host_parse(h, text, list, &err);

	if (!ret)
		return 0;
	if (ret == -ENOMEM)
		return cli_error("out of memory");
	quipu_grammar_explain(text, &err, where, sizeof(where));
	fputs(where, stderr);
	return 2;
}

int host_refused(struct host *h, const char *command, const struct quipu_parsed *e, int err,
		 pid_t pid, int cpu)
{
	struct host_reason r;

	host_why(h, e, err, pid, cpu, &r);
	return cli_error("this host cannot %s %s: %s (%s)%s%s", command, e->name, r.why,
			 strerrorname_np(-err), *r.remedy ? "; " : "", r.remedy);
}

int host_user_only(struct quipu_parsed *e)
{
	char *name;
	const char *colon = strrchr(e->name, ':'), *slash = strrchr(e->name, '/');
	bool mods = (colon && (!slash || colon > slash) && e->attr.type != PERF_TYPE_TRACEPOINT) ||
		    (slash && e->pmu);

	if (asprintf(&name, "%s%su", e->name, mods ? "" : ":") < 0)
		return -ENOMEM;
	free(e->name);
	e->name = name;
	return 0;
}

/* ---- CPUs and processes ---- */

static bool is_online(const struct host *h, unsigned cpu)
{
	for (size_t i = 0; i < h->ncpus; i++)
		if (h->cpus[i].id == cpu)
			return true;
	return false;
}

enum quipu_exactness host_exactness(uint32_t type)
{
	if (!getenv(GATE_ENV) || type == PERF_TYPE_TRACEPOINT || type == PERF_TYPE_BREAKPOINT)
		return QUIPU_HOST;
	return QUIPU_MODELLED; /* what is exact there, its own list says */
}

int host_online(const struct host *h, const char *text, unsigned **cpus, size_t *n)
{
	unsigned *list = calloc(HOST_CPUS_MAX, sizeof(*list));
	int got = (int)h->ncpus;

	*cpus = list;
	if (!list)
		return cli_error("out of memory");
	for (size_t i = 0; i < h->ncpus && i < HOST_CPUS_MAX; i++)
		list[i] = h->cpus[i].id;
	if (text)
		got = quipu_cpu_list(text, list, HOST_CPUS_MAX);
	if (got <= 0)
		return cli_error("-C takes a list of CPUs such as 0-3,8, not '%s'", text);
	for (int i = 0; i < got; i++)
		if (!is_online(h, list[i]))
			return cli_error("-C %s: CPU %u is not online on this host (%zu CPUs are)",
					 text, list[i], h->ncpus);
	*n = (size_t)got;
	return 0;
}

static int add_pids(pid_t **out, size_t *n, const pid_t *v, size_t add)
{
	pid_t *grown = realloc(*out, (*n + add) * sizeof(*grown));

	if (!grown)
		return cli_error("out of memory");
	memcpy(grown + *n, v, add * sizeof(*v));
	*out = grown;
	*n += add;
	return 0;
}

static int add_target(char option, pid_t id, pid_t **out, size_t *n)
{
	pid_t *tids;
	int got, rc;

	if (option == 't')
		return kill(id, 0) && errno == ESRCH
			       ? cli_error("-t %d: there is no such thread", (int)id)
			       : add_pids(out, n, &id, 1);
	got = host_tasks(id, &tids);
	if (got < 0)
		return cli_error("-p %d: %s", (int)id,
				 got == -ESRCH ? "there is no such process" : strerror(-got));
	rc = add_pids(out, n, tids, (size_t)got);
	free(tids);
	return rc;
}

int host_targets(const char *pids, const char *tids, pid_t **out, size_t *n)
{
	const char *p = pids ? pids : tids;
	char option = pids ? 'p' : 't';
	int rc = 0;

	for (unsigned i = 0; !rc; i++) {
		char *end;
		long id = strtol(p, &end, 10);

		if (end == p || id <= 0 || id > INT32_MAX || (*end && *end != ',') || i == PIDS_MAX)
			return cli_error("-%c takes numbers of %s, joined by commas, not '%s'",
					 option, pids ? "processes" : "threads",
					 pids ? pids : tids);
		rc = add_target(option, (pid_t)id, out, n);
		if (!*end)
			break;
		p = end + 1;
	}
	return rc;
}

/* ---- the choice ---- */

static bool is_program(const char *name, struct elf_facts *elf)
{
	char *path = cli_find_program(name), why[512];
	bool is = path && !elf_read(path, elf, why, sizeof(why));

	free(path);
	return is;
}

static bool is_host_set(const struct elf_facts *elf)
{
	return HOST_ELF != EM_NONE && elf->machine == HOST_ELF &&
	       elf->big_endian == (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* A program of the host's own, through a script's interpreter. */
static bool is_native(char **argv)
{
	char **script = cli_interpreted(argv);
	struct elf_facts elf;
	bool native = is_program(script ? script[0] : argv[0], &elf) && is_host_set(&elf);

	cli_free_argv(script);
	return native;
}

/* The first word is the client, and the second may be its own (perf stat, perf test): names of
 * programs of the host, too. */
static bool is_given(char *const words[], size_t i)
{
	return i > 1 || (i && strchr(words[i], '/'));
}

const char *host_machine_of(char *const argv[], bool engine)
{
	const char *machine = NULL;
	bool foreign = false;

	for (size_t i = 0; argv[i] && !foreign; i++) {
		struct elf_facts elf;
		const char *name = is_program(argv[i], &elf) ? cli_machine_for_elf(&elf) : NULL;

		if (!name || !cli_machine_shipped(name))
			continue;
		foreign = !is_host_set(&elf);
		if (foreign || (!machine && (engine || is_given(argv, i))))
			machine = name;
	}
	return machine ? machine : "riscv";
}

/* Open @e as it would be, and close it. 0 or -errno. */
static int try_event(const struct host_wish *w, const struct host *h, const struct quipu_parsed *e)
{
	struct quipu_attr attr = e->attr;
	bool cpu = w->cpus || e->uncore;
	struct host_opened o;
	int ret;

	attr.flags |= QUIPU_ATTR_DISABLED;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (!w->sample) {
		attr.sample_period = 0;
		attr.flags &= ~QUIPU_ATTR_FREQ;
	} else if (!attr.sample_period) {
		attr.sample_period = 100000;
	}
	ret = host_open(&attr, e->precise_max, cpu ? -1 : 0, cpu ? (int)h->cpus[0].id : -1, -1, &o);
	if (!ret)
		close(o.fd);
	return ret;
}

/* Is what is wrong with a string something that only the host could know better? */
static bool is_kernels(const char *reason)
{
	return strstr(reason, "tracepoint") || strstr(reason, "tracefs") ||
	       strstr(reason, "breakpoint") || strstr(reason, "probe");
}

/* Can the kernel do all of it? Where it cannot, *reason says why (empty: it is not its language).
 */
static bool can_do(const struct host_wish *w, struct host *h, char *reason, size_t len)
{
	struct quipu_event_list list = {0};
	struct quipu_grammar_error err = {0};
	bool can = true;
	int ret = 0;

	*reason = '\0';
	for (size_t i = 0; i < w->events->n && !ret; i++)
		ret = host_parse(h, w->events->texts[i], &list, &err);
	if (!w->events->n)
		ret = host_parse(h, w->defaults, &list, &err);
	if (ret)
		can = is_kernels(err.reason);
	for (size_t i = 0; i < list.n && can && !ret; i++) {
		struct host_reason r;
		int e = try_event(w, h, &list.items[i]);

		if (!e)
			continue;
		can = false;
		host_why(h, &list.items[i], e, w->cpus ? -1 : 0, 0, &r);
		snprintf(reason, len, "%s", r.why);
	}
	quipu_event_list_free(&list);
	return can;
}

static int check_wish(const struct host_wish *w, bool *must)
{
	const char *m = w->run->machine;

	*must = (m && !strcmp(m, "host")) || w->run->sysfs || w->processes;
	if (!*must || !m || !strcmp(m, "host"))
		return 0;
	if (w->processes)
		return cli_error(
			"-p and -t: a modelled machine has no process but those it runs; name "
			"the program instead, or use -m host");
	return cli_error("--sysfs is for the host's own PMUs: use -m host");
}

int host_chosen(const struct host_wish *w, bool *host)
{
	const struct run_options *r = w->run;
	bool native, modelled = r->trace || r->sysroot || r->timing || r->bell || r->paranoid != -1;
	char reason[320];
	struct host h;
	int rc = check_wish(w, host);

	if (rc)
		return rc;
	if (*host) {
		if (modelled)
			return cli_error(
				"--trace, -L, --timing, --no-local and --paranoid are for modelled "
				"machines: leave them out on the host");
		return 0;
	}
	if (r->machine || modelled)
		return 0;
	native = !w->argv[0] || is_native(w->argv);
	if (!native)
		return 0;
	rc = host_start(&h, r);
	if (rc)
		return rc;
	*host = !w->argv[0] || can_do(w, &h, reason, sizeof(reason));
	host_free(&h);
	/* Sampling without cycles is left to the caller, who has a clock for it. */
	if (!*host && *reason && w->sample && !w->events->n)
		*host = true;
	else if (!*host && *reason && cli_machine_shipped("x86"))
		fprintf(stderr,
			"quipu: %s; so this runs on machine x86, where instructions are exact and cycles "
			"and misses modelled (-m host: only what the host can %s)\n",
			reason, w->command);
	return 0;
}
