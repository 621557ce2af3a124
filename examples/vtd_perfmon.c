// SPDX-License-Identifier: BSD-2-Clause
/*
 * A performance monitoring driver for a VT-d remapping unit in a hundred lines, without a board:
 * finds out what the unit can count, programs two counters through enhanced commands, lets a device
 * read through the unit, and reads what it cost. Exits with 0 when the numbers are those that the
 * page tables dictate.
 *
 * Everything it does to the unit goes through memory-mapped registers, as in a real driver; replace
 * quipu_vtd_read and quipu_vtd_write with readq and writeq. Specification: Intel VT-d, chapters 10
 * and 11.4.13.
 */
#include <inttypes.h>
#include <stdio.h>

#include <quipu/vtd.h>

#define PERFCAP	    0x300
#define PERFCFGOFF  0x310
#define PERFCNTROFF 0x31c
#define ECMD	    0x400
#define ECRSP	    0x410
#define ENABLE	    0xf0
#define FREEZE	    0xf4
#define UNFREEZE    0xf5

#define DEVICE 0x3a00 /* bus 3a, device 0, function 0 */
#define IOVA   UINT64_C(0x100000000)
#define PAGES  64

/* Where the unit's tables lie: here in memory made for it, in an emulator in the guest's. */
static void *page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(arg, addr, write);
}

static const struct quipu_vtd_ops ops = {.page = page};

/* Status code of an enhanced command. */
static unsigned command(struct quipu_vtd *unit, unsigned code, unsigned operand)
{
	uint64_t response;

	quipu_vtd_write(unit, ECMD, 8, code | (uint64_t)operand << 16);
	do
		response = quipu_vtd_read(unit, ECRSP, 8);
	while (response & 1);
	return response >> 1 & 0x7f;
}

/* Count event bits @events of @group in counter @c. */
static unsigned count(struct quipu_vtd *unit, unsigned c, unsigned group, uint32_t events)
{
	uint32_t block = (uint32_t)quipu_vtd_read(unit, PERFCFGOFF, 4) + 0x100 * c;

	quipu_vtd_write(unit, block, 8, (uint64_t)events << 32 | group << 8);
	return command(unit, ENABLE, c);
}

static uint64_t value(struct quipu_vtd *unit, unsigned c)
{
	uint64_t perfcap = quipu_vtd_read(unit, PERFCAP, 8);
	uint32_t stride = 1024u << (perfcap >> 52 & 7);

	return quipu_vtd_read(unit, (uint32_t)quipu_vtd_read(unit, PERFCNTROFF, 4) + stride * c, 8);
}

/* One domain, second stage, four levels: 64 pages at IOVA. */
static int map(struct quipu_vtd_tables *tables)
{
	struct quipu_vtd_domain *domain =
		quipu_vtd_domain_new(tables, 5, QUIPU_VTD_STAGE_SS, 4, NULL, 0);

	if (!domain || quipu_vtd_map(domain, IOVA, UINT64_C(0x2000000000), PAGES * 4096, 4096, 3))
		return -1;
	return quipu_vtd_attach(tables, DEVICE, domain, 0);
}

static int run(struct quipu_vtd *unit)
{
	struct quipu_vtd_request rq = {.pasid = -1, .len = 64, .rid = DEVICE, .op = QUIPU_VTD_READ};
	struct quipu_vtd_response rs;
	uint64_t perfcap = quipu_vtd_read(unit, PERFCAP, 8);

	printf("counters: %" PRIu64 " of %" PRIu64 " bits, event groups: %" PRIu64 "\n",
	       perfcap & 0xffff, perfcap >> 16 & 0x7f, perfcap >> 24 & 0x1f);
	command(unit, FREEZE, 0);
	if (count(unit, 0, 3, 0x1) || count(unit, 1, 3, 0x2) || count(unit, 2, 1, 0x1)) {
		fputs("the unit refused a counter\n", stderr);
		return 1;
	}
	command(unit, UNFREEZE, 0);
	/* Ten rounds over 64 pages that fit the IOTLB: the first round walks, the other nine hit.
	 */
	for (unsigned i = 0; i < 10 * PAGES; i++) {
		rq.addr = IOVA + i % PAGES * 4096;
		quipu_vtd_dma(unit, &rq, &rs);
	}
	printf("IOTLB lookups %" PRIu64 ", hits %" PRIu64 ", memory reads %" PRIu64 " (modelled)\n",
	       value(unit, 0), value(unit, 1), value(unit, 2));
	/* Root, context and four entries for the first page; one entry for each of the other 63, as
	 * the rest is cached. */
	return value(unit, 0) != 640 || value(unit, 1) != 576 || value(unit, 2) != 6 + 63;
}

int main(void)
{
	struct quipu_vtd_memory *memory =
		quipu_vtd_memory_new(UINT64_C(1) << 40, UINT64_C(0x4000000));
	struct quipu_vtd_tables *tables =
		memory ? quipu_vtd_tables_new(memory, QUIPU_VTD_LEGACY) : NULL;
	struct quipu_vtd_config config;
	struct quipu_vtd *unit;
	const char *why = NULL;
	int status = 1;

	quipu_vtd_config_init(&config, QUIPU_VTD_SPR);
	unit = quipu_vtd_new(&config, &ops, memory, &why);
	if (!tables || !unit || map(tables)) {
		fprintf(stderr, "no unit: %s\n", why ? why : "out of memory");
		goto out;
	}
	quipu_vtd_enable(unit, quipu_vtd_tables_root(tables), QUIPU_VTD_LEGACY);
	status = run(unit);
out:
	quipu_vtd_free(unit);
	quipu_vtd_tables_free(tables);
	quipu_vtd_memory_free(memory);
	return status;
}
