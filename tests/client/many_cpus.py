# SPDX-License-Identifier: BSD-2-Clause
"""Machines much larger than the host: 2,000 CPUs are opened, counted and closed by the stock perf; where the host's limit
of descriptors is too low for that, it is said."""
import os
import re
import resource
import shutil
import subprocess
import time

from harness import GUESTS, QUIPU, equal, main, need_namespace, test

if not shutil.which("perf"):
    print("1..0 # SKIP perf is not installed")
    raise SystemExit(0)

CPUS = 2000
GUEST = os.path.join(GUESTS, "true.riscv64")


def machine(work):
    """The shipped machine riscv's PMU under 2,000 harts without caches."""
    with open(os.path.join(os.environ["QUIPU_SOURCE"], "machines", "riscv.dts"), encoding="utf-8") as f:
        pmu = f.read().partition("\tpmu {")[2].rsplit("};", 1)[0]
    pmu = re.sub(r"interrupts-extended = [^;]*;", "", pmu)
    harts = "".join(f"""cpu@{i:x} {{ device_type = "cpu"; compatible = "riscv"; reg = <{i}>; clock-frequency = <1000000000>;
        riscv,isa = "rv64imafdc_zicntr_zicsr_zifencei_zihpm_sscofpmf_smcntrpmf"; quipu,hpm-mask = <0xfff8>;
        quipu,hpm-width = <48>; }};\n""" for i in range(CPUS))
    path = work.path("large.dts")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"""/dts-v1/; / {{ #address-cells = <2>; #size-cells = <2>; compatible = "quipu,riscv";
        memory@80000000 {{ device_type = "memory"; reg = <0 0x80000000 1 0>; }};
        cpus {{ #address-cells = <1>; #size-cells = <0>; timebase-frequency = <10000000>; {harts} }}; pmu {{{pmu} }};""")
    return path


def perf_stat(path, limit, *before):
    def limits():
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[0], limit[1] if limit[1] else hard))
    return subprocess.run([*before, QUIPU, "exec", "-m", path, "--", "perf", "stat", "-x,", "-a", "-e", "instructions,cycles",
                           GUEST], capture_output=True, text=True, timeout=120, check=False, preexec_fn=limits)


@test("perf stat -a of 2,000 CPUs counts what quipu stat counts, with a soft limit of 1,024 descriptors")
def large(work):
    path, start = machine(work), time.monotonic()
    done = perf_stat(path, (1024, None))
    equal(done.returncode, 0, done.stderr)
    assert time.monotonic() - start < 60, "it does not finish in seconds"
    own = subprocess.run([QUIPU, "stat", "-m", path, "-x,", "-e", "instructions", GUEST], capture_output=True, text=True,
                         timeout=60, check=True).stderr
    count = {line.split(",")[2]: line.split(",")[0] for line in done.stderr.splitlines() if line.count(",") > 3}
    want = next(line.split(",")[0] for line in own.splitlines() if ",instructions," in line)
    equal(count["instructions"], want, "instructions")


@test("where the hard limit is too low, whose limit it is is said")
def limited(work):
    need_namespace(work)  # perf counts the CPUs of the machine
    if not shutil.which("setpriv"):
        return
    before = ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"] if os.geteuid() == 0 else []
    done = perf_stat(machine(work), (1024, 1024), *before)
    assert done.returncode and re.search(r"quipu: the machine has \d+ events open and no descriptor left", done.stderr), done.stderr


main()
