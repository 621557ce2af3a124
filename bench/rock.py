#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""rock.py QUIPU PROGRAM [-r ROUNDS]: what counting and sampling on machine rock costs beside plain QEMU, and samples a second.

PROGRAM is a sparc64 program. CPU time, user + system, of the command and all that it waited for, engine and machine
together; every configuration once a round, a figure is the median over the rounds of the ratio to plain QEMU of the same
round. All of it is the host's time.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROWS = (  # name, arguments of quipu
    ("cycles and instructions", ["stat", "-o", "{o}/stat", "-e", "rock/cycles/,rock/instructions/"]),
    ("D-cache loads of the L2", ["stat", "-o", "{o}/stat", "-e", "rock/l2_dcache_load/"]),
    ("an estimate, 1 of 100", ["stat", "-o", "{o}/stat", "-e", "rock/instr_dcache_miss/"]),
    ("rock_is, 1 of 1000", ["record", "-o", "{o}/data", "-e", "rock_is//", "-c", "1000"]),
    ("rock_is, 1 of 100", ["record", "-o", "{o}/data", "-e", "rock_is//", "-c", "100"]),
)


def cpu_seconds(command):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}\n{errors}")
    samples = re.search(r"\((\d+) samples", errors)
    return usage.ru_utime + usage.ru_stime, int(samples.group(1)) if samples else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("quipu")
    parser.add_argument("program")
    parser.add_argument("-r", type=int, default=5, metavar="ROUNDS")
    options = parser.parse_args()
    program = [options.program, "27", "100"]
    ratios, rates = {name: [] for name, _ in ROWS}, {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.r):
            plain, _ = cpu_seconds(["qemu-sparc64", *program])
            for name, arguments in ROWS:
                arguments = [a.replace("{o}", folder) for a in arguments]
                seconds, samples = cpu_seconds([options.quipu, arguments[0], "-m", "rock", *arguments[1:], "--", *program])
                ratios[name].append(seconds / plain)
                if samples:
                    rates.setdefault(name, []).append(samples / seconds)
    print(f"plain qemu-sparc64: 1 (median of {options.r} rounds, CPU time of engine and machine, this host)")
    for name, _ in ROWS:
        rate = f", {statistics.median(rates[name]) / 1e6:.2f} million samples a second" if name in rates else ""
        print(f"{name:28} {statistics.median(ratios[name]):6.1f}{rate}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
