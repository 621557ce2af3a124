#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Events that cannot count say why; strings that are no events are refused before anything runs."""
import re

from harness import equal, guest, holds, json_lines, main, one_line_error, test

GROUP = "{cycles,instructions},branches,r2a"


def labelled(text):
    return re.search(r"\b(exact|modelled|host)\b", text)


@test("{cycles,instructions},branches,r2a: three count, r2a is not counted and says why")
def group(work):
    result = work.quipu("stat", "-e", GROUP, "--", guest("recurse"), status=0)
    text = result.out + result.err
    for event in ("cycles", "instructions", "branches"):
        line = [li for li in text.splitlines() if re.search(rf"\b{event}\b", li) and re.search(r"\d", li)]
        holds(line and "<not" not in line[0], f"{event} did not count\n{result}")
    raw = [li for li in text.splitlines() if "r2a" in li]
    holds(raw and "<not counted>" in raw[0], f"r2a is not marked <not counted>\n{result}")
    holds(re.search(r"no counter", text, re.IGNORECASE), f"no reason given for r2a\n{result}")


@test("the same in JSON: counts of a group are right, r2a has no number")
def group_json(work):
    rows = work.stat(GROUP, guest("loop"))
    by_event = {row["event"].split(":")[0]: row for row in rows}
    equal(int(float(by_event["instructions"]["counter-value"])), 2920024, "instructions")
    equal(int(float(by_event["branches"]["counter-value"])), 1210008, "branches")
    holds("not counted" in str(by_event["r2a"]["counter-value"]), f"{by_event['r2a']}")


@test("with ,rnotanevent the string is refused before anything runs, its column pointed at")
def not_an_event(work):
    bad = GROUP + ",rnotanevent"
    result = work.quipu("stat", "-e", bad, "--", guest("sleeper"), "1")
    holds(result.status > 0, f"accepted\n{result}")
    holds("ready" not in result.out, f"the program ran\n{result}")
    pointed_at(result, bad, bad.index("rnotanevent"))


def pointed_at(result, text, column):
    """Some line shows @text, and the line below it has a caret under @column."""
    lines = result.err.splitlines()
    for above, below in zip(lines, lines[1:]):
        if text in above and "^" in below:
            equal(below.index("^") - above.index(text), column, f"column of the caret\n{result}\n")
            return
    raise AssertionError(f"no caret under the string\n{result}")


@test("malformed strings: the column of the fault is pointed at")
def malformed(work):
    for bad, column in (("instructions,{cycles", 20), ("cycles,,instructions", 7), ("cpu/event=/", 10),
                        ("instructions:q", 13), ("nosuchevent", 0), ("cycles,nosuchevent", 7)):
        result = work.quipu("stat", "-e", bad, "--", guest("true"))
        holds(result.status > 0, f"{bad!r} was accepted\n{result}")
        lines = result.err.splitlines()
        holds(any("^" in li for li in lines), f"{bad!r}: no caret\n{result}")
        shown = [(a, b) for a, b in zip(lines, lines[1:]) if bad in a and "^" in b]
        holds(shown, f"{bad!r}: the string is not shown above the caret\n{result}")
        at = shown[0][1].index("^") - shown[0][0].index(bad)
        holds(abs(at - column) <= 1, f"{bad!r}: caret at {at}, fault at {column}\n{result}")


@test("more events than counters: below 100 %, and the exact truth beside the estimate")
def multiplexed(work):
    events = ["instructions", "cycles", "loads", "stores", "branches"]
    many = ",".join(events * 8)
    command = [guest("recurse"), "31"]
    alone = {e: work.count(e, *command) for e in events}
    rows = json_lines(work.quipu("stat", "-j", "-e", many, "--", *command, status=0))
    rotated = [r for r in rows if float(r.get("pcnt-running", 100)) < 100]
    holds(len(rotated) > 5, f"forty events, and {len(rotated)} were rotated")
    for row in rotated:
        name = row["event"].split(":")[0]
        holds("exact-value" in row, f"no exact-value: {row}")
        equal(int(float(row["exact-value"])), alone[name], f"exact-value of {name}")
        if "not counted" not in str(row["counter-value"]):
            estimate = float(row["counter-value"])
            holds(abs(estimate / alone[name] - 1) < 0.35, f"{name}: estimate {estimate}, truth {alone[name]}")


@test("events that no model counts are refused with their reason, never counted as zero")
def not_modelled(work):
    for event in ("L1-dcache-prefetches", "bus-cycles", "stalled-cycles-backend"):
        result = work.quipu("stat", "-e", event, "--", guest("true"))
        text = result.out + result.err
        holds(re.search(r"<not (supported|counted|modelled)>|not (yet )?modelled|no model", text), f"{event}\n{result}")
        line = [li for li in text.splitlines() if event in li]
        holds(line and not re.match(r"^\s*0\s", line[0]), f"{event} was counted as zero\n{result}")


CACHE = ("cache-references", "cache-misses", "branch-misses", "L1-dcache-loads", "L1-dcache-load-misses",
         "L1-dcache-store-misses", "L1-icache-load-misses", "LLC-load-misses", "dTLB-load-misses", "iTLB-load-misses")


@test("cache, TLB and branch events count, labelled modelled, and the same whatever else is counted")
def modelled(work):
    command = [guest("memory"), "1", "256"]
    rows = work.stat("instructions,cycles," + ",".join(CACHE), *command)
    together = {row["event"].split(":")[0]: int(float(row["counter-value"])) for row in rows}
    for event in CACHE:
        equal(work.count(event, *command), together[event], event)
        holds(together[event] > 0, f"{event} is 0")
    equal(together["cycles"], work.count("cycles", *command), "cycles: opening an event must not change them")
    words = 256 * 128
    holds(together["L1-dcache-load-misses"] > 3 * words // 8, f"{together}")
    text = work.quipu("stat", "-e", ",".join(CACHE), "--", *command, status=0)
    for line in (text.out + text.err).splitlines():
        if any(f" {event} " in line for event in CACHE):
            holds(" modelled" in line, f"no label in {line!r}")


@test("--timing full adds stalls to the cycles, changes no instruction, and gives the stall events")
def timing(work):
    command = [guest("memory"), "1", "256"]

    def count(event, *options):
        rows = json_lines(work.quipu("stat", "-j", "-e", event, *options, "--", *command, status=0))
        return int(float([r for r in rows if r["event"].startswith(event)][0]["counter-value"]))

    equal(count("instructions", "--timing", "full"), count("instructions"), "instructions")
    front, back = (count(f"stalled-cycles-{side}end", "--timing", "full") for side in ("front", "back"))
    holds(front > 0 and back > 10000, f"{front} {back}")
    equal(count("cycles", "--timing", "full"), count("cycles") + front + back, "cycles")


@test("list names the event of each kind, with its label, and marks what is not modelled yet")
def listing(work):
    result = work.quipu("list", status=0)
    for word in ("instructions", "cycles", "branches", "loads", "stores"):
        holds(re.search(rf"\b{word}\b", result.out), f"{word} is not listed\n{result}")
    for word in ("exact", "modelled"):
        holds(word in result.out, f"no label {word}\n{result}")
    holds(re.search(r"not (yet )?modelled", result.out), f"nothing is marked as not modelled\n{result}")
    for machine in ("rock", "x86", "power9"):  # whose PMUs count accesses of L2, of the last cache, of L1
        rows = re.findall("^ +cache-references .*", work.quipu("list", "-m", machine, "cache-references", status=0).out, re.MULTILINE)
        holds("the machine's PMU decides" in rows[0], f"one text for different caches: {rows}")
    one = work.quipu("list", "loads", status=0)
    holds("loads" in one.out and len(one.out) < len(result.out), f"a word does not narrow the list\n{one}")


@test("stat's table: every counter has its label, and the default set has insn per cycle")
def table(work):
    result = work.quipu("stat", "--", guest("recurse"), status=0)
    text = result.out + result.err
    holds("Performance counter stats for" in text, f"no heading\n{result}")
    holds("insn per cycle" in text, f"no derived line\n{result}")
    rows = [li for li in text.splitlines() if re.match(r"^\s+[0-9][0-9,.]*\s+\S", li)]
    holds(len(rows) >= 4, f"only {len(rows)} lines with numbers\n{result}")
    for line in rows:
        holds(labelled(line), f"no label in {line!r}\n{result}")


@test("-x: perf's columns; -r: mean and deviation; -I: a line per interval; -o: a file")
def forms(work):
    text = work.quipu("stat", "-x", ";", "-e", "instructions", "--", guest("loop"), status=0)
    row = [li for li in (text.out + text.err).splitlines() if ";" in li][0].split(";")
    equal((row[0], row[2].split(":")[0], row[4]), ("2920024", "instructions", "100.00"), "columns of -x")
    text = work.quipu("stat", "-r", "3", "-e", "instructions", "--", guest("loop"), status=0)
    holds(re.search(r"\(\s*\+-\s*0\.00\s*%\s*\)", text.out + text.err), f"no deviation with -r\n{text}")
    rows = [r for r in json_lines(work.quipu("stat", "-j", "-I", "10", "-e", "instructions", "--", guest("recurse"),
                                             "29", status=0)) if "interval" in r]
    holds(len(rows) >= 3, f"only {len(rows)} intervals")
    whole = work.count("instructions", guest("recurse"), "29")
    equal(sum(int(float(r["counter-value"])) for r in rows), whole, "sum of the intervals")
    work.quipu("stat", "-o", "out.txt", "-e", "instructions", "--", guest("loop"), status=0)
    with open(work.path("out.txt"), encoding="utf-8") as file:
        holds("2920024" in file.read().replace(",", ""), "no count in the file of -o")


@test("an unknown machine and an unknown command are one line")
def unknown(work):
    one_line_error(work.quipu("stat", "-m", "nosuchmachine", "--", guest("true")), "nosuchmachine")
    one_line_error(work.quipu("nosuchcommand"), "nosuchcommand")


if __name__ == "__main__":
    main()
