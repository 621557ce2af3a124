/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real memory as far as collection needs it: the region of each chip and what drivers allocate for
 * counters. An address outside of it is no memory: hardware that was pointed there writes nowhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/imc/hardware.h"

#define MAX_REGIONS 65536u
#define ALIGN	    UINT64_C(0x2000)
#define MAX_ALLOC   (UINT64_C(1) << 30)

struct imc_memory *imc_memory_find(const struct quipu_imc *imc, uint64_t address, size_t len)
{
	unsigned lo = 0, hi = imc->nmemory;

	/* Sorted by base: the last region that begins at or before the address. */
	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (imc->memory[mid]->base <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	if (address - imc->memory[lo - 1]->base > imc->memory[lo - 1]->size ||
	    len > imc->memory[lo - 1]->size - (address - imc->memory[lo - 1]->base))
		return NULL;
	return imc->memory[lo - 1];
}

struct imc_memory *imc_memory_add(struct quipu_imc *imc, uint64_t base, size_t size)
{
	struct imc_memory *m, **grown;
	unsigned at = imc->nmemory;

	if (imc->nmemory == imc->room_memory) {
		unsigned room = imc->room_memory ? 2 * imc->room_memory : 64;

		grown = room > MAX_REGIONS ? NULL : reallocarray(imc->memory, room, sizeof(*grown));
		if (!grown)
			return NULL;
		imc->memory = grown;
		imc->room_memory = room;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	*m = (struct imc_memory){.base = base, .size = size};
	while (at && imc->memory[at - 1]->base > base) {
		imc->memory[at] = imc->memory[at - 1];
		at--;
	}
	imc->memory[at] = m;
	imc->nmemory++;
	return m;
}

uint8_t *imc_memory_bytes(struct imc_memory *m, uint64_t address)
{
	if (!m->data)
		m->data = calloc(1, m->size);
	return m->data ? m->data + (address - m->base) : NULL;
}

void imc_memory_free(struct quipu_imc *imc)
{
	for (unsigned i = 0; i < imc->nmemory; i++) {
		free(imc->memory[i]->data);
		free(imc->memory[i]);
	}
	free(imc->memory);
}

uint64_t imc_load(const struct quipu_imc *imc, uint64_t address)
{
	const struct imc_memory *m = imc_memory_find(imc, address, 8);

	return m && m->data ? bits_be64(m->data + (address - m->base)) : 0;
}

bool imc_store(struct quipu_imc *imc, uint64_t address, uint64_t value)
{
	struct imc_memory *m = imc_memory_find(imc, address, 8);
	uint8_t *to = m ? imc_memory_bytes(m, address) : NULL;

	value = __builtin_bswap64(value);
	if (to)
		memcpy(to, &value, 8); /* host is little-endian (segment.h) */
	return to;
}

uint64_t quipu_imc_alloc(struct quipu_imc *imc, size_t size)
{
	uint64_t base = imc->next_address, rounded = (size + ALIGN - 1) & ~(ALIGN - 1);

	if (!size || size > MAX_ALLOC || !imc_memory_add(imc, base, rounded))
		return 0;
	imc->next_address += rounded;
	return base;
}

int quipu_imc_read(struct quipu_imc *imc, uint64_t address, void *buf, size_t len)
{
	const struct imc_memory *m;

	imc_sync(imc);
	m = imc_memory_find(imc, address, len);
	if (!m)
		return -EFAULT;
	if (m->data)
		memcpy(buf, m->data + (address - m->base), len);
	else
		memset(buf, 0, len);
	return 0;
}

int quipu_imc_write(struct quipu_imc *imc, uint64_t address, const void *buf, size_t len)
{
	struct imc_memory *m;
	uint8_t *to;

	imc_sync(imc); /* what was posted before the write comes before it */
	m = imc_memory_find(imc, address, len);
	if (!m)
		return -EFAULT;
	to = imc_memory_bytes(m, address);
	if (!to)
		return -ENOMEM;
	memcpy(to, buf, len);
	return 0;
}

uint64_t quipu_imc_read64(struct quipu_imc *imc, uint64_t address)
{
	imc_sync(imc);
	return imc_load(imc, address);
}

int quipu_imc_write64(struct quipu_imc *imc, uint64_t address, uint64_t value)
{
	imc_sync(imc);
	return imc_store(imc, address, value) ? 0 : -EFAULT;
}
