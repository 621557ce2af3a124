// SPDX-License-Identifier: BSD-2-Clause
/* Trees with a slip in them: each is told, where it is and in words, and makes no machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libfdt.h>

#include "lab.h"

#define UNIT  "/iommu@fed90000"
#define CARD  UNIT "/master@1800"
#define DISK  UNIT "/master@1900"
#define BURST "/iommu@fed91000/master@3a00"

static const struct slip {
	const char *path, *property;
	const char *text; /* NULL: @cells */
	uint32_t cells[6];
	unsigned ncells;
	const char *said;
	bool machine; /* it makes one all the same */
} slips[] = {
	{UNIT, "quipu,profile", "big", {0}, 0, "is none of: spr, full", false},
	{UNIT "/domain@2", "quipu,stage", "xx", {0}, 0, "is none of: fs, ss, nested, pt", false},
	{UNIT "/domain@2", "quipu,stage", "", {0}, 0, "is none of: fs, ss, nested, pt", false},
	{UNIT "/domain@2", "quipu,did", NULL, {70000}, 1, "not a domain id", false},
	{UNIT "/domain@3", "quipu,did", NULL, {2}, 1, "not a domain id of its own", false},
	{UNIT "/domain@2", "quipu,levels", NULL, {2}, 1, "3 to 5 levels", false},
	{UNIT "/domain@2", "quipu,page-size", NULL, {8192}, 1, "4 KiB, 2 MiB or 1 GiB", false},
	{UNIT, "reg", NULL, {1}, 1, "two cells each", false},
	{UNIT, "reg", NULL, {0, 0xfed90000, 0, 0x80}, 4, "register window", false},
	{UNIT, "quipu,iotlb", NULL, {3, 2, 1, 1, 1, 1}, 6, "power of two", false},
	{UNIT, "quipu,iotlb", NULL, {4, 2}, 2, "needs 6 cells", false},
	{UNIT, "quipu,seq-id", NULL, {1}, 1, "a second unit of number 1", false},
	{UNIT, "quipu,seq-id", NULL, {1024}, 1, "1024 units", false},
	{DISK, "quipu,domain", NULL, {9}, 1, "names no domain", false},
	{DISK, "quipu,rid", NULL, {0x11900}, 1, "requester id", false},
	{DISK, "quipu,pool-pages", NULL, {0}, 1, "in a pool that holds", false},
	{DISK, "quipu,couple", "fly", {0}, 0, "none of: read, write, send, recv", false},
	{DISK, "quipu,couple", "read", {0}, 0, "no rate of their own", false},
	{CARD, "quipu,unmap", "never", {0}, 0, "is none of: recycle, strict, lazy", false},
	{CARD, "quipu,pps", NULL, {2000000000}, 1, "10^9 items", false},
	{CARD, "quipu,start-ns", NULL, {1, 2, 3}, 3, "needs start and stop", false},
	{BURST, "quipu,mps", NULL, {7}, 1, "64 to 4096 bytes", false},
	{BURST, "quipu,burst", NULL, {20000000}, 1, "10^7 in a burst", false},
	{DISK, "compatible", "quipu,dma-nvmee", {0}, 0, "quipu,dma-nvmee", true},
};
static const struct slip *slip;

static void make_slip(void *fdt)
{
	int node = fdt_path_offset(fdt, slip->path);
	fdt32_t cells[6];

	assert_true(node >= 0);
	for (unsigned i = 0; i < slip->ncells; i++)
		cells[i] = cpu_to_fdt32(slip->cells[i]);
	if (slip->text)
		assert_int_equal(fdt_setprop_string(fdt, node, slip->property, slip->text), 0);
	else
		assert_int_equal(
			fdt_setprop(fdt, node, slip->property, cells, 4 * (int)slip->ncells), 0);
}

static void slip_case(void **state)
{
	struct lab *lab;
	unsigned wrong = 0;
	bool said = false;
	int err;

	slip = *state;
	err = lab_create(&lab, "vtd", make_slip, -1);
	assert_int_equal(!err, slip->machine);
	for (size_t i = 0; i < lab->notes.n; i++) {
		said |= strstr(lab->notes.items[i].text, slip->said) != NULL;
		wrong += lab->notes.items[i].kind == QUIPU_NOTE_WRONG;
		/* No errno in place of a reason. */
		assert_null(strstr(lab->notes.items[i].text, strerror(EINVAL)));
	}
	if (!said)
		for (size_t i = 0; i < lab->notes.n; i++)
			print_message("%s: %s\n", lab->notes.items[i].path,
				      lab->notes.items[i].text);
	assert_true(said);
	assert_int_equal(wrong > 0, !slip->machine);
	if (err)
		lab->room = NULL;
	lab_free(lab);
}

int main(void)
{
	enum { N = sizeof(slips) / sizeof(slips[0]) };
	static char name[N][96];
	struct CMUnitTest tests[N] = {{0}};

	for (unsigned i = 0; i < N; i++) {
		snprintf(name[i], sizeof(name[i]), "%s: %s", slips[i].property, slips[i].said);
		tests[i] = (struct CMUnitTest){name[i], slip_case, NULL, NULL, (void *)&slips[i]};
	}
	return _cmocka_run_group_tests("vtd tree", tests, N, NULL, NULL);
}
