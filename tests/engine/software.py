#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs as the distribution ships them, unmodified: a program of another instruction set and its C library, perl,
python3, git and node of the host on machine x86, a make -j2 of a small project with every compiler that it starts. What is
not installed is skipped. A busybox of another set: QUIPU_BUSYBOX names its file (tests/engine/README.md). TAP on standard output."""
import os
import re
import shutil
import subprocess

from tap import TMP, check, end, skip

QUIPU, GUESTS = os.environ["QUIPU"], os.environ["QUIPU_GUEST_DIR"]
ENV = {"PATH": "/usr/bin:/bin", "QUIPU_PLUGIN": os.environ["PLUGIN"], "HOME": "/nonexistent", "LC_ALL": "C"}


def run(*command):
    return subprocess.run(command, env=ENV, cwd=TMP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=250)


def stat(*command, machine=()):
    """(instructions, their label, standard output, all of it)"""
    out = run(QUIPU, "stat", *machine, "-x,", "-e", "instructions:u", "--", *command)
    row = re.search(r"^(\d+),,instructions:u,.*,(\w+)$", out.stderr, re.MULTILINE)
    return (int(row[1]), row[2], out.stdout, out) if row else (0, "", out.stdout, out)


def foreign():
    """A dynamic program, and the C library of a package run as the program that it also is."""
    root = "/usr/riscv64-linux-gnu"
    n, label, said, out = stat(f"{GUESTS}/realistic-dynamic.riscv64", "1")
    plain = run("qemu-riscv64", "-L", root, f"{GUESTS}/realistic-dynamic.riscv64", "1")
    check("a dynamic riscv64 program against the C library of the package: its output, and exact counts",
          n > 10000 and label == "exact" and said == plain.stdout and out.returncode == plain.returncode, out)
    for path in (f"{root}/lib/libc.so.6", "/usr/powerpc64le-linux-gnu/lib/libc.so.6"):
        if not os.path.exists(path):
            skip(f"{path} as a program", "not installed")
            continue
        program = f"{TMP}/libc"
        shutil.copy(path, program)
        os.chmod(program, 0o755)
        n, label, said, out = stat(program)
        check(f"{path}, run as a program, tells its version", n > 1000 and label == "exact" and "GNU C Library" in said, out)


def busybox():
    path = os.environ.get("QUIPU_BUSYBOX", "")
    if not os.access(path, os.X_OK):
        skip("busybox of another instruction set", "QUIPU_BUSYBOX names none")
        return
    with open(f"{TMP}/text", "w", encoding="utf-8") as f:
        f.write("".join(f"{i * 7919 % 1000}\n" for i in range(1000)))
    n, label, said, out = stat(path, "sh", "-c", "sort -n text | uniq | tail -n 1; echo $((6*7)); sha1sum text | wc -c")
    check("busybox of another instruction set: a shell, its pipes, its tools", said.split() == ["999", "42", "47"] and
          n > 1000000 and label == "exact", out)


SCRIPTS = (
    ("perl", "perl", ["-e", 'my %h; $h{$_ % 97}++ for 1..5000; print scalar(keys %h), "\\n"'], "97\n"),
    ("python3", "/usr/bin/python3", ["-c", "print(sum(i * i for i in range(20000)))"], f"{sum(i * i for i in range(20000))}\n"),
    ("node", "node", ["-e", "let s = 0; for (let i = 0; i < 100000; i++) s += i % 7; console.log(s)"],
     f"{sum(i % 7 for i in range(100000))}\n"),
)


def scripts():
    for name, program, words, wanted in SCRIPTS:
        path = shutil.which(program, path=ENV["PATH"])
        if not path:
            skip(f"{name} on machine x86", f"no {name} here")
            continue
        n, label, said, out = stat(path, *words, machine=("-m", "x86"))
        check(f"{name} on machine x86: its output, and exact counts", said == wanted and n > 500000 and label == "exact", out)


def chains():
    """Case 22: in programs of this size, too, every return is matched: chains end where programs begin."""
    path = shutil.which("perl", path=ENV["PATH"])
    if not path:
        skip("call chains of perl", "no perl here")
        return
    made = run(QUIPU, "record", "-m", "x86", "-g", "-e", "instructions:u", "-c", "20011", "-o", "perl.data", "--", path, "-e",
               'my %h; for my $i (1..3000) { $h{"k" . $i % 300} .= "x"; } print length(join("", sort values %h)), "\\n"')
    out = run(QUIPU, "script", "-i", "perl.data", "-F", "ip,sym")
    samples = [re.findall(r"^\s+([0-9a-f]+)", block, re.MULTILINE) for block in out.stdout.split("\n\n") if block.strip()]
    ends = [c[-1] for c in samples if 3 < len(c) < 120]
    often = max(map(ends.count, set(ends)), default=0)
    # Two begin: the loader, and the program that it jumps to.
    check("perl: the call chain of each sample begins at the start of the loader or of the program",
          made.returncode == 0 and len(ends) > 30 and len(set(ends)) <= 3 and often > len(ends) // 2,
          f"{made.stderr}{len(ends)} of {len(samples)}: {sorted(set(ends))[:8]}")


def git():
    if not shutil.which("git", path=ENV["PATH"]):
        skip("git on machine x86", "no git here")
        return
    script = ("git init -q r && cd r && echo one > f && git add f && "
              "git -c user.name=a -c user.email=a@b commit -q -m m && git log --oneline | wc -l")
    n, label, said, out = stat("/bin/sh", "-c", script, machine=("-m", "x86"))
    check("git on machine x86: a repository, a commit, and its log", said.strip() == "1" and n > 1000000 and label == "exact", out)


def project():
    if not shutil.which("make", path=ENV["PATH"]) or not shutil.which("gcc", path=ENV["PATH"]):
        skip("make -j2 of a small project", "no make or no gcc here")
        return
    files = {"Makefile": "all: prog\nprog: a.o b.o\n\tgcc -o $@ a.o b.o\n%.o: %.c\n\tgcc -O1 -c -o $@ $<\n",
             "a.c": "int b(int);\nint main(void) { return b(3) - 6; }\n", "b.c": "int b(int x) { return 2 * x; }\n"}
    for name, text in files.items():
        with open(f"{TMP}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    made = run(QUIPU, "record", "-m", "x86", "-e", "instructions:u", "-c", "10007", "-o", "make.data", "--", "make", "-j2")
    names = {line.strip() for line in run(QUIPU, "script", "-i", "make.data", "-F", "comm").stdout.splitlines()}
    check("make -j2: the project is built, by compilers that run under the engine", made.returncode == 0 and
          os.path.exists(f"{TMP}/prog") and subprocess.run([f"{TMP}/prog"], check=False).returncode == 0, made)
    check("make -j2: every program that it started is there", {"make", "gcc", "cc1", "as", "collect2", "ld"} <= names, names)
    check("make -j2: the whole is exact", "exact" in made.stderr and "not whole" not in made.stderr, made.stderr)


for part in (foreign, busybox, scripts, chains, git, project):
    part()
end()
