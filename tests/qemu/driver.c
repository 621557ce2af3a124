/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bare PMU driver, S-mode only: it calls every function of the SBI PMU extension, right and
 * wrong, counts and samples, and prints for each step what it got and what the specification wants:
 *
 *	B7 config_matching of no counter: -3 want -3
 *
 * The steps are cases of section 8.2 of the room's sheet, named by their numbers: SBI 3.0, and what
 * src/platform/riscv decides where the text leaves a choice. The hart has counters 3 to 18 of 64
 * bits, Sscofpmf, no Smcntrpmf, and the event table of QEMU's virt machine. Nothing here knows
 * whether the hart is real.
 */
#include "platform.h"

#define BASE   0x10u
#define TIME   0x54494D45u
#define RFENCE 0x52464E43u
#define PMU    0x504D55u

enum { NUM, INFO, CONFIG, START, STOP, FW_READ, FW_READ_HI, SHMEM, EVENTS };

#define ALL	   ((UINT64_C(1) << 35) - 1)
#define HARDWARE   ((UINT64_C(1) << 19) - 1)
#define NONE	   (~UINT64_C(0))
#define CYCLES	   1
#define SET_TIMER  0xF0005
#define CLEAR	   2 /* config_flags */
#define AUTO_START 4
#define SKIP_MATCH 1
#define SET_VALUE  1 /* start_flags */
#define RESET	   1 /* stop_flags */
#define SNAPSHOT   2 /* of either */

/* Arguments that are known only when their step is reached. */
#define SAVED	(UINT64_C(0x5A5E) << 48) /* the counter that the last saving step got */
#define PAGE	(UINT64_C(0x5A5F) << 48)
#define FOREIGN (UINT64_C(0x5A60) << 48)

#define CSR_SSTATUS   0x100
#define CSR_SIE	      0x104
#define CSR_SIP	      0x144
#define CSR_CYCLE     0xC00
#define CSR_SCOUNTOVF 0xDA0
#define CSR_EVENT3    0x323 /* M-mode's: traps */
#define LCOFI	      (UINT64_C(1) << 13)
#define SIE	      2

/*
 * TAKES: the call gives a counter; which one is the firmware's choice, so that only its being in
 * the set is reported (1). IS_SAVED: 1 if it is the counter that the last such step took.
 */
struct step {
	const char *name;
	uint64_t function;
	uint64_t a[5];
	int64_t want; /* the error, or the value of success */
	enum { PLAIN, TAKES, IS_SAVED } kind;
};

static const struct step steps[] = {
	{"B2 num_counters", NUM, {0}, 35},
	{"B3 get_info of 0", INFO, {0}, 0x3FC00},
	{"B3 get_info of 2", INFO, {2}, 0x3FC02},
	{"B3 get_info of 3", INFO, {3}, 0x3FC03},
	{"B3 get_info of 18", INFO, {18}, 0x3FC12},
	{"B4 get_info of 1", INFO, {1}, -3},
	{"B4 get_info of 35", INFO, {35}, -3},
	{"B4 get_info of 63", INFO, {63}, -3},
	{"B4 get_info of -1", INFO, {NONE}, -3},
	{"B7 config_matching of no counter", CONFIG, {0, 0, 0, CYCLES}, -3},
	{"B8 config_matching beyond the counters", CONFIG, {35, 1, 0, CYCLES}, -3},
	{"B8 config_matching one too many", CONFIG, {0, 2 * ALL + 1, 0, CYCLES}, -3},
	{"B8 config_matching from -1", CONFIG, {NONE, 1, 0, CYCLES}, -3},
	{"B8 config_matching past the end", CONFIG, {1, ALL, 0, CYCLES}, -3},
	{"B9 general event 11", CONFIG, {0, ALL, 0, 0xB}, -3},
	{"B9 cache 7", CONFIG, {0, ALL, 0, 0x10038}, -3},
	{"B9 cache operation 3", CONFIG, {0, ALL, 0, 0x10006}, -3},
	{"B9 event type 4", CONFIG, {0, ALL, 0, 0x40000}, -3},
	{"B9 event type 14", CONFIG, {0, ALL, 0, 0xE0000}, -3},
	{"B9 raw event with code 1", CONFIG, {0, ALL, 0, 0x20001}, -3},
	{"3.8 general event 0", CONFIG, {0, ALL, 0, 0}, -3},
	{"3.8 an event of 21 bits", CONFIG, {0, ALL, 0, 0x100001}, -3},
	{"3.8 cycles with event_data", CONFIG, {0, ALL, 0, CYCLES, 1}, -3},
	{"B10 an event without a row", CONFIG, {0, ALL, 0, 3}, -2},
	{"B11 raw event 0", CONFIG, {0, ALL, 0, 0x20000, 0}, -2},
	{"B11 raw event without a row", CONFIG, {0, ALL, 0, 0x20000, 0x777}, -2},
	{"B12 firmware event 22", CONFIG, {0, ALL, 0, 0xF0016}, -3},
	{"B12 firmware event 255", CONFIG, {0, ALL, 0, 0xF00FF}, -3},
	{"B12 firmware event 256", CONFIG, {0, ALL, 0, 0xF0100}, -3},
	{"B12 firmware event 65535", CONFIG, {0, ALL, 0, 0xFFFFF}, -3},
	{"B13 firmware event on hardware counters", CONFIG, {0, HARDWARE, 0, SET_TIMER}, -2},
	{"B14 start of an unbound counter", START, {3, 1}, -3},
	{"B14 stop of an unbound counter", STOP, {3, 1}, -3},
	{"B15 start of no counter", START, {0, 0}, -3},
	{"B15 stop of no counter", STOP, {0, 0}, -3},
	{"B15 start of counter 1", START, {1, 1}, -3},
	{"B15 stop of counter 1", STOP, {1, 1}, -3},
	{"B16 stop of counter 0, which runs from boot", STOP, {0, 1}, 0},
	{"B16 stop of it again", STOP, {0, 1}, -8},
	{"B16 start of it with a value", START, {0, 1, SET_VALUE, 100}, 0},
	{"B16 start of it again", START, {0, 1}, -7},
	{"B18 cycles on counter 0 alone", CONFIG, {0, 1, 0, CYCLES}, -2},
	{"choice: the lowest counter that is free", CONFIG, {0, HARDWARE & ~7, 0, CYCLES}, 3},
	{"B17 cycles on any programmable counter", CONFIG, {0, HARDWARE & ~7, 0, CYCLES}, 1, TAKES},
	{"B20 start with a value", START, {SAVED, 1, SET_VALUE, 1000}, 0},
	{"B20 start of a running counter", START, {SAVED, 1}, -7},
	{"B20 stop", STOP, {SAVED, 1}, 0},
	{"B20 stop of a stopped counter", STOP, {SAVED, 1}, -8},
	{"B20 start without a value", START, {SAVED, 1}, 0},
	{"B20 stop again", STOP, {SAVED, 1}, 0},
	{"B25 a reserved start flag", START, {SAVED, 1, 4}, -3},
	{"B25 a reserved stop flag", STOP, {SAVED, 1, 4}, -3},
	{"B25 a reserved config flag", CONFIG, {0, HARDWARE & ~7, 0x100, CYCLES}, -3},
	{"B26 start from a snapshot that nobody set", START, {SAVED, 1, SNAPSHOT}, -9},
	{"B26 stop into a snapshot that nobody set", STOP, {SAVED, 1, SNAPSHOT}, -9},
	{"B24 skip the match, bound", CONFIG, {SAVED, 1, SKIP_MATCH, CYCLES}, 1, IS_SAVED},
	{"B21 stop with reset of a stopped counter", STOP, {SAVED, 1, RESET}, -8},
	{"B21 start of it", START, {SAVED, 1}, -3},
	{"B21 stop of it", STOP, {SAVED, 1}, -3},
	{"B24 skip the match, unbound", CONFIG, {SAVED, 1, SKIP_MATCH, CYCLES}, -3},
	{"B23 clear and start at once",
	 CONFIG,
	 {0, HARDWARE & ~7, CLEAR | AUTO_START, CYCLES},
	 1,
	 TAKES},
	{"B23 start of it", START, {SAVED, 1}, -7},
	{"stop and reset it", STOP, {SAVED, 1, RESET}, 0},
	{"3.8 stop of a set that has counter 1 in it", STOP, {1, 3, 0}, -3},
	{"and counter 2 was stopped all the same", STOP, {2, 1, 0}, -8},
	{"and starts", START, {2, 1, 0}, 0},
	{"B29 firmware event SET_TIMER", CONFIG, {0, ALL, 0, SET_TIMER}, 1, TAKES},
	{"B29 read before the start", FW_READ, {SAVED}, 0},
	{"B30 start with 10", START, {SAVED, 1, SET_VALUE, 10}, 0},
	{"B32 start again", START, {SAVED, 1}, -7},
	{"B31 read the upper half", FW_READ_HI, {SAVED}, 0},
	{"B32 stop", STOP, {SAVED, 1}, 0},
	{"B33 stop again", STOP, {SAVED, 1}, -8},
	{"B33 stop with reset", STOP, {SAVED, 1, RESET}, -8},
	{"B33 read what is unbound", FW_READ, {SAVED}, -3},
	{"B34 firmware read of counter 3", FW_READ, {3}, -3},
	{"B34 firmware read of counter 0", FW_READ, {0}, -3},
	{"B34 firmware read of counter 35", FW_READ, {35}, -3},
	{"B40 snapshot memory", SHMEM, {PAGE, 0, 0}, 0},
	{"B40 unaligned", SHMEM, {PAGE + 8, 0, 0}, -3},
	{"B40 with a flag", SHMEM, {PAGE, 0, 1}, -3},
	{"B40 of M-mode", SHMEM, {FOREIGN, 0, 0}, -5},
	{"B40 beyond 64 bits", SHMEM, {PAGE, 1, 0}, -5},
	{"B40 taken back", SHMEM, {NONE, NONE, 0}, 0},
	{"B44 event info of no entry", EVENTS, {PAGE, 0, 0, 0}, -3},
	{"B44 unaligned", EVENTS, {PAGE + 8, 0, 1, 0}, -3},
	{"B44 with a flag", EVENTS, {PAGE, 0, 1, 1}, -3},
	{"B44 of M-mode", EVENTS, {FOREIGN, 0, 1, 0}, -5},
	{"B46 function 9", 9, {0}, -2},
	{"B46 function 99", 99, {0}, -2},
};

static uint64_t saved;

/* Output */

static void put_number(int64_t n)
{
	char text[24], *p = text + sizeof(text);
	uint64_t v = n < 0 ? -(uint64_t)n : (uint64_t)n;

	*--p = '\0';
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	if (n < 0)
		*--p = '-';
	put(p);
}

static void report(const char *name, int64_t got, int64_t want)
{
	put(name);
	put(": ");
	put_number(got);
	put(" want ");
	put_number(want);
	put("\n");
}

/* Calls */

static uint64_t resolve(uint64_t a)
{
	switch (a & ~UINT64_C(0xFFF)) {
	case SAVED: return saved;
	case PAGE: return own_page() + (a & 0xFFF);
	case FOREIGN: return foreign_page();
	}
	return a;
}

static struct sbiret pmu(uint64_t function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
			 uint64_t a4)
{
	const uint64_t a[5] = {resolve(a0), resolve(a1), resolve(a2), resolve(a3), resolve(a4)};

	return sbi(PMU, function, a);
}

static struct sbiret call(uint64_t extension, uint64_t function, uint64_t a0)
{
	const uint64_t a[5] = {a0};

	return sbi(extension, function, a);
}

static int64_t result(struct sbiret r)
{
	return r.error ? r.error : (int64_t)r.value;
}

static void set_timer(void)
{
	call(TIME, 0, NONE);
}

static void reset_all(void)
{
	for (uint64_t i = 3; i < 35; i++)
		pmu(STOP, i, 1, RESET, 0, 0);
}

/* What should have failed, or was only looked at, must not stand in the way of the next step. */
static void undo(const struct step *s, struct sbiret r)
{
	if (r.error || s->kind != PLAIN)
		return;
	if (s->function == CONFIG && r.value > 2)
		pmu(STOP, r.value, 1, RESET, 0, 0);
	if (s->function == START && s->want < 0)
		pmu(STOP, s->a[0], s->a[1], 0, 0, 0);
}

static void run_step(const struct step *s)
{
	struct sbiret r = pmu(s->function, s->a[0], s->a[1], s->a[2], s->a[3], s->a[4]);
	/* The value of a call that returns none says nothing. */
	bool has_value = s->function != START && s->function != STOP && s->function != SHMEM;
	int64_t got = r.error || has_value ? result(r) : 0;

	if (s->kind == IS_SAVED && !r.error)
		got = r.value == saved;
	if (s->kind == TAKES && !r.error) {
		saved = r.value;
		got = (int64_t)(s->a[1] >> saved & 1);
	}
	undo(s, r);
	report(s->name, got, s->want);
}

/* Scenes: steps that need more than one call. */

static void probing(void)
{
	uint64_t overflowed = 0;

	report("specification version", result(call(BASE, 0, 0)), 0x03000000);
	report("B1 the PMU extension is there", call(BASE, 3, PMU).value != 0, 1);
	report("B6 scountovf after boot",
	       csr_read(CSR_SCOUNTOVF, &overflowed) ? -1 : (int64_t)overflowed, 0x7FFF8);
	report("B5 counter 19 is of the firmware", (int64_t)(pmu(INFO, 19, 0, 0, 0, 0).value >> 63),
	       1);
}

static void exhausting(void)
{
	unsigned n = 0, firmware = 0;
	struct sbiret r;

	do
		r = pmu(CONFIG, 0, ALL, 0, CYCLES, 0);
	while (!r.error && ++n < 40);
	report("B27 counters that take cycles", n, 16);
	report("B27 then", result(r), -2);
	reset_all();
	report("B28 after a reset one is free again", pmu(CONFIG, 0, ALL, 0, CYCLES, 0).error, 0);
	reset_all();
	do
		r = pmu(CONFIG, 0, ALL, 0, SET_TIMER, 0);
	while (!r.error && ++firmware < 40);
	report("B38 firmware counters", firmware, 16);
	report("B38 then", result(r), -2);
	reset_all();
}

/* What firmware event @code counts while @cause happens once. */
static int64_t firmware_count(unsigned code, void (*cause)(void))
{
	struct sbiret r = pmu(CONFIG, 0, ALL, 0, 0xF0000 | code, 0);
	int64_t n;

	if (r.error)
		return r.error;
	pmu(START, r.value, 1, SET_VALUE, 0, 0);
	cause();
	n = result(pmu(FW_READ, r.value, 0, 0, 0, 0));
	pmu(STOP, r.value, 1, RESET, 0, 0);
	return n;
}

static void illegal(void)
{
	uint64_t value;

	csr_read(CSR_EVENT3, &value);
}

static void fence_self(void)
{
	static const uint64_t self[5] = {1, 0};

	sbi(RFENCE, 0, self);
}

static void firmware_events(void)
{
	struct sbiret one, two;
	uint64_t value;

	report("C9 mhpmevent3 from S", csr_read(CSR_EVENT3, &value), 2);
	report("B30 SET_TIMER counts a call", firmware_count(5, set_timer), 1);
	report("B35 ILLEGAL_INSN counts a trap", firmware_count(4, illegal), 1);
	report("B37 FENCE_I_SENT counts a fence to oneself", firmware_count(8, fence_self), 1);
	one = pmu(CONFIG, 0, ALL, 0, SET_TIMER, 0);
	two = pmu(CONFIG, 0, ALL, 0, SET_TIMER, 0);
	pmu(START, one.value, 1, SET_VALUE, 0, 0);
	pmu(START, two.value, 1, SET_VALUE, 0, 0);
	set_timer();
	report("B39 one call on two counters",
	       result(pmu(FW_READ, one.value, 0, 0, 0, 0)) +
		       result(pmu(FW_READ, two.value, 0, 0, 0, 0)),
	       2);
	reset_all();
}

static uint64_t counter(uint64_t i)
{
	uint64_t value = 0;

	csr_read((unsigned)(CSR_CYCLE + i), &value);
	return value;
}

/* Count: what stat would do. */
static void counting(void)
{
	struct sbiret r = pmu(CONFIG, 0, HARDWARE & ~7, CLEAR, 2, 0);
	uint64_t first, second;

	report("instructions get a counter", r.error, 0);
	report("it starts", pmu(START, r.value, 1, SET_VALUE, 5, 0).error, 0);
	burn(100000);
	first = counter(r.value);
	report("it counts at least what was executed", first >= 100005, 1);
	report("it stops", pmu(STOP, r.value, 1, 0, 0, 0).error, 0);
	first = counter(r.value);
	burn(100000);
	second = counter(r.value);
	report("a stopped counter stands", first == second, 1);
	report("it goes on from a value given", pmu(START, r.value, 1, SET_VALUE, 0, 0).error, 0);
	burn(1000);
	report("and has counted that", counter(r.value) >= 1000, 1);
	reset_all();
}

/* How many interrupts since @before, once there is one or @most instructions have passed. */
static unsigned wait_for_interrupt(unsigned before, uint64_t most)
{
	for (uint64_t n = 0; n < most && interrupts_taken() == before; n += 10000)
		burn(10000);
	return interrupts_taken() - before;
}

static int64_t overflow_bit(uint64_t i)
{
	uint64_t value = 0;

	csr_read(CSR_SCOUNTOVF, &value);
	return (int64_t)(value >> i & 1);
}

/*
 * Cycles: many more than are spent between two calls. With QEMU's -icount a cycle is an
 * instruction, else a nanosecond of the host, which may take QEMU its processor away for a second.
 */
#define PERIOD UINT64_C(20000000)
#define LONG   UINT64_C(10000000000)

/* Sample: what record would do. Nothing is printed while a period runs: the console is slow. */
static void sampling(void)
{
	struct sbiret r = pmu(CONFIG, 0, HARDWARE & ~7, 0, CYCLES, 0);
	int64_t error, before, after, stopped;
	unsigned first, second, third, seen = interrupts_taken();

	/* As every driver does: QEMU has an old one pending. */
	csr_write(CSR_SIP, 0);
	csr_write(CSR_SIE, LCOFI);
	csr_write(CSR_SSTATUS, SIE);
	/* Its bit must be clear when it is read, however long that takes. */
	error = pmu(START, r.value, 1, SET_VALUE, -1000 * PERIOD, 0).error;
	before = overflow_bit(r.value);
	pmu(STOP, r.value, 1, 0, 0, 0);
	pmu(START, r.value, 1, SET_VALUE, -PERIOD, 0);
	first = wait_for_interrupt(seen, LONG);
	after = overflow_bit(r.value);
	pmu(STOP, r.value, 1, 0, 0, 0);
	stopped = overflow_bit(r.value);
	seen = interrupts_taken();
	pmu(START, r.value, 1, SET_VALUE, -PERIOD, 0);
	second = wait_for_interrupt(seen, LONG);
	third = wait_for_interrupt(interrupts_taken(), 3 * PERIOD);
	pmu(STOP, r.value, 1, 0, 0, 0);
	report("B47 start before an overflow", error, 0);
	report("B47 its bit of scountovf is clear", before, 0);
	report("B47 one interrupt", first, 1);
	report("B47 its bit of scountovf is set", after, 1);
	report("B47 and stays when it is stopped", stopped, 1);
	report("B47 a second one after the restart", second, 1);
	report("B47 no third without one", third, 0);
	seen = interrupts_taken();
	pmu(START, r.value, 1, SET_VALUE, -2 * PERIOD, 0);
	error = pmu(START, r.value, 1, 0, 0, 0).error;
	first = wait_for_interrupt(seen, LONG);
	report("B54 start while it counts down", error, -7);
	report("B54 its interrupt comes all the same", first, 1);
	csr_write(CSR_SIE, 0);
	reset_all();
}

static void last(void)
{
	pmu(STOP, 0, 1, 0, 0, 0);
	report("B22 reset of counter 0", pmu(STOP, 0, 1, RESET, 0, 0).error, -8);
	report("B22 keeps its binding", pmu(START, 0, 1, 0, 0, 0).error, 0);
}

void drive(void)
{
	probing();
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		run_step(&steps[i]);
	reset_all();
	exhausting();
	firmware_events();
	counting();
	sampling();
	last();
	put("end\n");
}
