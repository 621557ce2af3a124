/* SPDX-License-Identifier: BSD-2-Clause */
/* IMC sheet section 7, the cases of OPAL and SCOM (O), the nest microcode (M), the engines and
 * trace mode (E). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "bed.h"

#define INIT  QUIPU_OPAL_IMC_COUNTERS_INIT
#define START QUIPU_OPAL_IMC_COUNTERS_START
#define STOP  QUIPU_OPAL_IMC_COUNTERS_STOP
#define NEST  QUIPU_OPAL_IMC_NEST
#define CORE  QUIPU_OPAL_IMC_CORE
#define TRACE QUIPU_OPAL_IMC_TRACE
#define MS    UINT64_C(1000000)
#define CHIP8 8u

static struct bed bed;

static int setup(void **state)
{
	(void)state;
	bed_tree(&bed, "power9");
	bed_start(&bed);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bed_stop(&bed);
	return 0;
}

static uint64_t scom(uint32_t chip, uint64_t address)
{
	uint64_t v = 1;

	assert_int_equal(quipu_imc_scom_read(bed.imc, chip, address, &v), 0);
	return v;
}

static uint64_t cell(uint32_t chip, unsigned offset)
{
	return quipu_imc_read64(bed.imc, quipu_imc_region(bed.imc, chip) + offset);
}

static uint64_t control(uint32_t chip, unsigned word)
{
	return quipu_imc_read64(bed.imc, quipu_imc_control(bed.imc, chip) + word);
}

static void set_control(uint32_t chip, unsigned word, uint64_t v)
{
	assert_int_equal(quipu_imc_write64(bed.imc, quipu_imc_control(bed.imc, chip) + word, v), 0);
}

static void feed(unsigned cpu, quipu_signal s, uint64_t n)
{
	quipu_manual_signals_feed(bed.manual, cpu, s, n, 0x10000000);
}

/* ---- OPAL and SCOM ---- */

static void o1_core_init_programs_the_core(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, INIT, CORE, 0x12342000, 0x805), 0);
	assert_int_equal(scom(CHIP8, 0x1001230b), 0x12342000);
	assert_int_equal(scom(CHIP8, 0x21010aa8), UINT64_C(0x0402010000000000));
	assert_int_equal(scom(CHIP8, 0x10012300), UINT64_C(0xe000000000000000));
}

static void o2_address_bits_that_pdbar_has(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, INIT, CORE, UINT64_C(0xc000000012343fff), 0x805), 0);
	assert_int_equal(scom(CHIP8, 0x1001230b), 0x12342000);
}

static void o3_start_and_stop_switch_htm(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, START, CORE, 0x805, 0), 0);
	assert_int_equal(scom(CHIP8, 0x10012300), UINT64_C(0xe800000000000000));
	assert_int_equal(bed_opal(&bed, STOP, CORE, 0x805, 0), 0);
	assert_int_equal(scom(CHIP8, 0x10012300), UINT64_C(0xe000000000000000));
}

static void o4_trace_init_sets_the_trace_register(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, INIT, TRACE, 0x1234, 0), 0);
	assert_int_equal(scom(0, 0x20010aa9), QUIPU_TRACE_SCOM);
	assert_int_equal(scom(0, 0x10012200), UINT64_C(0xe000000000000000));
}

static void o5_unknown_cpu_is_refused(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, START, CORE, 0x3ff, 0), -1);
	for (unsigned chip = 0; chip <= CHIP8; chip += CHIP8)
		for (unsigned core = 0; core < 4; core++) {
			static const uint64_t htm[] = {0x10012200, 0x10012300, 0x10012600,
						       0x10012700};

			assert_int_equal(scom(chip, htm[core]), UINT64_C(0xe000000000000000));
		}
}

static void o6_nest_init_looks_at_nothing(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, INIT, NEST, 0, 0x3ff), 0);
}

static void o7_nest_without_microcode(void **state)
{
	(void)state;
	set_control(CHIP8, QUIPU_NEST_STATUS, 0);
	assert_int_equal(bed_opal(&bed, START, NEST, 0x800, 0), -6);
	assert_int_equal(control(CHIP8, QUIPU_NEST_COMMAND), 0);
}

static void o8_nest_start_is_taken_by_the_next_step(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, START, NEST, 0x800, 0), 0);
	assert_int_equal(control(CHIP8, QUIPU_NEST_COMMAND), 1);
	assert_int_equal(control(0, QUIPU_NEST_COMMAND), 0);
	bed_steps(&bed, 1);
	assert_int_equal(control(CHIP8, QUIPU_NEST_COMMAND), 0);
	assert_int_equal(control(CHIP8, QUIPU_NEST_STATUS), QUIPU_NEST_RUNNING);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), QUIPU_NEST_PAUSED);
}

static void o9_unknown_type_does_nothing(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, INIT, 9, 0x12342000, 0), 0);
	assert_int_equal(bed_opal(&bed, START, 9, 0, 0), 0);
	assert_int_equal(bed_opal(&bed, STOP, 9, 0, 0), 0);
	assert_int_equal(scom(0, 0x1001220b), 0);
	assert_int_equal(scom(0, 0x10012200), UINT64_C(0xe000000000000000));
}

static void o10_unknown_token(void **state)
{
	(void)state;
	assert_int_equal(bed_opal(&bed, 148, 0, 0, 0), -1);
	assert_int_equal(bed_opal(&bed, QUIPU_OPAL_CHECK_TOKEN, 149, 0, 0), 1);
	assert_int_equal(bed_opal(&bed, QUIPU_OPAL_CHECK_TOKEN, 148, 0, 0), 0);
}

/* ---- nest microcode ---- */

static void m1_power_on(void **state)
{
	(void)state;
	quipu_imc_power_on(bed.imc);
	bed_steps(&bed, 1);
	assert_int_equal(control(0, QUIPU_NEST_AVAILABLE), UINT64_C(0xffff8073f007e000));
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 0);
	bed_steps(&bed, 2);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 0);
	bed_steps(&bed, 1);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 1);
}

static void m2_groups_are_posted_by_their_periods(void **state)
{
	static const struct {
		unsigned header, trailer, n;
	} rows[] = {{0x000, 0x108, 8}, {0x110, 0x218, 4}, {0x220, 0x328, 8}, {0x330, 0x438, 2},
		    {0x440, 0x548, 2}, {0x550, 0x658, 2}, {0x660, 0x768, 2}};

	(void)state;
	quipu_imc_power_on(bed.imc);
	bed_steps(&bed, 20);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(cell(0, rows[i].header), rows[i].n);
		assert_int_equal(cell(0, rows[i].trailer), rows[i].n);
	}
}

/* Sheet 3.2, periods: a pair of host bridges at a time, each every 12 ms. */
static void m2_host_bridges_take_turns(void **state)
{
	uint64_t was[6], posted[6] = {0};

	(void)state;
	quipu_imc_power_on(bed.imc);
	bed_steps(&bed, 60);
	for (unsigned n = 0; n < 6; n++)
		was[n] = cell(0, 0x338 + 0x20 * n);
	for (unsigned step = 0; step < 72; step++) {
		bed_steps(&bed, 1);
		for (unsigned n = 0; n < 6; n++) {
			uint64_t now = cell(0, 0x338 + 0x20 * n);

			posted[n] += now != was[n];
			was[n] = now;
		}
	}
	for (unsigned n = 0; n < 6; n++)
		assert_int_equal(posted[n], 3);
}

static void m3_speed_1_halves_the_first_group(void **state)
{
	(void)state;
	quipu_imc_power_on(bed.imc);
	set_control(0, QUIPU_NEST_SPEED, 1);
	bed_steps(&bed, 20);
	assert_int_equal(cell(0, 0), 4);
}

static void run_nest(void)
{
	assert_int_equal(bed_opal(&bed, START, NEST, 0, 0), 0);
	bed_steps(&bed, 1);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), QUIPU_NEST_RUNNING);
}

static void m4_line_fills_appear_divided(void **state)
{
	(void)state;
	run_nest();
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 1000000);
	bed_steps(&bed, 2);
	assert_int_equal(cell(0, 0xd0), 3906);
	assert_int_equal(cell(0, 0xf0), 0);
	assert_int_equal(cell(CHIP8, 0xd0), 0);
}

static void m5_events_of_a_pause_never_appear(void **state)
{
	(void)state;
	run_nest();
	set_control(0, QUIPU_NEST_COMMAND, QUIPU_NEST_PAUSE);
	bed_steps(&bed, 1);
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 1000);
	bed_steps(&bed, 1);
	set_control(0, QUIPU_NEST_COMMAND, QUIPU_NEST_RUN);
	bed_steps(&bed, 20);
	assert_int_equal(cell(0, 0xd0), 0);
}

static void m6_clear(void **state)
{
	(void)state;
	run_nest();
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 1000000);
	bed_steps(&bed, 8);
	set_control(0, QUIPU_NEST_COMMAND, QUIPU_NEST_CLEAR);
	bed_steps(&bed, 1);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 0);
	for (unsigned i = 0; i < 238; i++)
		assert_int_equal(cell(0, 8 * i), 0);
	bed_steps(&bed, 3);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 1);
}

static void m7_bad_speed(void **state)
{
	uint64_t posted;

	(void)state;
	run_nest();
	posted = cell(0, 0);
	set_control(0, QUIPU_NEST_SPEED, 0xc);
	bed_steps(&bed, 10);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 3);
	assert_int_equal(cell(0, 0), posted);
}

static void m8_bad_mode(void **state)
{
	uint64_t posted;

	(void)state;
	run_nest();
	posted = cell(0, 0);
	set_control(0, QUIPU_NEST_MODE, 2);
	bed_steps(&bed, 10);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 4);
	assert_int_equal(cell(0, 0), posted);
}

static void m9_unknown_command_stays(void **state)
{
	(void)state;
	run_nest();
	set_control(0, QUIPU_NEST_COMMAND, 7);
	bed_steps(&bed, 8);
	assert_int_equal(control(0, QUIPU_NEST_COMMAND), 7);
	assert_true(cell(0, 0) >= 3);
}

static void m10_memory_is_big_endian(void **state)
{
	uint8_t bytes[8];
	static const uint8_t want[8] = {0, 0, 0, 0, 0, 0, 0x0f, 0x42};

	(void)state;
	run_nest();
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 1000000);
	bed_steps(&bed, 2);
	assert_int_equal(quipu_imc_read(bed.imc, quipu_imc_region(bed.imc, 0) + 0xd0, bytes, 8), 0);
	assert_memory_equal(bytes, want, 8);
}

static void m11_slow_speeds_divide_by_65536(void **state)
{
	(void)state;
	run_nest();
	set_control(0, QUIPU_NEST_SPEED, 4);
	bed_steps(&bed, 4);
	assert_int_equal(control(0, QUIPU_NEST_STATUS), 1);
	quipu_imc_traffic(bed.imc, 0, 0, QUIPU_IMC_READ_LINE, 16777216);
	bed_steps(&bed, 20);
	assert_int_equal(cell(0, 0xd0), 256);
}

/* ---- engines ---- */

#define ACCUMULATE(a) (QUIPU_LDBAR_ENABLE | (a))

static uint64_t memory(size_t size)
{
	uint64_t a = quipu_imc_alloc(bed.imc, size);

	assert_int_not_equal(a, 0);
	return a;
}

static void ldbar(unsigned cpu, uint64_t v)
{
	assert_int_equal(quipu_imc_ldbar_write(bed.imc, cpu, v), 0);
}

static void e1_thread_counts_user_instructions(void **state)
{
	uint64_t a = memory(0x2000);

	(void)state;
	bed_opal(&bed, START, CORE, 0, 0);
	ldbar(0, ACCUMULATE(a));
	feed(0, QUIPU_SIGNAL_INSTRUCTIONS, 5120);
	ldbar(0, a);
	assert_int_equal(quipu_imc_read64(bed.imc, a + 0x1020), 10);
	assert_int_equal(quipu_imc_read64(bed.imc, a + 0x28), 10);
}

static void e2_engine_off_counts_nothing(void **state)
{
	uint64_t a = memory(0x2000);

	(void)state;
	ldbar(0, ACCUMULATE(a));
	feed(0, QUIPU_SIGNAL_INSTRUCTIONS, 5120);
	ldbar(0, a);
	assert_int_equal(quipu_imc_read64(bed.imc, a + 0x1020), 0);
}

static void e3_remainder_is_kept(void **state)
{
	uint64_t a = memory(0x2000);

	(void)state;
	bed_opal(&bed, START, CORE, 0, 0);
	ldbar(0, ACCUMULATE(a));
	feed(0, QUIPU_SIGNAL_INSTRUCTIONS, 511);
	ldbar(0, a);
	assert_int_equal(quipu_imc_read64(bed.imc, a + 0x28), 0);
	ldbar(0, ACCUMULATE(a));
	feed(0, QUIPU_SIGNAL_INSTRUCTIONS, 1);
	ldbar(0, a);
	assert_int_equal(quipu_imc_read64(bed.imc, a + 0x28), 1);
}

static bool near(uint64_t scaled, uint64_t want)
{
	return scaled <= want && want - scaled < 512;
}

static void e4_cycles_by_how_many_threads_run(void **state)
{
	uint64_t a = memory(0x2000);

	(void)state;
	bed_opal(&bed, INIT, CORE, a, 0);
	bed_opal(&bed, START, CORE, 0, 0);
	bed_run(&bed, 0x3, MS);
	bed_run(&bed, 0x1, MS);
	bed_opal(&bed, STOP, CORE, 0, 0);
	assert_true(near(512 * quipu_imc_read64(bed.imc, a + 0x160), 3000000));
	assert_true(near(512 * quipu_imc_read64(bed.imc, a + 0x120), 3000000));
	assert_int_equal(quipu_imc_read64(bed.imc, a + 0xe0), 0);
}

/* ---- trace mode ---- */

#define TB(ns) ((ns)*64 / 125)

static uint64_t word(uint64_t a, unsigned slot, unsigned w)
{
	return quipu_imc_read64(bed.imc, a + 64 * slot + 8 * w);
}

static void on_interrupt(void *arg, const struct quipu_interrupt *irq)
{
	(void)arg;
	quipu_imc_interrupt(bed.imc, irq);
}

static uint64_t trace_on(size_t size)
{
	uint64_t a = memory(size);

	quipu_manual_signals_base(bed.manual)->interrupt = on_interrupt;
	bed_opal(&bed, INIT, TRACE, a, 0);
	ldbar(0, QUIPU_LDBAR_TRACE | a);
	bed_opal(&bed, START, TRACE, 0, 0);
	return a;
}

static void e5_records_of_a_millisecond(void **state)
{
	uint64_t a, s;

	(void)state;
	bed_pass(&bed, 125000);
	s = TB(bed.ns);
	assert_int_equal(s % 16, 0);
	a = trace_on(0x40000);
	bed_run(&bed, 1, MS);
	for (unsigned k = 0; k < 127; k++) {
		assert_int_equal(word(a, k, QUIPU_TRACE_TB1), s + 4016 * (k + 1));
		assert_int_equal(word(a, k, QUIPU_TRACE_TB2),
				 word(a, k, QUIPU_TRACE_TB1) & QUIPU_TRACE_TB_MASK);
	}
	assert_int_equal(word(a, 127, QUIPU_TRACE_TB1), 0);
}

static void e6_period_is_251_ticks(void **state)
{
	uint64_t a = trace_on(0x40000);

	(void)state;
	feed(0, QUIPU_SIGNAL_CYCLES, 250 * 3000 / 32);
	assert_int_equal(word(a, 0, 0), 0);
	bed.ns += 7843;
	feed(0, QUIPU_SIGNAL_CYCLES, 95);
	assert_int_not_equal(word(a, 0, 0), 0);
	assert_int_equal(word(a, 1, 0), 0);
}

static void e7_wraps_silently(void **state)
{
	struct quipu_imc_trace_count n;
	uint64_t a = trace_on(0x40000);

	(void)state;
	bed_run(&bed, 1, 40 * MS);
	quipu_imc_trace_counts(bed.imc, 0, &n);
	assert_int_equal(n.written, 5099);
	assert_int_equal(n.overwritten, 1003);
	assert_true(word(a, 1002, 0) > word(a, 4095, 0));
	assert_true(word(a, 1003, 0) < word(a, 4095, 0));
}

static void e8_other_selects(void **state)
{
	uint64_t a = trace_on(0x40000), scom_value;

	(void)state;
	scom_value = quipu_ibm_put(0, 0, 1) | quipu_ibm_put(0xfffffc17, 2, 33) |
		     quipu_ibm_put(0x20, 34, 40);
	assert_int_equal(quipu_imc_scom_write(bed.imc, 0, 0x20010aa9, scom_value), 0);
	feed(0, QUIPU_SIGNAL_CYCLES, 1000);
	assert_int_equal(word(a, 0, 0), 0);
	bed.ns += 1000;
	feed(0, QUIPU_SIGNAL_CYCLES, 1);
	assert_int_not_equal(word(a, 0, 0), 0);
	feed(0, QUIPU_SIGNAL_CYCLES, 1000);
	assert_int_equal(word(a, 1, 0), 0);
	feed(0, QUIPU_SIGNAL_CYCLES, 1);
	assert_int_not_equal(word(a, 1, 0), 0);
}

static void count_line(void *arg, const char *line)
{
	assert_non_null(strstr(line, "8192 trace records"));
	++*(unsigned *)arg;
}

static void e9_larger_than_the_memory(void **state)
{
	uint64_t a = trace_on(0x40000);
	struct quipu_imc_trace_count n;
	unsigned lines = 0;

	(void)state;
	quipu_imc_set_log(bed.imc, count_line, &lines);
	assert_int_equal(quipu_imc_scom_write(bed.imc, 0, 0x20010aa9,
					      QUIPU_TRACE_SCOM | quipu_ibm_put(1, 48, 50)),
			 0);
	bed_run(&bed, 1, 40 * MS);
	quipu_imc_trace_counts(bed.imc, 0, &n);
	assert_int_equal(n.overwritten, 1003);
	assert_int_equal(n.written, n.taken + n.overwritten + n.left);
	assert_int_equal(n.left, 4096);
	assert_int_equal(lines, 1);
	assert_true(word(a, 0, 0) > word(a, 4095, 0));
}

static void e10_records_are_of_a_program(void **state)
{
	uint64_t a = trace_on(0x40000);

	(void)state;
	bed_run(&bed, 1, MS);
	assert_int_equal(quipu_ibm_field(word(a, 0, QUIPU_TRACE_VAL), 0, 1), 3);
	assert_int_equal(word(a, 0, QUIPU_TRACE_IP), 0x10000000);
}

static void e11_ldbar_starts_anew(void **state)
{
	uint64_t a = trace_on(0x40000), first;

	(void)state;
	bed_run(&bed, 1, MS);
	first = word(a, 0, 0);
	ldbar(0, QUIPU_LDBAR_TRACE | a);
	bed_run(&bed, 1, 7800);
	assert_int_equal(word(a, 0, 0), first);
	bed_run(&bed, 1, 100);
	assert_true(word(a, 0, 0) > word(a, 126, 0));
}

static uint64_t core_cell(uint64_t a, unsigned offset)
{
	return 512 * quipu_imc_read64(bed.imc, a + offset);
}

static void assert_close(uint64_t a, uint64_t b, unsigned cells)
{
	assert_true((a > b ? a - b : b - a) < 512 * (cells + 1));
}

/* Two sums of cells of the same memory that must be equal within a divisor each (sheet 5.2). */
static const struct {
	const char *what;
	struct {
		unsigned offset, times;
	} left[8], right[8];
} identities[] = {
	{"N0 + .. + N4 = CC",
	 {{0xe0, 1}, {0x120, 1}, {0x160, 1}, {0x1a0, 1}, {0x1e0, 1}},
	 {{0x8d8, 1}}},
	{"ANY_THRD", {{0x58, 1}}, {{0x120, 1}, {0x160, 1}, {0x1a0, 1}, {0x1e0, 1}}},
	{"CORE_ALL_THRD", {{0x60, 1}}, {{0x1e0, 1}}},
	{"PCYC", {{0x18, 1}}, {{0x8d8, 4}}},
	{"NON_IDLE_PCYC", {{0x30, 1}}, {{0x120, 1}, {0x160, 2}, {0x1a0, 3}, {0x1e0, 4}}},
	{"NON_IDLE_INST", {{0x28, 1}}, {{0x118, 1}, {0x158, 1}, {0x198, 1}, {0x1d8, 1}}},
	{"CCYC = 32MHZ_CYC", {{0x98, 1}}, {{0xa0, 1}}},
	{"CS_32MHZ_CYC", {{0x98, 1}}, {{0x8e0, 1}}},
	{"CS_INST = USER + KERNEL", {{0x820, 1}}, {{0x1020, 1}, {0x1820, 1}}},
	{"CS_BRU_CMPL = USER + KERNEL", {{0x960, 1}}, {{0x1160, 1}, {0x1960, 1}}},
	{"CS_BR_MPRED = USER + KERNEL", {{0x998, 1}}, {{0x1198, 1}, {0x1998, 1}}},
	{"CS_MISS_L1_LDATA = USER + KERNEL", {{0xc98, 1}}, {{0x1498, 1}, {0x1c98, 1}}},
	{"CS_ST_FIN = USER + KERNEL", {{0xe20, 1}}, {{0x1620, 1}, {0x1de0, 1}}},
};

static void assert_identity(uint64_t a, size_t n)
{
	uint64_t sum[2] = {0};
	unsigned cells = 0;

	for (unsigned i = 0; i < 8; i++) {
		sum[0] += identities[n].left[i].times * core_cell(a, identities[n].left[i].offset);
		sum[1] +=
			identities[n].right[i].times * core_cell(a, identities[n].right[i].offset);
		cells += identities[n].left[i].times + identities[n].right[i].times;
	}
	if (!sum[0] || (sum[0] > sum[1] ? sum[0] - sum[1] : sum[1] - sum[0]) >= 512 * cells)
		fail_msg("%s: %llu, %llu", identities[n].what, (unsigned long long)sum[0],
			 (unsigned long long)sum[1]);
}

/* Threads of a core in all combinations, with all that the identities are about. */
static void e12_identities(void **state)
{
	static const quipu_signal signals[] = {QUIPU_SIGNAL_INSTRUCTIONS, QUIPU_SIGNAL_BRANCHES,
					       QUIPU_SIGNAL_BRANCH_MISSES,
					       QUIPU_SIGNAL_L1D_READ_MISSES, QUIPU_SIGNAL_STORES};
	const uint64_t slice = MS / 4, pause = MS / 10;
	uint64_t a = memory(0x2000), thread[4], user = 0;

	(void)state;
	bed_opal(&bed, INIT, CORE, a, 0);
	for (unsigned cpu = 0; cpu < 4; cpu++) {
		thread[cpu] = memory(0x2000);
		ldbar(cpu, ACCUMULATE(thread[cpu]));
	}
	bed_opal(&bed, START, CORE, 0, 0);
	for (unsigned i = 1; i < 16; i++) {
		for (unsigned cpu = 0; cpu < 4; cpu++)
			for (unsigned s = 0; i & 1u << cpu && s < 5; s++)
				feed(cpu, signals[s], 100000 * i + cpu + s);
		bed_run(&bed, i, slice);
		bed_pass(&bed, pause);
	}
	bed_opal(&bed, STOP, CORE, 0, 0);
	for (size_t n = 0; n < sizeof(identities) / sizeof(identities[0]); n++)
		assert_identity(a, n);
	assert_close(core_cell(a, 0x098), TB(15 * (slice + pause)) / 16, 1);
	assert_close(core_cell(a, 0x920), TB(15 * slice), 1); /* CS_PURR: while one runs */
	for (unsigned cpu = 0; cpu < 4; cpu++)
		user += core_cell(thread[cpu], 0x1020);
	assert_close(user, core_cell(a, 0x1020), 5);
}

/* Of a chip: what its memory read is 128 bytes for each line, and all of it goes through its ports.
 */
static void e12_identities_of_a_chip(void **state)
{
	uint64_t lines = 0, read = 0;

	(void)state;
	run_nest();
	for (unsigned port = 0; port < 8; port++) {
		quipu_imc_traffic(bed.imc, 0, port, QUIPU_IMC_READ_LINE, 25600 * (port + 1));
		quipu_imc_traffic(bed.imc, 0, port, QUIPU_IMC_READ_64, 1000);
	}
	bed_steps(&bed, 20);
	for (unsigned i = 0; i < 4; i++)
		lines += 256 * cell(0, (unsigned[]){0x50, 0x70, 0xd0, 0xf0}[i]);
	for (unsigned port = 0; port < 8; port++)
		read += cell(0, port < 4 ? 0x448 + 24 * port : 0x558 + 24 * (port - 4));
	assert_int_equal(lines, 25600 * 36);
	assert_int_equal(read, 128 * lines + 8 * 1000 * 64);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(o1_core_init_programs_the_core),
		CASE(o2_address_bits_that_pdbar_has),
		CASE(o3_start_and_stop_switch_htm),
		CASE(o4_trace_init_sets_the_trace_register),
		CASE(o5_unknown_cpu_is_refused),
		CASE(o6_nest_init_looks_at_nothing),
		CASE(o7_nest_without_microcode),
		CASE(o8_nest_start_is_taken_by_the_next_step),
		CASE(o9_unknown_type_does_nothing),
		CASE(o10_unknown_token),
		CASE(m1_power_on),
		CASE(m2_groups_are_posted_by_their_periods),
		CASE(m2_host_bridges_take_turns),
		CASE(m3_speed_1_halves_the_first_group),
		CASE(m4_line_fills_appear_divided),
		CASE(m5_events_of_a_pause_never_appear),
		CASE(m6_clear),
		CASE(m7_bad_speed),
		CASE(m8_bad_mode),
		CASE(m9_unknown_command_stays),
		CASE(m10_memory_is_big_endian),
		CASE(m11_slow_speeds_divide_by_65536),
		CASE(e1_thread_counts_user_instructions),
		CASE(e2_engine_off_counts_nothing),
		CASE(e3_remainder_is_kept),
		CASE(e4_cycles_by_how_many_threads_run),
		CASE(e5_records_of_a_millisecond),
		CASE(e6_period_is_251_ticks),
		CASE(e7_wraps_silently),
		CASE(e8_other_selects),
		CASE(e9_larger_than_the_memory),
		CASE(e10_records_are_of_a_program),
		CASE(e11_ldbar_starts_anew),
		CASE(e12_identities),
		CASE(e12_identities_of_a_chip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
