/* SPDX-License-Identifier: BSD-2-Clause */
/* Least squares with bounds (fit.h): coordinate descent on the normal equations, which are small
 * and convex. */
#include "model/fit.h"

#include <string.h>

#define SWEEPS	  200000
#define UNMOVED	  1e-12
#define DEPENDENT 1e-9 /* of a column's own square */

void model_fit_init(struct model_fit *f, size_t columns)
{
	memset(f, 0, sizeof(*f));
	f->columns = columns < MODEL_FIT_COLUMNS ? columns : MODEL_FIT_COLUMNS;
}

void model_fit_add(struct model_fit *f, const double *count, double cycles)
{
	for (size_t i = 0; i < f->columns; i++) {
		for (size_t j = 0; j < f->columns; j++)
			f->gram[i][j] += count[i] / cycles * (count[j] / cycles);
		f->right[i] += count[i] / cycles;
	}
	f->rows++;
}

/* L D L': what is left of a column's square when the columns before it are taken out. */
int model_fit_dependent(const struct model_fit *f)
{
	double l[MODEL_FIT_COLUMNS][MODEL_FIT_COLUMNS], d[MODEL_FIT_COLUMNS];

	for (size_t i = 0; i < f->columns; i++) {
		for (size_t j = 0; j <= i; j++) {
			double left = f->gram[i][j];

			for (size_t k = 0; k < j; k++)
				left -= l[i][k] * l[j][k] * d[k];
			if (j < i)
				l[i][j] = left / d[j];
			else
				d[i] = left;
		}
		if (!(d[i] > DEPENDENT * f->gram[i][i]))
			return (int)i;
	}
	return -1;
}

static double between(double v, double lo, double hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

void model_fit_solve(const struct model_fit *f, const double *lo, const double *hi, double *cost)
{
	memcpy(cost, lo, f->columns * sizeof(*cost));
	for (unsigned sweep = 0; sweep < SWEEPS; sweep++) {
		double moved = 0;

		for (size_t i = 0; i < f->columns; i++) {
			double left = f->right[i], next;

			for (size_t j = 0; j < f->columns; j++)
				left -= j == i ? 0 : f->gram[i][j] * cost[j];
			next = between(f->gram[i][i] > 0 ? left / f->gram[i][i] : lo[i], lo[i],
				       hi[i]);
			moved += next > cost[i] ? next - cost[i] : cost[i] - next;
			cost[i] = next;
		}
		if (moved < UNMOVED)
			return;
	}
}
