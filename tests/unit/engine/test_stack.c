/* SPDX-License-Identifier: BSD-2-Clause */
/* Does a call chain show who called whom, whatever the program does with its stack? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/qemu/stack.h"

static struct frame *frames;
static uint64_t top, entry_pcs[64];
static struct entries entries;

static int set_up(void **state)
{
	(void)state;
	frames = calloc(STACK_FRAMES, sizeof(*frames));
	top = 0;
	memset(entry_pcs, 0, sizeof(entry_pcs));
	entries = (struct entries){.pc = entry_pcs, .max = 64};
	return frames ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	free(frames);
	return 0;
}

/* Functions start at multiples of 0x1000; the call is at @site and returns to @site + 4. */
static void call(uint64_t site, uint64_t callee)
{
	stack_push(frames, &top, site + 4, site);
	entries_add(&entries, callee);
}

static void return_to(uint64_t pc)
{
	stack_return(frames, &top, pc, &entries);
}

static void calls_and_returns_balance(void **state)
{
	uint64_t chain[8];

	(void)state;
	call(0x1010, 0x2000);
	call(0x2020, 0x3000);
	assert_int_equal(stack_chain(frames, top, chain, 8), 2);
	assert_int_equal(chain[0], 0x2020);
	assert_int_equal(chain[1], 0x1010);
	assert_int_equal(stack_chain(frames, top, chain, 1), 1);
	return_to(0x2024);
	return_to(0x1014);
	assert_int_equal(top, 0);
	return_to(0x9999); /* more returns than calls: a program that started elsewhere */
	assert_int_equal(top, 0);
}

static void a_return_through_skipped_frames_finds_its_caller(void **state)
{
	(void)state;
	call(0x1010, 0x2000);
	for (unsigned i = 0; i < 50; i++)
		call(0x5000 + 16 * i, 0x6000);
	return_to(0x1014);
	assert_int_equal(top, 0);
}

static void longjmp_leaves_the_frames_of_the_function_it_lands_in(void **state)
{
	(void)state;
	call(0x1010, 0x2000); /* main calls f */
	call(0x2020, 0x3000); /* f calls setjmp, it returns */
	return_to(0x2024);
	for (unsigned round = 0; round < 1000; round++) {
		call(0x2040, 0x4000); /* f calls g, which recurses and jumps back behind setjmp */
		for (unsigned i = 0; i < 100; i++)
			call(0x4040, 0x4000);
		return_to(0x2024);
		assert_int_equal(top, 1);
	}
	return_to(0x1014);
	assert_int_equal(top, 0);
}

static void a_signal_frame_stays_until_the_system_takes_it(void **state)
{
	(void)state;
	call(0x1010, 0x2000);
	stack_push(frames, &top, STACK_SIGNAL, 0x2050);
	return_to(0x7f0000); /* the handler returns to the trampoline */
	assert_int_equal(top, 2);
}

static void deep_recursion_wraps_without_harm(void **state)
{
	static uint64_t chain[STACK_FRAMES + 10];

	(void)state;
	for (unsigned i = 0; i < STACK_FRAMES + 1000; i++)
		call(0x1010, 0x1000);
	assert_int_equal(stack_chain(frames, top, chain, STACK_FRAMES + 10), STACK_FRAMES);
	for (unsigned i = 0; i < STACK_FRAMES + 1000; i++)
		return_to(0x1014);
	assert_int_equal(top, 0);
}

static void a_full_list_of_functions_takes_no_more(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		entries_add(&entries, 0x1000 * (i + 1));
	assert_int_equal(entry_pcs[63], 0x1000 * 64);
	assert_int_equal(entries.n, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_and_returns_balance, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_return_through_skipped_frames_finds_its_caller,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			longjmp_leaves_the_frames_of_the_function_it_lands_in, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_signal_frame_stays_until_the_system_takes_it,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(deep_recursion_wraps_without_harm, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_full_list_of_functions_takes_no_more, set_up,
						tear_down),
	};

	return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
