#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""b1.py BUILD [-r ROUNDS] [-i ISA,...] [-p PROGRAM,...]: table B1 of the engine, and the targets T1 to T15.

What counting (C1), counting with branch predictor and call stack (C2) and the full model (C3: caches, TLBs, predictor,
call stack, stalls in the cycles) cost beside plain QEMU of the same instruction set, and beside every peer that is
installed: valgrind without a tool, cachegrind and callgrind with cache and branch simulation, natively on the same
program, perf sampling the host's clock there; QEMU's own plugins bb, hotblocks and cache where QEMU_PLUGIN_DIR names
their folder (no Debian package has them). T15 is measured where QUIPU_QEMU names a folder with user emulation of version
10 that loads plugins (tests/engine/README.md).

The five programs are prime and mix (programs/) and, where the mirror has their sources, Debian's bzip2, lua and sqlite;
else three guests of the tests. The guest memory, whose every access leaves the first-level cache, is one of them only
with -p. For x86-64 the plain QEMU has the CPU that quipu gives the program (-cpu max): the same code runs on both.

One interleaved run: in each round every configuration of a program, and plain QEMU before each of them, so that a slow
moment of the host falls on all. CPU time, user + system, of the command and all that it waited for: quipu's own process
is in it. A figure is the median over the rounds of the mean time in the round, divided by plain QEMU's. What takes less
than a second and a half is run several times in a round: a virtual machine's CPU may be half as fast from one run to the
next, and a single run of a quarter of a second would say which it was and little else. Everything printed is the host's
time.
"""
import argparse
import glob
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from sources import sources

HERE = os.path.dirname(os.path.abspath(__file__))
GUESTS = os.path.join(HERE, "..", "..", "tests", "guests")
ISAS = {  # compiler, QEMU, machine
    "riscv64": ("riscv64-linux-gnu-gcc", "qemu-riscv64", "riscv"),
    "x86_64": ("cc", "qemu-x86_64 -cpu max", "x86"),
    "ppc64le": ("powerpc64le-linux-gnu-gcc", "qemu-ppc64le", "power9"),
    "sparc64": ("sparc64-linux-gnu-gcc", "qemu-sparc64", "rock"),
}
PROGRAMS = {  # compiler arguments, program arguments: 0.2 to 0.4 s under plain QEMU
    "prime": ([f"{HERE}/programs/prime.c"], []),
    "mix": ([f"{HERE}/programs/mix.c"], []),
    "realistic": ([f"{GUESTS}/realistic.c"], ["3"]),
    "recurse": ([f"{GUESTS}/recurse.c"], ["33", "1000"]),
    "memory": ([f"{GUESTS}/memory.c"], ["60", "1024"]),
}
DEBIAN = {"bzip2": ["-kc", "{text}"], "lua": [f"{HERE}/programs/sort.lua"],
          "sqlite": ["--memdb", "--size", "2", "--testset", "main"]}
COUNTS = "instructions,cycles,branches,L1-dcache-loads,L1-dcache-stores"
MODEL = COUNTS + ",branch-misses,L1-dcache-load-misses,cache-misses,dTLB-load-misses,iTLB-load-misses,L1-icache-load-misses"
# What a machine's PMU cannot count is not asked of it: the models and the call stack run all the same. Rock's other
# generic events are those of a core that runs ahead, which is no part of the table (bench/rock.py).
LACKS = {"power9": ["L1-dcache-stores"], "rock": [e for e in MODEL.split(",") if e not in ("instructions", "cycles")]}
FAR = "1000000000000"  # a period that no run reaches: the cost is that of being ready to sample
QUIPU = {
    "C1": ["stat", "-e", COUNTS, "-o", "{o}/stat"],
    "C2": ["record", "-g", "-e", COUNTS + ",branch-misses", "-c", FAR, "-o", "{o}/data"],
    "C3": ["record", "-g", "--timing", "full", "-e", MODEL, "-c", FAR, "-o", "{o}/data"],
}


def quipu_words(name, machine, folder):
    """The words of a configuration, between the command and the program."""
    words = [w.format(o=folder) for w in QUIPU[name]]
    at = words.index("-e") + 1
    words[at] = ",".join(e for e in words[at].split(",") if e not in LACKS.get(machine, []))
    return [words[0], "-m", machine, *words[1:], "--"]


VALGRIND = {
    "valgrind none": ["--tool=none"],
    "cachegrind": ["--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes", "--cachegrind-out-file=/dev/null"],
    "callgrind": ["--tool=callgrind", "--cache-sim=yes", "--branch-sim=yes", "--callgrind-out-file=/dev/null"],
}
SAMPLED = {  # T9: the configuration with 4000 and 50000 samples of a second of model time, and with none
    "stacks": ["record", "-m", "{m}", "-g", "-e", "cycles", "-c", FAR, "-o", "{o}/s0"],
    "4 kHz": ["record", "-m", "{m}", "-g", "-e", "cycles", "-F", "4000", "-o", "{o}/s4"],
    "50 kHz": ["record", "-m", "{m}", "-g", "-e", "cycles", "-F", "50000", "-o", "{o}/s50"],
}
SAMPLED_ROUNDS = 5  # of these for each of the others: half a percent is asked of them
DECODER = ["block", "group", "isa", "stack", *(f"decode_{isa}" for isa in ISAS)]  # what programs/decodes.c is built with
ENOUGH, PASSES = 1.5, 4  # seconds of a configuration in a round; most runs of it there
PLUGINS = {"bb": "libbb.so", "hotblocks": "libhotblocks.so", "cache": "libcache.so"}


def run(command, env=None):
    """CPU seconds, wall seconds, most resident memory (KiB) of a command and all that it waited for."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=env)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}\n{errors.decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss


def cpu_seconds(command):
    return run(command)[0]


def debian_programs(folder):
    """Adds what the mirror has; a text of 1.28 MB for bzip2."""
    found = sources(folder)
    if len(found) < len(DEBIAN):
        return list(PROGRAMS)[:4] + ["memory"]
    text = f"{folder}/text"
    with open(text, "w", encoding="utf-8", errors="replace") as out:
        for name in sorted(glob.glob(f"{folder}/sqlite-one/sqlite3.c")):
            with open(name, encoding="utf-8", errors="replace") as f:
                out.write(f.read(1_280_000))
    for name, words in DEBIAN.items():
        PROGRAMS[name] = (found[name], [w.format(text=text) for w in words])
    return ["prime", "mix", *DEBIAN]


def compiled(compiler, words, out):
    debian = not words[0].startswith((HERE, GUESTS))
    subprocess.run([compiler, "-O2", "-g", "-std=gnu17", "-static", *(["-w"] if debian else []),
                    *(w for w in words if w != "-lm"), "-o", out, "-lm"], check=True)
    return out


def decoder(folder):
    """T12: the plugin that does nothing with a block but what ours does when it is translated."""
    root = os.path.abspath(f"{HERE}/../..")
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{root}/include", f"-I{root}/src",
                    f"{HERE}/programs/decodes.c", *(f"{root}/src/engine/qemu/{name}.c" for name in DECODER),
                    f"{root}/src/machine/signal_mask.c", "-o", f"{folder}/decodes.so"], check=True)


def configurations(isa, quipu, program, native, folder):
    """name: command"""
    _, qemu, machine = ISAS[isa]
    qemu = qemu.split()
    rows = {"plain": [*qemu, *program], "decoding": [*qemu, "-plugin", f"{folder}/decodes.so", *program]}
    for name in QUIPU:
        rows[name] = [quipu, *quipu_words(name, machine, folder), *program]
    where = os.environ.get("QEMU_PLUGIN_DIR")
    for name, file in PLUGINS.items():
        if where and os.path.exists(f"{where}/{file}"):
            rows[f"QEMU {name}"] = [*qemu, "-plugin", f"{where}/{file}", *program]
    if isa == "x86_64" and shutil.which("valgrind"):
        rows["native"] = native
        for name, words in VALGRIND.items():
            rows[name] = ["valgrind", "-q", *words, *native]
    if isa == "x86_64" and shutil.which("perf"):
        rows["native"] = native
        for hz in ("4000", "50000"):
            rows[f"perf {hz} Hz"] = ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", hz, "-o", f"{folder}/perf",
                                     *native]
    return rows


MEMORY = {}  # T14: MiB beyond plain QEMU


def one_round(rows):
    """{configuration: [what run() says of each of its runs]}: passes over those that have not run for long yet."""
    runs = {c: [] for c in rows}
    for _ in range(PASSES):
        for c in rows:
            if c != "plain" and sum(r[0] for r in runs[c]) < ENOUGH:
                runs["plain"].append(run(rows["plain"]))
                runs[c].append(run(rows[c]))
    return runs


def measure(isa, quipu, programs, rounds, folder):
    """{program: {configuration: median ratio to plain}}, {program: plain seconds}"""
    jobs, ratios, plain = {}, {}, {}
    decoder(folder)
    for name in programs:
        words, args = PROGRAMS[name]
        out = compiled(ISAS[isa][0], words, f"{folder}/{name}.{isa}")
        jobs[name] = configurations(isa, quipu, [out, *args], [out, *args], folder)
        ratios[name] = {c: [] for c in jobs[name]}
        plain[name] = []
    for number in range(rounds):
        for name, rows in jobs.items():
            print(f"\r{isa}: round {number + 1} of {rounds}, {name}   ", end="", file=sys.stderr, flush=True)
            runs = one_round(rows)
            seconds = {c: statistics.mean(r[0] for r in of) for c, of in runs.items()}
            grown = (min(r[2] for r in runs["C3"]) - min(r[2] for r in runs["plain"])) / 1024
            MEMORY[isa, name] = min(grown, MEMORY.get((isa, name), grown))
            plain[name].append(seconds["plain"])
            for c, mean in seconds.items():
                ratios[name][c].append(mean / seconds["plain"])
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


def targets(tables, extra):
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
    slow = [(row["perf 50000 Hz"] / row["native"] - 1) for t in tables.values() for row in t.values() if "perf 50000 Hz" in row]
    if "perf" not in extra:
        extra["perf"] = slow
    for name, what, pairs, judge, median, worst in rows:
        if not pairs:
            yield name, what, "not measured: its peer is not here"
            continue
        met, found, asked = judge(pairs, median, worst)
        yield name, what, f"{'met' if met else 'NOT MET'}: {found} of {len(pairs)} pairs ({asked})"
    yield from sampling_targets(extra)
    if "bell" in extra:
        bell, pingpong = extra["bell"]
        yield judged("T11", f"doorbell and back, {bell:.1f} us on one CPU / futexes' {pingpong:.1f} us", bell / pingpong, 1.3)
    else:
        yield "T11", "doorbell and back / futexes", "not measured: the build has no tests, or there is no taskset"
    yield judged("T12", "loading and decoding only / plain QEMU, median", statistics.median(of("decoding")), 1.08)
    yield judged("T12", "start-up beyond plain QEMU, ms (wall)", extra["startup"], 15.0)
    yield judged("T13", "counting, 2 threads / 1 thread, each over plain", extra["threads"]["C1"], 1.10)
    yield judged("T13", "full model, 2 threads / 1 thread, each over plain", extra["threads"]["C3"], 1.10)
    yield judged("T14", "resident memory beyond plain QEMU, MiB, most", max(MEMORY.values()), 20.0)
    what = "on QEMU 10, counting / eight inline additions and a condition, worst"
    if "inline" in extra:
        yield judged("T15", what, max(extra["inline"].values()), 1.0)
    else:
        yield "T15", what, "not measured: QUIPU_QEMU names no folder with one"


def judged(name, what, found, most):
    return name, what, f"{'met' if found <= most else 'NOT MET'}: {found:.3f} (<= {most})"


def sampling_targets(extra):
    at_4, at_50 = extra["4 kHz"], extra["50 kHz"]
    yield judged("T9", "4000 samples a second / none", at_4, 1.005)
    yield judged("T9", "50000 samples a second / none", at_50, 1.02)
    if extra["perf"]:
        perf = statistics.median(extra["perf"])
        yield judged("T10", f"slowed by 50000 samples with call chains / perf's {100 * perf:.0f} %", (at_50 - 1) / perf, 0.05)
    else:
        yield "T10", "slowed by 50000 samples with call chains", "not measured: no perf here"


def bells(build, rounds, program, folder):
    """T11: microseconds that a deadline takes longer when it rings, with the smallest machine there is (segrun), and those of
    two processes that wake each other; everything on one CPU."""
    segrun, plugin = f"{build}/tests/engine/segrun", f"{build}/src/engine/qemu/quipu-qemu.so"
    if not os.path.exists(segrun) or not shutil.which("taskset"):
        return None
    period, rings, out = 2000, 0, f"{folder}/segrun"
    command = lambda how: ["taskset", "-c", "0", segrun, "-p", f"0:{period}{how}", "-o", out, plugin, "qemu-riscv64", program]
    pingpong = compiled("cc", [f"{HERE}/programs/pingpong.c"], f"{folder}/pingpong")
    trips, peers = [], []
    for _ in range(rounds):
        longer = run(command(":bell"))[1] - run(command(""))[1]
        with open(out, encoding="utf-8") as f:
            rings = next(int(line.split()[1]) for line in f if line.startswith("interrupts"))
        trips.append(1e6 * longer / rings)
        peers.append(int(subprocess.run(["taskset", "-c", "0", pingpong], stdout=subprocess.PIPE, check=True).stdout) / 1000)
    return statistics.median(trips), statistics.median(peers)


def more(quipu, rounds, folder):
    """What the targets ask beside the table: on riscv64, or the first set there is."""
    compiler, qemu, machine = ISAS["riscv64"]
    out = compiled(compiler, PROGRAMS["mix"][0], f"{folder}/mix.more")
    jobs = {n: [quipu, *(w.format(o=folder, m=machine) for w in words), "--", out] for n, words in SAMPLED.items()}
    seconds = {n: [] for n in jobs}
    for _ in range(SAMPLED_ROUNDS * rounds):
        for n, command in jobs.items():
            seconds[n].append(cpu_seconds(command))
    extra = {n: statistics.median(a / b for a, b in zip(seconds[n], seconds["stacks"])) for n in ("4 kHz", "50 kHz")}
    true = compiled(compiler, [f"{GUESTS}/true.c"], f"{folder}/true")
    begin = [1000 * (run([quipu, "stat", "-m", machine, "-e", "instructions", "-o", f"{folder}/o", "--", true])[1] -
                     run([qemu, true])[1]) for _ in range(4 * rounds)]
    extra["startup"] = statistics.median(begin)
    threads = f"{folder}/threads"
    subprocess.run([compiler, "-O2", "-static", "-pthread", f"{HERE}/programs/threads.c", "-o", threads], check=True)
    extra["threads"] = threads_cost(quipu, rounds, threads, folder)
    if os.environ.get("QUIPU_QEMU"):
        extra["inline"] = inline(quipu, rounds, folder)
    found = bells(os.path.dirname(os.path.dirname(os.path.dirname(quipu))), rounds, out, folder)
    return {**extra, "bell": found} if found else extra


def threads_cost(quipu, rounds, program, folder):
    """T13: {configuration: what two threads cost beside plain QEMU / what one does}"""
    _, qemu, machine = ISAS["riscv64"]
    costs = {(c, n): [] for c in ("C1", "C3") for n in ("1", "2")}
    for _ in range(rounds):
        for c, n in costs:
            plain = [cpu_seconds([qemu, program, n])]
            counted = cpu_seconds([quipu, *quipu_words(c, machine, folder), program, n])
            plain.append(cpu_seconds([qemu, program, n]))
            costs[c, n].append(counted / statistics.mean(plain))
    return {c: statistics.median(costs[c, "2"]) / statistics.median(costs[c, "1"]) for c in ("C1", "C3")}


def inline(quipu, rounds, folder):
    """T15: {program: counting under another QEMU / what that offers itself}"""
    compiler, qemu, machine = ISAS["riscv64"]
    env = {**os.environ, "PATH": os.environ["QUIPU_QEMU"] + ":" + os.environ["PATH"]}
    peer = f"{folder}/inline_adds.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"{HERE}/programs/inline_adds.c", "-o", peer], check=True)
    found = {}
    for name in ("prime", "mix"):
        out = compiled(compiler, PROGRAMS[name][0], f"{folder}/{name}.inline")
        ours = [quipu, *quipu_words("C1", machine, folder), out]
        found[name] = statistics.median(run(ours, env)[0] / run([qemu, "-plugin", peer, out], env)[0] for _ in range(rounds))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-i", "--isas", default=",".join(ISAS))
    parser.add_argument("-p", "--programs")
    options = parser.parse_args()
    five = debian_programs(os.path.abspath(f"{options.build}/bench-sources"))
    programs = options.programs.split(",") if options.programs else five
    quipu, tables = os.path.abspath(f"{options.build}/src/cli/quipu"), {}
    known = subprocess.run([quipu, "machine", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for isa in options.isas.split(","):
        compiler, qemu, machine = ISAS[isa]
        missing = [w for w in (compiler, qemu.split()[0]) if not shutil.which(w)]
        if missing or machine not in known:
            print(f"{isa}: left out, there is no {missing[0] if missing else 'machine ' + machine}")
            continue
        with tempfile.TemporaryDirectory(prefix="quipu-b1-") as folder:
            tables[isa], plain = measure(isa, quipu, programs, options.rounds, folder)
        print_table(isa, tables[isa], plain)
    if not tables or shutil.which(ISAS["riscv64"][0]) is None:
        return
    with tempfile.TemporaryDirectory(prefix="quipu-b1-") as folder:
        extra = more(quipu, options.rounds, folder)
    print()
    for row in targets(tables, extra):
        print(f"  {row[0]:4} {row[1]:64} {row[2]}")


if __name__ == "__main__":
    main()
