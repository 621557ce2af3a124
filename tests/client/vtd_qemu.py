# SPDX-License-Identifier: BSD-2-Clause
"""A real log of QEMU's intel-iommu: vtd_image.c runs bare under qemu-system-x86_64, and its log, converted and replayed,
must count what that program did. QEMU itself is the judge of the IOTLB: it logs each hit and each update of its own.

What the program does, all of device 00:01.0 in domain 5, pages of 4 KiB:
    3 reads of page 0        1 miss, 2 hits
    7 writes of pages 1-7    7 misses
    1 read of page 0         1 hit
    page 3 is unmapped and invalidated (with its paging structures)
    1 write of page 3        1 miss, a fault; QEMU tries it in 64 pieces
    1 write of page 4        1 hit: only page 3 was invalidated
    the domain is invalidated
    1 read of page 0         1 miss
14 requests, 4 hits, 10 walks. The first walk reads root, context and four levels; page 1 to 7 one entry each; page 3 and the
last one four levels again (the context stayed cached): 6 + 7 + 4 + 4 = 21 reads.
"""
import json
import os
import re
import shutil

from harness import Skip, equal, holds, main, test

HERE = os.path.dirname(os.path.abspath(__file__))
CONVERTER = os.path.join(os.environ["QUIPU_SOURCE"], "tools", "qemu-dma-trace.py")
QEMU = "qemu-system-x86_64"


def record(work):
    """The log of one run."""
    if not shutil.which(QEMU):
        raise Skip(f"{QEMU} (package qemu-system-x86) is not installed")
    built = work.run("gcc", "-m32", "-O2", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fno-pie", "-no-pie",
                     "-fno-stack-protector", "-fcf-protection=none", "-mno-sse", "-nostdlib", "-static", "-Wl,--build-id=none",
                     "-Wl,-Ttext=0x200000", "-Wl,-z,noexecstack", "-Wl,--section-start=.multiboot=0x100000",
                     os.path.join(HERE, "vtd_image.c"), "-o", "image.elf")
    if built.status and os.uname().machine != "x86_64":
        raise Skip("this host's gcc builds no x86 image")
    equal(built.status, 0, f"gcc\n{built}")
    # The device that ends QEMU gives status 1 for a 0.
    done = work.run(QEMU, "-machine", "q35", "-accel", "tcg", "-display", "none", "-nodefaults", "-m", "64", "-device",
                    "intel-iommu,intremap=off", "-device", "edu", "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel",
                    "image.elf", "-trace", "vtd_*", "-D", "log", timeout=120)
    if "is not a valid device model" in done.err or "Could not open" in done.err:
        raise Skip(f"{QEMU} here lacks a device: {done.err.strip()}")
    equal(done.status, 1, f"status of the program\n{done}")
    with open(work.path("log"), encoding="utf-8") as log:
        return log.read()


def convert(work):
    done = work.run("python3", CONVERTER, "log", status=0)
    with open(work.path("trace"), "w", encoding="utf-8") as out:
        out.write(done.out)
    return done.out.splitlines()


@test("a real log becomes the requests that the program made")
def trace(work):
    record(work)
    rows = [line.split() for line in convert(work)]
    equal(rows[0], ["#", "quipu-dma", "1"], "the first line")
    page = 0x8000000
    dma = [(int(r[2], 16), r[5], int(r[6], 16), int(r[7])) for r in rows if r[0] == "dma"]
    equal(dma, [(8, "R", page + 64 * i, 64) for i in range(3)] + [(8, "R", page + 4096 * i, 64) for i in range(1, 8)] +
          [(8, "R", page, 64), (8, "W", page + 3 * 4096, 256), (8, "R", page + 4 * 4096, 64), (8, "R", page, 64)], "requests")
    equal([r[2:] for r in rows if r[0] == "attach"], [["0x8", "-", "0x5"]], "domains")
    equal(sum(r[0] == "map" for r in rows), 8, "pages mapped")
    equal([r[2:] for r in rows if r[0] == "unmap"], [["0x5", hex(page + 3 * 4096), "0x1000"]], "pages unmapped")
    equal([r[2:] for r in rows if r[0] == "inv"],
          [["0x11", "0x0"], ["0x12", "0x0"], ["0x50032", hex(page + 3 * 4096)], ["0x50022", "0x0"]], "invalidations")


@test("its replay counts what the walks of that program take, and QEMU's own hits")
def replay(work):
    log = record(work)
    convert(work)
    done = work.quipu("replay", "-m", "vtd", "--mode", "legacy", "--json", "trace", status=0)
    got = json.loads(done.out)
    want = {"iommu_requests": 14, "iotlb_lookup": 14, "iotlb_hit": 4, "ctxt_cache_lookup": 10, "ctxt_cache_hit": 9,
            "ss_nonleaf_lookup": 10, "ss_nonleaf_hit": 7, "iommu_mrds": 21, "pw_occupancy": 21 * 150, "pasid_cache_lookup": 0}
    equal({name: got["events"][name] for name in want}, want, "counts")
    equal((got["requests"], got["faults"]), (14, 1), "requests and faults")
    hits, updates = (len(re.findall(f"vtd_iotlb_page_{what} ", log)) for what in ("hit", "update"))
    equal(got["events"]["iotlb_hit"], hits, "hits that QEMU had")
    equal(got["events"]["iotlb_lookup"] - got["events"]["iotlb_hit"] - got["faults"], updates, "misses that QEMU filled")
    holds(log.count("vtd_dmar_fault ") > 1, "the fault in pieces")


main()
