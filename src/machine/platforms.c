/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of platform rooms: a new platform is a new folder under src/platform and one line here.
 */
#include <quipu/platform.h>

#include "platform/imc/room.h"
#include "platform/lpar/room.h"
#include "platform/power/room.h"
#include "platform/riscv/room.h"
#include "platform/rock/room.h"
#include "platform/vtd/room.h"
#include "platform/x86/room.h"

const struct quipu_platform *const quipu_platforms[] = {
	&quipu_platform_imc,  &quipu_platform_lpar, &quipu_platform_power, &quipu_platform_riscv,
	&quipu_platform_rock, &quipu_platform_vtd,  &quipu_platform_x86,   NULL,
};
