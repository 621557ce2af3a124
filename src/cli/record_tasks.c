// SPDX-License-Identifier: BSD-2-Clause
/*
 * The state of the host when a recording begins, as records of time 0: /proc/kallsyms and
 * /proc/modules for the kernel, /proc/PID/{comm,maps} for tasks (proc(5)). Executable mappings
 * only: data is not looked up.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/record_tasks.h"
#include "platform/host/host.h"
#include "profile/kallsyms.h"

/* ---- the kernel ---- */

static int tell_modules(struct perfdata_writer *w)
{
	FILE *f = fopen("/proc/modules", "re");
	char line[1024], name[80], label[96];
	int rc = 0;

	while (f && !rc && fgets(line, sizeof(line), f)) {
		uint64_t size, start;

		if (sscanf(line, "%79s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &size, &start) !=
			    3 ||
		    !start || !size)
			continue;
		snprintf(label, sizeof(label), "[%s]", name);
		rc = perfdata_kernel(w, start, start + size, 0, label);
	}
	if (f)
		fclose(f);
	return rc;
}

int record_tell_kernel(struct perfdata_writer *w)
{
	uint64_t start, end;
	int rc;

	if (!kallsyms_base(&start, &end))
		return 0; /* hidden: the report says so */
	rc = perfdata_kernel(w, start, end, start, "[kernel.kallsyms]_text");
	return rc ? rc : tell_modules(w);
}

/* ---- tasks ---- */

/* "5-8 r-xp offset major:minor inode   path": perf's own names for what has no file. */
static int tell_mapping(struct perfdata_writer *w, pid_t pid, char *line)
{
	struct perfdata_mapping m = {.pid = (uint32_t)pid, .tid = (uint32_t)pid};
	uint64_t end;
	char prot[5];
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &m.addr,
		   &end, prot, &m.pgoff, &m.maj, &m.min, &m.ino, &at) < 7 ||
	    prot[2] != 'x')
		return 0;
	m.len = end - m.addr;
	m.prot = PROT_EXEC | (prot[0] == 'r' ? PROT_READ : 0) | (prot[1] == 'w' ? PROT_WRITE : 0);
	m.flags = prot[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	m.name = line[at] ? line + at : "//anon";
	return perfdata_mmap2(w, &m);
}

static int tell_maps(struct perfdata_writer *w, pid_t pid)
{
	char path[64], line[4352];
	FILE *f;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && !rc && fgets(line, sizeof(line), f))
		rc = tell_mapping(w, pid, line);
	if (f)
		fclose(f);
	return rc;
}

static pid_t process_of(pid_t tid)
{
	char path[64], text[2048];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	if (host_read_text(path, text, sizeof(text)))
		return -1;
	p = strstr(text, "\nTgid:");
	return p ? (pid_t)atoi(p + 6) : -1;
}

static int tell_thread(struct perfdata_writer *w, pid_t pid, pid_t tid)
{
	char path[64], comm[32];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	if (host_read_text(path, comm, sizeof(comm)))
		return 0;
	return perfdata_comm(w, (uint32_t)pid, (uint32_t)tid, comm);
}

int record_tell_task(struct perfdata_writer *w, pid_t tid)
{
	pid_t pid = process_of(tid);
	int rc = pid < 0 ? 0 : tell_thread(w, pid, tid);

	return rc || pid < 0 ? rc : pid == tid ? tell_maps(w, pid) : 0;
}

static int tell_process(struct perfdata_writer *w, pid_t pid)
{
	pid_t *tids;
	int n = host_tasks(pid, &tids), rc = 0;

	for (int i = 0; i < n && !rc; i++)
		rc = tell_thread(w, pid, tids[i]);
	free(n > 0 ? tids : NULL);
	return rc ? rc : tell_maps(w, pid);
}

int record_tell_all(struct perfdata_writer *w)
{
	DIR *d = opendir("/proc");
	int rc = 0;

	for (struct dirent *e; d && !rc && (e = readdir(d));)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			rc = tell_process(w, (pid_t)atoi(e->d_name));
	if (d)
		closedir(d);
	return rc;
}

/* ---- the CPU ---- */

void record_describe_cpu(char *model, size_t model_len, char *cpuid, size_t cpuid_len)
{
	char line[512], vendor[64] = "";
	unsigned family = 0, number = 0, stepping = 0;
	FILE *f = fopen("/proc/cpuinfo", "re");

	*model = *cpuid = '\0';
	while (f && fgets(line, sizeof(line), f) && line[0] != '\n') {
		char *value = strchr(line, ':');

		if (!value)
			continue;
		value += 1 + (value[1] == ' ');
		value[strcspn(value, "\n")] = '\0';
		if (!strncmp(line, "model name", 10) || !strncmp(line, "cpu\t", 4))
			snprintf(model, model_len, "%s", value);
		else if (!strncmp(line, "vendor_id", 9))
			snprintf(vendor, sizeof(vendor), "%s", value);
		else if (!strncmp(line, "cpu family", 10))
			family = (unsigned)atoi(value);
		else if (!strncmp(line, "model\t", 6))
			number = (unsigned)atoi(value);
		else if (!strncmp(line, "stepping", 8))
			stepping = (unsigned)atoi(value);
	}
	if (f)
		fclose(f);
	if (*vendor)
		snprintf(cpuid, cpuid_len, "%s,%u,%u,%u", vendor, family, number, stepping);
}
