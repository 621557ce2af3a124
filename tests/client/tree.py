# SPDX-License-Identifier: BSD-2-Clause
"""What is written into the machine's files takes effect, as a kernel's would: CPUs taken offline and online, cpumasks that
move, the interval of multiplexing, sysctls. perf ABI sheet A17, D6 13, 19, 53."""
import os
import platform
import shutil
import subprocess

from harness import GUESTS, QUIPU, Skip, equal, holds, main, need_namespace, test

# becomes FILE WORD: waits until the machine has taken or refused what was written.
SHELL = """
becomes() { for i in $(seq 200); do [ "$(cat $1)" = "$2" ] && return; sleep 0.05; done; echo "$1: $(cat $1), not $2"; exit 1; }
cpus=/sys/devices/system/cpu kernel=/proc/sys/kernel pmu=/sys/bus/event_source/devices/cpu
"""


def inside(script, machine="riscv", options=()):
    done = subprocess.run([QUIPU, "exec", "-m", machine, *options, "--", "sh", "-ec", SHELL + script], capture_output=True,
                          text=True, timeout=120, check=False)
    equal(done.returncode, 0, f"{script}: {done.stdout}{done.stderr}")
    return done.stdout


@test("a CPU that is taken offline leaves the lists, takes no event, and comes back")
def offline(work):
    need_namespace(work)
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    out = inside("""
becomes $cpus/online 0-7
echo 0 > $cpus/cpu3/online; becomes $cpus/online 0-2,4-7; becomes $cpus/offline 3
perf stat -C 3 -e instructions true 2>&1 | grep -c 'No such device\\|not a valid\\|out of range' || true
perf stat -a -A -x, -e instructions true 2>&1 | grep -c '^CPU'
echo 1 > $cpus/cpu3/online; becomes $cpus/online 0-7
perf stat -a -A -x, -e instructions true 2>&1 | grep -c '^CPU'
""")
    equal(out.split()[1:], ["7", "8"], "CPUs that perf opens")


@test("the last CPU stays online, and a refusal says why")
def last(work):
    need_namespace(work)
    done = subprocess.run([QUIPU, "exec", "-v", "-m", "vtd", "--", "sh", "-ec", SHELL + """
for n in 1 2 3; do echo 0 > $cpus/cpu$n/online; becomes $cpus/cpu$n/online 0; done
echo 0 > $cpus/cpu0/online; becomes $cpus/cpu0/online 1; becomes $cpus/online 0
echo 1 > $cpus/cpu2/online; becomes $cpus/online 0,2
echo 0 > $cpus/cpu0/online; becomes $cpus/online 2
"""], capture_output=True, text=True, timeout=120, check=False)
    equal(done.returncode, 0, f"{done.stdout}{done.stderr}")
    equal([line for line in done.stderr.split("\n") if "EBUSY" in line],
          ["quipu: /sys/devices/system/cpu/cpu0/online: EBUSY: it is the last CPU; take another one online first"], "the refusal")


@test("the cpumask of a nest moves to another CPU of its chip")
def cpumask(work):
    need_namespace(work)
    inside("""
mask=$(ls -d /sys/bus/event_source/devices/nest_* | head -n 1)/cpumask
becomes $mask 0,16
echo 0 > $cpus/cpu0/online; becomes $cpus/online 1-31
case $(cat $mask) in 0*) cat $mask; exit 1;; esac
""", machine="power9")


@test("/proc/interrupts has the row of the machine's kernel, and counts its interrupts; none where it would ask for none")
def interrupts(work):
    need_namespace(work)
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    rows = ("riscv", " 13: ", 8, "RISC-V INTC  13 Edge      riscv-pmu", os.path.join(GUESTS, "recurse.riscv64")),
    if platform.machine() == "x86_64" and shutil.which("qemu-x86_64"):
        rows += ("x86", "PMI: ", 8, "Performance monitoring interrupts", "true"),
    for machine, label, cpus, text, program in rows:
        out = inside(f"""
cat /proc/interrupts
perf record -q -o {work.path("perf.data")} -e instructions -c 10000 {program} > /dev/null
samples=$(perf script -i {work.path("perf.data")} -F event 2> /dev/null | grep -c instructions)
echo samples $samples
for i in $(seq 200); do grep -q " $samples  *0" /proc/interrupts && break; sleep 0.05; done
cat /proc/interrupts""", machine).split("\n")
        equal(out[0].split(), [f"CPU{n}" for n in range(cpus)], f"{machine}: {out}")
        equal([out[1][:5], out[1][5:5 + 11 * cpus].split(), out[1][5 + 11 * cpus:].strip()], [label, ["0"] * cpus, text], machine)
        samples = out[2].split()[1]
        holds(int(samples) > 10, out)
        equal(out[4][5:5 + 11 * cpus].split(), [samples] + ["0"] * (cpus - 1), f"{machine}: interrupts")
    for machine in "riscv-u74", "vtd":
        equal(len(inside("cat /proc/interrupts", machine).splitlines()), 1, f"{machine}: rows")


@test("an interval of multiplexing is taken, and 0 is refused")
def interval(work):
    need_namespace(work)
    inside("""
echo 8 > $pmu/perf_event_mux_interval_ms; becomes $pmu/perf_event_mux_interval_ms 8
echo 0 > $pmu/perf_event_mux_interval_ms; becomes $pmu/perf_event_mux_interval_ms 8
echo nonsense > $cpus/cpu3/online; becomes $cpus/cpu3/online 1
""")


@test("sysctls take effect: the highest frequency, and what is no number")
def sysctls(work):
    need_namespace(work)
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    out = inside("""
echo 1000 > $kernel/perf_event_max_sample_rate
echo nothing > $kernel/perf_event_max_stack; becomes $kernel/perf_event_max_stack 127
perf record -F 20000 -o /dev/null -e cycles true 2>&1 | grep -c 'Maximum frequency rate (1'
""")
    equal(out.split(), ["1"], "perf is told")


@test("--no-ns: the files below SYSFS_PATH are watched as well")
def no_namespace(work):
    inside("""
cpus=$SYSFS_PATH/devices/system/cpu
echo 0 > $cpus/cpu2/online; becomes $cpus/online 0-1,3-7
""", options=("--no-ns",))


main()
