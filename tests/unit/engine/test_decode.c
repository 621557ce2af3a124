/* SPDX-License-Identifier: BSD-2-Clause */
/* Is every instruction counted as what it is? The riscv64 decoder against the assembler's
 * encodings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <quipu/bits.h>

#include "engine/qemu/decode.h"

#define PC UINT64_C(0x4000001002)

static const struct row {
	uint32_t word;
	uint8_t size, class, flow;
	int32_t distance;
	const char *source;
} rows[] = {
#include "riscv64_rows.h"
};

static void decode(const struct row *r, struct decoded *d)
{
	uint8_t bytes[4] = {(uint8_t)r->word, (uint8_t)(r->word >> 8), (uint8_t)(r->word >> 16),
			    (uint8_t)(r->word >> 24)};

	decode_riscv64(bytes, r->size, PC, d);
}

static void every_instruction_has_its_class_size_and_flow(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct decoded d;

		decode(r, &d);
		if (d.class != r->class || d.size != r->size || d.flow != r->flow)
			fail_msg("%s: class %u (want %u) size %u flow %u (want %u)", r->source,
				 d.class, r->class, d.size, d.flow, r->flow);
	}
}

static void direct_transfers_have_their_target(void **state)
{
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct decoded d;

		if (r->flow != FLOW_COND && r->flow != FLOW_JUMP && r->flow != FLOW_CALL)
			continue;
		decode(r, &d);
		if (d.target != PC + (uint64_t)(int64_t)r->distance)
			fail_msg("%s: target %#llx", r->source, (unsigned long long)d.target);
		n++;
	}
	assert_true(n > 60);
}

static void a_cut_instruction_has_no_size(void **state)
{
	const uint8_t bytes[4] = {0x33, 0x85, 0xc5, 0x00};
	struct decoded d;

	(void)state;
	decode_riscv64(bytes, 3, PC, &d);
	assert_int_equal(d.size, 0);
	decode_riscv64(bytes, 1, PC, &d);
	assert_int_equal(d.size, 0);
}

static void any_bytes_decode_to_a_class(void **state)
{
	struct decoded d;
	uint32_t x = 1;

	(void)state;
	for (unsigned i = 0; i < 2000000; i++) {
		uint8_t bytes[4];

		x = x * 1664525 + 1013904223;
		memcpy(bytes, &x, 4);
		decode_riscv64(bytes, 4, PC, &d);
		assert_true(d.class < QUIPU_INSN_CLASSES && d.flow <= FLOW_COROUTINE);
		assert_true(d.size == 2 || d.size == 4);
	}
}

static void the_engine_knows_its_instruction_sets_and_their_calls(void **state)
{
	const struct isa *isa = isa_find("riscv64");

	(void)state;
	assert_non_null(isa);
	assert_int_equal(isa->elf_machine, 243);
	assert_int_equal(isa_call(isa, 222), CALL_MMAP);
	assert_int_equal(isa_call(isa, 139), CALL_SIGRETURN);
	assert_int_equal(isa_call(isa, 64), CALL_OTHER);
	assert_int_equal(isa_call(isa, -1), CALL_OTHER);
	assert_null(isa_find("vax"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction_has_its_class_size_and_flow),
		cmocka_unit_test(direct_transfers_have_their_target),
		cmocka_unit_test(a_cut_instruction_has_no_size),
		cmocka_unit_test(any_bytes_decode_to_a_class),
		cmocka_unit_test(the_engine_knows_its_instruction_sets_and_their_calls),
	};

	return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
