#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The POWER9 core PMU under real programs, with the stock perf and quipu's own commands: the cases of the power-cpu sheet
that need an engine (C23, C26, C27)."""
import os
import re
import shutil

from harness import GUESTS, equal, holds, main, test

STREAM, REALISTIC, TRUE = (os.path.join(GUESTS, name + ".ppc64le") for name in ("stream", "realistic", "true"))

for needed in ("perf", "qemu-ppc64le"):
    if not shutil.which(needed):
        print(f"1..0 # SKIP {needed} is not installed")
        raise SystemExit(0)
if not os.path.exists(STREAM):
    print("1..0 # SKIP powerpc64le-linux-gnu-gcc is not installed, so there are no POWER programs")
    raise SystemExit(0)


def on(work, *command, options=(), **keywords):
    keywords.setdefault("status", 0)
    return work.quipu("exec", "-m", "power9", *options, "--", *command, **keywords)


@test("identities of the core PMU's events hold exactly on three programs (C27)")
def identities(work):
    sums = (  # what adds up to what
        (("PM_DATA_FROM_L2", "PM_DATA_FROM_L2MISS"), "PM_LD_MISS_L1_FIN"),
        (("PM_DATA_FROM_L3", "PM_DATA_FROM_L3MISS"), "PM_DATA_FROM_L2MISS"),
        (("PM_DATA_FROM_LMEM", "PM_DATA_FROM_RMEM"), "PM_DATA_FROM_MEMORY"),
        (("PM_DATA_FROM_MEMORY",), "PM_DATA_FROM_L3MISS"),
        (("PM_INST_FROM_L1", "PM_L1_ICACHE_MISS"), "PM_INST_CMPL"),
        (("PM_INST_FROM_L2", "PM_INST_FROM_L3", "PM_INST_FROM_L3MISS"), "PM_L1_ICACHE_MISS"),
        (("PM_DTLB_MISS", "PM_ITLB_MISS"), "PM_TLB_MISS"),
        (("PM_RUN_CYC",), "PM_CYC"),
    )
    names = sorted({n for parts, whole in sums for n in (*parts, whole)})
    for program in ((STREAM, "2048", "1"), (REALISTIC, "1", "64"), (TRUE,)):
        values = {n: work.count(n, *program, options=["-m", "power9"]) for n in names}
        for parts, whole in sums:
            equal(sum(values[p] for p in parts), values[whole], f"{' + '.join(parts)} = {whole} of {program}")
    holds(values["PM_INST_CMPL"] > 0, f"{values}")


@test("branch stacks: the last 32 taken branches, or the last 32 calls (C23)")
def branch_stacks(work):
    for kinds in ("any", "any_call"):
        on(work, "perf", "record", "-q", "-j", f"{kinds},u", "-e", "instructions:u", "-c", "1000003", "-o", "perf.data",
           "--", REALISTIC, "1", "64")
        lines = work.run("perf", "script", "-i", "perf.data", "-F", "brstacksym", status=0).out.splitlines()
        stacks = [re.findall(r"(\S+?)/(\S+?)/-/-/-/0/", line) for line in lines]
        holds(len(stacks) > 5 and all(len(s) == 32 for s in stacks[1:]), f"{kinds}: {[len(s) for s in stacks]}")
        targets = [to for stack in stacks[1:] for _, to in stack if not to.startswith("[unknown]")]
        entries = sum(1 for to in targets if re.search(r"\+0x[08]$", to))  # global or local entry point
        holds(entries == len(targets) if kinds == "any_call" else 0 < entries < len(targets) / 2,
              f"{kinds}: {entries} of {len(targets)} lead to the start of a function: {targets[:40]}")
    result = on(work, "perf", "record", "-q", "-j", "any_ret,u", "-e", "instructions:u", "-o", "perf.data", "--", TRUE,
                options=["-v"], status=None)
    holds("no other filter" in result.err, f"the reason\n{result}")


@test("mem-loads and mem-stores: every hundredth access, with its address, what served it and how long that took (C26)")
def marked(work):
    for event, op in (("mem-loads", "LOAD"), ("mem-stores", "STORE")):
        total = work.count(event, REALISTIC, "1", "16", options=["-m", "power9"])
        on(work, "perf", "record", "-q", "-d", "-W", "-e", f"cpu/{event}/", "-c", "100", "-o", "perf.data", "--",
           REALISTIC, "1", "16")
        rows = re.findall(r"^ *([0-9a-f]+) +[0-9a-f]+ \|OP (\w+)\|LVL (\w+).*?\|BLK +N/A +(\d+)",
                          work.run("perf", "script", "-i", "perf.data", "-F", "addr,data_src,weight", status=0).out, re.M)
        # The addresses of a program's strings differ, so a count may by a few.
        holds(abs(len(rows) - total // 100) <= 2 and len(rows) > 2000, f"{len(rows)} samples of {total}")
        holds(all(int(addr, 16) and what == op for addr, what, _, _ in rows), f"{rows[:5]}")
        times = {level: [int(n) for _, _, at, n in rows if at == level] for level in ("L1", "L2", "Local")}
        holds(len(times["L1"]) > len(rows) / 2 and min(times["L1"]) == 1, f"{event}: most hit level 1")
        # Few stores go farther: whether one of those is a hundredth is chance.
        holds(event == "mem-stores" or (times["L2"] and times["Local"]), f"{event}: {times}")
        holds(all(n > 1 for n in times["L2"]) and all(n > 10 for n in times["Local"]), f"{event}: {times}")


if __name__ == "__main__":
    main()
