/* SPDX-License-Identifier: BSD-2-Clause */
/* The IMC room's entry in the table of rooms. */
#ifndef QUIPU_PLATFORM_IMC_ROOM_H
#define QUIPU_PLATFORM_IMC_ROOM_H

#include <quipu/platform.h>

extern const struct quipu_platform quipu_platform_imc;

/* For tests: the hardware and the driver of a room. */
struct quipu_imc *imc_room_hardware(void *self);
struct imc_driver *imc_room_driver(void *self);

#endif
