#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many of everything: 64 threads at once on 8 CPUs, 200 forks, 10,000 signals, code that is written anew 20,000 times:
right totals, no leak, no hang; and who decides the timing. TAP on standard output."""
import os
import re
import resource
import subprocess
import tempfile

from tap import PATH, check, end

QUIPU, GUESTS, TREE = os.environ["QUIPU"], os.environ["ENGINE_GUESTS"], os.environ["RISCV_DTS"]
ENV = {"PATH": PATH, "QUIPU_PLUGIN": os.environ["PLUGIN"]}


def stat(events, *command, options=()):
    """({event: count}, all of standard error)"""
    out = subprocess.run([QUIPU, "stat", "-x,", "-e", events, *options, "--", *command], env=ENV, stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=250)
    rows = {m[2]: int(m[1]) for m in re.finditer(r"^(\d+),[^,]*,([^,]+),", out.stderr, re.MULTILINE)}
    return (rows if out.returncode == 0 else {}), out.stderr


def linear(what, one, many, options=()):
    """2 * @many less @many is @many times what one more costs; numbers of as many digits, which the guest reads too."""
    def count(n):
        return stat("instructions:u", f"{GUESTS}/heavy.riscv64", what, str(n), options=options)[0].get("instructions:u", 0)
    each = (count(3 * one) - count(one)) / (2 * one)
    got = count(2 * many) - count(many)
    check(f"{2 * many} {what}: every one is counted", each > 5 and got == each * many, f"{got} is not {many} times {each}")


def main():
    rows, errors = stat("instructions:u,branches:u", f"{GUESTS}/manythreads.riscv64", "0", "64")
    work = 64 * 300000
    check("64 threads at once: all their work is counted",
          5 * work < rows.get("instructions:u", 0) < 5.05 * work and work < rows["branches:u"] < 1.05 * work, errors)
    check("and nobody is said to be left out", "uncounted" not in errors, errors)
    linear("forks", 10, 100)
    linear("signals", 100, 10000)
    linear("signals", 100, 10000, ("--timing", "full"))
    linear("jit", 100, 10000)
    stat("instructions:u", f"{GUESTS}/heavy.riscv64", "jit", "40000")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check("40,000 rewrites leave no 40,000 blocks behind", peak < 150_000, f"{peak} KiB")
    with open(TREE, encoding="utf-8") as f, tempfile.NamedTemporaryFile("w", suffix=".dts") as full:
        full.write(f.read().replace('quipu,timing = "base"', 'quipu,timing = "full"'))
        full.flush()
        cycles = [stat("cycles:u", f"{GUESTS}/heavy.riscv64", "jit", "10", options=("-m", full.name, *o))[0].get("cycles:u")
                  for o in ((), ("--timing", "full"), ("--timing", "base"))]
        base = stat("cycles:u", f"{GUESTS}/heavy.riscv64", "jit", "10", options=("-m", "riscv"))[0].get("cycles:u")
    check("--timing base overrides a tree that says full", cycles[0] == cycles[1] > cycles[2] == base, f"{cycles} {base}")
    end()


main()
