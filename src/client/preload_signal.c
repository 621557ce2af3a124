/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preload library's signals: when a REFRESH runs out, a kernel says POLL_HUP; a pipe that
 * lives on can only say POLL_IN, so the handler's siginfo is put right before it is called. perf
 * ABI sheet A16 ("Signals"), C3. Handlers without siginfo have nothing to be put right.
 */
#include <poll.h>
#include <signal.h>
#include <stddef.h>

#include "client/preload.h"

REAL(int, sigaction, (int sig, const struct sigaction *act, struct sigaction *old), (sig, act, old))

static struct sigaction theirs[NSIG];

/*
 * Under the engine the client is QEMU's, whose version 7.2 starts handlers of x86-64 with a stack
 * that is 8 bytes off: any handler that calls into a library dies. Ours aligns it for them.
 */
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static void
put_right(int sig, siginfo_t *info, void *context)
{
	if (info->si_code == POLL_IN && preload_ran_out(info->si_fd)) {
		info->si_code = POLL_HUP;
		info->si_band = POLLHUP | POLLERR;
	}
	theirs[sig].sa_sigaction(sig, info, context);
}

/* Those whose siginfo has something else where a descriptor's would be. */
static bool never_of_a_descriptor(int sig)
{
	return sig == SIGCHLD || sig == SIGSEGV || sig == SIGBUS || sig == SIGILL ||
	       sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS;
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction was, ours;
	int rc;

	if (preload_machine() <= 0 || sig <= 0 || sig >= NSIG || never_of_a_descriptor(sig))
		return real_sigaction(sig, act, old);
	was = theirs[sig];
	if (act && act->sa_flags & SA_SIGINFO && act->sa_handler != SIG_IGN &&
	    act->sa_handler != SIG_DFL) {
		ours = *act;
		ours.sa_sigaction = put_right;
		theirs[sig] = *act;
		act = &ours;
	}
	rc = real_sigaction(sig, act, old);
	if (rc)
		theirs[sig] = was;
	else if (old && old->sa_flags & SA_SIGINFO && old->sa_sigaction == put_right)
		old->sa_sigaction = was.sa_sigaction;
	return rc;
}
