#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The stock perf on the RISC-V machines: what it shows on the harts of the document, and that all works on `riscv`.

Cases P11, P14, P23, L1, L5 and L7 of the room's sheet through a client that knows nothing of quipu.
"""
import os
import re
import shutil

from harness import Skip, equal, guest, holds, main, need, need_namespace, test

LOOP = (2920024, 3970025)  # instructions and cycles of loop, by hand: tests/guests/loop.S
NO_SAMPLING = "PMU Hardware doesn't support sampling/overflow-interrupts. Try 'perf stat'"
MACHINES = os.path.join(os.environ["QUIPU_BUILD"], "machines")


def on(work, machine, *command, **keywords):
    return work.quipu("exec", "-m", machine, "--", *command, **keywords)


def counts(work, machine, events, *command):
    """perf stat -x: {event: (count or what stands there, percent of the time on the PMU)}."""
    need("perf")
    result = on(work, machine, "perf", "stat", "-x", ";", "-e", events, *command, status=0)
    rows = {}
    for line in result.err.splitlines():
        fields = line.split(";")
        if len(fields) > 4:
            rows[fields[2]] = (int(fields[0]) if fields[0].isdigit() else fields[0], float(fields[4]))
    holds(rows, f"no counts\n{result}")
    return rows


@test("riscv-legacy: perf stat counts cycles and instructions, at every level, and nothing else")
def legacy_stat(work):
    rows = counts(work, "riscv-legacy", "instructions,cycles,branches,L1-dcache-loads,r1", guest("loop"))
    equal((rows["instructions"][0], rows["cycles"][0]), LOOP, "instructions and cycles")
    for name in ("branches", "L1-dcache-loads", "r1"):
        equal(rows[name][0], "<not supported>", name)
    rows = counts(work, "riscv-legacy", "instructions:k,cycles:u", guest("loop"))
    equal((rows["instructions:k"][0], rows["cycles:u"][0]), LOOP, "the filters are accepted and ignored")


@test("riscv-legacy: perf record says that the hardware has no overflow interrupts, and leaves no samples")
def legacy_record(work):
    need("perf")
    result = on(work, "riscv-legacy", "perf", "record", "-e", "cycles", "-o", "perf.data", "--", guest("loop"))
    holds(result.status > 0, f"status\n{result}")
    holds(NO_SAMPLING in result.err, f"perf's own text for it\n{result}")


@test("riscv-legacy, silent: perf record writes a file without samples, as the document's kernel did")
def legacy_silent(work):
    need("perf")
    if not shutil.which("fdtput"):
        raise Skip("fdtput (device-tree-compiler) is not installed")
    shutil.copy(os.path.join(MACHINES, "riscv-legacy.dtb"), work.path("silent.dtb"))
    work.run("fdtput", "-t", "s", work.path("silent.dtb"), "/pmu", "quipu,record", "silent", status=0)
    on(work, work.path("silent.dtb"), "perf", "record", "-e", "cycles", "-o", "perf.data", "--", guest("loop"), status=0)
    equal(work.samples("ip"), [], "samples")


@test("the sysfs of each driver: no format on riscv-legacy, format and events with the SBI driver")
def sysfs(work):
    need_namespace(work)
    cpu = "/sys/bus/event_source/devices/cpu"
    script = f"ls {cpu}; cat {cpu}/type {cpu}/format/event 2>/dev/null; true"
    words = on(work, "riscv-legacy", "sh", "-c", script, status=0).out.split()
    equal(words, ["perf_event_mux_interval_ms", "subsystem", "type", "uevent", "4"], "riscv-legacy")
    words = on(work, "riscv", "sh", "-c", script, status=0).out.split()
    equal(words, ["events", "format", "perf_event_mux_interval_ms", "subsystem", "type", "uevent", "4", "config:0-47"],
          "riscv")


@test("P20: perf_user_access is there, takes 0 to 2 and no more; with 2 cycles and instructions are on counters 0 and 2")
def user_access(work):
    need("perf")
    need_namespace(work)
    file = "/proc/sys/kernel/perf_user_access"
    if on(work, "riscv", "test", "-e", file).status:
        raise Skip("this host does not let its /proc/sys/kernel be covered")
    stat = f"perf stat -x, -o counts -e cycles,instructions {guest('true')}"
    script = f"""
becomes() {{ for i in $(seq 400); do [ "$(cat {file})" = $1 ] && return; sleep 0.05; done; cat {file}; exit 1; }}
cat {file}; cat /proc/sys/kernel/hostname > name; cat /proc/sys/kernel/perf_event_paranoid; {stat}
echo 3 > {file}; becomes 1
echo 2 > {file}; becomes 2; cat /sys/bus/event_source/devices/cpu/type; {stat}
"""
    result = work.quipu("exec", "-m", "riscv", "--trace=calls", "--", "sh", "-ec", script, status=0)
    equal(result.out.split(), ["1", "-1", "4"], "what the shell saw")
    with open(work.path("name"), encoding="utf-8") as name, open("/proc/sys/kernel/hostname", encoding="utf-8") as host:
        equal(name.read(), host.read(), "a file of the host's own beside it")
    with open(work.path("calls"), encoding="utf-8") as calls:
        fixed = re.findall(r"config_matching\(base=0, mask=(\w+), flags=\w+, event=(\w+), data=0\) = 0(?:, (\w+))?", calls.read())
    holds([row for row in fixed if row[0] not in ("1", "4")], f"no event before on any counter: {fixed}")
    equal([row for row in fixed if row[0] in ("1", "4")], [("1", "1", ""), ("4", "2", "2")], "counters asked for with 2")
    result = on(work, "riscv-legacy", "cat", file)
    holds(result.status, f"the legacy driver has no such file\n{result}")


@test("riscv-u74 and riscv-qemu-virt: raw codes and table events count, all others are not supported")
def others(work):
    rows = counts(work, "riscv-u74", "r4000,r200,instructions,cycles:u", guest("loop"))
    equal((rows["r4000"][0], rows["r200"][0], rows["instructions"][0]), (1170000, 100000, LOOP[0]), "counts of riscv-u74")
    equal(rows["cycles:u"][0], "<not supported>", "a filter on riscv-u74")
    result = on(work, "riscv-u74", "perf", "record", "-e", "cycles", "-o", "perf.data", "--", guest("loop"), timeout=60)
    holds(result.status > 0 and NO_SAMPLING in result.err, f"record on riscv-u74\n{result}")
    result = on(work, "riscv-qemu-virt", "perf", "stat", guest("loop"), status=0)
    for name in ("branches", "branch-misses"):
        holds(any("<not supported>" in line and name in line for line in result.err.splitlines()), f"{name}\n{result}")
    rows = counts(work, "riscv-qemu-virt", "instructions,cycles", guest("loop"))
    equal((rows["instructions"][0], rows["cycles"][0]), LOOP, "counts of riscv-qemu-virt")


@test("riscv: perf record -F 4000, a group with :u")
def sampling(work):
    rows = counts(work, "riscv", "{instructions,branches}:u,cycles", guest("loop"))
    equal((rows["instructions"][0], rows["branches"][0], rows["cycles"][0]), (LOOP[0], 1210008, LOOP[1]), "the group")
    cycles = counts(work, "riscv", "cycles", guest("recurse"), "32")["cycles"][0]
    on(work, "riscv", "perf", "record", "-F", "4000", "-e", "cycles", "-o", "perf.data", "--", guest("recurse"), "32",
       status=0)
    samples = len(work.samples("ip"))
    holds(abs(samples / (4000 * cycles / 1e9) - 1) < 0.10, f"{samples} samples in {cycles} ns")


@test("riscv: perf's own estimates of 20 events on 13 counters come within 2 % for a steady program")
def multiplexing(work):
    events = ["r1", "r2", "r5", "r100000200", "r100000400", "r100002000", "r100004000", "r100008000", "r100010000",
              "r100006000", "r10000c000", "r100014000", "r100000600", "r100000a00", "r200000001", "r200000002",
              "r200000003", "r200000004", "r200000005", "r100018000"]
    command = (guest("recurse"), "34")
    truth = {}
    for start in (0, 10):
        truth.update(counts(work, "riscv", ",".join(events[start:start + 10]), *command))
    rows = counts(work, "riscv", ",".join(events), *command)
    equal(len(rows), 20, "rows")
    for name, (estimate, percent) in rows.items():
        equal(truth[name][1], 100.0, f"share of {name} among ten")
        holds(40 < percent < 90, f"{name} is on the PMU {percent} % of the time")
        holds(abs(estimate / truth[name][0] - 1) < 0.02, f"{name}: {estimate}, truth {truth[name][0]}")


if __name__ == "__main__":
    main()
