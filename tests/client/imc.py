#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every command of Linux's imc.rst, as it is written there, with the stock perf on machine power9: cases P1 to P5 of the
room's sheet, the table of interrupts, and memory traffic against the model's own count."""
import os
import re
import shutil

from harness import GUESTS, equal, holds, main, need, need_namespace, test

SOURCE = os.environ["QUIPU_SOURCE"]
STREAM, REALISTIC, TRUE = (os.path.join(GUESTS, name + ".ppc64le") for name in ("stream", "realistic", "true"))
PROGRAM = (REALISTIC, "3")  # about 170 ms of its time
LINE = 128  # bytes of memory a count of a 128B event stands for
READS = [f"nest_mcs{u}/PM_MCS{u}_128B_RD_DISP_PORT{p}/" for u in ("01", "23") for p in ("01", "23")]
WRITES = [f"nest_mcs{u}/PM_MCS{u}_64B_WR_DISP_PORT{p}/" for u in ("01", "23") for p in ("01", "23")]

for needed in ("perf", "qemu-ppc64le"):
    if not shutil.which(needed):
        print(f"1..0 # SKIP {needed} is not installed")
        raise SystemExit(0)
if not os.path.exists(STREAM):
    print("1..0 # SKIP powerpc64le-linux-gnu-gcc is not installed, so there are no POWER programs")
    raise SystemExit(0)


def on(work, *command, machine="power9", options=(), **keywords):
    keywords.setdefault("status", 0)
    return work.quipu("exec", "-m", machine, *options, "--", *command, **keywords)


def counts(work, events, *command, perf=(), **keywords):
    """perf stat -x: [(socket or interval or "", event, count or what stands there)]."""
    result = on(work, "perf", "stat", "-x", ";", "-o", "stat.txt", *perf, "-e", ",".join(events), *command, **keywords)
    rows = []
    for line in open(work.path("stat.txt"), encoding="utf-8"):
        fields = [f.strip() for f in line.split(";")]
        at = next((i for i, f in enumerate(fields) if "/" in f), None)
        if at:
            rows.append((fields[0] if at > 2 else "", fields[at], int(fields[at - 2]) if fields[at - 2].isdigit()
                         else fields[at - 2]))
    holds(rows, f"no counts\n{result}")
    return rows


def count(work, event, *command, **keywords):
    return counts(work, [event], *command, **keywords)[0][2]


@test("perf list shows the document's events, in its form")
def listed(work):
    out = on(work, "perf", "list").out
    for name in ("nest_mcs01/PM_MCS01_64B_RD_DISP_PORT01/", "nest_mcs01/PM_MCS01_64B_RD_DISP_PORT23/",
                 "core_imc/CPM_0THRD_NON_IDLE_PCYC/", "core_imc/CPM_1THRD_NON_IDLE_INST/",
                 "thread_imc/CPM_0THRD_NON_IDLE_PCYC/", "thread_imc/CPM_1THRD_NON_IDLE_INST/",
                 "trace_imc/trace_cycles/"):
        holds(re.search(rf"^ *{re.escape(name)} +\[Kernel PMU event\]$", out, re.M), f"{name} is not in perf list")


@test("nest_mcs01, -a --per-socket: a line for S0 and one for S8, and the traffic is where the program is")
def per_socket(work):
    need_namespace(work)
    result = on(work, "perf", "stat", "-e", "nest_mcs01/PM_MCS01_64B_WR_DISP_PORT01/", "-a", "--per-socket", "--", STREAM)
    rows = re.findall(r"^(S\d+) +(\d+) +(\d+) +nest_mcs01/PM_MCS01_64B_WR_DISP_PORT01/", result.err, re.M)
    equal([r[:2] for r in rows], [("S0", "1"), ("S8", "1")], f"sockets\n{result}")
    holds(int(rows[0][2]) > 0 and int(rows[0][2]) % 256 == 0, f"S0 counts in steps of 256\n{result}")
    equal(int(rows[1][2]), 0, f"nothing ran on S8\n{result}")


@test("both spellings of a nest PMU count the same, on both machines; core_imc by the catalog's names too")
def spellings(work):
    reads = []
    for machine in ("power9", "power9-catalog"):
        for pmu in ("nest_mcs01", "nest_mcs01_imc"):
            reads.append(count(work, f"{pmu}/PM_MCS01_128B_RD_DISP_PORT01/", STREAM, perf=["-a"], machine=machine))
            equal(work.count(f"{pmu}/PM_MCS01_128B_RD_DISP_PORT01/", STREAM, options=["-m", machine, "-a"]) % 256, 0,
                  f"quipu stat, {pmu} on {machine}")
    # The catalog machine posts every ms, as hardware: it may lack what came after the last one.
    holds(reads[0] == reads[1] > 30000 and min(reads[2:]) > 0, f"counts {reads}")
    holds(count(work, "core_imc/CPM_CS_INST_USER/", STREAM, perf=["-C", "0"], machine="power9-catalog") > 10000000,
          "CPM_CS_INST_USER")


@test("read and write events imply the bytes of the model's own count of memory traffic, within 2 %")
def traffic(work):
    rows = counts(work, READS + WRITES, STREAM, "4096", "2", perf=["-a"])
    values = {name: number for _, name, number in rows}
    read, written = sum(values[e] for e in READS), sum(values[e] for e in WRITES)
    lines = count(work, "core_imc/CPM_CS_FROM_MEM_LOCAL/", STREAM, "4096", "2", perf=["-a"])
    total = count(work, "nest_powerbus0/PM_PB_EVENT_LNS_PUMP/", STREAM, "4096", "2", perf=["-a"])
    holds(abs(read - lines) * LINE <= 0.02 * lines * LINE, f"bytes read: {read * LINE}, the model's {lines * LINE}")
    holds(abs(read + written - total) * LINE <= 0.02 * total * LINE,
          f"bytes moved: {(read + written) * LINE}, the model's {total * LINE}")
    # What the program asks for: three arrays that no cache holds, so at least what it writes once.
    holds(read * LINE >= 3 * 4096 * 1024, f"{read * LINE} bytes read")
    for events in (READS, WRITES):
        share = [values[e] for e in events]
        holds(max(share) - min(share) <= 1024, f"neighbouring lines go to all ports alike: {share}")


@test("a line goes through the port of its address")
def ports(work):
    lines = 64 * 1024 * 1024 // 1024  # one of eight lines of 64 MiB
    for port, want in ((0, 0), (3, 1), (6, 3)):
        rows = counts(work, READS, STREAM, "65536", "1", str(port), perf=["-a"])
        for at, (_, name, number) in enumerate(rows):
            if at == want:
                holds(lines - 256 <= number <= lines + 1024, f"port {port}, {name}: {number}, want {lines}")
            else:
                holds(number <= 1024, f"port {port}, {name}: {number}, want next to nothing")


@test("64 MiB streamed from chip 8's memory: 524288 line fills on S8, next to nothing on S0 (P2)")
def other_chip(work):
    need_namespace(work)
    need("taskset")
    lines = 64 * 1024 * 1024 // LINE
    for cpu, want in ((16, "S8"), (0, "S0")):
        rows = counts(work, READS, "taskset", "-c", str(cpu), STREAM, "65536", "1", "8", perf=["-a", "--per-socket"])
        for socket in ("S0", "S8"):
            values = [number for where, _, number in rows if where == socket]
            equal(len(values), 4, f"{socket}: {rows}")
            if socket == want:
                # Beside the arrays stands what the program itself is: its image, its stack, the C library's start.
                holds(abs(sum(values) - lines) <= 4 * 256 + 1024, f"CPU {cpu}, {socket}: {sum(values)}, want {lines}")
                holds(all(abs(v - lines / 4) <= 512 for v in values), f"CPU {cpu}, {socket}: {values} by port pair")
            else:
                equal(sum(values), 0, f"CPU {cpu}: nothing ran on {socket}")


@test("core_imc, -C 0 -I 1000: at least three intervals, and their sum is the total")
def intervals(work):
    loop = 'end=$(($(date +%s) + 5)); while [ "$(date +%s)" -lt $end ]; do "$0"; done'
    result = on(work, "perf", "stat", "-e", "core_imc/CPM_NON_IDLE_INST/", "-C", "0", "-I", "1000", "--summary", "--",
                "sh", "-c", loop, STREAM)
    rows = [int(n) for n in re.findall(r"^ +\d+\.\d+ +(\d+) +core_imc/CPM_NON_IDLE_INST/", result.err, re.M)]
    total = re.findall(r"^ +(?:summary)? +(\d+) +core_imc/CPM_NON_IDLE_INST/", result.err, re.M)
    holds(len(rows) >= 3 and len(total) == 1, f"{rows} {total}\n{result}")
    equal(sum(rows), int(total[0]), f"sum of the intervals\n{result}")
    holds(sum(1 for n in rows if n > 0) >= 2 and all(n % 512 == 0 for n in rows), f"intervals {rows}")
    # quipu's own intervals are of the machine's time; a rerun has the same total.
    own = ["stat", "-m", "power9", "-C", "0", "-e", "core_imc/CPM_NON_IDLE_INST/"]
    total = [int(n) for n in re.findall(r"^ +(\d+) +core_imc", work.quipu(*own, *PROGRAM, status=0).err, re.M)]
    parts = [int(n) for n in re.findall(r"^ +[\d.]+ +(\d+) +core_imc",
                                        work.quipu(*own, "-I", "20", *PROGRAM, status=0).err, re.M)]
    holds(len(parts) >= 3 and total == [sum(parts)], f"quipu stat -I: {parts}, total {total}")


@test("thread_imc: a real make of a C file, and a POWER program, equal to the instructions of the core PMU (P3)")
def tasks(work):
    for program in ("make", "cc", "qemu-x86_64"):
        need(program)
    with open(work.path("hello.c"), "w", encoding="utf-8") as f:
        f.write("int main(void) { return 7; }\n")
    with open(work.path("Makefile"), "w", encoding="utf-8") as f:
        f.write("hello: hello.c\n\tcc -o hello hello.c\n")
    result = on(work, "perf", "stat", "-e", "thread_imc/CPM_NON_IDLE_PCYC/", "make")
    cycles = re.search(r"^ +(\d+) +thread_imc/CPM_NON_IDLE_PCYC/", result.err, re.M)
    holds(cycles and int(cycles.group(1)) > 1000000, f"the cycles of make and what it started\n{result}")
    equal(work.run(work.path("hello")).status, 7, "what make built runs")
    # quipu's own command runs it as well, and both count the same: here without the compiler, which takes long.
    dry = ("make", "-B", "-n")
    own = work.quipu("stat", "-m", "power9", "-e", "thread_imc/CPM_NON_IDLE_PCYC/", *dry, status=0)
    again = re.search(r"^ +(\d+) +thread_imc/CPM_NON_IDLE_PCYC/ +modelled", own.err, re.M)
    want = count(work, "thread_imc/CPM_NON_IDLE_PCYC/", *dry)
    holds(again and abs(int(again.group(1)) / want - 1) < 0.05, f"perf: {want}\n{own}")
    here = count(work, "thread_imc/CPM_NON_IDLE_INST/", STREAM)
    there = work.count("instructions", STREAM, options=["-m", "power9"])
    holds(0 <= there - here <= 2 * 512, f"thread_imc {here}, core PMU {there}")


def recorded(work, *command, options=()):
    """perf record of trace_cycles: (samples, {symbol: share}) as perf report says."""
    on(work, "perf", "record", "-q", "-o", "perf.data", "-e", "trace_imc/trace_cycles/", *options, "--", *command)
    return reported(work)


def reported(work):
    text = work.run("perf", "report", "-i", "perf.data", "--stdio", "--sort", "symbol").out
    shares = {m.group(2): float(m.group(1)) for m in re.finditer(r"^ +([\d.]+)% +\[\.\] (\S+)", text, re.M)}
    return work.run("perf", "script", "-i", "perf.data", "-F", "ip").out.count("\n"), shares


@test("perf record of trace_cycles, yes > /dev/null for a while: samples of yes, and perf report shows them")
def record_yes(work):
    need("qemu-x86_64")
    # A second is enough on an idle host; a loaded one gets more of them.
    for seconds in (1, 4, 20):
        on(work, "sh", "-c", "perf record -q -o perf.data -e trace_imc/trace_cycles/ yes > /dev/null & "
           f"p=$!; sleep {seconds}; kill -INT $p; wait $p; true")
        samples, shares = reported(work)
        if samples > 20:
            break
    holds(samples > 20 and shares, f"{samples} samples, {shares}")
    names = work.run("perf", "report", "-i", "perf.data", "--stdio", "--sort", "comm", status=0).out
    holds(re.search(r"^ +[\d.]+% +yes", names, re.M), f"the command\n{names}")
    own = work.quipu("record", "-m", "power9", "-e", "trace_imc/trace_cycles/", "-o", "own.data", "sh", "-c",
                     "yes | head -c 4000000 > /dev/null", status=0)
    holds(re.search(r"trace_imc: [1-9]\d* records written", own.err), f"quipu record of it\n{own.err}")


@test("perf record of trace_cycles on a POWER program: samples in the right functions, and the books are right")
def record_program(work):
    samples, shares = recorded(work, *PROGRAM)
    holds(samples > 1000, f"{samples} samples")
    # The judge: interrupts of the core PMU on the same program.
    on(work, "perf", "record", "-q", "-o", "perf.data", "-e", "cycles", "-c", "200003", "--", *PROGRAM)
    _, judge = reported(work)
    # Most records are overwritten before they are read, and what is left is more of one phase of the program than of
    # another: shares agree within a factor, and no function is hot that the judge does not know.
    for name, share in judge.items():
        if share > 8:
            holds(share / 3 < shares.get(name, 0) < share * 3, f"{name}: {shares.get(name)} %, by interrupt {share} %")
    for name, share in shares.items():
        holds(share < 4 or name in judge, f"{name}: {share} %, and never by interrupt")
    result = on(work, "perf", "record", "-q", "-o", "perf.data", "-e", "trace_imc/trace_cycles/", "--", *PROGRAM,
                options=["-v"])
    line = re.search(r"trace_imc: (\d+) records written, one for each (\d+) of (\d+) 32 MHz ticks that threads ran: "
                     r"(\d+) delivered, (\d+) overwritten, (\d+) skipped", result.err)
    holds(line, f"the sum at the end\n{result}")
    written, period, ticks, delivered, over, skipped = (int(n) for n in line.groups())
    equal(period, 251, "ticks of a record")
    holds(0 <= ticks // period - written <= 2, f"{written} records in {ticks} ticks")
    equal(written, delivered + over + skipped, "records")
    equal(reported(work)[0], delivered, "samples in the file")


@test("the table of interrupts: perf top moves the row PMI, perf top with trace_imc does not")
def interrupts(work):
    need_namespace(work)
    result = on(work, os.path.join(SOURCE, "tests", "client", "imc_interrupts.sh"), STREAM, timeout=400)
    rows = [line for line in result.out.splitlines() if line.startswith("PMI:")]
    equal(len(rows), 3, f"rows\n{result}")
    for row in rows:
        holds(re.fullmatch(r"PMI: (?: *\d+ ){32}  Performance monitoring interrupts", row) and len(row) == 5 + 32 * 11 +
              2 + len("Performance monitoring interrupts"), f"the form of {row!r}")
    before, after, trace = ([int(n) for n in row.split()[1:33]] for row in rows)
    equal(sum(before), 0, "before")
    holds(sum(after) > 0, f"perf top takes interrupts: {after}")
    equal(trace, after, "perf top with trace_imc takes none")
    holds(re.search(r"^ +[\d.]+% ", open(work.path("trace.out"), errors="replace", encoding="utf-8").read(), re.M),
          "and yet it has samples")


@test("perf_event_open and the firmware calls of stat are those of the sheet (P4, P5)")
def calls(work):
    result = on(work, "perf", "stat", "-e", "nest_mcs01/PM_MCS01_64B_WR_DISP_PORT01/", "-a", "--", TRUE,
                options=["--trace=trace.txt", "-v"])
    trace = [re.search(r"OPAL_IMC_COUNTERS_(\w+)\(NEST, 0x(\w+)\) = 0", line)
             for line in open(work.path("trace.txt"), encoding="utf-8")]
    trace = [m.groups() for m in trace if m]
    # At boot each chip is stopped once; then perf's three attempts on the first CPU, of which the last stays open.
    equal(trace[:2], [("STOP", "0"), ("STOP", "800")], "boot")
    first = [what for what, pir in trace[2:] if int(pir, 16) < 0x800]
    other = [what for what, pir in trace[2:] if int(pir, 16) >= 0x800]
    equal(first, ["START", "STOP", "START", "STOP", "START", "STOP"], f"chip 0: {trace}")
    equal(other, ["START", "STOP"], f"chip 8: {trace}")
    equal(result.err.count("EINVAL: nest_mcs01"), 2, f"two attempts are refused\n{result}")


@test("an event of the document that no POWER9 catalog has is answered with the reason and the nearest one")
def absent(work):
    for name in ("nest_mcs0/PM_MCS_DOWN_128B_DATA_XFER_MC0/", "PM_MCS_DOWN_128B_DATA_XFER_MC0"):
        result = work.quipu("stat", "-m", "power9", "-a", "-e", name, TRUE)
        holds("<not supported>" in result.err and "POWER8" in result.err and
              "PM_MCS01_128B_RD_DISP_PORT01" in result.err, f"{name}\n{result}")


@test("refusals have the sheet's errno in perf and the reason in quipu's own words")
def refusals(work):
    rows = {name: number for _, name, number in
            counts(work, ["trace_imc/trace_cycles/", "core_imc/CPM_NON_IDLE_INST/"], TRUE, status=None)}
    equal(rows.get("trace_imc/trace_cycles/"), "<not supported>", "trace cannot count")
    equal(count(work, "thread_imc/CPM_NON_IDLE_INST/", TRUE, perf=["-a"], status=None), "<not supported>",
          "thread_imc has no system-wide events")
    for events, words in (("trace_imc/trace_cycles/", "only samples"), ("thread_imc/CPM_INST/u", "u"),
                          ("core_imc/config=0x2001/", "outside of the counter memory")):
        result = work.quipu("stat", "-m", "power9", "-e", events, TRUE)
        holds(words in result.err, f"{events}: want {words!r}\n{result}")


if __name__ == "__main__":
    main()
