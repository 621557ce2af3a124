#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""ratios.py BUILD [ROUNDS]: what quipu costs beside plain QEMU, in one interleaved run.

CPU time is user + system of the whole command, the engine and quipu's own process included (wait4(2) gives both: quipu
waits for the engine). Every configuration of a guest runs once per round, so that a slow moment of the host falls on
all of them; a figure is the median over the rounds of the ratio to plain QEMU of the same round. Start-up is wall time.
Everything printed here is the host's time.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

SYSROOT = "/usr/riscv64-linux-gnu"
EVENTS = "instructions,cycles,loads,stores,branches"

# Guests of about a second under plain QEMU: loop.riscv64 and the others are shorter than a process start.
GUESTS = [
    ("realistic", ["12"]),
    ("recurse", ["36", "1000"]),
    ("memory", ["24", "8192"]),
    ("threads4", ["150000000"]),
]

# name: how the command line begins; {o} is a folder for output.
CONFIGURATIONS = {
    "plain": ["qemu-riscv64", "-L", SYSROOT],
    "stat": ["{quipu}", "stat", "-e", EVENTS, "-o", "{o}/stat", "--"],
    "record -g": ["{quipu}", "record", "-g", "-e", "cycles", "-F", "4000", "-o", "{o}/g.data", "--"],
    "stat cycles": ["{quipu}", "stat", "-e", "cycles", "-o", "{o}/stat", "--"],
    "record 4 kHz": ["{quipu}", "record", "-e", "cycles", "-F", "4000", "-o", "{o}/f.data", "--"],
}


class Failed(Exception):
    pass


def run(command):
    """(CPU seconds, wall seconds) of a command and all that it waited for."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise Failed(f"{' '.join(command)}: status {process.returncode}\n{errors.read().decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime, wall


def command_of(name, quipu, folder):
    return [word.format(quipu=quipu, o=folder) for word in CONFIGURATIONS[name]]


def measure(quipu, guests, rounds, folder):
    """{guest: {configuration: [CPU seconds of each round]}}"""
    times = {name: {c: [] for c in CONFIGURATIONS if c != "stat cycles"} for name, _ in GUESTS}
    for _ in range(rounds):
        for name, arguments in GUESTS:
            program = [os.path.join(guests, name + ".riscv64"), *arguments]
            for configuration in times[name]:
                cpu, _ = run(command_of(configuration, quipu, folder) + program)
                times[name][configuration].append(cpu)
    return times


def pairs(quipu, guests, rounds, folder):
    """{guest: [CPU time of record at 4 kHz to that of stat of the same event, of each round]}"""
    ratios = {name: [] for name, _ in GUESTS}
    for _ in range(rounds):
        for name, arguments in GUESTS:
            program = [os.path.join(guests, name + ".riscv64"), *arguments]
            stat, record = (command_of(c, quipu, folder) + program for c in ("stat cycles", "record 4 kHz"))
            cpu = [run(command)[0] for command in (stat, record, record, stat)]
            ratios[name].append((cpu[1] + cpu[2]) / (cpu[0] + cpu[3]))
    return ratios


def quartiles(values):
    """(lower quartile, median, upper quartile)"""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3


def startup(quipu, guests, rounds, folder):
    """Milliseconds of wall time that `quipu stat true` takes beyond plain QEMU: the median of the pairs."""
    program = [os.path.join(guests, "true.riscv64")]
    beyond = []
    for _ in range(rounds):
        _, plain = run(command_of("plain", quipu, folder) + program)
        _, stat = run(command_of("stat", quipu, folder) + program)
        beyond.append(1000 * (stat - plain))
    return statistics.median(beyond)


def ratio(times, name, over, under):
    return statistics.median(a / b for a, b in zip(times[name][over], times[name][under]))


def main(argv):
    build = argv[1] if len(argv) > 1 else "build"
    rounds = int(argv[2]) if len(argv) > 2 else 5
    quipu = os.path.abspath(os.path.join(build, "src/cli/quipu"))
    guests = os.path.abspath(os.path.join(build, "tests/guests"))
    columns = [("stat", "plain"), ("record -g", "plain"), ("record 4 kHz", "plain")]

    print(f"CPU time (host), user + system, quipu's own process included; medians of {rounds} interleaved rounds")
    print(f"stat: -e {EVENTS}; record: -e cycles -F 4000\n")
    with tempfile.TemporaryDirectory(prefix="quipu-bench-") as folder:
        try:
            times = measure(quipu, guests, rounds, folder)
            paired = pairs(quipu, guests, max(rounds, 5), folder)
            beyond = startup(quipu, guests, max(rounds * 3, 15), folder)
        except (Failed, OSError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1

    heads = [f"{a} / {b}" for a, b in columns]
    print(f"{'guest':<24}{'plain, s':>10}" + "".join(f"{h:>22}" for h in heads) + f"{'record 4 kHz / stat of it (quartiles)':>42}")
    table = {column: [] for column in columns}
    for name, arguments in GUESTS:
        line = f"{' '.join([name, *arguments]):<24}{statistics.median(times[name]['plain']):>10.3f}"
        for column in columns:
            figure = ratio(times, name, *column)
            table[column].append(figure)
            line += f"{figure:>22.3f}"
        low, middle, high = quartiles(paired[name])
        print(line + f"{f'{middle:.3f} ({low:.3f} to {high:.3f})':>42}")
    low, middle, high = quartiles([ratio for ratios in paired.values() for ratio in ratios])

    print(f"\n{'target':<64}{'now':>10}{'at most':>10}")
    rows = [
        ("stat of five events / plain QEMU, median of the guests", statistics.median(table[columns[0]]), 1.5),
        ("stat of five events / plain QEMU, worst guest", max(table[columns[0]]), 2.3),
        ("record -g at 4 kHz / plain QEMU, median of the guests", statistics.median(table[columns[1]]), 2.3),
        ("record -g at 4 kHz / plain QEMU, worst guest", max(table[columns[1]]), 3.2),
        ("record at 4 kHz / stat of the same event, median of all rounds", middle, 1.02),
        ("start-up: quipu stat true.riscv64 beyond plain QEMU, ms (wall)", beyond, 30.0),
    ]
    for text, figure, most in rows:
        print(f"{text:<64}{figure:>10.3f}{most:>10.2f}  {'met' if figure <= most else 'NOT MET'}")
    print(f"\nrecord / stat: {len(GUESTS)} guests, {max(rounds, 5)} rounds of two runs each; half of them between {low:.3f} and {high:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
