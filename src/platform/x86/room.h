/* SPDX-License-Identifier: BSD-2-Clause */
/* The x86 room's entry in the table of rooms. */
#ifndef QUIPU_PLATFORM_X86_ROOM_H
#define QUIPU_PLATFORM_X86_ROOM_H

#include <quipu/platform.h>

extern const struct quipu_platform quipu_platform_x86;

#endif
