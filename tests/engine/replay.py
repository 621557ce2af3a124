#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""quipu replay of CPU traces: what is counted of a trace that QEMU's log became is what `quipu stat` counts of the same
program; deadlines are reached at the instruction; what is no trace is refused with its line. TAP on standard output."""
import json
import os
import subprocess
import sys

from tap import TMP, check, end

QUIPU, EXECLOG, GUESTS = os.environ["QUIPU"], os.environ["EXECLOG"], os.environ["QUIPU_GUEST_DIR"]
CONVERT, ENGINE_GUESTS = os.environ["CONVERT"], os.environ["ENGINE_GUESTS"]
ENV = {"PATH": "/usr/bin:/bin", "QUIPU_PLUGIN": os.environ["PLUGIN"]}
EVENTS = ["instructions:u", "cycles:u", "branches:u", "branch-misses:u", "L1-dcache-loads:u", "L1-dcache-stores:u",
          "L1-dcache-load-misses:u", "L1-dcache-store-misses:u", "L1-icache-load-misses:u", "LLC-loads:u",
          "dTLB-load-misses:u", "iTLB-load-misses:u"]


def replay(trace, *options, machine="riscv"):
    return subprocess.run([QUIPU, "replay", "-m", machine, *options, "-"], input=trace, env=ENV, text=True, timeout=200,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def trace_of(program, *args, isa="riscv64"):
    log = f"{TMP}/log"
    subprocess.run([f"qemu-{isa}", "-seed", "1", "-plugin", f"{EXECLOG},log={log}", program, *args], env=ENV,
                   stdout=subprocess.DEVNULL, timeout=200, check=True)
    with open(log, encoding="utf-8") as f:
        options = ["--windows"] if isa == "sparc64" else []
        return subprocess.run([sys.executable, CONVERT, *options], stdin=f, stdout=subprocess.PIPE, text=True, check=True).stdout


def stat(options, program, *args, machine="riscv", events=None):
    out = subprocess.run([QUIPU, "stat", "-m", machine, "-j", *options, "-e", ",".join(events or EVENTS), "--", program, *args],
                         env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=200, check=True)
    rows = [json.loads(line) for line in out.stderr.splitlines() if line.startswith("{")]
    return {row["event"]: int(float(row["counter-value"])) for row in rows if "event" in row}


def counted(trace, *options, machine="riscv", events=None):
    out = replay(trace, "--json", "-e", ",".join(events or EVENTS), *options, machine=machine)
    if out.returncode:
        return out.stderr
    return {row["event"]: row["value"] for row in json.loads(out.stdout)["events"]}


def same_as_stat(program, *args):
    trace = trace_of(program, *args)
    for options in ([], ["--timing", "full"]):
        want, got = stat(options, program, *args), counted(trace, *options)
        check(f"{os.path.basename(program)} {' '.join(args + tuple(options))}: the trace counts as the program does",
              want == got and want["instructions:u"] > 100, f"stat   {want}\nreplay {got}")


OTHERS = (("ppc64le", "power9", ("instructions:u", "branches:u", "branch-misses:u", "L1-dcache-load-misses:u")),
          ("sparc64", "rock", ("instructions", "cycles")))


def other_sets():
    """The converter takes what execlog says of every set whose instructions show where they end."""
    for isa, machine, events in OTHERS:
        program = f"{ENGINE_GUESTS}/recurse.{isa}"
        if not os.path.exists(program):
            continue
        trace = trace_of(program, "8", "5", isa=isa)
        for event in events:  # alone: these machines have few counters for some
            want = stat((), program, "8", "5", machine=machine, events=(event,))
            got = counted(trace, machine=machine, events=(event,))
            check(f"{isa}: {event} of the trace on {machine} are the program's", want == got and list(want.values()) > [0],
                  f"stat   {want}\nreplay {got}")


LOOP = "# quipu-cpu 1\n" + "10000 x03350500 r 7000 8\n10004 4:alu\n10008 4:branch\n" * 50 + "1000c 4:alu\n"


def deadlines():
    out = replay(LOOP, "-c", "7", "-e", "instructions:u").stdout.splitlines()
    places = [int(line.split()[0], 16) for line in out if line.endswith("instructions:u")]
    want = [0x10000 + 4 * ((7 * k - 1) % 3) for k in range(1, 151 // 7 + 1)]
    check("period 7: the place of every seventh instruction", places == want, f"{places}\n{want}")
    out = replay(LOOP, "-c", "10", "-e", "branches:u").stdout.splitlines()
    places = [int(line.split()[0], 16) for line in out if line.endswith("branches:u") and len(line.split()) == 2]
    check("period 10 of branches: five samples, all at the branch", places == [0x10008] * 5, out)


def cpus():
    trace = LOOP + "cpu 1\n" + LOOP.split("\n", 1)[1]
    got = counted(trace)
    check("two CPUs: their threads add up", got["instructions:u"] == 302, got)
    out = replay("# quipu-cpu 1\ncpu 9000\n")
    check("a CPU that the machine has not is refused with its line", out.returncode == 1 and "line 2" in out.stderr,
          out.stderr)


def edges():
    got = counted("# quipu-cpu 1\nfffffffffffffffc 4:alu r ffffffffffffffff 64\n0 4:alu\n")
    check("an instruction at the end of the address space", got["instructions:u"] == 2, got)


def refusals():
    for line in ["zz 4:alu", "10000", "10000 4:what", "10000 x1", "10000 x" + "00" * 17, "10000 4:load r", "10000 99:alu",
                 "cpu", "syscall now", "10000 4:load q 10", "10000 4:load" + " r 10" * 65, "\xff\xfe"]:
        out = replay(f"# quipu-cpu 1\n10000 4:alu\n{line}\n")
        check(f"refused with its line: {line[:24]!r}", out.returncode == 1 and "line 3: " in out.stderr, out.stderr)
    out = replay("hello\n")
    check("what is no trace is told so", out.returncode and "no trace" in out.stderr, out.stderr)


def main():
    same_as_stat(f"{GUESTS}/true.riscv64")
    same_as_stat(f"{GUESTS}/recurse.riscv64", "8", "10")
    same_as_stat(f"{GUESTS}/memory.riscv64", "1", "8")
    same_as_stat(f"{ENGINE_GUESTS}/prime.riscv64", "1000", "8")
    other_sets()
    deadlines()
    cpus()
    edges()
    refusals()
    end()


main()
