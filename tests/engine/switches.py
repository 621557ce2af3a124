#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is compiled into a program changes while it runs (src/engine/qemu/select.c): what is counted all the while is
the same to the digit as in a run in which nothing changes, and so is the instruction of every deadline. segrun switches
when a deadline rings, so where the program is then does not depend on the host. TAP on standard output."""
import os
import re
import subprocess

from tap import TMP, check, end, skip

SEGRUN, PLUGIN, OWN, GUESTS = (os.environ[x] for x in ("SEGRUN", "PLUGIN", "ENGINE_GUESTS", "QUIPU_GUEST_DIR"))
ENV = {"PATH": "/usr/bin:/bin"}


def guest(name):
    return next((f"{d}/{name}" for d in (OWN, GUESTS) if os.path.exists(f"{d}/{name}")), None)


def run(options, prog, *args):
    out, isa = f"{TMP}/out", prog.rsplit(".", 1)[1]
    subprocess.run([SEGRUN, "-o", out, *options, PLUGIN, f"qemu-{isa}", prog, *args], env=ENV, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=200)
    with open(out, encoding="utf-8") as f:
        return f.read().splitlines()


def rows(lines, kind):
    return [line for line in lines if line.startswith(kind + " ")]


def totals(lines):
    """Of each thread, whatever its place: what it has counted. The first of a process ends without a word."""
    ends = rows(lines, "gone") + [line for line in rows(lines, "total") if re.match(r"total \d+\.0 ", line)]
    return sorted(re.search(r" lanes .* syscalls \d+", line).group() for line in ends)


def summed(lines):
    return [sum(col) for col in zip(*([int(n) for n in re.findall(r" (\d+)", t)] for t in totals(lines)))]


def records(lines):
    """Without the call chains, which come and go."""
    return [line.split(" chain")[0] for line in rows(lines, "int")]


def switches(lines):
    return sum(int(n) for n in re.findall(r" switches (\d+) ", "\n".join(lines)))


def status(lines):
    return lines[-1] == "status 0"


# What is counted all the while. With branches: also where nothing but lanes was looked at before.
PLAIN = ["-l", "loads", "-l", "stores", "-l", "branches", "-l", "calls", "-s", "syscalls"]
MODELS = PLAIN + ["-f", "data", "-f", "branch", "-l", "taken", "-s", "l1d-read-misses", "-s", "l1d-write-misses",
                  "-s", "dtlb-read-misses"]
WHAT = {"lanes alone": PLAIN, "outcomes and a data model": MODELS}
PROGRAMS = [  # what the guest of a set does, and how far it goes between two switches
    ("calls and returns", "recurse", ["24", "10"], 40009), ("jumps", "jumps", [], 3001),
    ("longjmp", "longjump", [], 4001), ("signals", "handled", ["300"], 5003),
    ("repeated instructions", "counted-rep", [], 3), ("annulled slots", "counted-annul", [], 20011),
    ("slots across a page", "counted-split", [], 20011), ("code that writes itself", "rewrite", [], 101)]


def same(name, options, deadline, prog, *args):
    plain = run(options + deadline, prog, *args)
    other = run(options + deadline + ["-S", "100"], prog, *args)
    n = switches(other)
    check(name, totals(plain) == totals(other) and records(plain) == records(other) and n > 1 and status(plain) == status(other),
          f"{n} switches\n" + "\n".join(a + "\n" + b for a, b in zip(totals(plain), totals(other)) if a != b) +
          "\n".join(a + "\n" + b for a, b in zip(records(plain), records(other)) if a != b))


def sets():
    for isa in ("riscv64", "ppc64le", "sparc64", "x86_64"):
        for what, options in WHAT.items():
            for title, name, args, period in PROGRAMS:
                prog = guest(f"{name}.{isa}")
                if prog:
                    same(f"{isa}: {title}: {what}: counts and the place of each deadline are those of a run without",
                         options + ["-r"], ["-p", f"0:{period}:bell"], prog, *args)


def several():
    """Threads and processes: who switches, and where the others are then, the host decides."""
    for title, name, args, period in (
            ("eight threads", "team", ["8", "20000"], 3001), ("a tree of forks", "forktree", ["3"], 3001),
            ("forks, one after the other", "heavy", ["forks", "20"], 3001), ("signals", "heavy", ["signals", "2000"], 9001),
            ("code that is rewritten", "heavy", ["jit", "2000"], 1009), ("exec", "spawns", ["2"], 20011),
            ("threads, one after the other", "manythreads", ["100", "0"], 9001)):
        prog = guest(f"{name}.riscv64")
        plain, other = (run(PLAIN + ["-p", f"0:{period}:bell"] + more, prog, *args) for more in ([], ["-S", "1000"]))
        ok = summed(plain) == summed(other) if name == "team" else totals(plain) == totals(other)
        if name == "manythreads":  # whether main has to wait for one, the host decides
            one, two = ([re.search(r" lanes .* syscalls \d+", line).group() for line in rows(x, "gone")] for x in (plain, other))
            ok = one == two and len(one) == 100
        check(f"{title}: each has counted the same as without", ok and switches(other) > 2 and status(plain) and status(other),
              f"{switches(other)} switches {plain[-1]} {other[-1]}\n{summed(plain)}\n{summed(other)}")


def recursing(what):
    """The program that recurses, of each instruction set whose compiler is here; of the others @what is skipped."""
    for isa in ("riscv64", "ppc64le", "sparc64", "x86_64"):
        prog = guest(f"recurse.{isa}")
        if prog:
            yield isa, prog
        else:
            skip(f"{isa}: {what}", "no compiler")


def rests():
    """Nothing is counted between a deadline and the next request."""
    for isa, prog in recursing("rests"):
        plain, other = (run(PLAIN + ["-p", "0:40009:bell"] + more, prog, "24", "10") for more in ([], ["-E", "1000"]))
        all_, some = (summed(x)[0] for x in (plain, other))
        check(f"{isa}: a program that rests is asked at once, and counted again from there",
              switches(other) > 2 and all_ * 0.9 < some <= all_ and status(other), f"{switches(other)} {all_} {some}")
    prog = guest("team.riscv64")
    other = run(PLAIN + ["-p", "0:3001:bell", "-E", "1000"], prog, "8", "20000")
    check("eight threads that rest and are counted again", switches(other) > 2 and status(other), switches(other))


def leaves():
    """Where nobody counts any more nothing is compiled in: counts stand still from the deadline on, and the program goes on."""
    for isa, prog in recursing("the machine leaves"):
        for what, options in WHAT.items():
            options = options + ["-p", "0:40009:bell"]
            all_, some = (run(options + more, prog, "24", "10") for more in ([], ["-x"]))
            whole, counted = (summed(x)[0] for x in (all_, some))
            check(f"{isa}, {what}: the machine leaves, and the program is plain from there",
                  40009 <= counted < 60000 < whole and status(some), f"{counted} of {whole} {some[-1]}")
    prog = guest("team.riscv64")
    all_, some = (run(PLAIN + ["-p", "0:3001:bell"] + more, prog, "8", "20000") for more in ([], ["-x"]))
    check("the machine leaves eight threads", summed(some)[0] < summed(all_)[0] / 2 and status(some), f"{summed(some)} {some[-1]}")
    prog = guest("spawns.riscv64")
    some = run(PLAIN + ["-p", "0:3001:bell", "-x"], prog, "2")
    check("the machine leaves a program that forks and execs", status(some), some[-1])


sets()
several()
rests()
leaves()
end()
