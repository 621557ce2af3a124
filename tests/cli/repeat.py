#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two runs give identical bytes, but for what is listed here: host times and process ids."""
import json
import os

from harness import QUIPU, equal, guest, holds, json_lines, main, test

# Keys of `stat -j` that hold the host's seconds.
HOST_KEYS = {"class": "host"}
SMALL = 1000


def without_host(rows):
    return [row for row in rows if row.get("class") != HOST_KEYS["class"]]


def stat_twice(work, command, *options):
    runs = [json_lines(work.quipu("stat", "-j", *options, "--", *command, status=0)) for _ in range(2)]
    first, second = (json.dumps(without_host(rows), sort_keys=False) for rows in runs)
    equal(second, first, "second run")
    holds(without_host(runs[0]), "nothing but host times was printed")


@test("stat -j twice: every object but those of class host is the same")
def stat(work):
    stat_twice(work, [guest("recurse")])
    stat_twice(work, [guest("realistic"), "1", "64"], "-e", "instructions,cycles,loads,stores,branches")


@test("stat -j of a dynamic program twice")
def dynamic(work):
    stat_twice(work, [guest("shapes-pie")], "-e", "instructions,cycles")


@test("stat -j with more events than counters twice: rotation is repeatable too")
def rotation(work):
    events = ",".join(["instructions", "cycles", "loads", "stores", "branches"] * 6)
    stat_twice(work, [guest("recurse"), "27"], "-e", events)


# The bytes of perf.data that may differ: process ids. All else is model time or the program.
def normal(work, name, pids):
    with open(work.path(name), "rb") as file:
        data = file.read()
    for pid in sorted(pids):
        data = data.replace(pid.to_bytes(4, "little"), b"PID ")
    return data


def leave_small_pids():
    """Where the kernel gives process ids from the lowest again, go on to those that are no other number of a recording."""
    for _ in range(3 * SMALL):
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        if pid > SMALL and pid % 32768 < 32768 - SMALL:
            return


def pids_of(work, name):
    out = work.run("perf", "script", "-i", name, "-F", "pid,tid", "--show-task-events", status=0).out
    found = set()
    for line in out.replace("/", " ").replace("(", " ").replace(")", " ").replace(":", " ").split():
        if line.isdigit() and int(line) > SMALL:
            found.add(int(line))
    return found


@test("record -c 100000 twice: the same bytes apart from pids")
def record(work):
    names = ("a.data", "b.data")
    leave_small_pids()
    # The command line is kept in the file: the same name for both runs.
    for name in names:
        work.record("-e", "instructions", "-c", "100000", "--", guest("realistic"), "1", "64")
        os.rename(work.path("perf.data"), work.path(name))
    first, second = (normal(work, name, pids_of(work, name)) for name in names)
    equal(len(second), len(first), "size")
    different = [i for i in range(len(first)) if first[i] != second[i]]
    holds(not different, f"{len(different)} bytes differ, at {different[:20]}")


@test("record's samples twice: the same times and addresses")
def samples(work):
    lists = []
    for _ in range(2):
        work.record("-e", "cycles", "-c", "10007", "-g", "--", guest("recurse"), "20")
        lists.append(work.samples("time,period,ip"))
    holds(len(lists[0]) > 20, f"only {len(lists[0])} samples")
    equal(lists[1], lists[0], "samples")


@test("--no-local: served by the machine or in the engine, the samples are the same")
def local(work):
    data = []
    for option in ([], ["--no-local"]):
        work.record("-e", "instructions", "-c", "20011", *option, "--", guest("recurse"), "20")
        data.append(work.samples("time,period,ip"))
    holds(len(data[0]) > 10, f"only {len(data[0])} samples")
    equal(data[1], data[0], "samples")


@test("--no-local: the periods of frequency events are steered alike, tick by tick")
def steered(work):
    for events in ("cycles", "{cycles,instructions},branches", "cycles,cpu-clock"):
        data = []
        for option in ([], ["--no-local"]):
            work.record("-e", events, "-F", "4000", *option, "--", guest("recurse"), "30")
            data.append(work.samples("event,time,period,ip"))
        holds(len(data[0]) > 100, f"{events}: only {len(data[0])} samples")
        equal(data[1], data[0], events)


if __name__ == "__main__":
    holds(os.path.exists(QUIPU), f"no {QUIPU}")
    main()
