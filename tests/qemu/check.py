#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""check.py MODEL IMAGE MACHINE.dtb README.md: the bare driver of this folder on the model and on QEMU with OpenSBI.

On the model every step gets what driver.c wants. On QEMU the steps that get something else are those of the table in the
room's README, with the same results, no more and no less. TAP on standard output.
"""
import re
import shutil
import subprocess
import sys
import time

# -icount: an instruction is a nanosecond of QEMU's time, its cycle and its count. Without it all three are the host's clock,
# and a host that is busy, or faster than its clock, would have a say in what the driver sees.
QEMU = ["qemu-system-riscv64", "-M", "virt", "-cpu", "rv64,sscofpmf=true", "-icount", "shift=0", "-m", "128M", "-nographic",
        "-monitor", "none", "-bios", "default", "-kernel"]
LIMIT = 60  # seconds


def results(text):
    """{step: (got, want)} of the driver's lines, and whether it came to its end."""
    rows, ended = {}, False
    for line in text.replace("\r", "").splitlines():
        step = re.fullmatch(r"(.+): (-?\d+) want (-?\d+)", line)
        if step:
            assert step.group(1) not in rows, f"two steps are called {step.group(1)!r}"
            rows[step.group(1)] = (int(step.group(2)), int(step.group(3)))
        ended = ended or line == "end"
    return rows, ended


def documented(readme):
    """{step: (QEMU's result, wanted)} of the README's table; a cell may name several steps, with semicolons between."""
    rows = {}
    with open(readme, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 4 and re.fullmatch(r"-?\d+", cells[1]) and re.fullmatch(r"-?\d+", cells[2]):
                for name in cells[0].split(";"):
                    rows[name.strip()] = (int(cells[2]), int(cells[1]))
    return rows


def report(number, name, problems, skip=None):
    print(f"{'not ok' if problems else 'ok'} {number} - {name}" + (f" # SKIP {skip}" if skip else ""))
    for line in problems:
        print("# " + line)
    return not problems


def on_model(program, machine):
    done = subprocess.run([program, machine], capture_output=True, text=True, timeout=LIMIT, check=False)
    rows, ended = results(done.stdout)
    problems = [f"{name}: {got}, want {want}" for name, (got, want) in rows.items() if got != want]
    if done.returncode or not ended or len(rows) < 100:
        problems.append(f"status {done.returncode}, {len(rows)} steps, {'ended' if ended else 'no end'}: {done.stderr}")
    return rows, problems


def on_qemu(image):
    start = time.monotonic()
    try:
        done = subprocess.run(QEMU + [image], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False)
        text, error = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        text, error = (late.stdout or b"").decode(errors="replace"), f"not at its end after {LIMIT} s"
    rows, ended = results(text)
    problems = [] if ended else [f"no end after {time.monotonic() - start:.1f} s: {error}", *text.splitlines()[-5:]]
    return rows, problems, "begin OpenSBI 1.1" in text


def compare(model, qemu, table):
    problems = [f"only one of the two has step {name}" for name in model.keys() ^ qemu.keys()]
    differing = {name: row for name, row in qemu.items() if row[0] != row[1]}
    for name in differing.keys() - table.keys():
        problems.append(f"{name}: {differing[name][0]}, want {differing[name][1]}, and the README does not say so")
    for name, row in table.items():
        if differing.get(name) != row:
            problems.append(f"the README says {name} gives {row[0]} for {row[1]}; it gives {qemu.get(name)}")
    return problems


def main(program, image, machine, readme):
    names = ["the driver gets from the model what it wants at every step",
             "the same source as an S-mode image runs on qemu-system-riscv64 to its end",
             "its results differ where the room's README says, and nowhere else"]
    print(f"1..{len(names)}", flush=True)
    model, problems = on_model(program, machine)
    good = report(1, names[0], problems)
    if not shutil.which(QEMU[0]):
        for number in (2, 3):
            report(number, names[number - 1], [], f"{QEMU[0]} is not installed (qemu-system-misc)")
        return 0 if good else 1
    qemu, problems, known = on_qemu(image)
    good = report(2, names[1], problems) and good
    if known:
        good = report(3, names[2], compare(model, qemu, documented(readme))) and good
    else:
        report(3, names[2], [], "the table is OpenSBI 1.1's, and this is another firmware")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
