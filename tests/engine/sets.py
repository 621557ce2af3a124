#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The plugin on four instruction sets against QEMU's own word: engine sheet 19, cases 1 to 11, 16, 20 to 22 and 24
(README.md is the list of all).

QEMU's word is its execution log with one instruction to a block. A repetition of x86's string instructions, and an
instruction that sparc64 begins again after a window trap, is in it twice and retires once. riscv64's ecall does not
retire. TAP on standard output."""
import functools
import os
import re
import shutil
import subprocess

from tap import TMP, check, end

SEGRUN, PLUGIN, ACCESSES = os.environ["SEGRUN"], os.environ["PLUGIN"], os.environ["ACCESSES"]
OWN = os.environ["ENGINE_GUESTS"]
ENV = {"PATH": "/usr/bin:/bin"}
SETS = ("riscv64", "ppc64le", "sparc64", "x86_64")
TOOLS = {"riscv64": "riscv64-linux-gnu-", "ppc64le": "powerpc64le-linux-gnu-", "sparc64": "sparc64-linux-gnu-", "x86_64": ""}
ALL = ["-f", "stack", "-l", "loads", "-l", "stores", "-l", "branches", "-l", "taken", "-l", "calls", "-l", "syscalls"]


def guest(name, isa):
    path = f"{OWN}/{name}.{isa}"
    return path if os.path.exists(path) else None


def run(isa, options, prog, *args, status=None, env=None, qemu=()):
    out = f"{TMP}/out"
    done = subprocess.run([SEGRUN, "-o", out, *options, PLUGIN, f"qemu-{isa}", *qemu, prog, *args], env=env or ENV,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200, check=True)
    with open(out) as f:
        lines = f.read().splitlines()
    return (lines, done.stdout) if status else lines


def rows(lines, kind):
    return [line for line in lines if line.startswith(kind + " ")]


def lanes(line):
    return [int(x) for x in re.search(r" lanes ((?:\d+ )+)", line).group(1).split()]


def samples(lines):
    return [int(re.search(r" pc ([0-9a-f]+)", line).group(1), 16) for line in rows(lines, "int")]


@functools.lru_cache(maxsize=None)
def code(prog, isa):
    """Of each instruction of the file: its size, and its mnemonic."""
    text = subprocess.run([TOOLS[isa] + "objdump", "-d", "--insn-width=16", prog], stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s*([0-9a-f]+):\t((?:[0-9a-f]+ )+)\s*\t?(.*)", line)
        if m:
            found[int(m.group(1), 16)] = (len(m.group(2).replace(" ", "")) // 2, m.group(3))
    return found


@functools.lru_cache(maxsize=None)
def retired(prog, isa, *args):
    log = f"{TMP}/log"
    subprocess.run([f"qemu-{isa}", "-seed", "1", "-singlestep", "-d", "exec,nochain", "-D", log, prog, *args], env=ENV,
                   stdout=subprocess.PIPE)
    with open(log) as f:
        pcs = [int(line.split("/")[1], 16) for line in f if line.startswith("Trace")]
    os.unlink(log)
    if isa == "riscv64":
        insns = code(prog, isa)
        outside = [pc for pc in pcs if pc not in insns]
        trap = {pc for pc, (_, text) in insns.items() if re.match(r"(ecall|ebreak|c\.ebreak)\b", text)}
        trap |= {max(outside)} if outside else set()
        return [pc for pc in pcs if pc not in trap]
    return [pc for i, pc in enumerate(pcs) if not i or pcs[i - 1] != pc]


def transfers(prog, isa):
    """How often control went elsewhere than to the next instruction."""
    pcs, insns = retired(prog, isa), code(prog, isa)
    if isa != "sparc64":
        return sum(b != a + insns[a][0] for a, b in zip(pcs, pcs[1:]) if a in insns and b in insns)
    cti = re.compile(r"(b|fb|call|ret|jmp|cb)")
    # Behind a transfer that annuls its slot and is not taken control goes on 8 bytes further.
    return sum(b != a + 4 and not (b == a + 8 and cti.match(insns[a][1])) for a, b in zip(pcs, pcs[1:]) if a in insns)


COUNTED = {  # instructions, branches, taken
    "counted.riscv64": (2000004, 1000000, 999999), "counted.ppc64le": (2000007, 1000000, 999999),
    "counted.sparc64": (3000005, 1000000, 999999), "counted-annul.sparc64": (3000004, 1000000, 999999),
    "counted-split.sparc64": (3000012, 1000004, 1000003), "counted-split-annul.sparc64": (3000011, 1000004, 1000003),
    "counted.x86_64": (2000004, 1000000, 999999), "counted-cross.x86_64": (5000005, 1000001, 1000000),
    "counted-rep.x86_64": (7, 0, 0), "counted-search.x86_64": (22, 0, 0),
}


def test_counted():
    for name, want in COUNTED.items():
        isa = name.split(".")[1]
        prog = guest(name.split(".")[0], isa)
        if not prog:
            continue
        for features in ("branch", "stack"):
            row = rows(run(isa, ["-f", features, "-l", "branches", "-l", "taken"], prog), "total")[0]
            got = lanes(row)
            check(f"{name}: counted by hand ({features})", (got[0], got[2], got[3]) == want, f"{want}\n{row}")
        row = rows(run(isa, ["-l", "branches"], prog), "total")[0]
        check(f"{name}: counted by hand (count)", lanes(row)[0] == want[0], row)
    row = rows(run("x86_64", ["-l", "stores", "-l", "loads"], guest("counted-rep", "x86_64")), "total")[0]
    got = lanes(row)
    check("rep stosb of 1000 bytes: a cycle and a store for each, one instruction",
          got[0] == 7 and got[2] == 1000 and got[3] == 0 and got[1] >= 1000, row)
    for features in ([], ["-f", "data", "-f", "fetch"]):
        row = rows(run("x86_64", ["-l", "stores", "-l", "loads", *features], guest("counted-search", "x86_64")), "total")[0]
        got = lanes(row)
        check(f"repne scasb and repe cmpsb load with each look, {'with' if features else 'without'} models",
              got[0] == 22 and got[2] == 2 and got[3] == 170 and got[1] == 22 + 170 - 4, row)
    split = rows(run("sparc64", ["-f", "stack"], guest("counted-split", "sparc64")), "total")
    check("a call whose slot is on the next page leaves the call stack balanced", split and " depth 0 " in split[0], split)


def test_interrupted_repetitions():
    """Whatever a signal comes into goes on where it was: each of them adds what its handler does, and nothing else."""
    prog = guest("repsignal", "x86_64")
    counts = ["-l", "loads", "-l", "stores"]
    for features in ([], ["-f", "stack"], ["-f", "branch", "-f", "predict"], ["-f", "data", "-f", "fetch"]):
        quiet = lanes(rows(run("x86_64", [*features, *counts], prog, "quiet"), "total")[0])
        lines, said = run("x86_64", [*features, *counts], prog, status=True)
        got, signals = lanes(rows(lines, "total")[0]), int(said, 16)
        want = (quiet[0] + 4 * signals, quiet[2] + 2 * signals, quiet[3] + signals)
        check(f"rep movs, stos, lods, scas, cmps among signals are counted once ({' '.join(features[1::2]) or 'count'})",
              signals > 0 and (got[0], got[2], got[3]) == want, f"{signals} signals: {got}, want {want}, quiet {quiet}")


def test_reference():
    for isa in SETS:
        prog = guest("recurse", isa)
        if not prog:
            continue
        want = retired(prog, isa, "12", "2")
        for features in ("count", "branch", "stack"):
            row = rows(run(isa, ["-f", features], prog, "12", "2"), "total")[0]
            check(f"{isa}: instructions are QEMU's ({features})", lanes(row)[0] == len(want), f"{len(want)}\n{row}")
            for period in (1, 3, 1009):
                got = samples(run(isa, ["-r", "-f", features, "-p", f"0:{period}"], prog, "12", "2"))
                check(f"{isa}: sampled every {period} ({features})", got == want[period - 1::period],
                      f"{len(want) // period} wanted, {len(got)} found")


def test_taken():
    for isa in SETS:
        prog = guest("recurse", isa)
        if not prog:
            continue
        row = rows(run(isa, ["-f", "branch", "-l", "taken"], prog), "total")[0]
        want = transfers(prog, isa)
        check(f"{isa}: taken branches are the turns of QEMU's log", abs(lanes(row)[2] - want) <= want // 10000, f"{want}\n{row}")


def test_together():
    """Every deadline is reached where it would be alone, by rings and by bells alike."""
    wanted = ["0:1009", "1:997", "2:501", "5:307", "6:101", "7:3"]
    for isa in SETS:
        prog = guest("recurse", isa)
        if not prog:
            continue
        plain = functools.partial(re.sub, r"slots [0-9a-f]+ bell [0-9a-f]+ ", "")
        flags = [x for d in wanted for x in ("-p", d)]
        bells = [x for d in wanted for x in ("-p", d + ":bell")]
        together = rows(run(isa, [*ALL, "-r", *flags], prog, "10", "2"), "int")
        belled = rows(run(isa, [*ALL, "-r", *bells], prog, "10", "2"), "int")
        check(f"{isa}: records are the same with and without the bell",
              together and list(map(plain, together)) == list(map(plain, belled)), f"{len(together)} {len(belled)}")
        for i, d in enumerate(wanted):
            alone = rows(run(isa, [*ALL, "-r", "-p", d], prog, "10", "2"), "int")
            mine = [line for line in together if int(line.split()[3], 16) >> i & 1]
            check(f"{isa}: deadline {d} is reached where it is alone too", list(map(plain, mine)) == list(map(plain, alone)),
                  f"{len(mine)} {len(alone)}")
        one = [run(isa, [*ALL, "-r", *flags], prog, "10", "2") for _ in range(2)]
        check(f"{isa}: two runs give the same records", one[0] == one[1])


# Mnemonics that are loads, stores, or transfers of control for certain; a record's class must say so. Enum order of
# quipu/signal.h: 3, 7 and 8 load, 4 and 9 store, 16 to 22 transfer.
KINDS = {
    "riscv64": ((r"(lb|lh|lw|ld|fld|flw)u?\b", {3, 8}), (r"(sb|sh|sw|sd|fsd|fsw)\b", {4, 9}),
                (r"(b(eq|ne|lt|ge|gt|le)|j\b|jal|jr|ret)", set(range(16, 23)))),
    "ppc64le": ((r"(ld|lwz|lbz|lhz)\b", {3}), (r"(std|stw|stb|sth)\b", {4}), (r"(b|bl|blr|bctr|bctrl)\b", set(range(16, 23)))),
    "sparc64": ((r"(ldx|ld|ldub|lduw)\b", {3, 8}), (r"(stx|st|stb)\b", {4, 9}), (r"(call|retl|return|ba|b[gln][a-z]*|br[a-z]+)\b(?!.*,a)",
                                                                         set(range(16, 23)))),
    "x86_64": ((r"(call|jmp|j[a-z]+|ret)\b", set(range(16, 23))),),
}


def test_described():
    """A record says of its instruction how long it is, of what class, and where control went on, when it knows."""
    for isa in SETS:
        prog = guest("recurse", isa)
        if not prog:
            continue
        insns, bad, kinds = code(prog, isa), [], set()
        pcs = retired(prog, isa, "10", "2")
        after = {}
        for a, b in zip(pcs, pcs[1:]):
            after.setdefault(a, set()).add(b)
        for line in rows(run(isa, [*ALL, "-r", "-p", "0:97", "-p", "5:31"], prog, "10", "2"), "int"):
            pc = int(re.search(r" pc (\w+)", line).group(1), 16)
            cls, size, events, following = re.search(r" insn (\d+) (\d+) (\w+) (\w+)", line).groups()
            if pc not in insns:
                continue
            text = insns[pc][1]
            goes = int(following, 16)
            if isa == "sparc64" and int(events, 16) & 0x100:  # resolved: where it went behind its slot
                goes = 0
            if pc not in after: # the last one of all
                continue
            # A system call does not retire: the log's list goes on behind it.
            if goes == pc + int(size) and re.match(r"(ecall|syscall|sc\b|ta\b)", insns.get(goes, (0, ""))[1]):
                goes = 0
            if int(size) != insns[pc][0] or (goes and goes not in after.get(pc, ())):
                bad.append(f"{text}: {line}")
            for kind, (mnemonic, classes) in enumerate(KINDS[isa]):
                if re.match(mnemonic, text):
                    kinds.add(kind)
                    if int(cls) not in classes:
                        bad.append(f"{text}: {line}")
        check(f"{isa}: a record tells class, length and successor of its instruction",
              not bad and len(kinds) == len(KINDS[isa]), f"{kinds}\n" + "\n".join(bad[:8]))


def test_labelled():
    """What became of each instruction on a core that runs ahead (sparc64): every one is told once, misses are the models'."""
    prog = guest("recurse", "sparc64")
    if not prog:
        return
    kinds = ["l2-fetches", "l2-loads", "l2-fetch-prefetches", "l2-store-prefetches", "l2-stores", "l2-atomics", "l2-flushes"]
    options = ["-f", "label", "-l", "stores"]
    signals = ["labelled", "l2-transactions", *kinds, "l1d-read-misses", "l1i-misses", "l1d-write-misses"]
    out = run("sparc64", options + [x for s in signals for x in ("-s", s)], prog, "12", "2")
    total = rows(out, "total")[0]
    values = dict(zip(signals, (int(x) for x in re.search(r" scalars((?: \d+)*)", total).group(1).split())))
    check("every instruction that retires is labelled once", values["labelled"] == lanes(total)[0] ==
          len(retired(prog, "sparc64", "12", "2")), total)
    check("transactions of the second level are the misses of the first, and each store",
          values["l2-transactions"] == sum(values[k] for k in kinds) and values["l2-loads"] == values["l1d-read-misses"] and
          values["l2-fetches"] == values["l2-fetch-prefetches"] == values["l1i-misses"] and
          values["l2-store-prefetches"] == values["l1d-write-misses"] and
          values["l2-stores"] + values["l2-atomics"] == lanes(total)[2], values)
    records = [run("sparc64", options + ["-s", "labelled", "-s", "l2-transactions", "-r", "-p", "8:53", "-p", bell], prog, "12", "2")
               for bell in ("9:17", "9:17", "9:17:bell")]
    check("two runs give the same labels", records[0] == records[1])
    mine = [[int(re.search(r" scalars (\d+) (\d+)", line).group(n)) for line in rows(records[0], "int")
             if int(line.split()[3], 16) >> n - 1 & 1] for n in (1, 2)]
    check("one record for each period of either, at its very count",
          mine == [list(range(53, values["labelled"] + 1, 53)), list(range(17, values["l2-transactions"] + 1, 17))],
          f"{len(mine[0])} {len(mine[1])}")
    addresses = [re.search(r" addr (\w+) .* insn (\d+) .* transaction (\d)", line).groups() for line in rows(records[0], "int")]
    check("a load or a store says where it went", all(int(a, 16) for a, cls, t in addresses if int(cls) in (3, 4) and t == "0"))


def names_of(prog, isa):
    text = subprocess.run([TOOLS[isa] + "nm", prog], stdout=subprocess.PIPE, text=True).stdout
    return sorted((int(p[0], 16), p[2]) for p in (line.split() for line in text.splitlines())
                  if len(p) == 3 and p[1] in "tTwW" and not p[2].startswith("$"))


def name_of(names, pc):
    best = "?"
    for address, name in names:
        if address > pc:
            break
        best = name
    return best


def test_stack():
    for isa in SETS:
        prog = guest("jumps", isa)
        if not prog:
            continue
        depth = re.compile(r" depth (\d+) ")
        plain = rows(run(isa, ["-f", "stack"], guest("recurse", isa), "3", "1"), "total")[0]
        for arg, faults in (("0", 0), ("1", 10)):
            if faults and isa == "sparc64":
                continue  # QEMU 7.2 itself never comes back from the handler of a fault there
            want = len(retired(prog, isa, arg)) - faults  # a faulting store is begun twice
            row = rows(run(isa, ["-f", "stack"], prog, arg), "total")[0]
            check(f"{isa}: signals, 1020 jumps and {faults} faults: instructions are exact", lanes(row)[0] == want,
                  f"{want}\n{row}")
            check(f"{isa}: and the call stack is as deep as without", abs(int(depth.search(row).group(1)) -
                  int(depth.search(plain).group(1))) <= 2, f"{plain}\n{row}")
        names = names_of(guest("recurse", isa), isa)
        out = rows(run(isa, ["-f", "stack", "-r", "-p", "0:997"], guest("recurse", isa), "12", "2"), "int")
        chains = [[name_of(names, int(x, 16)) for x in [re.search(r" pc (\S+)", line).group(1)] +
                   line.split(" chain")[1].split()] for line in out]
        through = [c for c in chains if "main" in c]
        bad = [c for c in through if "start" not in c[-1] and len(c) < 120]
        check(f"{isa}: every call chain through main ends in the start-up code", through and not bad, bad[:2])


CALLS = {"riscv64": r"(jal|jalr)\t(ra,|[^,]+$)|c\.jalr", "ppc64le": r"(bl|bctrl)\b", "sparc64": r"call\b", "x86_64": r"(addr32 |bnd |notrack )*call\b"}
RETURNS = {"riscv64": r"ret\b", "ppc64le": r"(blr|b[a-z]+lr)\b", "sparc64": r"(ret|retl|return)\b", "x86_64": r"(repz |bnd )?ret\b"}
SLOT = {"sparc64": 4}  # what is executed behind a transfer before it goes


def frames_at(prog, isa, args, wanted):
    """The calls that are open at each of the instructions @wanted (numbers in QEMU's log): a stack kept by hand, from
    what the disassembly calls a call, and where control went. A return pops to whoever called from before that place."""
    insns, pcs, stack, found = code(prog, isa), retired(prog, isa, *args), [], {}
    call, ret = re.compile(CALLS[isa]), re.compile(RETURNS[isa])
    what = {pc: "call" if call.match(text) else "ret" if ret.match(text) else "" for pc, (_, text) in insns.items()}
    late, wanted = SLOT.get(isa, 0), set(wanted)
    for i, pc in enumerate(pcs):
        if i in wanted:
            found[i] = [site for site, _ in reversed(stack)]
        kind = what.get(pc, "")
        after = pcs[i + 1 + (late > 0)] if i + 1 + (late > 0) < len(pcs) else 0
        behind = pc + insns[pc][0] + late if pc in insns else 0
        if kind == "call" and after != behind:
            stack.append((pc, behind))
        elif kind == "ret" and after != behind:
            for k in range(len(stack) - 1, -1, -1):
                if stack[k][1] == after:
                    del stack[k:]
                    break
    return found


def test_frames():
    """No call chain has a frame that is not live, and none is missing: each sample's, against the stack kept by hand."""
    for isa in ("riscv64", "ppc64le", "x86_64"):
        prog = guest("recurse", isa)
        if not prog:
            continue
        period = 97
        lines = rows(run(isa, ["-f", "stack", "-r", "-p", f"0:{period}"], prog, "12", "2"), "int")
        numbers = [period * (n + 1) - 1 for n in range(len(lines))]
        want = frames_at(prog, isa, ("12", "2"), numbers)
        got = [[int(x, 16) for x in line.split(" chain")[1].split()] for line in lines]
        bad = [(hex(numbers[i]), chain, want[numbers[i]]) for i, chain in enumerate(got)
               if chain != want[numbers[i]][:127]]
        check(f"{isa}: the call chain of every sample is what is called and has not returned", len(got) > 20 and not bad and
              max(map(len, got)) > 10, f"{len(bad)} of {len(got)}\n" + "\n".join(str([[hex(x) for x in c] for c in b[1:]])
                                                                                    for b in bad[:2]))


def test_landings():
    """Behind a longjmp no chain has a frame of what it left; x86-64 jumps there, sparc64 traps."""
    for isa in SETS:
        prog = guest("longjump", isa)
        if not prog:
            continue
        names, dead, seen, deepest = names_of(prog, isa), 0, 0, 0
        for line in rows(run(isa, ["-f", "stack", "-r", "-p", "0:11"], prog), "int"):
            here = name_of(names, int(re.search(r" pc (\w+)", line).group(1), 16))
            chain = [name_of(names, int(x, 16)) for x in line.split(" chain")[1].split()]
            deepest = max(deepest, len(chain) if here == "deep" else 0)
            if here in ("after", "landing"):
                seen += 1
                dead += "deep" in chain
        check(f"{isa}: behind 100 longjmps no call chain has a frame of what they left", seen > 1000 and not dead and
              deepest > 50, f"{dead} of {seen}, {deepest}")


def test_accesses():
    """Does every instruction that ran load and store as its decoder says? dcbz stores, and QEMU does not tell."""
    for isa in SETS:
        prog = guest("recurse", isa)
        if not prog:
            continue
        programs = [[prog]]
        if isa == "x86_64":
            programs += [[guest("places", isa)], ["/bin/ls", "/"], ["/usr/bin/perl", "-e", 'printf "%.3f", sqrt(2)']]
        for command in programs:
            if not shutil.which(command[0]):
                continue
            out = f"{TMP}/accesses"
            subprocess.run([f"qemu-{isa}", *(["-cpu", "max"] if isa == "x86_64" else []), "-plugin", f"{ACCESSES},out={out}",
                            *command], stdout=subprocess.PIPE, env=ENV, timeout=200)
            with open(out) as f:
                lines = f.read().splitlines()
            bad = []
            for line in rows(lines, "differs"):
                word = bytes.fromhex(line.split("runs:")[1].replace(" ", ""))
                op = int.from_bytes(word[:4], "little")
                if isa == "ppc64le" and op >> 26 == 31 and (op & 0x7fe) in (2028, 300, 428, 1388, 1452, 364):
                    continue  # dcbz; st*cx. is a compare and swap in QEMU
                if isa == "riscv64" and op & 0x7f == 0x2f and op >> 27 == 3:
                    continue  # so is sc
                bad.append(line)
            check(f"{isa}: what {os.path.basename(command[0])} loads and stores is as decoded",
                  not bad and re.match(r"instructions \d{3,}", lines[-1]), "\n".join(bad))
            misplaced, grouped = rows(lines, "misplaced"), int(lines[-1].split(" grouped ")[1])
            check(f"{isa}: and each access of {os.path.basename(command[0])} lies where its place and its group have it",
                  not misplaced and grouped > 100, "\n".join([lines[-1], *misplaced]))


def test_exec():
    prog = guest("become", "riscv64")
    if not prog:
        return
    script = f"{TMP}/script"
    with open(script, "w") as f:
        f.write('#!/bin/sh -u\necho "$0 $1 $WORD"; exit 7\n')
    os.chmod(script, 0o755)
    out, said = run("riscv64", [], prog, script, "one two", status=True, env={**ENV, "WORD": "three"})
    procs = rows(out, "proc")
    check("a script that a riscv64 program execs runs in a followed shell, with its words and environment",
          said == f"{script} one two three\n" and len(procs) == 2 and "isa x86_64" in procs[1], f"{said}\n" + "\n".join(out))
    check("and its exit status is kept", "status 7" in out, "\n".join(out))
    chain = [guest("become", i) for i in ("sparc64", "ppc64le", "riscv64") if guest("become", i)]
    out, said = run("riscv64", ["-b"], prog, *chain, "/bin/echo", "done", status=True)
    counts = [lanes(line)[0] for line in rows(out, "total")]
    check("a chain of execs through every instruction set is followed to its end",
          said == "done\n" and len(counts) == len(chain) + 2 and min(counts) > 1000 and "foreign" not in " ".join(out),
          f"{said}\n" + "\n".join(out))
    os.mkfifo(f"{TMP}/pipe", 0o755)
    for what in ("/no/such/program", f"{TMP}/pipe"):
        out, said = run("riscv64", [], prog, what, status=True)
        check(f"an exec of {os.path.basename(what)}, which fails, leaves the program as it was",
              len(rows(out, "proc")) == 1 and "status 127" in out and lanes(rows(out, "total")[0])[0] > 1000,
              f"{said}\n" + "\n".join(out))
    out, said = run("x86_64", ["-b"], "/bin/sh", "-c", "ls / | wc -l; env LD_PRELOAD= true; exit 5", status=True)
    check("a shell's pipes and children are all followed", said.strip().isdigit() and "status 5" in out and
          sum("fork" in line for line in rows(out, "bell")) >= 3, f"{said}\n" + "\n".join(out))


def test_phantom():
    prog = guest("counted-cross", "x86_64")
    if not prog:
        return
    want = retired(prog, "x86_64")
    got = samples(run("x86_64", ["-r", "-f", "stack", "-p", "0:1009"], prog))
    check("counted-cross.x86_64: sampled where QEMU's log has every 1009th", got == want[1008::1009] and got,
          f"{len(want) // 1009} wanted, {len(got)} found")


def test_mispredicted():
    for isa in SETS:
        prog = guest("counted", isa)
        if prog:
            row = rows(run(isa, ["-f", "predict", "-l", "branch-misses"], prog), "total")[0]
            check(f"{isa}: the million rounds are mispredicted 14 times", lanes(row)[2] == 14, row)


def test_self_modifying():
    prog = guest("rewrite", "x86_64")
    if not prog:
        return
    row = rows(run("x86_64", ["-f", "stack"], prog), "total")[0]
    single = rows(run("x86_64", ["-f", "stack"], prog, qemu=("-singlestep",)), "total")[0]
    check("code that writes its own page, one instruction to a block: 5004", lanes(single)[0] == 5004, single)
    check("code that writes its own page runs, counted between its due and twice that",
          5004 <= lanes(row)[0] <= 10100, row)


for test in (test_counted, test_interrupted_repetitions, test_reference, test_taken, test_together, test_described, test_labelled,
             test_stack, test_frames, test_landings, test_accesses, test_exec, test_phantom, test_mispredicted, test_self_modifying):
    test()
end()
