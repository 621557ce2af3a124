#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""answers.py QUIPU ANSWERS README.md CASES.md SOURCE: one client of the system call, the host's kernel, and a machine.

The steps of answers.c are asked of both. Where the two answer alike it is what the perf ABI sheet wants; where they do
not, the table in the client gate's README says so with the same answers, no more and no less. CASES.md names a test for
each of the sheet's 102 cases, and the test is there. TAP on standard output.
"""
import os
import re
import subprocess
import sys

KERNEL = "6.18."  # whose answers the table has
CASES = 102
LIMIT = 280  # seconds; a quiet host takes two


def answers(words):
    """{step: (got, wanted)}, and what is wrong with the run."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {}, [f"{words[0]}: not at its end after {LIMIT} s"]
    steps = {}
    for line in done.stdout.splitlines():
        m = re.fullmatch(r"(.+): (\S+), want (\S+)", line)
        if m:  # a step that is asked several times: all are one answer
            was = steps.get(m.group(1))
            steps[m.group(1)] = m.groups()[1:] if not was or was[0] == was[1] else was
    problems = [] if done.stdout.endswith("\nend\n") else [f"{words[0]}: status {done.returncode}: {done.stderr.strip()}"]
    return steps, problems


def table(readme):
    """{step: (Linux's answer, the machine's)} of the README's table."""
    rows = {}
    with open(readme, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 4 and re.match(r"(A?\d|D3)", cells[0]):
                for step in cells[0].split(";"):
                    rows[step.strip()] = (cells[1], cells[2])
    return rows


def judge_machine(machine, rows):
    problems = []
    for step, (got, want) in machine.items():
        if got != rows.get(step, (None, want))[1]:
            problems.append(f"{step}: {got}, want {rows.get(step, (None, want))[1]}")
    return problems


def compare(host, machine, rows):
    problems = [f"only one of the two was asked {step!r}" for step in host.keys() ^ machine.keys()]
    differing = {step: (host[step][0], machine[step][0]) for step in host.keys() & machine.keys()
                 if host[step][0] != machine[step][0]}
    for step in differing.keys() - rows.keys():
        problems.append(f"{step}: Linux {differing[step][0]}, the machine {differing[step][1]}; the README does not say so")
    for step, both in rows.items():
        if differing.get(step) != both:
            problems.append(f"{step}: the README says {both}; they answer {differing.get(step, 'alike')}")
    for step, (got, want) in host.items():
        if step not in differing and got != want:
            problems.append(f"{step}: both answer {got}, and the sheet wants {want}")
    return problems


def indexed(cases, source):
    """Each case has a row, and what the row names is in that file: `file`: words of it."""
    seen, problems = set(), []
    with open(cases, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            m = re.fullmatch(r"(\d+)(?:-(\d+))?", cells[0]) if len(cells) == 3 else None
            if not m:
                continue
            seen.update(range(int(m.group(1)), int(m.group(2) or m.group(1)) + 1))
            for name, words in re.findall(r"`([^`]+)`: ([^;]+)", cells[1]):
                path = os.path.join(source, name)
                text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
                if words.strip() not in text:
                    problems.append(f"case {cells[0]}: {name} has no {words.strip()!r}")
            if "`" not in cells[1]:
                problems.append(f"case {cells[0]} names no test")
    missing = sorted(set(range(1, CASES + 1)) - seen)
    return problems + ([f"no row for {missing}"] if missing else [])


def permissions(quipu, program):
    """What is wrong at any level of the machine's own, and why it was not looked at."""
    if os.geteuid():
        return [], "only root can become another"
    problems = []
    for level in ("-1", "0", "1", "2", "3"):
        steps, wrong = answers([quipu, "exec", "-m", "riscv", "--paranoid", level, "--", program, "permissions"])
        problems += wrong + [f"level {level}, {step}: {got}, want {want}" for step, (got, want) in steps.items() if got != want]
        if len(steps) != 6 and not wrong:
            problems.append(f"level {level}: {len(steps)} steps")
    return problems, None


def report(number, name, problems, skip=None):
    print(f"{'not ok' if problems else 'ok'} {number} - {name}" + (f" # SKIP {skip}" if skip else ""), flush=True)
    for line in problems:
        print("# " + line)
    return not problems


def main(quipu, program, readme, cases, source):
    print("1..5", flush=True)
    quipu, program = os.path.abspath(quipu), os.path.abspath(program)
    rows, level = table(readme), "2"
    good = report(1, "every case of the sheet has a test", indexed(cases, source))
    try:
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            level = file.read().strip()
    except OSError:
        pass
    level = level if level in ("-1", "0", "1", "2", "3") else "2"
    on = [quipu, "exec", "-m", "riscv", "--host-events", "--paranoid", level, "--", program]
    machine, problems = answers(on)
    if len(machine) < 180:
        problems.append(f"{len(machine)} steps")
    good = report(2, "a machine answers what the sheet wants, or what the README says", problems + judge_machine(machine, rows)) and good
    good = report(3, "every cell of the permission table, for an ordinary user, at each level", *permissions(quipu, program)) and good
    host, problems = answers([program])
    if not host:
        report(4, "this host's kernel answers, too", [], "it gives no software events: " + " ".join(problems))
        report(5, "the two answer alike but where the README says otherwise", [], "there is nothing to compare with")
        return 0 if good else 1
    good = report(4, "this host's kernel answers, too", problems) and good
    if os.uname().release.startswith(KERNEL):
        good = report(5, "the two answer alike but where the README says otherwise", compare(host, machine, rows)) and good
    else:
        report(5, "the two answer alike but where the README says otherwise", [],
               f"the table is that of Linux {KERNEL[:-1]}, and this is {os.uname().release}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
