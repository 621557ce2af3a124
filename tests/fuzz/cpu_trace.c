// SPDX-License-Identifier: BSD-2-Clause
/* CPU traces fed by libFuzzer: every line read, and every instruction decoded as one of the four
 * sets. */
#include <string.h>

#include "engine/qemu/decode.h"
#include "engine/replay/cpu.h"

static void decode(const struct cpu_record *r)
{
	static const uint16_t sets[] = {243, 21, 43, 62};

	for (size_t i = 0; r->nbytes && i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct decoded d = {0};

		isa_by_elf(sets[i])->decode(r->code, r->nbytes, r->pc, &d);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *at = (const char *)data, *end = at + len;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at)), *why;
		struct cpu_record r;

		if (!stop)
			stop = end;
		if (!cpu_trace_line(at, (size_t)(stop - at), &r, &why))
			decode(&r);
		at = stop + (stop < end);
	}
	return 0;
}
