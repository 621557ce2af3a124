/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_event_attr: from the caller's bytes to a checked struct. perf ABI sheet A2 (sizes), A3
 * (flags) and A4 steps 2-17, in that order, because a client learns what is supported from which
 * error it gets. Any bytes may come in.
 */
#include <errno.h>
#include <string.h>

#include <quipu/bits.h>

#include "internal.h"

#define ATTR_SIZE_VER0 64u
#define BRANCH_PRIVILEGE                                                                           \
	(PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)
/* Not in every <linux/perf_event.h>: Linux 5.12. */
#define SAMPLE_WEIGHT_STRUCT (UINT64_C(1) << 24)

static int too_big(struct quipu_core *core, uint32_t size, uint32_t *back)
{
	if (back)
		*back = sizeof(struct quipu_attr);
	quipu_core_reason(
		core,
		"perf_event_attr of %u bytes: this machine knows %zu bytes of Linux 6.12, and more only "
		"if they are all zero",
		size, sizeof(struct quipu_attr));
	return -E2BIG;
}

int attr_copy(struct quipu_core *core, const void *attr, size_t len, uint32_t *back,
	      struct quipu_attr *out)
{
	const uint8_t *bytes = attr;
	uint32_t size;

	if (!attr || len < offsetof(struct quipu_attr, size) + sizeof(size)) {
		quipu_core_reason(core, "the perf_event_attr cannot be read");
		return -EFAULT;
	}
	memcpy(&size, bytes + offsetof(struct quipu_attr, size), sizeof(size));
	if (!size)
		size = ATTR_SIZE_VER0;
	if (size < ATTR_SIZE_VER0 || size > PAGE)
		return too_big(core, size, back);
	if (len < size) {
		quipu_core_reason(core, "only %zu of the perf_event_attr's %u bytes can be read",
				  len, size);
		return -EFAULT;
	}
	for (size_t i = sizeof(*out); i < size; i++) {
		if (bytes[i])
			return too_big(core, size, back);
	}
	memset(out, 0, sizeof(*out));
	memcpy(out, bytes, size < sizeof(*out) ? size : sizeof(*out));
	out->size = size;
	return 0;
}

static int refuse(struct quipu_core *core, int err, const char *why)
{
	quipu_core_reason(core, "%s", why);
	return err;
}

static int check_branch(struct quipu_core *core, const struct quipu_caller *who,
			struct quipu_attr *a)
{
	uint64_t mask = a->branch_sample_type;

	if (mask & ~BRANCH_KNOWN)
		return refuse(core, -EINVAL,
			      "branch_sample_type has bits that Linux 6.12 does not know");
	if (!(mask & ~(uint64_t)BRANCH_PRIVILEGE))
		return refuse(
			core, -EINVAL,
			"branch_sample_type asks for no kind of branch; set ANY or another kind");
	if (!(mask & BRANCH_PRIVILEGE)) {
		if (!(a->flags & QUIPU_ATTR_EXCLUDE_USER))
			mask |= PERF_SAMPLE_BRANCH_USER;
		if (!(a->flags & QUIPU_ATTR_EXCLUDE_KERNEL))
			mask |= PERF_SAMPLE_BRANCH_KERNEL;
		if (!(a->flags & QUIPU_ATTR_EXCLUDE_HV))
			mask |= PERF_SAMPLE_BRANCH_HV;
		a->branch_sample_type = mask;
	}
	if ((mask & (PERF_SAMPLE_BRANCH_KERNEL | PERF_SAMPLE_BRANCH_HV)) &&
	    !core_kernel_allowed(core, who))
		return refuse(
			core, -EACCES,
			"branches of the kernel need perf_event_paranoid <= 1 or CAP_PERFMON; add :u");
	return 0;
}

static int check_regs(struct quipu_core *core, uint64_t mask)
{
	uint64_t known = core->config.regs_mask | core->config.regs_extended;

	if (!known) {
		if (!mask)
			return 0;
		return refuse(
			core, -ENOSYS,
			"this machine's architecture has no perf registers; sample without registers");
	}
	if (!mask || (mask & ~known))
		return refuse(
			core, -EINVAL,
			"the register mask is empty or names registers that the architecture lacks");
	return 0;
}

static int check_stack(struct quipu_core *core, const struct quipu_attr *a)
{
	if (core->config.no_stack_user)
		return refuse(
			core, -ENOSYS,
			"this machine's architecture has no user stack dumps; use call chains (-g)");
	if (a->sample_stack_user >= UINT16_MAX || a->sample_stack_user % 8)
		return refuse(core, -EINVAL,
			      "sample_stack_user must be a multiple of 8 below 65535");
	return 0;
}

/* Step 11: bits that go only with, or never with, another. */
static int check_combinations(struct quipu_core *core, uint64_t flags)
{
	if ((flags & QUIPU_ATTR_INHERIT_THREAD) && !(flags & QUIPU_ATTR_INHERIT))
		return refuse(core, -EINVAL, "inherit_thread needs inherit");
	if ((flags & QUIPU_ATTR_REMOVE_ON_EXEC) && (flags & QUIPU_ATTR_ENABLE_ON_EXEC))
		return refuse(core, -EINVAL,
			      "remove_on_exec and enable_on_exec exclude each other");
	if ((flags & QUIPU_ATTR_SIGTRAP) && !(flags & QUIPU_ATTR_REMOVE_ON_EXEC))
		return refuse(core, -EINVAL, "sigtrap needs remove_on_exec");
	return 0;
}

int attr_check(struct quipu_core *core, const struct quipu_caller *who, struct quipu_attr *a)
{
	int r = 0;

	if ((a->flags & QUIPU_ATTR_RESERVED) || a->reserved_2 || a->reserved_3)
		return refuse(core, -EINVAL, "a reserved field of the perf_event_attr is not zero");
	if (a->sample_type & ~SAMPLE_KNOWN)
		return refuse(core, -EINVAL, "sample_type has bits that Linux 6.12 does not know");
	if (a->read_format & ~READ_KNOWN)
		return refuse(core, -EINVAL, "read_format has bits that Linux 6.12 does not know");
	if (a->sample_type & PERF_SAMPLE_BRANCH_STACK)
		r = check_branch(core, who, a);
	if (!r && (a->sample_type & PERF_SAMPLE_REGS_USER))
		r = check_regs(core, a->sample_regs_user);
	if (!r && (a->sample_type & PERF_SAMPLE_STACK_USER))
		r = check_stack(core, a);
	if (r)
		return r;
	if (!a->sample_max_stack)
		a->sample_max_stack = (uint16_t)core->config.max_stack;
	if (a->sample_type & PERF_SAMPLE_REGS_INTR)
		r = check_regs(core, a->sample_regs_intr);
	if (r)
		return r;
	if ((a->sample_type & PERF_SAMPLE_WEIGHT) && (a->sample_type & SAMPLE_WEIGHT_STRUCT))
		return refuse(core, -EINVAL, "WEIGHT and WEIGHT_STRUCT exclude each other");
	return check_combinations(core, a->flags);
}

/* Does the event look into the kernel (A4 step 14)? */
static bool kernel_wanted(const struct quipu_attr *a)
{
	return !(a->flags & QUIPU_ATTR_EXCLUDE_KERNEL) || (a->flags & QUIPU_ATTR_TEXT_POKE) ||
	       ((a->sample_type & PERF_SAMPLE_CALLCHAIN) &&
		!(a->flags & QUIPU_ATTR_EXCLUDE_CALLCHAIN_KERNEL));
}

int attr_permission(struct quipu_core *core, const struct quipu_caller *who,
		    const struct quipu_attr *a)
{
	bool kernel = core_kernel_allowed(core, who);

	if (core->config.paranoid > 2 && !who->perfmon)
		return refuse(
			core, -EACCES,
			"perf_event_paranoid is above 2: only CAP_PERFMON may open events; start the "
			"machine with a lower --paranoid");
	if (kernel_wanted(a) && !kernel)
		return refuse(
			core, -EACCES,
			"kernel activity needs perf_event_paranoid <= 1 or CAP_PERFMON; add :u");
	if ((a->flags & QUIPU_ATTR_NAMESPACES) && !who->perfmon)
		return refuse(core, -EACCES, "namespace records need CAP_PERFMON");
	if (a->flags & QUIPU_ATTR_FREQ) {
		if (a->sample_freq > core->config.max_sample_rate)
			return refuse(
				core, -EINVAL,
				"sample_freq is above perf_event_max_sample_rate; ask for a lower -F or "
				"raise the limit");
	} else if (a->sample_period >> 63) {
		return refuse(core, -EINVAL, "sample_period must be below 2^63");
	}
	if ((a->sample_type & PERF_SAMPLE_PHYS_ADDR) && !kernel)
		return refuse(core, -EACCES,
			      "physical addresses need perf_event_paranoid <= 1 or CAP_PERFMON");
	return 0;
}
