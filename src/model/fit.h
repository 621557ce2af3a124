/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Costs from measured runs: least squares with bounds. Each run is a row: how often each thing
 * happened, and the cycles it took. Rows count by their relative error, so that a long run weighs
 * as much as a short one. Pure.
 */
#ifndef QUIPU_MODEL_FIT_H
#define QUIPU_MODEL_FIT_H

#include <stddef.h>

#define MODEL_FIT_COLUMNS 48

struct model_fit {
	size_t columns, rows;
	double gram[MODEL_FIT_COLUMNS][MODEL_FIT_COLUMNS]; /* sums of products of two columns */
	double right[MODEL_FIT_COLUMNS];		   /* ... of a column and the cycles */
};

void model_fit_init(struct model_fit *, size_t columns);
/* model_fit_add - one run: @count[columns], took @cycles > 0. */
void model_fit_add(struct model_fit *, const double *count, double cycles);
/*
 * model_fit_dependent - a column that the rows cannot tell from those before it (or that is always
 * 0), or -1: then the solution is unique.
 */
int model_fit_dependent(const struct model_fit *);
/* model_fit_solve - @cost[columns], each from @lo to @hi, with the least sum of squared relative
 * errors. */
void model_fit_solve(const struct model_fit *, const double *lo, const double *hi, double *cost);

#endif
