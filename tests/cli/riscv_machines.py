#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The RISC-V machines as a user meets them: what each can count, what it cannot, and that it says so.

Cases P11, P14-P17, L1, L5 and L7 of the room's sheet on the whole command; the rest are tests/conformance/riscv.
"""
import json
import os
import re
import shutil

from harness import Skip, equal, guest, holds, json_lines, main, one_line_error, test, value

LOOP = (2920024, 3970025)  # instructions and cycles of loop, by hand: tests/guests/loop.S
MACHINES = os.path.join(os.environ["QUIPU_BUILD"], "machines")
EVERY_LEVEL = "counts every privilege level"


def altered(work, machine, name, kind, prop, *values):
    """A copy of a shipped machine with one property of its PMU's node set."""
    if not shutil.which("fdtput"):
        raise Skip("fdtput (device-tree-compiler) is not installed")
    path = work.path(name + ".dtb")
    if not os.path.exists(path):
        shutil.copy(os.path.join(MACHINES, machine + ".dtb"), path)
    work.run("fdtput", "-t", kind, path, "/pmu", prop, *values, status=0)
    return path


def rows_of(work, machine, events, *command):
    rows = work.stat(events, *command, options=("-m", machine))
    return {row["event"]: row for row in rows}


@test("list, show and check know each RISC-V machine: its counters, what it can do, where its events stop")
def shown(work):
    expected = {
        "riscv": ("13 (mask 0x0000fff8), 48 bits", "yes (Sscofpmf)", "driver: SBI PMU of Linux 6.12"),
        "riscv-legacy": ("cycle and instret, 64 bits, always running", "it cannot sample or filter",
                         "driver: legacy PMU of Linux 4.18"),
        "riscv-qemu-virt": ("16 (mask 0x0007fff8), 64 bits", "yes (Sscofpmf)", "driver: SBI PMU of Linux 6.12"),
        "riscv-u74": ("2 (mask 0x00000018), 40 bits", "it cannot sample or filter", 'table "u74"'),
    }
    names = work.quipu("machine", "list", status=0).out
    for machine, words in expected.items():
        holds(re.search(rf"^\s*{machine}\s", names, re.MULTILINE), f"machine list lacks {machine}\n{names}")
        text = work.quipu("machine", "show", machine, status=0).out
        for word in words:
            holds(word in text, f"{machine}: no {word!r}\n{text}")
        listed = json.loads(work.quipu("list", "-m", machine, "--json", status=0).out)
        by_name = {e["name"]: e for e in listed}
        equal(by_name["instructions"]["class"], "exact", f"class of instructions on {machine}")
        refused = [e for e in listed if e["kind"] == "hardware" and e.get("reason")]
        for event in refused:
            holds(len(event["reason"]) > 20, f"{machine}: no reason: {event}")
        work.quipu("machine", "check", os.path.join(MACHINES, machine + ".dtb"), status=0)


@test("riscv-legacy counts cycles and instructions, as the seed's machine did, and refuses all else by name")
def legacy_counts(work):
    rows = rows_of(work, "riscv-legacy", "instructions,cycles,branches,r1,L1-dcache-loads", guest("loop"))
    equal((value(rows["instructions"]), value(rows["cycles"])), LOOP, "instructions and cycles")
    equal((rows["instructions"]["class"], rows["cycles"]["class"]), ("exact", "modelled"), "what they are")
    for name in ("instructions", "cycles"):
        holds("remark" not in rows[name], f"a plain event is remarked on: {rows[name]}")
    for name in ("branches", "r1", "L1-dcache-loads"):
        equal(rows[name]["counter-value"], "<not supported>", name)
        holds("cycles and instructions only" in rows[name]["reason"], f"reason of {name}: {rows[name]}")


@test("riscv-legacy: cycles:u counts every level, and says that this machine cannot filter")
def legacy_filters(work):
    rows = rows_of(work, "riscv-legacy", "cycles:u,instructions:k", guest("loop"))
    equal((value(rows["instructions:k"]), value(rows["cycles:u"])), LOOP, "counts with filters")
    for row in rows.values():
        holds(EVERY_LEVEL in row["remark"], f"nothing is said: {row}")
    result = work.quipu("stat", "-m", "riscv-legacy", "-e", "cycles:u", "--", guest("loop"), status=0)
    line = [text for text in (result.out + result.err).splitlines() if "cycles:u" in text][0]
    holds(EVERY_LEVEL in line and str(LOOP[1]) in line.replace(",", ""), f"the table: {line}")


@test("riscv-legacy: record is refused with reason and EOPNOTSUPP; silent by property, as it was then")
def legacy_record(work):
    result = work.quipu("record", "-m", "riscv-legacy", "--", guest("loop"))
    one_line_error(result, "no overflow interrupt", "quipu stat", "EOPNOTSUPP")
    holds(not os.path.exists(work.path("perf.data")), "a refused record left a file")
    silent = altered(work, "riscv-legacy", "silent", "s", "quipu,record", "silent")
    result = work.quipu("record", "-m", silent, "-c", "1000", "--", guest("loop"), status=0)
    holds("0 samples" in result.err, f"the silent machine sampled\n{result}")
    holds("cycles never samples: this machine's counters" in result.err, f"and does not say why\n{result}")


@test("riscv-legacy under later kernels: 6.1 ignores filters and refuses samples, 6.12 refuses both")
def legacy_kernels(work):
    newer = altered(work, "riscv-legacy", "newer", "s", "quipu,kernel", "6.12")
    rows = rows_of(work, newer, "cycles,cycles:u,branches", guest("loop"))
    equal(value(rows["cycles"]), LOOP[1], "cycles of 6.12")
    for name in ("cycles:u", "branches"):
        equal(rows[name]["counter-value"], "<not supported>", name)
    one_line_error(work.quipu("record", "-m", newer, "--", guest("loop")), "raise no interrupt", "EOPNOTSUPP")
    middle = altered(work, "riscv-legacy", "middle", "s", "quipu,kernel", "6.1")
    equal(value(rows_of(work, middle, "instructions:u", guest("loop"))["instructions:u"]), LOOP[0], "instructions of 6.1")
    one_line_error(work.quipu("record", "-m", middle, "--", guest("loop")), "no overflow interrupt", "EOPNOTSUPP")


@test("riscv: a kernel-only event is 0 and says why; with a charge for system calls user and kernel add up")
def levels(work):
    row = work.stat("instructions:k", guest("true"), options=("-m", "riscv"))[0]
    equal(value(row), 0, "instructions:k without a charge")
    holds("counts 0" in row["remark"] and "quipu,charge-syscall-instructions" in row["remark"], f"the remark: {row}")
    charged = altered(work, "riscv", "charged", "u", "quipu,charge-syscall-instructions", "400")
    charged = altered(work, "riscv", "charged", "u", "quipu,charge-syscall-cycles", "600")
    names = ("instructions", "instructions:u", "instructions:k", "cycles", "cycles:u", "cycles:k", "cpu/syscalls/")
    rows = rows_of(work, charged, ",".join(names), guest("true"))
    both, user, kernel, cycles, cycles_user, cycles_kernel, calls = (value(rows[name]) for name in names)
    holds(calls > 3, f"only {calls} system calls")
    equal((kernel, cycles_kernel), (400 * calls, 600 * calls), "kernel instructions and cycles")
    equal((user + kernel, cycles_user + cycles_kernel), (both, cycles), "user and kernel together")
    equal(user, value(work.stat("instructions", guest("true"), options=("-m", "riscv"))[0]), "user instructions")
    equal(rows["instructions"]["class"], "modelled", "a count with a charge in it")


@test("riscv: a group counts as one, with :u, and its members are on the PMU for the same time")
def groups(work):
    rows = work.stat("{instructions,branches,loads}:u", guest("loop"), options=("-m", "riscv"))
    equal([value(row) for row in rows], [LOOP[0], 1210008, 100000], "instructions, branches, loads")
    equal(len({row["event-runtime"] for row in rows}), 1, "different times of one group")
    equal({row["pcnt-running"] for row in rows}, {100.0}, "share of the time")


@test("riscv: -F 4000 gives 4000 samples a second of model time, -c one for each period exactly")
def sampling(work):
    command = (guest("recurse"), "32")
    seconds = value(work.stat("cycles", *command, options=("-m", "riscv"))[0]) / 1e9
    work.record("-m", "riscv", "-F", "4000", "--", *command)
    samples = len(work.samples("ip"))
    holds(abs(samples / (4000 * seconds) - 1) < 0.10, f"{samples} samples in {seconds} s of model time")
    n = work.count("instructions:u", *command)
    work.record("-m", "riscv", "-e", "instructions:u", "-c", "1000000", "--", *command)
    periods = [int(words[0]) for words in work.samples("period")]
    equal((len(periods), set(periods)), (n // 1000000, {1000000}), "samples and their period")


# 20 events that only the 13 programmable counters take: the generic ones, then instruction classes of the U74 space and
# the model's own.
TWENTY = ["r1", "r2", "r5", "r100000200", "r100000400", "r100002000", "r100004000", "r100008000", "r100010000",
          "r100006000", "r10000c000", "r100014000", "r100000600", "r100000a00", "r200000001", "r200000002",
          "r200000003", "r200000004", "r200000005", "r100018000"]


@test("riscv: 20 events on 13 counters come within 2 % of the exact truth for a steady program")
def multiplexing(work):
    equal(len(set(TWENTY)), 20, "events")
    result = work.quipu("stat", "-m", "riscv", "-j", "-e", ",".join(TWENTY), "--", guest("recurse"), "34", status=0)
    rows = json_lines(result)
    equal(len(rows), 20, "rows")
    shares = [float(row["pcnt-running"]) for row in rows]
    for row, share in zip(rows, shares):
        holds(40 < share < 90 and row.get("estimate"), f"not multiplexed: {row}")
        truth, estimate = float(row["exact-value"]), float(row["counter-value"])
        holds(truth > 10**6, f"nothing much to count: {row}")
        holds(abs(estimate / truth - 1) < 0.02, f"{row['event']}: estimate {estimate}, truth {truth}")
    holds(abs(sum(shares) - 1300) < 26, f"{sum(shares) / 100} counters in use on average, of 13")


@test("riscv-u74: raw codes of the part, two counters, exact beside multiplexed; no filter and no sampling, and why")
def u74(work):
    rows = rows_of(work, "riscv-u74", "r4000,cpu/integer_load_retired/,instructions,cycles", guest("loop"))
    equal([value(row) for row in rows.values()], [1170000, 100000, *LOOP], "branches, loads, instructions, cycles")
    row = work.stat("cycles:u", guest("loop"), options=("-m", "riscv-u74"))[0]
    equal(row["counter-value"], "<not supported>", "cycles:u")
    holds("cannot tell user" in row["reason"], f"reason: {row}")
    one_line_error(work.quipu("record", "-m", "riscv-u74", "--", guest("loop")), "raise no interrupt", "EOPNOTSUPP")
    rows = work.stat("r4000,r200,r400", guest("recurse"), "31", options=("-m", "riscv-u74"))
    for row in rows:
        holds(row.get("estimate") and abs(float(row["counter-value"]) / float(row["exact-value"]) - 1) < 0.10,
              f"three events on two counters: {row}")


@test("riscv-qemu-virt: the five events of QEMU's table count and sample, all others are refused")
def qemu_virt(work):
    rows = rows_of(work, "riscv-qemu-virt", "instructions:u,cycles,branches,cache-misses", guest("loop"))
    equal((value(rows["instructions:u"]), value(rows["cycles"])), LOOP, "instructions and cycles")
    for name in ("branches", "cache-misses"):
        equal(rows[name]["counter-value"], "<not supported>", name)
        holds("selector" in rows[name]["reason"], f"reason of {name}: {rows[name]}")
    work.record("-m", "riscv-qemu-virt", "-e", "instructions:u", "-c", "10000", "--", guest("loop"))
    equal(len(work.samples("ip")), LOOP[0] // 10000, "samples")


if __name__ == "__main__":
    main()
