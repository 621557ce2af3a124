// SPDX-License-Identifier: BSD-2-Clause
/*
 * What doctor says of the host itself: its kernel, what this user may count, and what each PMU can
 * do. Everything is tried (events are opened, namespaces made in a child); what cannot be tried is
 * read from /proc and /sys. Levels of perf_event_paranoid:
 * Documentation/admin-guide/sysctl/kernel.rst; 3 and 4 are distributions' own.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "platform/host/host.h"
#include "profile/kallsyms.h"

/* "CapEff:" -> its value in /proc/self/status, "" when it has none. */
static void status_field(const char *name, char *buf, size_t len)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	*buf = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		size_t n = strlen(name);

		if (strncmp(line, name, n))
			continue;
		snprintf(buf, len, "%s", line + n + strspn(line + n, " \t"));
		buf[strcspn(buf, "\n")] = '\0';
	}
	if (f)
		fclose(f);
}

/* ---- the host ---- */

static void check_kernel(struct doctor *d)
{
	struct utsname u;
	char os[128] = "", line[128];
	FILE *f = fopen("/etc/os-release", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "PRETTY_NAME=\"%127[^\"]\"", os) == 1)
			break;
	if (f)
		fclose(f);
	uname(&u);
	doctor_say(d, "kernel", OK, NULL, "%s %s, %s%s%s", u.sysname, u.release, u.machine,
		   *os ? ", " : "", os);
}

/* Errno (negative) of opening an event, 0 when it opens. */
static int try_open(uint32_t type, uint64_t config, uint64_t flags, pid_t pid, int cpu,
		    uint64_t period)
{
	struct quipu_attr attr = {.type = type,
				  .size = 64,
				  .config = config,
				  .sample_period = period,
				  .flags = QUIPU_ATTR_DISABLED | flags};
	struct host_opened o;
	uint64_t asked = attr.flags;
	int ret = host_open(&attr, false, pid, cpu, -1, &o);

	if (!ret)
		close(o.fd);
	/* Without what was asked for, it is not what was asked for. */
	return ret ? ret : (attr.flags ^ asked) & QUIPU_ATTR_EXCLUDE_KERNEL ? -EACCES : 0;
}

static const struct right {
	const char *what;
	uint32_t type;
	uint64_t config, flags;
	bool cpu;
	int level; /* of perf_event_paranoid that allows it */
} rights[] = {
	{"own programs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY,
	 QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV, false, 2},
	{"the kernel on their behalf", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, false, 1},
	{"whole CPUs (-a)", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 0, true, 0},
};
#define RIGHTS (sizeof(rights) / sizeof(rights[0]))

static void check_perf_events(struct doctor *d)
{
	int paranoid = host_paranoid(), denied = 0, level = 2, first = 0;
	char may[160] = "", not [160] = "", remedy[320];

	for (size_t i = 0; i < RIGHTS; i++) {
		const struct right *r = &rights[i];
		int err =
			try_open(r->type, r->config, r->flags, r->cpu ? -1 : 0, r->cpu ? 0 : -1, 0);
		char *list = err ? not : may;

		first = i ? first : err;
		if (err && !denied++)
			level = r->level;
		snprintf(list + strlen(list), sizeof(may) - strlen(list), "%s%s", *list ? ", " : "",
			 r->what);
	}
	snprintf(
		remedy, sizeof(remedy),
		"as root: sysctl kernel.perf_event_paranoid=%d, or setcap cap_perfmon+ep on quipu; in a "
		"container also allow perf_event_open in its seccomp profile; modelled machines need none "
		"of it",
		denied > 1 && level > 0 ? 0 : level);
	if (first == -ENOSYS || access("/proc/sys/kernel/perf_event_paranoid", F_OK))
		doctor_say(d, "perf_event_open", MISSING,
			   "nothing to do: modelled machines do not need it",
			   "the kernel has no perf events, or a sandbox hides them");
	else if (first)
		doctor_say(d, "perf_event_open", LIMITED, remedy,
			   "refused: %s; perf_event_paranoid is %d", strerror(-first), paranoid);
	else if (denied)
		doctor_say(d, "perf_event_open", LIMITED, remedy,
			   "perf_event_paranoid is %d: this user may count %s; not %s", paranoid,
			   may, not );
	else
		doctor_say(d, "perf_event_open", OK, NULL, "allowed: %s; perf_event_paranoid is %d",
			   may, paranoid);
}

static void check_capabilities(struct doctor *d)
{
	bool admin = host_capable(HOST_CAP_SYS_ADMIN), perfmon = host_capable(HOST_CAP_PERFMON);
	const char *cap = admin ? "CAP_SYS_ADMIN" : "CAP_PERFMON";
	unsigned uid = (unsigned)geteuid();

	if (!admin && !perfmon)
		doctor_say(d, "capabilities", OK, NULL,
			   "uid %u, neither CAP_PERFMON nor CAP_SYS_ADMIN: perf_event_paranoid "
			   "decides",
			   uid);
	else if (host_in_user_namespace())
		doctor_say(d, "capabilities", OK, NULL,
			   "uid %u, %s of a user namespace, which perf_event_open does not take: "
			   "perf_event_paranoid decides",
			   uid, cap);
	else
		doctor_say(d, "capabilities", OK, NULL,
			   "uid %u, %s: what perf_event_paranoid forbids is allowed", uid, cap);
}

static void check_seccomp(struct doctor *d)
{
	char mode[16];
	int err = try_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, QUIPU_ATTR_EXCLUDE_KERNEL, 0,
			   -1, 0);

	status_field("Seccomp:", mode, sizeof(mode));
	if (strcmp(mode, "2"))
		doctor_say(d, "seccomp", OK, NULL, "no filter");
	else if (!err)
		doctor_say(d, "seccomp", OK, NULL,
			   "a filter is active, and lets perf_event_open pass");
	else
		doctor_say(
			d, "seccomp", LIMITED,
			"start the container with a profile that allows perf_event_open, for example "
			"docker run --security-opt seccomp=unconfined --cap-add PERFMON",
			"a filter is active, and perf_event_open is refused: %s", strerror(-err));
}

/* The name of the container manager that left its mark, or NULL. */
static const char *container(void)
{
	static const struct {
		const char *path, *word, *name;
	} marks[] = {
		{"/.dockerenv", NULL, "docker"},
		{"/run/.containerenv", NULL, "podman"},
		{"/proc/1/cgroup", "docker", "docker"},
		{"/proc/1/cgroup", "kubepods", "Kubernetes"},
		{"/proc/1/cgroup", "lxc", "LXC"},
		{"/run/systemd/container", "", "systemd-nspawn or its like"},
	};
	char text[4096];

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (access(marks[i].path, F_OK))
			continue;
		if (!marks[i].word)
			return marks[i].name;
		if (!host_read_text(marks[i].path, text, sizeof(text)) &&
		    strstr(text, marks[i].word))
			return marks[i].name;
	}
	return NULL;
}

static void check_container(struct doctor *d)
{
	const char *name = container();
	char pids[128];
	bool nested;

	status_field("NSpid:", pids, sizeof(pids));
	nested = strpbrk(pids, " \t") != NULL;
	if (host_in_user_namespace())
		doctor_say(
			d, "container", LIMITED,
			"nothing to do for own programs and modelled machines; for whole CPUs run quipu "
			"outside, or with CAP_PERFMON of the first user namespace",
			"a user namespace%s%s: being root here counts for nothing to perf_event_open",
			name ? " of " : "", name ? name : "");
	else if (name || nested)
		doctor_say(d, "container", OK, NULL,
			   "%s: -a and -C count the CPUs of the whole host",
			   name ? name : "a pid namespace");
	else
		doctor_say(d, "container", OK, NULL, "none seen");
}

/* Tried in a child, for there is no way back. */
static int try_unshare(int flags)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return errno;
	if (!pid)
		_exit(unshare(flags) ? errno : 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

static void check_namespaces(struct doctor *d)
{
	int user = try_unshare(CLONE_NEWUSER | CLONE_NEWNS), mount = try_unshare(CLONE_NEWNS);

	if (!user || !mount)
		doctor_say(d, "namespaces", OK, NULL, "a private mount namespace can be made%s",
			   user ? " (as root)" : "");
	else
		doctor_say(d, "namespaces", LIMITED,
			   "as root: sysctl kernel.unprivileged_userns_clone=1 "
			   "user.max_user_namespaces=10000 (in a container: "
			   "--security-opt seccomp=unconfined)",
			   "no private mount namespace: %s; stat and record do not need one",
			   strerror(user));
}

static bool is_virtual(char *vendor, size_t len)
{
	char line[8192];
	FILE *f = fopen("/proc/cpuinfo", "re");
	bool virtual = false;

	while (f && !virtual && fgets(line, sizeof(line), f))
		virtual = !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
	if (f)
		fclose(f);
	if (host_read_text("/sys/hypervisor/type", vendor, len) &&
	    host_read_text("/sys/class/dmi/id/sys_vendor", vendor, len))
		*vendor = '\0';
	return virtual || !access("/proc/device-tree/hypervisor", F_OK);
}

static void check_hypervisor(struct doctor *d)
{
	int err = try_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS,
			   QUIPU_ATTR_EXCLUDE_KERNEL, 0, -1, 0);
	char vendor[128], text[160];
	bool virtual = is_virtual(vendor, sizeof(vendor));

	snprintf(text, sizeof(text), "%s%s%s", *vendor ? " (" : "", vendor, *vendor ? ")" : "");
	if (!virtual)
		doctor_say(d, "hypervisor", OK, NULL, "none seen");
	else if (err != -ENOENT && err != -EOPNOTSUPP && err != -ENODEV)
		doctor_say(d, "hypervisor", OK, NULL, "this is a virtual machine%s with a vPMU",
			   text);
	else
		doctor_say(
			d, "hypervisor", LIMITED,
			"have the hypervisor offer a virtual PMU: KVM -cpu host,pmu=on (libvirt <pmu "
			"state='on'/>), VMware \"Virtualize CPU performance counters\", Xen vpmu=on, on a "
			"cloud a metal or large instance; until then quipu's modelled machines count "
			"instructions exactly",
			"this is a virtual machine%s without a vPMU", text);
}

static void check_limits(struct doctor *d)
{
	struct rlimit files = {0};
	char mlock[32] = "?";

	getrlimit(RLIMIT_NOFILE, &files);
	host_read_text("/proc/sys/kernel/perf_event_mlock_kb", mlock, sizeof(mlock));
	if (files.rlim_max < 1024)
		doctor_say(d, "limits", LIMITED, "raise the hard limit: ulimit -Hn 65536",
			   "%llu files may be open: one is needed for each event, thread and CPU",
			   (unsigned long long)files.rlim_max);
	else
		doctor_say(
			d, "limits", OK, NULL,
			"%llu open files (one for each event, thread and CPU); %s KiB of ring for each "
			"CPU of a user",
			(unsigned long long)files.rlim_max, mlock);
}

void doctor_host(struct doctor *d)
{
	check_kernel(d);
	check_perf_events(d);
	check_capabilities(d);
	check_seccomp(d);
	check_container(d);
	check_namespaces(d);
	check_hypervisor(d);
	check_limits(d);
}

/* ---- its counters ---- */

static void check_hardware(struct doctor *d, struct host *h)
{
	int err = try_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS,
			   QUIPU_ATTR_EXCLUDE_KERNEL, 0, -1, 0);
	int sample = try_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
			      QUIPU_ATTR_EXCLUDE_KERNEL, 0, -1, 1000003);
	char watchdog[8] = "0";

	host_read_text("/proc/sys/kernel/nmi_watchdog", watchdog, sizeof(watchdog));
	if (!err && sample)
		doctor_say(
			d, "hardware PMU", LIMITED,
			"quipu record falls back to cpu-clock; see `dmesg | grep -i perf` for why the "
			"kernel found no interrupt",
			"counts instructions, but cannot sample: %s", strerror(-sample));
	else if (!err)
		doctor_say(d, "hardware PMU", OK, NULL, "counts and samples%s",
			   !strcmp(watchdog, "1")
				   ? "; the kernel's watchdog keeps one counter (sysctl "
				     "kernel.nmi_watchdog=0 frees it)"
				   : "");
	else if (host_has_cpu_pmu(h))
		doctor_say(d, "hardware PMU", LIMITED, "see perf_event_open above",
			   "there, but cannot be opened: %s", strerror(-err));
	else
		doctor_say(
			d, "hardware PMU", MISSING,
			"quipu stat counts instructions exactly on machine x86 instead; quipu record "
			"samples by cpu-clock; see hypervisor above",
			"none here: cycles, instructions and the like are <not supported>");
}

/* What one event of the PMU can be: "counts tasks and CPUs, samples". */
static int describe_pmu(const struct quipu_catalog_pmu *p, uint64_t config, char *buf, size_t len)
{
	bool task = !try_open(p->type, config, 0, 0, -1, 0);
	int cpu = try_open(p->type, config, 0, -1, p->cpus ? atoi(p->cpus) : 0, 0);
	bool sample = !try_open(p->type, config, 0, -1, p->cpus ? atoi(p->cpus) : 0, 1000003);

	snprintf(buf, len, "%s%s%s%s", task ? "counts tasks" : "", task && !cpu ? " and CPUs" : "",
		 !task && !cpu ? "counts CPUs (-a)" : "", sample ? ", samples" : "");
	return task ? 0 : cpu;
}

/* The attribute of the PMU's first event that needs no parameter. */
static bool first_event(struct host *h, const struct quipu_catalog_pmu *p, uint64_t *config)
{
	for (size_t i = 0; i < p->nevents; i++) {
		struct quipu_event_list list = {0};
		struct quipu_grammar_error err;
		char text[512];
		bool ok;

		snprintf(text, sizeof(text), "%s/%s/", p->name, p->events[i].name);
		ok = !host_parse(h, text, &list, &err) && list.n;
		if (ok)
			*config = list.items[0].attr.config;
		quipu_event_list_free(&list);
		if (ok)
			return true;
	}
	return false;
}

static void check_pmu(struct doctor *d, struct host *h, const struct quipu_catalog_pmu *p)
{
	char name[64], can[96], facts[160];
	uint64_t config = 0;
	int err;

	snprintf(name, sizeof(name), "PMU %.50s", p->name);
	snprintf(facts, sizeof(facts), "type %u, %zu events, %zu terms%s%.40s", p->type, p->nevents,
		 p->nformats, p->cpus ? ", CPUs " : "", p->cpus ? p->cpus : "");
	if (!first_event(h, p, &config)) {
		doctor_say(d, name, OK, NULL, "%s; events by code: %s/TERM=VALUE/", facts, p->name);
		return;
	}
	err = describe_pmu(p, config, can, sizeof(can));
	if (!err)
		doctor_say(d, name, OK, NULL, "%s; %s", facts, can);
	else
		doctor_say(
			d, name, LIMITED,
			err == -EACCES || err == -EPERM
				? "see perf_event_open above"
				: "nothing to do: the kernel lists this PMU, and the (virtual) CPU does "
				  "not have its events",
			"%s; its first event, %s, cannot be opened: %s", facts, p->events[0].name,
			strerror(-err));
}

static void check_pmus(struct doctor *d, struct host *h)
{
	static const char *const kernels[] = {"software", "tracepoint", "breakpoint", "uprobe",
					      "kprobe"};
	const struct quipu_catalog *c = host_catalog(h);

	for (size_t i = 0; c && i < c->npmus; i++) {
		bool own = false;

		for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++)
			own |= !strcmp(c->pmus[i].name, kernels[k]);
		if (!own)
			check_pmu(d, h, &c->pmus[i]);
	}
	if (!c || !c->npmus)
		doctor_say(d, "PMUs", MISSING, "mount sysfs: mount -t sysfs none /sys",
			   "/sys/bus/event_source/devices shows none");
}

static int count_one(void *arg, const char *system, const char *event, uint64_t id)
{
	(void)system;
	(void)event;
	*(uint64_t *)arg = id;
	return 1; /* one will do */
}

static void check_tracepoints(struct doctor *d, struct host *h)
{
	char why[200] = "", *tell;
	uint64_t id = 0;
	int err;

	h->kernel.tracepoints(NULL, "sched", "sched_switch", count_one, &id, why, sizeof(why));
	err = id ? try_open(PERF_TYPE_TRACEPOINT, id, 0, -1, 0, 0) : 0;
	tell = strstr(why, "; as root");
	if (!id)
		doctor_say(d, "tracepoints", tell || !*why ? LIMITED : MISSING,
			   tell ? tell + 2 : "a kernel with CONFIG_TRACEPOINTS and tracefs", "%.*s",
			   tell ? (int)(tell - why) : (int)strlen(why), why);
	else if (err)
		doctor_say(
			d, "tracepoints", LIMITED,
			"as root: sysctl kernel.perf_event_paranoid=-1, or setcap cap_perfmon+ep on quipu",
			"seen, but cannot be opened: %s", strerror(-err));
	else
		doctor_say(d, "tracepoints", OK, NULL, "sched:sched_switch opens");
}

static void check_probes(struct doctor *d, struct host *h)
{
	const struct quipu_catalog *c = host_catalog(h);
	bool u = c && quipu_catalog_find(c, "uprobe"), k = c && quipu_catalog_find(c, "kprobe");
	int err = try_open(PERF_TYPE_BREAKPOINT, 0, 0, 0, -1, 0);

	if (u && k)
		doctor_say(d, "probes", OK, NULL, "uprobes (uprobe:FILE:FUNCTION) and kprobes");
	else
		doctor_say(d, "probes", LIMITED,
			   c && c->npmus
				   ? "a kernel with CONFIG_UPROBE_EVENTS and CONFIG_KPROBE_EVENTS"
				   : "see PMUs above: the kernel's are among them",
			   "%s",
			   u   ? "uprobes, but no kprobes"
			   : k ? "kprobes, but no uprobes"
			       : "none");
	/* An empty breakpoint is invalid where there are breakpoints, and unknown where not. */
	if (err == -ENOENT || err == -EOPNOTSUPP)
		doctor_say(d, "breakpoints", MISSING, "a kernel with CONFIG_HAVE_HW_BREAKPOINT",
			   "the kernel offers none");
	else
		doctor_say(d, "breakpoints", OK, NULL, "mem:ADDRESS/LENGTH:rwx");
}

static void check_symbols(struct doctor *d)
{
	uint64_t start, end;

	if (kallsyms_base(&start, &end))
		doctor_say(d, "kernel symbols", OK, NULL, "/proc/kallsyms tells addresses");
	else
		doctor_say(
			d, "kernel symbols", LIMITED,
			"as root: sysctl kernel.kptr_restrict=0 (and kernel.perf_event_paranoid=1)",
			"/proc/kallsyms hides its addresses: samples in the kernel have no names");
}

void doctor_counters(struct doctor *d)
{
	struct host h;

	if (host_init(&h, NULL)) {
		doctor_say(d, "sysfs", MISSING, "mount -t sysfs none /sys", "cannot be read");
		return;
	}
	check_hardware(d, &h);
	check_pmus(d, &h);
	check_tracepoints(d, &h);
	check_probes(d, &h);
	check_symbols(d);
	host_free(&h);
}
