/* SPDX-License-Identifier: BSD-2-Clause */
/* The models of a machine, for `quipu machine show`. */
#ifndef QUIPU_CLI_SHOW_MODELS_H
#define QUIPU_CLI_SHOW_MODELS_H

#include <jansson.h>
#include <quipu/machine.h>

/* show_models - lines of text: TLBs, predictor, what a miss loses. */
void show_models(const struct quipu_machine *);
json_t *json_models(const struct quipu_machine *);

#endif
