// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queued invalidation (6.5.2): descriptors fetched from memory, checked bit by bit, carried out at
 * once. The head stays on a descriptor that is wrong (FSTS.IQE) until software has repaired it.
 * Device TLBs answer at once, so that invalidation time-outs (ITE) do not happen. IQERCD.IQEI stays
 * 0: its codes are not modelled.
 */
#include "unit.h"

#define TYPE_BITS 0xe0fu
#define MAX_QUEUE (UINT64_C(1) << 19) /* bytes: IQT has 19 bits */

struct kind {
	bool in_legacy;
	unsigned granularities; /* bit g: G = g is allowed; 0: it has no G, or all */
	uint64_t qw0, qw1;	/* bits that may be set */
	bool (*run)(struct quipu_vtd *, const uint64_t qw[4]);
};

static unsigned g_of(const uint64_t qw[4])
{
	return (unsigned)bits_get(qw[0], 5, 4);
}

static uint16_t did_of(const uint64_t qw[4])
{
	return (uint16_t)bits_get(qw[0], 31, 16);
}

static uint32_t pasid_of(const uint64_t qw[4])
{
	return (uint32_t)bits_get(qw[0], 51, 32);
}

static unsigned am_of(const uint64_t qw[4])
{
	return (unsigned)bits_get(qw[1], 5, 0);
}

static bool run_context(struct quipu_vtd *u, const uint64_t qw[4])
{
	vtd_invalidate_context(u, g_of(qw), did_of(qw), (uint16_t)bits_get(qw[0], 47, 32),
			       (unsigned)bits_get(qw[0], 49, 48));
	return true;
}

static bool run_iotlb(struct quipu_vtd *u, const uint64_t qw[4])
{
	if (g_of(qw) == 1)
		vtd_invalidate_iotlb_global(u);
	else if (g_of(qw) == 2)
		vtd_invalidate_iotlb_domain(u, did_of(qw));
	else if (am_of(qw) > CAP_MAMV(u->config.cap))
		return false;
	else
		vtd_invalidate_iotlb_page(u, did_of(qw), qw[1] & ~UINT64_C(0xfff), am_of(qw),
					  qw[1] & 0x40);
	return true;
}

/* The size is coded in the address: its lowest 0 bit from bit 12 on is the highest bit of the
 * range. */
static uint64_t coded_size(uint64_t qw1, bool s)
{
	uint64_t zeros = ~(qw1 | 0xfff);

	if (!s)
		return QUIPU_VTD_PAGE;
	if (!zeros || bits_low(zeros) == 63)
		return 0; /* all of the address space */
	return bits_one(bits_low(zeros) + 1);
}

static void device_tlb(struct quipu_vtd *u, uint16_t rid, int32_t pasid, uint64_t qw1, bool s,
		       bool global)
{
	uint64_t size = coded_size(qw1, s);
	uint64_t addr = size ? qw1 & ~(size - 1) & ~UINT64_C(0xfff) : 0;

	if (u->ops->device_tlb)
		u->ops->device_tlb(u->arg, rid, pasid, addr, size, global);
}

static bool run_device_tlb(struct quipu_vtd *u, const uint64_t qw[4])
{
	device_tlb(u, (uint16_t)bits_get(qw[0], 47, 32), -1, qw[1], qw[1] & 1, false);
	return true;
}

static bool run_iec(struct quipu_vtd *u, const uint64_t qw[4])
{
	vtd_invalidate_iec(u, qw[0] & 0x10, (unsigned)bits_get(qw[0], 47, 32),
			   (unsigned)bits_get(qw[0], 31, 27));
	return true;
}

static bool run_wait(struct quipu_vtd *u, const uint64_t qw[4])
{
	if (qw[0] & 0x20) {
		uint32_t *status = vtd_memory(u, qw[1] & ~UINT64_C(3), true);

		if (status)
			*status = (uint32_t)(qw[0] >> 32);
	}
	if ((qw[0] & 0x10) && !(vtd_reg32(u, ICS_REG) & 1)) {
		vtd_set32(u, ICS_REG, 1);
		vtd_irq_raise(u, IECTL_REG);
	}
	return true;
}

static bool run_pasid_iotlb(struct quipu_vtd *u, const uint64_t qw[4])
{
	if (g_of(qw) == 2)
		vtd_invalidate_pasid_all(u, did_of(qw), pasid_of(qw));
	else if (am_of(qw) > CAP_MAMV(u->config.cap))
		return false;
	else
		vtd_invalidate_pasid_page(u, did_of(qw), pasid_of(qw), qw[1] & ~UINT64_C(0xfff),
					  am_of(qw), qw[1] & 0x40);
	return true;
}

static bool run_pasid_cache(struct quipu_vtd *u, const uint64_t qw[4])
{
	vtd_invalidate_pasid_cache(u, g_of(qw), did_of(qw), pasid_of(qw));
	return true;
}

static bool run_pasid_device_tlb(struct quipu_vtd *u, const uint64_t qw[4])
{
	device_tlb(u, did_of(qw), (int32_t)pasid_of(qw), qw[1], qw[1] & 0x800, qw[1] & 1);
	return true;
}

static bool run_page_response(struct quipu_vtd *u, const uint64_t qw[4])
{
	int32_t pasid = qw[0] & 0x10 ? (int32_t)pasid_of(qw) : -1;

	if (u->ops->page_response)
		u->ops->page_response(u->arg, did_of(qw), pasid, (unsigned)bits_get(qw[1], 11, 3),
				      (unsigned)bits_get(qw[0], 15, 12));
	return true;
}

static bool run_hpt(struct quipu_vtd *u, const uint64_t qw[4])
{
	if (!(u->config.ecap & ECAP_HPTS))
		return false;
	if (g_of(qw) == 3 && am_of(qw) > CAP_MAMV(u->config.cap))
		return false;
	vtd_invalidate_hpt(u, g_of(qw), did_of(qw), qw[1] & ~UINT64_C(0xfff), am_of(qw),
			   (unsigned)bits_get(qw[1], 7, 6));
	return true;
}

#define G(g)	   (1u << (g))
#define PAGE_RANGE (~UINT64_C(0xf80)) /* address, IH, AM */
static const struct kind kinds[] = {
	[1] = {true, G(1) | G(2) | G(3), UINT64_C(0x0003ffffffff0e3f), 0, run_context},
	[2] = {true, G(1) | G(2) | G(3), UINT64_C(0xffff0eff), PAGE_RANGE, run_iotlb},
	[3] = {true, 0, UINT64_C(0xfff0ffff001ffe0f), ~UINT64_C(0xffe), run_device_tlb},
	[4] = {true, 0, UINT64_C(0x0000fffff8000e1f), 0, run_iec},
	[5] = {true, 0, UINT64_C(0xffffffff00000eff), ~UINT64_C(3), run_wait},
	[6] = {false, G(2) | G(3), UINT64_C(0x000fffffffff0e3f), PAGE_RANGE, run_pasid_iotlb},
	[7] = {false, G(0) | G(1) | G(3), UINT64_C(0x000fffffffff0e3f), 0, run_pasid_cache},
	[8] = {false, 0, ~UINT64_C(0), ~UINT64_C(0x7fe), run_pasid_device_tlb},
	[9] = {false, 0, UINT64_C(0x000ffffffffffe1f), 0xffc, run_page_response},
	[10] = {false, G(1) | G(2) | G(3), UINT64_C(0xffff0e3f), ~UINT64_C(0xf00), run_hpt},
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool run(struct quipu_vtd *u, const uint64_t qw[4], bool wide)
{
	unsigned type = (unsigned)(qw[0] & 0xf) | (unsigned)bits_get(qw[0], 11, 9) << 4;
	const struct kind *k = &kinds[type < NKINDS ? type : 0];
	bool legacy = u->ttm == TTM_LEGACY;

	if (!k->run || u->ttm == TTM_RESERVED || (legacy ? !k->in_legacy : !wide))
		return false;
	if ((qw[0] & ~k->qw0) || (qw[1] & ~k->qw1))
		return false;
	/* Only a page group response has anything in its upper half: private data that this model
	 * does not keep. */
	if ((qw[2] || qw[3]) && k->run != run_page_response)
		return false;
	if (k->granularities && !(k->granularities >> g_of(qw) & 1))
		return false;
	return k->run(u, qw);
}

static bool fetch(struct quipu_vtd *u, uint64_t at, bool wide, uint64_t qw[4])
{
	const uint64_t *p = vtd_memory(u, at, false);

	if (u->config.count_iq)
		vtd_perfmon_count(u, EV_MRDS, 1);
	if (!p)
		return false;
	qw[0] = p[0];
	qw[1] = p[1];
	qw[2] = wide ? p[2] : 0;
	qw[3] = wide ? p[3] : 0;
	return true;
}

void vtd_queue_run(struct quipu_vtd *u)
{
	uint64_t iqa = vtd_reg64(u, IQA_REG), base = iqa & u->hpa_mask;
	uint64_t bytes = UINT64_C(4096) << bits_get(iqa, 2, 0);
	bool wide = iqa & bits_one(11);
	unsigned size = wide ? 32 : 16;

	while (u->qies && !(vtd_reg32(u, FSTS_REG) & (FSTS_IQE | FSTS_ITE))) {
		uint64_t head = vtd_reg64(u, IQH_REG), tail = vtd_reg64(u, IQT_REG);
		uint64_t qw[4];

		if (head == tail)
			break;
		/* The head too: software may have changed the width since it was moved. */
		if (tail >= bytes || (head | tail) % size || !fetch(u, base + head, wide, qw) ||
		    !run(u, qw, wide)) {
			vtd_fault_status(u, FSTS_IQE);
			break;
		}
		vtd_set64(u, IQH_REG, (head + size) & (bytes - 1));
	}
}
