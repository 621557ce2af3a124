// SPDX-License-Identifier: BSD-2-Clause
/*
 * What comes to the LPAR room from outside, by libFuzzer: symbol maps of every format, argument
 * buffers and work areas anywhere in a partition's memory, answers for the resolver. The first byte
 * chooses. What must hold: a lookup agrees with a walk over all symbols; no status that is not
 * documented; no byte of the private area ever changes.
 */
#include <stdlib.h>
#include <string.h>

#include <quipu/bits.h>
#include <quipu/lpar.h>

#define ARGS	UINT64_C(0x0d000000)
#define PRIVATE UINT64_C(0x0f000000)

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* ---- maps ---- */

static struct quipu_hvmap *read_map(const uint8_t *data, size_t len, uint8_t how)
{
	static const char *const formats[] = {NULL, "nm", "kallsyms", "perfmap", "elf"};
	struct quipu_hvmap_module modules[] = {{0x1000, 0x1000, "a", false},
					       {0x3000, 0x800, "b", how & 8}};
	struct quipu_hvmap_options o = {.format = formats[how % 5],
					.file = "f",
					.has_base = how & 16,
					.base = UINT64_C(0x30000000)};
	struct quipu_hvmap_error err;
	struct quipu_hvmap *map = NULL;

	if (how & 32) {
		o.modules = modules;
		o.nmodules = 2;
	}
	if (quipu_hvmap_read(&map, data, len, &o, &err))
		require(strnlen(err.text, sizeof(err.text)) < sizeof(err.text));
	return map;
}

static void check_address(const struct quipu_hvmap *map, uint64_t addr)
{
	struct quipu_hvmap_hit hit, s, best = {.kind = QUIPU_HVMAP_INVALID};

	quipu_hvmap_find(map, addr, &hit);
	for (size_t i = 0; i < quipu_hvmap_size(map); i++) {
		quipu_hvmap_symbol(map, i, &s);
		if (addr >= s.start && (addr - s.start < s.size || s.size == UINT64_MAX) &&
		    (best.kind == QUIPU_HVMAP_INVALID || s.start >= best.start))
			best = s;
	}
	if (best.kind == QUIPU_HVMAP_FUNCTION)
		require(hit.kind == QUIPU_HVMAP_FUNCTION && hit.start == best.start);
	else
		require(hit.kind != QUIPU_HVMAP_FUNCTION);
}

static void fuzz_map(const uint8_t *data, size_t len)
{
	struct quipu_hvmap *map;
	struct quipu_hvmap_hit s;

	if (len < 1)
		return;
	map = read_map(data + 1, len - 1, data[0]);
	if (!map)
		return;
	for (size_t i = 0; i < quipu_hvmap_size(map) && i < 64; i++) {
		quipu_hvmap_symbol(map, i, &s);
		check_address(map, s.start);
		check_address(map, s.start - 1);
		check_address(map, s.start + s.size);
		require(s.name[0] && strlen(s.name) <= QUIPU_HVMAP_NAME);
		require(quipu_hvmap_named(map, s.name, &s));
	}
	check_address(map, 0);
	check_address(map, UINT64_MAX);
	quipu_hvmap_put(map);
}

/* ---- calls ---- */

static struct quipu_lpar *firmware(uint8_t how)
{
	static const char text[] = "a00000 100 one\na00100 80 two\na00120 20 inner\n";
	static const int32_t plan[] = {-2, 9900};
	struct quipu_hvmap *map = NULL;
	struct quipu_lpar *l;
	struct quipu_partition *p;

	require(!quipu_hvmap_read(&map, text, strlen(text), NULL, NULL));
	l = quipu_lpar_new_map(map);
	p = quipu_lpar_partition(l, 1);
	quipu_partition_option(p, QUIPU_PARTITION_CHUNKED, how & 1);
	quipu_partition_option(p, QUIPU_PARTITION_RECHECK_IAR, how & 2);
	quipu_partition_option(p, QUIPU_PARTITION_SCRIBBLE, how & 4);
	quipu_partition_option(p, QUIPU_PARTITION_ANYWHERE, how & 8);
	quipu_partition_plan(p, plan, how >> 4 & 1 ? 2 : 0, 1 + (how >> 5));
	return l;
}

/* Half of the calls are nearly right: a good buffer with one cell of the input's. */
static void one_call(struct quipu_partition *p, const uint8_t *d)
{
	uint32_t cells[16] = {0x2100, 5, 2, 1, 0, 0x0e000000, 64, 1};
	uint64_t at = ARGS, iar = __builtin_bswap64(UINT64_C(0xa00000) + d[1]);
	uint8_t raw[64];
	int rc;

	cells[d[2] % 8] = bits_le32(d + 4);
	if (d[0] & 1)
		at = ARGS + d[3];
	if (d[0] & 2)
		at = bits_le64(d + 4);
	if (d[0] & 4)
		cells[7] = d[3];
	if (d[0] & 8)
		cells[5] = (uint32_t)PRIVATE + d[3] - 128u;
	if (d[0] & 16)
		cells[5] = (uint32_t)ARGS + d[3] - 64u;
	if (d[0] & 32)
		cells[6] = d[3];
	for (unsigned i = 0; i < 16; i++)
		cells[i] = __builtin_bswap32(cells[i]);
	quipu_partition_write(p, 0x0e000000, &iar, 8);
	quipu_partition_write(p, at, cells, sizeof(cells));
	rc = quipu_rtas_call(p, at);
	require(!rc || rc == -14);
	if (rc || d[0] & 2 || d[2] % 8 < 3) /* other rets, or none */
		return;
	require(!quipu_partition_read(p, at, raw, sizeof(raw)));
	switch ((int32_t)bits_be32(raw + 32)) {
	case 0:
	case -2:
	case -3:
	case -5:
	case 9900: break;
	default: abort();
	}
	require(bits_be32(raw + 36) >= 1 && bits_be32(raw + 36) <= 0x7fffffff);
}

static void fuzz_calls(const uint8_t *data, size_t len)
{
	static const uint8_t canary[64] =
		"the private area of the firmware: off limits for everyone";
	struct quipu_lpar *l;
	struct quipu_partition *p;
	uint8_t after[64];

	if (len < 1)
		return;
	l = firmware(data[0]);
	p = quipu_lpar_partition(l, 1);
	quipu_partition_write(p, PRIVATE, canary, sizeof(canary));
	for (size_t at = 1; at + 12 <= len; at += 12) {
		bool own = false;

		/* The partition itself may write there: only calls count. */
		if (data[at] & 2) {
			uint64_t a = bits_le64(data + at + 4);

			own = a < PRIVATE + 64 && a + 64 > PRIVATE;
		}
		if (!own)
			one_call(p, data + at);
	}
	quipu_partition_read(p, PRIVATE, after, sizeof(after));
	require(!memcmp(after, canary, sizeof(after)));
	quipu_lpar_free(l);
}

/* ---- answers ---- */

struct liar {
	const uint8_t *at, *end;
};

static int64_t liar_token(void *arg, const char *function)
{
	(void)arg;
	(void)function;
	return 1;
}

static int liar_alloc(void *arg, size_t size, uint64_t *ra, void **va)
{
	(void)arg;
	*ra = 0;
	*va = malloc(size);
	return *va ? 0 : -12;
}

static void liar_free(void *arg, size_t size, uint64_t ra, void *va)
{
	(void)arg;
	(void)size;
	(void)ra;
	free(va);
}

static int liar_call(void *arg, uint32_t *cells, unsigned n, uint64_t ra, void *va, size_t size)
{
	static const int32_t statuses[] = {0, 0, -2, -3, -5, 9900, 9905, -1, -9002, 77};
	struct liar *l = arg;
	size_t len;

	(void)n;
	(void)ra;
	if (l->end - l->at < 4)
		return -104;
	cells[8] = (uint32_t)statuses[l->at[0] % 10];
	cells[9] = l->at[1] & 128 ? bits_le32(l->at) : l->at[1] & 3;
	len = l->at[2];
	l->at += 4;
	if (len > (size_t)(l->end - l->at))
		len = (size_t)(l->end - l->at);
	if (len > size)
		len = size;
	memcpy(va, l->at, len);
	l->at += len;
	return 0;
}

static uint64_t no_time(void *arg)
{
	return *(uint64_t *)arg;
}

static void no_sleep(void *arg, uint64_t ms)
{
	*(uint64_t *)arg += ms;
}

static void fuzz_answers(const uint8_t *data, size_t len)
{
	struct liar l = {data, data + len};
	struct quipu_rtas_transport t = {.arg = &l,
					 .token = liar_token,
					 .alloc = liar_alloc,
					 .free = liar_free,
					 .call = liar_call};
	uint64_t now = 0;
	struct quipu_hvsym_clock clock = {no_time, no_sleep, &now};
	struct quipu_hvsym_opts o = {
		.buf_size = 16, .buf_max = 128, .max_calls = 100, .clock = &clock};
	uint64_t iar[8] = {0, 1, 4, 0xa00000, 0xa00000, UINT64_MAX, UINT64_MAX - 3, 8};
	struct quipu_hvsym_result r[8];
	struct quipu_hvsym *h;
	size_t ok;

	if (quipu_hvsym_open(&h, &t, &o))
		return;
	quipu_hvsym_resolve_many(h, iar, 8, r, &ok);
	for (unsigned i = 0; i < 8; i++) {
		require(r[i].iar == iar[i]);
		require(r[i].error || (r[i].name && r[i].offset <= iar[i]));
	}
	quipu_hvsym_close(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const targets[])(const uint8_t *, size_t) = {fuzz_map, fuzz_calls,
								   fuzz_answers};

	if (len)
		targets[data[0] % 3](data + 1, len - 1);
	return 0;
}
