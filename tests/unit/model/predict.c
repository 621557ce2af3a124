/* SPDX-License-Identifier: BSD-2-Clause */
/* Does branch-misses count what the declared predictor would mispredict? Engine sheet 7.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/predict.h"

static struct model_predictor p;

static void set_up(uint32_t history)
{
	model_predictor_init(
		&p, &(struct quipu_model){
			    .counters = 4096, .history = history, .targets = 512, .returns = 16});
}

static unsigned loop(unsigned times)
{
	unsigned missed = 0;

	for (unsigned i = 0; i < times; i++)
		missed += model_predict_taken(&p, 0x8000, i + 1 < times);
	return missed;
}

static void a_loop_of_a_million_is_mispredicted_14_times(void **state)
{
	(void)state;
	set_up(12);
	assert_int_equal(loop(1000000), 14);
}

static void a_bimodal_loop_is_mispredicted_at_its_ends(void **state)
{
	(void)state;
	set_up(0);
	assert_int_equal(loop(1000000), 2);
	assert_int_equal(loop(1000), 1);
}

static void history_learns_a_pattern_that_counters_cannot(void **state)
{
	unsigned missed = 0;

	(void)state;
	set_up(12);
	for (unsigned i = 0; i < 10000; i++)
		missed += model_predict_taken(&p, 0x8000, i % 2);
	assert_in_range(missed, 1, 30);
	set_up(0);
	missed = 0;
	for (unsigned i = 0; i < 10000; i++)
		missed += model_predict_taken(&p, 0x8000, i % 2);
	assert_true(missed >= 5000);
}

static void an_indirect_branch_is_predicted_to_go_where_it_went(void **state)
{
	(void)state;
	set_up(12);
	assert_int_equal(model_predict_target(&p, 5, 0x100), MODEL_TARGET);
	assert_int_equal(model_predict_target(&p, 5, 0x100), MODEL_PREDICTED);
	assert_int_equal(model_predict_target(&p, 5, 0x200), MODEL_TARGET);
	assert_int_equal(model_predict_target(&p, 5 + 512, 0x300),
			 MODEL_TARGET); /* the same entry */
	assert_int_equal(model_predict_target(&p, 5, 0x200), MODEL_TARGET);
}

static void returns_are_predicted_as_deep_as_the_stack_is(void **state)
{
	unsigned missed = 0;

	(void)state;
	set_up(12);
	for (uint64_t depth = 0; depth < 20; depth++)
		model_predict_call(&p, 0x1000 + depth);
	for (uint64_t depth = 20; depth-- > 0;)
		missed += model_predict_return(&p, 0x1000 + depth) == MODEL_RETURN;
	assert_int_equal(missed, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_of_a_million_is_mispredicted_14_times),
		cmocka_unit_test(a_bimodal_loop_is_mispredicted_at_its_ends),
		cmocka_unit_test(history_learns_a_pattern_that_counters_cannot),
		cmocka_unit_test(an_indirect_branch_is_predicted_to_go_where_it_went),
		cmocka_unit_test(returns_are_predicted_as_deep_as_the_stack_is),
	};

	return cmocka_run_group_tests_name("model predict", tests, NULL, NULL);
}
