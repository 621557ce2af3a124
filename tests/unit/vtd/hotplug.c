// SPDX-License-Identifier: BSD-2-Clause
/*
 * A unit goes and comes back while the machine runs, as an I/O hub that is ejected: registration
 * and unregistration (seed, first commit message: iommu_pmu_register and iommu_pmu_unregister), and
 * the unit's entry in /sys/class/iommu (sheet 4.1).
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/perf_event.h>

#include "lab.h"

#define DEVICES "/sys/bus/event_source/devices/"
#define CLASS	"/sys/class/iommu/"
#define SECOND	UINT64_C(1000000000)

/* The tree as it is now. */
static const char *text(struct lab *lab, const char *path)
{
	quipu_tree_free(lab->tree);
	lab->tree = quipu_tree_new(lab->machine, lab->core);
	return quipu_tree_text(lab->tree, path);
}

static int plug(struct lab *lab, const char *name, bool present)
{
	return quipu_platform_vtd.hotplug(lab->room, name, present);
}

static void registration_makes_the_directory(void **state)
{
	struct lab *lab = lab_new("vtd", lab_quiet, -1);

	(void)state;
	assert_string_equal(text(lab, DEVICES "dmar0/type"), "6\n");
	assert_string_equal(text(lab, DEVICES "dmar1/type"), "7\n");
	assert_null(text(lab, DEVICES "dmar2/type"));
	assert_string_equal(text(lab, CLASS "dmar1/intel-iommu/version"), "6:0\n");
	assert_string_equal(text(lab, CLASS "dmar1/intel-iommu/address"), "fed91000\n");
	assert_string_equal(text(lab, CLASS "dmar1/intel-iommu/cap"), "f9d2078c50780e06\n");
	assert_string_equal(text(lab, CLASS "dmar1/intel-iommu/ecap"), "1bef9ea4f060df\n");
	assert_string_equal(text(lab, CLASS "dmar1/intel-iommu/domains_supported"), "65536\n");
	/* Two that the driver keeps, and number 2; dmar0 has 3 as well. */
	assert_string_equal(text(lab, CLASS "dmar1/intel-iommu/domains_used"), "3\n");
	assert_string_equal(text(lab, CLASS "dmar0/intel-iommu/domains_used"), "4\n");
	lab_free(lab);
}

static void unregistration_takes_it_away(void **state)
{
	struct lab *lab = lab_new("vtd", NULL, -1);
	struct quipu_event *e = lab_open(lab, "dmar1/iommu_requests/", false, NULL);
	struct quipu_event *other = lab_open(lab, "dmar0/iommu_requests/", false, NULL);
	uint64_t before, words[3];

	(void)state;
	lab_pass(lab, SECOND / 2);
	before = lab_count(e);
	assert_true(before > 0);
	assert_int_equal(plug(lab, "dmar1", false), 0);
	assert_null(text(lab, DEVICES "dmar1/type"));
	assert_null(text(lab, CLASS "dmar1/intel-iommu/cap"));
	assert_non_null(text(lab, DEVICES "dmar0/type"));
	lab_pass(lab, SECOND / 2);
	assert_int_equal(quipu_event_poll(e), POLLERR);
	assert_int_equal(quipu_event_read(e, words, sizeof(words)), 0);
	assert_int_equal(quipu_event_ioctl(e, PERF_EVENT_IOC_ENABLE, 0), -ENODEV);
	assert_int_equal(lab_count(e), before);
	/* The other unit has heard of nothing. */
	before = lab_count(other);
	lab_pass(lab, SECOND / 10);
	assert_true(lab_count(other) > before);
	assert_int_equal(plug(lab, "dmar1", false), -EALREADY);
	assert_int_equal(plug(lab, "dmar0", true), -EALREADY);
	assert_int_equal(plug(lab, "dmar2", false), -ENODEV);
	quipu_event_close(e);
	lab_free(lab);
}

/* The unit that is put back counts as one does that was there all along. */
static void a_unit_comes_back_as_new(void **state)
{
	struct lab *lab = lab_new("vtd-full", NULL, -1);
	struct quipu_event *old = lab_open(lab, "dmar0/iommu_requests/", false, NULL), *e, *f;
	struct quipu_count count;

	(void)state;
	lab_pass(lab, SECOND / 10);
	assert_int_equal(plug(lab, "dmar0", false), 0);
	lab_pass(lab, 5 * SECOND);
	assert_int_equal(plug(lab, "dmar0", true), 0);
	assert_string_equal(text(lab, DEVICES "dmar0/type"), "6\n");
	assert_int_equal(quipu_vtd_time(vtd_room_unit(lab->room, 0)), lab->now);
	e = lab_open(lab, "dmar0/iommu_requests/", false, NULL);
	f = lab_open(lab, "dmar0/iommu_clocks/", false, NULL);
	lab_pass(lab, SECOND / 10);
	/*
	 * A tenth of a second: 2000 frames (250 reads of descriptors, a write-back each; 1500
	 * received with 6 writes, 500 sent with 3 reads), 1000 commands of 18 requests, 5000
	 * accesses of the GPU. Nothing of the five seconds of absence is made up for.
	 */
	assert_in_range(lab_count(e), 250 + 2000 + 9000 + 1500 + 18000 + 5000 - 20,
			250 + 2000 + 9000 + 1500 + 18000 + 5000 + 20);
	assert_int_equal(lab_count(f), SECOND / 10);
	quipu_event_count(e, &count);
	assert_int_equal(count.running, SECOND / 10);
	assert_int_equal(quipu_event_poll(old), POLLERR);
	lab_free(lab);
}

static void without_pmu(void *fdt)
{
	/* ECAP_REG.PMS is bit 51. */
	lab_set(fdt, "/iommu@fed90000", "quipu,ecap", UINT64_C(0x0013EF9EA4F060DF));
}

/* A unit that counts nothing has an entry of its own all the same, which goes and comes with it. */
static void a_unit_without_a_pmu(void **state)
{
	struct lab *lab = lab_new("vtd", without_pmu, -1);

	(void)state;
	assert_null(text(lab, DEVICES "dmar0/type"));
	assert_string_equal(text(lab, CLASS "dmar0/intel-iommu/ecap"), "13ef9ea4f060df\n");
	assert_int_equal(plug(lab, "dmar0", false), 0);
	assert_null(text(lab, CLASS "dmar0/intel-iommu/ecap"));
	assert_non_null(text(lab, CLASS "dmar1/intel-iommu/ecap"));
	assert_int_equal(plug(lab, "dmar0", true), 0);
	assert_string_equal(text(lab, CLASS "dmar0/intel-iommu/address"), "fed90000\n");
	assert_null(text(lab, DEVICES "dmar0/type"));
	lab_free(lab);
}

/* Again and again, with events open, multiplexed, grouped. */
static void coming_and_going_often(void **state)
{
	struct lab *lab = lab_new("vtd", NULL, -1);

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct quipu_event *leader = lab_open(lab, "dmar0/iotlb_hit/", false, NULL);

		lab_open(lab, "dmar0/iotlb_lookup/", false, leader);
		for (unsigned i = 0; i < 15; i++)
			lab_open(lab, "dmar0/iommu_mrds/", false, NULL);
		lab_pass(lab, 10000000);
		assert_int_equal(plug(lab, "dmar0", false), 0);
		lab_pass(lab, 10000000);
		assert_int_equal(plug(lab, "dmar0", true), 0);
		if (round % 2)
			quipu_event_close(leader);
	}
	lab_free(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registration_makes_the_directory),
		cmocka_unit_test(unregistration_takes_it_away),
		cmocka_unit_test(a_unit_comes_back_as_new),
		cmocka_unit_test(a_unit_without_a_pmu),
		cmocka_unit_test(coming_and_going_often),
	};

	return cmocka_run_group_tests_name("vtd hotplug", tests, NULL, NULL);
}
