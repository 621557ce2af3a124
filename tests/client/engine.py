# SPDX-License-Identifier: BSD-2-Clause
"""Clients that measure themselves, on the machine x86: under the engine (exec --engine) their counts and overflows are
exact; natively their CPU time counts. perf ABI sheet B11, D6 99."""
import os
import platform
import re
import shutil
import subprocess

from harness import QUIPU, Skip, equal, main, need_namespace, test

OVERFLOW = os.environ["QUIPU_OVERFLOW"]
PAPI = os.environ.get("QUIPU_PAPI")

if platform.machine() != "x86_64" or not shutil.which("qemu-x86_64"):
    print("1..0 # SKIP the host's own programs are none of the machine x86, or there is no qemu-x86_64")
    raise SystemExit(0)


def on_x86(*words, options=("--engine",), check=0):
    done = subprocess.run([QUIPU, "exec", "-m", "x86", *options, "--", *words], capture_output=True, text=True, timeout=240,
                          check=False)
    assert done.returncode == check, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@test("a signal, and a sample, for each overflow of an event of one's own")
def overflows(work):
    for kind, config, period in ((0, 1, 100000), (0, 0, 333333), (0, 4, 70001), (4, 0xC0, 250000)):
        value, signals, head, strange = map(int, on_x86(OVERFLOW, str(kind), str(config), str(period)).stdout.split())
        assert value > 2000000, value
        equal(signals, value // period, f"signals of {value} by {period}")
        equal(head, signals * 16, "bytes of samples")
        equal(strange, 0, "signals of another descriptor, or of another kind")


@test("a rerun counts the same")
def rerun(work):
    a, b = (int(on_x86(OVERFLOW, "0", "1", "100000").stdout.split()[0]) for _ in range(2))
    # Process numbers are not the same, and their digits are written and read.
    assert abs(a - b) < 1000, (a, b)


@test("a program of another instruction set is refused by name, and one that is not there")
def refused(work):
    done = on_x86("/nonexistent/program", check=126)
    assert "/nonexistent/program" in done.stderr, done.stderr


@test("PAPI: overflow callbacks are the count divided by the threshold")
def papi_overflow(work):
    need_namespace(work)  # PAPI reads /sys by itself
    if not PAPI:
        raise Skip("PAPI's header is not installed")
    for threshold in (100000, 33333):
        value, calls = map(int, on_x86(PAPI, str(threshold)).stdout.split())
        assert value >= 1000000, value
        equal(calls, value // threshold, f"callbacks of {value} by {threshold}")


def command_line(options):
    done = on_x86("papi_command_line", "PAPI_TOT_INS", "PAPI_TOT_CYC", options=options)
    equal("an instruction a cycle, and 0 of other events: modelled" in done.stderr, not options, f"is the label there? {done.stderr}")
    return dict((name, int(n)) for name, n in re.findall(r"^(PAPI_TOT_\w+)\s*:\s*(\d+)", done.stdout, re.M))


@test("papi_command_line: the loop's instructions under the engine, CPU time natively")
def papi_command_line(work):
    if not shutil.which("papi_command_line"):
        raise Skip("papi-tools is not installed")
    exact, native = command_line(("--engine",)), command_line(())
    assert exact["PAPI_TOT_CYC"] > exact["PAPI_TOT_INS"] > 100000000, exact
    assert native["PAPI_TOT_INS"] == native["PAPI_TOT_CYC"] > 1000000, native  # an instruction a cycle


@test("papi_avail and papi_native_avail show the machine's events")
def papi_lists(work):
    if not shutil.which("papi_avail"):
        raise Skip("papi-tools is not installed")
    out = on_x86("papi_avail", options=()).stdout
    assert re.search(r"PAPI_TOT_INS\s+0x\w+\s+Yes", out), out
    assert "Total events reported" in on_x86("papi_native_avail", options=()).stdout


main()
