/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of the POWER9 core PMU in the table of rooms; machines power9 and (later) lpar have it.
 */
#ifndef QUIPU_PLATFORM_POWER_ROOM_H
#define QUIPU_PLATFORM_POWER_ROOM_H

#include <quipu/platform.h>

extern const struct quipu_platform quipu_platform_power;

/* For tests. */
struct power_driver *power_room_driver(void *self);

#endif
