# SPDX-License-Identifier: BSD-2-Clause
"""What clients see of the machine's files and name: the same below a mount namespace and, through the preload library's
paths, without one; and what is left on when nobody counts any more. perf ABI sheet C2."""
import os
import subprocess
import sys

from harness import GUESTS, QUIPU, equal, main, need_namespace, test

GUEST = os.path.join(GUESTS, "true.riscv64")


def run(work, *words, check=0, timeout=120, **kw):
    done = subprocess.run(list(words), cwd=work.folder, capture_output=True, text=True, timeout=timeout, check=False,
                          errors="replace", **kw)
    assert done.returncode == check, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


SHELL = r"""
nproc; getconf _NPROCESSORS_ONLN; cat /sys/devices/system/cpu/online
ls /sys/bus/event_source/devices; ls -d /sys/devices/system/cpu/cpu[0-9]*
cd /sys/bus/event_source/devices/cpu && pwd && ls && read t < type && echo $t; cd /
for f in /sys/bus/event_source/devices/cpu/type /sys/bus/event_source/devices/nothing /sys/devices/system/node/node0 /proc/cpuinfo; do
    test -e $f && echo $f; test -d $f && echo folder; test -r $f && echo readable
done
cat /proc/cpuinfo /proc/sys/kernel/perf_event_paranoid; readlink -f /sys/devices/system/cpu/cpu0/topology
stat -c %n:%F /sys//devices/./system/cpu/possible; grep -c processor /proc/cpuinfo; find /sys/bus/event_source/devices/cpu/format | sort
perf stat -x, -e instructions,cpu/branches-taken/ """ + GUEST + r""" 2>&1
"""

PYTHON = r"""
import glob, os
print(sorted(os.listdir("/sys/bus/event_source/devices/cpu/events")), os.path.realpath("/sys/devices/system/cpu/cpu1"), os.cpu_count())
print(sorted(e.name for e in os.scandir("/sys/devices/system/cpu")), os.path.isdir("/sys/devices/system/node"))
print(open("/proc/cpuinfo").read(), os.stat("/sys/bus/event_source/devices/cpu/type").st_size, os.access("/sys/devices/system/cpu/online", os.W_OK))
d = os.open("/sys/bus/event_source/devices", os.O_RDONLY | os.O_DIRECTORY)
print(open(os.open("cpu/type", os.O_RDONLY, dir_fd=d)).read(), os.path.exists("/sys/class/net"), os.path.exists("/proc/self/maps"))
os.chdir("/sys/devices/system/cpu"); print(os.getcwd(), glob.glob("cpu7"))
try: open("/sys/bus/event_source/devices/cpu/nothing")
except OSError as e: print(e.errno)
"""

# That the files are the machine's, whether or not a namespace can be made to compare with.
SHELL_OWN = "8\n8\n0-7\ncpu\nsoftware\n"


def both(work, *words):
    without = run(work, QUIPU, "exec", "-m", "riscv", "--no-ns", "--", *words)
    need_namespace(work)
    equal(without, run(work, QUIPU, "exec", "-m", "riscv", "--", *words), "without and with a namespace")
    return without


@test("a shell and its commands see the machine without a namespace")
def shell(work):
    got = run(work, QUIPU, "exec", "-m", "riscv", "--no-ns", "--", "bash", "-c", SHELL)
    assert got.startswith(SHELL_OWN), got[:200]
    both(work, "bash", "-c", SHELL)


@test("Python sees the machine without a namespace")
def python(work):
    both(work, sys.executable, "-c", PYTHON)


@test("no file of the machine's is left when the command has ended")
def removed(work):
    run(work, QUIPU, "exec", "-m", "riscv", "--no-ns", "--", "true", env=dict(os.environ, TMPDIR=work.folder))
    equal([f for f in os.listdir(work.folder) if "quipu-tree" in f], [], "what is left")


@test("uname names the machine; with the host's events it is the host's")
def names(work):
    for machine, name in (("riscv", "riscv64"), ("power9", "ppc64le"), ("rock", "sparc64"), ("x86", "x86_64")):
        equal(run(work, QUIPU, "exec", "-m", machine, "--", "uname", "-m"), name + "\n", machine)
    equal(run(work, QUIPU, "exec", "--host-events", "--", "uname", "-m"), os.uname().machine + "\n", "--host-events")


@test("a descriptor of a program of the machine's is run as its name is")
def by_descriptor(work):
    code = f"import os; os.execve(os.open({GUEST!r}, os.O_RDONLY), ['it'], os.environ)"
    run(work, QUIPU, "exec", "-m", "riscv", "--", sys.executable, "-c", code)


@test("models and call stacks are off again when the last event is closed")
def models_rest(work):
    code = rf"""
import os, signal, subprocess, time
def features(): return int(subprocess.run([os.environ["QUIPU_FEATURES"], os.environ["QUIPU_GATE"]], capture_output=True, text=True).stdout)
def count(events): return subprocess.run(["perf", "stat", "-x,", "-e", events, {GUEST!r}], capture_output=True, text=True).stderr
before = features()
def settled(done):  # the machine hears of a close a little later
    for _ in range(1200):
        if done(): break
        time.sleep(0.05)
    return features()
first = count("L1-dcache-load-misses,branch-misses")
rest = settled(lambda: features() == before)
subprocess.run(["perf", "record", "-q", "-g", "-o", "/dev/null", "-e", "instructions", {GUEST!r}])
print(before, rest, settled(lambda: features() == before), [l.split(",")[0] for l in first.splitlines()] == [l.split(",")[0] for l in count("L1-dcache-load-misses,branch-misses").splitlines()])
open_one = subprocess.Popen(["perf", "stat", "-a", "-e", "L1-dcache-load-misses", "sleep", "100"], stderr=subprocess.DEVNULL, start_new_session=True)
assert settled(lambda: features() != before) != before
os.killpg(open_one.pid, signal.SIGKILL); open_one.wait()
"""
    got = run(work, QUIPU, "exec", "-m", "riscv", "--", sys.executable, "-c", code).split()
    equal(got, [got[0], got[0], got[0], "True"], "features before, after perf stat, after perf record -g; the same counts again")


main()
