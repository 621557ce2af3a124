/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quipu exec: run any perf_event client, or a shell, on a machine. Makes the machine, shows its
 * sysfs and procfs in a mount namespace of its own, starts the client with the preload library, and
 * is the machine until it is gone. DESIGN 5 and 7; perf ABI sheet C2, D4 ("Launcher").
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/host.h"
#include "cli/options.h"
#include "client/gate.h"
#include "client/notifier.h"
#include "client/protocol.h"
#include "client/rtas_door.h"
#include "client/tree_mount.h"
#include "config.h"

extern char **environ;

struct options {
	struct run_options run;
	bool no_ns, host_events, engine, seccomp;
	pid_t machine;	     /* process id of it */
	struct rlimit files; /* the client's: as this command was started */
	char **argv;	     /* the client */
};

#define MOST_FILES                                                                                 \
	524288 /* of the machine's own: 4096 CPUs with a hundred events each, and more than the    \
		  host may give */

static volatile int got_signal;

static void on_signal(int sig)
{
	got_signal = sig;
}

static const char usage[] =
	"usage: quipu exec [-m M] [OPTIONS] [--] COMMAND [ARGS]\n"
	"\n"
	"Runs COMMAND (perf, a program that uses perf_event_open, a shell) on a machine: it sees that machine's CPUs and\n"
	"PMUs, and programs of the machine's instruction set that it starts run under the engine.\n"
	"\n"
	"  -m, --machine M    a machine of `quipu machine list`, or a .dts/.dtb file (default: that of the first program of\n"
	"                     another instruction set among COMMAND and ARGS; where ARGS name a program of this host, that of\n"
	"                     its set: x86; else riscv)\n"
	"      --paranoid N   perf_event_paranoid of the machine (default -1: the machine is its user's own)\n"
	"      --engine       COMMAND itself runs under the engine too (it must be of the machine's instruction set): a\n"
	"                     program that measures itself is counted exactly\n"
	"      --seccomp      no preload library: programs that are static, or make system calls themselves (Go), are served\n"
	"                     by seccomp user notification\n"
	"      --no-ns        no mount namespace: the preload library takes paths of the machine's files to where they are\n"
	"      --host-events  tracepoints, breakpoints and the host's other PMUs go to the host's kernel; the machine's PMUs\n"
	"                     have type numbers from 1024\n"
	"  -L, --sysroot DIR  where the dynamic loader and libraries of the machine's programs are\n"
	"      --trace[=FILE], -v\n";

enum { OPT_NO_NS = OPT_OWN, OPT_HOST_EVENTS, OPT_ENGINE, OPT_SECCOMP };

static const struct option words[] = {
	OPTIONS_RUN_WORDS,
	{"no-ns", no_argument, NULL, OPT_NO_NS},
	{"host-events", no_argument, NULL, OPT_HOST_EVENTS},
	{"engine", no_argument, NULL, OPT_ENGINE},
	{"seccomp", no_argument, NULL, OPT_SECCOMP},
	{0},
};

static int parse_option(void *options, int c)
{
	struct options *o = options;

	switch (c) {
	case OPT_NO_NS: o->no_ns = true; return 0;
	case OPT_ENGINE: o->engine = true; return 0;
	case OPT_SECCOMP: o->seccomp = true; return 0;
	case OPT_HOST_EVENTS: o->host_events = true; return 0;
	}
	return OPTIONS_NOT_MINE;
}

/* 0: go on; -1: help was shown; else the exit status. */
static int parse_options(struct options *o, int argc, char **argv)
{
	static const struct options_set set = {
		.command = "exec",
		.usage = usage,
		.example = "quipu exec -m riscv -- perf list",
		.letters = "+:" OPTIONS_RUN_LETTERS,
		.words = words,
		.own = parse_option,
	};

	int rc;

	*o = (struct options){.run.paranoid = -1, .machine = getpid()};
	rc = options_parse(&set, o, &o->run, argc, argv, &o->argv);
	if (!rc && !o->run.machine)
		o->run.machine = host_machine_of(o->argv, o->engine);
	if (!rc && o->engine && o->seccomp)
		rc = cli_error(
			     "--engine and --seccomp exclude each other: a client under the engine has the preload "
			     "library inside") |
		     2;
	return rc;
}

/* ---- the client's environment ---- */

/* Ours, and what perf sets before it starts a program: a program must not see what it was started
 * with. */
static const char *const taken_back[] = {
	"LD_PRELOAD",
	GATE_ENV,
	GATE_CPUS,
	GATE_HOST,
	GATE_TREE,
	GATE_UNAME,
	"SYSFS_PATH",
	"PROC_PATH",
	"LIBPFM_FORCE_PMU",
	"PREFIX",
	"PERF_BUILDID_DIR",
	"DEBUGINFOD_URLS",
	"PATH",
	NULL,
};

static char *preload_path(void)
{
	return cli_module_path("QUIPU_PRELOAD", "../client", "quipu-preload.so");
}

static char **copy_environment(void)
{
	size_t n = 0;
	char **copy;

	while (environ[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		copy[i] = strdup(environ[i]);
	return copy;
}

static void free_environment(char **copy)
{
	for (char **e = copy; e && *e; e++)
		free(*e);
	free(copy);
}

/* libpfm asks the processor itself unless it is told; the codes of a modelled core PMU are those of
 * this one. */
static const char *const libpfm_pmu[QUIPU_ISAS] = {[QUIPU_ISA_X86_64] = "skl"};

/* What uname(2) says; NULL: as the host, whose events are served too. */
static const char *machine_name(const struct options *o, const struct quipu_machine *m)
{
	return o->host_events ? NULL : quipu_isa_name(m->isa);
}

/* The folder of the machine's files, of which @sysfs is a part. */
static int set_tree(const char *sysfs)
{
	char root[PATH_MAX];

	snprintf(root, sizeof(root), "%.*s", (int)(strlen(sysfs) - strlen("/sys")), sysfs);
	return setenv(GATE_TREE, root, 1);
}

static int set_environment(const struct options *o, const char *preload, const char *sysfs,
			   const struct quipu_machine *m)
{
	const char *pfm = libpfm_pmu[m->isa];
	const char *others = getenv("LD_PRELOAD"), *name = machine_name(o, m);
	char *list = NULL, pid[16], cpus[16];
	int rc;

	snprintf(pid, sizeof(pid), "%d", (int)o->machine);
	snprintf(cpus, sizeof(cpus), "%u", m->ncpus);
	if (asprintf(&list, "%s%s%s", preload, others && *others ? ":" : "", others ? others : "") <
	    0)
		return -1;
	rc = (o->engine	   ? setenv(GATE_ENGINE, "1", 1)
	      : o->seccomp ? 0
			   : setenv("LD_PRELOAD", list, 1)) ||
	     setenv(GATE_ENV, pid, 1) || setenv(GATE_CPUS, cpus, 1) ||
	     (sysfs && (setenv("SYSFS_PATH", sysfs, 1) || set_tree(sysfs))) ||
	     (name && setenv(GATE_UNAME, name, 1)) ||
	     (o->host_events && setenv(GATE_HOST, "1", 1)) ||
	     (pfm && setenv("LIBPFM_FORCE_PMU", pfm, 0));
	free(list);
	return rc;
}

/* ---- the client ---- */

/* Those that mean nothing to the machine: the terminal's are the client's to handle, and the
 * machine ends when it does. */
static const int not_ours[] = {SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGHUP};
#define NOT_OURS (sizeof(not_ours) / sizeof(not_ours[0]))
static struct sigaction found[NOT_OURS];

static void catch_signals(void)
{
	struct sigaction pass_on = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};

	got_signal = 0;
	for (size_t i = 0; i < NOT_OURS; i++)
		sigaction(not_ours[i],
			  not_ours[i] == SIGTERM || not_ours[i] == SIGHUP ? &pass_on : &ignore,
			  &found[i]);
}

/* The client finds them as this command did. */
static void restore_signals(void)
{
	for (size_t i = 0; i < NOT_OURS; i++)
		sigaction(not_ours[i], &found[i], NULL);
}

/* The words of a client under the engine, and what they stand in. */
struct client_words {
	char **argv, **ran, *path, *env;
};

static void client_words_free(struct client_words *w)
{
	free(w->argv);
	free(w->ran);
	free(w->path);
	free(w->env);
}

/*
 * The words that run the client under the engine: the preload library is loaded by the guest's
 * loader, not by QEMU's. False after an error line.
 */
static bool engine_words(const struct options *o, struct session *session, const char *preload,
			 struct client_words *w)
{
	struct session_error err = {{0}};
	size_t n, rest = 0, i = 0, at = 0;
	int rc = -ENOENT;

	w->path = cli_find_program(o->argv[0]);
	if (w->path)
		rc = session_command(session, w->path, o->argv[0], true, &w->ran, &n, &err);
	if (rc) {
		cli_error("%s: %s; --engine runs a program of the machine's instruction set",
			  o->argv[0], *err.text ? err.text : strerror(-rc));
		return false;
	}
	while (o->argv[rest])
		rest++;
	w->argv = calloc(n + rest + 3, sizeof(*w->argv));
	if (!w->argv || asprintf(&w->env, "LD_PRELOAD=%s", preload) < 0) {
		w->env = NULL;
		cli_error("out of memory");
		return false;
	}
	while (i < n && strcmp(w->ran[i], "-0"))
		w->argv[at++] = w->ran[i++];
	w->argv[at++] = (char *)"-E";
	w->argv[at++] = w->env;
	while (i < n)
		w->argv[at++] = w->ran[i++];
	memcpy(w->argv + at, o->argv + 1, (rest - 1) * sizeof(*w->argv));
	return true;
}

/* What a client needs to be one. */
struct start {
	const struct options *o;
	const struct quipu_machine *machine;
	const char *preload, *sysfs;
	char **argv;
};

/* In the client's process; does not come back. */
static void become_client(void *arg)
{
	const struct start *s = arg;
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!s->o->seccomp)
		setrlimit(RLIMIT_NOFILE, &s->o->files);
	restore_signals();
	if (!set_environment(s->o, s->preload, s->sysfs, s->machine))
		execvp(s->argv[0], s->argv);
	cli_error("%s: %s", s->argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* As the client ended, in the process that spoke for it. */
static void end_like(int status)
{
	const struct rlimit none = {0};

	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	_exit(128 + WTERMSIG(status));
}

static void speak_for_client(struct start *s)
{
	struct notifier_config config = {
		.machine = s->o->machine,
		.cpus = s->machine->ncpus,
		.uname = machine_name(s->o, s->machine),
		.host_events = s->o->host_events,
		.client = become_client,
		.arg = s,
	};
	char why[256];
	int status, rc;

	setrlimit(RLIMIT_NOFILE, &s->o->files);
	rc = notifier_run(&config, &status, why, sizeof(why));
	if (!rc)
		end_like(status);
	cli_error("--seccomp: %s", *why ? why : strerror(-rc));
	_exit(126);
}

static pid_t start_client(const struct options *o, struct run *run, const char *preload,
			  const char *sysfs)
{
	struct client_words w = {0};
	struct start start = {o, run->machine, preload, sysfs, o->argv};
	pid_t pid = 0;

	if (o->engine) {
		if (!engine_words(o, run->session, preload, &w))
			goto out;
		start.argv = w.argv;
	}
	pid = fork();
	if (!pid && o->seccomp)
		speak_for_client(&start);
	if (!pid)
		become_client(&start);
out:
	client_words_free(&w);
	return pid;
}

/*
 * The machine holds a descriptor for each event of all its clients, who have limits of their own:
 * as many as this process may have, and for root as many as the host gives to any.
 */
static struct rlimit raise_limit(void)
{
	struct rlimit before = {0}, most;

	if (getrlimit(RLIMIT_NOFILE, &before))
		return before;
	most = (struct rlimit){.rlim_cur = MOST_FILES, .rlim_max = MOST_FILES};
	if (before.rlim_max >= MOST_FILES || setrlimit(RLIMIT_NOFILE, &most)) {
		most = before;
		most.rlim_cur = most.rlim_max;
		setrlimit(RLIMIT_NOFILE, &most);
	}
	return before;
}

#define INTERRUPTS "/proc/interrupts"

struct place {
	bool namespace, user; /* of our own; a user namespace */
	bool outer_root;
	char sysfs[PATH_MAX]; /* SYSFS_PATH without a namespace */
	char root[PATH_MAX];  /* to be removed */
};

/*
 * Tracepoints are named group:event, and perf takes a PMU event's name in front of the colon for
 * that event: where the host's tracepoints are served, a machine's event of the name of one of
 * their groups is left out. It is still there by its code.
 */
static void leave_out_groups(struct quipu_tree *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct quipu_tree_file *f = &t->files[i];
		const char *name = strstr(f->path, "/events/");
		char group[PATH_MAX];

		snprintf(group, sizeof(group), "/sys/kernel/tracing/events/%s",
			 name ? name + strlen("/events/") : "");
		if (name && !access(group, F_OK)) {
			free(f->path);
			free(f->text);
		} else {
			t->files[kept++] = *f;
		}
	}
	t->n = kept;
}

static int show_tree(const struct run *run, struct place *place)
{
	const char *tmp = getenv("TMPDIR");
	char *interrupts = quipu_tree_interrupts(run->system), why[512];

	if (interrupts && quipu_tree_add(run->tree, INTERRUPTS, interrupts))
		return cli_error("out of memory");

	if (place->namespace)
		return tree_mount(run->tree, why, sizeof(why)) ? cli_error("%s; try --no-ns", why)
							       : 0;
	snprintf(place->root, sizeof(place->root), "%s/quipu-tree-XXXXXX",
		 tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(place->root)) {
		place->root[0] = 0;
		return cli_error("cannot make a directory for the machine's files: %s",
				 strerror(errno));
	}
	if (tree_write(run->tree, place->root, why, sizeof(why)))
		return cli_error("%s", why);
	snprintf(place->sysfs, sizeof(place->sysfs), "%.*s/sys", (int)sizeof(place->sysfs) - 8,
		 place->root);
	return 0;
}

/* The row of interrupts moves: its file stays open. 0: the machine has none. */
static int open_interrupts(const struct run *run, const struct place *place)
{
	char path[PATH_MAX + 32];
	int fd;

	if (!quipu_tree_text(run->tree, INTERRUPTS))
		return 0;
	snprintf(path, sizeof(path), "%s" INTERRUPTS, place->namespace ? "" : place->root);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? 0 : fd;
}

static int serve(const struct options *o, struct run *run, struct gate *gate,
		 struct rtas_door *door, const struct place *place)
{
	char **before = copy_environment(), *preload = preload_path();
	struct gate_config config = {
		.session = run->session,
		.door = door,
		.taken_back = taken_back,
		.environment = before,
		.in_user_namespace = place->user,
		.verbose = o->run.verbose,
		.host_events = o->host_events,
		.engine = o->engine,
		.notifier = o->seccomp,
		.root = place->outer_root,
		.tree = &run->tree,
		.tree_root = place->namespace ? "" : place->root,
		.interrupts = open_interrupts(run, place),
	};
	int status = 0, rc = gate_attach(gate, run->system, &config);
	pid_t pid;

	if (rc) {
		rc = cli_error("cannot open the machine to clients: %s", strerror(-rc));
		goto out;
	}
	if (!preload || access(preload, R_OK)) {
		rc = cli_error("preload library %s: %s; build or install quipu again",
			       preload ? preload : "", strerror(errno));
		goto out;
	}
	pid = start_client(o, run, preload, place->sysfs[0] ? place->sysfs : NULL);
	if (!pid) {
		rc = 126;
		goto out;
	}
	if (pid < 0) {
		rc = cli_error("cannot start %s: %s", o->argv[0], strerror(errno));
		goto out;
	}
	rc = gate_run(gate, pid, &status, &got_signal);
	if (o->run.verbose)
		run_report(run);
	rc = rc			   ? cli_error("the machine stopped: %s", strerror(-rc))
	     : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
out:
	if (config.interrupts)
		close(config.interrupts);
	free_environment(before);
	free(preload);
	return rc;
}

/* Other processes ask a partition's firmware through it (quipu resolve). */
static struct rtas_door *open_door(const struct run *run, int *rc)
{
	struct rtas_door *door = rtas_door_open(run->machine, getpid(), rc);

	if (*rc)
		*rc = cli_error("cannot open RTAS to clients: %s", strerror(-*rc));
	return door;
}

int cmd_exec(int argc, char **argv)
{
	struct place place = {0};
	struct options o;
	struct run run = {0};
	struct gate *gate;
	struct rtas_door *door = NULL;
	int rc = parse_options(&o, argc, argv);

	if (rc)
		return rc < 0 ? 0 : rc;
	place.outer_root = geteuid() == 0;
	if (!o.no_ns) {
		rc = tree_unshare(&place.user);
		place.namespace = !rc;
		if (rc)
			cli_error(
				"no mount namespace here (%s): going on as with --no-ns, where static clients see the "
				"host's files",
				rc == -EINVAL ? "/ is no mount point, as in a chroot"
					      : strerror(-rc));
	}
	o.files = raise_limit();
	gate = gate_new();
	if (!gate)
		return cli_error("cannot make the client gate: %s", strerror(errno));
	o.run.wake = gate_wake;
	o.run.sigio = gate_sigio;
	o.run.wake_arg = gate;
	o.run.house = true;
	if (o.host_events)
		o.run.first_type = GATE_TYPES;
	rc = run_open(&run, &o.run, NULL);
	if (!rc && o.host_events)
		leave_out_groups(run.tree);
	if (!rc)
		rc = show_tree(&run, &place);
	if (!rc)
		door = open_door(&run, &rc);
	if (!rc) {
		catch_signals();
		rc = serve(&o, &run, gate, door, &place);
	}
	rtas_door_close(door);
	gate_free(gate);
	if (run.machine) {
		run_house_notes(&run, o.run.verbose);
		run_close(&run);
	}
	if (place.root[0])
		tree_remove(place.root);
	return rc;
}
