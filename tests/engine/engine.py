#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The plugin against QEMU's own word, and against itself: counts, sample positions, threads, forks, signals, ends.

QEMU's word is its execution log with one instruction to a block: a list of every instruction that was begun. Less the
ecalls and ebreaks, which do not retire, it must be what the plugin counted, and every n-th of it what the plugin sampled.
TAP on standard output."""
import functools
import os
import re
import signal
import subprocess
import time

from tap import TMP, check, end

SEGRUN, PLUGIN = os.environ["SEGRUN"], os.environ["PLUGIN"]
OWN, GUESTS = os.environ["ENGINE_GUESTS"], os.environ["QUIPU_GUEST_DIR"]
QEMU = "qemu-riscv64"
ENV = {"PATH": "/usr/bin:/bin"}
STATIC = ["-f", "stack", "-l", "loads", "-l", "stores", "-l", "branches", "-l", "taken", "-l", "calls", "-l", "syscalls",
          "-s", "returns", "-s", "0x3"]


def guest(name):
    for folder in (OWN, GUESTS):
        if os.path.exists(f"{folder}/{name}.riscv64"):
            return f"{folder}/{name}.riscv64"
    raise SystemExit(f"Bail out! no guest {name}")


def run(options, prog, *args, qemu=()):
    """Lines that segrun printed."""
    out = f"{TMP}/out"
    subprocess.run([SEGRUN, "-o", out, *options, PLUGIN, QEMU, *qemu, prog, *args], env=ENV, stdout=subprocess.PIPE,
                   timeout=100, check=True)
    with open(out) as f:
        return f.read().splitlines()


def rows(lines, kind):
    return [line for line in lines if line.startswith(kind + " ")]


def lanes(line):
    return [int(x) for x in re.search(r" lanes ((?:\d+ )+)", line).group(1).split()]


def field(line, name):
    return int(re.search(rf" {name} (\d+)", line).group(1))


def began(prog, *args):
    """Addresses of the instructions that QEMU began, in order, and those of them that raise a trap."""
    log = f"{TMP}/log"
    subprocess.run([QEMU, "-seed", "1", "-singlestep", "-d", "exec,nochain", "-D", log, prog, *args], env=ENV,
                   stdout=subprocess.PIPE)
    with open(log) as f:
        pcs = [int(line.split("/")[1], 16) for line in f if line.startswith("Trace")]
    os.unlink(log)
    return pcs


def traps(prog):
    text = subprocess.run(["riscv64-linux-gnu-objdump", "-d", prog], stdout=subprocess.PIPE, text=True).stdout
    return {int(line.split(":")[0], 16) for line in text.splitlines()
            if re.search(r"\t(ecall|ebreak|c\.ebreak)\b", line)}


@functools.lru_cache(maxsize=None)
def retired(prog, *args):
    trap, pcs = traps(prog), began(prog, *args)
    outside = {pc for pc in pcs if pc > 0x4000000000}
    if outside:  # QEMU's signal trampoline: its last instruction is the ecall of sigreturn
        trap.add(max(outside))
    return [pc for pc in pcs if pc not in trap]


def samples(lines):
    return [int(re.search(r" pc ([0-9a-f]+)", line).group(1), 16) for line in rows(lines, "int")]


def test_counts():
    total = run(STATIC, guest("loop"))
    row = rows(total, "total")[0]
    check("the loops of loop.S have the counts worked out by hand",
          lanes(row) == [2920024, 3970025, 100000, 100000, 1210008, 1210004, 20004, 1], row)
    check("64-bit signals count the same", " scalars 20004 " in row, row)
    for name in ("true", "recurse", "shapes-static"):
        want = len(retired(guest(name)))
        for features in ("count", "branch", "stack"):
            row = rows(run(["-f", features], guest(name)), "total")[0]
            check(f"{name}: instructions ({features}) are QEMU's less its ecalls", lanes(row)[0] == want,
                  f"{want}\n{row}")


def test_samples():
    for name, period in (("true", 1), ("true", 3), ("true", 7), ("recurse", 1009), ("shapes-static", 1009)):
        want = retired(guest(name))[period - 1::period]
        for features in ("count", "stack"):
            out = run(["-r", "-f", features, "-p", f"0:{period}"], guest(name))
            check(f"{name}: instructions are sampled every {period} ({features})", samples(out) == want,
                  f"{len(want)} wanted, {len(samples(out))} found")
            values = [lanes(line)[0] for line in rows(out, "int")]
            check(f"{name}: its value is the overflow's ({features}, {period})",
                  values == [period * (i + 1) for i in range(len(values))], values[:5])


DEADLINES = ["0:1009", "1:997", "2:501", "5:307", "6:101", "7:3", "8:97", "9:83"]


def plain(line):
    return re.sub(r"slots [0-9a-f]+ bell [0-9a-f]+ ", "", line)


def test_deadlines():
    prog = guest("recurse")
    together = rows(run(STATIC + ["-r"] + [x for d in DEADLINES for x in ("-p", d)], prog), "int")
    belled = rows(run(STATIC + ["-r"] + [x for d in DEADLINES for x in ("-p", d + ":bell")], prog), "int")
    check("records are the same with and without the machine's bell",
          list(map(plain, together)) == list(map(plain, belled)), f"{len(together)} {len(belled)}")
    for i, d in enumerate(DEADLINES):
        alone = rows(run(STATIC + ["-r", "-p", d], prog), "int")
        mine = [line for line in together if int(line.split()[3], 16) >> i & 1]
        index, period = map(int, d.split(":"))
        check(f"deadline {d} is reached where it is alone too", list(map(plain, mine)) == list(map(plain, alone)),
              f"{len(mine)} {len(alone)}")
        if index < 8 and index != 1:
            at = [lanes(line)[index] for line in alone]
            check(f"deadline {d}: one record to a period, at its value",
                  at == [period * (k + 1) for k in range(len(at))] and at, at[:5])
    small = [rows(run(["-q", q, "-f", "stack", "-l", "taken"], prog), "total")[0] for q in ("1", "100", "32768")]
    check("counts do not depend on the quantum", len(set(small)) == 1, "\n".join(small))
    row = run(["-R", "100000000", "-p", "0:1009", "-r"], prog)
    check("a machine that asks at every fold changes nothing", samples(row) == samples(run(["-r", "-p", "0:1009"], prog)))


def test_stack():
    prog = guest("jumps")
    for arg, aborted in (("0", 0), ("1", 10)):
        # A faulting store is begun twice and retires once.
        want = len(retired(prog, arg)) - aborted
        row = rows(run(["-f", "stack"], prog, arg), "total")[0]
        check(f"signals, jumps and {aborted} faults: counts are exact", lanes(row)[0] == want, f"{want}\n{row}")
    want = field(rows(run(["-f", "stack"], guest("true")), "total")[0], "depth")
    check("the call stack is as deep after 1000 longjmps and 130 signals as without", field(row, "depth") == want, row)
    out = rows(run(["-f", "stack", "-r", "-p", "0:997"], guest("recurse")), "int")
    names = symbols(guest("recurse"))
    chains = [[name_of(names, int(x, 16)) for x in [re.search(r" pc (\S+)", line).group(1)] +
               line.split(" chain")[1].split()] for line in out]
    bad = [c for c in chains if "main" in c and c[-2:] != ["__libc_start_main", "_start"] and len(c) < 120]
    check("every call chain through main ends in _start", not bad and any("main" in c for c in chains), bad[:2])


def symbols(prog):
    text = subprocess.run(["riscv64-linux-gnu-nm", prog], stdout=subprocess.PIPE, text=True).stdout
    return sorted((int(p[0], 16), p[2]) for p in (line.split() for line in text.splitlines())
                  if len(p) == 3 and p[1] in "tTwW" and not p[2].startswith("$"))


def name_of(names, pc):
    best = "?"
    for address, name in names:
        if address > pc:
            break
        best = "__libc_start_main" if "libc_start" in name else name
    return best


def test_threads():
    out = run(["-f", "stack", "-l", "taken"], guest("manythreads"), "500", "8")
    each = [lanes(line) for line in rows(out, "gone")]
    check("508 threads, each counted alike", len(each) == 508 and len({tuple(e) for e in each}) == 2,
          sorted({tuple(e) for e in each}))
    check("no bell was lost", all(field(line, "lost") == 0 for line in rows(out, "gone") + rows(out, "total")))
    out = run(["-b"], guest("threads4"))
    check("a thread is announced, begins and ends", [len([1 for line in rows(out, "bell") if f" {w} " in line])
          for w in ("clone", "thread", "exit")] == [4, 4, 4], "\n".join(out))


def test_processes():
    out = run(["-b"], guest("forktree"), "3")
    check("a tree of 16 processes has 16 slots", len(rows(out, "proc")) == 16, "\n".join(out))
    leaves = [lanes(line)[0] for line in rows(out, "total")]
    check("children count from 0, the same work alike", leaves.count(min(leaves[:-1])) >= 7, leaves)
    alone = lanes(rows(run([], guest("forktree"), "0"), "total")[0])[0]
    check("a parent's counts are its own", leaves[0] > max(leaves[1:]) and leaves[0] < 2 * alone, leaves)
    out = run(["-b"], guest("execer"), "/bin/true")
    check("an exec of the host's program is followed", "isa x86_64" in rows(out, "proc")[-1] and
          not any("foreign" in line for line in out) and lanes(rows(out, "total")[-1])[0] > 10000, "\n".join(out))
    old = f"{TMP}/old"
    with open(old, "wb") as f:
        f.write(b"\x7fELF\x01\x01\x01" + bytes(93))
    os.chmod(old, 0o755)
    out = run(["-b"], guest("execer"), old)
    check("an exec of a program that is not followed is announced", any("foreign 1" in line for line in out), "\n".join(out))
    out = run(["-b"], guest("execer"), "/no/such/program")
    check("an exec that must fail is not", not any("foreign" in line for line in out), "\n".join(out))
    out = run([], guest("killself"))
    check("a program that a signal kills keeps its counts and its status",
          lanes(rows(out, "total")[0])[0] > 100000 and "status 143" in out, "\n".join(out))
    out = run(["-b"], guest("sleeper"))
    check("a sleep that ran out is told", any("slept" in line for line in out), "\n".join(out))


def test_maps():
    root = "/usr/riscv64-linux-gnu"
    out = run(["-r", "-f", "stack", "-p", "0:997"], guest("shapes-pie"), qemu=("-L", root))
    maps = [(int(p[2], 16), int(p[2], 16) + int(p[3], 16), p[7]) for p in (line.split() for line in rows(out, "mmap"))]
    names = [os.path.basename(m[2]) for m in maps]
    check("a dynamic program's own text, its loader and its libc are told",
          names[:2] == ["shapes-pie.riscv64", "ld-linux-riscv64-lp64d.so.1"] and "libc.so.6" in names, names)
    lost = [hex(pc) for pc in samples(out) if not any(a <= pc < b for a, b, _ in maps)]
    check("every sample lies in a mapping", samples(out) and not lost, lost[:5])
    moved = run(["-r", "-f", "stack", "-p", "0:997"], guest("shapes-static"), qemu=("-B", "0x7000000000"))
    usual = run(["-r", "-f", "stack", "-p", "0:997"], guest("shapes-static"))
    check("a guest base changes neither counts nor addresses", rows(moved, "int") == rows(usual, "int") and
          rows(moved, "mmap") == rows(usual, "mmap"))


def test_rings():
    out = run(["-w", "-p", "0:1", "-f", "stack"], guest("recurse"))
    row = rows(out, "total")[0]
    check("a full ring of a live machine drops and counts", field(row, "ringlost") > 100000, row)
    out = run(["-p", "0:1"], guest("recurse"))
    row = rows(out, "total")[0]
    check("in exact mode nothing is lost",
          field(row, "ringlost") == 0 and f"interrupts {lanes(row)[0]}" in out, out)


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_ends():
    machine = subprocess.Popen([SEGRUN, "-k", "-o", f"{TMP}/k", PLUGIN, QEMU, guest("exit3")], env=ENV)
    child = ""
    while not child and machine.poll() is None:
        child = subprocess.run(["pgrep", "-x", "-P", str(machine.pid), os.path.basename(QEMU)[:15]], stdout=subprocess.PIPE,
                               text=True).stdout
        time.sleep(0.02)
    pid = int(child)
    machine.send_signal(signal.SIGKILL)
    machine.wait()
    start = time.time()
    while running(pid) and time.time() - start < 60:
        time.sleep(0.02)
    check("a guest goes on when its machine is killed while it waits", not running(pid))
    probe = subprocess.run([QEMU, "-plugin", f"{PLUGIN},probe=1", guest("true")], env=ENV, stdout=subprocess.PIPE, text=True)
    check("the probe answers and ends", probe.returncode == 0 and probe.stdout == "quipu-qemu 1 riscv64\n", probe)
    bad = subprocess.run([QEMU, "-plugin", f"{PLUGIN},seg=/dev/null", guest("true")], env=ENV, stderr=subprocess.PIPE, text=True)
    check("a segment that is none is refused in one line", bad.returncode and "quipu: engine:" in bad.stderr, bad)
    one, two = (run(STATIC + ["-r", "-p", "0:1009"], guest("recurse")) for _ in range(2))
    check("two runs give the same records", one == two)


for test in (test_counts, test_samples, test_deadlines, test_stack, test_threads, test_processes, test_maps, test_rings,
             test_ends):
    test()
end()
