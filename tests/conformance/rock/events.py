#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every event of machine rock on a real sparc64 program, and what its samplers say of an instruction."""
import json
import os
import re
import shutil
import subprocess

from harness import QUIPU, Skip, equal, holds, main, test, value

GUESTS = os.environ["ROCK_GUESTS"]
RECURSE = os.path.join(GUESTS, "recurse.sparc64")
STORES = os.path.join(GUESTS, "stores.sparc64")
SHARED = os.path.join(GUESTS, "shared.sparc64")


def count(work, event, *options, program=RECURSE):
    return value(work.stat(event, program, options=("-m", "rock", *options))[0])


def events_of(work, pmu):
    """What list shows of a PMU: {name: its reason when it cannot be counted}."""
    events = json.loads(work.quipu("list", "-m", "rock", "--json", status=0).out)
    return {e["name"]: e.get("unavailable") or e.get("reason") for e in events
            if e["name"].startswith(pmu + "/") and "=" not in e["name"]}


SLOTS = (("l2_",), ("mmu_",), ("yank", "siblk", "lvlk"), ("cycles",), ("instr",))


def rounds(names):
    """A chip has one counter of each type: the events by it, one of each at a time."""
    columns = [[n for n in names if n.split("/")[1].startswith(slot)] for slot in SLOTS]
    equal(sorted(sum(columns, [])), sorted(names), "every event has a counter")
    for i in range(max(map(len, columns))):
        yield [c[i] for c in columns if i < len(c)]


def count_every(work, pmu, options):
    reasons, counted = events_of(work, pmu), {}
    equal(len(reasons), 53, f"events of {pmu}")
    equal([n for n, why in reasons.items() if why], [], "refused")
    for names in rounds(list(reasons)):
        for name, row in zip(names, work.stat(",".join(names), RECURSE, "6", "2", options=("-m", "rock", *options))):
            equal(row["class"], "exact" if name.split("/")[1] in ("instr_all", "instructions") else "modelled", name)
            counted[name.split("/")[1]] = value(row)
    return counted


@test("every event that list shows of rock counts")
def every_event(work):
    counted = count_every(work, "rock", ())
    zero = {name for name, n in counted.items() if not n}
    # Nothing of a small program of one thread: livelocks, waits for the other strand; and what is too rare for its
    # sampler. Floating point is only in the C library's copies: whether a sampler meets one depends on where the stack
    # lies, and that on the environment's size.
    few = {"lvlk", "siblk"}
    holds(few <= zero, f"{few - zero} counted something")
    holds(len(counted) - len(zero) >= 28, f"only {len(counted) - len(zero)} events counted anything: 0 are {sorted(zero)}")


@test("every event that list shows of rock_chip counts")
def every_chip_event(work):
    count_every(work, "rock_chip", ("-a",))


def many(work, *names, program=RECURSE):
    return [value(r) for n in names for r in work.stat(n, program, options=("-m", "rock"))]


@test("estimates are near what is counted: modes add up, loads, stores and misses are those of the caches")
def estimates(work):
    total = count(work, "rock/instructions/")
    modes = many(work, *(f"rock/instr_{m}/" for m in ("normal", "out_of_order", "execute_ahead", "delay", "deferred", "scout")))
    holds(total - len(modes) <= sum(modes) <= total, f"modes {modes} of {total}")
    # Types: every instruction has one, but an atomic, which has two.
    kinds = many(work, *(f"rock/type=0x200,syn=1,group=0,sel={1 << bit},sfreq=50/" for bit in range(7)))
    holds(total - 7 <= sum(kinds) <= total + total // 100, f"types {kinds} of {total}")
    stores, atomics = many(work, "rock/l2_store/", "rock/l2_atomic_ops/")
    holds(abs(kinds[2] - stores - atomics) < total // 500, f"stores {kinds[2]}, counted {stores} and {atomics}")
    taken, branches = many(work, "rock/type=0x200,syn=1,group=2,sel=0x400,sfreq=50/", "rock/type=0x200,syn=1,group=0,sel=8,sfreq=50/")
    holds(branches // 2 < taken < branches, f"{taken} of {branches} taken")
    all_l2 = count(work, "rock/type=0x400,txn=0x7f/")
    missed, hit = many(work, "rock/type=0x400,syn=1,group=0,sel=4,sfreq=250/", "rock/l2_hit,sfreq=250/")
    equal(missed + hit in (all_l2, all_l2 - 1), True, f"L2: {missed} missed, {hit} hit, {all_l2} in all")


@test("labels change no count, and are the same whether a stall costs cycles or not")
def beside(work):
    plain, labelled, full = (work.stat(events, RECURSE, options=("-m", "rock", *timing)) for events, timing in (
        ("rock/cycles/,rock/instructions/", ()), ("rock/cycles/,rock/instructions/,rock/yank/", ()),
        ("rock/cycles/,rock/instructions/,rock/yank/", ("--timing", "full"))))
    equal([value(r) for r in labelled[:2]], [value(r) for r in plain], "cycles and instructions")
    holds(value(labelled[2]) > 0, "no system call came while the core ran ahead")
    equal(value(full[2]), value(labelled[2]), "yanks with --timing full")
    holds(value(full[0]) > value(plain[0]), "stalls cost nothing")


@test("a strand waits for slots of the core's other strand: two threads that store on one core, and never one alone")
def siblings(work):
    equal(count(work, "rock_chip/siblk/", "-a", program=STORES), 0, "one thread")
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("two threads run at the same time on two CPUs only")
    # They share a core while the host runs both. It need not at once, and a busy one needs long runs for it.
    for turn in range(9):
        row = work.stat("rock_chip/siblk/", STORES, "4", str(200 << turn), options=("-m", "rock", "-a"))[0]
        equal(row["class"], "modelled", "label")
        if value(row):
            return
    raise AssertionError("strands of one core filled its store buffer, and neither waited")


@test("another strand's write to what was read ends speculation; alone, only calls to the system do")
def overtaken(work):
    def yanks(writers, misses):
        row = work.stat("rock_chip/yank/", SHARED, str(writers), str(misses), options=("-m", "rock", "-a"))[0]
        return value(row)
    alone = yanks(0, 2)
    equal(yanks(0, 4), alone, "more of the same work")
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("two threads run at the same time on two CPUs only")
    # As above: the host need not run both at once. To start and end a thread takes less than a hundred calls.
    for turn in range(8):
        if yanks(1, 4 << turn) > alone + 100:
            return
    raise AssertionError("a strand wrote what another read ahead of, and that went on")


@test("lookups of the unified TLB add up: both sides, hits and misses")
def lookups(work):
    mmu = {name: count(work, f"rock/mmu_{name}/") for name in ("all", "itlb_miss", "dtlb_miss", "utlb_miss", "utlb_hit")}
    holds(mmu["all"] > 0, f"none: {mmu}")
    equal(mmu["itlb_miss"] + mmu["dtlb_miss"], mmu["all"], "sides")
    equal(mmu["utlb_miss"] + mmu["utlb_hit"], mmu["all"], "outcomes")
    for side in "id":
        part = [count(work, f"rock/mmu_{side}_utlb_{outcome}/") for outcome in ("miss", "hit")]
        equal(sum(part), mmu[f"{side}tlb_miss"], f"outcomes of side {side}")
    equal(count(work, "rock_chip/mmu_all/", "-a"), mmu["all"], "of the chip")


@test("an instruction sample says what the instruction was, where it went and how long it took")
def labelled(work):
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    work.run(QUIPU, "exec", "-m", "rock", "--", "perf", "record", "-q", "-d", "-W", "-o", work.path("is.data"), "-c", "97", "-e",
             "rock_is//u", RECURSE, status=0)
    rows = work.samples("ip,addr,weight", work.path("is.data"))
    text = subprocess.run(["sparc64-linux-gnu-objdump", "-d", RECURSE], capture_output=True, check=True, text=True).stdout
    code = {int(m.group(1), 16): m.group(2) for m in re.finditer(r"^\s*([0-9a-f]+):\t(?:[0-9a-f]{2} )+\s*\t(\S+)", text, re.M)}
    loads = [r for r in rows if re.match(r"ld|cas|swap", code.get(int(r[2], 16), ""))]
    others = [r for r in rows if re.match(r"(add|sub|cmp|mov|be|bne|ret)$", code.get(int(r[2], 16), ""))]
    holds(len(loads) > 8 and len(others) > 1000, f"{len(loads)} loads, {len(others)} others of {len(rows)}")
    equal({int(r[0], 16) != 0 for r in loads}, {True}, "loads have an address")
    equal({int(r[0], 16) for r in others}, {0}, "others have none")
    holds({r[1] for r in others} == {"1"} and "3" in {r[1] for r in loads}, "latencies")


@test("a sample of the second level says its data source and its address")
def transactions(work):
    if not shutil.which("perf"):
        raise Skip("perf is not installed")
    work.run(QUIPU, "exec", "-m", "rock", "--", "perf", "record", "-q", "-d", "-o", work.path("l2.data"), "-c", "250", "-e",
             "rock_l2s//", RECURSE, status=0)
    out = work.run("perf", "script", "-i", work.path("l2.data"), "-F", "addr,data_src", status=0).out
    rows = [line.split(None, 2) for line in out.splitlines()]
    equal(len(rows), count(work, "rock/type=0x400,txn=0x7f/") // 250, "samples")
    for row in rows:
        holds(int(row[0], 16) != 0 and re.search(r"OP (LOAD|STORE|EXEC|PFETCH)", row[2]) and
              re.search(r"LVL (L2|L3|RAM|Local RAM)", row[2].replace("hit", "")), row)


if __name__ == "__main__":
    main()
