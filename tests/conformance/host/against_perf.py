#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Event strings against recorded sysfs trees of real servers, ours and the stock perf's.

perf honours SYSFS_PATH, and `perf stat -vv` prints each attribute before it opens it. Every event of every tree, and
strings made from the trees' own words by a generator with a fixed seed (valid ones, and valid ones broken), must give
the same words, or be refused by both. Where the two differ on purpose, DIFFERS says why.
"""
import fnmatch
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ENCODE = os.environ["QUIPU_ENCODE"]
TREES = ["xeon", "power9", "hybrid", "pseries"]
GENERATED = 60  # strings a tree
FLAGS = {"pinned": 2, "exclusive": 3, "exclude_user": 4, "exclude_kernel": 5, "exclude_hv": 6, "exclude_idle": 7,
         "exclude_host": 19, "exclude_guest": 20}
COMPARED = sum(1 << b for b in FLAGS.values()) | 3 << 15
EXCLUDE_GUEST = 1 << 20

# Where quipu means to differ, and why.
DIFFERS = [
    (r"^inte[^/]*/", "perf adds terms of its own to trace PMUs, which quipu does not serve"),
    (r"^[^{]*\{[^}]*$", "perf takes a group that is never closed; quipu calls it a mistake"),
    (r"name=0x", "perf reads a name of digits as a number first, and refuses those that do not fit"),
]


def read_tree(name):
    """{pmu: {file: text}} of a tree."""
    pmus, pmu = {}, None
    with open(os.path.join(HERE, "trees", name + ".txt")) as f:
        for line in f:
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                pmu = pmus.setdefault(line[1:-1], {})
            else:
                path, text = line.split("\t", 1)
                pmu[path] = text
    return pmus


def write_tree(pmus, root):
    for pmu, files in pmus.items():
        base = root + (pmu if pmu.startswith("/") else "/bus/event_source/devices/" + pmu)
        for path, text in files.items():
            full = os.path.join(base, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as f:
                f.write(text + "\n")


def ask_perf(root, text):
    """The attributes perf opens for a string, or None where it refuses it."""
    env = dict(os.environ, SYSFS_PATH=root, PERF_CPUID="None-0-0-0", LC_ALL="C")
    p = subprocess.run(["perf", "stat", "-vv", "-e", text, "true"], env=env, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    out, attr, seen, retry = [], None, [], False
    for line in p.stdout.decode("utf-8", "replace").split("\n"):
        if line.startswith("perf_event_attr:"):
            attr = {"type": 0, "config": 0, "config1": 0, "config2": 0, "bp_type": 0, "flags": 0}
            continue
        if line.startswith("switching off") or line.startswith("decreasing precise_ip"):
            retry = True
        if line.startswith("sys_perf_event_open:") and attr is not None:
            if attr not in seen or not retry:  # an event opened on several CPUs shows once
                out.append(attr)
            attr, retry = None, False
        m = re.match(r"\s+(\{ bp_addr, config1 \}|\{ bp_len, config2 \}|\w+)\s+(\S+)$", line)
        if not m or attr is None:
            continue
        key, word = m.groups()
        key = {"{ bp_addr, config1 }": "config1", "{ bp_len, config2 }": "config2"}.get(key, key)
        if key in ("type", "config", "config1", "config2", "bp_type"):
            attr[key] = int(word, 0)
        elif key in FLAGS:
            attr["flags"] |= int(word) << FLAGS[key]
        elif key == "precise_ip":
            attr["flags"] |= int(word) << 15
    return [tuple(a.values()) for a in out] if out else None


def ask_quipu(root, strings):
    """Per string: the list of (words), or the refusal as a text."""
    p = subprocess.run([ENCODE, root], input="\n".join(strings) + "\n", stdout=subprocess.PIPE, text=True, timeout=120)
    lines, answers = iter(p.stdout.split("\n")), []
    for _ in strings:
        head = next(lines)
        if head.startswith("bad"):
            answers.append(head[4:])
            continue
        events = []
        for _ in range(int(head.split()[1])):
            w = next(lines).split(" ", 9)
            events.append((int(w[0]), int(w[1], 16), int(w[2], 16), int(w[3], 16), int(w[5], 16),
                           int(w[4], 16) & COMPARED))
        answers.append(events)
    return answers


def same(ours, theirs):
    """perf shows exclude_guest no more once a PMU of this host has refused it."""
    def plain(e):
        return e[:5] + (e[5] & ~EXCLUDE_GUEST,)
    return sorted(set(map(plain, ours))) == sorted(set(map(plain, theirs)))


def events_of(pmus):
    return [(pmu, path[7:]) for pmu, files in pmus.items() for path in files
            if path.startswith("events/") and not re.search(r"\.(scale|unit|per-pkg|snapshot)$", path)]


def needed(files, event):
    """The parameters an event leaves open, filled in."""
    return "".join(",%s=%d" % (term.split("=")[0], 3)
                   for term in files["events/" + event].split(",") if term.endswith("=?"))


def every_event(pmus):
    for pmu, event in events_of(pmus):
        yield "%s/%s%s/" % (pmu, event, needed(pmus[pmu], event))
    for generic in ("cycles", "instructions:u", "branches:k", "cache-misses", "L1-dcache-loads", "LLC-load-misses",
                    "r1a8", "task-clock", "page-faults:u", "cs", "ref-cycles:pp", "mem:0x1000", "mem:0x1000/8:w",
                    "mem:0x1000:x:u", "mem:4096/1:rw"):
        yield generic


def some_number(rng, bits):
    v = rng.getrandbits(rng.randint(1, bits))
    return rng.choice(["%d", "%#x"]) % v


def one_string(rng, pmus):
    pmu = rng.choice([p for p in pmus if any(f.startswith("format/") for f in pmus[p])])
    files = pmus[pmu]
    formats = [f[7:] for f in files if f.startswith("format/")]
    events = [f[7:] for f in files if f.startswith("events/") and "." not in f]
    terms = []
    if events and rng.random() < 0.5:
        event = rng.choice(events)
        terms.append(event + needed(files, event))
    for name in rng.sample(formats, rng.randint(0 if terms else 1, min(3, len(formats)))):
        width = sum(int(p.split("-")[-1]) - int(p.split("-")[0]) + 1
                    for p in files["format/" + name].split(":")[1].split(","))
        terms.append("%s=%s" % (name, some_number(rng, width)))
    if rng.random() < 0.2:
        terms.append("config%s=%s" % (rng.choice(["", "1", "2"]), some_number(rng, 64)))
    if rng.random() < 0.15:
        terms.append("name=mine")
    if rng.random() < 0.3:  # the number of an instance left out, a pattern
        pmu = rng.choice([re.sub(r"_?\d+$", "", pmu), re.sub(r"^uncore_", "", pmu), pmu[:4] + "*"])
    mods = rng.choice(["", "", "", "u", "k", "uk", "pp", "G", "H", "D", "ukh", "I"])
    return "%s/%s/%s" % (pmu, ",".join(terms), mods)


def break_string(rng, text):
    """One thing wrong with it, most of the time."""
    at = rng.randrange(len(text))
    return rng.choice([
        lambda: text[:at] + text[at + 1:],
        lambda: text[:at] + rng.choice("xq=/,:{}0") + text[at:],
        lambda: text.replace("=", "=0xfffffffffffffffff", 1),
        lambda: text.replace("/", "/nonsense=1,", 1),
        lambda: text + "z",
        lambda: text.replace("=", "=nine", 1),
        lambda: text.rstrip("ukhpGHDI")[:-1],
    ])()


def ask_perf_pattern(root, pmus, text):
    """perf's manual has patterns of PMU names, but 6.1 compares them as names in the end and finds none: ask it for
    each PMU that the pattern names. As in quipu, those that refuse the terms are left out."""
    pattern, slash, rest = text.partition("/")
    if not slash or "*" not in pattern:
        return ask_perf(root, text)
    answers = [ask_perf(root, pmu + "/" + rest) for pmu in pmus if fnmatch.fnmatchcase(pmu, pattern)]
    return [e for a in answers if a for e in a] or None


def judge(root, pmus, strings):
    ours = ask_quipu(root, strings)
    with ThreadPoolExecutor(2) as pool:
        theirs = list(pool.map(lambda s: ask_perf_pattern(root, pmus, s), strings))
    wrong, both, none = [], 0, 0
    for text, a, b in zip(strings, ours, theirs):
        if any(re.search(pattern, text) for pattern, _ in DIFFERS):
            continue
        if b is None and isinstance(a, str):
            none += 1
        elif b is None or isinstance(a, str) or not same(a, b):
            wrong.append("%r: perf %s, quipu %s" % (text, b, a))
        else:
            both += 1
    return wrong, both, none


def main():
    number, failed = 0, 0

    def tell(good, name, lines=()):
        nonlocal number, failed
        number += 1
        failed += not good
        print("%s %d - %s" % ("ok" if good else "not ok", number, name))
        for line in lines:
            print("# " + line)
        sys.stdout.flush()

    version = subprocess.run(["perf", "--version"], stdout=subprocess.PIPE, text=True).stdout if shutil.which("perf") else ""
    if not version.startswith("perf version 6.1"):
        print("1..0 # SKIP no perf 6.1 to compare with")
        return 0
    generated = int(os.environ.get("QUIPU_GENERATED", GENERATED))
    seed = int(os.environ.get("QUIPU_SEED", "10"))
    for name in TREES:
        pmus, root = read_tree(name), tempfile.mkdtemp(prefix="quipu-sysfs-")
        try:
            write_tree(pmus, root)
            wrong, both, none = judge(root, pmus, list(every_event(pmus)))
            tell(not wrong and both > 10 and none == 0, "%s: every event encodes as perf's (%d)" % (name, both),
                 wrong[:20] + (["%d refused by both" % none] if none else []))
            rng = random.Random("%s %d" % (name, seed))
            made = [one_string(rng, pmus) for _ in range(generated)]
            made = [s if rng.random() < 0.6 else break_string(rng, s) for s in made]
            made = [s for s in made if s.strip() and "\n" not in s]
            wrong, both, none = judge(root, pmus, made)
            tell(not wrong and both and none, "%s: generated strings mean the same (%d taken, %d refused by both)"
                 % (name, both, none), wrong[:40])
        finally:
            shutil.rmtree(root)
    print("1..%d" % number)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
