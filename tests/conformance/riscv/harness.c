/* SPDX-License-Identifier: BSD-2-Clause */
/* See harness.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <libfdt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>

#include "harness.h"
#include "platform/riscv/room.h"

#define FDT_BYTES 16384

/* QEMU's rows on the counters of hart16: what the sheet's cases were measured with. */
static const uint32_t qemu_ranges[] = {
	0x00001,    0x00001, 0x0007fff9, 0x00002,    0x00002, 0x0007fffc, 0x10019,    0x10019,
	0x0007fff8, 0x1001b, 0x1001b,	 0x0007fff8, 0x10021, 0x10021,	  0x0007fff8,
};

static void put_cells(void *fdt, const char *name, const uint32_t *cells, int n)
{
	uint32_t be[HARNESS_CELLS];

	if (n <= 0)
		return;
	for (int i = 0; i < n; i++)
		be[i] = cpu_to_fdt32(cells[i]);
	assert_return_code(fdt_property(fdt, name, be, n * 4), 0);
}

static void put_properties(void *fdt, const struct tree *t)
{
	for (size_t i = 0; i < 8 && t->strings[i][0]; i++) {
		if (t->strings[i][1][0])
			fdt_property_string(fdt, t->strings[i][0], t->strings[i][1]);
		else
			fdt_property(fdt, t->strings[i][0], NULL, 0);
	}
	for (size_t i = 0; i < 4 && t->numbers[i].name; i++)
		fdt_property_u32(fdt, t->numbers[i].name, t->numbers[i].value);
}

static void put_hart(void *fdt, const struct tree *t, unsigned i)
{
	char name[32], isa[160];

	snprintf(name, sizeof(name), "cpu@%u", i);
	fdt_begin_node(fdt, name);
	fdt_property_string(fdt, "device_type", "cpu");
	fdt_property_string(fdt, "compatible", "riscv");
	fdt_property_u32(fdt, "reg", i);
	snprintf(isa, sizeof(isa), "rv64imafdc%s_zicsr_%s",
		 t->extensions && strstr(t->extensions, "+h") ? "h" : "",
		 t->extensions ? t->extensions : "sscofpmf");
	fdt_property_string(fdt, "riscv,isa", isa);
	fdt_property_u32(fdt, "quipu,hpm-mask", t->mask ? t->mask : 0x7fff8);
	fdt_property_u32(fdt, "quipu,hpm-width", t->width ? t->width : 64);
	fdt_end_node(fdt);
}

static void put_pmu(void *fdt, const struct tree *t)
{
	if (t->pmu && !t->pmu[0])
		return;
	fdt_begin_node(fdt, "pmu");
	fdt_property_string(fdt, "compatible", t->pmu ? t->pmu : "riscv,pmu");
	if (t->legacy_node)
		fdt_property_string(fdt, "device_type", "pmu");
	if (t->nranges == 0 && !t->pmu)
		put_cells(fdt, "riscv,event-to-mhpmcounters", qemu_ranges, sizeof(qemu_ranges) / 4);
	put_cells(fdt, "riscv,event-to-mhpmcounters", t->ranges, t->nranges);
	put_cells(fdt, "riscv,raw-event-to-mhpmcounters", t->raws, t->nraws);
	put_cells(fdt, "riscv,event-to-mhpmevent", t->aliases, t->naliases);
	fdt_end_node(fdt);
}

struct quipu_machine *tree_machine(const struct tree *t, struct quipu_notes *notes)
{
	void *fdt = malloc(FDT_BYTES);
	struct quipu_machine *m;

	assert_non_null(fdt);
	fdt_create(fdt, FDT_BYTES);
	fdt_finish_reservemap(fdt);
	fdt_begin_node(fdt, "");
	fdt_property_string(fdt, "compatible", "quipu,test");
	put_properties(fdt, t);
	fdt_begin_node(fdt, "cpus");
	fdt_property_u32(fdt, "#address-cells", 1);
	fdt_property_u32(fdt, "#size-cells", 0);
	fdt_property_u32(fdt, "timebase-frequency", 10000000);
	for (unsigned i = 0; i < (t->harts ? t->harts : 1); i++)
		put_hart(fdt, t, i);
	fdt_end_node(fdt);
	put_pmu(fdt, t);
	fdt_end_node(fdt);
	assert_return_code(fdt_finish(fdt), 0);
	m = quipu_machine_parse(fdt, fdt_totalsize(fdt), "test", notes);
	free(fdt);
	assert_non_null(m);
	return m;
}

static void on_signal(void *arg, const struct quipu_interrupt *irq)
{
	quipu_riscv_interrupt(((struct harness *)arg)->rv, irq);
}

static void on_trap(void *arg, unsigned hart, unsigned cause, const struct quipu_interrupt *irq)
{
	struct harness *h = arg;
	uint64_t sip = 0;

	(void)irq;
	/* Software interrupts come from the IPI calls of a hostile caller. */
	if (cause != QUIPU_RISCV_LCOFI) {
		quipu_riscv_csr_write(h->rv, hart, QUIPU_RISCV_S, QUIPU_CSR_SIP, 0);
		return;
	}
	h->interrupts++;
	if (h->keep_pending)
		return;
	assert_int_equal(quipu_riscv_csr_read(h->rv, hart, QUIPU_RISCV_S, QUIPU_CSR_SIP, &sip), 0);
	quipu_riscv_csr_write(h->rv, hart, QUIPU_RISCV_S, QUIPU_CSR_SIP,
			      sip & ~bits_one(QUIPU_RISCV_LCOFI));
}

void harness_open(struct harness *h, const struct tree *t)
{
	*h = (struct harness){0};
	h->machine = tree_machine(t, &h->notes);
	h->manual = quipu_manual_signals_new(h->machine->ncpus);
	assert_non_null(h->manual);
	h->signals = quipu_manual_signals_base(h->manual);
	h->rv = quipu_riscv_new(h->machine, h->signals, &h->notes);
	assert_non_null(h->rv);
	h->signals->interrupt = on_signal;
	h->signals->arg = h;
	quipu_riscv_set_handler(h->rv, on_trap, h);
}

void harness_close(struct harness *h)
{
	quipu_riscv_free(h->rv);
	quipu_manual_signals_free(h->manual);
	quipu_machine_free(h->machine);
	quipu_notes_free(&h->notes);
}

bool harness_wrong(const struct quipu_notes *notes, const char *path, const char *text)
{
	for (size_t i = 0; i < notes->n; i++)
		if (notes->items[i].kind == QUIPU_NOTE_WRONG &&
		    strstr(notes->items[i].path, path) && strstr(notes->items[i].text, text))
			return true;
	return false;
}

/* ---- the whole machine ---- */

static uint64_t core_now(void *arg, unsigned cpu)
{
	struct bench *b = arg;

	/* 1 GHz */
	return b->signals->ops->read(b->signals, cpu, QUIPU_SIGNAL_CYCLES);
}

static uint64_t core_signal(void *arg, unsigned cpu, quipu_signal signal)
{
	struct bench *b = arg;

	return b->signals->ops->read(b->signals, cpu, signal);
}

static const struct quipu_core_ops core_ops = {.now = core_now, .signal = core_signal};

static void on_room_signal(void *arg, const struct quipu_interrupt *irq)
{
	struct bench *b = arg;

	quipu_platform_riscv.interrupt(b->room, irq);
}

static void on_trace(void *arg, const char *line)
{
	struct bench *b = arg;
	size_t n = strlen(line);
	char *grown = realloc(b->trace, b->trace_len + n + 2);

	assert_non_null(grown);
	b->trace = grown;
	memcpy(b->trace + b->trace_len, line, n);
	memcpy(b->trace + b->trace_len + n, "\n", 2);
	b->trace_len += n + 1;
}

void bench_trace_clear(struct bench *b)
{
	free(b->trace);
	b->trace = NULL;
	b->trace_len = 0;
}

void bench_open(struct bench *b, const struct tree *t, const quipu_signal *hidden)
{
	struct quipu_platform_env env;
	size_t n;

	*b = (struct bench){0};
	b->machine = tree_machine(t, &b->notes);
	b->manual = quipu_manual_signals_new(b->machine->ncpus);
	b->signals = quipu_manual_signals_base(b->manual);
	for (; hidden && *hidden; hidden++)
		quipu_manual_signals_set_has(b->manual, *hidden, false);
	b->core = quipu_core_new(&(struct quipu_core_config){.ncpus = b->machine->ncpus,
							     .paranoid = -1},
				 &core_ops, b);
	assert_non_null(b->core);
	env = (struct quipu_platform_env){
		.machine = b->machine,
		.core = b->core,
		.signals = b->signals,
		.notes = &b->notes,
		.trace = on_trace,
		.trace_arg = b,
	};
	assert_true(quipu_platform_riscv.matches(b->machine));
	assert_int_equal(quipu_platform_riscv.create(&env, &b->room), 0);
	b->signals->interrupt = on_room_signal;
	b->signals->arg = b;
	b->rv = riscv_room_harts(b->room);
	for (size_t i = 0; i < (quipu_core_pmus(b->core, &n), n); i++)
		if (!strcmp(quipu_core_pmus(b->core, &n)[i]->name, "cpu"))
			b->pmu = quipu_core_pmus(b->core, &n)[i];
	assert_non_null(b->pmu);
}

void bench_close(struct bench *b)
{
	quipu_core_free(b->core);
	quipu_platform_riscv.destroy(b->room);
	quipu_manual_signals_free(b->manual);
	quipu_machine_free(b->machine);
	quipu_notes_free(&b->notes);
	free(b->trace);
}

int bench_event(struct bench *b, const struct quipu_attr *attr, struct quipu_event *group,
		struct quipu_event **e)
{
	static const struct quipu_caller root = {
		.pid = 1, .tid = 1, .perfmon = true, .ipc_lock = true};
	struct quipu_attr a = *attr;
	uint32_t size;

	a.size = sizeof(a);
	return quipu_event_open(b->core, &root, &a, sizeof(a), -1, 0, group, 0, &size, e);
}

uint64_t bench_value(struct quipu_event *e)
{
	struct quipu_count c;

	quipu_event_count(e, &c);
	return c.value;
}

void bench_feed(struct bench *b, quipu_signal signal, uint64_t n, uint64_t pc)
{
	quipu_manual_signals_feed(b->manual, 0, signal, n, pc);
}
