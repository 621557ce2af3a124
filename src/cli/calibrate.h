/* SPDX-License-Identifier: BSD-2-Clause */
/* quipu machine calibrate: costs from measured runs (calibrate.c tells of the file). */
#ifndef QUIPU_CLI_CALIBRATE_H
#define QUIPU_CLI_CALIBRATE_H

/* calibrate - fit and print; the exit status. */
int calibrate(const char *file);

#endif
