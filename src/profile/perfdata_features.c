/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The features of a perf.data: what perf report and perf evlist tell of the machine, the command
 * and the events (layout in perfdata_format.h). The rest of the file is perfdata_write.c's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "config.h"
#include "profile/perfdata_writer.h"

#define MISC_BUILD_ID_SIZE (1u << 15)

/* ---- features: each adds its content, or nothing ---- */

typedef void feature_fn(struct blob *, const struct perfdata_writer *,
			const struct perfdata_info *);

static void put_build_id(struct blob *b, uint16_t misc, const uint8_t *bits, unsigned n,
			 const char *path)
{
	size_t len = strlen(path) + 1, name = (len + 63) & ~(size_t)63;
	uint16_t rest[2] = {misc | MISC_BUILD_ID_SIZE, (uint16_t)(36 + name)};
	uint8_t id[24] = {0};

	memcpy(id, bits, n);
	id[20] = (uint8_t)n;
	blob_u32(b, PROFILE_RECORD_HEADER_BUILD_ID);
	blob_add(b, rest, sizeof(rest));
	blob_u32(b, UINT32_MAX); /* pid -1: the host's own name space of files */
	blob_add(b, id, sizeof(id));
	blob_add(b, path, len);
	blob_zero(b, name - len);
}

static void feature_build_ids(struct blob *b, const struct perfdata_writer *w,
			      const struct perfdata_info *info)
{
	if (info->kernel_id_size)
		put_build_id(b, MISC_KERNEL, info->kernel_id, info->kernel_id_size,
			     "[kernel.kallsyms]");
	for (size_t i = 0; i < w->nr_mapped; i++) {
		uint8_t id[20] = {0};
		unsigned n = profile_build_id(w->mapped[i], id);

		if (n)
			put_build_id(b, MISC_USER, id, n, w->mapped[i]);
	}
}

static void feature_tracing(struct blob *b, const struct perfdata_writer *w,
			    const struct perfdata_info *info)
{
	(void)w;
	if (info->tracing_size)
		blob_add(b, info->tracing, info->tracing_size);
}

static void optional_string(struct blob *b, const char *s)
{
	if (s)
		blob_string(b, s);
}

static void feature_hostname(struct blob *b, const struct perfdata_writer *w,
			     const struct perfdata_info *info)
{
	(void)w;
	optional_string(b, info->hostname);
}

static void feature_osrelease(struct blob *b, const struct perfdata_writer *w,
			      const struct perfdata_info *info)
{
	(void)w;
	optional_string(b, info->osrelease);
}

static void feature_version(struct blob *b, const struct perfdata_writer *w,
			    const struct perfdata_info *info)
{
	(void)w, (void)info;
	blob_string(b, "quipu-" QUIPU_VERSION);
}

static void feature_arch(struct blob *b, const struct perfdata_writer *w,
			 const struct perfdata_info *info)
{
	(void)w;
	optional_string(b, info->arch);
}

static void feature_nrcpus(struct blob *b, const struct perfdata_writer *w,
			   const struct perfdata_info *info)
{
	(void)w;
	if (!info->cpus)
		return;
	blob_u32(b, info->cpus);
	blob_u32(b, info->cpus_online ? info->cpus_online : info->cpus);
}

static void feature_cpudesc(struct blob *b, const struct perfdata_writer *w,
			    const struct perfdata_info *info)
{
	(void)w;
	optional_string(b, info->cpudesc);
}

static void feature_cpuid(struct blob *b, const struct perfdata_writer *w,
			  const struct perfdata_info *info)
{
	(void)w;
	optional_string(b, info->cpuid);
}

static void feature_memory(struct blob *b, const struct perfdata_writer *w,
			   const struct perfdata_info *info)
{
	(void)w;
	if (info->memory_kb)
		blob_u64(b, info->memory_kb);
}

static void feature_cmdline(struct blob *b, const struct perfdata_writer *w,
			    const struct perfdata_info *info)
{
	uint32_t n = 0;

	(void)w;
	if (!info->cmdline)
		return;
	while (info->cmdline[n])
		n++;
	blob_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		blob_string(b, info->cmdline[i]);
}

static void feature_events(struct blob *b, const struct perfdata_writer *w,
			   const struct perfdata_info *info)
{
	uint32_t stride = perfdata_stride(w);

	(void)info;
	blob_u32(b, (uint32_t)w->nr_events);
	blob_u32(b, stride);
	for (size_t i = 0; i < w->nr_events; i++) {
		const struct perfdata_event *ev = &w->events[i];

		blob_add(b, &ev->attr, stride);
		blob_u32(b, (uint32_t)ev->nr_ids);
		blob_string(b, ev->name);
		blob_add(b, ev->ids, ev->nr_ids * sizeof(*ev->ids));
	}
}

/* Levels of the topology: CPUs are of one group when they agree in all parts up to the level. */
enum level { LEVEL_SOCKET, LEVEL_DIE, LEVEL_CORE, LEVEL_NODE };

static bool same_group(const struct perfdata_cpu *a, const struct perfdata_cpu *b, enum level level)
{
	if (level == LEVEL_NODE)
		return a->node == b->node;
	return a->socket == b->socket && (level < LEVEL_DIE || a->die == b->die) &&
	       (level < LEVEL_CORE || a->core == b->core);
}

/* First of its group among the CPUs? */
static bool leads_group(const struct perfdata_info *info, uint32_t cpu, enum level level)
{
	for (uint32_t c = 0; c < cpu; c++)
		if (same_group(&info->topology[c], &info->topology[cpu], level))
			return false;
	return true;
}

/* "0-3,8": the CPUs of @cpu's group. */
static void group_list(struct blob *b, const struct perfdata_info *info, uint32_t cpu,
		       enum level level)
{
	struct blob text = {0};
	char part[32];

	for (uint32_t c = 0, end; c < info->cpus; c = end + 1) {
		end = c;
		if (!same_group(&info->topology[c], &info->topology[cpu], level))
			continue;
		while (end + 1 < info->cpus &&
		       same_group(&info->topology[end + 1], &info->topology[cpu], level))
			end++;
		if (end == c)
			snprintf(part, sizeof(part), "%s%u", text.n ? "," : "", c);
		else
			snprintf(part, sizeof(part), "%s%u-%u", text.n ? "," : "", c, end);
		blob_add(&text, part, strlen(part));
	}
	blob_zero(&text, 1);
	if (!text.failed)
		blob_string(b, (const char *)text.v);
	b->failed |= text.failed;
	blob_free(&text);
}

static uint32_t group_count(const struct perfdata_info *info, enum level level)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < info->cpus; c++)
		n += leads_group(info, c, level);
	return n;
}

static void group_lists(struct blob *b, const struct perfdata_info *info, enum level level)
{
	blob_u32(b, group_count(info, level));
	for (uint32_t c = 0; c < info->cpus; c++)
		if (leads_group(info, c, level))
			group_list(b, info, c, level);
}

static void feature_topology(struct blob *b, const struct perfdata_writer *w,
			     const struct perfdata_info *info)
{
	(void)w;
	if (!info->cpus || !info->topology)
		return;
	group_lists(b, info, LEVEL_SOCKET);
	group_lists(b, info, LEVEL_CORE);
	for (uint32_t c = 0; c < info->cpus; c++) {
		blob_u32(b, info->topology[c].core);
		blob_u32(b, info->topology[c].socket);
	}
	group_lists(b, info, LEVEL_DIE);
	for (uint32_t c = 0; c < info->cpus; c++)
		blob_u32(b, info->topology[c].die);
}

/* Memory is told for the machine only: it is shared out evenly among its nodes. */
static void feature_numa(struct blob *b, const struct perfdata_writer *w,
			 const struct perfdata_info *info)
{
	uint32_t nodes;

	(void)w;
	if (!info->cpus || !info->topology || !info->memory_kb)
		return;
	nodes = group_count(info, LEVEL_NODE);
	blob_u32(b, nodes);
	for (uint32_t c = 0; c < info->cpus; c++) {
		if (!leads_group(info, c, LEVEL_NODE))
			continue;
		blob_u32(b, info->topology[c].node);
		blob_u64(b, info->memory_kb / nodes);
		blob_u64(b, info->memory_kb / nodes);
		group_list(b, info, c, LEVEL_NODE);
	}
}

static void feature_pmus(struct blob *b, const struct perfdata_writer *w,
			 const struct perfdata_info *info)
{
	(void)w;
	if (!info->nr_pmus)
		return;
	blob_u32(b, (uint32_t)info->nr_pmus);
	for (size_t i = 0; i < info->nr_pmus; i++) {
		blob_u32(b, info->pmus[i].type);
		blob_string(b, info->pmus[i].name);
	}
}

/* A group without a name is called this by perf's own writer, and its reader knows it. */
static void feature_groups(struct blob *b, const struct perfdata_writer *w,
			   const struct perfdata_info *info)
{
	(void)w;
	if (!info->nr_groups)
		return;
	blob_u32(b, (uint32_t)info->nr_groups);
	for (size_t i = 0; i < info->nr_groups; i++) {
		blob_string(b, "{anon_group}");
		blob_u32(b, info->groups[i].leader);
		blob_u32(b, info->groups[i].members);
	}
}

static void feature_time(struct blob *b, const struct perfdata_writer *w,
			 const struct perfdata_info *info)
{
	(void)info;
	if (!w->has_time)
		return;
	blob_u64(b, w->time_first);
	blob_u64(b, w->time_last);
}

static void quipu_block(struct blob *b, uint32_t tag, const void *data, size_t len)
{
	blob_u32(b, tag);
	blob_u32(b, (uint32_t)len);
	blob_add(b, data, len);
	blob_zero(b, -len & 7);
}

/* That the bit is set makes perf report branches; it looks for nothing inside, and writes nothing
 * there itself. */
static void feature_branches(struct blob *b, const struct perfdata_writer *w,
			     const struct perfdata_info *info)
{
	(void)info;
	for (size_t i = 0; i < w->nr_events; i++) {
		if (!(w->events[i].attr.sample_type & PERF_SAMPLE_BRANCH_STACK))
			continue;
		blob_u64(b, 0);
		return;
	}
}

static void feature_quipu(struct blob *b, const struct perfdata_writer *w,
			  const struct perfdata_info *info)
{
	struct blob labels = {0};

	blob_add(b, PERFDATA_QUIPU_MAGIC, 8);
	if (info->machine)
		quipu_block(b, PERFDATA_TAG_MACHINE, info->machine, strlen(info->machine));
	for (size_t i = 0; i < w->nr_events; i++)
		blob_add(&labels, &(uint8_t){(uint8_t)w->events[i].exactness}, 1);
	quipu_block(b, PERFDATA_TAG_LABELS, labels.v, labels.n);
	if (info->partial)
		quipu_block(b, PERFDATA_TAG_PARTIAL, NULL, 0);
	b->failed |= labels.failed;
	blob_free(&labels);
}

static void feature_hypervisor(struct blob *b, const struct perfdata_writer *w,
			       const struct perfdata_info *info)
{
	(void)w;
	if (info->hypervisor)
		blob_add(b, info->hypervisor, strlen(info->hypervisor));
}

static const struct {
	unsigned bit; /* ascending: the sections lie in the order of the bits */
	feature_fn *add;
} features[] = {
	{PERFDATA_TRACING_DATA, feature_tracing},  {PERFDATA_BUILD_ID, feature_build_ids},
	{PERFDATA_HOSTNAME, feature_hostname},	   {PERFDATA_OSRELEASE, feature_osrelease},
	{PERFDATA_VERSION, feature_version},	   {PERFDATA_ARCH, feature_arch},
	{PERFDATA_NRCPUS, feature_nrcpus},	   {PERFDATA_CPUDESC, feature_cpudesc},
	{PERFDATA_CPUID, feature_cpuid},	   {PERFDATA_TOTAL_MEM, feature_memory},
	{PERFDATA_CMDLINE, feature_cmdline},	   {PERFDATA_EVENT_DESC, feature_events},
	{PERFDATA_CPU_TOPOLOGY, feature_topology}, {PERFDATA_NUMA_TOPOLOGY, feature_numa},
	{PERFDATA_BRANCH_STACK, feature_branches}, {PERFDATA_PMU_MAPPINGS, feature_pmus},
	{PERFDATA_GROUP_DESC, feature_groups},	   {PERFDATA_SAMPLE_TIME, feature_time},
	{PERFDATA_QUIPU, feature_quipu},	   {PERFDATA_HYPERVISOR, feature_hypervisor},
};
#define NR_FEATURES (sizeof(features) / sizeof(features[0]))

/* Table and contents; bit set in @bits for each feature that has something to say. */
int perfdata_put_features(struct perfdata_writer *w, const struct perfdata_info *info,
			  uint64_t bits[4])
{
	size_t at[NR_FEATURES + 1], n = 0;
	struct blob content = {0};

	for (size_t i = 0; i < NR_FEATURES; i++) {
		size_t before = content.n;

		features[i].add(&content, w, info);
		at[i] = before;
		if (content.n > before) {
			bits[features[i].bit / 64] |= bits_one(features[i].bit % 64);
			n++;
		}
	}
	at[NR_FEATURES] = content.n;
	for (size_t i = 0; i < NR_FEATURES && !content.failed; i++) {
		uint64_t section[2];

		if (at[i + 1] == at[i])
			continue;
		/* pos moves by one entry as n falls by one: the sum is always the table's end. */
		section[0] = w->pos + n * PERFDATA_SECTION_SIZE + at[i];
		section[1] = at[i + 1] - at[i];
		perfdata_put(w, section, sizeof(section));
		n--;
	}
	if (!content.failed)
		perfdata_put(w, content.v, content.n);
	else if (!w->error)
		w->error = -ENOMEM;
	blob_free(&content);
	return w->error;
}
