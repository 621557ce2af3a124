// SPDX-License-Identifier: BSD-2-Clause
/*
 * Remapping units, their domains and devices, out of a device tree. The binding is ours; README.md
 * lists it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <libfdt.h>

#include "engine/dma/trace.h"
#include "platform/vtd/registers.h"
#include "platform/vtd/room.h"

#define FIRST_IOVA UINT64_C(0x100000000)
#define IOVA_STEP  UINT64_C(0x1000000000)

/* Where we are, for notes and for what is wrong. */
struct at {
	const struct quipu_machine *machine;
	struct quipu_notes *notes;
	int node;
	int err;
};

static void wrong(struct at *at, const char *property, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void wrong(struct at *at, const char *property, const char *fmt, ...)
{
	char path[256], where[320], text[256];
	va_list ap;

	if (fdt_get_path(at->machine->fdt, at->node, path, sizeof(path)))
		strcpy(path, "?");
	snprintf(where, sizeof(where), "%s%s%s", path, property ? ":" : "",
		 property ? property : "");
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	quipu_note(at->notes, QUIPU_NOTE_WRONG, where, "%s", text);
	at->err = -EINVAL;
}

static bool has(const struct at *at, const char *name)
{
	return quipu_machine_property(at->machine, at->node, name, NULL);
}

static void number64(struct at *at, const char *name, uint64_t *value)
{
	*value = quipu_machine_number(at->machine, at->node, name, *value);
}

static void number(struct at *at, const char *name, unsigned *value)
{
	uint64_t v = quipu_machine_number(at->machine, at->node, name, *value);

	if (v > UINT32_MAX)
		wrong(at, name, "a number of more than 32 bits");
	else
		*value = (unsigned)v;
}

static void flag(struct at *at, const char *name, bool *value)
{
	uint64_t v = quipu_machine_number(at->machine, at->node, name, has(at, name) ? 1 : *value);

	*value = v != 0;
}

/* One of @names (NULL-terminated); *value its index. */
static void word(struct at *at, const char *name, const char *const *names, unsigned *value)
{
	char list[160] = "";

	if (!has(at, name))
		return;
	for (unsigned i = 0; names[i]; i++) {
		if (*names[i] && quipu_machine_has_string(at->machine, at->node, name, names[i])) {
			*value = i;
			return;
		}
		if (*names[i])
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				 *list ? ", " : "", names[i]);
	}
	wrong(at, name, "is none of: %s", list);
}

/* Pairs of entries and ways. */
static void geometry(struct at *at, const char *name, struct quipu_vtd_geometry *const *out, int n)
{
	const uint32_t *cells;
	int len = quipu_machine_cells(at->machine, at->node, name, &cells);

	if (len < 0)
		return;
	if (len != 2 * n) {
		wrong(at, name, "needs %d cells: entries and ways of %d cache%s", 2 * n, n,
		      n > 1 ? "s" : "");
		return;
	}
	for (int i = 0; i < n; i++)
		*out[i] = (struct quipu_vtd_geometry){bits_be32(&cells[2 * i]),
						      bits_be32(&cells[2 * i + 1])};
}

/* ---- the unit ---- */

static void read_caches(struct at *at, struct quipu_vtd_config *c)
{
	struct quipu_vtd_geometry *iotlb[] = {&c->iotlb[0], &c->iotlb[1], &c->iotlb[2]};
	struct quipu_vtd_geometry *fs[] = {&c->fs_psc[0], &c->fs_psc[1], &c->fs_psc[2],
					   &c->fs_psc[3]};
	struct quipu_vtd_geometry *ss[] = {&c->ss_psc[0], &c->ss_psc[1], &c->ss_psc[2],
					   &c->ss_psc[3]};
	struct quipu_vtd_geometry *hpt[] = {&c->hpt_leaf, &c->hpt_nonleaf};
	static const char *const policies[] = {"lru", "fifo", "plru", "random", NULL};
	unsigned policy = c->replacement;

	geometry(at, "quipu,iotlb", iotlb, 3);
	geometry(at, "quipu,ctx-cache", (struct quipu_vtd_geometry *[]){&c->context}, 1);
	geometry(at, "quipu,pasid-cache", (struct quipu_vtd_geometry *[]){&c->pasid}, 1);
	geometry(at, "quipu,psc", fs, 4);
	geometry(at, "quipu,psc", ss, 4);
	geometry(at, "quipu,iec", (struct quipu_vtd_geometry *[]){&c->iec}, 1);
	geometry(at, "quipu,hpt-cache", hpt, 2);
	word(at, "quipu,replacement", policies, &policy);
	c->replacement = (enum quipu_vtd_replacement)policy;
	number64(at, "quipu,seed", &c->seed);
}

static void read_registers(struct at *at, struct quipu_vtd_config *c)
{
	number64(at, "quipu,cap", &c->cap);
	number64(at, "quipu,ecap", &c->ecap);
	number64(at, "quipu,perfcap", &c->perfcap);
	number64(at, "quipu,eccap3", &c->eccap[3]);
	number(at, "quipu,haw", &c->haw);
	number(at, "quipu,ecmd-latency", &c->ecmd_latency);
}

static void read_timing(struct at *at, struct quipu_vtd_config *c)
{
	static const char *const timings[] = {"functional", "queued", NULL};
	static const char *const policies[] = {"strict", "extended", NULL};
	unsigned timing = c->queued, policy = c->filters_extended;

	number64(at, "quipu,clock-hz", &c->clock_hz);
	number(at, "quipu,mem-latency", &c->mem_latency);
	word(at, "quipu,timing", timings, &timing);
	word(at, "quipu,filter-policy", policies, &policy);
	c->queued = timing;
	c->filters_extended = policy;
	number(at, "quipu,max-outstanding", &c->max_outstanding);
	number(at, "quipu,walkers", &c->walkers);
	number(at, "quipu,ats-credits", &c->ats_credits);
	number(at, "quipu,ats-credit-clocks", &c->ats_credit_clocks);
	flag(at, "quipu,context-first", &c->context_first);
	flag(at, "quipu,mrds-count-iq", &c->count_iq);
}

static void read_window(struct at *at, struct vtd_unit_node *u)
{
	const uint32_t *cells;
	int n = quipu_machine_cells(at->machine, at->node, "reg", &cells);

	if (n >= 0 && n != 4)
		wrong(at, "reg", "needs address and size, of two cells each");
	if (n != 4)
		return;
	u->base = bits_be64(cells);
	u->config.window = bits_be32(&cells[3]);
	if (bits_be32(&cells[2]))
		wrong(at, "reg", "a register window of more than 4 GiB");
}

/* ---- domains ---- */

static int domain_index(const struct vtd_unit_node *u, uint64_t did)
{
	for (unsigned i = 0; i < u->ndomains; i++)
		if (u->domain[i].did == did)
			return (int)i;
	return -1;
}

static void read_domain(struct at *at, struct vtd_unit_node *u)
{
	static const char *const stages[] = {"", "fs", "ss", "nested", "pt", NULL};
	struct vtd_domain_node *d = &u->domain[u->ndomains];
	unsigned did = 0, stage = QUIPU_VTD_STAGE_SS, levels = 4, parent = 0;

	if (u->ndomains == VTD_MAX_DOMAINS) {
		wrong(at, NULL, "more than %u domains", VTD_MAX_DOMAINS);
		return;
	}
	*d = (struct vtd_domain_node){.page = 4096, .parent = -1};
	number(at, "quipu,did", &did);
	word(at, "quipu,stage", stages, &stage);
	number(at, "quipu,levels", &levels);
	number64(at, "quipu,page-size", &d->page);
	if (did > 0xffff || domain_index(u, did) >= 0)
		wrong(at, "quipu,did", "not a domain id of its own below 65536");
	if (d->page != 4096 && d->page != 2 << 20 && d->page != 1 << 30)
		wrong(at, "quipu,page-size", "pages are of 4 KiB, 2 MiB or 1 GiB");
	if (levels > 5 || levels < (stage == QUIPU_VTD_STAGE_SS ? 3u : 4u))
		wrong(at, "quipu,levels",
		      "second-stage tables have 3 to 5 levels, first-stage ones 4 or 5");
	if (u->mode == QUIPU_VTD_LEGACY &&
	    (stage == QUIPU_VTD_STAGE_FS || stage == QUIPU_VTD_STAGE_NESTED))
		wrong(at, "quipu,stage",
		      "legacy mode has no first stage; set quipu,mode = \"scalable\"");
	if (stage == QUIPU_VTD_STAGE_NESTED) {
		number(at, "quipu,parent", &parent);
		d->parent = domain_index(u, parent);
		if (d->parent < 0 || u->domain[d->parent].stage != QUIPU_VTD_STAGE_SS)
			wrong(at, "quipu,parent", "names no second-stage domain before this one");
	}
	d->did = (uint16_t)did;
	d->stage = (enum quipu_vtd_stage)stage;
	d->levels = levels;
	u->ndomains++;
}

/* ---- devices ---- */

static const struct {
	const char *compatible;
	enum dma_kind kind;
	bool ats;
} masters[] = {
	{"quipu,dma-ring-nic", DMA_RING_NIC, false},
	{"quipu,dma-nvme", DMA_NVME, false},
	{"quipu,dma-gpu-stream", DMA_GPU_STREAM, false},
	{"quipu,dma-ats", DMA_GPU_STREAM, true},
};

static void read_rate(struct at *at, struct dma_config *c)
{
	static const char *const property[DMA_KINDS] = {"quipu,pps", "quipu,iops", "quipu,rate"};
	const uint32_t *cells;

	number64(at, property[c->kind], &c->rate);
	number64(at, "quipu,burst", &c->burst);
	c->burst_period_ns = UINT64_C(1000000000);
	number64(at, "quipu,burst-period-ns", &c->burst_period_ns);
	/* <start> or <start stop>, of one or two cells each by the property's length: 2 cells are
	 * start and stop. */
	switch (quipu_machine_cells(at->machine, at->node, "quipu,start-ns", &cells)) {
	case -1: break;
	case 1: c->start_ns = bits_be32(cells); break;
	case 2:
		c->start_ns = bits_be32(cells);
		c->stop_ns = bits_be32(cells + 1);
		break;
	case 4:
		c->start_ns = bits_be64(cells);
		c->stop_ns = bits_be64(cells + 2);
		break;
	default: wrong(at, "quipu,start-ns", "needs start and stop, of one or two cells each");
	}
}

/* "read,write", or a list of strings. */
static void read_couple(struct at *at, struct dma_config *c)
{
	static const char *const calls[DMA_COUPLES] = {"read", "write", "send", "recv"};
	int len = 0;
	const char *p = quipu_machine_property(at->machine, at->node, "quipu,couple", &len);
	const char *end = p ? p + len : NULL;

	if (p && (!len || p[len - 1]))
		wrong(at, "quipu,couple", "is no string");
	while (p && p < end && !at->err) {
		size_t n = strcspn(p, ",");
		unsigned i = 0;

		while (i < DMA_COUPLES && (strlen(calls[i]) != n || memcmp(p, calls[i], n)))
			i++;
		if (i == DMA_COUPLES)
			wrong(at, "quipu,couple", "is none of: read, write, send, recv");
		c->couple |= 1u << i;
		p += n + 1;
	}
}

static void read_kind(struct at *at, struct dma_config *c)
{
	static const char *const unmaps[] = {"recycle", "strict", "lazy", NULL};
	static const char *const units[] = {"tlp", "page", "dma", NULL};
	unsigned unmap = c->unmap, unit = c->request_unit;

	number(at, "quipu,mps", &c->mps);
	number(at, "quipu,mrrs", &c->mrrs);
	word(at, "quipu,request-unit", units, &unit);
	number64(at, "quipu,seed", &c->seed);
	number(at, "quipu,int-every", &c->int_every);
	number(at, "quipu,int-coalesce", &c->int_every);
	number(at, "quipu,ring", &c->ring);
	number(at, "quipu,desc-bytes", &c->desc_bytes);
	number(at, "quipu,desc-batch", &c->desc_batch);
	number(at, "quipu,frame", &c->frame);
	number(at, "quipu,buf-size", &c->buf_size);
	number(at, "quipu,rx-percent", &c->rx_percent);
	word(at, "quipu,unmap", unmaps, &unmap);
	number(at, "quipu,qd", &c->qd);
	number(at, "quipu,io-bytes", &c->io_bytes);
	number(at, "quipu,read-percent", &c->read_percent);
	number(at, "quipu,pool-pages", &c->pool_pages);
	flag(at, "quipu,prp-list", &c->prp_list);
	number64(at, "quipu,bytes", &c->bytes);
	number(at, "quipu,stride", &c->stride);
	number(at, "quipu,access", &c->access);
	number(at, "quipu,write-percent", &c->write_percent);
	c->unmap = (enum dma_unmap)unmap;
	c->request_unit = (enum dma_unit)unit;
}

static void read_dtlb(struct at *at, struct dma_config *c)
{
	struct quipu_vtd_geometry g = {c->dtlb_entries, c->dtlb_ways};

	c->ats = true;
	c->pri = true;
	flag(at, "quipu,pri", &c->pri);
	number(at, "quipu,outstanding", &c->outstanding);
	number(at, "quipu,resident", &c->resident);
	geometry(at, "quipu,dtlb", (struct quipu_vtd_geometry *[]){&g}, 1);
	c->dtlb_entries = g.entries;
	c->dtlb_ways = g.ways;
}

static void read_target(struct at *at, struct vtd_unit_node *u, struct vtd_master_node *m)
{
	unsigned rid = 0x10000, pasid = 0, did = 0;

	number(at, "quipu,rid", &rid);
	if (rid > 0xffff)
		wrong(at, "quipu,rid", "needs the requester id: bus << 8 | device << 3 | function");
	m->config.rid = (uint16_t)rid;
	m->domain = -1;
	if (has(at, "quipu,domain")) {
		number(at, "quipu,domain", &did);
		m->domain = domain_index(u, did);
	}
	if (m->domain < 0)
		wrong(at, "quipu,domain", "names no domain of this unit");
	if (has(at, "quipu,pasid")) {
		number(at, "quipu,pasid", &pasid);
		m->config.pasid = (int32_t)pasid;
		if (u->mode == QUIPU_VTD_LEGACY || pasid >= 32768 || !pasid)
			wrong(at, "quipu,pasid", "a PASID is 1 to 32767, in scalable mode");
	}
	m->has_iova = has(at, "quipu,iova") || has(at, "quipu,va");
	m->config.iova = FIRST_IOVA + u->nmasters * IOVA_STEP;
	number64(at, "quipu,iova", &m->config.iova);
	number64(at, "quipu,va", &m->config.iova);
}

static void check_target(struct at *at, const struct vtd_unit_node *u,
			 const struct vtd_master_node *m)
{
	const struct vtd_domain_node *d = &u->domain[m->domain];

	if (d->stage != QUIPU_VTD_STAGE_PT && m->config.iova % d->page)
		wrong(at, "quipu,iova", "is not the beginning of a page of the domain");
	if (d->stage == QUIPU_VTD_STAGE_FS && m->config.pasid < 0)
		wrong(at, "quipu,pasid", "a first-stage domain is reached with a PASID");
	if (d->stage == QUIPU_VTD_STAGE_PT && m->config.ats && m->config.pri)
		wrong(at, "quipu,pri", "nothing is ever missing in a pass-through domain");
	if (d->stage == QUIPU_VTD_STAGE_NESTED && m->config.ats && m->config.pri)
		wrong(at, "quipu,pri", "is not modelled for nested domains; set it to <0>");
	if (m->config.unmap != DMA_RECYCLE && (d->stage != QUIPU_VTD_STAGE_SS || d->page != 4096))
		wrong(at, "quipu,unmap", "needs a second-stage domain with pages of 4 KiB");
	if (m->config.ats && u->mode == QUIPU_VTD_LEGACY && m->config.pri)
		wrong(at, "quipu,pri", "page requests need scalable mode");
}

static void read_master(struct at *at, struct vtd_unit_node *u, unsigned which)
{
	struct vtd_master_node *m = &u->master[u->nmasters];
	const char *why;

	if (u->nmasters == VTD_MAX_MASTERS) {
		wrong(at, NULL, "more than %u devices", VTD_MAX_MASTERS);
		return;
	}
	*m = (struct vtd_master_node){0};
	dma_config_init(&m->config, masters[which].kind);
	read_target(at, u, m);
	read_rate(at, &m->config);
	read_kind(at, &m->config);
	read_couple(at, &m->config);
	if (masters[which].ats)
		read_dtlb(at, &m->config);
	flag(at, "quipu,posted", &m->posted);
	if (at->err)
		return;
	m->config.page = u->domain[m->domain].page;
	check_target(at, u, m);
	why = dma_config_check(&m->config, &m->bytes);
	if (why)
		wrong(at, NULL, "%s", why);
	u->nmasters++;
}

/* Every record is read once, so that what is wrong is said now and not when its turn comes. */
static void check_trace(struct at *at, const struct dma_config *c)
{
	struct dma_cursor cursor;
	struct dma_record r;
	const char *why;
	uint64_t last = 0;
	int more;

	if (dma_cursor_open(&cursor, c->trace, c->trace_len)) {
		wrong(at, "quipu,trace",
		      "begins neither with \"# quipu-dma 1\" nor with QDMA; give it the file by "
		      "/incbin/");
		return;
	}
	while ((more = dma_cursor_next(&cursor, &r, &why)) > 0) {
		if (r.time < last) {
			why = "time goes back";
			more = -EINVAL;
			break;
		}
		last = r.time;
	}
	if (more < 0)
		wrong(at, "quipu,trace", "%s %" PRIu64 ": %s", cursor.binary ? "record" : "line",
		      cursor.where, why);
}

/* A device of any requesters, whose requests are all in the tree: quipu,trace = /incbin/("FILE").
 */
static void read_trace(struct at *at, struct vtd_unit_node *u)
{
	struct vtd_master_node *m = &u->master[u->nmasters];
	const uint32_t *cells;
	int len = 0;

	if (u->nmasters == VTD_MAX_MASTERS) {
		wrong(at, NULL, "more than %u devices", VTD_MAX_MASTERS);
		return;
	}
	*m = (struct vtd_master_node){.domain = -1};
	dma_config_init(&m->config, DMA_TRACE);
	m->config.trace = quipu_machine_property(at->machine, at->node, "quipu,trace", &len);
	m->config.trace_len = len > 0 ? (size_t)len : 0;
	flag(at, "quipu,loop", &m->config.loop);
	if (has(at, "quipu,time-scale")) {
		if (quipu_machine_cells(at->machine, at->node, "quipu,time-scale", &cells) == 2) {
			m->config.scale_num = bits_be32(cells);
			m->config.scale_den = bits_be32(cells + 1);
		}
		if (!m->config.scale_num || !m->config.scale_den ||
		    quipu_machine_cells(at->machine, at->node, "quipu,time-scale", &cells) != 2)
			wrong(at, "quipu,time-scale",
			      "needs two cells that are not 0: times are "
			      "multiplied by the first, divided by the second");
	}
	if (!m->config.trace)
		wrong(at, NULL, "a dma-trace needs quipu,trace = /incbin/(\"FILE\")");
	else
		check_trace(at, &m->config);
	u->nmasters++;
}

static int master_kind(const struct at *at)
{
	for (unsigned i = 0; i < sizeof(masters) / sizeof(masters[0]); i++)
		if (quipu_machine_has_string(at->machine, at->node, "compatible",
					     masters[i].compatible))
			return (int)i;
	return -1;
}

/* A child that is neither domain nor device: most likely a name with a slip in it. */
static void ignored(const struct at *at)
{
	const char *compatible =
		fdt_stringlist_get(at->machine->fdt, at->node, "compatible", 0, NULL);
	char path[256];

	if (fdt_get_path(at->machine->fdt, at->node, path, sizeof(path)))
		strcpy(path, "?");
	quipu_note(at->notes, QUIPU_NOTE_IGNORED, path,
		   "neither a domain (quipu,did) nor a device that is modelled%s%s",
		   compatible ? ": " : "", compatible ? compatible : "");
}

/* Domains first: devices name them. */
static void read_children(struct at *at, struct vtd_unit_node *u)
{
	const void *fdt = at->machine->fdt;
	int unit = at->node, node;

	fdt_for_each_subnode(node, fdt, unit)
	{
		at->node = node;
		if (has(at, "quipu,did"))
			read_domain(at, u);
	}
	fdt_for_each_subnode(node, fdt, unit)
	{
		at->node = node;
		if (master_kind(at) >= 0)
			read_master(at, u, (unsigned)master_kind(at));
		else if (quipu_machine_has_string(at->machine, node, "compatible",
						  "quipu,dma-trace"))
			read_trace(at, u);
		else if (!has(at, "quipu,did"))
			ignored(at);
	}
	at->node = unit;
}

int vtd_tree_unit(const struct quipu_machine *m, int node, unsigned index,
		  struct quipu_notes *notes, struct vtd_unit_node *u)
{
	static const char *const profiles[] = {"spr", "full", NULL};
	static const char *const modes[] = {"legacy", "scalable", NULL};
	struct at at = {m, notes, node, 0};
	unsigned profile = QUIPU_VTD_SPR, mode = QUIPU_VTD_SCALABLE;

	memset(u, 0, sizeof(*u));
	word(&at, "quipu,profile", profiles, &profile);
	word(&at, "quipu,mode", modes, &mode);
	u->profile = (enum quipu_vtd_profile)profile;
	u->mode = (enum quipu_vtd_mode)mode;
	u->number = index;
	number(&at, "quipu,seq-id", &u->number);
	if (u->number >= 1024)
		wrong(&at, "quipu,seq-id", "Linux numbers 1024 units at most");
	quipu_vtd_config_init(&u->config, u->profile);
	read_window(&at, u);
	read_registers(&at, &u->config);
	read_timing(&at, &u->config);
	read_caches(&at, &u->config);
	read_children(&at, u);
	return at.err;
}

int vtd_tree_next(const struct quipu_machine *m, int after)
{
	return quipu_machine_find_next(m, after, "quipu,vtd");
}
