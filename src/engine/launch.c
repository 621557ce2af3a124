/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting a guest program: finds it, looks at its ELF header, finds QEMU and the sysroot, and
 * holds the child until its events are open. Engine sheet 3, 10.8; perf ABI sheet B6. What the
 * program does afterwards is session.c and its neighbours.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <quipu/bits.h>

#include "engine/elf.h"
#include "engine/session_impl.h"

extern char **environ;

static int refuse(struct session_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct session_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

/* What Debian's cross packages and QEMU call an instruction set. */
static const struct isa_files {
	const char *qemu;    /* program and the package that has it */
	const char *sysroot; /* of the cross libc */
	const char *libc;    /* package */
	bool runs; /* the plugin decodes it (src/engine/qemu/isa.c, which has the same -cpu) */
	const char *cpu; /* NULL: QEMU's default */
} isa_files[QUIPU_ISAS] = {
	[QUIPU_ISA_RISCV64] = {"qemu-riscv64", "/usr/riscv64-linux-gnu", "libc6-riscv64-cross",
			       true, NULL},
	[QUIPU_ISA_PPC64LE] = {"qemu-ppc64le", "/usr/powerpc64le-linux-gnu", "libc6-ppc64el-cross",
			       true, NULL},
	[QUIPU_ISA_SPARC64] = {"qemu-sparc64", "/usr/sparc64-linux-gnu", "libc6-sparc64-cross",
			       true, NULL},
	[QUIPU_ISA_X86_64] = {"qemu-x86_64", NULL, NULL, true, "max"},
};

bool session_runs(enum quipu_isa isa)
{
	return isa < QUIPU_ISAS && isa_files[isa].runs;
}

/* The first executable regular file called @name in the directories of @path (as execvp looks).
 * NULL: none. */
static char *search(const char *name, const char *path)
{
	while (path && *path) {
		size_t n = strcspn(path, ":");
		char *candidate = NULL;
		struct stat st;

		if (asprintf(&candidate, "%.*s%s%s", (int)n, n ? path : ".", n ? "/" : "/", name) <
		    0)
			return NULL;
		if (!stat(candidate, &st) && S_ISREG(st.st_mode) && !access(candidate, X_OK))
			return candidate;
		free(candidate);
		path += n + (path[n] == ':');
	}
	return NULL;
}

static int find_program(struct session *s, const char *name, struct session_error *err)
{
	struct stat st;

	s->program = strchr(name, '/') ? strdup(name) : search(name, getenv("PATH"));
	if (!s->program)
		return refuse(err, -ENOENT, "%s: no such program in PATH; give its path", name);
	if (stat(s->program, &st))
		return refuse(err, -errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(err, -EACCES, "%s: not a regular file, so it cannot be run", name);
	if (access(s->program, X_OK))
		return refuse(err, -EACCES, "%s: not executable; chmod +x it", name);
	return 0;
}

/* Does the machine run it? Its own programs always, others where they are measured and the tree
 * says so. */
static bool takes(const struct session *s, unsigned elf, bool measured, enum quipu_isa *isa)
{
	*isa = s->machine->isa;
	if (elf == quipu_isa_elf(*isa))
		return session_runs(*isa);
	for (unsigned i = 0; measured && s->machine->other_programs && i < QUIPU_ISAS; i++)
		if (elf == quipu_isa_elf(i) && session_runs(i)) {
			*isa = i;
			return true;
		}
	return false;
}

static int check_program(struct session *s, struct elf_facts *elf, struct session_error *err)
{
	const char *wanted = quipu_isa_name(s->machine->isa);
	int rc = elf_read(s->program, elf, err->text, sizeof(err->text));

	if (rc)
		return rc;
	if (!takes(s, elf->machine, true, &s->isa))
		return refuse(
			err, -ENOEXEC,
			"%s is a program for %s, but machine %s runs %s; choose another with -m",
			s->program, elf_machine_name(elf->machine), s->machine->name, wanted);
	return 0;
}

static int find_qemu(struct session *s, struct session_error *err)
{
	const char *name = isa_files[s->isa].qemu;

	if (s->options.qemu_dir) {
		if (asprintf(&s->qemu, "%s/%s", s->options.qemu_dir, name) < 0)
			return -ENOMEM;
	} else {
		s->qemu = search(name, getenv("PATH"));
	}
	if (!s->qemu || access(s->qemu, X_OK))
		return refuse(err, -ENOENT,
			      "%s is not installed; apt install qemu-user, then `quipu doctor`",
			      name);
	if (access(s->options.plugin, R_OK))
		return refuse(err, -ENOENT, "QEMU plugin %s: %s; build or install quipu again",
			      s->options.plugin, strerror(errno));
	return 0;
}

static int find_sysroot(struct session *s, const struct elf_facts *elf, struct session_error *err)
{
	const struct isa_files *f = &isa_files[s->isa];
	bool given = s->options.sysroot && s->isa == s->machine->isa;
	const char *root = given ? s->options.sysroot : f->sysroot;
	char *interp = NULL;
	int rc = 0;

	if (!elf->interp[0])
		return 0;
	if (!root)
		return 0;
	if (asprintf(&interp, "%s%s", root, elf->interp) < 0)
		return -ENOMEM;
	if (access(interp, R_OK)) {
		rc = refuse(err, -ENOENT,
			    "%s needs %s, which is not below %s; name the sysroot with -L%s%s",
			    s->program, elf->interp, root, f->libc ? " or apt install " : "",
			    f->libc ? f->libc : "");
	} else {
		s->sysroot = strdup(root);
		/* What is Debian's, the plugin finds by itself, for each instruction set. */
		if (given)
			snprintf(s->head->sysroot, SEG_PATH, "%s", root);
	}
	free(interp);
	return rc;
}

#define MAX_QEMU_ARGS 26

/* A comma in an option's value is doubled (QEMU's option syntax). */
static char *double_commas(const char *text)
{
	char *out = malloc(2 * strlen(text) + 1), *o = out;

	for (; out && *text; text++) {
		if (*text == ',')
			*o++ = ',';
		*o++ = *text;
	}
	if (out)
		*o = 0;
	return out;
}

/* The same file by a name of its own (qemu/install.c). */
static int blocks_spec(char *to, size_t len, const char *plugin)
{
	const char *slash = strrchr(plugin, '/');
	int dir = slash ? (int)(slash + 1 - plugin) : 0;

	return snprintf(to, len, "%.*s./%s,blocks=on", dir, plugin, plugin + dir);
}

static int main_spec(char *to, size_t len, const struct session *s, const char *plugin)
{
	return snprintf(to, len, "%s,seg=/proc/%d/fd/%d", plugin, (int)getpid(), s->fd);
}

/* One block: the words, and behind them the texts of those that are made here. */
char **session_qemu_argv(const struct session *s, char *const args[])
{
	char **argv, *plugin = double_commas(s->options.plugin), *spec, *blocks;
	size_t n = 0, i = 0, len, blocks_len;

	while (args[n])
		n++;
	if (!plugin)
		return NULL;
	len = (size_t)main_spec(NULL, 0, s, plugin) + 1;
	blocks_len = (size_t)blocks_spec(NULL, 0, plugin) + 1;
	argv = calloc(1, (n + MAX_QEMU_ARGS) * sizeof(*argv) + len + blocks_len);
	if (!argv) {
		free(plugin);
		return NULL;
	}
	spec = (char *)(argv + n + MAX_QEMU_ARGS);
	blocks = spec + len;
	main_spec(spec, len, s, plugin);
	blocks_spec(blocks, blocks_len, plugin);
	free(plugin);
	argv[i++] = s->qemu;
	if (s->house) { /* what is counted changes while programs run */
		argv[i++] = "-plugin";
		argv[i++] = blocks;
	}
	argv[i++] = "-plugin";
	argv[i++] = spec;
	argv[i++] = "-seed";
	argv[i++] = "1";
	if (isa_files[s->isa].cpu) {
		argv[i++] = "-cpu";
		argv[i++] = (char *)isa_files[s->isa].cpu;
	}
	if (s->sysroot) {
		argv[i++] = "-L";
		argv[i++] = s->sysroot;
	}
	if (getenv("LD_PRELOAD")) {
		argv[i++] = "-U";
		argv[i++] = "LD_PRELOAD";
	}
	argv[i++] = "-0";
	argv[i++] = args[0];
	argv[i++] = s->program;
	memcpy(argv + i, args + 1, (n - 1) * sizeof(*argv));
	return argv;
}

/* The child: waits for the go, then becomes QEMU. An exec that fails is told through @fail. */
static void child_main(const struct session *s, int go, int fail, char **argv)
{
	sigset_t none;
	char byte;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (read(go, &byte, 1) == 1) {
		int err;

		execv(s->qemu, argv);
		err = errno;
		if (write(fail, &err, sizeof(err)) < 0)
			_exit(126);
	}
	_exit(127);
}

static int spawn(struct session *s, struct session_error *err)
{
	int go[2], fail[2], rc;
	char **argv = session_qemu_argv(s, s->argv);

	if (!argv)
		return refuse(err, -ENOMEM, "out of memory");
	if (pipe2(go, O_CLOEXEC))
		return refuse(err, -errno, "cannot start a program: %s", strerror(errno));
	if (pipe2(fail, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return refuse(err, -errno, "cannot start a program: %s", strerror(errno));
	}
	s->child = fork();
	if (!s->child) {
		close(go[1]);
		child_main(s, go[0], fail[1], argv);
	}
	close(go[0]);
	close(fail[1]);
	s->go_fd = go[1];
	s->fail_fd = fail[0];
	free(argv);
	if (s->child < 0) {
		s->child = 0;
		return refuse(err, -errno, "cannot start a program: %s", strerror(errno));
	}
	rc = session_watch_begin(s);
	if (rc)
		return refuse(err, rc, "cannot start a program: %s", strerror(-rc));
	s->child_pidfd = session_watch(s, s->child);
	return 0;
}

int session_prepare(struct session *s, char *const argv[], struct session_error *err)
{
	struct elf_facts elf;
	int rc;

	s->argv = argv;
	snprintf(s->head->plugin, SEG_PATH, "%s", s->options.plugin);
	rc = find_program(s, argv[0], err);
	if (!rc)
		rc = check_program(s, &elf, err);
	if (!rc)
		rc = find_qemu(s, err);
	if (!rc)
		rc = find_sysroot(s, &elf, err);
	if (!rc)
		rc = spawn(s, err);
	if (!rc && session_begin_task(s))
		rc = refuse(err, -ENOMEM, "out of memory");
	return rc;
}

int session_begin_task(struct session *s)
{
	if (!s->core || !s->child)
		return 0;
	s->task = quipu_task_new(s->core, NULL, s->child, s->child, false, "quipu-exec", 0);
	return s->task ? 0 : -ENOMEM;
}

static void forget_program(struct session *s)
{
	free(s->program);
	free(s->sysroot);
	s->program = s->sysroot = NULL;
}

int session_command(struct session *s, const char *path, const char *argv0, bool measured,
		    char ***words, size_t *nwords, struct session_error *err)
{
	char *const args[] = {(char *)argv0, NULL};
	enum quipu_isa isa;
	struct elf_facts elf;
	char **argv;
	size_t n = 0;
	int rc;

	forget_program(s);
	s->program = strdup(path);
	if (!s->program)
		return -ENOMEM;
	rc = elf_read(path, &elf, err->text, sizeof(err->text));
	if (rc || !takes(s, elf.machine, measured, &isa))
		return -ENOEXEC;
	if (isa != s->isa) {
		free(s->qemu);
		s->qemu = NULL;
		s->isa = isa;
	}
	rc = s->qemu ? 0 : find_qemu(s, err);
	if (!rc)
		rc = find_sysroot(s, &elf, err);
	if (rc)
		return rc;
	argv = session_qemu_argv(s, args);
	if (!argv)
		return -ENOMEM;
	while (argv[n])
		n++;
	*words = argv;
	*nwords = n;
	return 0;
}

int session_go(struct session *s, struct session_error *err)
{
	int code = 0;

	clock_gettime(CLOCK_MONOTONIC, &s->began);
	if (write(s->go_fd, "g", 1) != 1)
		return refuse(err, -EPIPE, "the program was killed before it started");
	close(s->go_fd);
	s->go_fd = -1;
	/* The pipe closes by itself when the exec succeeds. */
	if (read(s->fail_fd, &code, sizeof(code)) == sizeof(code))
		refuse(err, -code, "%s: %s", s->qemu, strerror(code));
	close(s->fail_fd);
	s->fail_fd = -1;
	return -code;
}
