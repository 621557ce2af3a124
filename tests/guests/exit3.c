/* SPDX-License-Identifier: BSD-2-Clause */
/* exit3 [STATUS]: ends with status 3, or the one asked for. */
#include "guest.h"

int main(int argc, char **argv)
{
	return (int)guest_arg(argc, argv, 1, 3);
}
