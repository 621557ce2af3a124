/* SPDX-License-Identifier: BSD-2-Clause */
/* Does calibration find the costs that the runs were made with? */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/fit.h"

static uint64_t rng = 88172645463325252u;

static double next_random(double most)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (double)(rng % 1000003) * most / 1000003;
}

static double distance(double a, double b)
{
	return a > b ? a - b : b - a;
}

/* 30 runs of very different lengths, of things that cost 1, 3, 20 and 200. */
static void make_runs(struct model_fit *f, double noise)
{
	static const double cost[4] = {1, 3, 20, 200};

	model_fit_init(f, 4);
	for (unsigned run = 0; run < 30; run++) {
		double scale = run % 3 ? 1e4 : 1e9, count[4], cycles = 0;

		for (unsigned i = 0; i < 4; i++) {
			count[i] = next_random(scale / cost[i]);
			cycles += count[i] * cost[i];
		}
		model_fit_add(f, count, cycles * (1 + next_random(2 * noise) - noise));
	}
}

static void costs_are_found_again(void **state)
{
	static const double lo[4] = {1, 1, 1, 0}, hi[4] = {63, 63, 63, 1000},
			    want[4] = {1, 3, 20, 200};
	struct model_fit f;
	double cost[4];

	(void)state;
	make_runs(&f, 0);
	assert_int_equal(model_fit_dependent(&f), -1);
	model_fit_solve(&f, lo, hi, cost);
	for (unsigned i = 0; i < 4; i++)
		assert_true(distance(cost[i], want[i]) < 1e-6 * want[i]);
}

static void noise_moves_them_little(void **state)
{
	static const double lo[4] = {0, 0, 0, 0}, hi[4] = {63, 63, 63, 1000},
			    want[4] = {1, 3, 20, 200};
	struct model_fit f;
	double cost[4];

	(void)state;
	make_runs(&f, 0.02);
	model_fit_solve(&f, lo, hi, cost);
	for (unsigned i = 0; i < 4; i++)
		assert_true(distance(cost[i], want[i]) < 0.1 * want[i]);
}

static void bounds_hold(void **state)
{
	static const double lo[4] = {1, 5, 1, 0}, hi[4] = {63, 63, 10, 1000};
	struct model_fit f;
	double cost[4];

	(void)state;
	make_runs(&f, 0);
	model_fit_solve(&f, lo, hi, cost);
	assert_true(cost[1] >= 5 && cost[2] <= 10 && cost[0] >= 1);
}

static void columns_that_move_together_are_told(void **state)
{
	struct model_fit f;

	(void)state;
	model_fit_init(&f, 3);
	for (unsigned run = 0; run < 10; run++) {
		double a = next_random(1000), b = next_random(1000);

		model_fit_add(&f, (double[]){a, b, 2 * a + b}, a + b + 1);
	}
	assert_int_equal(model_fit_dependent(&f), 2);
	model_fit_init(&f, 2);
	model_fit_add(&f, (double[]){1, 0}, 1);
	model_fit_add(&f, (double[]){2, 0}, 2);
	assert_int_equal(model_fit_dependent(&f), 1); /* never happened */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_are_found_again),
		cmocka_unit_test(noise_moves_them_little),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(columns_that_move_together_are_told),
	};

	return cmocka_run_group_tests_name("model fit", tests, NULL, NULL);
}
