/* SPDX-License-Identifier: BSD-2-Clause */
/* Widths, fields and byte order: the one place where they are spelled out. */
#ifndef QUIPU_BITS_H
#define QUIPU_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The low @n bits set; n = 0..64. */
static inline uint64_t bits_mask(unsigned n)
{
	return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

static inline uint64_t bits_one(unsigned n)
{
	return UINT64_C(1) << n;
}

/* Bits hi..lo of @v, counted from the least significant. */
static inline uint64_t bits_get(uint64_t v, unsigned hi, unsigned lo)
{
	return (v >> lo) & bits_mask(hi - lo + 1);
}

/* @v in bits hi..lo; what does not fit is cut off. */
static inline uint64_t bits_put(uint64_t v, unsigned hi, unsigned lo)
{
	return (v & bits_mask(hi - lo + 1)) << lo;
}

/* @v of @n bits, sign-extended. */
static inline int64_t bits_sign(uint64_t v, unsigned n)
{
	return (int64_t)(v << (64 - n)) >> (64 - n);
}

static inline unsigned bits_count(uint64_t v)
{
	return (unsigned)__builtin_popcountll(v);
}

/* Index of the lowest set bit; v != 0. */
static inline unsigned bits_low(uint64_t v)
{
	return (unsigned)__builtin_ctzll(v);
}

static inline uint16_t bits_le16(const void *p)
{
	const uint8_t *b = p;

	return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t bits_le32(const void *p)
{
	return bits_le16(p) | (uint32_t)bits_le16((const uint8_t *)p + 2) << 16;
}

static inline uint64_t bits_le64(const void *p)
{
	return bits_le32(p) | (uint64_t)bits_le32((const uint8_t *)p + 4) << 32;
}

static inline uint32_t bits_be32(const void *p)
{
	return __builtin_bswap32(bits_le32(p));
}

static inline uint64_t bits_be64(const void *p)
{
	return __builtin_bswap64(bits_le64(p));
}

/* a * b / c without losing the high part; c != 0. Saturates. */
static inline uint64_t bits_muldiv(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned __int128 r = (unsigned __int128)a * b / c;

	return r > UINT64_MAX ? UINT64_MAX : (uint64_t)r;
}

#endif
