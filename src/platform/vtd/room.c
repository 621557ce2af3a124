// SPDX-License-Identifier: BSD-2-Clause
/*
 * The VT-d room as the machine sees it: units, the tables and devices that its tree describes, and
 * a driver on each. Devices run in model time: whenever the driver touches a unit, and whenever the
 * machine tells its time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include "engine/dma/trace.h"
#include "platform/vtd/registers.h"
#include "platform/vtd/room.h"

#define MEMORY_LIMIT  (UINT64_C(1) << 46)
#define TABLES_AT     UINT64_C(0x4000000000)
#define BUFFERS_AT    UINT64_C(0x100000000000)
#define PERF_MSI_ADDR UINT64_C(0xfee00000)
#define PERF_MSI_DATA 0x30u
#define NESTED_TABLES                                                                              \
	UINT64_C(0x40000000) /* guest-physical; buffers of a nested domain lie above */
#define IRTE_ENTRIES 256u

struct unit {
	struct vtd_room *room;
	struct vtd_unit_node node;
	struct quipu_vtd *vtd;
	struct quipu_vtd_tables *tables;
	struct quipu_vtd_domain *domain[VTD_MAX_DOMAINS];
	struct quipu_vtd_queue queue;
	struct dma_traffic *traffic;
	struct vtd_driver *driver;
	struct vtd_class shown;	      /* in /sys/class/iommu */
	const char *no_pmu;	      /* why there is none */
	bool busy;		      /* its traffic is running */
	bool coupled;		      /* some of it follows what programs read and write */
	bool absent;		      /* taken out of the running machine, at gone_at */
	uint64_t gone_at, interrupts; /* interrupts: address of its remapping table */
};

struct vtd_room {
	struct quipu_platform_env env;
	struct quipu_vtd_memory *memory;
	struct vtd_cpumask cpumask;
	struct unit *units;
	unsigned nunits;
	uint64_t now;
	uint64_t next_buffer;
};

/* ---- what is around a unit ---- */

static void *unit_page(void *arg, uint64_t addr, bool write)
{
	return quipu_vtd_memory_page(((struct unit *)arg)->room->memory, addr, write);
}

/* Interrupts of devices go to CPUs that this model does not have; the unit's own one is the
 * driver's. */
static void unit_msi(void *arg, uint64_t addr, uint32_t data)
{
	struct unit *u = arg;

	if (addr == PERF_MSI_ADDR && data == PERF_MSI_DATA && u->driver)
		vtd_driver_interrupt(u->driver);
}

static void unit_device_tlb(void *arg, uint16_t rid, int32_t pasid, uint64_t addr, uint64_t size,
			    bool global)
{
	struct unit *u = arg;

	if (u->traffic)
		dma_traffic_device_tlb(u->traffic, rid, pasid, addr, size, global);
}

static const struct quipu_vtd_ops unit_ops = {
	.page = unit_page,
	.msi = unit_msi,
	.device_tlb = unit_device_tlb,
};

static const quipu_signal couple_signal[DMA_COUPLES] = {
	[DMA_READ] = QUIPU_SIGNAL_BYTES_READ,
	[DMA_WRITTEN] = QUIPU_SIGNAL_BYTES_WRITTEN,
	[DMA_SENT] = QUIPU_SIGNAL_BYTES_SENT,
	[DMA_RECEIVED] = QUIPU_SIGNAL_BYTES_RECEIVED,
};

static void tell_moved(struct unit *u)
{
	struct quipu_signals *s = u->room->env.signals;
	uint64_t bytes[DMA_COUPLES] = {0};

	for (unsigned i = 0; i < DMA_COUPLES; i++)
		for (unsigned cpu = 0; cpu < u->room->env.machine->ncpus; cpu++)
			bytes[i] += s->ops->read(s, cpu, couple_signal[i]);
	dma_traffic_moved(u->traffic, bytes);
}

/* The engine counts what programs move only when that is asked for before they start. */
static void couple(struct unit *u, const struct vtd_master_node *m)
{
	struct quipu_signals *s = u->room->env.signals;

	for (unsigned i = 0; i < DMA_COUPLES; i++) {
		if (!(m->config.couple >> i & 1))
			continue;
		u->coupled = true;
		if (!s->ops->has(s, couple_signal[i]) ||
		    (s->ops->want && s->ops->want(s, couple_signal[i])))
			quipu_note(u->room->env.notes, QUIPU_NOTE_IGNORED, "quipu,couple",
				   "the engine does not count the bytes that programs move; device "
				   "%04x stands still",
				   m->config.rid);
	}
}

/* An overflow inside the traffic runs the driver, which must not start the traffic again. */
static void unit_sync(void *arg)
{
	struct unit *u = arg;
	struct vtd_room *room = u->room;
	uint64_t now = room->env.now ? room->env.now(room->env.now_arg) : room->now;

	if (u->busy || u->absent)
		return;
	if (now > room->now)
		room->now = now;
	u->busy = true;
	if (u->coupled)
		tell_moved(u);
	dma_traffic_run(u->traffic, room->now);
	u->busy = false;
}

/* ---- tables and devices ---- */

static int make_domains(struct unit *u)
{
	for (unsigned i = 0; i < u->node.ndomains; i++) {
		const struct vtd_domain_node *n = &u->node.domain[i];
		struct quipu_vtd_domain *parent = n->parent >= 0 ? u->domain[n->parent] : NULL;
		uint64_t host = u->room->next_buffer;
		int err;

		/* The guest's tables: 2 MiB of guest memory in the outer domain. */
		if (parent) {
			u->room->next_buffer += 2 << 20;
			err = quipu_vtd_map(parent, NESTED_TABLES + (uint64_t)i * (2 << 20), host,
					    2 << 20, 4096, 3);
			if (err)
				return err;
		}
		u->domain[i] = quipu_vtd_domain_new(u->tables, n->did, n->stage, n->levels, parent,
						    NESTED_TABLES + (uint64_t)i * (2 << 20));
		if (!u->domain[i])
			return -ENOMEM;
	}
	return 0;
}

/* Buffers of a device: host memory of its own, mapped where the device expects it. */
static int map_buffers(struct unit *u, const struct vtd_master_node *m, uint64_t *pa)
{
	const struct vtd_domain_node *n = &u->node.domain[m->domain];
	uint64_t page = n->page, size = (m->bytes + page - 1) & ~(page - 1), guest;
	unsigned prot = QUIPU_VTD_R | QUIPU_VTD_W | QUIPU_VTD_U;
	int err;

	*pa = (u->room->next_buffer + page - 1) & ~(page - 1);
	u->room->next_buffer = *pa + size;
	if (n->stage == QUIPU_VTD_STAGE_PT || (m->config.ats && m->config.pri))
		return 0;
	if (n->stage != QUIPU_VTD_STAGE_NESTED)
		return quipu_vtd_map(u->domain[m->domain], m->config.iova, *pa, size, page, prot);
	guest = m->config.iova;
	err = quipu_vtd_map(u->domain[n->parent], guest, *pa, size, page, prot);
	return err ? err
		   : quipu_vtd_map(u->domain[m->domain], m->config.iova, guest, size, page, prot);
}

static int attach(struct unit *u, const struct vtd_master_node *m)
{
	unsigned flags = m->config.ats ? QUIPU_VTD_ATS : 0;

	if (m->config.pasid >= 0)
		return quipu_vtd_attach_pasid(u->tables, m->config.rid, (uint32_t)m->config.pasid,
					      u->domain[m->domain], flags);
	return quipu_vtd_attach(u->tables, m->config.rid, u->domain[m->domain], flags);
}

/* An entry of the interrupt table for each device: vector 0x40 + index to APIC 0, remapped or
 * posted. */
static int make_interrupt(struct unit *u, unsigned index, struct vtd_master_node *m, uint64_t table)
{
	uint64_t vector = (uint64_t)(0x40 + index) << 16, lo = vector | 1,
		 hi = UINT64_C(1) << 18 | m->config.rid;

	if (m->posted) {
		uint64_t descriptor = quipu_vtd_memory_alloc(u->room->memory, 1);

		if (!descriptor)
			return -ENOMEM;
		lo |= bits_one(15) | bits_get(descriptor, 31, 6) << 38;
		hi |= bits_get(descriptor, 63, 32) << 32;
	}
	m->config.msi_addr = PERF_MSI_ADDR | 0x10 | index << 5;
	return quipu_vtd_memory_store(u->room->memory, table + 16 * index, lo) ||
			       quipu_vtd_memory_store(u->room->memory, table + 16 * index + 8, hi)
		       ? -ENOMEM
		       : 0;
}

static void enable_interrupts(struct unit *u)
{
	uint32_t on = (uint32_t)quipu_vtd_read(u->vtd, GSTS_REG, 4) & (uint32_t)(G_TE | G_QIE);

	quipu_vtd_write(u->vtd, IRTA_REG, 8, u->interrupts | 7); /* 2^8 entries */
	quipu_vtd_write(u->vtd, GCMD_REG, 4, on | G_SIRTP);
	quipu_vtd_write(u->vtd, GCMD_REG, 4, on | G_IRE);
}

/* A trace uses the unit's own tables: its domains are those of the tree, and more as it names them.
 */
static int make_trace(struct unit *u, const struct vtd_master_node *m)
{
	struct dma_replay *replay =
		dma_replay_guest(u->vtd, u->room->memory, u->node.mode, u->tables, &u->queue);
	int err = replay ? 0 : -ENOMEM;

	for (unsigned i = 0; i < u->node.ndomains && !err; i++)
		err = dma_replay_domain(replay, u->node.domain[i].did, u->domain[i]);
	for (unsigned i = 0; i < u->node.nmasters && !err; i++)
		if (u->node.master[i].config.kind != DMA_TRACE)
			dma_replay_known(replay, u->node.master[i].config.rid);
	if (!err)
		return dma_traffic_add_trace(u->traffic, &m->config, replay);
	dma_replay_free(replay);
	return err;
}

static int make_masters(struct unit *u)
{
	uint64_t table = quipu_vtd_memory_alloc(u->room->memory, 1);
	int err = table ? 0 : -ENOMEM;

	u->interrupts = table;

	for (unsigned i = 0; i < u->node.nmasters && !err; i++) {
		struct vtd_master_node *m = &u->node.master[i];
		uint64_t pa;

		if (m->config.kind == DMA_TRACE) {
			err = make_trace(u, m);
			continue;
		}
		err = map_buffers(u, m, &pa);
		if (!err)
			err = attach(u, m);
		if (!err)
			err = make_interrupt(u, i, m, table);
		if (!err)
			err = dma_traffic_add(u->traffic, &m->config, u->domain[m->domain], pa);
		if (!err)
			couple(u, m);
	}
	return err;
}

/* What a driver programs into a unit that has just been reset. */
static int switch_on(struct unit *u)
{
	struct quipu_vtd_memory *memory = u->room->memory;
	uint64_t pages = quipu_vtd_memory_alloc(memory, 1);
	int err;

	if (!pages)
		return -ENOMEM;
	quipu_vtd_write(u->vtd, PQA_REG, 8, pages);
	err = quipu_vtd_queue_start(&u->queue, u->vtd, memory, u->node.mode == QUIPU_VTD_SCALABLE);
	if (err)
		return err;
	enable_interrupts(u);
	quipu_vtd_enable(u->vtd, quipu_vtd_tables_root(u->tables), u->node.mode);
	return 0;
}

static int make_hardware(struct unit *u, const char **why)
{
	struct quipu_vtd_memory *memory = u->room->memory;
	int err;

	*why = NULL;
	u->vtd = quipu_vtd_new(&u->node.config, &unit_ops, u, why);
	if (!u->vtd)
		return *why ? -EINVAL : -ENOMEM;
	u->tables = quipu_vtd_tables_new(memory, u->node.mode);
	if (!u->tables)
		return -ENOMEM;
	u->traffic = dma_traffic_new(u->vtd, memory, &u->queue);
	if (!u->traffic)
		return -ENOMEM;
	err = make_domains(u);
	if (!err)
		err = make_masters(u);
	if (err == -EEXIST)
		*why = "buffers of two devices overlap in a domain (quipu,iova)";
	return err ? err : switch_on(u);
}

/* As Linux takes them: number 0 is never used, 1 is that of first-stage and pass-through domains.
 */
static unsigned domains_used(const struct unit *u)
{
	unsigned reserved = u->node.mode == QUIPU_VTD_SCALABLE ? 2 : 1, n = reserved;

	for (unsigned i = 0; i < u->node.ndomains; i++)
		n += u->node.domain[i].did >= reserved;
	return n;
}

static int take_driver(struct unit *u)
{
	const struct vtd_driver_env env = {
		.core = u->room->env.core,
		.unit = u->vtd,
		.number = u->node.number,
		.cpumask = &u->room->cpumask,
		.filters_extended = u->node.config.filters_extended,
		.queued = u->node.config.queued,
		.msi_addr = PERF_MSI_ADDR,
		.msi_data = PERF_MSI_DATA,
		.sync = unit_sync,
		.sync_arg = u,
		.trace = u->room->env.trace,
		.trace_arg = u->room->env.trace_arg,
	};

	return vtd_driver_new(&env, &u->driver, &u->no_pmu);
}

/* The unit is there for Linux: its entry among the IOMMUs, and its PMU if it has one. */
static int register_unit(struct unit *u)
{
	struct quipu_core *core = u->room->env.core;
	int err;

	vtd_class_init(&u->shown, u->vtd, u->node.number, u->node.base, domains_used(u));
	err = quipu_core_show(core, u->shown.files);
	if (err)
		return err;
	err = take_driver(u);
	if (err)
		quipu_core_hide(core, u->shown.files);
	return err;
}

static int make_driver(struct unit *u, struct quipu_notes *notes, const char *path)
{
	int err = register_unit(u);

	if (u->no_pmu)
		quipu_note(notes, QUIPU_NOTE_UNDERSTOOD, path, "a remapping unit without a PMU: %s",
			   u->no_pmu);
	else if (!err)
		quipu_note(notes, QUIPU_NOTE_UNDERSTOOD, path, "remapping unit dmar%u with a PMU",
			   u->node.number);
	if (err == -EEXIST)
		quipu_note(notes, QUIPU_NOTE_WRONG, path,
			   "a second unit of number %u (quipu,seq-id)", u->node.number);
	return err;
}

/* ---- the platform ---- */

static bool room_matches(const struct quipu_machine *m)
{
	return vtd_tree_next(m, -1) >= 0;
}

static void room_destroy(void *self)
{
	struct vtd_room *r = self;

	for (unsigned i = 0; r && i < r->nunits; i++) {
		vtd_driver_free(r->units[i].driver);
		dma_traffic_free(r->units[i].traffic);
		quipu_vtd_tables_free(r->units[i].tables);
		quipu_vtd_free(r->units[i].vtd);
	}
	if (!r)
		return;
	vtd_cpumask_destroy(&r->cpumask);
	quipu_vtd_memory_free(r->memory);
	free(r->units);
	free(r);
}

/* DMAR order, which numbers the units that do not say theirs, is that of the tree. */
static int make_unit(struct vtd_room *r, int node, struct quipu_notes *notes)
{
	struct unit *u = &r->units[r->nunits];
	char path[256];
	const char *why;
	int err;

	if (fdt_get_path(r->env.machine->fdt, node, path, sizeof(path)))
		strcpy(path, "?");
	err = vtd_tree_unit(r->env.machine, node, r->nunits, notes, &u->node);
	if (err)
		return err;
	u->room = r;
	r->nunits++;
	err = make_hardware(u, &why);
	if (err) {
		quipu_note(notes, QUIPU_NOTE_WRONG, path, "the unit cannot be set up: %s",
			   why ? why : strerror(-err));
		return err;
	}
	return make_driver(u, notes, path);
}

static int room_create(const struct quipu_platform_env *env, void **self)
{
	struct vtd_room *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->env = *env;
	r->next_buffer = BUFFERS_AT;
	r->memory = quipu_vtd_memory_new(MEMORY_LIMIT, TABLES_AT);
	r->units = calloc(VTD_MAX_UNITS, sizeof(*r->units));
	if (!r->memory || !r->units || vtd_cpumask_init(&r->cpumask, env->machine->ncpus))
		goto fail;
	for (int node = vtd_tree_next(env->machine, -1); node >= 0;
	     node = vtd_tree_next(env->machine, node)) {
		if (r->nunits == VTD_MAX_UNITS) {
			quipu_note(env->notes, QUIPU_NOTE_WRONG, "/",
				   "more than %u remapping units", VTD_MAX_UNITS);
			err = -EINVAL;
			goto fail;
		}
		err = make_unit(r, node, env->notes);
		if (err)
			goto fail;
	}
	*self = r;
	return 0;
fail:
	if (err == -ENOMEM) /* all else has been told where it was found */
		quipu_note(env->notes, QUIPU_NOTE_WRONG, "/", "out of memory for the VT-d room");
	room_destroy(r);
	return err;
}

static void room_interrupt(void *self, const struct quipu_interrupt *irq)
{
	(void)self;
	(void)irq; /* no deadline is armed here: units interrupt from their own traffic */
}

/*
 * Units that nobody counts on are left where they are: what their devices did is made up for, or
 * skipped, when a counter starts, so that it does not matter how often time was told before.
 */
static void room_advance(void *self, uint64_t now_ns)
{
	struct vtd_room *r = self;

	if (now_ns > r->now)
		r->now = now_ns;
	for (unsigned i = 0; i < r->nunits; i++)
		if (quipu_vtd_counting(r->units[i].vtd, NULL))
			unit_sync(&r->units[i]);
}

/* ---- a unit goes, and comes back ---- */

static void take_out(struct unit *u)
{
	unit_sync(u);
	vtd_driver_remove(u->driver);
	quipu_core_hide(u->room->env.core, u->shown.files);
	u->driver = NULL;
	u->gone_at = u->room->now;
	u->absent = true;
}

/* The memory with its tables stayed; the unit and its devices begin anew. */
static int put_back(struct unit *u)
{
	struct vtd_room *room = u->room;
	uint64_t now = room->env.now ? room->env.now(room->env.now_arg) : room->now;
	int err;

	if (now > room->now)
		room->now = now;
	quipu_vtd_reset(u->vtd);
	quipu_vtd_advance(u->vtd, room->now);
	dma_traffic_absent(u->traffic, u->gone_at, room->now);
	err = switch_on(u);
	if (err)
		return err;
	u->absent = false;
	err = register_unit(u);
	u->absent = err;
	return err;
}

static int room_hotplug(void *self, const char *name, bool present)
{
	struct vtd_room *r = self;

	for (unsigned i = 0; i < r->nunits; i++) {
		struct unit *u = &r->units[i];
		char own[16];

		snprintf(own, sizeof(own), "dmar%u", u->node.number);
		if (strcmp(name, own))
			continue;
		if (u->absent != present)
			return -EALREADY;
		if (present)
			return put_back(u);
		take_out(u);
		return 0;
	}
	return -ENODEV;
}

/* ---- for a person ---- */

static void say(quipu_describe_fn *fn, void *arg, unsigned depth, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void say(quipu_describe_fn *fn, void *arg, unsigned depth, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fn(arg, depth, line);
}

static void describe_master(const struct vtd_unit_node *n, const struct vtd_master_node *m,
			    quipu_describe_fn *fn, void *arg)
{
	static const char *const kinds[DMA_KINDS] = {"network card", "NVMe controller", "GPU"};
	static const char *const items[DMA_KINDS] = {"frames", "commands", "accesses"};
	static const char *const stages[] = {"", "first stage", "second stage", "nested",
					     "pass-through"};
	const struct dma_config *c = &m->config;
	char rate[96];

	if (c->kind == DMA_TRACE) {
		say(fn, arg, 2,
		    "a trace of %zu bytes, from its beginning whenever counting begins%s (modelled)",
		    c->trace_len, c->loop ? ", again and again" : "");
		return;
	}

	if (c->couple)
		snprintf(rate, sizeof(rate), "%s as programs %s", items[c->kind],
			 c->kind == DMA_NVME ? "read and write" : "receive and send");
	else if (c->burst)
		snprintf(rate, sizeof(rate),
			 "%" PRIu64 " %s in each %" PRIu64 " ms that are counted", c->burst,
			 items[c->kind], c->burst_period_ns / 1000000);
	else
		snprintf(rate, sizeof(rate), "%" PRIu64 " %s/s of model time", c->rate,
			 items[c->kind]);
	say(fn, arg, 2, "%s %02x:%02x.%x%s, domain %u (%s), %s (modelled)", kinds[c->kind],
	    c->rid >> 8, c->rid >> 3 & 0x1f, c->rid & 7, c->ats ? " with a device TLB" : "",
	    n->domain[m->domain].did, stages[n->domain[m->domain].stage], rate);
}

static void describe_unit(const struct unit *u, quipu_describe_fn *fn, void *arg)
{
	const struct vtd_unit_node *n = &u->node;

	say(fn, arg, 0,
	    "remapping unit dmar%u: VT-d %u.%u at 0x%" PRIx64
	    ", %s mode, profile %s, clock %" PRIu64 " Hz",
	    n->number, n->config.version >> 4 & 0xf, n->config.version & 0xf, n->base,
	    n->mode == QUIPU_VTD_LEGACY ? "legacy" : "scalable",
	    n->profile == QUIPU_VTD_SPR ? "spr" : "full", n->config.clock_hz);
	if (u->driver)
		say(fn, arg, 1,
		    "PMU dmar%u: %u counters of %u bits, counting only; every event modelled",
		    n->number, vtd_driver_counters(u->driver), PERFCAP_CW(n->config.perfcap));
	else
		say(fn, arg, 1, "no PMU: %s", u->absent ? "the unit was taken out" : u->no_pmu);
	say(fn, arg, 1,
	    "IOTLB %u + %u + %u entries (4K, 2M, 1G); a memory read takes %u clocks, %s timing",
	    n->config.iotlb[0].entries, n->config.iotlb[1].entries, n->config.iotlb[2].entries,
	    n->config.mem_latency, n->config.queued ? "queued" : "functional");
	for (unsigned i = 0; i < n->nmasters; i++)
		describe_master(n, &n->master[i], fn, arg);
}

static void room_describe(void *self, quipu_describe_fn *fn, void *arg)
{
	struct vtd_room *r = self;

	for (unsigned i = 0; i < r->nunits; i++)
		describe_unit(&r->units[i], fn, arg);
}

/* The core tells the PMUs of a CPU that comes or goes; the units themselves do not care. */
static void room_cpu_online(void *self, unsigned cpu, bool online)
{
	(void)self;
	(void)cpu;
	(void)online;
}

unsigned vtd_room_units(const void *self)
{
	return ((const struct vtd_room *)self)->nunits;
}

struct quipu_vtd *vtd_room_unit(void *self, unsigned i)
{
	return ((struct vtd_room *)self)->units[i].vtd;
}

struct vtd_driver *vtd_room_driver(void *self, unsigned i)
{
	return ((struct vtd_room *)self)->units[i].driver;
}

const struct dma_traffic *vtd_room_traffic(const void *self, unsigned i)
{
	return ((const struct vtd_room *)self)->units[i].traffic;
}

static const char *const room_nodes[] = {"quipu,vtd",
					 "quipu,dma-ring-nic",
					 "quipu,dma-nvme",
					 "quipu,dma-gpu-stream",
					 "quipu,dma-ats",
					 "quipu,dma-trace",
					 NULL};

const struct quipu_platform quipu_platform_vtd = {
	.name = "vtd",
	.compatible = room_nodes,
	.matches = room_matches,
	.create = room_create,
	.destroy = room_destroy,
	.interrupt = room_interrupt,
	.describe = room_describe,
	.cpu_online = room_cpu_online,
	.advance = room_advance,
	.hotplug = room_hotplug,
};
