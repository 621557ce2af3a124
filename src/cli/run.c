/* SPDX-License-Identifier: BSD-2-Clause */
/* A program on a machine (run.h): chooses the machine, makes the session and the system, runs,
 * tells what was odd. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quipu/bits.h>
#include <quipu/perf_regs.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "config.h"
#include "engine/elf.h"
#include "engine/segment.h"

/* ---- files of ours ---- */

char *cli_module_path(const char *variable, const char *build_folder, const char *file)
{
	/* beside the command in the build tree; below the same prefix, wherever that lies now */
	const char *const folders[] = {build_folder, "../" QUIPU_MODULE_SUBDIR};
	const char *env = getenv(variable);
	char exe[PATH_MAX], *path = NULL;
	ssize_t n;

	if (env)
		return strdup(env);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = 0;
	for (size_t i = 0; n > 0 && i < sizeof(folders) / sizeof(folders[0]); i++) {
		int dir = (int)(strrchr(exe, '/') - exe);

		if (asprintf(&path, "%.*s/%s/%s", dir, exe, folders[i], file) < 0)
			return NULL;
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	return asprintf(&path, "%s/%s", QUIPU_PLUGIN_DIR, file) < 0 ? NULL : path;
}

char *cli_plugin_path(void)
{
	return cli_module_path("QUIPU_PLUGIN", "../engine/qemu", "quipu-qemu.so");
}

void cli_remove_file(const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && S_ISREG(st.st_mode))
		unlink(path);
}

/* ---- which machine ---- */

char *cli_find_program(const char *name)
{
	const char *path = getenv("PATH");
	char *hit = NULL;

	if (strchr(name, '/'))
		return strdup(name);
	while (path && *path) {
		size_t n = strcspn(path, ":");

		if (asprintf(&hit, "%.*s/%s", (int)n, path, name) < 0)
			return NULL;
		if (!access(hit, X_OK))
			return hit;
		free(hit);
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* The shipped machine that runs @program; NULL after an error line, with *status set. */
static const char *choose_machine(const char *program, int *status)
{
	char *path = cli_find_program(program), why[512];
	struct elf_facts elf;
	const char *name;
	int rc;

	if (!path) {
		cli_error("%s: no such program in PATH; give its path", program);
		*status = 127;
		return NULL;
	}
	rc = elf_read(path, &elf, why, sizeof(why));
	free(path);
	if (rc) {
		cli_error("%s", why);
		*status = rc == -ENOENT || rc == -ENOTDIR ? 127 : 126;
		return NULL;
	}
	name = cli_machine_for_elf(&elf);
	if (name && !cli_machine_shipped(name)) {
		cli_error(
			"%s is a program for %s, and the machine that runs those is not installed; name one with -m "
			"(a device tree file will do), or install quipu again",
			program, elf_machine_name(elf.machine));
		*status = 126;
		return NULL;
	}
	if (!name) {
		cli_error(
			"%s is a program for %s%s, which no machine of this version runs; `quipu machine list` shows "
			"those it has",
			program, elf_machine_name(elf.machine),
			elf.big_endian ? ", big-endian" : "");
		*status = 126;
	}
	return name;
}

/* ---- parts ---- */

static void trace_line(void *arg, const char *line)
{
	fprintf(arg, "%s\n", line);
}

static int open_trace(struct run *run, const char *where)
{
	if (!where)
		return 0;
	if (!*where) {
		run->trace_file = stderr;
		return 0;
	}
	run->trace_file = fopen(where, "we");
	return run->trace_file
		       ? 0
		       : cli_error("cannot write the trace to %s: %s", where, strerror(errno));
}

static int make_system(struct run *run, const struct run_options *o, struct quipu_signals *signals)
{
	struct quipu_system_config config = {
		.paranoid = o->paranoid,
		.first_type = o->first_type,
		.wake = o->wake,
		.wake_arg = o->wake_arg,
		.sigio = o->sigio,
	};
	struct quipu_notes notes = {0};

	if (run->trace_file) {
		config.trace = trace_line;
		config.trace_arg = run->trace_file;
	}
	run->system = quipu_system_new(run->machine, signals, &config, &notes);
	if (!run->system) {
		for (size_t i = 0; i < notes.n; i++)
			if (notes.items[i].kind == QUIPU_NOTE_WRONG)
				cli_error("machine %s: %s: %s", run->machine->name,
					  notes.items[i].path, notes.items[i].text);
		quipu_notes_free(&notes);
		return 2;
	}
	quipu_notes_free(&notes);
	run->core = quipu_system_core(run->system);
	if (!o->house)
		return 0;
	run->tree = quipu_tree_new(run->machine, run->core);
	return run->tree ? 0 : cli_error("out of memory");
}

static int make_session(struct run *run, const struct run_options *o)
{
	struct session_options so = {
		.sysroot = o->sysroot,
		.stack = o->stack,
		.branches = o->branches,
		.local = !o->bell,
	};
	struct session_error err;
	char *plugin = cli_plugin_path();

	so.plugin = run->plugin = plugin;
	run->session = session_new(run->machine, &so, &err);
	return run->session ? 0 : cli_error("%s", err.text);
}

static int hold_program(struct run *run, char *const argv[])
{
	struct session_error err;
	int rc = session_prepare(run->session, argv, &err);

	if (!rc)
		return 0;
	cli_error("%s", err.text);
	return rc == -ENOENT || rc == -ENOTDIR ? 127 : 126;
}

static int attach(struct run *run, const struct run_options *o)
{
	if (session_attach(run->session, run->system, o->task_new, o->task_arg))
		return cli_error("out of memory");
	run->task = session_task(run->session);
	return 0;
}

static int check_machine(struct run *run)
{
	if (!session_runs(run->machine->isa))
		return cli_error("machine %s runs %s programs, which the engine does not run yet",
				 run->machine->name, quipu_isa_name(run->machine->isa));
	return 0;
}

int run_open(struct run *run, const struct run_options *o, char *const argv[])
{
	const char *machine = o->machine;
	bool engine = argv || o->house;
	int status = 2;

	memset(run, 0, sizeof(*run));
	run->tick = o->tick;
	run->tick_arg = o->tick_arg;
	run->caller = (struct quipu_caller){.pid = getpid(),
					    .tid = getpid(),
					    .uid = getuid(),
					    .perfmon = true,
					    .ipc_lock = true};
	run->argv = argv ? cli_interpreted(argv) : NULL;
	if (run->argv)
		argv = run->argv;
	if (!machine && argv)
		machine = choose_machine(argv[0], &status);
	if (!machine && argv) {
		run_close(run); /* and leaves nothing for the caller's to free again */
		return status;
	}
	run->machine = cli_machine_load(machine ? machine : "riscv", o->verbose);
	if (!run->machine)
		return 2;
	if (o->timing != RUN_TIMING_TREE)
		run->machine->timing_full = o->timing == RUN_TIMING_FULL;
	status = argv ? check_machine(run) : 0;
	if (!status)
		status = open_trace(run, o->trace);
	if (!status && engine)
		status = make_session(run, o);
	if (!status && argv)
		status = hold_program(run, argv);
	if (!status && !engine) {
		run->manual = quipu_manual_signals_new(run->machine->ncpus);
		status = run->manual ? 0 : cli_error("out of memory");
	}
	if (!status)
		status = make_system(run, o,
				     engine ? session_signals(run->session)
					    : quipu_manual_signals_base(run->manual));
	if (!status && engine)
		status = attach(run, o);
	if (status)
		run_close(run);
	return status;
}

void run_catch(void (*handler)(int))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction sa = {.sa_handler = handler}, before;

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		sigaction(signals[i], NULL, &before);
		if (signals[i] != SIGHUP || before.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
	}
}

int run_go(struct run *run, const volatile int *ctl_stop)
{
	struct session_error err;
	int status;

	if (session_go(run->session, &err)) {
		cli_error("%s", err.text);
		return 126;
	}
	while (!session_step(run->session, 100)) {
		if (run->tick)
			run->tick(run->tick_arg);
		if (ctl_stop && *ctl_stop) {
			run->stopped = *ctl_stop;
			session_stop(run->session);
		}
	}
	status = session_status(run->session);
	run->task = NULL;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- what the user must know of the run ---- */

static const struct {
	uint64_t bit;
	const char *what;
} own_calls[] = {
	{SEG_CALL_TIME, "the time"},	   {SEG_CALL_RANDOM, "random bytes"},
	{SEG_CALL_PID, "process ids"},	   {SEG_CALL_HOST_FILES, "files of the host that change"},
	{SEG_CALL_NETWORK, "the network"},
};

static void tell_own_calls(uint64_t bits)
{
	const char *sep = " ";

	if (!bits) {
		fputs("quipu: the program asked for nothing that changes from run to run: a rerun gives the same counts\n",
		      stderr);
		return;
	}
	fputs("quipu: a rerun may differ where the program's path depends on what it asked for:",
	      stderr);
	for (size_t i = 0; i < sizeof(own_calls) / sizeof(own_calls[0]); i++)
		if (bits & own_calls[i].bit) {
			fprintf(stderr, "%s%s", sep, own_calls[i].what);
			sep = ", ";
		}
	fputc('\n', stderr);
}

bool run_partial(const struct run *run)
{
	struct session_facts f;

	session_facts(run->session, &f);
	return f.uncounted_threads || f.untold_threads || f.foreign_execs || f.records_lost ||
	       f.bells_lost || f.faults || f.fault_ends;
}

/* Faults are the kernel's, and a modelled machine has no pages: a 0 there would be no count. */
const char *run_unmodelled(const struct quipu_attr *a)
{
	if (a->type != PERF_TYPE_SOFTWARE)
		return NULL;
	switch (a->config) {
	case PERF_COUNT_SW_PAGE_FAULTS:
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
	case PERF_COUNT_SW_ALIGNMENT_FAULTS:
	case PERF_COUNT_SW_EMULATION_FAULTS:
		return "the engine has no pages and no kernel that would take faults";
	}
	return NULL;
}

/* How the program ended, where its exit status does not tell. */
static void tell_end(const struct run *run, const struct session_facts *f)
{
	int status = session_status(run->session);

	if (run->stopped == RUN_INTERRUPTED)
		fputs("quipu: interrupted; counts are those up to then\n", stderr);
	else if (run->stopped)
		return;
	else if (WIFSIGNALED(status))
		fprintf(stderr,
			"quipu: the program was killed by signal %d (%s); counts are those up to then\n",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (!f->threads && f->bells_lost)
		fputs("quipu: the program went on without its machine, which had not answered it for 10 s (was quipu stopped?); "
		      "nothing was counted\n",
		      stderr);
	else if (!f->threads)
		fprintf(stderr,
			"quipu: the program died before its first instruction: QEMU could not start it and ended with "
			"status %d; nothing was counted\n",
			WEXITSTATUS(status));
}

/* Blocks of instructions are counted when they are entered. */
static void tell_faults(const struct session_facts *f)
{
	if (f->fault_ends)
		fputs("quipu: a program was ended by a fault of an instruction, or by a signal while it computed: what follows "
		      "in the block of instructions is counted too, so the figures are not exact\n",
		      stderr);
	if (f->faults)
		fprintf(stderr,
			"quipu: signals came to a handler of faults (%u): where an instruction raised one, what follows that "
			"instruction in its block is counted too, so the figures are not exact\n",
			f->faults);
}

static void tell_isas(unsigned isas)
{
	const char *sep = " ";

	if (!(isas & (isas - 1)))
		return;
	fputs("quipu: programs of several instruction sets ran, and each count is the sum over all of them:",
	      stderr);
	for (unsigned i = 0; i < QUIPU_ISAS; i++)
		if (isas >> i & 1) {
			fprintf(stderr, "%s%s", sep, quipu_isa_name((enum quipu_isa)i));
			sep = ", ";
		}
	fputc('\n', stderr);
}

static void tell_line(void *arg, unsigned depth, const char *line)
{
	(void)arg;
	(void)depth;
	fprintf(stderr, "quipu: %s\n", line);
}

void run_report(const struct run *run)
{
	quipu_system_report(run->system, tell_line, NULL);
}

static void tell_losses(const struct session_facts *f)
{
	if (f->uncounted_threads)
		fprintf(stderr,
			"quipu: %u threads or processes ran uncounted, because %u threads of a process and %u processes "
			"are the most that are counted at a time; the totals are not whole\n",
			f->uncounted_threads, SEG_VCPUS, SEG_PROCS);
	if (f->untold_threads)
		fprintf(stderr,
			"quipu: %u threads ran uncounted, because the threads that made them were not counted themselves, "
			"or were not heard of within 10 s; the totals are not whole\n",
			f->untold_threads);
	if (f->foreign_execs)
		fprintf(stderr,
			"quipu: %u times the program handed over to another program (exec), which ran natively and "
			"uncounted; the totals are not whole\n",
			f->foreign_execs);
	if (f->fault_ends || f->faults)
		tell_faults(f);
	if (f->records_lost || f->bells_lost)
		fprintf(stderr,
			"quipu: %llu interrupt records and %u waits were lost; the figures are not exact\n",
			(unsigned long long)f->records_lost, f->bells_lost);
}

/* Samples that were asked to have registers, and have none. */
static void tell_registers(const struct session_facts *f, enum quipu_isa isa)
{
	const char *sep = " ";

	if (f->lacks & SEG_LACKS_REGS)
		fputs("quipu: the samples have no user registers: this QEMU does not show them to plugins; QEMU 9 or later, built "
		      "with plugins, in front of it in PATH does (quipu doctor)\n",
		      stderr);
	if (f->lacks & SEG_LACKS_SET)
		fprintf(stderr,
			"quipu: samples of programs of another instruction set than %s have no user registers: what was asked for "
			"are that one's\n",
			quipu_isa_name(isa));
	if (!f->regs_unknown)
		return;
	fputs("quipu: samples that ask for these user registers have none, for QEMU does not tell them:",
	      stderr);
	for (uint64_t m = f->regs_unknown; m; m &= m - 1, sep = ", ")
		fprintf(stderr, "%s%s", sep, quipu_perf_reg_name(isa, bits_low(m)));
	fputs("; ask for others (--user-regs=...)\n", stderr);
}

void run_notes(const struct run *run, bool verbose)
{
	struct session_facts f;

	session_facts(run->session, &f);
	tell_end(run, &f);
	tell_isas(f.isas);
	tell_losses(&f);
	tell_registers(&f, run->machine->isa);
	run_report(run);
	if (verbose)
		tell_own_calls(f.own_calls);
}

void run_house_notes(const struct run *run, bool verbose)
{
	struct session_facts f;

	session_facts(run->session, &f);
	if (!f.threads && !f.uncounted_threads && !f.untold_threads)
		return; /* no program ran under the engine */
	tell_isas(f.isas);
	tell_losses(&f);
	tell_registers(&f, run->machine->isa);
	if (verbose)
		tell_own_calls(f.own_calls);
}

void run_close(struct run *run)
{
	if (run->session)
		session_stop(run->session); /* its last calls go to the system, */
	quipu_tree_free(run->tree);
	quipu_system_free(run->system); /* whose drivers call its signals */
	session_free(run->session);
	quipu_manual_signals_free(run->manual);
	quipu_machine_free(run->machine);
	free(run->plugin);
	cli_free_argv(run->argv);
	if (run->trace_file && run->trace_file != stderr)
		fclose(run->trace_file);
	memset(run, 0, sizeof(*run));
}
