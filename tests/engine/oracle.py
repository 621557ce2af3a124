# SPDX-License-Identifier: BSD-2-Clause
"""The oracle: what a program did, instruction by instruction, in QEMU's own words, and what a disassembler calls each of
them. Nothing of the engine takes part.

QEMU's words are its execution log with one instruction to a block (-singlestep -d exec,nochain): a line for each
instruction that was begun. Of these do not retire: riscv64's ecall and ebreak; a save, restore or return that sparc64
begins again behind a window trap; each repetition of an x86 string instruction but the first. The disassembler is
binutils' objdump of the set. From both follow the instructions that retired, the transfers of control among them, which of
these went elsewhere than to the next instruction, and the calls that have not returned.
"""
import functools
import os
import re
import subprocess

from tap import PATH, TMP, check

SEGRUN, PLUGIN = os.environ["SEGRUN"], os.environ["PLUGIN"]
ENV = {"PATH": PATH}
SETS = ("riscv64", "ppc64le", "sparc64", "x86_64")
TOOLS = {"riscv64": "riscv64-linux-gnu-", "ppc64le": "powerpc64le-linux-gnu-", "sparc64": "sparc64-linux-gnu-", "x86_64": ""}

X86_PREFIX = r"(?:(?:bnd|notrack|addr32|data16|cs|ds|rex\.W) )*"
# What the disassembler's words mean, first that matches: does not retire, call, return, another transfer, may be begun again.
WORDS = {
    "riscv64": (("trap", r"ecall|ebreak|c\.ebreak"), ("call", r"jal\t(?!zero,|x0,)|jalr\t(?!zero,|x0,)|c\.jalr"),
                ("ret", r"ret$|jr\tt0$"), ("jump", r"b\w+\t|j\t|jr\t|jal\t|jalr\t")),
    "ppc64le": (("jump", r"bcl\s+20,4\*cr7\+so,|bcl\s+20,31,"), ("call", r"(bla?|b\w+la?)[+-]?(\s|$)"),
                ("ret", r"blr|b\w+lr[+-]?\b"), ("jump", r"b(?!permd|cd|r[dwh]\b|rinc)\w*[+-]?\b")),
    "sparc64": (("call", r"call\b|jmpl\t.*, %o7"), ("ret", r"(ret|retl|return)\b"),
                ("jump", r"(b(?!set|clr|tog|tst|mask|shuffle)\w*|fb\w+|jmp|jmpl)\b"), ("again", r"(save|restore)\b")),
    "x86_64": (("call", X86_PREFIX + r"call\b"), ("ret", r"(?:(?:bnd|repz|data16) )*ret\b"),
               ("jump", X86_PREFIX + r"(j\w+|loop\w*)\b"), ("again", r"(?:\w+ )*rep(n?z)?\b")),
}
# sparc64: behind these the slot gives %o7 another value, or the caller's window back: the callee returns to the caller's
# caller, whose call is the one that is open.
LEAVES = re.compile(r"restore\b|.*, %o7$")


@functools.lru_cache(maxsize=None)
def disassembly(prog, isa):
    """{pc: (size, text)}"""
    text = subprocess.run([TOOLS[isa] + "objdump", "-d", "--insn-width=16", prog], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    found = {}
    for line in text.splitlines():
        part = line.split(":\t", 1)
        if len(part) == 2:
            code, _, words = part[1].partition("\t")
            found[int(part[0], 16)] = (len(code.replace(" ", "")) // 2, words.split("\t#")[0].strip())
    return found


def kind_of(isa, text):
    return next((kind for kind, words in WORDS[isa] if re.match(words, text)), "")


@functools.lru_cache(maxsize=None)
def single_step(isa):
    """The option that makes each instruction a block; it was given another name in 8.1."""
    text = subprocess.run([f"qemu-{isa}", "--version"], env=ENV, stdout=subprocess.PIPE, text=True, check=True).stdout
    version = re.search(r"version (\d+)\.(\d+)", text)
    return "-one-insn-per-tb" if (int(version[1]), int(version[2])) >= (8, 1) else "-singlestep"


def began(isa, prog, *args):
    """Address of each instruction that was begun, in order."""
    log = f"{TMP}/exec.log"
    subprocess.run([f"qemu-{isa}", "-seed", "1", single_step(isa), "-d", "exec,nochain", "-D", log, prog, *args], env=ENV,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    pcs, known = [], {}
    with open(log, encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith("Trace"):
                text = line.split("/", 2)[1]
                pc = known.get(text)
                if pc is None:
                    pc = known[text] = int(text, 16)
                pcs.append(pc)
            elif line.startswith("Stopped"):  # before its first instruction
                pcs.pop()
    os.unlink(log)
    return pcs


class Run:
    """What one run did. Places are numbers in @pcs, the instructions that retired."""

    def __init__(self, isa, prog, *args):
        self.isa, self.insns = isa, disassembly(prog, isa)
        begun = began(isa, prog, *args)
        self.kind = {pc: kind_of(isa, self.insns[pc][1]) if pc in self.insns else "" for pc in set(begun)}
        again = {pc for pc, kind in self.kind.items() if kind == "again" or self.insns.get(pc, (0, ""))[1].startswith("return")}
        trap = {pc for pc, kind in self.kind.items() if kind == "trap"}
        self.pcs = [pc for i, pc in enumerate(begun) if pc not in trap and not (pc in again and i and begun[i - 1] == pc)]
        self.outside = sum(pc not in self.insns for pc in self.pcs)
        self.transfers = []  # (place, kind, place of what came next, taken)
        self.follow()

    def follow(self):
        for i, pc in enumerate(self.pcs[:-1]):
            kind = self.kind[pc]
            if kind in ("call", "ret", "jump"):
                then, taken = self.slotted(i) if self.isa == "sparc64" else (i + 1, self.pcs[i + 1] != pc + self.insns[pc][0])
                if then < len(self.pcs):
                    self.transfers.append((i, kind, then, taken))

    def slotted(self, i):
        """The place from where on the outcome of sparc64's transfer @i is known, and that. With a slot that runs, it is
        the place behind it; when it runs only if the branch is taken, it tells so itself. An unconditional one without a
        slot may go to its next instruction in memory."""
        pc, words = self.pcs[i], self.insns[self.pcs[i]][1].split()[0].split(",")
        runs, annuls = self.pcs[i + 1] == pc + 4, "a" in words[1:]
        if annuls and words[0] in ("b", "ba", "bn", "fb", "fba", "fbn"):
            return i + 1, self.pcs[i + 1] not in (pc + 4, pc + 8)
        if annuls or not runs:
            return i + 1, runs or self.pcs[i + 1] != pc + 8
        return i + 2, i + 2 < len(self.pcs) and self.pcs[i + 2] != pc + 8

    def leaves(self, place):
        """sparc64: a call whose callee does not come back here."""
        return self.isa == "sparc64" and bool(LEAVES.match(self.insns.get(self.pcs[place] + 4, (0, ""))[1]))

    def chains(self, wanted):
        """The calls that are open at each of the places @wanted, which ascend: their addresses, innermost first."""
        stack, found, left = [], [], list(reversed(wanted))
        delay = 4 if self.isa == "sparc64" else 0
        for place, kind, then, taken in self.transfers:
            if kind == "jump" or not taken:
                continue
            while left and left[-1] < then:
                found.append([site for site, _ in reversed(stack)])
                left.pop()
            pc = self.pcs[place]
            if kind == "call":
                if not self.leaves(place):
                    stack.append((pc, pc + self.insns[pc][0] + delay))
                continue
            goes = self.pcs[then]
            at = next((k for k in range(len(stack) - 1, -1, -1) if stack[k][1] == goes), None)
            if at is not None:
                del stack[at:]
        return found + [[site for site, _ in reversed(stack)]] * len(left)

    def count(self, kind=None, taken=None):
        return sum(kind in (None, k) and taken in (None, t) for _, k, _, t in self.transfers)


# ---- what the engine says ----

# Indexes of segrun: instructions 0, cycles 1, then the lanes as they are asked for, then the scalars from 8.
LANES = ["-l", "branches", "-l", "taken", "-l", "calls", "-l", "returns"]
BRANCHES, TAKEN, CALLS, RETURNS = 2, 3, 4, 5


class Engine:
    """One run under the plugin: totals, and of each record its pc, its lanes and its call chain."""

    def __init__(self, isa, options, prog, *args):
        out = f"{TMP}/engine.out"
        subprocess.run([SEGRUN, "-o", out, *LANES, *options, PLUGIN, f"qemu-{isa}", prog, *args], env=ENV, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        self.records, self.totals = [], []
        with open(out, encoding="utf-8") as f:
            for line in f:
                if line.startswith("int "):  # int 0.0 slots S bell B pc P addr A lanes N...
                    self.records.append(line)
                elif line.startswith("total "):
                    self.totals = self.lanes(line)

    def of(self, slot):
        return [r for r in self.records if int(r.split(" ", 4)[3], 16) >> slot & 1]

    @staticmethod
    def pc(record):
        return int(record.split(" ", 8)[7], 16)

    @staticmethod
    def lanes(line):
        return [int(x) for x in line.split(" lanes ", 1)[1].split(" scalars", 1)[0].split()]

    @staticmethod
    def chain(record):
        return [int(x, 16) for x in record.split(" chain", 1)[1].split()]


def differ(want, got):
    """The first places where two lists do."""
    found = [f"{i}: wanted {w}, got {g}" for i, (w, g) in enumerate(zip(want, got)) if w != g][:3]
    return "\n".join([f"{len(want)} wanted, {len(got)} came", *found])


def compare_counts(name, run, engine, features):
    want = [len(run.pcs), run.count(), run.count(taken=True), run.count("call"), run.count("ret")]
    got = [engine.totals[0], *engine.totals[BRANCHES:]]
    if features == "count":  # no block knows the one before
        want[TAKEN - 1] = got[TAKEN - 1]
    check(f"{name}: instructions, branches, taken, calls and returns are the oracle's ({features}): {want}",
          got == want and not run.outside, f"{want}\n{got} {run.outside}")


def compare_outcomes(name, run, prog, *args):
    """Every branch, and every taken one, in order."""
    engine = Engine(run.isa, ["-f", "branch", "-r", "-p", f"{BRANCHES}:1", "-p", f"{TAKEN}:1"], prog, *args)
    compare_counts(name, run, engine, "branch")
    for what, slot, want in (("transfer of control", 0, [run.pcs[place] for place, *_ in run.transfers]),
                             ("taken one", 1, [run.pcs[place] for place, _, _, taken in run.transfers if taken])):
        got = [engine.pc(r) for r in engine.of(slot)]
        check(f"{name}: every {what} is where the oracle has it, all {len(want)}", got == want and want,
              differ(list(map(hex, want)), list(map(hex, got))))


def before(places, wanted):
    """How many of the ascending @places are below each of the ascending @wanted."""
    counts, n = [], 0
    for w in wanted:
        while n < len(places) and places[n] < w:
            n += 1
        counts.append(n)
    return counts


def compare_samples(name, run, period, prog, *args):
    """Of every @period-th instruction: its place, what had been counted until then, and the calls that are open."""
    engine = Engine(run.isa, ["-f", "stack", "-r", "-p", f"0:{period}"], prog, *args)
    compare_counts(name, run, engine, "stack")
    places = list(range(period - 1, len(run.pcs), period))
    want, got = [run.pcs[p] for p in places], [engine.pc(r) for r in engine.records]
    check(f"{name}: every {period}th instruction is sampled, {len(want)} places", got == want,
          differ(list(map(hex, want)), list(map(hex, got))))
    upto = [p + 1 for p in places]
    want = list(map(list, zip(upto, before([place for place, *_ in run.transfers], upto),
                              before([then for _, _, then, taken in run.transfers if taken], upto))))
    got = [[lanes[0], lanes[BRANCHES], lanes[TAKEN]] for lanes in map(engine.lanes, engine.records)]
    check(f"{name}: and each tells the instructions, branches and taken branches until there", got == want, differ(want, got))
    want, got = [c[:127] for c in run.chains(places)], [engine.chain(r) for r in engine.records]
    check(f"{name}: and the calls that have not returned, all of them and no other, up to {max(map(len, want))} deep",
          got == want, differ([list(map(hex, c)) for c in want], [list(map(hex, c)) for c in got]))


def compare(isa, name, period, prog, *args):
    run = Run(isa, prog, *args)
    compare_counts(name, run, Engine(isa, [], prog, *args), "count")
    compare_outcomes(name, run, prog, *args)
    compare_samples(name, run, period, prog, *args)
