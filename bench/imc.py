#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""imc.py QUIPU PROGRAM POWER9.dtb [ROUNDS]: what a sample costs, by interrupt and in trace mode, at one rate.

CPU time is user + system of the whole command, engine and machine together (wait4(2): quipu waits for the engine). The
machine is power9 at 100 MHz instead of 3 GHz: a trace record is written every 251 ticks of 32 MHz, which are 784 cycles
then, dense enough to be measured; the interrupt of the core PMU comes at the same distance. What the same program costs
when it is only counted is taken off. The three run in turn; of each the run that took least is taken, for whatever else
the host does only adds. Of the records in memory the driver delivers as samples what the next one has not overwritten:
both are told, for each is what somebody pays for. Everything printed is the host's time.
"""
import os
import re
import subprocess
import sys
import tempfile

PERIOD = 784  # 251 * 100 / 32
HZ = (3000000000, 100000000)
EVENTS = {
    "counted": ["stat", "-e", "cycles"],
    "interrupt": ["record", "-e", "cycles", "-c", str(PERIOD), "-o", "{data}"],
    "trace": ["record", "-e", "trace_imc/trace_cycles/", "-o", "{data}"],
}


def run(quipu, program, machine, what, folder):
    """(CPU seconds, samples taken, samples delivered)."""
    command = [quipu, EVENTS[what][0], "-m", machine]
    command += [w.format(data=os.path.join(folder, "perf.data")) for w in EVENTS[what][1:]] + ["--"] + program
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: status {child.returncode}\n{text}")
    delivered = re.search(r"\((\d+) samples", text)
    taken = re.search(r"trace_imc: (\d+) records written", text) or delivered
    return (usage.ru_utime + usage.ru_stime, int(taken.group(1)) if taken else 0,
            int(delivered.group(1)) if delivered else 0)


def main(argv):
    quipu, program, rounds = argv[1], [argv[2], "2"], int(argv[4]) if len(argv) > 4 else 5
    seconds = {what: [] for what in EVENTS}
    samples = {}
    with tempfile.TemporaryDirectory(prefix="quipu-bench-") as folder:
        machine = os.path.join(folder, "power9-100mhz.dtb")
        with open(argv[3], "rb") as tree, open(machine, "wb") as slow:
            slow.write(tree.read().replace(HZ[0].to_bytes(4, "big"), HZ[1].to_bytes(4, "big")))
        for _ in range(rounds):
            for what in EVENTS:
                cpu, *samples[what] = run(quipu, program, machine, what, folder)
                seconds[what].append(cpu)
    least = {what: min(values) for what, values in seconds.items()}
    each = {}
    print(f"imc: CPU time of engine and machine for each sample, beside counting alone (host; least of {rounds} runs)")
    for what in ("interrupt", "trace"):
        taken, delivered = samples[what]
        each[what] = (least[what] - least["counted"]) / taken
        print(f"  by {what:<10} {each[what] * 1e6:6.3f} us   {taken} taken, {delivered} delivered")
    print(f"  counting alone: {least['counted']:.3f} s; by interrupt {least['interrupt']:.3f} s, trace {least['trace']:.3f} s")
    if each["trace"] > 0:
        print(f"  a sample by interrupt costs {each['interrupt'] / each['trace']:.1f} times one of trace mode")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
