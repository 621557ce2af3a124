#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The models in the plugin against a simulator of a few lines that is fed with what the program did, instruction by
instruction and access by access (access_log.c). Engine sheet, cases 12, 25, 26, 27 and the 14 mispredictions of 7.2.
TAP on standard output."""
import os
import re
import struct
import subprocess

from tap import TMP, check, end

SEGRUN, PLUGIN, LOG = os.environ["SEGRUN"], os.environ["PLUGIN"], os.environ["ACCESS_LOG"]
GUESTS = os.environ["QUIPU_GUEST_DIR"]
QEMU = "qemu-riscv64"
ENV = {"PATH": "/usr/bin:/bin"}
SIGNALS = ["l1d-read-misses", "l1d-write-misses", "l1d-writebacks", "l1i-misses", "l2-read-misses", "l2-write-misses",
           "dtlb-read-misses", "dtlb-write-misses", "itlb-misses", "ll-read-misses", "ll-write-misses"]
MODELS = [x for f in ("data", "fetch", "predict") for x in ("-f", f)]


def guest(name):
    return f"{GUESTS}/{name}.riscv64"


def run(options, prog, *args):
    out = f"{TMP}/out"
    subprocess.run([SEGRUN, "-o", out, *options, PLUGIN, QEMU, prog, *args], env=ENV, stdout=subprocess.PIPE, timeout=200,
                   check=True)
    with open(out, encoding="utf-8") as f:
        return f.read().splitlines()


def total(lines):
    row = [line for line in lines if line.startswith("total ")][0]
    values = re.search(r" lanes ((?:\d+ )+)scalars((?: \d+)*)", row)
    return [int(x) for x in values.group(1).split()], [int(x) for x in values.group(2).split()]


def samples(lines):
    return [tuple(int(x, 16) for x in re.search(r" pc (\w+) addr (\w+)", line).groups())
            for line in lines if line.startswith("int ")]


def did(prog, *args):
    """[(address, size, kind)] of the whole run."""
    log = f"{TMP}/log"
    subprocess.run([QEMU, "-seed", "1", "-plugin", f"{LOG},log={log}", prog, *args], env=ENV, stdout=subprocess.PIPE,
                   check=True)
    with open(log, "rb") as f:
        entries = list(struct.iter_unpack("<QII", f.read()))
    os.unlink(log)
    return entries


class Cache:
    """Sets of [line, dirty]; most recent last (LRU), or ways with a tree of bits (PLRU)."""

    def __init__(self, sets, ways, lru):
        self.sets, self.ways, self.lru = sets, ways, lru
        self.content = [[] for _ in range(sets)]
        self.tree = [[0] * ways for _ in range(sets)]

    def touch(self, tree, way):
        node, half = 1, self.ways // 2
        while half:
            right = bool(way & half)
            tree[node] = not right
            node, half = 2 * node + right, half // 2

    def victim(self, tree):
        node = 1
        while node < self.ways:
            node = 2 * node + tree[node]
        return node - self.ways

    def access(self, line, write=False):
        """(hit, the dirty line that had to go or None)"""
        content, tree = self.content[line % self.sets], self.tree[line % self.sets]
        for way, entry in enumerate(content):
            if entry[0] == line:
                entry[1] |= write
                if self.lru:
                    content.append(content.pop(way))
                else:
                    self.touch(tree, way)
                return True, None
        gone, way = None, len(content)
        if way < self.ways:
            content.append([line, write])
        elif self.lru:
            gone = content.pop(0)
            content.append([line, write])
        else:
            way = self.victim(tree)
            gone, content[way] = content[way], [line, write]
        if not self.lru:
            self.touch(tree, way)
        return False, gone[0] if gone and gone[1] else None


def simulate(entries, lru):
    """Counts by the name of the signal, and the (pc, address) of every read miss of L1D."""
    l1i, l1d, l2, l3 = Cache(64, 8, lru), Cache(64, 8, lru), Cache(1024, 8, lru), Cache(8192, 8, lru)
    itlb, dtlb = Cache(16, 4, lru), Cache(16, 4, lru)
    n, missed, pc = dict.fromkeys(SIGNALS, 0), [], 0

    def beyond(line, kind):
        if l2.access(line)[0]:
            return
        n[f"l2-{kind}-misses"] += 1
        if not l3.access(line)[0]:
            n[f"ll-{kind}-misses"] += 1

    for address, size, what in entries:
        for line in sorted({address >> 6, (address + size - 1) >> 6}):
            at = max(address, line << 6)
            if what == 0:
                n["itlb-misses"] += not itlb.access(at >> 12)[0]
                if not l1i.access(line)[0]:
                    n["l1i-misses"] += 1
                    beyond(line, "read")
                continue
            kind = "write" if what == 2 else "read"
            n[f"dtlb-{kind}-misses"] += not dtlb.access(at >> 12)[0]
            hit, dirty = l1d.access(line, what == 2)
            n["l1d-writebacks"] += dirty is not None
            if not hit:
                n[f"l1d-{kind}-misses"] += 1
                beyond(line, kind)
                if what == 1:
                    missed.append((pc, address))
        pc = address if what == 0 else pc
    return n, missed


PROGRAMS = [("memory", "1", "64"), ("recurse", "12", "30"), ("true",)]
EXACT = SIGNALS[:3] + SIGNALS[6:8]  # of the data side alone: no block's lines are fetched before its accesses


def test_against_simulator():
    for name, *args in PROGRAMS:
        entries = did(guest(name), *args)
        for lru in (True, False):
            options = (["-m", "lru"] if lru else []) + MODELS
            want, missed = simulate(entries, lru)
            row = dict(zip(SIGNALS, total(run(options + [x for s in SIGNALS for x in ("-s", s)], guest(name), *args))[1]))
            how = f"{name}, {'LRU' if lru else 'PLRU'}"
            check(f"{how}: misses of L1D, its write-backs and TLB are the simulator's",
                  [row[s] for s in EXACT] == [want[s] for s in EXACT] and want["l1d-read-misses"] > 10, f"{row}\n{want}")
            # A block's lines are fetched when it is entered: the order with its accesses differs by a block.
            near = [s for s in SIGNALS if s not in EXACT and abs(row[s] - want[s]) > max(1, want[s] // 200)]
            check(f"{how}: misses of instructions and of L2 and L3 are the simulator's", not near,
                  f"{near}\n{row}\n{want}")
            got = samples(run(options + ["-s", "l1d-read-misses", "-r", "-p", "8:1"], guest(name), *args))
            check(f"{how}: every read miss is sampled at its instruction with its address", got == missed,
                  f"{len(got)} {len(missed)}\n{[x for x in zip(got, missed) if x[0] != x[1]][:3]}")


def test_branches():
    loop = guest("loop")
    lanes, scalars = total(run(["-f", "predict", "-l", "branch-misses", "-s", "branch-misses", "-s", "direction-misses",
                                "-s", "target-misses", "-s", "return-misses"], loop))
    check("the loops of loop.S: branches mispredicted", lanes[2] == scalars[0] == scalars[1] + scalars[2] and
          scalars[1] > 10, f"{lanes} {scalars}")
    for name, *args in PROGRAMS[1:]:
        branch = {int(line.split(":")[0], 16): line for line in
                  subprocess.run(["riscv64-linux-gnu-objdump", "-d", guest(name)], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.splitlines() if re.search(r"\tb[a-z]+\t|\tb[a-z]+z?\t", line)}
        pcs = [(e[0], e[1]) for e in did(guest(name), *args) if e[2] == 0]
        counter, history, want = {}, 0, []
        for (pc, size), (after, _) in zip(pcs, pcs[1:]):
            if pc not in branch:
                continue
            taken, at = after != pc + size, ((pc >> 1) ^ history) & 4095
            c = counter.get(at, 1)
            if (c >= 2) != taken:
                want.append(pc)
            counter[at] = min(c + 1, 3) if taken else max(c - 1, 0)
            history = (history << 1 | taken) & 4095
        for where, index in (("-l", 2), ("-s", 8)):
            got = samples(run(["-f", "predict", where, "direction-misses", "-r", "-p", f"{index}:1"], guest(name), *args))
            check(f"{name}: every mispredicted direction is sampled at its branch ({where})",
                  [pc for pc, _ in got] == want and want, f"{len(got)} {len(want)}")


def test_timing():
    args = (guest("memory"), "1", "64")
    base, counts = total(run(MODELS + [x for s in SIGNALS for x in ("-s", s)], *args))
    n = dict(zip(SIGNALS, counts))
    full, (front, back) = total(run(MODELS + ["-m", "full", "-s", "stall-frontend", "-s", "stall-backend"], *args))
    misses = total(run(MODELS + ["-l", "branch-misses"], *args))[0][2]
    l1 = n["l1d-read-misses"] + n["l1d-write-misses"] + n["l1i-misses"]
    l2 = n["l2-read-misses"] + n["l2-write-misses"]
    ll = n["ll-read-misses"] + n["ll-write-misses"]
    walks = n["dtlb-read-misses"] + n["dtlb-write-misses"] + n["itlb-misses"]
    want = 12 * (l1 - l2) + 40 * (l2 - ll) + 200 * ll + 20 * walks + 14 * misses
    check("timing full adds what the misses lose, no more and no less",
          full[1] - base[1] == want == front + back and full[0] == base[0], f"{full} {base} {want} {front} {back}")
    out = run(MODELS + ["-m", "full", "-r", "-p", "1:1000"], *args)
    check("cycles are sampled at their period with timing full", len(samples(out)) == full[1] // 1000,
          f"{len(samples(out))} {full[1]}")
    quanta = [total(run(MODELS + ["-m", "full", "-q", q], *args))[0] for q in ("1", "100", "32768")]
    check("nor does the quantum change anything", quanta == [full[:2]] * 3, quanta)


DEADLINES = ["0:1009", "1:997", "2:307", "8:11", "9:7", "10:3"]


def test_deadlines():
    """Case 12: lanes and scalars, of blocks and of the middle of blocks."""
    options = MODELS + ["-f", "stack", "-l", "branch-misses", "-s", "l1d-read-misses", "-s", "l1i-misses", "-s",
                        "dtlb-read-misses", "-r"]
    args = (guest("recurse"), "12", "30")
    together = [line for line in run(options + [x for d in DEADLINES for x in ("-p", d)], *args) if line[:4] == "int "]
    for i, d in enumerate(DEADLINES):
        alone = [line for line in run(options + ["-p", d], *args) if line[:4] == "int "]
        mine = [line for line in together if int(line.split()[3], 16) >> i & 1]

        def plain(line):
            return re.sub(r"slots \w+ bell \w+ ", "", line)

        check(f"deadline {d} of the models is reached where it is alone too",
              list(map(plain, mine)) == list(map(plain, alone)) and alone, f"{len(mine)} {len(alone)}")
    one, two = (run(options + [x for d in DEADLINES for x in ("-p", d)], *args) for _ in range(2))
    check("two runs with models give the same records", one == two)


for test in (test_against_simulator, test_branches, test_timing, test_deadlines):
    test()
end()
