// SPDX-License-Identifier: BSD-2-Clause
/*
 * Faults (chapter 7, Appendix A): which may be suppressed, how a translation request that meets one
 * is answered, and their records. Recoverable faults of translation requests are answers, not
 * records.
 */
#include "unit.h"

#define QUALIFIED 0x10u /* FPD suppresses it */
#define NOTED                                                                                      \
	0x20u /* recorded for a translation request as well, although that is answered with        \
		 success */
#define UR    ANSWER_UR
#define CA    ANSWER_CA
#define EMPTY ANSWER_EMPTY
#define PERM  ANSWER_PERMISSION
#define Q     QUALIFIED

static const uint8_t reasons[256] = {
	/* legacy mode */
	[0x01] = UR,
	[0x02] = Q | UR,
	[0x03] = Q | CA,
	[0x04] = Q | EMPTY,
	[0x05] = Q | PERM,
	[0x06] = Q | PERM,
	[0x07] = Q | CA,
	[0x08] = CA,
	[0x09] = CA,
	[0x0a] = CA,
	[0x0b] = Q | CA,
	[0x0c] = Q | CA,
	[0x0d] = Q | UR,
	[0x0e] = Q | CA,
	/* interrupts */
	[0x20] = UR,
	[0x21] = UR,
	[0x22] = Q | UR,
	[0x23] = UR,
	[0x24] = Q | UR,
	[0x25] = UR,
	[0x26] = Q | UR,
	/* the unit's mode */
	[0x30] = UR,
	[0x31] = UR,
	[0x32] = UR,
	[0x33] = UR,
	[0x34] = UR,
	/* scalable mode: root, context, PASID directory, PASID table */
	[0x38] = CA,
	[0x39] = UR,
	[0x3a] = CA,
	[0x40] = CA,
	[0x41] = Q | UR,
	[0x42] = Q | CA,
	[0x43] = Q | CA,
	[0x44] = Q | UR,
	[0x45] = Q | UR,
	[0x46] = Q | UR,
	[0x47] = Q | UR,
	[0x48] = Q | UR,
	[0x49] = Q | UR,
	[0x50] = CA,
	[0x51] = Q | EMPTY,
	[0x52] = Q | CA,
	[0x58] = CA,
	[0x59] = Q | EMPTY,
	[0x5a] = Q | CA,
	[0x5b] = Q | CA,
	[0x5c] = Q | EMPTY,
	[0x5d] = Q | EMPTY,
	[0x60] = Q | CA,
	/* first stage, second stage */
	[0x70] = Q | EMPTY,
	[0x71] = Q | EMPTY,
	[0x72] = Q | EMPTY,
	[0x73] = Q | EMPTY,
	[0x74] = Q | EMPTY,
	[0x75] = Q | EMPTY,
	[0x76] = Q | EMPTY,
	[0x77] = Q | EMPTY,
	[0x78] = Q | CA,
	[0x79] = Q | EMPTY,
	[0x7a] = Q | CA,
	[0x7b] = Q | CA,
	[0x7c] = Q | CA,
	[0x7d] = Q | CA,
	[0x80] = Q | EMPTY,
	[0x81] = Q | EMPTY,
	[0x83] = Q | EMPTY,
	[0x84] = Q | EMPTY,
	[0x85] = Q | PERM,
	[0x86] = Q | PERM,
	[0x87] = Q | CA,
	[0x89] = Q | UR,
	[0x90] = Q | EMPTY,
	[0x91] = Q | NOTED | EMPTY,
	/* host permission table */
	[0xa0] = Q | UR,
	[0xa1] = Q | UR,
	[0xa2] = Q | UR,
	[0xa3] = Q | UR,
	[0xa4] = Q | UR,
	[0xa5] = Q | UR,
};

#undef Q
#undef UR
#undef CA
#undef EMPTY
#undef PERM

#define FSTS_ALL (FSTS_PFO | FSTS_PPF | FSTS_IQE | FSTS_ICE | FSTS_ITE)

enum vtd_answer vtd_fault_answer(uint8_t reason)
{
	return reasons[reason] & 0xf;
}

static uint32_t record_at(const struct quipu_vtd *u, unsigned n)
{
	return CAP_FRO(u->config.cap) + 16 * n;
}

static uint64_t record_high(uint8_t reason, const struct vtd_fault_address *a)
{
	static const struct {
		bool t1, t2;
	} type[] = {
		[QUIPU_VTD_READ] = {true, false},
		[QUIPU_VTD_WRITE] = {false, false},
		[QUIPU_VTD_ATOMIC] = {true, true},
		[QUIPU_VTD_ZERO_READ] = {true, false},
	};
	bool t1 = !a->page_request && type[a->op].t1;
	bool t2 = a->page_request || type[a->op].t2;
	uint64_t hi = FRCD_F | (uint64_t)t1 << 62 | (uint64_t)t2 << 28;

	hi |= (uint64_t)(a->at & 3) << 60 | (uint64_t)reason << 32 | a->rid;
	if (a->pasid >= 0)
		hi |= (uint64_t)(uint32_t)a->pasid << 40 | bits_one(31);
	return hi | (uint64_t)a->exec << 30 | (uint64_t)a->priv << 29;
}

/* A record of the same requester that software has not seen yet stands for this fault as well. */
static bool collapses(const struct quipu_vtd *u, uint16_t rid)
{
	for (unsigned n = 0; n < CAP_NFR(u->config.cap); n++) {
		uint64_t hi = vtd_reg64(u, record_at(u, n) + 8);

		if ((hi & FRCD_F) && (hi & 0xffff) == rid)
			return true;
	}
	return false;
}

bool vtd_fault_record(struct quipu_vtd *u, uint8_t reason, const struct vtd_fault_address *a,
		      bool fpd)
{
	uint32_t status = vtd_reg32(u, FSTS_REG);
	uint32_t at = record_at(u, u->fault_index);

	if (((reasons[reason] & QUALIFIED) && fpd) || (status & FSTS_PFO) || collapses(u, a->rid))
		return false;
	if (vtd_reg64(u, at + 8) & FRCD_F) {
		vtd_set32(u, FSTS_REG, status | FSTS_PFO);
		return false;
	}
	vtd_set64(u, at, a->addr & ~UINT64_C(0xfff));
	vtd_set64(u, at + 8, record_high(reason, a));
	if (!(status & FSTS_PPF))
		status = (status & ~UINT32_C(0xff00)) | u->fault_index << 8;
	u->fault_index = (u->fault_index + 1) % CAP_NFR(u->config.cap);
	vtd_set32(u, FSTS_REG, status | FSTS_PPF);
	if (!(status & FSTS_ALL))
		vtd_irq_raise(u, FECTL_REG);
	return true;
}

void vtd_fault_status(struct quipu_vtd *u, uint32_t bit)
{
	uint32_t status = vtd_reg32(u, FSTS_REG);

	vtd_set32(u, FSTS_REG, status | bit);
	if (!(status & FSTS_ALL))
		vtd_irq_raise(u, FECTL_REG);
}

void vtd_fault_cleared(struct quipu_vtd *u)
{
	uint32_t status = vtd_reg32(u, FSTS_REG) & ~(uint32_t)FSTS_PPF;

	for (unsigned n = 0; n < CAP_NFR(u->config.cap); n++)
		if (vtd_reg64(u, record_at(u, n) + 8) & FRCD_F)
			status |= FSTS_PPF;
	vtd_set32(u, FSTS_REG, status);
	if (!(status & FSTS_ALL))
		vtd_irq_clear(u, FECTL_REG);
}

bool vtd_fault_noted(uint8_t reason)
{
	return reasons[reason] & NOTED;
}
