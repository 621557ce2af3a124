#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Conformance cases of the engine sheet (19) that no other program here has: 14, 15, 17, 18, 20, 21, 25, 28 to 31, 33, 34.
README.md is the list of all. TAP on standard output."""
import os
import re
import shutil
import signal
import struct
import subprocess
import time

from tap import TMP, check, end, skip

SEGRUN, PLUGIN, OWN, GUESTS = (os.environ[x] for x in ("SEGRUN", "PLUGIN", "ENGINE_GUESTS", "QUIPU_GUEST_DIR"))
ENV = {"PATH": "/usr/bin:/bin"}
SETS = ("riscv64", "ppc64le", "sparc64", "x86_64")
ROOT = "/usr/riscv64-linux-gnu"


def guest(name, isa="riscv64"):
    for folder in (OWN, GUESTS, TMP):
        if os.path.exists(f"{folder}/{name}.{isa}"):
            return f"{folder}/{name}.{isa}"
    return None


def run(options, prog, *args, qemu=(), isa="riscv64", said=False):
    out = f"{TMP}/out"
    done = subprocess.run([SEGRUN, "-o", out, *options, PLUGIN, f"qemu-{isa}", *qemu, prog, *args], env=ENV, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=200)
    with open(out, encoding="utf-8") as f:
        lines = f.read().splitlines()
    return (lines, done.stdout) if said else lines


def rows(lines, kind):
    return [line for line in lines if line.startswith(kind + " ")]


def lanes(line):
    return [int(x) for x in re.search(r" lanes ((?:\d+ )+)", line).group(1).split()]


def scalars(line):
    return [int(x) for x in re.search(r" scalars((?: \d+)*)", line).group(1).split()]


def field(line, name):
    return int(re.search(rf" {name} (\d+)", line).group(1))


def pcs(lines):
    return [int(re.search(r" pc ([0-9a-f]+)", line).group(1), 16) for line in rows(lines, "int")]


def peak(*command):
    """KiB of memory that the largest process of a command had."""
    with subprocess.Popen(command, env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    return usage.ru_maxrss


def case_14():
    """The sheet's 10^5 take minutes of a loaded machine: `segrun PLUGIN qemu-riscv64 manythreads.riscv64 100000 0` by
    hand. QEMU itself keeps 21 KB of each thread that ended (2.5 of them for -seed), so what grows is compared with it."""
    prog, n = guest("manythreads"), "3000"
    out = run([], prog, n, "0")
    each = [tuple(lanes(line)) for line in rows(out, "gone")]
    total = rows(out, "total")
    check("14: 3000 short threads, one after the other: each counted, all alike, and their places are used again",
          len(each) == int(n) and len(set(each)) == 1 and len(total) <= 4 and "uncounted 0" in rows(out, "proc")[0],
          f"{len(each)} {set(each)}\n" + "\n".join(total))
    without = lanes(rows(run([], prog, "0", "0"), "total")[0])[0]
    more = [lanes(rows(run([], prog, k, "0"), "total")[0])[0] - without for k in ("100", "200")]
    check("14: the thread that makes them counts what it does for each, and nothing of theirs", 0 < more[0] < more[1] and
          more[1] < 3 * more[0], more)
    plain = peak("qemu-riscv64", "-seed", "1", prog, n, "0")
    ours = peak(SEGRUN, "-o", f"{TMP}/peak", "-f", "stack", PLUGIN, "qemu-riscv64", prog, n, "0")
    check("14: and nothing is kept of any of them beside what QEMU keeps", ours < plain + 12000, f"{ours} {plain} KiB")


def case_15():
    prog = guest("spawns")
    one, two = (run(["-b"], prog, n) for n in ("1", "2"))
    procs = rows(one, "proc")
    check("15: system(), vfork and exec, fork and exec: each process has its place, and its parent's is known",
          "status 0" in one and "status 0" in two and len(procs) == 7 and len(rows(two, "proc")) == 13 and
          sum("isa x86_64" in p for p in procs) == 1 and all(field(p, "parent") == 0 for p in procs[:1]), "\n".join(one))
    mine = [lanes(rows(out, "total")[0])[0] for out in (one, two, run([], prog, "3"))]
    check("15: a parent counts what it does itself, no matter what its children do", mine[1] - mine[0] == mine[2] - mine[1] > 0,
          mine)


ENDS = {"return": 3, "exit": 3, "_exit": 3, "thread": 3, "last": 0, "segv": 139, "abort": 134, "term": 143, "kill": 137,
        "exec": 3}


def case_17():
    for isa in SETS:
        prog = guest("ends", isa)
        if not prog:
            continue
        each, threads, bad = set(), set(), []
        for how, status in ENDS.items():
            few, many = (run(["-f", "stack"], prog, how, n, isa=isa) for n in ("10000", "30000"))
            # Where there are two threads, one is in the middle of something when the other ends it, or waits for it.
            (threads if how in ("thread", "last") else each).add(
                lanes(rows(many, "total")[0])[0] - lanes(rows(few, "total")[0])[0])
            if f"status {status}" not in many or rows(many, "total")[0].split(" seq ")[1] != "even":
                bad.append(f"{how}: {many[-1]}")
        check(f"17: {isa}: {len(ENDS)} ends of a process: each leaves all of its counts, to the instruction",
              len(each) == 1 and min(each) >= 2 * 20000 and all(abs(t - min(each)) < 2000 for t in threads) and not bad,
              f"{each} {threads} {bad}")


VCPU0, LOST = 65536 + 65536, 608  # segment.h: header, process; then seg_vcpu.lost


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until(what, seconds=60):
    end = time.time() + seconds
    while time.time() < end:
        if what():
            return True
        time.sleep(0.02)
    return False


def case_18():
    machine = subprocess.Popen([SEGRUN, "-k", "-o", f"{TMP}/k", PLUGIN, "qemu-riscv64", guest("spin")], env=ENV,
                               stdout=subprocess.DEVNULL)
    child = []

    def waits():
        with open(f"/proc/{machine.pid}/task/{machine.pid}/children", encoding="utf-8") as f:
            child[:] = [int(x) for x in f.read().split()]
        return child and os.pread(segment[0], 4, VCPU0 + 576) != b"\0\0\0\0"

    segment = []

    def has_segment():
        for fd in os.listdir(f"/proc/{machine.pid}/fd"):
            try:
                if "memfd:" in os.readlink(f"/proc/{machine.pid}/fd/{fd}"):
                    segment.append(os.open(f"/proc/{machine.pid}/fd/{fd}", os.O_RDONLY))
                    return True
            except OSError:
                pass
        return False

    rang = wait_until(has_segment) and wait_until(waits)
    machine.send_signal(signal.SIGKILL)
    machine.wait()

    def lost():
        return struct.unpack("<I", os.pread(segment[0], 4, VCPU0 + LOST))[0]

    check("18: its machine is killed while it waits: it goes on, with one wait lost", rang and wait_until(lost) and
          lost() == 1 and alive(child[0]), f"{rang} {child}")
    os.kill(child[0], signal.SIGTERM)
    check("18: and SIGTERM still ends it", wait_until(lambda: not alive(child[0])), child)
    if alive(child[0]):
        os.kill(child[0], signal.SIGKILL)


def case_20():
    for isa in SETS:
        prog = guest("handled", isa)
        if not prog:
            continue
        few, many = (rows(run(["-f", "stack"], prog, n, isa=isa), "total")[0] for n in ("1000", "2000"))
        check(f"20: {isa}: 1000 signals on a stack of their own: the call stack is as deep, each is getpid, kill and sigreturn",
              field(few, "depth") == field(many, "depth") and field(many, "syscalls") - field(few, "syscalls") == 3000,
              f"{few}\n{many}")
        calls = []
        for n in ("1", "25"):
            out, said = run(["-f", "stack"], prog, "wait", n, isa=isa, said=True)
            calls.append((field(rows(out, "total")[0], "syscalls") - int(said), int(said)))
        # One handler fewer is one sigreturn fewer; the read is one call, however often it went on. A child that came
        # first finds nobody in the read: then there is nothing to be restarted, and the same number all the same.
        check(f"20: {isa}: a read that signals interrupt and that goes on is one system call", calls[0][0] == calls[1][0] and
              calls[1][1] > calls[0][1], calls)


def case_21():
    prog = guest("throw", "x86_64")
    if not prog:
        skip("21: x86_64: exceptions through 50 frames", "no C++ compiler")
        return
    few, many = (rows(run(["-f", "stack"], prog, n, isa="x86_64"), "total")[0] for n in ("10", "1010"))
    check("21: x86_64: 1000 exceptions through 50 frames: the call stack is as deep as after 10",
          field(few, "depth") == field(many, "depth"), f"{few}\n{many}")
    chains = rows(run(["-f", "stack", "-r", "-p", "0:9973"], prog, "1010", isa="x86_64"), "int")
    deepest = max(len(line.split(" chain")[1].split()) for line in chains)
    check("21: and no call chain has frames of those that were thrown away", 50 < deepest < 90, deepest)


def case_25():
    row = rows(run(["-l", "loads", "-l", "stores", "-s", "loads", "-s", "stores"], guest("access")), "total")[0]
    check("25: 300 loads, 100 stores, an amoadd, an lr and an sc: 302 and 102, as lanes and as 64-bit counters",
          lanes(row)[2:] == [302, 102] and scalars(row) == [302, 102], row)
    imports = subprocess.run(["nm", "-D", PLUGIN], stdout=subprocess.PIPE, text=True, check=True).stdout
    check("25: one kind of access is never asked for alone, and nothing is counted by QEMU itself (13)",
          "register_vcpu_mem_cb" in imports and "inline" not in imports, imports)


def symbols(path):
    text = subprocess.run(["riscv64-linux-gnu-nm", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    return sorted((int(p[0], 16), p[2]) for p in (line.split() for line in text.splitlines())
                  if len(p) == 3 and p[1] in "tTwW" and not p[2].startswith("$"))


def name_of(names, pc):
    return next((name for address, name in reversed(names) if address <= pc), "?")


LIBRARY = "long part(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ s >> 3; return s; }\n"
LOADER = """#include <dlfcn.h>
int main(int argc, char **argv) {
	void *h = dlopen(argv[argc - 1], RTLD_NOW);
	long (*part)(long) = h ? (long (*)(long))dlsym(h, "part") : 0;
	return part ? part(200000) == 7 : 9;
}
"""


def case_28():
    for name, text in (("part.c", LIBRARY), ("loads.c", LOADER)):
        with open(f"{TMP}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    for words in (["-shared", "-fPIC", "part.c", "-o", "part.so"], ["-pie", "loads.c", "-o", "loads.riscv64"]):
        subprocess.run(["riscv64-linux-gnu-gcc", "-O1", *words], cwd=TMP, check=True)
    out = run(["-r", "-p", "0:997"], guest("loads"), f"{TMP}/part.so", qemu=("-L", ROOT))
    maps = [(int(p[2], 16), int(p[2], 16) + int(p[3], 16), int(p[4], 16), p[7])
            for p in (line.split() for line in rows(out, "mmap"))]
    part = [m for m in maps if m[3].endswith("part.so")]
    inside = [pc for pc in pcs(out) if part and part[0][0] <= pc < part[0][1]]
    names = symbols(f"{TMP}/part.so")
    there = {name_of(names, pc - part[0][0] + part[0][2]) for pc in inside} if part else set()
    check("28: a library that dlopen brings is told, and its samples are in its function",
          "status 0" in out and len(part) == 1 and len(inside) > 500 and there == {"part"}, f"{part} {len(inside)} {there}")
    shapes = guest("shapes-static")
    whole, bare = f"{TMP}/whole", f"{TMP}/strip"
    shutil.copy(shapes, whole)
    subprocess.run(["riscv64-linux-gnu-strip", "-o", bare, shapes], check=True)
    whole, bare = (pcs(run(["-r", "-p", "0:97"], prog)) for prog in (whole, bare))
    check("28: a stripped twin has the same samples", whole == bare and len(whole) > 50, f"{len(whole)} {len(bare)}")
    out = run(["-r", "-p", "0:97"], guest("shapes-static-pie"))
    maps = [(int(p[2], 16), int(p[2], 16) + int(p[3], 16)) for p in (line.split() for line in rows(out, "mmap"))]
    check("28: every sample of a static PIE is in its mapping", pcs(out) and all(any(a <= pc < b for a, b in maps)
          for pc in pcs(out)), maps)


def case_29():
    prog = guest("shapes-static")
    usual = run(["-r", "-f", "stack", "-p", "0:997"], prog)
    for words in (("-B", "0x7000000000"), ("-R", "0x1000000000")):
        moved = run(["-r", "-f", "stack", "-p", "0:997"], prog, qemu=words)
        check(f"29: {' '.join(words)}: the same counts at the same addresses", rows(moved, "int") == rows(usual, "int") and
              rows(moved, "mmap") == rows(usual, "mmap") and rows(usual, "int"))
        out, said = run(["-b"], guest("become"), "/bin/echo", "one two", "three", qemu=words, said=True)
        check(f"29: {' '.join(words)}: and the words of an exec are read right",
              said == "one two three\n" and "isa x86_64" in rows(out, "proc")[-1], f"{said}\n" + "\n".join(out))


def case_30():
    words = ["-f", "stack", "-f", "data", "-f", "fetch", "-f", "predict", "-s", "l1d-read-misses", "-s", "l1i-misses", "-s",
             "dtlb-read-misses", "-l", "branch-misses", "-r", "-p", "0:97", "-p", "8:11"]
    runs = [run(words, guest("recurse"), "12", "30") for _ in range(10)]
    check("30: ten runs: the same counts, misses and samples", all(r == runs[0] for r in runs) and len(runs[0]) > 100,
          f"{len({chr(10).join(r) for r in runs})} different, of {len(runs[0])} lines")


CASE_1 = {"riscv64": [2000004, 1000000, 999999, 14], "ppc64le": [2000007, 1000000, 999999, 14],
          "sparc64": [3000005, 1000000, 999999, 14], "x86_64": [2000004, 1000000, 999999, 14]}


def probe(name, *words, path=ENV["PATH"]):
    """What the plugin says of a QEMU, or None: there is no such."""
    qemu = shutil.which(name, path=path)
    return qemu and subprocess.run([qemu, *words, "-plugin", f"{PLUGIN},probe=1"], env=ENV, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=100).stdout


def case_31():
    said = probe("qemu-system-riscv64", "-M", "virt", "-bios", "none", "-display", "none")
    if said is None:
        skip("31: system emulation loads the plugin", "no qemu-system-riscv64")
    else:
        check("31: QEMU's system emulation loads the same file", re.fullmatch(r"quipu-qemu [14] riscv64\n", said), said)
    other = os.environ.get("QUIPU_QEMU")
    if not other:
        skip("31: and QEMU 10", "QUIPU_QEMU names no folder with one (README.md)")
        return
    for isa in filter(lambda isa: shutil.which(f"qemu-{isa}", path=other) and guest("counted", isa), SETS):
        words = ["-f", "stack", "-f", "predict", "-l", "branches", "-l", "taken", "-l", "branch-misses"]
        out = f"{TMP}/out31"
        subprocess.run([SEGRUN, "-o", out, *words, PLUGIN, f"{other}/qemu-{isa}", guest("counted", isa)], env=ENV, check=True,
                       stdout=subprocess.DEVNULL, timeout=200)
        with open(out, encoding="utf-8") as f:
            got = lanes(rows(f.read().splitlines(), "total")[0])
        check(f"31: {other}/qemu-{isa}: case 1", [got[0], *got[2:]] == CASE_1[isa], got)
    if shutil.which("qemu-x86_64", path=other) and guest("counted-rep", "x86_64"):
        out = f"{TMP}/out31"
        subprocess.run([SEGRUN, "-o", out, "-l", "stores", PLUGIN, f"{other}/qemu-x86_64", guest("counted-rep", "x86_64")], env=ENV,
                       check=True, timeout=200)
        with open(out, encoding="utf-8") as f:
            got = lanes(rows(f.read().splitlines(), "total")[0])
        check(f"31: {other}/qemu-x86_64: case 5", got[:3] == [7, 1007, 1000], got)
    said = probe("qemu-system-riscv64", "-M", "virt", "-bios", "none", "-display", "none", path=other)
    if said is not None:
        check(f"31: {other}/qemu-system-riscv64 loads the same file", said == "quipu-qemu 4 riscv64\n", said)


def case_33():
    for what, words in (("instructions", ["-p", "0:1009"]), ("loads", ["-l", "loads", "-p", "2:101"])):
        out = run(["-q", "512", "-t", "10000", *words], guest("memory"), "60", "64")
        found = re.match(r"toggled (\d+) wrong (\d+)", rows(out, "toggled")[0])
        check(f"33: {what}: a deadline goes off and on 10,000 times, with another period each time: it is reached where it "
              "should be, and nowhere else", int(found[1]) == 10000 and int(found[2]) == 0 and
              int(rows(out, "interrupts")[0].split()[1]) > 50, "\n".join(out[-4:]))


def case_34():
    for period in (1, 7):
        row = rows(run(["-w", "-p", f"0:{period}", "-f", "stack"], guest("recurse")), "total")[0]
        out = run(["-w", "-p", f"0:{period}", "-f", "stack"], guest("recurse"))
        row, received = rows(out, "total")[0], int(rows(out, "interrupts")[0].split()[1])
        check(f"34: nobody reads the ring, period {period}: those that were lost and those that came are all there were",
              field(row, "ringlost") > 1000 and received > 1000 and
              field(row, "ringlost") + received == lanes(row)[0] // period, f"{received} {row}")


for case in (case_14, case_15, case_17, case_18, case_20, case_21, case_25, case_28, case_29, case_30, case_31, case_33,
             case_34):
    case()
end()
