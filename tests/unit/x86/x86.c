/* SPDX-License-Identifier: BSD-2-Clause */
/* The modelled x86-64 PMU at its registers: what counts, what faults, when it interrupts. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <quipu/x86.h>

struct bed {
	struct quipu_machine machine;
	struct quipu_manual_signals *signals;
	struct quipu_x86 *x;
	unsigned interrupts;
	uint64_t pc;
};

static void on_engine(void *arg, const struct quipu_interrupt *irq)
{
	quipu_x86_interrupt(((struct bed *)arg)->x, irq);
}

static void on_pmi(void *arg, unsigned cpu, const struct quipu_interrupt *irq)
{
	struct bed *b = arg;

	assert_int_equal(cpu, irq->cpu);
	b->interrupts++;
	b->pc = irq->pc;
}

static void put(struct bed *b, uint32_t msr, uint64_t value)
{
	assert_int_equal(quipu_x86_wrmsr(b->x, 0, msr, value), 0);
}

static uint64_t get(struct bed *b, uint32_t msr)
{
	uint64_t value = 0;

	assert_int_equal(quipu_x86_rdmsr(b->x, 0, msr, &value), 0);
	return value;
}

static void feed(struct bed *b, quipu_signal signal, uint64_t n, uint64_t pc)
{
	quipu_manual_signals_feed(b->signals, 0, signal, n, pc);
}

static int setup(void **state)
{
	struct bed *b = test_calloc(1, sizeof(*b));

	b->machine.ncpus = 2;
	b->signals = quipu_manual_signals_new(2);
	b->x = quipu_x86_new(&b->machine, quipu_manual_signals_base(b->signals));
	quipu_manual_signals_base(b->signals)->interrupt = on_engine;
	quipu_manual_signals_base(b->signals)->arg = b;
	quipu_x86_set_handler(b->x, on_pmi, b);
	*state = b;
	return b->x ? 0 : -1;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	quipu_x86_free(b->x);
	quipu_manual_signals_free(b->signals);
	test_free(b);
	return 0;
}

#define LOADS 0x81d0

static void a_general_counter_counts_its_event_at_user_level(void **state)
{
	struct bed *b = *state;

	put(b, QUIPU_IA32_PERF_GLOBAL_CTRL, 0xf);
	put(b, QUIPU_IA32_PERFEVTSEL0, LOADS | QUIPU_X86_USR | QUIPU_X86_ENABLE);
	put(b, QUIPU_IA32_PERFEVTSEL0 + 1, LOADS | QUIPU_X86_OS | QUIPU_X86_ENABLE);
	put(b, QUIPU_IA32_PERFEVTSEL0 + 2,
	    0xffff | QUIPU_X86_USR | QUIPU_X86_ENABLE); /* no such event */
	feed(b, QUIPU_SIGNAL_LOADS, 41, 0x1000);
	feed(b, QUIPU_SIGNAL_STORES, 5, 0x1000);
	assert_int_equal(get(b, QUIPU_IA32_PMC0), 41);
	assert_int_equal(get(b, QUIPU_IA32_A_PMC0), 41);
	assert_int_equal(get(b, QUIPU_IA32_PMC0 + 1), 0);
	assert_int_equal(get(b, QUIPU_IA32_PMC0 + 2), 0);
	put(b, QUIPU_IA32_PERF_GLOBAL_CTRL, 0);
	feed(b, QUIPU_SIGNAL_LOADS, 100, 0x1000);
	assert_int_equal(get(b, QUIPU_IA32_PMC0), 41);
}

static void fixed_counters_count_what_they_are_for(void **state)
{
	struct bed *b = *state;

	put(b, QUIPU_IA32_PERF_GLOBAL_CTRL, UINT64_C(7) << 32);
	put(b, QUIPU_IA32_FIXED_CTR_CTRL, 0x022); /* user level, counters 0 and 1 */
	feed(b, QUIPU_SIGNAL_INSTRUCTIONS, 7, 0);
	feed(b, QUIPU_SIGNAL_CYCLES, 9, 0);
	feed(b, QUIPU_SIGNAL_REF_CYCLES, 11, 0);
	assert_int_equal(get(b, QUIPU_IA32_FIXED_CTR0), 7);
	assert_int_equal(get(b, QUIPU_IA32_FIXED_CTR0 + 1), 9);
	assert_int_equal(get(b, QUIPU_IA32_FIXED_CTR0 + 2), 0);
}

static void an_overflow_interrupts_at_its_instruction_and_shows_in_the_status(void **state)
{
	struct bed *b = *state;

	put(b, QUIPU_IA32_PERF_GLOBAL_CTRL, 0xf);
	put(b, QUIPU_IA32_A_PMC0, (UINT64_C(1) << 48) - 10);
	put(b, QUIPU_IA32_PERFEVTSEL0, LOADS | QUIPU_X86_USR | QUIPU_X86_INT | QUIPU_X86_ENABLE);
	feed(b, QUIPU_SIGNAL_LOADS, 9, 0x1000);
	assert_int_equal(b->interrupts, 0);
	assert_int_equal(get(b, QUIPU_IA32_PERF_GLOBAL_STATUS), 0);
	feed(b, QUIPU_SIGNAL_LOADS, 1, 0x2000);
	assert_int_equal(b->interrupts, 1);
	assert_int_equal(b->pc, 0x2000);
	assert_int_equal(get(b, QUIPU_IA32_PERF_GLOBAL_STATUS), 1);
	assert_int_equal(get(b, QUIPU_IA32_PMC0), 0);
	put(b, QUIPU_IA32_PERF_GLOBAL_STATUS_RESET, 1);
	assert_int_equal(get(b, QUIPU_IA32_PERF_GLOBAL_STATUS), 0);
}

static void without_int_an_overflow_only_shows(void **state)
{
	struct bed *b = *state;

	put(b, QUIPU_IA32_PERF_GLOBAL_CTRL, UINT64_C(1) << 32);
	put(b, QUIPU_IA32_FIXED_CTR0, (UINT64_C(1) << 48) - 3);
	put(b, QUIPU_IA32_FIXED_CTR_CTRL, 2);
	feed(b, QUIPU_SIGNAL_INSTRUCTIONS, 5, 0);
	assert_int_equal(b->interrupts, 0);
	assert_int_equal(get(b, QUIPU_IA32_PERF_GLOBAL_STATUS), UINT64_C(1) << 32);
	assert_int_equal(get(b, QUIPU_IA32_FIXED_CTR0), 2);
}

static void the_old_counter_register_extends_the_sign_of_32_bits(void **state)
{
	struct bed *b = *state;

	put(b, QUIPU_IA32_PMC0 + 3, 0xfffffff6);
	assert_int_equal(get(b, QUIPU_IA32_A_PMC0 + 3), UINT64_C(0xfffffffffff6));
	put(b, QUIPU_IA32_PMC0 + 3, 0x7fffffff);
	assert_int_equal(get(b, QUIPU_IA32_A_PMC0 + 3), 0x7fffffff);
}

static void what_the_processor_refuses_faults(void **state)
{
	static const struct {
		uint32_t msr;
		uint64_t value;
	} rows[] = {
		{QUIPU_IA32_PERFEVTSEL0, UINT64_C(1) << 18},
		{QUIPU_IA32_PERFEVTSEL0, UINT64_C(1) << 32},
		{QUIPU_IA32_FIXED_CTR_CTRL, 4},
		{QUIPU_IA32_PERF_GLOBAL_CTRL, 0x10},
		{QUIPU_IA32_PERF_GLOBAL_STATUS, 0},
		{QUIPU_IA32_A_PMC0, UINT64_C(1) << 48},
		{QUIPU_IA32_FIXED_CTR0, UINT64_C(1) << 48},
		{QUIPU_IA32_PERF_GLOBAL_STATUS_RESET, 0x10},
		{QUIPU_IA32_PMC0 + 4, 0},
		{QUIPU_IA32_FIXED_CTR0 + 3, 0},
		{0, 0},
		{UINT32_MAX, 0},
	};
	struct bed *b = *state;
	uint64_t value;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(quipu_x86_wrmsr(b->x, 0, rows[i].msr, rows[i].value), -EFAULT);
	assert_int_equal(quipu_x86_rdmsr(b->x, 0, 0x10, &value), -EFAULT);
	assert_int_equal(quipu_x86_rdmsr(b->x, 2, QUIPU_IA32_PMC0, &value), -EINVAL);
	assert_int_equal(quipu_x86_wrmsr(b->x, UINT32_MAX, QUIPU_IA32_PMC0, 0), -EINVAL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_general_counter_counts_its_event_at_user_level),
		CASE(fixed_counters_count_what_they_are_for),
		CASE(an_overflow_interrupts_at_its_instruction_and_shows_in_the_status),
		CASE(without_int_an_overflow_only_shows),
		CASE(the_old_counter_register_extends_the_sign_of_32_bits),
		CASE(what_the_processor_refuses_faults),
	};

	return cmocka_run_group_tests_name("x86", tests, NULL, NULL);
}
