#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""host.py BUILD [ROUNDS]: quipu on the host's own kernel beside the stock perf, in one interleaved run.

Each figure is the median over the rounds of the ratio quipu : perf of the same round, with its spread. Start-up is wall
time of `stat true`. Recording is CPU time (user + system) of the recorder alone, at 20 kHz on every CPU with two of them busy;
lost records of both are told. The report is CPU time with that of addr2line, which perf asks and waits for: what passes on
an idle machine (wall time is told beside it), of the same file, with inlined functions, of a program with large debug
information. Skips, saying so, where there is no perf.
"""
import ctypes
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RATE = 20000
SECONDS = 2
FUNCTIONS = 5000  # of the program with large debug information
SPIN = "import time\nend = time.process_time() + %d\nwhile time.process_time() < end: pass\n"


def run(command, **keywords):
    """(CPU seconds, wall seconds, what it said) of a command."""
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, **keywords)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    if process.returncode:
        sys.exit("%s: status %d\n%s" % (" ".join(command), process.returncode, text))
    return usage.ru_utime + usage.ru_stime, wall, text


def with_orphans(command):
    """(CPU seconds, wall seconds) of a command and of what it leaves behind: perf does not wait for its addr2line."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans become ours
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = run(command)[1]
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def tell(name, ratios, target, note=""):
    ratio = statistics.median(ratios)
    print("%-52s %6.2f  (%.2f to %.2f; target %s%s)  %s" % (name, ratio, min(ratios), max(ratios), target, note, "ok" if ratio <= float(target[2:]) else "MISSED"))


def start_up(quipu, rounds):
    """-m host, and as typed: where the host counts what is asked (it always has software events), it is chosen."""
    software = ["-e", "task-clock,page-faults,context-switches"]
    forms = [
        ("stat -m host true", [quipu, "stat", "-m", "host"], ["perf", "stat"], "<=1.0"),
        ("stat -e task-clock,... true", [quipu, "stat"] + software, ["perf", "stat"] + software, "<=1.0"),
        # With no -m and no -e the hardware counters are wanted. Where there are none the program runs on machine x86,
        # under QEMU, whose own start then is most of it: told beside it.
        ("stat true", [quipu, "stat"], ["perf", "stat"], "<=1.0" if has_counters() else None),
    ]
    emulated = shutil.which("qemu-x86_64")
    for name, ours, theirs, target in forms:
        ratios, plain = [], []
        for _ in range(rounds * 8):
            mine = run(ours + ["-o", "/dev/null", "--", "true"])[1]
            perfs = run(theirs + ["-o", "/dev/null", "true"])[1]
            ratios.append(mine / perfs)
            if not target and emulated:
                plain.append(run([emulated, shutil.which("true")])[1] / perfs)
        if target:
            tell(name + ", start to end: quipu / perf", ratios, target)
        else:
            print("%-52s %6.2f  (no hardware counters here: on machine x86; plain QEMU / perf: %.2f)" % (
                name + ", start to end: quipu / perf", statistics.median(ratios), statistics.median(plain or [0])))


def has_counters():
    said = run(["perf", "stat", "-x,", "-e", "instructions:u", "true"])[2]
    return "not supported" not in said


def recording(quipu, rounds, folder):
    ratios, lost = [], 0
    for _ in range(max(rounds, 5)):
        busy = [subprocess.Popen([sys.executable, "-c", SPIN % (3 * SECONDS)]) for _ in range(2)]
        try:
            sleep = ["sleep", str(SECONDS)]
            ours, _, said = run([quipu, "record", "-m", "host", "-a", "-e", "cpu-clock", "-F", str(RATE),
                                 "-o", folder + "/q.data"] + sleep)
            theirs, _, _ = run(["perf", "record", "-a", "-e", "cpu-clock", "-F", str(RATE), "-o", folder + "/p.data"] + sleep)
        finally:
            for process in busy:
                process.kill()
                process.wait()
        match = re.search(r"(\d+) records were lost", said)
        lost += int(match.group(1)) if match else 0
        ratios.append(ours / theirs)
    samples = int(re.search(r"\((\d+) samples", said).group(1))
    tell("record -a -F %d, CPU time: quipu / perf" % RATE, ratios, "<=1.0", "; %d samples, %d lost" % (samples, lost))


def big_program(folder):
    """A program whose debug information is large: many functions, each with a chain inlined into it."""
    text = ["static inline __attribute__((always_inline)) unsigned a(unsigned x) { return x * 1664525u + 1013904223u; }",
            "static inline __attribute__((always_inline)) unsigned b(unsigned x) { for (int i = 0; i < 9; i++) x = a(x) ^ x >> 3; return x; }",
            "static inline __attribute__((always_inline)) unsigned c(unsigned x) { return b(x) + b(x + 1); }"]
    for i in range(FUNCTIONS):
        text.append("struct s%d { struct s%d *next; unsigned field%d[%d]; enum { e%d } kind; };" % (i, i, i, i + 1, i))
        text.append("__attribute__((noinline)) unsigned f%d(struct s%d *p, unsigned x) { return c(x) + (p ? p->field%d[0] : %du); }"
                    % (i, i, i, i))
    text.append("int main(void) { volatile unsigned s = 0; for (int i = 0; i < 5000; i++) {")
    text += ["s += f%d(0, s);" % i for i in range(FUNCTIONS)]
    text.append("} return 0; }")
    with open(folder + "/big.c", "w") as f:
        f.write("\n".join(text))
    run(["gcc", "-O1", "-g3", "-fno-omit-frame-pointer", "-o", folder + "/big", folder + "/big.c"])
    return folder + "/big"


def report(quipu, rounds, folder):
    if not shutil.which("gcc"):
        print("report --inline: skipped, no gcc")
        return
    big, data, ratios, walls = big_program(folder), folder + "/big.data", [], []
    run(["perf", "record", "-q", "--call-graph", "dwarf,512", "-e", "cpu-clock", "-F", "7993", "-o", data, big])
    for _ in range(rounds):
        ours = with_orphans([quipu, "report", "--inline", "-i", data])
        theirs = with_orphans(["perf", "report", "--inline", "--stdio", "-i", data])
        ratios.append(ours[0] / theirs[0])
        walls.append(ours[1] / theirs[1])
    tell("report --inline, %.1f MB program: quipu / perf" % (os.path.getsize(big) / 1e6), ratios, "<=0.1",
         "; wall time %.2f" % statistics.median(walls))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    quipu, rounds = sys.argv[1] + "/src/cli/quipu", int(sys.argv[2]) if len(sys.argv) > 2 else 5
    if not shutil.which("perf"):
        print("host: skipped, there is no perf to compare with")
        return
    print("quipu on the host beside perf (%s); load %.1f" % (
        subprocess.run(["perf", "--version"], stdout=subprocess.PIPE, text=True).stdout.strip(), os.getloadavg()[0]))
    with tempfile.TemporaryDirectory(prefix="quipu-bench-") as folder:
        start_up(quipu, rounds)
        recording(quipu, rounds, folder)
        report(quipu, rounds, folder)


main()
