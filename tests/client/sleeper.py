# SPDX-License-Identifier: BSD-2-Clause
"""The `sleep` of a system-wide command: its timeout is the machine's time, to the nanosecond, whatever the host does
meanwhile. Under the engine where the host's programs are the machine's (x86, vtd), beside it everywhere else."""
import os
import platform
import re
import shutil
import subprocess
import sys

from harness import GUESTS, QUIPU, Skip, equal, holds, main, test

if not shutil.which("perf"):
    print("1..0 # SKIP perf is not installed")
    raise SystemExit(0)

ENGINE = ("x86", "vtd")
NATIVE = ("riscv", "riscv-u74", "power9", "lpar", "rock")
BELOW = "riscv --seccomp" if platform.machine() == "x86_64" else None  # a sleep that no library hears of
NS = 100000000
# A client that the host lets wait between the end of its program and its last look measures that too.
TRIES = 6


def perf(work, machine, *words, check=0):
    done = subprocess.run([QUIPU, "exec", "-m", *machine.split(), "--", *words], cwd=work.folder, capture_output=True, text=True,
                          timeout=240, check=False)
    if check is not None:
        equal(done.returncode, check, f"{machine}: {words}\n{done.stdout}\n{done.stderr}")
    return done.stderr


def clocks(work, machine, *words):
    """What cpu-clock says of each CPU."""
    text = perf(work, machine, "perf", "stat", "-x,", "-a", "-A", "-e", "cpu-clock", *words)
    rows = re.findall(r"^CPU\d+,[\d.]+,msec,cpu-clock,(\d+),", text, re.M)
    holds(rows, text)
    return tuple(int(n) for n in rows)


def until(want, get):
    """What was seen, up to a result that @want takes."""
    seen = []
    while len(seen) < TRIES and not (seen and want(seen)):
        seen.append(get())
    return seen


@test("perf stat -a sleep: the time of every CPU is the sleep's to the nanosecond, twice")
def exact(work):
    for machine in NATIVE + ((BELOW,) if BELOW else ()):
        seen = until(lambda all_of: sum(set(one) == {NS} for one in all_of) == 2,
                     lambda machine=machine: clocks(work, machine, "sleep", "0.1"))
        equal(sum(set(one) == {NS} for one in seen), 2, f"{machine}: {seen}")


@test("and under the engine, where its instructions take time too")
def engine(work):
    if platform.machine() != "x86_64" or not shutil.which("qemu-x86_64"):
        raise Skip("the host's own programs are none of the machine's, or there is no qemu-x86_64")
    for machine in ENGINE:
        seen = until(lambda all_of: len(set(all_of)) < len(all_of),
                     lambda machine=machine: clocks(work, machine, "sleep", "0.1"))
        holds(len(set(seen)) < len(seen), f"{machine}: no two are the same: {seen}")
        holds(all(n >= NS for n in seen[-1]), f"{machine}: {seen}")


@test("perf stat -I: the intervals follow the host's clock, and their sum is the sleep's")
def intervals(work):
    def once(machine):
        text = perf(work, machine, "perf", "stat", "-x,", "-C", "0", "-I", "50", "-e", "cpu-clock", "sleep", "0.2")
        return [int(n) for n in re.findall(r"cpu-clock,(\d+),", text)]

    for machine in ("riscv", BELOW) if BELOW else ("riscv",):
        seen = until(lambda all_of: sum(all_of[-1]) == 2 * NS and sum(n > 0 for n in all_of[-1]) > 1,
                     lambda machine=machine: once(machine))
        equal(sum(seen[-1]), 2 * NS, f"{machine}: {seen}")
        holds(sum(n > 0 for n in seen[-1]) > 1, f"{machine}: {seen}")


@test("several runs, and several times in one: perf stat -r, sleep A B")
def several(work):
    def once():
        text = perf(work, "riscv", "perf", "stat", "-x,", "-C", "0", "-r", "3", "-e", "cpu-clock", "sleep", "0.03", "0.02")
        return int(float(re.search(r"^([\d.]+),msec,cpu-clock", text, re.M).group(1)))

    seen = until(lambda all_of: all_of[-1] == 50, once)
    equal(seen[-1], 50, f"{seen}")


@test("a sleep that is ended early has taken no longer than the host says, and one that does not sleep holds up nobody")
def ended(work):
    text = perf(work, "riscv", "sh", "-c", """
perf stat -x, -C 0 -e cpu-clock sh -c 'echo $$ > pid; exec sleep 1000' & p=$!
n=0; until [ -s pid ] || [ $n = 600 ]; do n=$((n+1)); sleep 0.05; done
kill -9 $(cat pid); wait $p; true""")
    clock = re.search(r"cpu-clock,(\d+),", text)
    holds(clock and int(clock.group(1)) < 1000 * 10**9, text)
    for words in (("sleep", "--version"), ("sleep", "soon")):
        text = perf(work, "riscv", "perf", "stat", "-x,", "-C", "0", "-e", "cpu-clock", *words, check=None)
        holds("cpu-clock" in text, f"{words}: {text}")


@test("what runs under the engine beside it counts the same")
def beside(work):
    guest = os.path.join(GUESTS, "shapes-static.riscv64")
    command = "perf", "stat", "-x,", "-a", "-e", "instructions", "sh", "-c"
    alone = perf(work, "riscv", *command, f"{guest}; true")
    both = perf(work, "riscv", *command, f"sleep 0.05 & {guest}; wait")
    count = [re.search(r"^(\d+),,instructions", text, re.M) for text in (alone, both)]
    holds(all(count) and count[0].group(1) == count[1].group(1), f"{alone}{both}")


WRONGLY = """
import ctypes, os
libc = ctypes.CDLL(None)
for address in 0, 1, 1 << 47: libc.syscall(35, ctypes.c_long(address), ctypes.c_long(0))
for t in (-1, 0), (0, 10**9), (0, -1), (0, 0), (0, 1000): libc.nanosleep((ctypes.c_long * 2)(*t), None)
for t in (0, 0), (1, 0): libc.clock_nanosleep(0, 1, (ctypes.c_long * 2)(*t), None)
if not os.fork(): libc.usleep(1000)
"""


@test("other programs called by its name, and what they sleep wrongly")
def others(work):
    for machine in ("riscv", BELOW) if BELOW else ("riscv",):
        for target, words in (shutil.which("true"), ()), (sys.executable, ("-c", WRONGLY)):
            os.symlink(target, work.path("sleep"))
            text = perf(work, machine, "perf", "stat", "-x,", "-C", "0", "-e", "cpu-clock", work.path("sleep"), *words)
            holds("cpu-clock" in text, text)
            os.unlink(work.path("sleep"))


main()
