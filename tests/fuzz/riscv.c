/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CSR accesses, environment calls and activity of a RISC-V hart set fed by libFuzzer. The first
 * bytes choose the machine (extensions, widths, firmware), the others are steps. Besides what the
 * sanitizers see: memory that the firmware takes is the supervisor's own, a counter that it gives
 * is one of the set, a counter never holds more than its width.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfdt.h>

#include <quipu/bits.h>
#include <quipu/riscv.h>

#define FDT_BYTES 4096
#define HARTS	  2u
#define STEPS	  400u

struct input {
	const uint8_t *at, *end;
};

struct fuzz {
	struct quipu_riscv *rv;
	struct quipu_manual_signals *manual;
	struct input in;
	unsigned width;
	uint64_t counters; /* logical ones, as they were at the start */
	bool compat;	   /* OpenSBI's deviations: a counter may come from outside the set */
};

static uint64_t take(struct input *in, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(in->end - in->at) < n)
		n = (size_t)(in->end - in->at);
	memcpy(&v, in->at, n);
	in->at += n;
	return v;
}

/* A 64-bit argument: small, near an edge, in the supervisor's memory, or any. */
static uint64_t argument(struct fuzz *f)
{
	switch (take(&f->in, 1) & 7) {
	case 0: return 0;
	case 1: return -take(&f->in, 1);
	case 2: return bits_one((unsigned)take(&f->in, 1) & 63) - (take(&f->in, 1) & 1);
	case 3: return quipu_riscv_memory_base(f->rv) + (take(&f->in, 1) << 4);
	case 4:
		return quipu_riscv_memory_base(f->rv) + quipu_riscv_memory_size(f->rv) -
		       (take(&f->in, 2) & 0x1fff);
	case 5: return take(&f->in, 8);
	case 6: return take(&f->in, 4);
	default: return take(&f->in, 1);
	}
}

static uint64_t pmu(struct fuzz *f, unsigned function)
{
	const uint64_t args[6] = {0};

	return quipu_riscv_ecall(f->rv, 0, QUIPU_SBI_PMU, function, args).value;
}

static void check_call(const struct fuzz *f, uint64_t function, const uint64_t args[6],
		       struct quipu_sbiret r)
{
	if (r.error)
		return;
	if (function == QUIPU_SBI_PMU_SNAPSHOT_SET_SHMEM && (args[0] & args[1]) != UINT64_MAX &&
	    (args[1] || !quipu_riscv_memory(f->rv, args[0], 4096)))
		abort();
	if (function == QUIPU_SBI_PMU_EVENT_GET_INFO &&
	    (args[1] || !quipu_riscv_memory(f->rv, args[0], args[2] * 16)))
		abort();
	if (function == QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING &&
	    (r.value >= f->counters ||
	     (!f->compat && (r.value < args[0] || r.value - args[0] > 63 ||
			     !(args[1] >> (r.value - args[0]) & 1)))))
		abort();
	if (function == QUIPU_SBI_PMU_NUM_COUNTERS && r.value != f->counters)
		abort();
}

static void step_call(struct fuzz *f, unsigned hart)
{
	static const uint64_t others[] = {QUIPU_SBI_BASE, QUIPU_SBI_TIME, QUIPU_SBI_IPI,
					  QUIPU_SBI_RFENCE};
	uint64_t which = take(&f->in, 1), function = which & 15, args[6];
	uint64_t extension = which & 128 ? others[which >> 4 & 3] : QUIPU_SBI_PMU;
	struct quipu_sbiret r;

	for (unsigned i = 0; i < 6; i++)
		args[i] = i < 5 ? argument(f) : 0;
	r = quipu_riscv_ecall(f->rv, hart, extension, function, args);
	if (extension == QUIPU_SBI_PMU && hart < HARTS)
		check_call(f, function, args, r);
}

static void step_csr(struct fuzz *f, unsigned hart, enum quipu_riscv_mode mode)
{
	static const unsigned bases[] = {0x100, 0x140, 0x200, 0x240, 0x300, 0x320,
					 0x340, 0x600, 0x640, 0xB00, 0xC00, 0xDA0};
	unsigned pick = (unsigned)take(&f->in, 2), csr = pick & 0xfff;
	uint64_t value = 0;

	/* Half of them among the registers that exist. */
	if (pick & 0x8000)
		csr = bases[(pick >> 5) % (sizeof(bases) / sizeof(bases[0]))] + (pick & 31);
	if (pick & 0x4000) {
		quipu_riscv_csr_write(f->rv, hart, mode, csr, argument(f));
		return;
	}
	if (!quipu_riscv_csr_read(f->rv, hart, mode, csr, &value) &&
	    csr >= QUIPU_CSR_MHPMCOUNTER3 && csr < 0xB20 && value & ~bits_mask(f->width))
		abort();
}

static void step(struct fuzz *f)
{
	uint64_t what = take(&f->in, 1);
	unsigned hart = (what >> 3) % (HARTS + 1); /* one that is not there */
	enum quipu_riscv_mode mode = (enum quipu_riscv_mode)((what >> 5) % (QUIPU_RISCV_MODES + 1));

	switch (what & 7) {
	case 0:
	case 1: step_csr(f, hart, mode); break;
	case 2:
		quipu_manual_signals_feed(f->manual, hart % HARTS, take(&f->in, 1) % 4 + 1,
					  take(&f->in, 2), what);
		break;
	case 3: /* bounded: a narrow counter stops the feed each time it passes its end */
		quipu_riscv_feed(f->rv, hart, mode, take(&f->in, 1) % 12, take(&f->in, 2), what);
		break;
	case 4:
		quipu_riscv_set_mode(f->rv, hart, mode);
		quipu_riscv_trap(f->rv, hart, (unsigned)take(&f->in, 1) & 127, what);
		quipu_riscv_run(f->rv, hart);
		break;
	default: step_call(f, hart);
	}
}

static void on_trap(void *arg, unsigned hart, unsigned cause, const struct quipu_interrupt *irq)
{
	struct fuzz *f = arg;

	(void)cause;
	(void)irq;
	quipu_riscv_csr_write(f->rv, hart, QUIPU_RISCV_S, QUIPU_CSR_SIP, 0);
}

static void on_deadline(void *arg, const struct quipu_interrupt *irq)
{
	quipu_riscv_interrupt(((struct fuzz *)arg)->rv, irq);
}

/* Machine */

static void put_hart(void *fdt, unsigned i, unsigned traits, unsigned width, uint32_t mask)
{
	char name[16], isa[128];

	snprintf(name, sizeof(name), "cpu@%u", i);
	snprintf(isa, sizeof(isa), "rv64imafdc%s%s%s%s_zicsr", traits & 1 ? "h" : "",
		 traits & 2 ? "_sscofpmf" : "", traits & 4 ? "_smcntrpmf" : "",
		 traits & 8 ? "_smcdeleg_ssccfg_smaia_shlcofideleg" : "");
	if ((traits & 10) == 10)
		strcat(isa, "_smstateen");
	fdt_begin_node(fdt, name);
	fdt_property_string(fdt, "device_type", "cpu");
	fdt_property_string(fdt, "compatible", "riscv");
	fdt_property_u32(fdt, "reg", i);
	fdt_property_string(fdt, "riscv,isa", isa);
	fdt_property_u32(fdt, "quipu,hpm-mask", mask);
	fdt_property_u32(fdt, "quipu,hpm-width", width);
	fdt_end_node(fdt);
}

static void put_pmu(void *fdt, unsigned traits)
{
	static const char *const versions[] = {"0.3", "1.0", "2.0", "3.0"};
	static const uint32_t ranges[] = {1, 1,	 0xfffffff9, 2,	      2,       0xfffffffc,
					  3, 10, 0xfffffff8, 0x10000, 0x1ffff, 0xfffffff8};
	static const uint32_t raws[] = {0, 0, 0xffffffff, 0xffff0000, 0xfffffff8,
					2, 0, 0xffffffff, 0xfffffff8, 0xf8};
	uint32_t be[12];

	fdt_begin_node(fdt, "pmu");
	fdt_property_string(fdt, "compatible", "riscv,pmu");
	for (unsigned i = 0; i < 12; i++)
		be[i] = cpu_to_fdt32(ranges[i]);
	fdt_property(fdt, "riscv,event-to-mhpmcounters", be, sizeof(be));
	for (unsigned i = 0; i < 10; i++)
		be[i] = cpu_to_fdt32(raws[i]);
	fdt_property(fdt, "riscv,raw-event-to-mhpmcounters", be, 40);
	fdt_property_string(fdt, "quipu,sbi-version", versions[traits >> 4 & 3]);
	if (traits & 64)
		fdt_property(fdt, "quipu,opensbi-compat", NULL, 0);
	if (traits & 128)
		fdt_property_string(fdt, "quipu,privileged", "1.10");
	fdt_end_node(fdt);
}

static struct quipu_machine *make_machine(struct fuzz *f, struct quipu_notes *notes)
{
	static const unsigned widths[] = {16, 17, 32, 40, 48, 63, 64, 64};
	static uint8_t fdt[FDT_BYTES];
	unsigned traits = (unsigned)take(&f->in, 1), rest = (unsigned)take(&f->in, 1);

	f->width = widths[rest & 7];
	f->compat = traits & 64;
	fdt_create(fdt, sizeof(fdt));
	fdt_finish_reservemap(fdt);
	fdt_begin_node(fdt, "");
	fdt_property_string(fdt, "compatible", "quipu,fuzz");
	fdt_begin_node(fdt, "cpus");
	fdt_property_u32(fdt, "#address-cells", 1);
	fdt_property_u32(fdt, "#size-cells", 0);
	fdt_property_u32(fdt, "timebase-frequency", 10000000);
	for (unsigned i = 0; i < HARTS; i++)
		put_hart(fdt, i, traits, f->width,
			 (uint32_t)bits_mask(rest >> 3 & 31) & 0xfffffff8);
	fdt_end_node(fdt);
	put_pmu(fdt, traits);
	fdt_end_node(fdt);
	if (fdt_finish(fdt))
		abort();
	return quipu_machine_parse(fdt, fdt_totalsize(fdt), "fuzz", notes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {.in = {data, data + size}};
	struct quipu_notes notes = {0};
	struct quipu_machine *machine = make_machine(&f, &notes);
	struct quipu_signals *signals;

	f.manual = machine ? quipu_manual_signals_new(HARTS) : NULL;
	if (!f.manual)
		abort();
	signals = quipu_manual_signals_base(f.manual);
	f.rv = quipu_riscv_new(machine, signals, &notes);
	if (!f.rv)
		abort();
	signals->interrupt = on_deadline;
	signals->arg = &f;
	quipu_riscv_set_handler(f.rv, on_trap, &f);
	f.counters = pmu(&f, QUIPU_SBI_PMU_NUM_COUNTERS);
	for (unsigned i = 0; i < STEPS && f.in.at < f.in.end; i++)
		step(&f);
	quipu_riscv_free(f.rv);
	quipu_manual_signals_free(f.manual);
	quipu_machine_free(machine);
	quipu_notes_free(&notes);
	return 0;
}
