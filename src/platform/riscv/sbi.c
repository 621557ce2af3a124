/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SBI call gate: unpacks a0..a7, decides which function is meant, and traces the call. What a
 * PMU call does is firmware.c's. Follows RISC-V SBI 3.0, chapters "Binary encoding", "Base
 * Extension" and the PMU extension; the timer, IPI and RFENCE extensions exist as the sources of
 * the firmware events that the PMU extension counts (RISC-V sheet 3.4), and do nothing else.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "platform/riscv/hart.h"

#define IMPLEMENTATION_ID 0x71757069u /* "qupi": none of the SBI's list */

enum fw_event {
	FW_MISALIGNED_LOAD,
	FW_MISALIGNED_STORE,
	FW_ACCESS_LOAD,
	FW_ACCESS_STORE,
	FW_ILLEGAL_INSN,
	FW_SET_TIMER,
	FW_IPI_SENT,
	FW_IPI_RECEIVED,
	FW_FENCE_I_SENT,
	FW_FENCE_I_RECEIVED,
	FW_SFENCE_VMA_SENT,
	FW_SFENCE_VMA_RECEIVED,
	FW_SFENCE_VMA_ASID_SENT,
	FW_SFENCE_VMA_ASID_RECEIVED,
	FW_HFENCE_GVMA_SENT,
	FW_HFENCE_GVMA_RECEIVED,
	FW_HFENCE_GVMA_VMID_SENT,
	FW_HFENCE_GVMA_VMID_RECEIVED,
	FW_HFENCE_VVMA_SENT,
	FW_HFENCE_VVMA_RECEIVED,
	FW_HFENCE_VVMA_ASID_SENT,
	FW_HFENCE_VVMA_ASID_RECEIVED,
};

static struct quipu_sbiret answer(int64_t error, uint64_t value)
{
	return (struct quipu_sbiret){.error = error, .value = value};
}

void sbi_trap(struct quipu_riscv *rv, unsigned hart, unsigned cause)
{
	static const struct {
		unsigned cause;
		enum fw_event event;
	} map[] = {
		{2, FW_ILLEGAL_INSN},	  {4, FW_MISALIGNED_LOAD}, {5, FW_ACCESS_LOAD},
		{6, FW_MISALIGNED_STORE}, {7, FW_ACCESS_STORE},
	};

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].cause == cause)
			firmware_event(rv, hart, map[i].event);
}

/*
 * hart_mask and hart_mask_base of a call, as a set of our hart numbers. False: it names a hart that
 * does not exist.
 */
static bool hart_targets(const struct quipu_riscv *rv, uint64_t mask, uint64_t base,
			 bool (*visit)(void *, unsigned), void *arg)
{
	if (base == UINT64_MAX) {
		for (unsigned i = 0; i < rv->nharts; i++)
			visit(arg, i);
		return true;
	}
	for (uint64_t m = mask; m; m &= m - 1) {
		uint64_t id = base + bits_low(m);
		unsigned i = 0;

		while (i < rv->nharts && rv->harts[i].id != id)
			i++;
		if (i == rv->nharts)
			return false;
		visit(arg, i);
	}
	return true;
}

struct targets {
	struct quipu_riscv *rv;
	unsigned self;
	int sent, received; /* firmware events; -1: count only */
	unsigned n;
};

static bool count_target(void *arg, unsigned hart)
{
	struct targets *t = arg;

	(void)hart;
	t->n++;
	return true;
}

static bool signal_target(void *arg, unsigned hart)
{
	struct targets *t = arg;
	struct hart *h = &t->rv->harts[hart];

	if (hart != t->self)
		firmware_event(t->rv, t->self, FW_IPI_SENT);
	firmware_event(t->rv, hart, FW_IPI_RECEIVED);
	hart_set(h, QUIPU_CSR_MIP, hart_get(h, QUIPU_CSR_MIP) | bits_one(1));
	return true;
}

static bool fence_target(void *arg, unsigned hart)
{
	struct targets *t = arg;

	firmware_event(t->rv, hart, (unsigned)t->received);
	return true;
}

static struct quipu_sbiret base_call(struct quipu_riscv *rv, unsigned hart, uint64_t function,
				     const uint64_t *a)
{
	static const uint64_t extensions[] = {QUIPU_SBI_BASE, QUIPU_SBI_TIME, QUIPU_SBI_IPI,
					      QUIPU_SBI_RFENCE};

	(void)hart;
	switch (function) {
	case 0: return answer(0, rv->config.sbi_version);
	case 1: return answer(0, IMPLEMENTATION_ID);
	case 2: return answer(0, 1);
	case 3:
		for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
			if (a[0] == extensions[i])
				return answer(0, 1);
		return answer(0, a[0] == QUIPU_SBI_PMU && rv->config.driver == RISCV_DRIVER_SBI);
	case 4: /* mvendorid, marchid, mimpid: none assigned */
	case 5:
	case 6: return answer(0, 0);
	default: return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
	}
}

static struct quipu_sbiret time_call(struct quipu_riscv *rv, unsigned hart, uint64_t function,
				     const uint64_t *a)
{
	struct hart *h = &rv->harts[hart];

	(void)a;
	if (function != 0)
		return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
	firmware_event(rv, hart, FW_SET_TIMER);
	/*
	 * Setting a timer clears the pending one. It never expires here: a user-mode engine has no
	 * timer interrupt.
	 */
	hart_set(h, QUIPU_CSR_MIP, hart_get(h, QUIPU_CSR_MIP) & ~bits_one(5));
	return answer(0, 0);
}

static struct quipu_sbiret ipi_call(struct quipu_riscv *rv, unsigned hart, uint64_t function,
				    const uint64_t *a)
{
	struct targets t = {.rv = rv, .self = hart};

	if (function != 0)
		return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
	if (!hart_targets(rv, a[0], a[1], count_target, &t))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	hart_targets(rv, a[0], a[1], signal_target, &t);
	return answer(0, 0);
}

static struct quipu_sbiret rfence_call(struct quipu_riscv *rv, unsigned hart, uint64_t function,
				       const uint64_t *a)
{
	/* By function id; its _RECEIVED event is the next code. */
	static const uint8_t sent[] = {
		FW_FENCE_I_SENT,	  FW_SFENCE_VMA_SENT,  FW_SFENCE_VMA_ASID_SENT,
		FW_HFENCE_GVMA_VMID_SENT, FW_HFENCE_GVMA_SENT, FW_HFENCE_VVMA_ASID_SENT,
		FW_HFENCE_VVMA_SENT,
	};
	struct targets t = {.rv = rv, .self = hart};

	if (function >= sizeof(sent))
		return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
	if (!hart_targets(rv, a[0], a[1], count_target, &t))
		return answer(QUIPU_SBI_INVALID_PARAM, 0);
	t.received = sent[function] + 1;
	firmware_event(rv, hart, sent[function]);
	hart_targets(rv, a[0], a[1], fence_target, &t);
	return answer(0, 0);
}

static struct quipu_sbiret pmu_call(struct quipu_riscv *rv, unsigned hart, uint64_t function,
				    const uint64_t *a)
{
	/* The first version that has each function. */
	static const uint32_t since[] = {0, 0, 0, 0, 0, 0, 0x02000000, 0x02000000, 0x03000000};

	if (function >= sizeof(since) / sizeof(since[0]) ||
	    rv->config.sbi_version < since[function])
		return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
	switch ((enum quipu_sbi_pmu_function)function) {
	case QUIPU_SBI_PMU_NUM_COUNTERS: return answer(0, firmware_counters(rv));
	case QUIPU_SBI_PMU_COUNTER_GET_INFO: return firmware_info(rv, hart, a[0]);
	case QUIPU_SBI_PMU_COUNTER_CONFIG_MATCHING:
		return firmware_match(rv, hart, a[0], a[1], a[2], a[3], a[4]);
	case QUIPU_SBI_PMU_COUNTER_START: return firmware_start(rv, hart, a[0], a[1], a[2], a[3]);
	case QUIPU_SBI_PMU_COUNTER_STOP: return firmware_stop(rv, hart, a[0], a[1], a[2]);
	case QUIPU_SBI_PMU_COUNTER_FW_READ: return firmware_read(rv, hart, a[0]);
	case QUIPU_SBI_PMU_COUNTER_FW_READ_HI: {
		struct quipu_sbiret r = firmware_read(rv, hart, a[0]);

		return answer(r.error, 0); /* RV64: the low half is all of it */
	}
	case QUIPU_SBI_PMU_SNAPSHOT_SET_SHMEM:
		return firmware_set_shmem(rv, hart, a[0], a[1], a[2]);
	case QUIPU_SBI_PMU_EVENT_GET_INFO: return firmware_event_info(rv, a[0], a[1], a[2], a[3]);
	}
	return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
}

struct sbi_extension {
	uint64_t id;
	struct quipu_sbiret (*call)(struct quipu_riscv *, unsigned hart, uint64_t function,
				    const uint64_t *args);
};
static const struct sbi_extension extensions[] = {
	{QUIPU_SBI_BASE, base_call},	 {QUIPU_SBI_TIME, time_call}, {QUIPU_SBI_IPI, ipi_call},
	{QUIPU_SBI_RFENCE, rfence_call}, {QUIPU_SBI_PMU, pmu_call},
};

struct quipu_sbiret sbi_call(struct quipu_riscv *rv, unsigned hart, uint64_t extension,
			     uint64_t function, const uint64_t args[6])
{
	for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
		if (extensions[i].id != extension)
			continue;
		if (extension == QUIPU_SBI_PMU && rv->config.driver != RISCV_DRIVER_SBI)
			break;
		return extensions[i].call(rv, hart, function, args);
	}
	return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
}

/* ---- trace ---- */

struct signature {
	uint64_t extension, function;
	const char *name;
	const char *args[6];
};
/* clang-format off */
static const struct signature signatures[] = {
	{ QUIPU_SBI_BASE, 0, "base.get_spec_version", { NULL } },
	{ QUIPU_SBI_BASE, 3, "base.probe_extension", { "id" } },
	{ QUIPU_SBI_TIME, 0, "time.set_timer", { "value" } },
	{ QUIPU_SBI_IPI, 0, "ipi.send", { "mask", "base" } },
	{ QUIPU_SBI_PMU, 0, "pmu.num_counters", { NULL } },
	{ QUIPU_SBI_PMU, 1, "pmu.counter_get_info", { "idx" } },
	{ QUIPU_SBI_PMU, 2, "pmu.counter_config_matching",
	  { "base", "mask", "flags", "event", "data" } },
	{ QUIPU_SBI_PMU, 3, "pmu.counter_start", { "base", "mask", "flags", "value" } },
	{ QUIPU_SBI_PMU, 4, "pmu.counter_stop", { "base", "mask", "flags" } },
	{ QUIPU_SBI_PMU, 5, "pmu.counter_fw_read", { "idx" } },
	{ QUIPU_SBI_PMU, 6, "pmu.counter_fw_read_hi", { "idx" } },
	{ QUIPU_SBI_PMU, 7, "pmu.snapshot_set_shmem", { "lo", "hi", "flags" } },
	{ QUIPU_SBI_PMU, 8, "pmu.event_get_info", { "lo", "hi", "n", "flags" } },
};

/* clang-format on */

/* Append to the line; what does not fit is cut. */
static size_t __attribute__((format(printf, 4, 5)))
put(char *line, size_t len, size_t at, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (at >= len)
		return at;
	va_start(ap, fmt);
	n = vsnprintf(line + at, len - at, fmt, ap);
	va_end(ap);
	return n < 0 ? at : at + (size_t)n;
}

static void trace(const struct quipu_riscv *rv, unsigned hart, uint64_t extension,
		  uint64_t function, const uint64_t args[6], struct quipu_sbiret r)
{
	const struct signature *s = NULL;
	char line[320];
	size_t at;

	for (size_t i = 0; i < sizeof(signatures) / sizeof(signatures[0]); i++)
		if (signatures[i].extension == extension && signatures[i].function == function)
			s = &signatures[i];
	at = put(line, sizeof(line), 0, "sbi hart%" PRIu64 " ", rv->harts[hart].id);
	if (s)
		at = put(line, sizeof(line), at, "%s(", s->name);
	else
		at = put(line, sizeof(line), at, "ext 0x%" PRIx64 " fn %" PRIu64 "(", extension,
			 function);
	for (unsigned i = 0; i < 6 && (!s || s->args[i]); i++)
		at = put(line, sizeof(line), at,
			 args[i] < 10 ? "%s%s%s%" PRIu64 : "%s%s%s0x%" PRIx64, i ? ", " : "",
			 s ? s->args[i] : "", s ? "=" : "", args[i]);
	at = put(line, sizeof(line), at, ") = %" PRId64, r.error);
	if (!r.error && r.value)
		put(line, sizeof(line), at, r.value < 10 ? ", %" PRIu64 : ", 0x%" PRIx64, r.value);
	rv->trace(rv->trace_arg, line);
}

struct quipu_sbiret quipu_riscv_ecall(struct quipu_riscv *rv, unsigned hart, uint64_t extension,
				      uint64_t function, const uint64_t args[6])
{
	struct quipu_sbiret r;

	if (hart >= rv->nharts)
		return answer(QUIPU_SBI_NOT_SUPPORTED, 0);
	hart_enter(&rv->harts[hart]);
	r = sbi_call(rv, hart, extension, function, args);
	hart_leave(&rv->harts[hart]);
	if (rv->trace)
		trace(rv, hart, extension, function, args, r);
	return r;
}

void quipu_riscv_set_trace(struct quipu_riscv *rv, void (*fn)(void *arg, const char *line),
			   void *arg)
{
	rv->trace = fn;
	rv->trace_arg = arg;
}
