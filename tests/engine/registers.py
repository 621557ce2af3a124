#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""User registers in samples, where QEMU gives them to plugins (9 or later; QUIPU_QEMU, README.md): those with which the
sampled instruction began, against the same program in Python; that asking for them changes no count and no place. Where
QEMU does not, samples say so as Linux does (abi 0), and the user is told why. TAP on standard output."""
import os
import re
import subprocess

from tap import TMP, check, end, skip

QUIPU, SEGRUN, PLUGIN, GUESTS = (os.environ[k] for k in ("QUIPU", "SEGRUN", "PLUGIN", "ENGINE_GUESTS"))
DATA = f"{TMP}/perf.data"
ROUNDS, PAGE = 64, 4096
# Machine; A, B, C, P of guests/registers.S as perf names them and the pc; what `back` takes off C before it looks.
SETS = {"riscv64": ("riscv", ("s2", "s3", "s4", "s5", "pc"), False), "x86_64": ("x86", ("R12", "R13", "CX", "SI", "IP"), True),
        "ppc64le": ("power9", ("r14", "r15", "ctr", "r17", "nip"), True)}


def env(path):
    return {"PATH": path, "QUIPU_PLUGIN": PLUGIN, "HOME": "/nonexistent"}


def run(path, *command):
    return subprocess.run(command, env=env(path), cwd=TMP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=200)


def version(path, isa):
    """Of the plugin interface that QEMU has; None: there is no such QEMU."""
    try:
        out = run(path, f"qemu-{isa}", "-plugin", f"{PLUGIN},probe=1", "/dev/null").stdout
    except FileNotFoundError:
        return None
    found = re.match(r"quipu-qemu (\d+) ", out)
    return int(found[1]) if found else None


def guest(isa, name="registers"):
    path = f"{GUESTS}/{name}.{isa}"
    return path if os.path.exists(path) else None


def symbols(prog):
    """Of the loop: addresses, of which the one without a name comes before `back`."""
    text = subprocess.run(["nm", prog], stdout=subprocess.PIPE, text=True, check=True).stdout
    at = {line.split()[2]: int(line.split()[0], 16) for line in text.splitlines()}
    return [at["add"], at["double"], at["load"], None, at["back"]], at["ring"]


def samples(path, reader, names):
    """[(ip, {register: value})]"""
    out = run(path, *reader, "script", "-i", DATA, "-F", "ip,uregs").stdout
    found = []
    for line in out.splitlines():
        words = line.split()
        if words:
            values = dict(re.findall(r"(\w+):0x([0-9a-f]+)", " ".join(words[1:])))
            found.append((int(words[0], 16), {name: int(values[name], 16) for name in names if name in values}))
    return found


def began(isa, i, step, ring):
    """A, B, C, P when instruction @step of round @i begins; None: not known."""
    a = 5 * i + (5 if step > 0 else 0)
    b = (10 * i if i else None) if step < 2 else 10 * i + 10
    c = ROUNDS - i - (1 if step == 4 and not SETS[isa][2] else 0)
    return a, b, c, ring + PAGE * ((i + (step > 2)) % ROUNDS)


def every_instruction(path, isa):
    machine, names, _ = SETS[isa]
    prog = guest(isa)
    out = run(path, QUIPU, "record", "-m", machine, "-o", DATA, "-e", "instructions:u", "-c", "1", "--user-regs=" + ",".join(names),
              "--", prog)
    got = samples(path, (QUIPU,), names)
    pcs, ring = symbols(prog)
    first = next((k for k, (ip, _) in enumerate(got) if ip == pcs[0]), 0)
    wrong = []
    for k in range(5 * ROUNDS):
        i, step = divmod(k, 5)
        ip, values = got[first + k] if first + k < len(got) else (0, {})
        want = began(isa, i, step, ring)
        have = tuple(values.get(name) for name in names[:4])
        if (pcs[step] or ip) != ip or values.get(names[4]) != ip or any(w not in (None, h) for w, h in zip(want, have)):
            wrong.append(f"round {i}, {step}: {ip:x} {want} {values}")
    check(f"{isa}: each instruction is sampled, with the registers with which it began", got and not wrong,
          out.stderr + "\n".join(wrong[:8]))
    check(f"{isa}: and nobody is told that there are none", "registers" not in out.stderr, out.stderr)


def later(path, isa):
    """What is known only behind the instruction: its miss, and whether it was predicted."""
    machine, names, _ = SETS[isa]
    prog = guest(isa)
    pcs, ring = symbols(prog)
    for event, step in (("L1-dcache-load-misses:u", 2), ("branch-misses:u", 4)):
        out = run(path, QUIPU, "record", "-m", machine, "-o", DATA, "-e", event, "-c", "1", "--user-regs", "--", prog)
        got = [(ip, values) for ip, values in samples(path, (QUIPU,), names) if ip == pcs[step]]
        wrong = []
        for k, (ip, values) in enumerate(got):
            i = values.get(names[0], -5) // 5 - 1
            want = began(isa, k if step == 2 else i, step, ring)
            if want != tuple(values.get(name) for name in names[:4]):
                wrong.append(f"{ip:x} {want} {values}")
        check(f"{isa}: {event}: so it is where that is known later", len(got) >= (ROUNDS if step == 2 else 5) and not wrong,
              out.stderr + "\n".join(wrong[:8]))


def records(path, isa, prog, regs, options, *args):
    out = f"{TMP}/out"
    subprocess.run([SEGRUN, "-o", out, *(("-f", "regs") if regs else ()), *options, PLUGIN, f"qemu-{isa}", prog, *args], env=env(path),
                   stdout=subprocess.DEVNULL, timeout=200, check=True)
    with open(out, encoding="utf-8") as f:
        # Whether SP lies here or there is the host's kernel's choice.
        return [re.sub(r" addr \w+", "", line) for line in f if line.startswith(("int ", "total "))]


def changes_nothing(path, isa):
    options = ["-f", "stack", "-f", "predict", "-r"]
    for lane in ("loads", "stores", "branches", "taken", "branch-misses"):
        options += ["-l", lane]
    for deadline in ("0:53", "2:31", "3:37", "4:17", "5:7", "6:3"):
        options += ["-p", deadline]
    for name, args in (("recurse", ("12", "2")), ("prime", ("2000", "10")), ("counted-rep", ())):
        prog = guest(isa, name)
        if not prog:
            continue
        plain, with_regs = (records(path, isa, prog, regs, options, *args) for regs in (False, True))
        # The calls that are open end a sample's line; under 10 the start of a program reads random bytes.
        check(f"{isa}: {name}: counts and places are those of a run without registers", len(plain) > 1 and plain == with_regs,
              "\n".join(f"{a}{b}" for a, b in zip(plain, with_regs) if a != b))


def perf(path):
    """The stock perf, whose x86 names the registers of the x86 machine."""
    prog = guest("x86_64")
    pcs, ring = symbols(prog)
    out = run(path, QUIPU, "exec", "-m", "x86", "--", "perf", "record", "-q", "-o", DATA, "-e", "instructions:u", "-c", "1",
              "--user-regs=ip,cx,si,r12", "--", prog)
    got = [(ip, values) for ip, values in samples(path, ("perf",), ("IP", "CX", "SI", "R12")) if ip == pcs[2]]
    want = [(pcs[2], {"IP": pcs[2], "CX": ROUNDS - i, "SI": ring + PAGE * i, "R12": 5 * i + 5}) for i in range(ROUNDS)]
    check("perf record --user-regs under quipu exec, read by perf script", got == want, f"{out.stderr}\n{got[:3]}\n{want[:3]}")
    out = run(path, QUIPU, "exec", "-m", "x86", "--", "perf", "record", "-q", "-o", DATA, "-e", "instructions:u", "-c", "1",
              "--user-regs=ip,flags", "--", prog)
    check("flags, which QEMU does not tell: no registers, and that is said", "FLAGS" in out.stderr and
          not any(values for _, values in samples(path, ("perf",), ("IP",))), out.stderr)


def foreign(path):
    """A program of another set than the machine's: the registers are not the machine's."""
    out = run(path, QUIPU, "record", "-m", "riscv", "-o", DATA, "-e", "instructions:u", "-c", "1", "--user-regs", "--",
              guest("riscv64", "become"), guest("x86_64"))
    check("a program of another set: that its samples have no registers is said", "another instruction set" in out.stderr, out.stderr)


def cannot(path, isa):
    machine, names, _ = SETS[isa]
    out = run(path, QUIPU, "record", "-m", machine, "-o", DATA, "-e", "instructions:u", "-c", "1", "--user-regs", "--", guest(isa))
    got = samples(path, (QUIPU,), names)
    check(f"{isa}: this QEMU gives no registers: samples have none, and why is said", len(got) > 5 * ROUNDS and
          not any(values for _, values in got) and "does not show them to plugins" in out.stderr, out.stderr)


def names(path):
    out = run(path, QUIPU, "record", "-m", "riscv", "-o", DATA, "--user-regs=pc,nonsense", "--", guest("riscv64"))
    check("a register that is none is refused, and those there are named", out.returncode != 0 and "'nonsense'" in out.stderr and
          "s11" in out.stderr, out.stderr)
    if not guest("sparc64", "become"):
        return
    out = run(path, QUIPU, "record", "-m", "rock", "-o", DATA, "--user-regs", "--", guest("sparc64", "become"))
    check("and so are all of a set for which perf has none", out.returncode != 0 and "sparc64" in out.stderr, out.stderr)


def test(path):
    for isa in filter(guest, SETS):
        has = version(path, isa)
        if has is None:
            continue
        if has < 3:
            cannot(path, isa)
            continue
        every_instruction(path, isa)
        later(path, isa)
        changes_nothing(path, isa)
        if isa == "x86_64":
            perf(path)
            if guest("riscv64", "become"):
                foreign(path)


def main():
    usual, other = "/usr/bin:/bin", os.environ.get("QUIPU_QEMU")
    if guest("riscv64"):
        names(usual)
    test(usual)
    if other:
        test(f"{other}:{usual}")
    elif not any((version(usual, isa) or 0) >= 3 for isa in SETS):
        skip("and where QEMU gives registers", "QUIPU_QEMU names no folder with one (README.md)")
    end()


main()
