/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry of the LPAR room in the table of rooms. */
#ifndef QUIPU_PLATFORM_LPAR_ROOM_H
#define QUIPU_PLATFORM_LPAR_ROOM_H

#include <quipu/platform.h>

extern const struct quipu_platform quipu_platform_lpar;

/* For tests and for the machine of `quipu exec`: the firmware of a room that was created. */
struct quipu_lpar *lpar_room_firmware(void *self);

#endif
