#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Threads and processes: per-thread counts sum to the whole, frequency holds per busy CPU, forks and execs are told."""
import os
import platform
import shutil
from collections import Counter, defaultdict

from harness import disassembly, environment, equal, guest, holds, main, need, test, value


@test("4 threads: per-thread counts sum to the whole, and the four workers are equal")
def per_thread(work):
    turns = 100000
    rows = work.stat("instructions", guest("threads4"), str(turns), options=["--per-thread"])
    counts = [value(row) for row in rows if row["event"].startswith("instructions")]
    equal(len(counts), 5, "threads")
    body = [i for i in disassembly(guest("threads4"))["work"]]
    holds(all(c >= turns * 4 for c in sorted(counts)[-4:]), f"a worker did too little: {counts} ({len(body)} in work)")
    whole = work.count("instructions", guest("threads4"), str(turns))
    # Waiting for one another is the only work that depends on who came first.
    holds(abs(sum(counts) - whole) <= 2000, f"sum {sum(counts)}, whole {whole}")


@test("4 threads: in one run, the samples of the threads sum to floor(count / period) of each")
def per_thread_samples(work):
    work.record("-e", "instructions", "-c", "10007", "--", guest("threads4"), "500000")
    tids = Counter(words[0] for words in work.samples("tid"))
    workers = sorted(tids.values())[-4:]
    equal(len(workers), 4, "threads with samples")
    holds(workers[-1] - workers[0] <= 1, f"unequal workers: {tids}")


def rates(work, minimum):
    """Samples per modelled second of each CPU after its first 100 ms."""
    times = defaultdict(list)
    for words in work.samples("cpu,time"):
        cpu, time = words[0].strip("[]"), float(words[1].rstrip(":"))
        times[int(cpu)].append(time)
    result = {}
    for cpu, list_of in times.items():
        start, end = min(list_of) + 0.1, max(list_of)
        if end - start >= minimum:
            result[cpu] = sum(t >= start for t in list_of) / (end - start)
    return result


@test("-F 4000: 4000 +- 10 % samples a modelled second, one thread")
def frequency(work):
    work.record("-e", "cycles", "-F", "4000", "--", guest("realistic"))
    found = rates(work, 1.0)
    equal(len(found), 1, f"busy CPUs ({found})")
    for cpu, rate in found.items():
        holds(3600 <= rate <= 4400, f"CPU {cpu}: {rate:.0f} samples a second")


@test("-F 4000: the same on each of four busy CPUs")
def frequency_threads(work):
    # work(): 6 cycles a turn (one multiply of 3): on CPUs of 250 MHz, 50 million turns are 1.2 modelled seconds.
    shutil.copy(os.path.join(os.environ["QUIPU_BUILD"], "machines", "riscv.dtb"), work.path("slow.dtb"))
    work.run("fdtput", "-t", "u", work.path("slow.dtb"), "/cpus", "clock-frequency", "250000000", status=0)
    work.record("-m", "./slow.dtb", "-e", "cycles", "-F", "4000", "--", guest("threads4"), "50000000", timeout=400)
    found = rates(work, 1.0)
    equal(len(found), 4, f"busy CPUs ({found})")
    for cpu, rate in found.items():
        holds(3600 <= rate <= 4400, f"CPU {cpu}: {rate:.0f} samples a second")


@test("fork: children are counted with their parent")
def fork(work):
    none = work.count("instructions", guest("forker"), "0", "100000")
    two = work.count("instructions", guest("forker"), "2", "100000")
    # Two children and two turns of the parent, 100000 iterations of at least two instructions each.
    holds(two - none >= 4 * 200000, f"without children {none}, with two {two}")


@test("exec of a program of the host: it is followed, and counted with the one that it was")
def execs(work):
    need("qemu-x86_64")
    alone = work.count("instructions", guest("execer"), "/no/such/program", status=127)
    whole = work.count("instructions", guest("execer"), "/bin/true")
    holds(whole > alone + 10000, f"{whole} with /bin/true, {alone} without")
    result = work.quipu("stat", "-e", "instructions", "--", guest("execer"), "/bin/true")
    holds("not whole" not in result.out + result.err, f"said to be uncounted\n{result}")


@test("no program is forked beside a thread of ours: its process may have to allocate before it is the program")
def forked_alone(work):
    env = environment(work.folder, LD_PRELOAD=os.environ["QUIPU_FORK_ALONE"])
    stat = ["stat", "-e", "instructions:u", "--", guest("recurse"), "5"]
    record = ["record", "-o", work.path("data"), "-e", "instructions:u", "-c", "1000", "--", guest("recurse"), "20"]
    ways = [("lpar", []), ("riscv", []), *([("x86", ["--seccomp"])] if platform.machine() == "x86_64" else [])]
    through = [["exec", "-m", machine, *more, "--", "true"] for machine, more in ways]
    for words in (stat, record, *through):
        work.quipu(*words, env=env, status=0)


@test("the program's status is quipu's: 0, 3, 200, and 128 + signal")
def statuses(work):
    for command in ("stat", "record"):
        for args, status in ((["true"], 0), (["exit3"], 3), (["exit3", "200"], 200), (["killself", "term"], 143),
                             (["killself", "segv"], 139), (["killself", "abrt"], 134), (["killself", "kill"], 137)):
            work.quipu(command, "-e", "instructions", "--", guest(args[0]), *args[1:], status=status)


if __name__ == "__main__":
    main()
