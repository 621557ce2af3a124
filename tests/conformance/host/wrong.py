#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Wrong event strings: each is refused at its column, with a reason that names the thing, and a suggestion where there is
one that is near. Against the recorded trees of trees/, so that the answers are the same on every host."""
import os
import subprocess
import sys
import tempfile

from against_perf import read_tree, write_tree

# tree, string, column, words of the reason, suggestion
TABLE = [
    ("xeon", "cyles", 0, "unknown event 'cyles'", "cycles"),
    ("xeon", "cycles,instructoins", 7, "unknown event 'instructoins'", "instructions"),
    ("xeon", "page-fault", 0, "unknown event", "page-faults"),
    ("xeon", "", 0, "missing at the end", ""),
    ("xeon", "cycles,", 7, "missing at the end", ""),
    ("xeon", ",cycles", 0, "missing before ','", ""),
    ("xeon", "cycles instructions", 7, "separated by commas", ""),
    ("xeon", "cpu/evnt=1/", 4, "unknown term 'evnt'", "event"),
    ("xeon", "cpu/event=1,umsk=2/", 12, "unknown term 'umsk'", "umask"),
    ("xeon", "cpu/event=0x100/", 10, "255", ""),
    ("xeon", "cpu/event=zz/", 10, "expected a number", ""),
    ("xeon", "cpu/event=0x1ffffffffffffffff/", 10, "64 bits", ""),
    ("xeon", "cpu/event=1", 11, "'/' is missing", ""),
    ("xeon", "cpu/", 4, "'/' is missing", ""),
    ("xeon", "cpu/,event=1/", 4, "a term is missing", ""),
    ("xeon", "cpu/period=0/", 11, "must be 1", ""),
    ("xeon", "cpu/percore/", 4, "not served", ""),
    ("xeon", "gpu/event=1/", 0, "no PMU 'gpu'", "cpu"),
    ("xeon", "cpu", 0, "is a PMU: write cpu/EVENT/", ""),
    ("xeon", "uncore_imx/cas_count_read/", 0, "no PMU 'uncore_imx'", "uncore_imc_0"),
    ("xeon", "uncore_imc_0/cas_count_red/", 13, "unknown term", "cas_count_read"),
    ("xeon", "dmar0/iotlb_hits/", 6, "unknown term", "iotlb_hit"),
    ("xeon", "dmar0/filter_pasid=1/", 6, "unknown term 'filter_pasid'", "filter_ats"),
    ("xeon", "dmar1/filter_ats=32/", 17, "31", ""),
    ("xeon", "cycles:z", 7, "unknown modifier 'z'", ""),
    ("xeon", "cycles:uu", 8, "given twice", ""),
    ("xeon", "cycles:pppp", 10, "at most three", ""),
    ("xeon", "cycles:b", 7, "BPF", ""),
    ("xeon", "{cycles,instructions", 20, "'}' is missing", ""),
    ("xeon", "{cycles,{cs}}", 8, "do not nest", ""),
    ("xeon", "cycles}", 6, "unexpected '}'", ""),
    ("xeon", "{cycles}:x", 9, "unknown modifier", ""),
    ("xeon", "r12345678901234567", 0, "16 hexadecimal digits", ""),
    ("xeon", "L1-dcache-lods", 10, "no operation or result", "L1-dcache-loads"),
    ("xeon", "iTLB-stores", 5, "no event for a store", "dTLB-stores"),
    ("xeon", "mem:", 4, "address of a breakpoint", ""),
    ("xeon", "mem:0xzz", 4, "is a number", ""),
    ("xeon", "mem:0x1000/x", 11, "length of a breakpoint", ""),
    ("xeon", "mem:0x1000:rr", 12, "given twice", ""),
    ("xeon", "mem:0x10000000000000000", 4, "64 bits", ""),
    ("xeon", "nosystem:noevent", 0, "tracepoint system 'nosystem'", ""),
    ("xeon", "nosystem:no*", 0, "no tracepoint matches", ""),
    ("xeon", "uprobe:/nowhere:main", 0, "no uprobes", ""),
    ("xeon", "kprobe:do_exit", 0, "CONFIG_KPROBE_EVENTS", ""),
    ("power9", "nest_mcs01_imc/PM_MCS01_64B_RD_DISP/", 15, "unknown term", "PM_MCS01_64B_RD_DISP_PORT01"),
    ("power9", "nest_mcs01/PM_MCS01_64B_RD_DISP_PORT01/", 0, "no PMU 'nest_mcs01'", "nest_mcs01_imc"),
    ("power9", "cpu/pmc=16/", 8, "15", ""),
    ("power9", "thread_imc/rvalue=2/", 18, "1", ""),
    ("hybrid", "cpu_cor/cycles/", 0, "no PMU 'cpu_cor'", "cpu_core"),
    ("hybrid", "cpu_atom/slots/", 9, "unknown term 'slots'", ""),
    ("hybrid", "i915/rcs0-bussy/", 5, "unknown term", "rcs0-busy"),
    ("pseries", "hv_24x7/PM_PB_CYC/", 8, "chip", ""),
    ("pseries", "hv_24x7/PM_PB_CYC,chip=?/", 8, "", ""),
]


def main():
    number, failed, roots = 0, 0, {}
    with tempfile.TemporaryDirectory(prefix="quipu-sysfs-") as base:
        for name in sorted({row[0] for row in TABLE}):
            roots[name] = os.path.join(base, name)
            write_tree(read_tree(name), roots[name])
        print("1..%d" % len(TABLE))
        env = dict(os.environ, TRACEFS_PATH=base)  # whatever this host's kernel has
        os.makedirs(os.path.join(base, "events/sched/sched_switch"))
        for tree, text, column, words, suggestion in TABLE:
            out = subprocess.run([os.environ["QUIPU_ENCODE"], roots[tree]], input=text + "\n", env=env, stdout=subprocess.PIPE,
                                 text=True, timeout=60).stdout.strip("\n")
            number += 1
            good = out.startswith("bad %d " % column) and words in out and out.endswith("|" + suggestion)
            failed += not good
            print("%s %d - %s %r" % ("ok" if good else "not ok", number, tree, text))
            if not good:
                print("# want column %d, %r, suggestion %r; got %s" % (column, words, suggestion, out))
    return failed != 0


sys.exit(main())
