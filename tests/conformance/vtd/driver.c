// SPDX-License-Identifier: BSD-2-Clause
/*
 * Cases R33 to R36 and P1 to P30: what a client of the dmar PMUs sees, through the real event core
 * and its grammar. Source: Linux 6.12, drivers/iommu/intel/perfmon.c and kernel/events/core.c; the
 * ABI document sysfs-bus-event_source-devices-iommu. What the stock perf makes of it, P7 to P10 and
 * more, is tested where perf itself runs: tests/client/vtd.py.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICES "/sys/bus/event_source/devices/"
#define CLASS	"/sys/class/iommu/"
#define UNIT0	"/iommu@fed90000"
#define UNIT1	"/iommu@fed91000"

static uint64_t reg(struct lab *lab, unsigned unit, uint32_t offset)
{
	return quipu_vtd_read(vtd_room_unit(lab->room, unit), offset, 8);
}

/* ---- R33 to R36 ---- */

static void slow_commands(void *fdt)
{
	lab_set(fdt, UNIT0, "quipu,ecmd-latency", 3);
}

static void r33_command_in_progress(void **state)
{
	struct lab *lab = lab_new("vtd", slow_commands, -1);
	struct quipu_vtd *unit = vtd_room_unit(lab->room, 0);
	struct vtd_driver *driver = vtd_room_driver(lab->room, 0);

	(void)state;
	quipu_vtd_write(unit, 0x400, 8, 0xf4); /* FREEZE */
	quipu_vtd_write(unit, 0x400, 8, 0xf5); /* dropped */
	assert_int_equal(vtd_driver_command(driver, 0xf5, 0, 0), -EBUSY);
	assert_int_equal(reg(lab, 0, 0x1f00), 0x3fff);
	assert_int_equal(quipu_vtd_read(unit, 0x410, 8), 1);
	assert_int_equal(quipu_vtd_read(unit, 0x410, 8), 1);
	assert_int_equal(quipu_vtd_read(unit, 0x410, 8), 0);
	assert_int_equal(vtd_driver_command(driver, 0xf5, 0, 0), 0);
	assert_int_equal(reg(lab, 0, 0x1f00), 0);
	lab_free(lab);
}

static void endless_commands(void *fdt)
{
	lab_set(fdt, UNIT0, "quipu,ecmd-latency", UINT32_MAX);
}

static void command_that_never_ends_times_out(void **state)
{
	struct lab *lab = lab_new("vtd", endless_commands, -1);

	(void)state;
	assert_int_equal(vtd_driver_command(vtd_room_driver(lab->room, 0), 0xf4, 0, 0), -ETIMEDOUT);
	lab_free(lab);
}

#define SPR_CAP	    UINT64_C(0xF9D2078C50780E06)
#define SPR_ECAP    UINT64_C(0x001BEF9EA4F060DF)
#define SPR_PERFCAP UINT64_C(0xF00F00180530000E)
static const struct missing_case {
	const char *name, *property;
	uint64_t value;
} missing_cases[] = {
	{"R34 PMS=0", "quipu,ecap", SPR_ECAP & ~(UINT64_C(1) << 51)},
	{"R35 IOS=0", "quipu,perfcap", SPR_PERFCAP & ~(UINT64_C(1) << 50)},
	{"R35 no FREEZE", "quipu,eccap3", UINT64_C(0x002F000000000000)},
	{"R35 EGCNT=0", "quipu,perfcap", SPR_PERFCAP & ~(UINT64_C(0x1f) << 24)},
	{"PERFCAP=0", "quipu,perfcap", 0},
	{"NCNTR=0", "quipu,perfcap", SPR_PERFCAP & ~UINT64_C(0xffff)},
	{"no ENABLE", "quipu,eccap3", UINT64_C(0x003E000000000000)},
	{"no DISABLE", "quipu,eccap3", UINT64_C(0x003D000000000000)},
	{"no UNFREEZE", "quipu,eccap3", UINT64_C(0x001F000000000000)},
};
static const struct missing_case *missing;

static void take_away(void *fdt)
{
	lab_set(fdt, UNIT0, missing->property, missing->value);
}

static void missing_case(void **state)
{
	struct lab *lab;
	bool said = false;

	missing = *state;
	lab = lab_new("vtd", take_away, -1);
	assert_null(quipu_tree_text(lab->tree, DEVICES "dmar0/type"));
	assert_non_null(quipu_tree_text(lab->tree, DEVICES "dmar1/type"));
	assert_null(vtd_room_driver(lab->room, 0));
	/* It translates, and is listed among the IOMMUs, all the same. */
	assert_string_equal(quipu_tree_text(lab->tree, CLASS "dmar0/intel-iommu/version"), "6:0\n");
	assert_string_equal(quipu_tree_text(lab->tree, CLASS "dmar0/intel-iommu/domains_used"),
			    "4\n");
	for (size_t i = 0; i < lab->notes.n; i++)
		said |= strstr(lab->notes.items[i].text, "without a PMU: ") != NULL;
	assert_true(said);
	if (!strcmp(missing->name, "R34 PMS=0"))
		assert_int_equal(reg(lab, 0, 0x300), 0);
	lab_free(lab);
}

static void *no_page(void *arg, uint64_t addr, bool write)
{
	(void)arg;
	(void)addr;
	(void)write;
	return NULL;
}

/* The counters before the odd one remain, and what it alone could count is still listed. */
static void r36_a_counter_of_another_width_ends_the_list(void **state)
{
	static const struct quipu_vtd_ops ops = {.page = no_page};
	static const struct quipu_core_config core_config = {.ncpus = 1, .paranoid = -1};
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_vtd_config config;
	struct vtd_cpumask cpumask;
	struct vtd_driver *driver;
	const char *why;

	(void)state;
	quipu_vtd_config_init(&config, QUIPU_VTD_SPR);
	config.perfcntrcap[5] = 1u << 28 | 1u << 17 | 1u << 16 | 40u << 8 | 1;
	config.perfcntrevcap[5][0] = 1u << 28 | 0x8;
	assert_int_equal(vtd_cpumask_init(&cpumask, core_config.ncpus), 0);
	struct vtd_driver_env env = {.core = lab->core, .number = 7, .cpumask = &cpumask};
	env.unit = quipu_vtd_new(&config, &ops, NULL, &why);
	assert_non_null(env.unit);
	assert_int_equal(vtd_driver_new(&env, &driver, &why), 0);
	assert_non_null(driver);
	assert_int_equal(vtd_driver_counters(driver), 5);
	quipu_core_free(lab->core);
	vtd_driver_free(driver);
	quipu_vtd_free(env.unit);
	vtd_cpumask_destroy(&cpumask);
	lab->core = NULL;
	lab_free(lab);
}

/* ---- P1, P2, P28, 9.1: sysfs ---- */

static const struct format_case {
	const char *file, *text;
	bool spr;
} formats[] = {
	{"event", "config:0-27\n", true},
	{"event_group", "config:28-31\n", true},
	{"filter_requester_id_en", "config1:0\n", false},
	{"filter_requester_en", "config1:0\n", false},
	{"filter_domain_en", "config1:1\n", false},
	{"filter_pasid_en", "config1:2\n", false},
	{"filter_ats_en", "config1:3\n", true},
	{"filter_page_table_en", "config1:4\n", true},
	{"filter_requester_id", "config1:16-31\n", false},
	{"filter_domain", "config1:32-47\n", false},
	{"filter_pasid", "config2:0-21\n", false},
	{"filter_ats", "config2:24-28\n", true},
	{"filter_page_table", "config2:32-36\n", true},
};

static unsigned files_below(const struct quipu_tree *tree, const char *prefix)
{
	unsigned n = 0;

	for (size_t i = 0; i < tree->n; i++)
		n += !strncmp(tree->files[i].path, prefix, strlen(prefix));
	return n;
}

static void p1_a_format(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);

	(void)state;
	assert_string_equal(quipu_tree_text(lab->tree, DEVICES "dmar1/format/filter_page_table"),
			    "config2:32-36\n");
	lab_free(lab);
}

static void p28_formats(void **state)
{
	static const char *const machines[] = {"vtd", "vtd-full"};

	(void)state;
	for (unsigned full = 0; full < 2; full++) {
		struct lab *lab = lab_new(machines[full], lab_quiet, -1);
		unsigned n = 0;

		for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
			char path[128];
			const char *text;

			snprintf(path, sizeof(path), DEVICES "dmar1/format/%s", formats[i].file);
			text = quipu_tree_text(lab->tree, path);
			if (!full && !formats[i].spr) {
				assert_null(text);
				continue;
			}
			assert_string_equal(text, formats[i].text);
			n++;
		}
		assert_int_equal(files_below(lab->tree, DEVICES "dmar1/format/"), n);
		assert_int_equal(n, full ? 13 : 6);
		lab_free(lab);
	}
}

/* The seed's listing, in its order. */
static const char *const seed_events[] = {
	"ats_blocked",
	"fs_nonleaf_hit",
	"int_cache_hit_posted",
	"iommu_mem_blocked",
	"iotlb_hit",
	"pasid_cache_lookup",
	"ss_nonleaf_hit",
	"ctxt_cache_hit",
	"fs_nonleaf_lookup",
	"int_cache_lookup",
	"iommu_mrds",
	"iotlb_lookup",
	"pg_req_posted",
	"ss_nonleaf_lookup",
	"ctxt_cache_lookup",
	"int_cache_hit_nonposted",
	"iommu_clocks",
	"iommu_requests",
	"pasid_cache_hit",
	"pw_occupancy",
};

static void p2_events_are_the_documents(void **state)
{
	struct lab *lab = lab_new("vtd", NULL, -1);

	(void)state;
	for (size_t i = 0; i < sizeof(seed_events) / sizeof(seed_events[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), DEVICES "dmar1/events/%s", seed_events[i]);
		assert_non_null(quipu_tree_text(lab->tree, path));
	}
	assert_int_equal(files_below(lab->tree, DEVICES "dmar1/events/"),
			 sizeof(seed_events) / sizeof(seed_events[0]));
	assert_string_equal(quipu_tree_text(lab->tree, DEVICES "dmar1/events/iotlb_hit"),
			    "event_group=0x3,event=0x002\n");
	lab_free(lab);
	/* All 24 of Linux where the unit has them, and not one more. */
	lab = lab_new("vtd-full", lab_quiet, -1);
	assert_int_equal(files_below(lab->tree, DEVICES "dmar1/events/"), 24);
	assert_string_equal(quipu_tree_text(lab->tree, DEVICES "dmar1/events/hpt_nonleaf_hit"),
			    "event_group=0x2,event=0x200\n");
	lab_free(lab);
}

static const char *cpumask(struct lab *lab)
{
	quipu_tree_free(lab->tree);
	lab->tree = quipu_tree_new(lab->machine, lab->core);
	return quipu_tree_text(lab->tree, DEVICES "dmar1/cpumask");
}

static void p3_cpumask_follows_the_cpus(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *e = lab_open(lab, "dmar1/iommu_requests/", false, NULL);
	struct quipu_event *s = lab_open(lab, "dmar1/iotlb_lookup/", false, e);

	(void)state;
	assert_string_equal(cpumask(lab), "0\n");
	lab_requests(lab, 1, 7);
	lab->now = 1000;
	assert_int_equal(quipu_core_set_online(lab->core, 0, false), 0);
	assert_string_equal(cpumask(lab), "1\n");
	/* The events went along, with what they had counted, and go on. */
	lab_requests(lab, 1, 5);
	lab->now = 2500;
	assert_int_equal(lab_count(e), 12);
	assert_int_equal(lab_count(s), 12);
	assert_int_equal(quipu_event_cpu(e), 1);
	struct quipu_count count;
	quipu_event_count(e, &count);
	assert_int_equal(count.enabled, 2500);
	assert_int_equal(count.running, 2500);
	assert_int_equal(quipu_core_set_online(lab->core, 0, true), 0);
	assert_string_equal(cpumask(lab), "1\n");
	for (unsigned cpu = 0; cpu < 4; cpu++)
		assert_int_equal(quipu_core_set_online(lab->core, cpu, false), 0);
	assert_string_equal(cpumask(lab), "\n");
	assert_int_equal(quipu_core_set_online(lab->core, 2, true), 0);
	assert_string_equal(cpumask(lab), "2\n");
	lab_free(lab);
}

/* ---- P4 to P6: from what is typed to the registers ---- */

static const struct typed_case {
	const char *name, *text;
	unsigned unit, counter;
	uint64_t config, config1, config2, cfg;
	uint32_t at_filter, ptl_filter;
} typed_cases[] = {
	{"P4", "dmar1/iommu_requests,filter_ats_en=0x1,filter_ats=0x1/", 1, 13, 0x2, 0x8, 0x1000000,
	 UINT64_C(0x0000000200000002), 0x80000001, 0},
	{"P5", "dmar0/iotlb_hit,filter_page_table_en,filter_page_table=0x2/", 0, 11, 0x30000002,
	 0x10, UINT64_C(0x200000000), UINT64_C(0x0000000200000302), 0, 0x80000002},
	{"P6", "dmar0/event=0x2,event_group=0x0/", 0, 13, 0x2, 0, 0, UINT64_C(0x0000000200000002),
	 0, 0},
};

static void typed_case(void **state)
{
	const struct typed_case *c = *state;
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *e = lab_open(lab, c->text, false, NULL);
	const struct quipu_attr *attr = quipu_event_attr(e);
	uint32_t block = 0x1000 + 0x100 * c->counter;

	assert_int_equal(attr->config, c->config);
	assert_int_equal(attr->config1, c->config1);
	assert_int_equal(attr->config2, c->config2);
	assert_int_equal(quipu_event_hw(e)->idx, c->counter);
	assert_int_equal(reg(lab, c->unit, block), c->cfg | 1);
	assert_int_equal(reg(lab, c->unit, block + 0x10) >> 32, c->at_filter);
	assert_int_equal(reg(lab, c->unit, block + 0x18), c->ptl_filter);
	assert_non_null(strstr(lab->trace, "ECMD ENABLE"));
	/* Closed, the counter is free and its filters are gone. */
	quipu_event_close(e);
	assert_int_equal(reg(lab, c->unit, block) & 1, 0);
	assert_int_equal(reg(lab, c->unit, block + 0x10), 0);
	assert_int_equal(reg(lab, c->unit, block + 0x18), 0);
	lab_free(lab);
}

/* ---- P7 to P12, P21, P22, P27: refusals ---- */

/* What perf 6.1 does for each event: first with exclude_guest, which is refused, then without. */
static void p7_the_opens_of_perf(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_attr attr = lab_attr(lab, "dmar1", 0x30000002, 0, 0);
	struct quipu_event *e;
	uint32_t size;

	(void)state;
	attr.size = 128;
	attr.sample_type = PERF_SAMPLE_IDENTIFIER;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.flags = QUIPU_ATTR_DISABLED | QUIPU_ATTR_INHERIT | QUIPU_ATTR_EXCLUDE_GUEST;
	for (unsigned flags = 8; flags + 8 > 0 && flags <= 8; flags -= 8) {
		assert_int_equal(quipu_event_open(lab->core, &lab->caller, &attr, 128, -1, 0, NULL,
						  flags, &size, &e),
				 -EINVAL);
		assert_true(strlen(quipu_core_last_reason(lab->core)) > 0);
	}
	attr.flags &= ~QUIPU_ATTR_EXCLUDE_GUEST;
	assert_int_equal(quipu_event_open(lab->core, &lab->caller, &attr, 128, -1, 0, NULL, 0,
					  &size, &e),
			 0);
	lab_free(lab);
}

static const struct refused_case {
	const char *name;
	uint64_t config;
	uint64_t flags, period;
	pid_t pid;
	int cpu;
	int error;
} refused_cases[] = {
	{"P9 a task on a CPU", 0x30000002, 0, 0, 100, 0, -EINVAL},
	{"P10 sampling by frequency", 0x30000002, QUIPU_ATTR_FREQ, 4000, -1, 0, -EINVAL},
	{"P11 sampling", 0x30000002, 0, 1, -1, 0, -EINVAL},
	{"P11 a task on any CPU", 0x30000002, 0, 0, 100, -1, -EINVAL},
	{"P11 exclude_kernel", 0x30000002, QUIPU_ATTR_EXCLUDE_KERNEL, 0, -1, 0, -EINVAL},
	{"exclude_user", 0x30000002, QUIPU_ATTR_EXCLUDE_USER, 0, -1, 0, -EINVAL},
	{"exclude_hv", 0x30000002, QUIPU_ATTR_EXCLUDE_HV, 0, -1, 0, -EINVAL},
	{"exclude_idle", 0x30000002, QUIPU_ATTR_EXCLUDE_IDLE, 0, -1, 0, -EINVAL},
	{"exclude_host", 0x30000002, QUIPU_ATTR_EXCLUDE_HOST, 0, -1, 0, -EINVAL},
	{"P12 group 5", 0x50000001, 0, 0, -1, 0, -EINVAL},
	{"neither task nor CPU", 0x30000002, 0, 0, -1, -1, -EINVAL},
	{"a CPU that is not there", 0x30000002, 0, 0, -1, 4, -EINVAL},
	{"P8 a CPU event", 0x30000002, 0, 0, -1, 0, 0},
	{"undefined bits of config are ignored", UINT64_C(0xffffffff30000002), 0, 0, -1, 0, 0},
	{"any CPU, not only that of the mask", 0x30000002, 0, 0, -1, 3, 0},
};

static void refused_case(void **state)
{
	const struct refused_case *c = *state;
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_attr attr = lab_attr(lab, "dmar0", c->config, 0, 0);

	assert_non_null(quipu_task_new(lab->core, NULL, 100, 100, false, "test", 0));
	attr.flags = c->flags;
	attr.sample_period = c->period;
	assert_int_equal(lab_try(lab, attr, c->pid, c->cpu, NULL, NULL), c->error);
	if (c->error)
		assert_true(strlen(quipu_core_last_reason(lab->core)) > 0);
	lab_free(lab);
}

static void offline_cpu_is_enodev(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);

	(void)state;
	assert_int_equal(quipu_core_set_online(lab->core, 2, false), 0);
	assert_int_equal(lab_try(lab, lab_attr(lab, "dmar0", 1, 0, 0), -1, 2, NULL, NULL), -ENODEV);
	lab_free(lab);
}

static void p27_paranoid(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, 2);

	(void)state;
	assert_int_equal(lab_try(lab, lab_attr(lab, "dmar0", 1, 0, 0), -1, 0, NULL, NULL), -EACCES);
	lab->caller.perfmon = true;
	assert_int_equal(lab_try(lab, lab_attr(lab, "dmar0", 1, 0, 0), -1, 0, NULL, NULL), 0);
	lab_free(lab);
}

static void p21_a_group_is_of_one_unit(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *leader = lab_open(lab, "dmar0/iotlb_hit/", false, NULL);

	(void)state;
	assert_int_equal(lab_try(lab, lab_attr(lab, "dmar1", 0x30000002, 0, 0), -1, 0, leader,
				 NULL),
			 -EINVAL);
	assert_int_equal(
		lab_try(lab, lab_attr(lab, "dmar0", 0x30000001, 0, 0), -1, 0, leader, NULL), 0);
	lab_free(lab);
}

/* The kernel's check lets two members too many through; such a group never counts. */
static void p22_groups_that_are_too_large(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_attr attr = lab_attr(lab, "dmar0", 0x30000002, 0, 0);
	struct quipu_event *leader, *member, *second;
	struct quipu_count count;

	(void)state;
	attr.flags = QUIPU_ATTR_DISABLED;
	assert_int_equal(lab_try(lab, attr, -1, 0, NULL, &leader), 0);
	attr.flags = 0;
	for (unsigned i = 2; i <= 16; i++)
		assert_int_equal(lab_try(lab, attr, -1, 0, leader, &member), 0);
	assert_int_equal(lab_try(lab, attr, -1, 0, leader, &member), -EINVAL);
	/* Members that are off are not counted. */
	attr.flags = QUIPU_ATTR_DISABLED;
	assert_int_equal(lab_try(lab, attr, -1, 0, NULL, &second), 0);
	for (unsigned i = 2; i <= 20; i++)
		assert_int_equal(lab_try(lab, attr, -1, 0, second, &member), 0);
	quipu_event_close(second);
	assert_int_equal(quipu_event_ioctl(leader, PERF_EVENT_IOC_ENABLE, 0), 0);
	lab_pass(lab, 50000000);
	quipu_event_count(leader, &count);
	assert_int_equal(count.running, 0);
	assert_int_equal(count.enabled, 50000000);
	lab_free(lab);
}

/* ---- P13 to P18: opened, and then ---- */

static const struct counted_case {
	const char *name;
	uint64_t config, config1, config2;
	bool runs, told;
	uint64_t expect;
} counted_cases[] = {
	{"P13 no event", 0x00000000, 0, 0, false, true, 0},
	{"P14 event that nothing counts", 0x00000010, 0, 0, false, true, 0},
	{"P15 one bit that counts and one that does not", 0x00000012, 0, 0, true, true, 0},
	{"P16 clocks and requests", 0x00000003, 0, 0, true, false, 1000 + 20},
	{"P17 a filter that the event does not take", 0x30000001, 0x10, UINT64_C(0x100000000), true,
	 true, 0},
	{"P18 a filter that the unit lacks", 0x00000002, 0x4, 5, true, true, 20},
	{"two events and a filter", 0x30000003, 0x10, UINT64_C(0x100000000), true, true, 0},
	{"an address type", 0x00000002, 0x8, 0x1000000, true, false, 20},
	{"another one", 0x00000002, 0x8, 0x2000000, true, false, 0},
	{"nothing waits", 0x00000008, 0, 0, true, true, 0},
};

static void counted_case(void **state)
{
	const struct counted_case *c = *state;
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *e;
	struct quipu_count count;

	assert_int_equal(lab_try(lab, lab_attr(lab, "dmar0", c->config, c->config1, c->config2), -1,
				 0, NULL, &e),
			 0);
	lab_requests(lab, 0, 20);
	lab->now = 1000;
	quipu_event_count(e, &count);
	assert_int_equal((count.reason && *count.reason) || (count.remark && *count.remark),
			 c->told);
	assert_int_equal(count.value, c->expect);
	assert_int_equal(count.enabled, 1000);
	assert_int_equal(count.running, c->runs ? 1000 : 0);
	lab_free(lab);
}

static const struct grammar_case {
	const char *name, *text, *reason;
} grammar_cases[] = {
	{"P19", "dmar1/iotlb_hit,filter_pasid=5/", "filter_pasid"},
	{"P20", "dmar1/iommu_requests,filter_ats=0x20/", "maximum is 31"},
};

static void grammar_case(void **state)
{
	const struct grammar_case *c = *state;
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event_list list = {0};
	struct quipu_grammar_error error;

	assert_int_equal(quipu_grammar_parse(lab->catalog, c->text, &list, &error), -EINVAL);
	if (!strstr(error.reason, c->reason))
		fail_msg("\"%s\" does not say \"%s\"", error.reason, c->reason);
	lab_free(lab);
}

/* ---- P23 to P26, P29, P30 ---- */

static void p23_more_events_than_counters_take_turns(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *e[13];
	uint64_t running = 0;

	(void)state;
	for (unsigned i = 0; i < 13; i++)
		e[i] = lab_open(lab, "dmar0/iotlb_lookup/", false, NULL);
	lab_pass(lab, 1000000000);
	for (unsigned i = 0; i < 13; i++) {
		struct quipu_count count;

		quipu_event_count(e[i], &count);
		assert_int_equal(count.enabled, 1000000000);
		assert_true(count.running < 1000000000 && count.running > 900000000);
		running += count.running;
	}
	assert_int_equal(running,
			 UINT64_C(12) *
				 1000000000); /* twelve counters take group 3, all the time */
	lab_free(lab);
}

static void p24_as_many_events_as_counters(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *e[14];

	(void)state;
	for (unsigned i = 0; i < 14; i++)
		e[i] = lab_open(lab, i < 2 ? "dmar0/iommu_requests/" : "dmar0/iotlb_lookup/", false,
				NULL);
	lab_pass(lab, 50000000);
	lab_requests(lab, 0, 3);
	lab_pass(lab, 50000000);
	for (unsigned i = 0; i < 14; i++) {
		struct quipu_count count;

		quipu_event_count(e[i], &count);
		assert_int_equal(count.running, 100000000);
		assert_int_equal(count.value, 3);
	}
	lab_free(lab);
}

static void p25_all_units_under_one_name(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event_list list = {0};
	struct quipu_grammar_error error;
	struct quipu_event *e[2];

	(void)state;
	assert_int_equal(quipu_grammar_parse(lab->catalog, "dmar/iommu_requests/", &list, &error),
			 0);
	assert_int_equal(list.n, 2);
	assert_true(list.items[0].merge && list.items[0].term == list.items[1].term);
	assert_true(list.items[0].uncore);
	for (unsigned i = 0; i < 2; i++) {
		list.items[i].attr.flags &= ~QUIPU_ATTR_EXCLUDE_GUEST;
		assert_int_equal(lab_try(lab, list.items[i].attr, -1, 0, NULL, &e[i]), 0);
	}
	lab_requests(lab, 0, 10);
	lab_requests(lab, 1, 32);
	assert_int_equal(lab_count(e[0]) + lab_count(e[1]), 42);
	quipu_event_list_free(&list);
	lab_free(lab);
}

static void p26_wrap(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *e;

	(void)state;
	quipu_vtd_write(vtd_room_unit(lab->room, 0), 0x4000 + 0x400 * 13, 8,
			UINT64_C(0xFFFFFFFFFFFE));
	e = lab_open(lab, "dmar0/iommu_requests/", false, NULL);
	lab_requests(lab, 0, 7);
	assert_int_equal(reg(lab, 0, 0x4000 + 0x400 * 13), 5);
	assert_int_equal(lab_count(e), 7);
	lab_free(lab);
}

/* 10^15 clocks are three and a half times what 48 bits hold; the interrupt of each wrap keeps the
 * count. */
static void wraps_lose_nothing(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);
	struct quipu_event *e = lab_open(lab, "dmar0/iommu_clocks/", false, NULL);

	(void)state;
	lab->now = UINT64_C(1000000000000123);
	assert_int_equal(lab_count(e), UINT64_C(1000000000000123));
	lab_free(lab);
}

static void p29_any_pasid(void **state)
{
	struct lab *lab = lab_new("vtd-full", lab_quiet, -1);
	struct quipu_event *any = lab_open(
		lab, "dmar0/iommu_requests,filter_pasid_en=1,filter_pasid=0x100000/", false, NULL);
	struct quipu_event *none = lab_open(
		lab, "dmar0/iommu_requests,filter_pasid_en=1,filter_pasid=0x200000/", false, NULL);
	struct quipu_vtd_request rq = {.addr = 0x7000, .pasid = 9, .len = 64, .rid = 0xff00};
	struct quipu_vtd_response rs;

	(void)state;
	lab_requests(lab, 0, 4);
	for (unsigned i = 0; i < 6; i++)
		quipu_vtd_dma(vtd_room_unit(lab->room, 0), &rq, &rs);
	assert_int_equal(lab_count(any), 6);
	assert_int_equal(lab_count(none), 4);
	lab_free(lab);
}

static void p30_clocks_of_a_second(void **state)
{
	struct lab *lab = lab_new("vtd", NULL, -1);
	struct quipu_event *e;

	(void)state;
	lab->now = 12345;
	e = lab_open(lab, "dmar1/iommu_clocks/", true, NULL);
	quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0);
	lab_pass(lab, 1000000000);
	quipu_event_ioctl(e, PERF_EVENT_IOC_DISABLE, 0);
	lab_pass(lab, 1000000000);
	assert_int_equal(lab_count(e), 1000000000);
	lab_free(lab);
}

#define TABLE(cases, fn)                                                                           \
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)                              \
		tests[n++] = (struct CMUnitTest)                                                   \
		{                                                                                  \
			cases[i].name, fn, NULL, NULL, (void *)&cases[i]                           \
		}
#define N(cases) (sizeof(cases) / sizeof(cases[0]))

int main(void)
{
	static const struct CMUnitTest plain[] = {
		cmocka_unit_test(r33_command_in_progress),
		cmocka_unit_test(command_that_never_ends_times_out),
		cmocka_unit_test(r36_a_counter_of_another_width_ends_the_list),
		cmocka_unit_test(p1_a_format),
		cmocka_unit_test(p28_formats),
		cmocka_unit_test(p2_events_are_the_documents),
		cmocka_unit_test(p3_cpumask_follows_the_cpus),
		cmocka_unit_test(p7_the_opens_of_perf),
		cmocka_unit_test(offline_cpu_is_enodev),
		cmocka_unit_test(p27_paranoid),
		cmocka_unit_test(p21_a_group_is_of_one_unit),
		cmocka_unit_test(p22_groups_that_are_too_large),
		cmocka_unit_test(p23_more_events_than_counters_take_turns),
		cmocka_unit_test(p24_as_many_events_as_counters),
		cmocka_unit_test(p25_all_units_under_one_name),
		cmocka_unit_test(p26_wrap),
		cmocka_unit_test(wraps_lose_nothing),
		cmocka_unit_test(p29_any_pasid),
		cmocka_unit_test(p30_clocks_of_a_second),
	};
	struct CMUnitTest tests[N(plain) + N(missing_cases) + N(typed_cases) + N(refused_cases) +
				N(counted_cases) + N(grammar_cases)] = {{0}};
	size_t n = 0;

	for (; n < N(plain); n++)
		tests[n] = plain[n];
	TABLE(missing_cases, missing_case);
	TABLE(refused_cases, refused_case);
	TABLE(counted_cases, counted_case);
	for (size_t i = 0; i < N(typed_cases); i++)
		tests[n++] = (struct CMUnitTest){typed_cases[i].name, typed_case, NULL, NULL,
						 (void *)&typed_cases[i]};
	for (size_t i = 0; i < N(grammar_cases); i++)
		tests[n++] = (struct CMUnitTest){grammar_cases[i].name, grammar_case, NULL, NULL,
						 (void *)&grammar_cases[i]};
	return _cmocka_run_group_tests("conformance vtd driver", tests, n, NULL, NULL);
}
