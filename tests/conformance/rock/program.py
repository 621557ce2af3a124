#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Real sparc64 programs on machine rock: counted, sampled, and by the stock perf."""
import os
import re
import shutil
import subprocess

from harness import QUIPU, Skip, equal, holds, main, test, value

GUESTS = os.environ["ROCK_GUESTS"]
RECURSE = os.path.join(GUESTS, "recurse.sparc64")
THREADS = os.path.join(GUESTS, "threads4.sparc64")


def functions():
    """{function: (start, end)} of the program."""
    out = subprocess.run(["sparc64-linux-gnu-nm", "-S", "--defined-only", RECURSE], capture_output=True, check=True,
                         text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {r[3]: (int(r[0], 16), int(r[0], 16) + int(r[1], 16)) for r in rows if len(r) == 4}


def count(work, event, *options, program=RECURSE):
    return value(work.stat(event, program, options=("-m", "rock", *options))[0])


@test("stat counts cycles and instructions, the same twice, and as the generic events")
def stat(work):
    first = [value(r) for r in work.stat("rock/cycles/,rock/instructions/", RECURSE, options=("-m", "rock"))]
    equal([value(r) for r in work.stat("rock/cycles/,rock/instructions/", RECURSE, options=("-m", "rock"))], first, "again")
    equal([value(r) for r in work.stat("cycles,instructions", RECURSE, options=("-m", "rock"))], first, "generic")
    equal(count(work, "rock_chip/instructions/", "-a"), first[1], "the chip has run nothing else")
    rows = work.stat("rock/cycles/,rock/instructions/", RECURSE, options=("-m", "rock"))
    equal([r["class"] for r in rows], ["modelled", "exact"], "labels")


@test("without -m a sparc64 program picks the machine")
def picks(work):
    equal(value(work.stat("instructions", RECURSE)[0]), count(work, "instructions"), "instructions")


@test("record: one sample each period, at an instruction of the right function")
def record(work):
    total = count(work, "instructions")
    where = functions()
    for event, period in (("rock/instructions/", 2003), ("rock_is//", 500)):
        work.record("-m", "rock", "-e", event, "-c", str(period), "--", RECURSE)
        rows = work.samples("ip,sym")
        equal(len(rows), total // period, f"samples of {event}")
        seen = {}
        for row in rows:
            address, name = int(row[0], 16), row[1]
            seen[name] = seen.get(name, 0) + 1
            if name in where:
                start, end = where[name]
                holds(start <= address < end, f"{address:x} is not in {name}")
        holds(max(seen, key=seen.get) == "fib", f"{event}: {seen}")


@test("an overflow served in the engine leaves the same samples as one that the program waits for")
def local(work):
    for options in (["-e", "rock/instructions/", "-c", "509"], ["-e", "cycles", "-c", "5003"], ["-e", "cycles", "-F", "20000"],
                    ["-e", "instructions,rock/l2_dcache_load/", "-c", "7001"], ["-g", "-e", "instructions", "-c", "9001"], ["-e", "rock_is//", "-c", "211"],
                    ["-e", "rock_l2s//", "-c", "250"]):
        data = {}
        for where in ([], ["--no-local"]):
            work.record("-m", "rock", *where, *options, "--", RECURSE)
            data[bool(where)] = work.samples("ip,sym,period,time")
        holds(len(data[False]) > 4, f"{options}: {len(data[False])} samples")
        equal(data[True], data[False], " ".join(options))


@test("every sample is taken, however short the period")
def short_periods(work):
    total = count(work, "instructions")
    work.record("-m", "rock", "-e", "instructions", "-c", "101", "--", RECURSE)
    equal(len(work.samples("ip")), total // 101, "samples")


@test("report knows the functions of the program")
def report(work):
    work.record("-m", "rock", "-c", "5000", "--", RECURSE)
    text = work.quipu("report", "-i", work.path("perf.data"), "--stdio", status=0).out
    lines = [line for line in text.splitlines() if "%" in line and not line.startswith("#")]
    holds(lines and lines[0].split()[-1] == "fib", f"fib does not lead\n{text}")


@test("the trace shows the order of an overflow: trap, owner, guest, and then the driver's calls")
def trace(work):
    work.record("-m", "rock", "--trace=trace.txt", "-e", "rock/instructions/", "-c", "100000", "--", RECURSE)
    with open(work.path("trace.txt"), encoding="utf-8") as file:
        lines = [re.sub(r"^strand \d+: ", "", line.strip()) for line in file]
    order = ["performance event trap of chip 0: counter INSTR", "counter INSTR: overflow +1", "interrupt level 15",
             "RK_PERF_COUNT_OVERFLOW(0x201) -> EOK, 0x1", "RK_PERF_COUNT_GET", "RK_PERF_COUNT_OVERFLOW",
             "RK_PERF_COUNT_SET", "RK_PERF_COUNT_START"]
    at = [i for i, line in enumerate(lines) if line.startswith(order[0])]
    equal(len(at), count(work, "instructions") // 100000, "overflows")
    for i in at:
        for step, want in enumerate(order):
            holds(lines[i + step].startswith(want), f"step {step}: {lines[i + step]!r}, not {want!r}")


def calls_of(work, *command):
    """The calls of a run, in order: (call, type, result), and the steps of events between them."""
    work.quipu(command[0], "-m", "rock", "--trace=trace.txt", *command[1:], "--", RECURSE, status=0)
    with open(work.path("trace.txt"), encoding="utf-8") as file:
        return [line.strip() for line in file if line.startswith("strand 0:")]


def in_order(lines, *steps):
    """Each step is a later line than the step before."""
    at = 0
    for step in steps:
        while at < len(lines) and not re.search(step, lines[at]):
            at += 1
        holds(at < len(lines), f"{step!r} does not follow in\n" + "\n".join(lines[:40]))
        at += 1


@test("a counter's life is the document's: INIT, SET, START, overflow, OVERFLOW, GET, SET, START, STOP, RELEASE")
def life(work):
    lines = calls_of(work, "record", "-e", "rock/instructions/", "-c", "300000")
    in_order(lines, r"COUNT_INIT\(0x201\) -> EOK", r"COUNT_SET\(0x201, 0x", r"COUNT_START\(0x201, 0x800000000000000",
             r"performance event trap of chip 0: counter INSTR, responsible strand 0", r"counter INSTR: overflow \+1, counts on",
             r"interrupt level 15", r"COUNT_OVERFLOW\(0x201\) -> EOK, 0x1$", r"COUNT_GET\(0x201\) -> EOK",
             r"COUNT_OVERFLOW\(0x201\) -> EOK, 0x0$", r"COUNT_SET\(0x201", r"COUNT_START\(0x201", r"COUNT_STOP\(0x201\) -> EOK",
             r"COUNT_GET\(0x201\) -> EOK", r"COUNT_RELEASE\(0x201\) -> EOK")
    equal([line for line in lines if "-> E" in line and "-> EOK" not in line], [], "refused calls")


@test("a sampler's life too: the ring is told half full, and drained of what PENDING counts; then it stops")
def sampler_life(work):
    lines = calls_of(work, "stat", "-e", "rock/instr_load/")
    in_order(lines, r"COUNT_INIT\(0x201\)", r"SAMPLE_INIT\(0x201, 0x[0-9a-f]+\) -> EOK", r"SAMPLE_CONFIG\(0x201, 0x10, 0x0\)",
             r"SAMPLE_CONFIG\(0x201, 0x168, 0x", r"SAMPLE_CONFIG\(0x201, 0x160, 0x19000fff\) -> EOK", r"COUNT_START\(0x201",
             r"SAMPLE_START\(0x201, 0x64, 0x10, 0x", r"trap of chip 0: sampler INSTR", r"element at 0, tail 16",
             r"sampler INSTR: restarted, 100 candidates", r"element at 2032, tail 2048", r"sampler INSTR: restarted",
             r"interrupt level 15", r"SAMPLE_PENDING\(0x201\) -> EOK, 0x80$", r"COUNT_OVERFLOW\(0x201\) -> EOK, 0x0$",
             r"element at 4080, tail 0$", r"COUNT_STOP\(0x201\)", r"SAMPLE_STOP\(0x201\) -> EOK", r"SAMPLE_PENDING",
             r"COUNT_RELEASE\(0x201\)", r"SAMPLE_RELEASE\(0x201\) -> EOK")
    pending = [int(m.group(1), 16) for m in (re.search(r"SAMPLE_PENDING.*EOK, (0x[0-9a-f]+)$", line) for line in lines) if m]
    equal(sum(pending), sum("element at" in line for line in lines), "what PENDING counts is what was written")


@test("threads of one chip share its counter: the truth is beside the estimate")
def threads(work):
    row = work.stat("rock/instructions/", THREADS, options=("-m", "rock"))[0]
    holds(row["pcnt-running"] < 100, f"one counter for four threads: {row}")
    truth = float(row["exact-value"])
    whole = count(work, "rock_chip/instructions/", "-a", program=THREADS)
    # Two runs: what threads do while they wait for one another differs a little.
    holds(abs(truth - whole) < whole / 100, f"truth {truth}, counted by the chip {whole}")


@test("record says of how much of the threads' time its samples are, where one counter was for all")
def share(work):
    result = work.quipu("record", "-m", "rock", "-c", "5003", "--", THREADS, status=0)
    match = re.search(r"cycles had a counter in (\d+\.\d+)% of the time of its tasks", result.err)
    holds(match and float(match.group(1)) < 99, result.err)
    result = work.quipu("record", "-m", "rock", "-c", "5003", "--", RECURSE, status=0)
    holds("had a counter in" not in result.err, result.err)


@test("refusals name the reason: a period out of range, a chip that is shared")
def refusals(work):
    result = work.quipu("record", "-m", "rock", "-e", "rock_is//", "-c", "49", "--", RECURSE)
    holds(result.status != 0 and "50 to 1023" in result.err, result)
    result = work.quipu("stat", "-m", "rock", "-C", "40", "-e", "rock_chip/cycles/", "--", RECURSE)
    holds("shared with another guest" in result.err, result)


@test("the stock perf counts and samples the same")
def stock(work):
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    total = count(work, "instructions")
    result = work.run(QUIPU, "exec", "-m", "rock", "--", "perf", "stat", "-x,", "-e", "rock/instructions/", RECURSE)
    counts = [line.split(",")[0] for line in result.err.splitlines() if "rock/instructions/" in line]
    equal(counts, [str(total)], f"perf stat\n{result}\n")
    result = work.run(QUIPU, "exec", "-m", "rock", "--", "perf", "stat", "-x,", "-e",
                      "rock/instr_branch/,rock/l2_store_prefetch/,rock/mmu_d_utlb_miss/,rock/yank/", RECURSE)
    got = [line.split(",")[0] for line in result.err.splitlines() if "rock/" in line]
    holds(len(got) == 4 and int(got[0]) > total // 10 and all(int(g) > 0 for g in got), f"perf stat\n{result}\n")
    work.run(QUIPU, "exec", "-m", "rock", "--", "perf", "record", "-q", "-o", work.path("p.data"), "-c", "2003", "-e",
             "rock/instructions/", RECURSE, status=0)
    # perf changes PATH for what it runs, and the program's start-up reads its environment.
    samples = len(work.samples("ip", work.path("p.data")))
    holds(abs(samples - total // 2003) <= 1, f"perf record: {samples} samples of {total} instructions")
    text = work.run("perf", "report", "-i", work.path("p.data"), "--stdio", status=0).out
    lines = [line for line in text.splitlines() if "%" in line and not line.startswith("#")]
    holds(lines and lines[0].split()[-1] == "fib", f"perf report: fib does not lead\n{text}")


if __name__ == "__main__":
    main()
