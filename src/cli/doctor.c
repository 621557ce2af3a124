// SPDX-License-Identifier: BSD-2-Clause
/*
 * quipu doctor: what this host can and cannot do, and why; each line with its remedy.
 *
 * Everything is tried, not guessed: events are opened, namespaces are made (in a child), QEMU loads
 * the plugin. The exit status is 0 when programs of at least one instruction set can be counted,
 * else 1.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include <quipu/machine.h>
#include <quipu/perf_regs.h>

#include "cli/capture.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/run.h"
#include "engine/elf.h"
#include "engine/segment.h"

#define TIMEOUT_MS 10000

static const char usage[] =
	"usage: quipu doctor [--json]\n\n"
	"What this host can and cannot do, and why: its kernel and counters, QEMU and the "
	"plugin for each instruction\n"
	"set, cross libraries, tools. Each line is ok, limited or missing; "
	"what to do is on the next one.\n"
	"The exit status is 1 when no program can be counted here.\n";

void doctor_say(struct doctor *d, const char *name, enum verdict verdict, const char *remedy,
		const char *fmt, ...)
{
	struct line *p = reallocarray(d->lines, d->n + 1, sizeof(*p));
	va_list ap;

	if (!p)
		return;
	d->lines = p;
	p = &d->lines[d->n];
	*p = (struct line){.section = d->section,
			   .name = strdup(name),
			   .remedy = strdup(remedy ? remedy : ""),
			   .verdict = verdict};
	va_start(ap, fmt);
	if (vasprintf(&p->text, fmt, ap) < 0)
		p->text = NULL;
	va_end(ap);
	if (!p->name || !p->remedy || !p->text) {
		free(p->name);
		free(p->remedy);
		free(p->text);
		return;
	}
	d->n++;
}

/* ---- the engine ---- */

static void check_memory(struct doctor *d)
{
	int fd = memfd_create("quipu-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *p = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)SEG_BYTES))
		p = mmap(NULL, SEG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
			 0);
	if (p == MAP_FAILED)
		doctor_say(
			d, "shared memory", MISSING,
			"raise the limits on address space and file size: ulimit -v unlimited -f "
			"unlimited",
			"a sparse memfd of %llu GiB cannot be mapped: %s",
			(unsigned long long)(SEG_BYTES >> 30), strerror(errno));
	else
		doctor_say(d, "shared memory", OK, NULL, "a sparse memfd of %llu GiB can be mapped",
			   (unsigned long long)(SEG_BYTES >> 30));
	if (p != MAP_FAILED)
		munmap(p, SEG_BYTES);
	if (fd >= 0)
		close(fd);
}

static const struct target {
	enum quipu_isa isa;
	const char *sysroot, *libc, *compiler, *compiler_package;
} targets[] = {
	{QUIPU_ISA_RISCV64, "/usr/riscv64-linux-gnu", "libc6-dev-riscv64-cross",
	 "riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu"},
	{QUIPU_ISA_PPC64LE, "/usr/powerpc64le-linux-gnu", "libc6-dev-ppc64el-cross",
	 "powerpc64le-linux-gnu-gcc", "gcc-powerpc64le-linux-gnu"},
	{QUIPU_ISA_SPARC64, "/usr/sparc64-linux-gnu", "libc6-dev-sparc64-cross",
	 "sparc64-linux-gnu-gcc", "gcc-sparc64-linux-gnu"},
	{QUIPU_ISA_X86_64, NULL, NULL, NULL, NULL},
};

static void check_plugin(struct doctor *d)
{
	char *path = cli_plugin_path(), *real = path ? realpath(path, NULL) : NULL;

	d->plugin = real ? real : path;
	if (real)
		free(path);
	if (!d->plugin || access(d->plugin, R_OK))
		doctor_say(d, "plugin", MISSING,
			   "build or install quipu again, or name it in QUIPU_PLUGIN", "%s: %s",
			   d->plugin ? d->plugin : "quipu-qemu.so", strerror(errno));
	else
		doctor_say(d, "plugin", OK, NULL, "%s", d->plugin);
}

/* "qemu-riscv64 version 7.2.22 (Debian ...)" -> "7.2.22" */
static void version_of(const char *said, char *buf, size_t len)
{
	const char *p = strstr(said, "version ");

	snprintf(buf, len, "%.*s", p ? (int)strcspn(p + 8, " \n") : 1, p ? p + 8 : "?");
}

#define INTERFACE_WITH_REGISTERS 3

/* Does this QEMU load the plugin? The line says why not. @interface: of its plugins, the version.
 */
static bool check_loads(struct doctor *d, const char *name, const char *file, const char *version,
			int *interface)
{
	char plugin[4200], said[512], why[256];
	char *argv[] = {(char *)file, "-plugin", plugin, "/dev/null", NULL};
	struct elf_facts elf = {0};
	bool dynamic = !elf_read(file, &elf, why, sizeof(why)) && elf.interp[0];
	int status;

	if (!dynamic) {
		doctor_say(
			d, name, LIMITED,
			"install a dynamically linked QEMU with plugins in front of it in PATH: Debian "
			"12's qemu-user (7.2), or "
			"a build with configure --enable-plugins and without --static",
			"%s, version %s, is statically linked and cannot load a plugin", file,
			version);
		return false;
	}
	snprintf(plugin, sizeof(plugin), "%s,probe=1", d->plugin);
	status = capture(argv, said, sizeof(said), TIMEOUT_MS);
	said[strcspn(said, "\n")] = '\0';
	if (status || strncmp(said, "quipu-qemu ", 11)) {
		doctor_say(
			d, name, LIMITED,
			"apt-get install --reinstall qemu-user; the plugin needs QEMU 7.2 or later, with "
			"plugins",
			"%s, version %s, does not load the plugin: %s", file, version,
			status < 0 ? strerror(-status)
			: *said	   ? said
				   : "no reason given");
		return false;
	}
	*interface = atoi(said + 11);
	return true;
}

static const char *registers_with(enum quipu_isa isa, int interface)
{
	if (!quipu_perf_regs_given(isa))
		return "";
	return interface >= INTERFACE_WITH_REGISTERS
		       ? "; samples can have user registers (--user-regs)"
		       : "; samples have no user registers, which takes QEMU 9 or later";
}

static void check_qemu(struct doctor *d, const struct target *t)
{
	char name[32], said[256], version[64], *file;
	char *argv[] = {NULL, "--version", NULL};
	int interface;

	snprintf(name, sizeof(name), "qemu-%s", quipu_isa_name(t->isa));
	file = find_program(name);
	if (!file) {
		doctor_say(d, name, MISSING, "apt-get install qemu-user",
			   "not in PATH: %s programs cannot be run", quipu_isa_name(t->isa));
		return;
	}
	argv[0] = file;
	if (capture(argv, said, sizeof(said), TIMEOUT_MS))
		*said = '\0';
	version_of(said, version, sizeof(version));
	if (!d->plugin || access(d->plugin, R_OK)) {
		doctor_say(d, name, LIMITED, "see plugin above",
			   "%s, version %s; the plugin is missing", file, version);
	} else if (check_loads(d, name, file, version, &interface)) {
		doctor_say(d, name, OK, NULL, "%s, version %s, loads the plugin%s", file, version,
			   registers_with(t->isa, interface));
		d->counts = true;
	}
	free(file);
}

/* ---- what programs and tests need besides ---- */

static void check_sysroot(struct doctor *d, const struct target *t)
{
	char name[64], remedy[128];

	if (!t->sysroot)
		return;
	snprintf(name, sizeof(name), "%s libraries", quipu_isa_name(t->isa));
	snprintf(remedy, sizeof(remedy), "apt-get install %s", t->libc);
	if (!access(t->sysroot, R_OK | X_OK))
		doctor_say(d, name, OK, NULL, "%s, found without -L", t->sysroot);
	else
		doctor_say(d, name, MISSING, remedy,
			   "no %s: static programs only, or name a sysroot with -L", t->sysroot);
}

static void check_compiler(struct doctor *d, const struct target *t)
{
	char name[64], remedy[128], *file;

	if (!t->compiler)
		return;
	snprintf(name, sizeof(name), "%s compiler", quipu_isa_name(t->isa));
	snprintf(remedy, sizeof(remedy), "apt-get install %s", t->compiler_package);
	file = find_program(t->compiler);
	if (file)
		doctor_say(d, name, OK, NULL, "%s", file);
	else
		doctor_say(d, name, MISSING, remedy, "no %s in PATH", t->compiler);
	free(file);
}

static void check_tool(struct doctor *d, const char *name, const char *package, const char *use)
{
	char said[256], remedy[128], *file = find_program(name);
	char *argv[] = {file, "--version", NULL};
	int status;

	snprintf(remedy, sizeof(remedy), "apt-get install %s", package);
	if (!file) {
		doctor_say(d, name, MISSING, remedy, "not in PATH: %s", use);
		return;
	}
	status = capture(argv, said, sizeof(said), TIMEOUT_MS);
	said[strcspn(said, "\n")] = '\0';
	if (status)
		doctor_say(d, name, LIMITED, remedy, "%s does not run: %s", file,
			   *said ? said : "no reason given");
	else
		doctor_say(d, name, OK, NULL, "%s, %s", file, said);
	free(file);
}

static void check_machines(struct doctor *d)
{
	char **names = cli_machine_names(), list[512] = "";
	size_t len = 0;

	for (size_t i = 0; names && names[i] && len < sizeof(list) - 80; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%.64s", i ? ", " : "",
					names[i]);
	if (*list)
		doctor_say(d, "machines", OK, NULL, "%s", list);
	else
		doctor_say(
			d, "machines", MISSING,
			"build or install quipu again, or name their folder in QUIPU_MACHINE_PATH",
			"none found");
	cli_machine_names_free(names);
}

static void examine(struct doctor *d)
{
	size_t n = sizeof(targets) / sizeof(targets[0]);

	d->section = "Host";
	doctor_host(d);
	check_memory(d);
	d->section = "Counters of the host";
	doctor_counters(d);
	d->section = "Engine";
	check_plugin(d);
	for (size_t i = 0; i < n; i++)
		if (session_runs(targets[i].isa))
			check_qemu(d, &targets[i]);
	check_machines(d);
	d->section = "Programs to count";
	for (size_t i = 0; i < n; i++)
		check_sysroot(d, &targets[i]);
	for (size_t i = 0; i < n; i++)
		check_compiler(d, &targets[i]);
	d->section = "Tools";
	check_tool(d, "perf", "linux-perf", "perf.data can be read by quipu report all the same");
	check_tool(d, "dtc", "device-tree-compiler",
		   "machines in source (.dts) cannot be loaded, flattened ones can");
}

static const char *const verdict_name[] = {"ok", "limited", "missing"};

static void print_text(const struct doctor *d)
{
	static const char *const colour[] = {"\x1b[32m", "\x1b[33m", "\x1b[31m"};
	const char *section = "";

	for (size_t i = 0; i < d->n; i++) {
		const struct line *l = &d->lines[i];

		if (strcmp(section, l->section))
			printf("%s%s\n", i ? "\n" : "", l->section);
		section = l->section;
		printf("  %s%-8s%s %-18s %s\n", cli_colour() ? colour[l->verdict] : "",
		       verdict_name[l->verdict], cli_colour() ? "\x1b[0m" : "", l->name, l->text);
		if (*l->remedy)
			printf("  %-8s %-18s -> %s\n", "", "", l->remedy);
	}
	puts(d->counts ? "\nPrograms can be counted here."
		       : "\nNo program can be counted here; see Engine.");
}

static void print_json(const struct doctor *d)
{
	json_t *lines = json_array(), *o;

	for (size_t i = 0; i < d->n; i++) {
		const struct line *l = &d->lines[i];

		json_array_append_new(lines, json_pack("{s:s, s:s, s:s, s:s, s:s*}", "section",
						       l->section, "name", l->name, "verdict",
						       verdict_name[l->verdict], "text", l->text,
						       "remedy", *l->remedy ? l->remedy : NULL));
	}
	o = json_pack("{s:b, s:o}", "counts", d->counts, "lines", lines);
	json_dumpf(o, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(o);
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option longs[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct doctor d = {0};
	bool json = false;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "jh", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (c != 'j')
			return cli_error("doctor: option '%s' is not known; `quipu doctor --help`",
					 argv[optind - 1]);
		json = true;
	}
	if (optind < argc)
		return cli_error("doctor takes no argument '%s'", argv[optind]);
	examine(&d);
	if (json)
		print_json(&d);
	else
		print_text(&d);
	for (size_t i = 0; i < d.n; i++) {
		free(d.lines[i].name);
		free(d.lines[i].text);
		free(d.lines[i].remedy);
	}
	free(d.lines);
	free(d.plugin);
	return d.counts ? 0 : 1;
}
