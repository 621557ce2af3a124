// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where machines come from: shipped ones by name, anybody's by file.
 *
 * A name is looked up in QUIPU_MACHINE_PATH, beside the executable (build tree and installation,
 * wherever it was moved to) and in the installed data directory, as NAME.dtb or NAME.dts. A file
 * may be a flattened tree or its source, told apart by their first bytes; source goes through dtc.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quipu/bits.h>
#include <quipu/machine.h>

#include "cli/cli.h"
#include "config.h"
#include "engine/elf.h"
#include "engine/session.h"
#include "platform/imc/catalog.h"

#define TREE_MAGIC  0xd00dfeedu
#define MAX_DIRS    24
#define DTC_SECONDS 10 /* of CPU time; a tree of a thousand CPUs takes a small part of one */

extern char **environ;

struct bytes {
	uint8_t *data;
	size_t len;
};

/* The folders that are searched, in order. */
struct dirs {
	char *dir[MAX_DIRS];
	size_t n;
};

static void dirs_add(struct dirs *d, const char *a, const char *b)
{
	if (d->n < MAX_DIRS && asprintf(&d->dir[d->n], "%s%s", a, b) >= 0)
		d->n++;
}

static void dirs_free(struct dirs *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->dir[i]);
}

static void dirs_init(struct dirs *d)
{
	const char *path = getenv("QUIPU_MACHINE_PATH");
	char exe[PATH_MAX], *slash;
	ssize_t n;

	d->n = 0;
	for (const char *end; path && *path; path = *end ? end + 1 : NULL) {
		char one[PATH_MAX];

		end = strchrnul(path, ':');
		snprintf(one, sizeof(one), "%.*s", (int)(end - path), path);
		if (*one)
			dirs_add(d, one, "");
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	slash = strrchr(exe, '/');
	if (slash) {
		*slash = '\0';
		dirs_add(d, exe, "/../../machines");	      /* BUILD/src/cli/quipu */
		dirs_add(d, exe, "/../share/quipu/machines"); /* PREFIX/bin/quipu */
	}
	dirs_add(d, QUIPU_MACHINE_DIR, "");
}

/* The whole of @fd, at most QUIPU_MAX_TREE bytes and one more. 0 or -errno. */
static int read_all(int fd, struct bytes *out)
{
	size_t room = 0;

	*out = (struct bytes){0};
	for (;;) {
		ssize_t n;

		if (out->len == room) {
			uint8_t *p;

			if (room > QUIPU_MAX_TREE)
				return -EFBIG;
			room = room ? 2 * room : 65536;
			p = realloc(out->data, room);
			if (!p)
				return -ENOMEM;
			out->data = p;
		}
		n = read(fd, out->data + out->len, room - out->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		out->len += (size_t)n;
	}
}

static int read_file(const char *file, struct bytes *out)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), err;

	*out = (struct bytes){0};
	if (fd < 0)
		return -errno;
	err = read_all(fd, out);
	close(fd);
	return err;
}

/* What dtc said, on one line: its first error without the bulk that follows. */
static void print_dtc_error(const char *file, const char *said)
{
	const char *p = strncmp(said, "Error: ", 7) ? strstr(said, "\nError: ") : said;

	if (!p)
		p = strstr(said, "ERROR");
	p = p ? p + (*p == '\n') : said;
	if (!*p)
		p = "no reason given";
	cli_error("%s: dtc cannot compile it: %.*s", file, (int)strcspn(p, "\n"), p);
}

/* What it used is accounted a little less finely than the limit is kept. */
static bool ran_out(const struct rusage *usage)
{
	long us = usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;

	return usage->ru_utime.tv_sec + usage->ru_stime.tv_sec + us / 1000000 >= DTC_SECONDS - 1;
}

/* How dtc ended that has compiled nothing. */
static void print_dtc_end(const char *file, int status, const struct rusage *usage,
			  const char *said)
{
	if (!WIFSIGNALED(status))
		print_dtc_error(file, said);
	else if (ran_out(usage))
		cli_error(
			"%s: dtc cannot compile it: it had not ended after %d s of CPU time and was "
			"stopped; look for a number of cells that is far too large",
			file, DTC_SECONDS);
	else
		cli_error("%s: dtc cannot compile it: it was killed by signal %d (%s)", file,
			  WTERMSIG(status), strsignal(WTERMSIG(status)));
}

/*
 * Some broken trees make dtc loop for ever. The limit is the kernel's to keep, also when nobody
 * waits for dtc any more; that it is hard at once spares a core file.
 */
static void limit_dtc(pid_t pid)
{
	const struct rlimit most = {DTC_SECONDS, DTC_SECONDS};

	prlimit(pid, RLIMIT_CPU, &most, NULL); /* refused where a lower one stands */
}

/* Start dtc with its output in a pipe and its messages in the file @errors. */
static int start_dtc(const char *file, const char *dir, int errors, pid_t *pid, int *out)
{
	char *const argv[] = {"dtc", "-q",	  "-I", "dts",	      "-O", "dtb",
			      "-i",  (char *)dir, "--", (char *)file, NULL};
	posix_spawn_file_actions_t act;
	int pipefd[2], err;

	if (pipe2(pipefd, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&act);
	posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&act, pipefd[1], 1);
	posix_spawn_file_actions_adddup2(&act, errors, 2);
	err = posix_spawnp(pid, "dtc", &act, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&act);
	close(pipefd[1]);
	if (err) {
		close(pipefd[0]);
		return -err;
	}
	limit_dtc(*pid);
	*out = pipefd[0];
	return 0;
}

/* dts to dtb. 0, or -1 with the message printed. */
static int compile(const char *file, struct bytes *out)
{
	char said[2048] = "", *dir = strdup(file), *slash = dir ? strrchr(dir, '/') : NULL;
	int errors = -1, fd = -1, err, status = 0;
	struct rusage usage = {0};
	pid_t pid;
	ssize_t n;

	if (slash)
		slash[slash == dir] = '\0';
	errors = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (errors < 0)
		errors = open("/dev/null", O_RDWR | O_CLOEXEC);
	err = start_dtc(file, slash ? dir : ".", errors, &pid, &fd);
	free(dir);
	if (err) {
		close(errors);
		if (err == -ENOENT)
			cli_error("%s: the device tree compiler is missing; apt-get install "
				  "device-tree-compiler",
				  file);
		else
			cli_error("%s: cannot start dtc: %s", file, strerror(-err));
		return -1;
	}
	err = read_all(fd, out);
	close(fd);
	if (err)
		kill(pid, SIGKILL);
	while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	n = pread(errors, said, sizeof(said) - 1, 0);
	said[n < 0 ? 0 : n] = '\0';
	close(errors);
	if (err) {
		cli_error("%s: compiled tree: %s", file,
			  err == -EFBIG ? "larger than 16 MiB" : strerror(-err));
		return -1;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		print_dtc_end(file, status, &usage, said);
		return -1;
	}
	return 0;
}

/* A file's tree, flattened. 0, or -1 with the message printed. */
static int load_file(const char *file, struct bytes *out)
{
	int err = read_file(file, out);

	if (err) {
		cli_error("%s: %s", file,
			  err == -EFBIG ? "larger than 16 MiB; a device tree is smaller"
					: strerror(-err));
		return -1;
	}
	if (!out->len) {
		cli_error("%s: empty; a machine is a device tree (.dts or .dtb)", file);
		return -1;
	}
	if (out->len >= 4 && bits_be32(out->data) == TREE_MAGIC)
		return 0;
	if (memchr(out->data, '\0', out->len)) {
		cli_error("%s: neither device tree source nor a flattened tree (it starts with "
			  "%02x, not d0 0d fe ed)",
			  file, out->data[0]);
		return -1;
	}
	free(out->data);
	*out = (struct bytes){0};
	return compile(file, out);
}

/* The file of a shipped machine, to be freed; NULL when there is none. */
static char *shipped(const char *name)
{
	static const char *const suffix[] = {".dtb", ".dts"};
	struct dirs d;
	char *found = NULL, *real;

	if (!*name || strchr(name, '/'))
		return NULL;
	dirs_init(&d);
	for (size_t i = 0; i < 2 * d.n && !found; i++)
		if (asprintf(&found, "%s/%s%s", d.dir[i / 2], name, suffix[i % 2]) < 0) {
			found = NULL;
		} else if (access(found, R_OK)) {
			free(found);
			found = NULL;
		}
	dirs_free(&d);
	real = found ? realpath(found, NULL) : NULL;
	if (real) {
		free(found);
		found = real;
	}
	return found;
}

/* "boards/virt.dtb" is the machine "virt". */
static void name_of(const char *file, char *name, size_t len)
{
	const char *base = strrchr(file, '/');
	size_t n;

	base = base ? base + 1 : file;
	n = strlen(base);
	if (n > 4 && (!strcmp(base + n - 4, ".dtb") || !strcmp(base + n - 4, ".dts")))
		n -= 4;
	snprintf(name, len, "%.*s", (int)n, base);
}

static void no_such_machine(const char *name)
{
	char **names = cli_machine_names(), list[512] = "";
	size_t len = 0;

	for (size_t i = 0; names && names[i] && len < sizeof(list) - 80; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%.64s", i ? ", " : "",
					names[i]);
	/* Then @name may be a default, which nobody asked for. */
	if (!*list)
		cli_error(
			"no machine is installed (%s is not); install quipu again, or name a device tree file "
			"(.dts, .dtb) with -m",
			name);
	else
		cli_error("no machine '%s'; shipped: %s; or name a device tree file (.dts, .dtb)",
			  name, list);
	cli_machine_names_free(names);
}

char *cli_machine_file(const char *name_or_file)
{
	char *file = shipped(name_or_file);
	size_t n = strlen(name_or_file);
	bool like_file =
		strchr(name_or_file, '/') || (n > 4 && !strncmp(name_or_file + n - 4, ".dt", 3));

	if (file)
		return file;
	if (like_file || !access(name_or_file, F_OK))
		return strdup(name_or_file);
	no_such_machine(name_or_file);
	return NULL;
}

/*
 * A published catalog of POWER's in-memory counters is no machine, but firmware makes one of it: it
 * is put in the place of the catalog of the machine that has the current one.
 */
static int wrap_catalog(struct bytes *b, const char *file, struct quipu_notes *notes)
{
	static const char base[] = "power9-catalog";
	struct bytes machine = {0};
	char *path = cli_machine_file(base);
	size_t len;
	void *made;
	int rc = path ? load_file(path, &machine) : -1;

	if (!rc && imc_catalog_machine(b->data, b->len, machine.data, machine.len, &made, &len)) {
		cli_error("%s: this catalog of in-memory counters cannot be read", file);
		rc = -1;
	}
	if (!rc) {
		free(b->data);
		*b = (struct bytes){made, len};
		quipu_note(notes, QUIPU_NOTE_UNDERSTOOD, "/",
			   "a catalog of in-memory counters, on the CPUs of %s", base);
	}
	free(machine.data);
	free(path);
	return rc;
}

struct quipu_machine *cli_machine_read(const char *file, const char *name,
				       struct quipu_notes *notes)
{
	struct quipu_machine *m;
	struct bytes b;
	char base[64];

	if (!name) {
		name_of(file, base, sizeof(base));
		name = base;
	}
	if (load_file(file, &b) ||
	    (imc_catalog_is(b.data, b.len) && wrap_catalog(&b, file, notes))) {
		free(b.data);
		return NULL;
	}
	m = quipu_machine_parse(b.data, b.len, name, notes);
	free(b.data);
	return m;
}

void cli_notes_print(const char *file, const struct quipu_notes *notes, bool all)
{
	static const char *const kind[] = {"understood", "ignored", "wrong"};

	for (size_t i = 0; i < notes->n; i++) {
		const struct quipu_note *n = &notes->items[i];

		if (all || n->kind == QUIPU_NOTE_WRONG)
			fprintf(stderr, "quipu: %s: %s%s%s%s%s\n", file, all ? kind[n->kind] : "",
				all ? ": " : "", n->path, *n->path ? ": " : "", n->text);
	}
}

/* The last reason is the one that ended it; what came before is for `machine check`. */
static void print_refusal(const char *file, const struct quipu_notes *notes)
{
	const struct quipu_note *last = NULL;
	size_t wrong = 0;

	for (size_t i = 0; i < notes->n; i++)
		if (notes->items[i].kind == QUIPU_NOTE_WRONG) {
			last = &notes->items[i];
			wrong++;
		}
	if (!last)
		return; /* it was no tree at all, and that has been said */
	cli_error("%s: %s%s%s%s%s", file, last->path, *last->path ? ": " : "", last->text,
		  wrong > 1 ? "; all that is wrong: quipu machine check " : "",
		  wrong > 1 ? file : "");
}

struct quipu_machine *cli_machine_load(const char *name_or_file, bool verbose)
{
	struct quipu_notes notes = {0};
	char *file = cli_machine_file(name_or_file);
	struct quipu_machine *m;

	if (!file)
		return NULL;
	m = cli_machine_read(file, NULL, &notes);
	if (m)
		cli_notes_print(file, &notes, verbose);
	else
		print_refusal(file, &notes);
	quipu_notes_free(&notes);
	free(file);
	return m;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_tree_name(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && n < 68 && (!strcmp(name + n - 4, ".dtb") || !strcmp(name + n - 4, ".dts"));
}

/* Add the machines of one folder; those already there are skipped. */
static char **names_of(const char *dir, char **names, size_t *n)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));) {
		char name[64], **more;
		size_t i = 0;

		if (!is_tree_name(e->d_name))
			continue;
		name_of(e->d_name, name, sizeof(name));
		while (i < *n && strcmp(names[i], name))
			i++;
		if (i < *n)
			continue;
		more = reallocarray(names, *n + 2, sizeof(*names));
		if (!more)
			break;
		names = more;
		names[*n] = strdup(name);
		if (names[*n])
			names[++*n] = NULL;
	}
	if (d)
		closedir(d);
	return names;
}

char **cli_machine_names(void)
{
	char **names = calloc(1, sizeof(*names));
	struct dirs d;
	size_t n = 0;

	if (!names)
		return NULL;
	dirs_init(&d);
	for (size_t i = 0; i < d.n; i++)
		names = names_of(d.dir[i], names, &n);
	dirs_free(&d);
	qsort(names, n, sizeof(*names), by_name);
	return names;
}

void cli_machine_names_free(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

bool cli_machine_shipped(const char *name)
{
	char **names = cli_machine_names();
	bool found = false;

	for (size_t i = 0; names && names[i] && !found; i++)
		found = !strcmp(names[i], name);
	cli_machine_names_free(names);
	return found;
}

const char *cli_machine_for_elf(const struct elf_facts *elf)
{
	static const struct {
		enum quipu_isa isa;
		const char *name;
	} machine[] = {
		{QUIPU_ISA_RISCV64, "riscv"},
		{QUIPU_ISA_PPC64LE, "power9"},
		{QUIPU_ISA_SPARC64, "rock"},
		{QUIPU_ISA_X86_64, "x86"},
	};

	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
		if (quipu_isa_elf(machine[i].isa) == elf->machine &&
		    elf->big_endian == (machine[i].isa == QUIPU_ISA_SPARC64) &&
		    session_runs(machine[i].isa))
			return machine[i].name;
	return NULL;
}
