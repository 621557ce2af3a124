#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the stock perf gets in samples under quipu exec beside their place: data addresses, against a log of all accesses
(access_log.c); branch stacks (branches.py has them); weights and registers, which nobody knows here, as Linux says so.
power9 and rock, which know weights and sources: tests/client/power.py, tests/conformance/rock/events.py. TAP on standard
output."""
import os
import re
import struct
import subprocess

from tap import TMP, check, end

QUIPU, LOG = os.environ["QUIPU"], os.environ["ACCESS_LOG"]
ENV = {"PATH": "/usr/bin:/bin", "QUIPU_PLUGIN": os.environ["PLUGIN"], "HOME": "/nonexistent"}
DATA = f"{TMP}/perf.data"
SETS = {"riscv64": ("riscv", (), f"{os.environ['QUIPU_GUEST_DIR']}/recurse.riscv64"),
        "x86_64": ("x86", ("-cpu", "max"), f"{os.environ['ENGINE_GUESTS']}/recurse.x86_64")}
ARGS = ("12", "30")


def run(*command):
    return subprocess.run(command, env=ENV, cwd=TMP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=200)


def record(machine, program, *words):
    return run(QUIPU, "exec", "-m", machine, "--", "perf", "record", "-q", *words, "-o", DATA, "--", program, *ARGS)


def fields(names):
    """Of each sample, what `perf script` prints of the fields, as words."""
    out = run("perf", "script", "-i", DATA, "-F", names)
    return [line.split() for line in out.stdout.splitlines() if line.strip()]


def accesses(isa, options, program):
    """{(pc, address)} of all loads, and of all stores."""
    log = f"{TMP}/log"
    subprocess.run([f"qemu-{isa}", *options, "-seed", "1", "-plugin", f"{LOG},log={log}", program, *ARGS], env=ENV,
                   stdout=subprocess.DEVNULL, check=True, timeout=200)
    with open(log, "rb") as f:
        entries = struct.iter_unpack("<QII", f.read())
    found, pc = {1: set(), 2: set()}, 0
    for address, _, what in entries:
        if what:
            found[what].add((pc, address))
        else:
            pc = address
    return found[1], found[2]


def addresses(isa, machine, options, program):
    loads, stores = accesses(isa, options, program)
    for event, period, pairs in (("L1-dcache-load-misses:u", "1", loads), ("L1-dcache-store-misses:u", "1", stores),
                                 ("dTLB-load-misses:u", "1", loads)):
        out = record(machine, program, "-d", "-e", event, "-c", period)
        # The address is printed first, wherever it is named.
        got = [(int(ip, 16), int(address, 16)) for address, ip in fields("ip,addr")]
        # What the start of a program finds on its stack lies where its own path and environment put it.
        strange = [f"{ip:#x} {address:#x}" for ip, address in got if (ip, address) not in pairs]
        near = [s for s in strange if not any(ip == int(s.split()[0], 16) and abs(a - int(s.split()[1], 16)) < 1 << 16
                                              for ip, a in pairs)]
        check(f"{isa}: {event}: each sample's address is one that its instruction accessed", out.returncode == 0 and
              len(got) > 10 and not near and len(strange) < len(got), f"{out.stderr}{len(got)}\n" + "\n".join(near))


def others(isa, machine, program):
    out = record(machine, program, "-d", "-W", "-e", "instructions:u", "-c", "997")
    got = fields("addr,weight")
    check(f"{isa}: of instructions that are counted where they end neither address nor weight is known: 0, as from Linux",
          out.returncode == 0 and len(got) > 20 and all(set(words) == {"0"} for words in got), f"{out.stderr}{got[:3]}")
    out = record(machine, program, "-I", "-e", "instructions:u", "-c", "997")
    text = run("perf", "script", "-i", DATA, "-F", "ip,iregs").stdout
    asked = run("perf", "evlist", "-v", "-i", DATA).stdout
    check(f"{isa}: registers are asked for, and each sample says that it has none",
          out.returncode == 0 and "REGS_INTR" in asked and len(text.split()) > 20 and not re.search(r"[A-Za-z0-9]+:0x", text),
          f"{out.stderr}{asked}{text[:300]}")
    for option in ("-d", "-W", "-I"):
        out = run(QUIPU, "record", "-m", machine, option, "-e", "instructions:u", "-o", DATA, "--", program, *ARGS)
        check(f"{isa}: quipu record refuses {option}, and says where its options are", out.returncode == 2 and
              f"no option '{option}'" in out.stderr and "--help" in out.stderr, out.stderr)


def main():
    for isa, (machine, options, program) in SETS.items():
        if os.path.exists(program):
            addresses(isa, machine, options, program)
            others(isa, machine, program)
    end()


main()
