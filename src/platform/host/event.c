// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events of the host's kernel: perf_event_open(2), what perf tries again when it is refused, and
 * what a refusal means. The reasons follow Documentation/admin-guide/perf-security.rst and
 * sysctl/kernel.rst.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/host/host.h"

#define EXCLUDE_GH (QUIPU_ATTR_EXCLUDE_GUEST | QUIPU_ATTR_EXCLUDE_HOST)

static int sys_open(struct quipu_attr *attr, pid_t pid, int cpu, int group)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* Once: as many descriptors as the hard limit allows. */
static bool more_descriptors(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= r.rlim_max)
		return false;
	r.rlim_cur = r.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &r);
}

static unsigned get_precise(const struct quipu_attr *a)
{
	return (unsigned)((a->flags & QUIPU_ATTR_PRECISE_MASK) >> QUIPU_ATTR_PRECISE_SHIFT);
}

static void set_precise(struct quipu_attr *a, unsigned v)
{
	a->flags &= ~QUIPU_ATTR_PRECISE_MASK;
	a->flags |= (uint64_t)v << QUIPU_ATTR_PRECISE_SHIFT;
}

/* Is there anything left to try after @err? Changes @a for it. */
static bool try_again(struct quipu_attr *a, bool precise_max, int err, struct host_opened *out)
{
	/* config3 is of 6.3: an older kernel takes the shorter attr. */
	if (err == -E2BIG && a->size > 112) {
		a->size = a->size > 128 ? 128 : a->size > 120 ? 120 : 112;
		return true;
	}
	if (err == -EMFILE)
		return more_descriptors();
	if (precise_max && get_precise(a) && err != -EACCES && err != -EPERM) {
		set_precise(a, get_precise(a) - 1);
		return true;
	}
	if (err == -EINVAL && a->flags & EXCLUDE_GH) {
		a->flags &= ~EXCLUDE_GH;
		return true;
	}
	if ((err == -EACCES || err == -EPERM) &&
	    !(a->flags & (QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_USER)) &&
	    host_paranoid() > 1) {
		a->flags |= QUIPU_ATTR_EXCLUDE_KERNEL | QUIPU_ATTR_EXCLUDE_HV;
		out->user_only = true;
		return true;
	}
	return false;
}

int host_open(struct quipu_attr *attr, bool precise_max, pid_t pid, int cpu, int group,
	      struct host_opened *out)
{
	struct quipu_attr before;
	int fd, denied = 0;

	*out = (struct host_opened){.fd = -1};
	attr->size = attr->config3 ? sizeof(*attr) : 128;
	if (precise_max)
		set_precise(attr, 3);
	before = *attr;
	for (;;) {
		uint32_t size = attr->size;

		fd = sys_open(attr, pid, cpu, group);
		if (fd >= 0)
			break;
		attr->size = size; /* the kernel writes its own there */
		if (!try_again(attr, precise_max, fd, out)) {
			*attr = before;
			/* Without the kernel a PMU may say less of what was wrong than with it. */
			fd = out->user_only ? denied : fd;
			out->user_only = false;
			return fd;
		}
		denied = fd == -EACCES || fd == -EPERM ? fd : denied;
	}
	out->fd = fd;
	return 0;
}

int host_read(int fd, struct host_count *c)
{
	uint64_t v[3];
	ssize_t n = read(fd, v, sizeof(v));

	*c = (struct host_count){0};
	if (n != (ssize_t)sizeof(v))
		return n < 0 ? -errno : 0; /* a pinned event that lost its place reads as nothing */
	*c = (struct host_count){v[0], v[1], v[2]};
	return 0;
}

int host_event_id(int fd, uint64_t *id)
{
	return ioctl(fd, PERF_EVENT_IOC_ID, id) ? -errno : 0;
}

/* ---- why not ---- */

static void __attribute__((format(printf, 2, 3))) why(struct host_reason *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3)))
remedy(struct host_reason *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->remedy, sizeof(r->remedy), fmt, ap);
	va_end(ap);
}

static bool is_core_event(const struct quipu_attr *a)
{
	return a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE ||
	       a->type == PERF_TYPE_RAW;
}

static bool is_virtual(void)
{
	char line[8192];
	FILE *f = fopen("/proc/cpuinfo", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
	if (f)
		fclose(f);
	return found;
}

static void why_no_event(struct host *h, const struct quipu_parsed *e, struct host_reason *r)
{
	const struct quipu_attr *a = &e->attr;

	if (h->recorded) {
		why(r, "the tree of --sysfs is another machine's: its PMU is not in this kernel");
		remedy(r, "leave out --sysfs to count on this host");
	} else if (is_core_event(a) && !host_has_cpu_pmu(h)) {
		why(r, "this host has no hardware counters%s",
		    is_virtual() ? ": a virtual machine whose hypervisor passes none on" : "");
		remedy(r, "-m x86 counts instructions exactly on a modelled machine%s",
		       is_virtual()
			       ? "; or have the hypervisor offer a vPMU (KVM: -cpu host,pmu=on)"
			       : "");
	} else if (is_core_event(a)) {
		why(r, "this host's CPU has no such event");
		remedy(r, "`quipu list -m host` shows those it has");
	} else if (a->type == PERF_TYPE_TRACEPOINT) {
		why(r, "the kernel has no tracepoint of this number any more");
	} else {
		why(r, "the PMU%s%s has no such event, or it is not there", e->pmu ? " " : "",
		    e->pmu ? e->pmu : "");
	}
}

static const char *what_needs(const struct quipu_parsed *e, pid_t pid, int *level)
{
	if (e->attr.type == PERF_TYPE_TRACEPOINT) {
		*level = -1;
		return "a tracepoint";
	}
	if (pid < 0) {
		*level = 0;
		return "counting whole CPUs";
	}
	if (!(e->attr.flags & QUIPU_ATTR_EXCLUDE_KERNEL)) {
		*level = 1;
		return "counting in the kernel";
	}
	*level = 2;
	return "counting";
}

/*
 * Above 2 a kernel as it comes does what it does at 2; those of Debian, Ubuntu and Android refuse
 * everything to users. Only the call itself tells which kernel this is.
 */
static bool refuses_all(int paranoid)
{
	struct quipu_attr a = {.type = PERF_TYPE_SOFTWARE,
			       .size = 112,
			       .config = PERF_COUNT_SW_DUMMY,
			       .flags = QUIPU_ATTR_DISABLED | QUIPU_ATTR_EXCLUDE_KERNEL |
					QUIPU_ATTR_EXCLUDE_HV};
	int fd = paranoid > 2 ? sys_open(&a, 0, -1, -1) : 0;

	if (fd > 0)
		close(fd);
	return fd < 0;
}

static bool is_strangers(pid_t pid)
{
	return pid > 0 && kill(pid, 0) && errno == EPERM;
}

bool host_in_user_namespace(void)
{
	char map[256];
	unsigned long in, out, n;

	/* Not all ids are there: uid_map of the first user namespace is "0 0 4294967295". */
	return !host_read_text("/proc/self/uid_map", map, sizeof(map)) &&
	       sscanf(map, "%lu %lu %lu", &in, &out, &n) == 3 && n != 4294967295UL;
}

static void why_denied(const struct quipu_parsed *e, int err, pid_t pid, struct host_reason *r)
{
	int paranoid = host_paranoid(), level;
	const char *what = what_needs(e, pid, &level);

	bool root = host_capable(HOST_CAP_PERFMON) || host_capable(HOST_CAP_SYS_ADMIN);

	if (root && pid > 0 && host_in_user_namespace()) {
		why(r,
		    "process %d is not one of this user namespace, and being root here counts for "
		    "nothing outside",
		    (int)pid);
		remedy(r, "run quipu outside, as that process's user or as root");
		return;
	}
	if (root && paranoid > level && host_in_user_namespace()) {
		why(r,
		    "%s needs a privilege that root of a user namespace has not: "
		    "kernel.perf_event_paranoid is %d, and it may be at most %d without",
		    what, paranoid, level);
		remedy(r,
		       "outside of the namespace, as root: sysctl kernel.perf_event_paranoid=%d, or "
		       "run quipu there; or count on a modelled machine, which needs no privilege",
		       level);
		return;
	}
	if (root) {
		/* Privileged and refused: a filter in between, or a process of a stranger. */
		why(r,
		    "refused (%s) in spite of CAP_PERFMON: a seccomp filter or a security module "
		    "stands in between",
		    strerror(-err));
		remedy(r, "in a container: allow perf_event_open in its seccomp profile "
			  "(--security-opt seccomp=...)");
		return;
	}
	if (is_strangers(pid) || (paranoid <= level && pid > 0)) {
		why(r, "process %d is not this user's", (int)pid);
		remedy(r,
		       "count a process of your own, or give quipu CAP_PERFMON and CAP_SYS_PTRACE");
		return;
	}
	if (paranoid <= level) {
		why(r,
		    "refused (%s), though kernel.perf_event_paranoid is %d: a seccomp filter or a "
		    "security module stands in between",
		    strerror(-err), paranoid);
		remedy(r, "in a container: allow perf_event_open in its seccomp profile "
			  "(--security-opt seccomp=...)");
		return;
	}
	if (refuses_all(paranoid)) {
		why(r,
		    "this kernel refuses all counting without a privilege: kernel.perf_event_paranoid "
		    "is %d, and it must be at most 2 for programs of one's own, at most %d for this",
		    paranoid, level);
		remedy(r,
		       "as root: sysctl kernel.perf_event_paranoid=%d, or setcap cap_perfmon+ep on "
		       "quipu; or count on a modelled machine, which needs no privilege",
		       level);
		return;
	}
	why(r,
	    "%s needs a privilege here: kernel.perf_event_paranoid is %d, and %s at most %d without",
	    what, paranoid, level == 2 ? "it must be" : "it may be", level);
	remedy(r,
	       "as root: sysctl kernel.perf_event_paranoid=%d, or setcap cap_perfmon+ep on quipu; "
	       "or count on a modelled machine, which needs no privilege",
	       level);
}

static void why_descriptors(struct host_reason *r)
{
	struct rlimit l = {0};

	getrlimit(RLIMIT_NOFILE, &l);
	why(r,
	    "every event of every thread and CPU needs a file descriptor, and %llu is the most that "
	    "this process may have",
	    (unsigned long long)l.rlim_max);
	remedy(r, "raise the limit (ulimit -n), or count fewer events, threads or CPUs");
}

/* Samples of a PMU that does not sample, or more of them than the kernel allows. */
static bool why_no_samples(const struct quipu_parsed *e, struct host_reason *r)
{
	const struct quipu_attr *a = &e->attr;
	char text[32];

	if (!a->sample_period)
		return false;
	if (a->flags & QUIPU_ATTR_FREQ &&
	    !host_read_text("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof(text)) &&
	    a->sample_freq > strtoull(text, NULL, 10)) {
		why(r, "%llu samples a second are more than this kernel allows: %s",
		    (unsigned long long)a->sample_freq, text);
		remedy(r, "a lower -F, or as root: sysctl kernel.perf_event_max_sample_rate=%llu",
		       (unsigned long long)a->sample_freq);
		return true;
	}
	if (!e->pmu || e->each || !strncmp(e->pmu, "cpu", 3))
		return false;
	why(r, "PMU %s raises no interrupt, so it cannot sample", e->pmu);
	remedy(r, "count it with `quipu stat`, or sample by cpu-clock");
	return true;
}

static void why_invalid(const struct quipu_parsed *e, struct host_reason *r)
{
	const struct quipu_attr *a = &e->attr;

	if (why_no_samples(e, r))
		return;

	if (a->type == PERF_TYPE_BREAKPOINT) {
		why(r, "the CPU has no breakpoint of this address, length and access");
		remedy(r,
		       "lengths are 1, 2, 4, 8 and divide the address; accesses rw or w, or x alone "
		       "with length %zu",
		       sizeof(long));
		return;
	}
	if (a->config2 && e->probe) {
		why(r, "the kernel can place no probe there");
		remedy(r,
		       "name the beginning of a function, or of an instruction, in a file that is not "
		       "being written");
		return;
	}
	if (e->uncore) {
		why(r,
		    "PMU %s counts for whole units of the machine, and takes no modifiers, no "
		    "sampling and no process",
		    e->pmu ? e->pmu : "");
		remedy(r, "add -a, and leave out modifiers such as :u");
		return;
	}
	why(r, "the kernel takes this event not in this form");
	remedy(r, "check its terms against `quipu list -m host -v`%s",
	       a->flags & QUIPU_ATTR_PRECISE_MASK ? ", or leave out the modifier p" : "");
}

void host_why(struct host *h, const struct quipu_parsed *e, int err, pid_t pid, int cpu,
	      struct host_reason *r)
{
	*r = (struct host_reason){{0}, {0}};
	switch (-err) {
	case ENOENT:
	case ENXIO: why_no_event(h, e, r); return;
	case EACCES:
	case EPERM: why_denied(e, err, pid, r); return;
	case EMFILE:
	case ENFILE: why_descriptors(r); return;
	case EINVAL: why_invalid(e, r); return;
	case EOPNOTSUPP:
		if (is_core_event(&e->attr) && !host_has_cpu_pmu(h)) {
			why_no_event(h, e, r);
			return;
		}
		why(r,
		    "this PMU cannot do that: it has no interrupt to sample by, no branch stack, or no "
		    "such precision");
		remedy(r, "count with `quipu stat`, or sample by cpu-clock");
		return;
	case ENOSPC:
		why(r, "all breakpoint registers of the CPU are in use");
		remedy(r, "count fewer breakpoints at a time, and none from a debugger");
		return;
	case EBUSY:
		why(r,
		    "another user holds the PMU for itself (an exclusive event, or the kernel's own "
		    "watchdog)");
		remedy(r, "as root: sysctl kernel.nmi_watchdog=0, or end the other profiler");
		return;
	case ENODEV:
		why(r, "CPU %d is offline, or has no such PMU", cpu);
		remedy(r, "name CPUs that are online with -C");
		return;
	case ESRCH: why(r, "there is no process or thread %d", (int)pid); return;
	case ENOSYS:
		why(r, "this kernel was built without perf events, or a sandbox hides them");
		remedy(r, "modelled machines do not need them: leave out -m host");
		return;
	case ENOMEM: why(r, "out of memory"); return;
	}
	why(r, "%s", strerror(-err));
}
