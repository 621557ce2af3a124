/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct quipu_attr: perf_event_attr of Linux 6.12 (136 bytes). The host's own header may be older
 * or newer; constants that it has are taken from <linux/perf_event.h>, those of 6.12 that Debian
 * 12's lacks are here.
 */
#ifndef QUIPU_ATTR_H
#define QUIPU_ATTR_H

#include <stdint.h>

#include <linux/perf_event.h>

struct quipu_attr {
	uint32_t type;
	uint32_t size;
	uint64_t config;
	union {
		uint64_t sample_period;
		uint64_t sample_freq;
	};
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags; /* QUIPU_ATTR_*: the bits that perf_event_attr declares as a bit field */
	union {
		uint32_t wakeup_events;
		uint32_t wakeup_watermark;
	};
	uint32_t bp_type;
	union {
		uint64_t config1;
		uint64_t bp_addr;
	};
	union {
		uint64_t config2;
		uint64_t bp_len;
	};
	uint64_t branch_sample_type;
	uint64_t sample_regs_user;
	uint32_t sample_stack_user;
	int32_t clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack;
	uint16_t reserved_2;
	uint32_t aux_sample_size;
	uint32_t reserved_3;
	uint64_t sig_data;
	uint64_t config3;
};

_Static_assert(sizeof(struct quipu_attr) == 136, "perf_event_attr of Linux 6.12 has 136 bytes");

#define QUIPU_ATTR_DISABLED		    (UINT64_C(1) << 0)
#define QUIPU_ATTR_INHERIT		    (UINT64_C(1) << 1)
#define QUIPU_ATTR_PINNED		    (UINT64_C(1) << 2)
#define QUIPU_ATTR_EXCLUSIVE		    (UINT64_C(1) << 3)
#define QUIPU_ATTR_EXCLUDE_USER		    (UINT64_C(1) << 4)
#define QUIPU_ATTR_EXCLUDE_KERNEL	    (UINT64_C(1) << 5)
#define QUIPU_ATTR_EXCLUDE_HV		    (UINT64_C(1) << 6)
#define QUIPU_ATTR_EXCLUDE_IDLE		    (UINT64_C(1) << 7)
#define QUIPU_ATTR_MMAP			    (UINT64_C(1) << 8)
#define QUIPU_ATTR_COMM			    (UINT64_C(1) << 9)
#define QUIPU_ATTR_FREQ			    (UINT64_C(1) << 10)
#define QUIPU_ATTR_INHERIT_STAT		    (UINT64_C(1) << 11)
#define QUIPU_ATTR_ENABLE_ON_EXEC	    (UINT64_C(1) << 12)
#define QUIPU_ATTR_TASK			    (UINT64_C(1) << 13)
#define QUIPU_ATTR_WATERMARK		    (UINT64_C(1) << 14)
#define QUIPU_ATTR_PRECISE_SHIFT	    15
#define QUIPU_ATTR_PRECISE_MASK		    (UINT64_C(3) << 15)
#define QUIPU_ATTR_MMAP_DATA		    (UINT64_C(1) << 17)
#define QUIPU_ATTR_SAMPLE_ID_ALL	    (UINT64_C(1) << 18)
#define QUIPU_ATTR_EXCLUDE_HOST		    (UINT64_C(1) << 19)
#define QUIPU_ATTR_EXCLUDE_GUEST	    (UINT64_C(1) << 20)
#define QUIPU_ATTR_EXCLUDE_CALLCHAIN_KERNEL (UINT64_C(1) << 21)
#define QUIPU_ATTR_EXCLUDE_CALLCHAIN_USER   (UINT64_C(1) << 22)
#define QUIPU_ATTR_MMAP2		    (UINT64_C(1) << 23)
#define QUIPU_ATTR_COMM_EXEC		    (UINT64_C(1) << 24)
#define QUIPU_ATTR_USE_CLOCKID		    (UINT64_C(1) << 25)
#define QUIPU_ATTR_CONTEXT_SWITCH	    (UINT64_C(1) << 26)
#define QUIPU_ATTR_WRITE_BACKWARD	    (UINT64_C(1) << 27)
#define QUIPU_ATTR_NAMESPACES		    (UINT64_C(1) << 28)
#define QUIPU_ATTR_KSYMBOL		    (UINT64_C(1) << 29)
#define QUIPU_ATTR_BPF_EVENT		    (UINT64_C(1) << 30)
#define QUIPU_ATTR_AUX_OUTPUT		    (UINT64_C(1) << 31)
#define QUIPU_ATTR_CGROUP		    (UINT64_C(1) << 32)
#define QUIPU_ATTR_TEXT_POKE		    (UINT64_C(1) << 33)
#define QUIPU_ATTR_BUILD_ID		    (UINT64_C(1) << 34)
#define QUIPU_ATTR_INHERIT_THREAD	    (UINT64_C(1) << 35)
#define QUIPU_ATTR_REMOVE_ON_EXEC	    (UINT64_C(1) << 36)
#define QUIPU_ATTR_SIGTRAP		    (UINT64_C(1) << 37)
#define QUIPU_ATTR_RESERVED		    (~UINT64_C(0) << 38)

#endif
