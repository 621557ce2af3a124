// SPDX-License-Identifier: BSD-2-Clause
/*
 * Interrupt remapping and posting (chapter 5, 9.11, 9.13): the table, its cache, source validation,
 * and what is sent on. Errors of a posted-interrupt descriptor are not modelled: such an interrupt
 * is lost.
 */
#include "unit.h"

#define MSI_BASE      0xfee00000u
#define IRTE_P	      bits_one(0)
#define IRTE_FPD      bits_one(1)
#define IRTE_IM	      bits_one(15) /* posted */
#define LO_RSVD_REMAP UINT64_C(0xff007000)
#define LO_RSVD_POST  UINT64_C(0x3fff0030fc) /* 7:2, 13:12, 37:24 */
#define HI_RSVD_REMAP UINT64_C(0xfffffffffff00000)
#define HI_RSVD_POST  UINT64_C(0x00000000fff00000)
#define PD_ON	      bits_one(0)
#define PD_SN	      bits_one(1)

static void send(struct quipu_vtd *u, struct quipu_vtd_interrupt *out, uint64_t addr, uint32_t data)
{
	out->addr = addr;
	out->data = data;
	if (u->ops->msi)
		u->ops->msi(u->arg, addr, data);
}

/* A message to APIC @dest: 8 bits of it in the low half, the rest above (x2APIC, EIME). */
static uint64_t message_address(const struct quipu_vtd *u, uint32_t dest)
{
	uint32_t low = u->eime ? dest & 0xff : dest >> 8 & 0xff;

	return MSI_BASE | low << 12 | (u->eime ? (uint64_t)(dest & ~UINT32_C(0xff)) << 32 : 0);
}

static bool reserved(const struct vtd_irte *e)
{
	if (e->lo & IRTE_IM)
		return (e->lo & LO_RSVD_POST) || (e->hi & HI_RSVD_POST);
	return (e->lo & LO_RSVD_REMAP) || (e->hi & HI_RSVD_REMAP);
}

/* The entry, through the cache; *fpd of it. */
static uint8_t find(struct quipu_vtd *u, unsigned index, unsigned *reads, struct vtd_irte *out,
		    bool *fpd)
{
	const struct vtd_irte *cached = vtd_cache_find(&u->iec, index, index, VTD_VALID);
	const uint64_t *entry;
	struct vtd_irte *line;

	vtd_count(u, EV_INT_LOOKUP);
	if (cached) {
		*out = *cached;
		*fpd = out->lo & IRTE_FPD;
		vtd_count(u, out->lo & IRTE_IM ? EV_INT_HIT_POSTED : EV_INT_HIT_NONPOSTED);
		return 0;
	}
	entry = vtd_memory(u, u->irt + 16ull * index, false);
	++*reads;
	if (!entry)
		return 0x23;
	*out = (struct vtd_irte){entry[0], entry[1]};
	*fpd = out->lo & IRTE_FPD;
	if (!(out->lo & IRTE_P))
		return 0x22;
	if (reserved(out))
		return 0x24;
	line = vtd_cache_fill(&u->iec, index, index, VTD_VALID);
	if (line)
		*line = *out;
	return 0;
}

static bool source_valid(const struct vtd_irte *e, uint16_t rid)
{
	static const uint16_t ignored[] = {0, 4, 6, 7};
	uint16_t sid = (uint16_t)bits_get(e->hi, 15, 0);

	switch (bits_get(e->hi, 19, 18)) {
	case 0: return true;
	case 1: return !((sid ^ rid) & (uint16_t)~ignored[bits_get(e->hi, 17, 16)]);
	case 2: return rid >> 8 >= sid >> 8 && rid >> 8 <= (sid & 0xff);
	}
	return false;
}

static void remap(struct quipu_vtd *u, const struct vtd_irte *e, struct quipu_vtd_interrupt *out)
{
	uint64_t addr = message_address(u, (uint32_t)(e->lo >> 32));
	uint32_t data = (uint32_t)bits_get(e->lo, 23, 16) | (uint32_t)bits_get(e->lo, 7, 5) << 8;

	addr |= bits_get(e->lo, 2, 2) << 2 | bits_get(e->lo, 3, 3) << 3;
	if (e->lo & bits_one(4))
		data |= 0xc000; /* level, asserted */
	send(u, out, addr, data);
}

static void post(struct quipu_vtd *u, const struct vtd_irte *e, unsigned *reads,
		 struct quipu_vtd_interrupt *out)
{
	uint64_t at = bits_get(e->lo, 63, 38) << 6 | bits_get(e->hi, 63, 32) << 32;
	uint64_t *pd = vtd_memory(u, at, true);
	unsigned vector = (unsigned)bits_get(e->lo, 23, 16);
	bool urgent = e->lo & bits_one(14);

	++*reads;
	if (!pd)
		return;
	out->posted = true;
	pd[vector / 64] |= bits_one(vector % 64);
	if ((pd[4] & PD_ON) || ((pd[4] & PD_SN) && !urgent))
		return;
	pd[4] |= PD_ON;
	out->notified = true;
	send(u, out, message_address(u, (uint32_t)(pd[4] >> 32)),
	     (uint32_t)bits_get(pd[4], 23, 16));
}

static uint8_t remappable(struct quipu_vtd *u, uint16_t rid, uint64_t addr, uint32_t data,
			  unsigned *index, bool *fpd, struct quipu_vtd_interrupt *out)
{
	struct vtd_irte entry;
	unsigned reads = 0;
	uint8_t fault;

	*index = (unsigned)bits_get(addr, 19, 5) | (unsigned)bits_get(addr, 2, 2) << 15;
	if (addr & 8)
		*index += data & 0xffff;
	if (data >> 16)
		return 0x20;
	if (*index >= u->irt_size)
		return 0x21;
	fault = find(u, *index, &reads, &entry, fpd);
	if (!fault && !source_valid(&entry, rid))
		fault = 0x26;
	if (!fault && (entry.lo & IRTE_IM))
		post(u, &entry, &reads, out);
	else if (!fault)
		remap(u, &entry, out);
	vtd_count_reads(u, reads);
	return fault;
}

void quipu_vtd_msi(struct quipu_vtd *u, uint16_t rid, uint64_t addr, uint32_t data,
		   struct quipu_vtd_interrupt *out)
{
	struct quipu_vtd_interrupt unused;
	struct vtd_fault_address a = {.rid = rid, .pasid = -1, .op = QUIPU_VTD_WRITE};
	unsigned index = 0;
	bool fpd = false;

	if (!out)
		out = &unused;
	*out = (struct quipu_vtd_interrupt){0};
	if (!vtd_is_interrupt_range(addr)) {
		out->fault = 0x20;
		return;
	}
	if (!u->ires) {
		send(u, out, addr, data);
		return;
	}
	vtd_tally_begin(u, rid, -1, NO_AT);
	if (addr & 0x10)
		out->fault = remappable(u, rid, addr, data, &index, &fpd, out);
	else if (u->cfis && !u->eime)
		send(u, out, addr, data);
	else
		out->fault = 0x25;
	if (out->fault) {
		a.addr = (uint64_t)index << 48;
		out->recorded = vtd_fault_record(u, out->fault, &a, fpd);
	}
	vtd_tally_end(u, NO_DID);
}
