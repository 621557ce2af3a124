// SPDX-License-Identifier: BSD-2-Clause
/*
 * The two shipped kinds of unit. "spr" can do what the documented machine shows: 14 counters of 48
 * bits, of which the last two count group 0 only, 20 events, filters on address type and page-table
 * level. "full" has every filter and every event of revision 5.10. Cache sizes are choices: no
 * document tells those of a part.
 */
#include "unit.h"

#define CNTRCAP_GROUP0 0x10033001u /* own capabilities: 1 group, GFS, IOS, 48 bits */

static const struct {
	uint64_t ecap, perfcap;
	uint32_t evntcap[QUIPU_VTD_GROUPS_USED];
	bool extended;
} profiles[] = {
	[QUIPU_VTD_SPR] =
		{
			.ecap = UINT64_C(0x001BEF9EA4F060DF),
			.perfcap = UINT64_C(0xF00F00180530000E),
			.evntcap = {0xf, 0x61, 0xff, 0x3, 0x7},
		},
	[QUIPU_VTD_FULL] =
		{
			.ecap = UINT64_C(0x089BEF9EA4F060DF),
			.perfcap = UINT64_C(0xF00F001F0530000E),
			.evntcap = {0x6f, 0xe9, 0x3ff, 0xf, 0x7},
			.extended = true,
		},
};

void quipu_vtd_config_init(struct quipu_vtd_config *c, enum quipu_vtd_profile profile)
{
	*c = (struct quipu_vtd_config){
		.version = 0x60,
		.cap = UINT64_C(0xF9D2078C50780E06),
		.ecap = profiles[profile].ecap,
		.eccap = {[3] = UINT64_C(0x003F000000000000)},
		.perfcap = profiles[profile].perfcap,
		.perfcfgoff = 0x1000,
		.perffrzoff = 0x1f00,
		.perfovfoff = 0x1f40,
		.perfcntroff = 0x4000,
		.window = 0x8000,
		.haw = 46,
		.iotlb = {{256, 8}, {64, 8}, {16, 16}},
		.context = {64, 8},
		.pasid = {64, 8},
		.iec = {256, 8},
		.fs_psc = {{64, 4}, {16, 4}, {8, 8}, {4, 4}},
		.ss_psc = {{64, 4}, {16, 4}, {8, 8}, {4, 4}},
		.replacement = QUIPU_VTD_LRU,
		.seed = 1,
		.filters_extended = profiles[profile].extended,
		.clock_hz = UINT64_C(1000000000),
		.mem_latency = 150,
		.max_outstanding = 32,
		.walkers = 16,
		.ats_credits = 8,
		.ats_credit_clocks = 40,
	};
	for (unsigned g = 0; g < QUIPU_VTD_GROUPS_USED; g++)
		c->perfevntcap[g] = profiles[profile].evntcap[g];
	for (unsigned i = 12; i < 14; i++) {
		c->perfcntrcap[i] = CNTRCAP_GROUP0;
		c->perfcntrevcap[i][0] = profiles[profile].evntcap[0];
	}
	if (profile == QUIPU_VTD_FULL) {
		c->hpt_leaf = (struct quipu_vtd_geometry){64, 4};
		c->hpt_nonleaf = (struct quipu_vtd_geometry){16, 4};
	}
}
