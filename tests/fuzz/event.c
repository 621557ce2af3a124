/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_event_open fed by libFuzzer: the input is a list of opens (attr bytes and arguments), each
 * followed by the calls a client can make on what was opened. Software events only: hostile attrs
 * meet modelled hardware in the unit fuzzer.
 */
#include <stdlib.h>
#include <string.h>

#include <quipu/event.h>

#define EVENTS 8

struct input {
	const uint8_t *at, *end;
};

static uint64_t clock_ns;

static uint64_t now(void *arg, unsigned cpu)
{
	(void)arg;
	(void)cpu;
	return clock_ns += 1000;
}

static uint64_t take(struct input *in, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(in->end - in->at) < n)
		n = (size_t)(in->end - in->at);
	memcpy(&v, in->at, n);
	in->at += n;
	return v;
}

static void use(struct quipu_core *core, struct quipu_event *e, struct input *in)
{
	static const struct quipu_caller who = {.pid = 1, .tid = 1};
	static _Alignas(8) uint8_t mem[5 * 4096], out[16384];
	struct quipu_count c;
	bool mapped;

	memset(mem, 0, sizeof(mem));
	mapped = quipu_event_map(e, &who, mem, take(in, 1) % 5, take(in, 1) & 1) == 0;
	quipu_event_ioctl(e, 0x2400 | (take(in, 1) & 15), take(in, 8));
	quipu_event_set_period(e, take(in, 8));
	quipu_core_software(core, 0, take(in, 1) % 12, 1 + take(in, 1), NULL);
	quipu_core_tick(core, 0);
	quipu_event_read(e, out, sizeof(out));
	quipu_event_count(e, &c);
	if (c.running > c.enabled)
		abort();
	if (mapped)
		quipu_event_unmap(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct quipu_core_ops ops = {.now = now};
	const struct quipu_core_config config = {
		.ncpus = 2, .paranoid = -1, .regs_mask = 0xffffffff};
	static const struct quipu_caller who = {.pid = 1, .tid = 1};
	struct quipu_core *core = quipu_core_new(&config, &ops, NULL);
	struct quipu_event *e[EVENTS] = {NULL};
	struct input in = {data, data + size};
	struct quipu_task *t;
	uint32_t back;

	clock_ns = 0;
	if (!core)
		return 0;
	t = quipu_task_new(core, NULL, 1, 1, false, "fuzz", 0);
	if (t)
		quipu_sched_in(core, 0, t);
	for (unsigned i = 0; i < EVENTS && in.at < in.end; i++) {
		unsigned group = (unsigned)take(&in, 1), args = (unsigned)take(&in, 1);
		size_t len = (size_t)(in.end - in.at) < 144 ? (size_t)(in.end - in.at) : 144;

		quipu_event_open(core, &who, in.at, len, args & 1 ? -1 : 0,
				 (int)(args >> 1 & 3) - 1, group & 1 ? e[group >> 1 & 7] : NULL,
				 args >> 3 & 31, &back, &e[i]);
		in.at += len;
		if (e[i])
			use(core, e[i], &in);
	}
	quipu_core_free(core);
	return 0;
}
