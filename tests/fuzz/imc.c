/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POWER9 collection fed by libFuzzer: device trees and catalogs, OPAL arguments, SCOM and LDBAR
 * values, counter memory, events of the drivers on top. An input that begins as a flattened tree is
 * one (give the compiled machines as seeds) and is brought to life; any other is a catalog of a few
 * units, whose numbers and names are the first bytes, and then steps. Besides what the sanitizers
 * see: trace records add up, and memory that nobody pointed hardware at stays as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>
#include <quipu/imc.h>
#include <quipu/event.h>

#include "platform/imc/room.h"

#define FDT_BYTES 16384
#define CPUS	  8u /* two chips of one core with four threads */
#define STEPS	  300u
#define EVENTS	  6u

struct input {
	const uint8_t *at, *end;
};

struct fuzz {
	struct input in;
	struct quipu_machine *machine;
	struct quipu_manual_signals *manual;
	struct quipu_core *core;
	void *room;
	struct quipu_imc *imc;
	uint64_t mine[3]; /* memory of a driver of one's own */
	uint64_t ns;
	struct quipu_event *event[EVENTS];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t take(struct input *in, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(in->end - in->at) < n)
		n = (size_t)(in->end - in->at);
	memcpy(&v, in->at, n);
	in->at += n;
	return v;
}

/* ---- a catalog ---- */

/* libfdt's own is a macro that evaluates its text twice. */
static void put_string(void *fdt, const char *name, const char *text)
{
	fdt_property(fdt, name, text, (int)strlen(text) + 1);
}

static void put_event(void *fdt, struct input *in, unsigned at)
{
	static const char *const names[] = {"NON_IDLE_INST",
					    "32MHZ_CYC",
					    "CS_BR_MPRED_USER",
					    "128B_RD_DISP_PORT01",
					    "READ_BYTES",
					    "cycles",
					    "",
					    "/"};
	uint32_t reg[2] = {cpu_to_fdt32((uint32_t)take(in, at & 1 ? 2 : 4)), cpu_to_fdt32(8)};
	char node[32];

	snprintf(node, sizeof(node), "event@%x", at);
	fdt_begin_node(fdt, node);
	if (take(in, 1) & 15)
		put_string(fdt, "event-name", names[take(in, 1) & 7]);
	fdt_property(fdt, "reg", reg, take(in, 1) & 7 ? 8 : 4);
	if (take(in, 1) & 1)
		put_string(fdt, "scale", take(in, 1) & 1 ? "0.5" : "18446744073709551616");
	fdt_end_node(fdt);
}

static void put_unit(void *fdt, struct input *in, unsigned i)
{
	static const char *const names[] = {"mcs01@c8", "core@18",  "thread@18",
					    "trace@0",	"mba3@448", "mcs23@48"};
	static const uint32_t types[] = {0x10, 0x4, 0x1, 0x2, 0x10, 0x10};
	uint32_t chips[2] = {cpu_to_fdt32(0), cpu_to_fdt32((uint32_t)take(in, 1))};

	fdt_begin_node(fdt, names[i]);
	fdt_property_string(fdt, "compatible", "ibm,imc-counters");
	fdt_property_u32(fdt, "type", take(in, 1) & 15 ? types[i] : (uint32_t)take(in, 4));
	fdt_property_u32(fdt, "size",
			 take(in, 1) & 7 ? (types[i] & 5 ? 0x2000 : 0x40000)
					 : (uint32_t)take(in, 4));
	fdt_property_u32(fdt, "reg", (uint32_t)take(in, 1) * 8);
	fdt_property_u32(fdt, "events", 1 + (uint32_t)(take(in, 1) & 3));
	fdt_property_string(fdt, "events-prefix", "CPM_");
	put_string(fdt, "scale", take(in, 1) & 1 ? "512" : "0");
	if (types[i] == 0x10) {
		fdt_property_u32(fdt, "offset", take(in, 1) & 7 ? 0x180000 : (uint32_t)take(in, 4));
		fdt_property_u32(fdt, "cb_offset",
				 take(in, 1) & 7 ? 0x3fc00 : (uint32_t)take(in, 4));
		fdt_property(fdt, "chip-id", chips, 8);
	}
	fdt_end_node(fdt);
}

static void put_cpus(void *fdt)
{
	fdt_begin_node(fdt, "cpus");
	fdt_property_u32(fdt, "#address-cells", 1);
	fdt_property_u32(fdt, "#size-cells", 0);
	fdt_property_string(fdt, "quipu,isa", "ppc64le");
	for (unsigned chip = 0; chip < 2; chip++) {
		uint32_t threads[4];
		char node[32];

		for (unsigned i = 0; i < 4; i++)
			threads[i] = cpu_to_fdt32(0x800 * chip + i);
		snprintf(node, sizeof(node), "cpu@%x", 0x800 * chip);
		fdt_begin_node(fdt, node);
		fdt_property_string(fdt, "device_type", "cpu");
		fdt_property_u32(fdt, "reg", 0x800 * chip);
		fdt_property(fdt, "ibm,ppc-interrupt-server#s", threads, sizeof(threads));
		fdt_property_u32(fdt, "ibm,chip-id", 8 * chip);
		fdt_property_u32(fdt, "cpu-version", 0x004e1202);
		fdt_property_u32(fdt, "clock-frequency", 3000000000u);
		fdt_end_node(fdt);
	}
	fdt_end_node(fdt);
}

static bool make_tree(void *fdt, struct input *in)
{
	unsigned lists = 1 + (unsigned)(take(in, 1) & 1);

	fdt_create(fdt, FDT_BYTES);
	fdt_finish_reservemap(fdt);
	fdt_begin_node(fdt, "");
	put_cpus(fdt);
	fdt_begin_node(fdt, "imc-counters");
	fdt_property_string(fdt, "compatible", "ibm,opal-in-memory-counters");
	if (take(in, 1) & 1)
		fdt_property(fdt, "quipu,imc-exact", NULL, 0);
	for (unsigned i = 0; i < lists; i++) {
		char node[16];
		unsigned events = (unsigned)(take(in, 1) & 7);

		snprintf(node, sizeof(node), "list%u", i);
		fdt_begin_node(fdt, node);
		fdt_property_u32(fdt, "phandle", 1 + i);
		for (unsigned e = 0; e < events; e++)
			put_event(fdt, in, e);
		fdt_end_node(fdt);
	}
	for (unsigned i = 0; i < 6; i++)
		if (take(in, 1) & 7)
			put_unit(fdt, in, i);
	fdt_end_node(fdt);
	fdt_end_node(fdt);
	return !fdt_finish(fdt);
}

/* ---- steps ---- */

static uint64_t now(void *arg)
{
	return ((struct fuzz *)arg)->ns;
}

static uint64_t core_now(void *arg, unsigned cpu)
{
	(void)cpu;
	return now(arg);
}

static void on_interrupt(void *arg, const struct quipu_interrupt *irq)
{
	struct fuzz *f = arg;

	if (f->room)
		quipu_platform_imc.interrupt(f->room, irq);
}

static uint64_t address(struct fuzz *f)
{
	uint64_t region = quipu_imc_region(f->imc, take(&f->in, 1) & 1 ? 8 : 0);

	switch (take(&f->in, 1) & 7) {
	case 0: return f->mine[take(&f->in, 1) % 3];
	case 1: return f->mine[take(&f->in, 1) % 3] + take(&f->in, 3);
	case 2: return region + 0x3fc00 + 8 * (take(&f->in, 1) & 7); /* control block */
	case 3: return region + take(&f->in, 3);
	case 4: return -take(&f->in, 1);
	case 5: return take(&f->in, 8);
	default: return f->mine[0];
	}
}

static void open_one(struct fuzz *f)
{
	const struct quipu_caller who = {.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	struct quipu_event **slot = &f->event[take(&f->in, 1) % EVENTS];
	struct quipu_pmu *const *pmus;
	struct quipu_attr attr = {.size = sizeof(attr)};
	size_t n;
	uint32_t back;

	quipu_event_close(*slot);
	*slot = NULL;
	pmus = quipu_core_pmus(f->core, &n);
	if (!n)
		return;
	attr.type = (uint32_t)pmus[take(&f->in, 1) % n]->type;
	attr.config = take(&f->in, take(&f->in, 1) & 1 ? 8 : 2);
	attr.sample_period = take(&f->in, 1) & 3 ? 0 : take(&f->in, 2);
	if (quipu_event_open(f->core, &who, &attr, sizeof(attr), take(&f->in, 1) & 1 ? 100 : -1,
			     (int)(take(&f->in, 1) % (CPUS + 1)) - 1, NULL, 0, &back, slot))
		*slot = NULL;
}

static void step(struct fuzz *f)
{
	static const uint64_t scoms[] = {0x1001220b, 0x10012200, 0x20010aa8, 0x20010aa9};
	unsigned cpu = (unsigned)(take(&f->in, 1) % (CPUS + 1));
	uint64_t args[8], v;

	switch (take(&f->in, 1) % 10) {
	case 0:
		args[0] = take(&f->in, 1) & 7 ? take(&f->in, 1) % 5 : take(&f->in, 8);
		args[1] = take(&f->in, 1) & 1 ? take(&f->in, 2) : address(f);
		args[2] = take(&f->in, 2);
		quipu_opal_call(f->imc, cpu, 149 + take(&f->in, 1) % 4, args);
		break;
	case 1:
		quipu_imc_scom_write(f->imc, take(&f->in, 1) & 1 ? 8 : 0,
				     scoms[take(&f->in, 1) & 3], take(&f->in, 8));
		break;
	case 2:
		quipu_imc_ldbar_write(f->imc, cpu,
				      take(&f->in, 1) << 62 | (address(f) & QUIPU_IMC_ADDRESS));
		break;
	case 3: quipu_imc_write64(f->imc, address(f), take(&f->in, 8)); break;
	case 4:
		quipu_imc_read64(f->imc, address(f));
		quipu_imc_scom_read(f->imc, (uint32_t)take(&f->in, 1), take(&f->in, 8), &v);
		break;
	case 5:
		f->ns += take(&f->in, 3);
		quipu_imc_advance(f->imc);
		break;
	case 6:
		quipu_manual_signals_feed(f->manual, cpu % CPUS, QUIPU_SIGNAL_CYCLES,
					  take(&f->in, 3), take(&f->in, 8));
		break;
	case 7:
		quipu_manual_signals_feed(f->manual, cpu % CPUS,
					  QUIPU_SIGNAL_PAIR_READ_LINES + take(&f->in, 1) % 8,
					  take(&f->in, 3), 0);
		break;
	case 8: open_one(f); break;
	default:
		quipu_imc_traffic(f->imc, (uint32_t)take(&f->in, 1), (unsigned)take(&f->in, 1),
				  (enum quipu_imc_traffic)(take(&f->in, 1) % 3), take(&f->in, 4));
	}
}

static void check(struct fuzz *f, uint64_t bystander)
{
	uint8_t memory[0x2000];

	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		struct quipu_imc_trace_count n;

		quipu_imc_trace_counts(f->imc, cpu, &n);
		if (n.written != n.taken + n.overwritten + n.left)
			abort();
	}
	if (quipu_imc_read(f->imc, bystander, memory, sizeof(memory)))
		abort();
	for (size_t i = 0; i < sizeof(memory); i++)
		if (memory[i])
			abort();
}

static void run(struct fuzz *f)
{
	struct quipu_task *task = quipu_task_new(f->core, NULL, 100, 100, false, "fuzz", 0);
	uint64_t bystander;

	if (task)
		quipu_sched_in(f->core, 0, task);
	for (unsigned i = 0; i < 3; i++)
		f->mine[i] = quipu_imc_alloc(f->imc, i ? 0x40000 : 0x2000);
	for (unsigned i = 0; i < STEPS && f->in.at < f->in.end; i++)
		step(f);
	bystander = quipu_imc_alloc(f->imc, 0x2000);
	if (bystander)
		check(f, bystander);
	for (unsigned i = 0; i < EVENTS; i++)
		quipu_event_close(f->event[i]);
}

/* The room on the machine, if the tree has one. */
static void bring_up(struct fuzz *f, struct quipu_notes *notes)
{
	static const struct quipu_core_ops ops = {.now = core_now};
	struct quipu_core_config config = {.ncpus = f->machine->ncpus, .hz = 100, .paranoid = -1};
	struct quipu_platform_env env = {
		.machine = f->machine, .notes = notes, .now = now, .now_arg = f};
	struct quipu_signals *signals;

	f->manual = quipu_manual_signals_new(f->machine->ncpus);
	f->core = quipu_core_new(&config, &ops, f);
	if (!f->manual || !f->core || !quipu_platform_imc.matches(f->machine))
		return;
	signals = quipu_manual_signals_base(f->manual);
	signals->interrupt = on_interrupt;
	signals->arg = f;
	env.core = f->core;
	env.signals = signals;
	if (!quipu_platform_imc.create(&env, &f->room))
		f->imc = imc_room_hardware(f->room);
	else
		f->room = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {.in = {data, data + size}};
	bool tree = size >= 40 && fdt_magic(data) == FDT_MAGIC;
	struct quipu_notes notes = {0};
	static uint8_t fdt[FDT_BYTES];

	if (tree)
		f.machine = quipu_machine_parse(data, size, "fuzz", &notes);
	else if (make_tree(fdt, &f.in))
		f.machine = quipu_machine_parse(fdt, fdt_totalsize(fdt), "fuzz", &notes);
	if (f.machine && f.machine->ncpus <= 64)
		bring_up(&f, &notes);
	if (f.imc && !tree)
		run(&f);
	quipu_core_free(f.core);
	if (f.room)
		quipu_platform_imc.destroy(f.room);
	quipu_manual_signals_free(f.manual);
	quipu_machine_free(f.machine);
	quipu_notes_free(&notes);
	return 0;
}
