#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""sources.py FOLDER: the sources of bzip2, lua and sqlite as Debian has them, unpacked below FOLDER; prints what is there.

From the mirrors that apt is configured with, through apt-get alone and with lists of its own, so that nothing of the
system changes. What cannot be had is left out, and the caller measures programs of our own instead.
"""
import glob
import os
import subprocess
import sys

PACKAGES = {"bzip2": "bzip2", "lua": "lua5.4", "sqlite": "sqlite3"}


def quiet(command, cwd, timeout=300):
    return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=timeout, check=True).stdout


def own_lists(folder):
    """Options of an apt-get that knows the source packages of the configured mirrors."""
    targets = quiet(["apt-get", "indextargets", "--format", "$(SITE)|$(RELEASE)|$(COMPONENT)|$(LABEL)",
                     "Created-By: Packages"], folder)
    mirrors = sorted({tuple(line.split("|")) for line in targets.splitlines() if line.endswith("|main|Debian")})
    with open(f"{folder}/sources.list", "w", encoding="utf-8") as f:
        f.writelines(f"deb-src {site} {release} main\n" for site, release, _, _ in mirrors)
    for name in ("lists/partial", "cache/archives/partial"):
        os.makedirs(f"{folder}/{name}", exist_ok=True)
    return ["-o", f"Dir::Etc::SourceList={folder}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null",
            "-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User="]


def fetch(folder, programs, timeout):
    options = own_lists(folder)
    quiet(["apt-get", *options, "update"], folder, timeout)
    quiet(["apt-get", *options, "source", "--download-only", *(PACKAGES[p] for p in programs)], folder, timeout)


def unpacked(folder, name):
    """The folder of a program's sources, or None."""
    package = PACKAGES[name]
    if not glob.glob(f"{folder}/{name}/*"):
        archives = [a for a in glob.glob(f"{folder}/{package}_*.orig.tar.*") if not a.endswith(".asc")]
        if not archives:
            return None
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        quiet(["tar", "xf", archives[0], "-C", f"{folder}/{name}", "--strip-components=1"], folder)
    return f"{folder}/{name}"


def amalgamated(folder):
    """sqlite3.c is made of its parts by a script of theirs; needs tclsh."""
    if not os.path.exists(f"{folder}/sqlite-one/sqlite3.c"):
        os.makedirs(f"{folder}/sqlite-one", exist_ok=True)
        quiet([f"{folder}/sqlite/configure", "--disable-tcl"], f"{folder}/sqlite-one")
        quiet(["make", "sqlite3.c"], f"{folder}/sqlite-one")
    return f"{folder}/sqlite-one"


def sources(folder, programs=tuple(PACKAGES), timeout=300):
    """{program: [compiler arguments: sources and options]} of what could be had of @programs."""
    found = {}
    os.makedirs(folder, exist_ok=True)
    try:
        if not all(glob.glob(f"{folder}/{PACKAGES[p]}_*.orig.tar.*") for p in programs):
            fetch(folder, programs, timeout)
        bzip2, lua, sqlite = (name in programs and unpacked(folder, name) for name in PACKAGES)
        if bzip2:
            parts = ["blocksort", "huffman", "crctable", "randtable", "compress", "decompress", "bzlib", "bzip2"]
            found["bzip2"] = ["-D_FILE_OFFSET_BITS=64", *(f"{bzip2}/{p}.c" for p in parts)]
        if lua:
            # It seeds its hashes with the time and with addresses of its own: each run, and each build, counted otherwise.
            parts = [c for c in sorted(glob.glob(f"{lua}/src/*.c")) if not c.endswith("/luac.c")]
            found["lua"] = ["-DLUA_USE_POSIX", "-Dluai_makeseed(L)=1", *parts, "-lm"]
        if sqlite:
            one = amalgamated(folder)
            found["sqlite"] = [f"-I{one}", "-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION",
                               f"{sqlite}/test/speedtest1.c", f"{one}/sqlite3.c", "-lm"]
    except (subprocess.SubprocessError, OSError) as error:
        print(f"sources: {error}", file=sys.stderr)
    return found


if __name__ == "__main__":
    for program, words in sources(os.path.abspath(sys.argv[1])).items():
        print(program, *words)
