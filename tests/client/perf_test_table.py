#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf_test_table.py QUIPU [ENTRY...]: the stock perf's own tests, natively and on a machine, side by side.

Runs `perf test` twice, plainly and in `quipu exec -m riscv --host-events`, and prints entry, native result, result
under quipu, where they differ, and why an entry is not Ok under quipu. Exit status 1 when an entry that is
Ok natively fails under quipu and no reason is known here. perf ABI sheet C5.
"""
import os
import re
import shutil
import subprocess
import sys

# What cannot pass on a modelled machine, or whose outcome is no judgement of it.
CPU_NUMBERS = "tracepoints of the host on CPU numbers that only the machine has"
KERNEL = "wants the kernel's symbols (vmlinux), which are not installed"
SOURCES = "wants the kernel's sources to compile against, which are not installed"
LEFT_OUT = "was left out when this perf was built"
REASONS = {
    "Detect openat syscall event on all cpus": CPU_NUMBERS,
    "mmap interface tests / Read samples using the mmap interface": CPU_NUMBERS,
    "syscalls:sys_enter_openat event fields": CPU_NUMBERS,
    "Read backward ring buffer": CPU_NUMBERS,
    "mmap interface tests / User space counter reading of instructions": "an instruction reads the host's counters: cap_user_rdpmc is 0",
    "mmap interface tests / User space counter reading of cycles": "an instruction reads the host's counters: cap_user_rdpmc is 0",
    "Parse event definition strings / Parsing of all PMU events from sysfs":
        "it writes each name without its PMU, and loads, stores and llc-stores are words of perf's cache events there",
    'Parse event definition strings / Test parsing of "hybrid" CPU events': "the machine has one kind of CPU",
    "Parse event definition strings / Parsing of aliased events from sysfs": "no PMU of the machine has an alias",
    "Object code reading": "fails natively too; under quipu a sample of the first instructions has no address",
    "Setup struct perf_event_attr": "fails natively too: its files are not installed",
    "perf stat JSON output linter": "fails by chance natively too: it reads an interval's lines before all are there",
    "Convert perf time to TSC / Perf time to TSC": "the processor's time stamp is not the machine's clock",
    "perf stat CSV output linter": "fails by chance natively too: it reads an interval's lines before all are there",
    "Check branch stack sampling": "wants the kinds of branches saved (save_type); riscv's branch records do not have them",
    "Test data symbol": "perf mem: wants a PMU with events of single accesses, of Intel's, AMD's or Arm's",
    "Miscellaneous Intel PT testing": "wants intel_pt, a PMU of Intel's that traces",
    "Check Arm CoreSight trace data recording and synthesized samples": "wants cs_etm, a PMU of Arm's that traces",
    "Check Arm SPE trace data recording and synthesized samples": "wants arm_spe, a PMU of Arm's that traces",
    "Check Arm SPE doesn't hang when there are forks": "wants arm_spe, a PMU of Arm's that traces",
    "Check Arm64 callgraphs are complete in fp mode": "runs on arm64 alone",
    "vmlinux symtab matches kallsyms": KERNEL,
    "Add vfs_getname probe to get syscall args filenames": KERNEL,
    "Use vfs_getname probe to get syscall args filenames": KERNEL,
    "Check open filename arg using perf trace + vfs_getname": KERNEL,
    "Simple expression parser": "looks for a TSC frequency in /proc/cpuinfo, if the perf is one for x86",
    "Watchpoint / Read Only Watchpoint": "x86 processors have none",
    "LLVM search and compile / kbuild searching": SOURCES,
    "LLVM search and compile / Compile source for BPF prologue generation": SOURCES,
    "BPF filter / Basic BPF filtering": SOURCES,
    "BPF filter / BPF pinning": SOURCES,
    "BPF filter / BPF prologue generation": SOURCES,
    "Probe SDT events": LEFT_OUT,
    "builtin clang support / builtin clang compile C source to IR": LEFT_OUT,
    "builtin clang support / builtin clang compile C source to ELF object": LEFT_OUT,
    "Test libpfm4 support / test of individual --pfm-events": LEFT_OUT,
    "Test libpfm4 support / test groups of --pfm-events": LEFT_OUT,
    "PE file support": LEFT_OUT,
    "Test java symbol": LEFT_OUT,
    "perf record offcpu profiling tests": LEFT_OUT,
    "perf stat --bpf-counters test": LEFT_OUT,
    "perf stat --bpf-counters --for-each-cgroup test": LEFT_OUT,
    "Test dwarf unwind": "unwinds perf itself, whose symbols are not installed",
    "build id cache operations": "its script is bash's, and is run by sh",
    "perf record tests": "its second part wants an event of Intel's (br_inst_retired.near_call)",
}


def run(words, folder):
    env = dict(os.environ, LC_ALL="C", HOME=folder)
    done = subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", check=False)
    return parse(done.stdout + "\n" + done.stderr)


def parse(text):
    """name -> result, in perf's order; sub-entries as "parent / name"."""
    results, parent = {}, ""
    for line in text.splitlines():
        m = re.match(r"\s*(\d+(?:\.\d+)?):\s*(.*?)\s*:\s*(Ok|FAILED!|Skip.*)?\s*$", line)
        if not m:
            continue
        number, name, result = m.groups()
        if "." in number:
            name = f"{parent} / {name}"
        else:
            parent = name
        if result:
            results[name] = result
    return results


def verdict(native, quipu):
    if native == "Ok" and quipu.startswith("FAILED"):
        return "worse"
    if native != "Ok" and quipu == "Ok":
        return "better"
    return "" if native.split()[0] == quipu.split()[0] else "differs"


def main(argv):
    if not shutil.which("perf"):
        print("perf is not installed", file=sys.stderr)
        return 77
    quipu, entries = os.path.abspath(argv[1]), argv[2:]
    folder = os.environ.get("TMPDIR", "/tmp")
    native = run(["perf", "test", *entries], folder)
    under = run([quipu, "exec", "-m", "riscv", "--host-events", "--", "perf", "test", *entries], folder)

    print(f"{'entry':<78} {'native':<10} {'quipu':<10}")
    counts, unexplained, bare = {}, [], 0
    for name, was in native.items():
        now = under.get(name, "missing")
        what = verdict(was, now) if now != "missing" else "worse"
        reason = "" if now == "Ok" else REASONS.get(name) or (LEFT_OUT if name.startswith("CoreSight /") else "")
        bare += now != "Ok" and not reason
        if what == "worse" and not reason:
            unexplained.append(name)
        counts[what] = counts.get(what, 0) + 1
        print(f"{name[:78]:<78} {was.split()[0]:<10} {now.split()[0]:<10} {what} {reason}".rstrip())
    for column, results in (("natively", native), ("under quipu", under)):
        short = [r.split()[0] for r in results.values()]
        print(f"{column}: {short.count('Ok')} Ok, {short.count('FAILED!')} FAILED, {short.count('Skip')} Skip")
    print(f"better {counts.get('better', 0)}, worse {counts.get('worse', 0)}, worse without a known reason: "
          f"{', '.join(unexplained) or 'none'}; not Ok under quipu, and no reason known: {bare}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
