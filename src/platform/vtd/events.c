// SPDX-License-Identifier: BSD-2-Clause
/*
 * The events that Linux 6.12 names in events/ of a dmar PMU (perfmon.c there; meanings: Table 49 of
 * the specification). The event's value is a bit of its group, not a number. Revision 5.10 has four
 * more, which Linux does not name; they can be counted by their bits.
 */
#include "driver.h"
#include "registers.h"

#define BLOCKED                                                                                    \
	"functional timing: nothing ever waits in this unit; set quipu,timing = \"queued\" in "    \
	"its node"
#define F(f) (1u << FILTER_##f)

const struct vtd_event_name vtd_event_names[] = {
	{"iommu_clocks", 0, 0x001, "event_group=0x0,event=0x001",
	 "Clock cycles of the remapping unit", NULL, 0},
	{"iommu_requests", 0, 0x002, "event_group=0x0,event=0x002",
	 "Memory requests that came in: untranslated, translation, translated", NULL, F(AT)},
	{"pw_occupancy", 0, 0x004, "event_group=0x0,event=0x004",
	 "Clocks, summed over requests, from an IOTLB miss to the end of its page walk", NULL, 0},
	{"ats_blocked", 0, 0x008, "event_group=0x0,event=0x008",
	 "Clocks in which a translation completion waited for a credit", BLOCKED, 0},
	{"iommu_mrds", 1, 0x001, "event_group=0x1,event=0x001", "Memory reads made by the unit",
	 NULL, 0},
	{"iommu_mem_blocked", 1, 0x020, "event_group=0x1,event=0x020",
	 "Clocks in which a memory read of the unit waited", BLOCKED, 0},
	{"pg_req_posted", 1, 0x040, "event_group=0x1,event=0x040",
	 "Page requests written to the queue", NULL, 0},
	{"ctxt_cache_lookup", 2, 0x001, "event_group=0x2,event=0x001", "Context cache lookups",
	 NULL, 0},
	{"ctxt_cache_hit", 2, 0x002, "event_group=0x2,event=0x002", "Context cache hits", NULL, 0},
	{"pasid_cache_lookup", 2, 0x004, "event_group=0x2,event=0x004", "PASID cache lookups", NULL,
	 0},
	{"pasid_cache_hit", 2, 0x008, "event_group=0x2,event=0x008", "PASID cache hits", NULL, 0},
	{"ss_nonleaf_lookup", 2, 0x010, "event_group=0x2,event=0x010",
	 "Second-stage walks: lookups of the paging-structure cache", NULL, 0},
	{"ss_nonleaf_hit", 2, 0x020, "event_group=0x2,event=0x020",
	 "Second-stage paging-structure cache hits", NULL, F(PTL)},
	{"fs_nonleaf_lookup", 2, 0x040, "event_group=0x2,event=0x040",
	 "First-stage walks: lookups of the paging-structure cache", NULL, 0},
	{"fs_nonleaf_hit", 2, 0x080, "event_group=0x2,event=0x080",
	 "First-stage paging-structure cache hits", NULL, F(PTL)},
	{"hpt_nonleaf_lookup", 2, 0x100, "event_group=0x2,event=0x100",
	 "Walks of the host permission table", NULL, F(AT)},
	{"hpt_nonleaf_hit", 2, 0x200, "event_group=0x2,event=0x200",
	 "Host permission table walks that a cache shortened", NULL, F(AT) | F(PTL)},
	{"iotlb_lookup", 3, 0x001, "event_group=0x3,event=0x001", "IOTLB lookups", NULL, 0},
	{"iotlb_hit", 3, 0x002, "event_group=0x3,event=0x002", "IOTLB hits", NULL, F(PTL)},
	{"hpt_leaf_lookup", 3, 0x004, "event_group=0x3,event=0x004",
	 "Host permission leaf cache lookups", NULL, F(AT)},
	{"hpt_leaf_hit", 3, 0x008, "event_group=0x3,event=0x008", "Host permission leaf cache hits",
	 NULL, F(PTL)},
	{"int_cache_lookup", 4, 0x001, "event_group=0x4,event=0x001",
	 "Interrupt entry cache lookups", NULL, 0},
	{"int_cache_hit_nonposted", 4, 0x002, "event_group=0x4,event=0x002",
	 "Interrupt entry cache hits, entry of a remapped interrupt", NULL, 0},
	{"int_cache_hit_posted", 4, 0x004, "event_group=0x4,event=0x004",
	 "Interrupt entry cache hits, entry of a posted interrupt", NULL, 0},
};
const size_t vtd_event_names_n = sizeof(vtd_event_names) / sizeof(vtd_event_names[0]);

static const struct vtd_event_name *find(unsigned group, uint32_t mask)
{
	for (size_t i = 0; i < vtd_event_names_n; i++)
		if (vtd_event_names[i].group == group && vtd_event_names[i].mask == mask)
			return &vtd_event_names[i];
	return NULL;
}

unsigned vtd_event_filters(unsigned group, uint32_t mask)
{
	const struct vtd_event_name *e = find(group, mask);

	return e ? e->filters : 0;
}

const char *vtd_event_why_zero(unsigned group, uint32_t mask)
{
	const struct vtd_event_name *e = find(group, mask);

	return e ? e->why_zero : NULL;
}
