// SPDX-License-Identifier: BSD-2-Clause
/*
 * The register window of a remapping unit (11.2 to 11.4): one row per register with what software
 * may change, and what a write sets off. Registers whose place the unit itself announces (counters,
 * their configuration) are in perfmon.c. Not modelled: protected memory regions, MTRRs,
 * register-based invalidation (answered as a unit of major version 6 answers it: granularity 0).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define LOW  1u
#define HIGH 2u

struct row {
	uint32_t offset;
	unsigned width;
	uint64_t rw;	     /* bits that software sets */
	uint64_t w1c;	     /* bits that writing 1 clears */
	uint64_t write_only; /* bits that never read back */
	/* After a write; @value: what was written, @halves: which 32-bit halves it touched. */
	void (*wrote)(struct quipu_vtd *, const struct row *, uint64_t value, unsigned halves);
};

uint32_t vtd_reg32(const struct quipu_vtd *u, uint32_t offset)
{
	return u->regs[offset / 4];
}

uint64_t vtd_reg64(const struct quipu_vtd *u, uint32_t offset)
{
	return u->regs[offset / 4] | (uint64_t)u->regs[offset / 4 + 1] << 32;
}

void vtd_set32(struct quipu_vtd *u, uint32_t offset, uint32_t value)
{
	u->regs[offset / 4] = value;
}

void vtd_set64(struct quipu_vtd *u, uint32_t offset, uint64_t value)
{
	u->regs[offset / 4] = (uint32_t)value;
	u->regs[offset / 4 + 1] = (uint32_t)(value >> 32);
}

/* ---- interrupts of the unit (7.3, 6.5.2.10, 7.5): one pattern ---- */

static void irq_send(struct quipu_vtd *u, uint32_t ctl)
{
	uint64_t addr = vtd_reg32(u, ctl + IRQ_ADDR) | (uint64_t)vtd_reg32(u, ctl + IRQ_UADDR)
							       << 32;

	vtd_set32(u, ctl, vtd_reg32(u, ctl) & ~(uint32_t)IRQ_IP);
	if (u->ops->msi)
		u->ops->msi(u->arg, addr, vtd_reg32(u, ctl + IRQ_DATA));
}

void vtd_irq_raise(struct quipu_vtd *u, uint32_t ctl)
{
	vtd_set32(u, ctl, vtd_reg32(u, ctl) | (uint32_t)IRQ_IP);
	if (!(vtd_reg32(u, ctl) & IRQ_IM))
		irq_send(u, ctl);
}

void vtd_irq_clear(struct quipu_vtd *u, uint32_t ctl)
{
	vtd_set32(u, ctl, vtd_reg32(u, ctl) & ~(uint32_t)IRQ_IP);
}

static void wrote_irq(struct quipu_vtd *u, const struct row *row, uint64_t value, unsigned halves)
{
	(void)value;
	(void)halves;
	if ((vtd_reg32(u, row->offset) & (IRQ_IM | IRQ_IP)) == IRQ_IP)
		irq_send(u, row->offset);
}

/* ---- what writes set off ---- */

static void set_root(struct quipu_vtd *u)
{
	uint64_t rtaddr = vtd_reg64(u, RTADDR_REG);

	u->root = rtaddr & u->hpa_mask;
	u->ttm = (uint8_t)bits_get(rtaddr, 11, 10);
	if (u->config.cap & CAP_ESRTPS)
		vtd_flush_translations(u);
}

static void set_interrupt_table(struct quipu_vtd *u)
{
	uint64_t irta = vtd_reg64(u, IRTA_REG);

	u->irt = irta & u->hpa_mask;
	u->irt_size = UINT64_C(2) << bits_get(irta, 3, 0);
	u->eime = irta & IRTA_EIME;
	if (u->config.cap & CAP_ESIRTPS)
		vtd_cache_clear(&u->iec);
}

static void wrote_gcmd(struct quipu_vtd *u, const struct row *row, uint64_t value, unsigned halves)
{
	uint32_t status = vtd_reg32(u, GSTS_REG);
	bool te = value & G_TE, qie = value & G_QIE,
	     ire = (value & G_IRE) && (u->config.ecap & ECAP_IR);

	(void)row;
	(void)halves;
	if (value & G_SRTP) {
		set_root(u);
		status |= G_SRTP;
	}
	if (value & G_SIRTP) {
		set_interrupt_table(u);
		status |= G_SIRTP;
	}
	if (te != u->tes)
		vtd_flush_translations(u);
	if (qie && !u->qies)
		vtd_set64(u, IQH_REG, 0);
	u->tes = te;
	u->qies = qie;
	u->ires = ire;
	u->cfis = value & G_CFI;
	if (!te && !ire)
		u->fault_index = 0;
	status &= ~(uint32_t)(G_TE | G_QIE | G_IRE | G_CFI);
	status |= (te ? G_TE : 0) | (qie ? G_QIE : 0) | (ire ? G_IRE : 0) | (u->cfis ? G_CFI : 0);
	vtd_set32(u, GSTS_REG, status);
	vtd_queue_run(u);
}

static void wrote_fault_status(struct quipu_vtd *u, const struct row *row, uint64_t value,
			       unsigned halves)
{
	(void)row;
	(void)halves;
	vtd_fault_cleared(u);
	if (value & (FSTS_IQE | FSTS_ITE)) {
		vtd_set64(u, IQERCD_REG, 0);
		vtd_queue_run(u);
	}
}

static void wrote_fault_record(struct quipu_vtd *u, const struct row *row, uint64_t value,
			       unsigned halves)
{
	(void)row;
	(void)value;
	(void)halves;
	vtd_fault_cleared(u);
}

static void wrote_queue_tail(struct quipu_vtd *u, const struct row *row, uint64_t value,
			     unsigned halves)
{
	(void)row;
	(void)value;
	if (halves & LOW)
		vtd_queue_run(u);
}

static void wrote_completion(struct quipu_vtd *u, const struct row *row, uint64_t value,
			     unsigned halves)
{
	(void)row;
	(void)halves;
	if (value & 1)
		vtd_irq_clear(u, IECTL_REG);
}

static void wrote_page_status(struct quipu_vtd *u, const struct row *row, uint64_t value,
			      unsigned halves)
{
	(void)row;
	(void)value;
	(void)halves;
	if (!(vtd_reg32(u, PRS_REG) & (PRS_PPR | PRS_PRO)))
		vtd_irq_clear(u, PECTL_REG);
}

static void wrote_perf_status(struct quipu_vtd *u, const struct row *row, uint64_t value,
			      unsigned halves)
{
	(void)row;
	(void)halves;
	if (value & 1)
		vtd_irq_clear(u, PERFINTRCTL_REG);
}

/* The low half starts the command; the high half before it holds the operand (1.5 of the
 * interface: 11.4.14). */
static void wrote_command(struct quipu_vtd *u, const struct row *row, uint64_t value,
			  unsigned halves)
{
	(void)value;
	if (halves & LOW)
		vtd_command(u, vtd_reg64(u, row->offset));
}

/* Register-based invalidation: done at once with "granularity 0", which says that nothing was
 * invalidated. */
static void wrote_direct(struct quipu_vtd *u, const struct row *row, uint64_t value,
			 unsigned halves)
{
	(void)value;
	(void)halves;
	vtd_set64(u, row->offset, 0);
}

#define ALL	   (~UINT64_C(0))
#define TABLE_BASE (~UINT64_C(0xfff))
static const struct row rows[] = {
	{VER_REG, 4},
	{CAP_REG, 8},
	{ECAP_REG, 8},
	{GCMD_REG, 4, .write_only = ALL, .wrote = wrote_gcmd},
	{GSTS_REG, 4},
	{RTADDR_REG, 8, .rw = TABLE_BASE | 0xc00},
	{CCMD_REG, 8, .rw = ALL, .wrote = wrote_direct},
	{FSTS_REG, 4, .w1c = FSTS_PFO | FSTS_IQE | FSTS_ICE | FSTS_ITE,
	 .wrote = wrote_fault_status},
	{FECTL_REG, 4, .rw = IRQ_IM, .wrote = wrote_irq},
	{FECTL_REG + IRQ_DATA, 4, .rw = UINT32_MAX},
	{FECTL_REG + IRQ_ADDR, 4, .rw = 0xfffffffc},
	{FECTL_REG + IRQ_UADDR, 4, .rw = UINT32_MAX},
	{IQH_REG, 8},
	{IQT_REG, 8, .rw = 0x7fff0, .wrote = wrote_queue_tail},
	{IQA_REG, 8, .rw = TABLE_BASE | 0x807},
	{ICS_REG, 4, .w1c = 1, .wrote = wrote_completion},
	{IECTL_REG, 4, .rw = IRQ_IM, .wrote = wrote_irq},
	{IECTL_REG + IRQ_DATA, 4, .rw = UINT32_MAX},
	{IECTL_REG + IRQ_ADDR, 4, .rw = 0xfffffffc},
	{IECTL_REG + IRQ_UADDR, 4, .rw = UINT32_MAX},
	{IQERCD_REG, 8},
	{IRTA_REG, 8, .rw = TABLE_BASE | 0x80f},
	{PQH_REG, 8, .rw = 0x7ffe0},
	{PQT_REG, 8, .rw = 0x7ffe0},
	{PQA_REG, 8, .rw = TABLE_BASE | 7},
	{PRS_REG, 4, .w1c = PRS_PPR | PRS_PRO, .wrote = wrote_page_status},
	{PECTL_REG, 4, .rw = IRQ_IM, .wrote = wrote_irq},
	{PECTL_REG + IRQ_DATA, 4, .rw = UINT32_MAX},
	{PECTL_REG + IRQ_ADDR, 4, .rw = 0xfffffffc},
	{PECTL_REG + IRQ_UADDR, 4, .rw = UINT32_MAX},
};

/* Only with ECAP.PMS. */
static const struct row perf_rows[] = {
	{PERFCAP_REG, 8},
	{PERFCFGOFF_REG, 4},
	{PERFFRZOFF_REG, 4},
	{PERFOVFOFF_REG, 4},
	{PERFCNTROFF_REG, 4},
	{PERFINTRSTS_REG, 4, .w1c = 1, .wrote = wrote_perf_status},
	{PERFINTRCTL_REG, 4, .rw = IRQ_IM, .wrote = wrote_irq},
	{PERFINTRCTL_REG + IRQ_DATA, 4, .rw = 0xffff},
	{PERFINTRCTL_REG + IRQ_ADDR, 4, .rw = 0xfffffffc},
	{PERFINTRCTL_REG + IRQ_UADDR, 4, .rw = UINT32_MAX},
};

/* Only with CAP.ECMDS. */
static const struct row command_rows[] = {
	{ECMD_REG, 8, .rw = ALL & ~UINT64_C(0xff00), .write_only = ALL, .wrote = wrote_command},
	{ECEO_REG, 8, .rw = ALL, .write_only = ALL},
	{ECRSP_REG, 8},
};

/* At FRO and IRO; every fault record is two of the first. */
static const struct row record_row = {0, 8, .w1c = FRCD_F, .wrote = wrote_fault_record};
static const struct row direct_row = {0, 8, .rw = ALL, .wrote = wrote_direct};

#define NROWS	    (sizeof(rows) / sizeof(rows[0]))
#define NPERF	    (sizeof(perf_rows) / sizeof(perf_rows[0]))
#define NCOMMAND    (sizeof(command_rows) / sizeof(command_rows[0]))
#define ROW_PERF    NROWS
#define ROW_COMMAND (ROW_PERF + NPERF)
#define ROW_DIRECT  (ROW_COMMAND + NCOMMAND)
#define ROW_RECORD  (ROW_DIRECT + 2)

/* The row of a word: a copy, because the place of some is the unit's choice. */
static bool row_at(const struct quipu_vtd *u, uint32_t offset, struct row *row)
{
	unsigned i = u->row_of[offset / 4];

	if (!i--)
		return false;
	if (i < ROW_PERF) {
		*row = rows[i];
	} else if (i < ROW_COMMAND) {
		*row = perf_rows[i - ROW_PERF];
	} else if (i < ROW_DIRECT) {
		*row = command_rows[i - ROW_COMMAND];
	} else if (i < ROW_RECORD) {
		*row = direct_row;
		row->offset = ECAP_IRO(u->config.ecap) + 8 * (uint32_t)(i - ROW_DIRECT);
	} else {
		*row = record_row;
		row->offset = CAP_FRO(u->config.cap) + 16 * (uint32_t)(i - ROW_RECORD) + 8;
	}
	return true;
}

static void place(struct quipu_vtd *u, uint32_t offset, unsigned width, size_t row)
{
	for (unsigned w = 0; w < width / 4; w++)
		u->row_of[offset / 4 + w] = (uint16_t)(row + 1);
}

static void place_rows(struct quipu_vtd *u)
{
	const struct quipu_vtd_config *c = &u->config;

	memset(u->row_of, 0, sizeof(*u->row_of) * (c->window / 4));
	for (size_t i = 0; i < NROWS; i++)
		place(u, rows[i].offset, rows[i].width, i);
	for (size_t i = 0; i < NPERF && (c->ecap & ECAP_PMS); i++)
		place(u, perf_rows[i].offset, perf_rows[i].width, ROW_PERF + i);
	for (size_t i = 0; i < NCOMMAND && (c->cap & CAP_ECMDS); i++)
		place(u, command_rows[i].offset, command_rows[i].width, ROW_COMMAND + i);
	for (unsigned i = 0; i < 2; i++)
		place(u, ECAP_IRO(c->ecap) + 8 * i, 8, ROW_DIRECT + i);
	for (unsigned n = 0; n < CAP_NFR(c->cap); n++)
		place(u, CAP_FRO(c->cap) + 16 * n + 8, 8, ROW_RECORD + n);
}

static void preset_perfmon(struct quipu_vtd *u)
{
	const struct quipu_vtd_config *c = &u->config;

	vtd_set64(u, PERFCAP_REG, c->perfcap);
	vtd_set32(u, PERFCFGOFF_REG, c->perfcfgoff);
	vtd_set32(u, PERFFRZOFF_REG, c->perffrzoff);
	vtd_set32(u, PERFOVFOFF_REG, c->perfovfoff);
	vtd_set32(u, PERFCNTROFF_REG, c->perfcntroff);
	vtd_set32(u, PERFINTRCTL_REG, (uint32_t)IRQ_IM);
	for (unsigned g = 0; g < PERFCAP_EGCNT(c->perfcap); g++)
		vtd_set64(u, PERFEVNTCAP_REG + 8 * g, c->perfevntcap[g]);
}

static void preset(struct quipu_vtd *u)
{
	const struct quipu_vtd_config *c = &u->config;

	memset(u->regs, 0, c->window);
	vtd_set32(u, VER_REG, c->version);
	vtd_set64(u, CAP_REG, c->cap);
	vtd_set64(u, ECAP_REG, c->ecap);
	vtd_set32(u, FECTL_REG, (uint32_t)IRQ_IM);
	vtd_set32(u, IECTL_REG, (uint32_t)IRQ_IM);
	vtd_set32(u, PECTL_REG, (uint32_t)IRQ_IM);
	if (c->ecap & ECAP_PMS)
		preset_perfmon(u);
	for (unsigned i = 0; i < 4 && (c->cap & CAP_ECMDS); i++)
		vtd_set64(u, ECCAP_REG + 8 * i, c->eccap[i]);
}

/* ---- access ---- */

static bool claims(const struct quipu_vtd *u, uint32_t offset, unsigned width)
{
	return (width == 4 || width == 8) && !(offset & (width - 1)) && offset < u->config.window &&
	       u->config.window - offset >= width;
}

static uint32_t read_word(struct quipu_vtd *u, uint32_t offset)
{
	struct row row;
	uint64_t value;

	if (vtd_perfmon_read(u, offset, 4, &value))
		return (uint32_t)value;
	if (row_at(u, offset, &row) && row.write_only)
		return 0;
	return vtd_reg32(u, offset);
}

uint64_t quipu_vtd_read(struct quipu_vtd *u, uint32_t offset, unsigned width)
{
	uint64_t value;

	if (!claims(u, offset, width))
		return bits_mask(width == 4 ? 32 : 64);
	/* The response of a command is asked for as a whole: one read is one step of its progress.
	 */
	if (offset == ECRSP_REG && (u->config.cap & CAP_ECMDS)) {
		value = vtd_command_status(u);
		return width == 4 ? (uint32_t)value : value;
	}
	value = read_word(u, offset);
	if (width == 8)
		value |= (uint64_t)read_word(u, offset + 4) << 32;
	return value;
}

/* The 32 bits of @row that lie at @offset. */
static void write_word(struct quipu_vtd *u, const struct row *row, uint32_t offset, uint32_t value)
{
	unsigned shift = offset == row->offset ? 0 : 32;
	uint32_t rw = (uint32_t)(row->rw >> shift), w1c = (uint32_t)(row->w1c >> shift);
	uint32_t old = vtd_reg32(u, offset);

	vtd_set32(u, offset, (((old & ~rw) | (value & rw)) & ~(value & w1c)));
}

/* Commands are dropped while one is in progress, operands as well. */
static bool busy(const struct quipu_vtd *u, const struct row *row)
{
	return (row->offset == ECMD_REG || row->offset == ECEO_REG) && u->ecmd_left;
}

void quipu_vtd_write(struct quipu_vtd *u, uint32_t offset, unsigned width, uint64_t value)
{
	struct row row;
	unsigned halves = 0;

	if (!claims(u, offset, width))
		return;
	if (vtd_perfmon_write(u, offset, width, value))
		return;
	if (!row_at(u, offset, &row)) {
		/* Nothing at the low word of a 64-bit access: the high one may still be a register
		 * of 32 bits. */
		if (width == 8 && row_at(u, offset + 4, &row))
			quipu_vtd_write(u, offset + 4, 4, value >> 32);
		return;
	}
	if (busy(u, &row))
		return;
	for (unsigned w = 0; w < width / 4 && offset + 4 * w < row.offset + row.width; w++) {
		write_word(u, &row, offset + 4 * w, (uint32_t)(value >> 32 * w));
		halves |= offset + 4 * w == row.offset ? LOW : HIGH;
	}
	if (row.wrote)
		row.wrote(u, &row, halves == HIGH ? value << 32 : value, halves);
	if (width == 8 && row.width == 4)
		quipu_vtd_write(u, offset + 4, 4, value >> 32);
}

/* ---- life ---- */

static bool inside(uint32_t offset, uint64_t length, uint32_t window)
{
	return offset <= window && length <= window - offset;
}

static const char *check(const struct quipu_vtd_config *c)
{
	if (c->window < 0x1000 || c->window > 0x100000 || c->window % 0x1000)
		return "the register window is not 4 KiB to 1 MiB in whole pages";
	if (c->haw < 32 || c->haw > 52)
		return "the host address width is not 32 to 52 bits";
	if (!inside(CAP_FRO(c->cap), 16ull * CAP_NFR(c->cap), c->window))
		return "the fault records (CAP_REG.FRO, NFR) lie outside the register window";
	if (!inside(ECAP_IRO(c->ecap), 16, c->window))
		return "the invalidation registers (ECAP_REG.IRO) lie outside the register window";
	if ((c->ecap & ECAP_PMS) && !(c->cap & CAP_ECMDS))
		return "performance monitoring (ECAP_REG.PMS) without enhanced commands "
		       "(CAP_REG.ECMDS)";
	if (!c->clock_hz || c->clock_hz > UINT64_C(1000000000000))
		return "the clock is not 1 Hz to 1 THz";
	if (c->mem_latency > 1000000)
		return "the memory latency is above 10^6 clocks";
	if (c->queued && (!c->max_outstanding || c->max_outstanding > MAX_SLOTS || !c->walkers ||
			  c->walkers > MAX_SLOTS || !c->ats_credits || c->ats_credits > MAX_SLOTS))
		return "queued timing needs 1 to 256 outstanding reads, walkers and credits";
	return NULL;
}

static int make_caches(struct quipu_vtd *u)
{
	const struct quipu_vtd_config *c = &u->config;
	const struct {
		struct vtd_cache *cache;
		struct quipu_vtd_geometry geometry;
		size_t payload;
	} all[] = {
		{&u->iotlb[0], c->iotlb[0], sizeof(struct vtd_leaf)},
		{&u->iotlb[1], c->iotlb[1], sizeof(struct vtd_leaf)},
		{&u->iotlb[2], c->iotlb[2], sizeof(struct vtd_leaf)},
		{&u->context, c->context, sizeof(struct vtd_context)},
		{&u->pasid, c->pasid, sizeof(struct vtd_pasid)},
		{&u->iec, c->iec, sizeof(struct vtd_irte)},
		{&u->fs_psc[0], c->fs_psc[0], sizeof(struct vtd_nonleaf)},
		{&u->fs_psc[1], c->fs_psc[1], sizeof(struct vtd_nonleaf)},
		{&u->fs_psc[2], c->fs_psc[2], sizeof(struct vtd_nonleaf)},
		{&u->fs_psc[3], c->fs_psc[3], sizeof(struct vtd_nonleaf)},
		{&u->ss_psc[0], c->ss_psc[0], sizeof(struct vtd_nonleaf)},
		{&u->ss_psc[1], c->ss_psc[1], sizeof(struct vtd_nonleaf)},
		{&u->ss_psc[2], c->ss_psc[2], sizeof(struct vtd_nonleaf)},
		{&u->ss_psc[3], c->ss_psc[3], sizeof(struct vtd_nonleaf)},
		{&u->hpt_leaf, c->hpt_leaf, sizeof(struct vtd_hpt_leaf)},
		{&u->hpt_psc[0], c->hpt_nonleaf, sizeof(uint64_t)},
		{&u->hpt_psc[1], c->hpt_nonleaf, sizeof(uint64_t)},
		{&u->hpt_psc[2], c->hpt_nonleaf, sizeof(uint64_t)},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int err = vtd_cache_init(all[i].cache, all[i].geometry, all[i].payload,
					 c->replacement, c->seed + i);

		if (err)
			return err;
	}
	return 0;
}

static struct vtd_cache *cache_number(struct quipu_vtd *u, unsigned i)
{
	struct vtd_cache *all[] = {&u->iotlb[0],   &u->iotlb[1],  &u->iotlb[2],	 &u->context,
				   &u->pasid,	   &u->iec,	  &u->fs_psc[0], &u->fs_psc[1],
				   &u->fs_psc[2],  &u->fs_psc[3], &u->ss_psc[0], &u->ss_psc[1],
				   &u->ss_psc[2],  &u->ss_psc[3], &u->hpt_leaf,	 &u->hpt_psc[0],
				   &u->hpt_psc[1], &u->hpt_psc[2]};

	return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

void quipu_vtd_reset(struct quipu_vtd *u)
{
	struct vtd_cache *cache;

	preset(u);
	u->root = u->irt = u->irt_size = 0;
	u->ttm = 0;
	u->tes = u->ires = u->qies = u->cfis = u->eime = false;
	u->fault_index = 0;
	u->now_ns = u->clocks = 0;
	for (unsigned i = 0; (cache = cache_number(u, i)); i++)
		vtd_cache_clear(cache);
	vtd_timing_reset(u);
	vtd_perfmon_reset(u);
}

struct quipu_vtd *quipu_vtd_new(const struct quipu_vtd_config *config,
				const struct quipu_vtd_ops *ops, void *arg, const char **why)
{
	struct quipu_vtd *u = NULL;
	const char *wrong = check(config);
	int err;

	if (wrong)
		goto fail;
	u = calloc(1, sizeof(*u));
	if (!u)
		goto fail;
	u->config = *config;
	u->ops = ops;
	u->arg = arg;
	u->hpa_mask = bits_mask(config->haw) & ~UINT64_C(0xfff);
	u->regs = calloc(config->window / 4, sizeof(*u->regs));
	u->row_of = calloc(config->window / 4, sizeof(*u->row_of));
	if (!u->regs || !u->row_of)
		goto fail;
	err = make_caches(u);
	if (err) {
		wrong = err == -ENOMEM
				? NULL
				: "a cache's entries and ways do not make a power of two of sets";
		goto fail;
	}
	if (vtd_perfmon_init(u, &wrong))
		goto fail;
	place_rows(u);
	quipu_vtd_reset(u);
	return u;
fail:
	if (why)
		*why = wrong;
	quipu_vtd_free(u);
	return NULL;
}

void quipu_vtd_free(struct quipu_vtd *u)
{
	struct vtd_cache *cache;

	if (!u)
		return;
	for (unsigned i = 0; (cache = cache_number(u, i)); i++)
		vtd_cache_destroy(cache);
	free(u->regs);
	free(u->row_of);
	free(u);
}

const struct quipu_vtd_config *quipu_vtd_configuration(const struct quipu_vtd *u)
{
	return &u->config;
}

uint64_t quipu_vtd_time(const struct quipu_vtd *u)
{
	return u->now_ns;
}
