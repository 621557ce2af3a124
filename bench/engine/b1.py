#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""b1.py BUILD [-r ROUNDS] [-i ISA,...] [-p PROGRAM,...]: table B1 of the engine, and the targets T1 to T8.

What counting (C1), counting with branch predictor and call stack (C2) and the full model (C3: caches, TLBs, predictor,
call stack, stalls in the cycles) cost beside plain QEMU of the same instruction set, and beside every peer that is
installed: valgrind without a tool, cachegrind and callgrind with cache and branch simulation, natively on the same
program; QEMU's own plugins bb, hotblocks and cache where QEMU_PLUGIN_DIR names their folder (no Debian package has them).

One interleaved run: every configuration of a program once a round, so that a slow moment of the host falls on all of
them. CPU time, user + system, of the command and all that it waited for: quipu's own process is in it. A figure is the
median over the rounds of the ratio to plain QEMU of the same round. Everything printed is the host's time.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
GUESTS = os.path.join(HERE, "..", "..", "tests", "guests")
ISAS = {  # compiler, QEMU, machine
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64", "riscv"),
    "x86_64": ("cc", "qemu-x86_64", "x86"),
    "ppc64le": ("powerpc64le-linux-gnu-gcc", "qemu-ppc64le", "power9"),
    "sparc64": ("sparc64-linux-gnu-gcc", "qemu-sparc64", "rock"),
}
PROGRAMS = {  # source, arguments: 0.2 to 0.4 s under plain QEMU
    "prime": (f"{HERE}/programs/prime.c", []),
    "mix": (f"{HERE}/programs/mix.c", []),
    "realistic": (f"{GUESTS}/realistic.c", ["1"]),
    "recurse": (f"{GUESTS}/recurse.c", ["33", "1000"]),
    "memory": (f"{GUESTS}/memory.c", ["12", "1024"]),
}
COUNTS = "instructions,cycles,branches,L1-dcache-loads,L1-dcache-stores"
MODEL = COUNTS + ",branch-misses,L1-dcache-load-misses,cache-misses,dTLB-load-misses,iTLB-load-misses,L1-icache-load-misses"
FAR = "1000000000000"  # a period that no run reaches: the cost is that of being ready to sample
QUIPU = {
    "C1": ["stat", "-e", COUNTS, "-o", "{o}/stat"],
    "C2": ["record", "-g", "-e", COUNTS + ",branch-misses", "-c", FAR, "-o", "{o}/data"],
    "C3": ["record", "-g", "--timing", "full", "-e", MODEL, "-c", FAR, "-o", "{o}/data"],
}
VALGRIND = {
    "valgrind none": ["--tool=none"],
    "cachegrind": ["--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "--cachegrind-out-file=/dev/null"],
    "callgrind": ["--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes", "--callgrind-out-file=/dev/null"],
}
PLUGINS = {"bb": "libbb.so", "hotblocks": "libhotblocks.so", "cache": "libcache.so"}


def cpu_seconds(command):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}\n{errors.decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime


def compiled(compiler, source, out):
    subprocess.run([compiler, "-O2", "-g", "-std=gnu17", "-static", source, "-o", out], check=True)
    return out


def configurations(isa, quipu, program, native, folder):
    """name: command"""
    _, qemu, machine = ISAS[isa]
    rows = {"plain": [qemu, *program]}
    for name, words in QUIPU.items():
        rows[name] = [quipu, words[0], "-m", machine, *(w.format(o=folder) for w in words[1:]), "--", *program]
    where = os.environ.get("QEMU_PLUGIN_DIR")
    for name, file in PLUGINS.items():
        if where and os.path.exists(f"{where}/{file}"):
            rows[f"QEMU {name}"] = [qemu, "-plugin", f"{where}/{file}", *program]
    if isa == "x86_64" and shutil.which("valgrind"):
        rows["native"] = native
        for name, words in VALGRIND.items():
            rows[name] = ["valgrind", "-q", *words, *native]
    return rows


def measure(isa, quipu, programs, rounds, folder):
    """{program: {configuration: median ratio to plain}}, {program: plain seconds}"""
    jobs, ratios, plain = {}, {}, {}
    for name in programs:
        source, args = PROGRAMS[name]
        out = compiled(ISAS[isa][0], source, f"{folder}/{name}.{isa}")
        jobs[name] = configurations(isa, quipu, [out, *args], [out, *args], folder)
        ratios[name] = {c: [] for c in jobs[name]}
        plain[name] = []
    for number in range(rounds):
        for name, rows in jobs.items():
            print(f"\r{isa}: round {number + 1} of {rounds}, {name}   ", end="", file=sys.stderr, flush=True)
            seconds = {c: cpu_seconds(command) for c, command in rows.items()}
            plain[name].append(seconds["plain"])
            for c, s in seconds.items():
                ratios[name][c].append(s / seconds["plain"])
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    return ({n: {c: statistics.median(v) for c, v in rows.items()} for n, rows in ratios.items()},
            {n: statistics.median(v) for n, v in plain.items()})


def print_table(isa, table, plain):
    names = list(table)
    print(f"\n{isa}: CPU time, plain {ISAS[isa][1]} = 1 (host)\n")
    print(f"  {'':16}" + "".join(f"{n:>11}" for n in names) + f"{'median':>10}")
    print(f"  {'plain, seconds':16}" + "".join(f"{plain[n]:11.2f}" for n in names))
    for c in next(iter(table.values())):
        row = [table[n][c] for n in names]
        if c != "plain":
            print(f"  {c:16}" + "".join(f"{v:11.2f}" for v in row) + f"{statistics.median(row):10.2f}")


def at_most(pairs, median, worst):
    m, w = statistics.median(pairs), max(pairs)
    return m <= median and w <= worst, f"{m:.2f} median, {w:.2f} worst", f"<= {median}, <= {worst}"


def at_least(pairs, median, worst):
    m, w = statistics.median(pairs), min(pairs)
    return m >= median and w >= worst, f"{m:.1f} median, {w:.1f} worst", f">= {median}, >= {worst}"


def targets(tables):
    """(name, what, verdict, found, asked)"""
    def of(config, isas=None):
        return [row[config] for isa, t in tables.items() if not isas or isa in isas for row in t.values()]

    def faster(peer, ours, isas=None):
        return [row[peer] / row[ours] for isa, t in tables.items() if not isas or isa in isas
                for row in t.values() if peer in row]

    def slower(peer, ours):
        return [row[ours] / row[peer] for t in tables.values() for row in t.values() if peer in row]

    rows = [("T1", "counting / plain QEMU", of("C1"), at_most, 1.35, 2.1),
            ("T2", "QEMU bb / counting", faster("QEMU bb", "C1"), at_least, 3.3, 2.3),
            ("T3", "branches and call stack / plain QEMU", of("C2"), at_most, 2.0, 2.8),
            ("T4", "QEMU hotblocks / branches and call stack", faster("QEMU hotblocks", "C2"), at_least, 3.0, 2.0),
            ("T5", "full model / plain QEMU", of("C3"), at_most, 4.0, 6.0),
            ("T6", "QEMU cache / full model", faster("QEMU cache", "C3"), at_least, 9.0, 6.0),
            ("T7", "full model / cachegrind, cache and branches", slower("cachegrind", "C3"), at_most, 0.85, 1.1),
            ("T8", "callgrind, cache and branches / full model", faster("callgrind", "C3"), at_least, 2.5, 2.5)]
    for name, what, pairs, judge, median, worst in rows:
        if not pairs:
            yield name, what, "not measured: its peer is not here"
            continue
        met, found, asked = judge(pairs, median, worst)
        yield name, what, f"{'met' if met else 'NOT MET'}: {found} of {len(pairs)} pairs ({asked})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-i", "--isas", default=",".join(ISAS))
    parser.add_argument("-p", "--programs", default=",".join(PROGRAMS))
    options = parser.parse_args()
    quipu, tables = os.path.abspath(f"{options.build}/src/cli/quipu"), {}
    known = subprocess.run([quipu, "machine", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for isa in options.isas.split(","):
        compiler, qemu, machine = ISAS[isa]
        missing = [w for w in (compiler, qemu) if not shutil.which(w)]
        if missing or machine not in known:
            print(f"{isa}: left out, there is no {missing[0] if missing else 'machine ' + machine}")
            continue
        with tempfile.TemporaryDirectory(prefix="quipu-b1-") as folder:
            tables[isa], plain = measure(isa, quipu, options.programs.split(","), options.rounds, folder)
        print_table(isa, tables[isa], plain)
    print()
    for row in targets(tables) if tables else ():
        print(f"  {row[0]}  {row[1]:44} {row[2]}")


if __name__ == "__main__":
    main()
