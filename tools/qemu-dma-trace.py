#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qemu-dma-trace.py [LOG] > TRACE: the trace log of QEMU's intel-iommu as a DMA trace for `quipu replay`.

The log is that of the "log" trace backend (qemu-system-x86_64 -device intel-iommu -trace 'vtd_*' -D LOG), with or without
time stamps. What becomes of what is told in src/engine/dma/README.md ("From QEMU").
"""
import argparse
import re
import sys

STAMP = re.compile(r"^(?:\d+@(\d+)\.(\d+):)?(\w+) (.*)$")
IOTLB = re.compile(r"sid 0x([0-9a-f]+) iova 0x([0-9a-f]+) slpte 0x([0-9a-f]+) domain 0x([0-9a-f]+)")
PATTERNS = {
    "vtd_iotlb_page_hit": IOTLB,
    "vtd_iotlb_page_update": IOTLB,
    "vtd_dmar_translate": re.compile(
        r"dev ([0-9a-f]+):([0-9a-f]+)\.([0-9a-f]+) iova 0x([0-9a-f]+) -> gpa 0x([0-9a-f]+) mask 0x([0-9a-f]+)"),
    "vtd_dmar_fault": re.compile(r"sid 0x([0-9a-f]+) fault (\d+) addr 0x([0-9a-f]+) write (\d)"),
    "vtd_inv_desc": re.compile(r"high 0x([0-9a-f]+) low 0x([0-9a-f]+)"),
    "vtd_ir_remap_msi_req": re.compile(r"addr 0x([0-9a-f]+) data 0x([0-9a-f]+)"),
    "pci_nvme_map_addr": re.compile(r"addr 0x([0-9a-f]+) len (\d+)"),
    "e1000e_rx_desc_buff_write": re.compile(r"addr:? 0x([0-9a-f]+), offset:? (\d+),.* length:? (\d+)"),
}
PAGE = 4096
PERMISSION = (5, 6)  # fault reasons: the page may not be written, may not be read
PIECE = 8  # bytes in which QEMU repeats an access that faults, at most


class Converter:
    def __init__(self, out, msi):
        self.out = out
        self.msi = msi
        self.pages = {}  # (target, page): (host page, letters); a target is what map records name
        self.domain = {}  # requester: domain id
        self.seen = None  # (requester, address, domain, letters) of the IOTLB line in front of a translation
        self.known = {}  # address: (operation, length) that a device event told before the access
        self.fault = None  # [requester, operation, first address, address behind]
        self.time = 0
        self.first = None

    def stamp(self, seconds, micro):
        """Nanoseconds since the first line; a log without stamps counts its lines."""
        if seconds is None:
            self.time += 1
            return
        ns = int(seconds) * 10**9 + int(micro) * 1000
        if self.first is None:
            self.first = ns
        self.time = max(self.time, ns - self.first)

    def emit(self, text):
        print(text.format(t=self.time), file=self.out)

    def unmap(self, target, page):
        self.emit(f"unmap {{t}} {target} {page:#x} {PAGE:#x}")
        del self.pages[target, page]

    def map(self, target, page, host, letters):
        if self.pages.get((target, page)) == (host, letters):
            return
        if (target, page) in self.pages:
            self.unmap(target, page)
        self.emit(f"map {{t}} {target} {page:#x} {host:#x} {PAGE:#x} {letters}")
        self.pages[target, page] = host, letters

    def target(self, rid):
        return f"{self.domain[rid]:#x}" if rid in self.domain else f"{rid:#x}:-"

    def iotlb(self, sid, iova, slpte, domain):
        letters = "".join(letter for bit, letter in enumerate("rw") if int(slpte, 16) >> bit & 1)
        self.seen = int(sid, 16), int(iova, 16), int(domain, 16), letters or "-"

    vtd_iotlb_page_hit = iotlb
    vtd_iotlb_page_update = iotlb

    def vtd_dmar_translate(self, bus, dev, fn, iova, gpa, _mask):
        rid = int(bus, 16) << 8 | int(dev, 16) << 3 | int(fn, 16)
        address, page, host, letters = int(iova, 16), int(iova, 16) & -PAGE, int(gpa, 16) & -PAGE, "rw"
        if self.seen and self.seen[0] == rid and self.seen[1] & -PAGE == page:
            address, letters = self.seen[1], self.seen[3]
            if self.domain.get(rid) != self.seen[2]:
                self.domain[rid] = self.seen[2]
                self.emit(f"attach {{t}} {rid:#x} - {self.seen[2]:#x}")
        self.seen = None
        self.map(self.target(rid), page, host, letters)
        op, length = self.known.pop(address, ("R" if "r" in letters else "W", 64))
        self.emit(f"dma {{t}} {rid:#x} - U {op} {address:#x} {length}")

    def vtd_dmar_fault(self, sid, reason, addr, write):
        rid, address, op = int(sid, 16), int(addr, 16), "W" if write == "1" else "R"
        if self.fault and self.fault[:2] == [rid, op] and 0 < address - self.fault[3] + PIECE <= 2 * PIECE:
            self.fault[3] = address + PIECE // 2
            return
        self.flush()
        self.fault = [rid, op, address, address + PIECE // 2]
        held = self.pages.get((self.target(rid), address & -PAGE))
        if int(reason) in PERMISSION and held and op.lower() in held[1]:
            self.unmap(self.target(rid), address & -PAGE)

    def flush(self):
        """The access that faulted piece by piece is over."""
        if self.fault:
            rid, op, first, behind = self.fault
            self.fault = None
            self.emit(f"dma {{t}} {rid:#x} - U {op} {first:#x} {max(64, behind - first)}")

    def vtd_inv_desc(self, high, low):
        # Waits are the replay's own: the addresses of the log's are not in its memory.
        if int(low, 16) & 0xF != 5:
            self.emit(f"inv {{t}} {int(low, 16):#x} {int(high, 16):#x}")

    def vtd_ir_remap_msi_req(self, addr, data):
        if self.msi:
            self.emit(f"msi {{t}} 0 {int(addr, 16):#x} {int(data, 16) & 0xFFFFFFFF:#x}")

    def pci_nvme_map_addr(self, addr, length):
        self.known[int(addr, 16)] = ("R", int(length))

    def e1000e_rx_desc_buff_write(self, addr, offset, length):
        self.known[int(addr, 16) + int(offset)] = ("W", int(length))

    def line(self, text):
        m = STAMP.match(text)
        if not m or m[3] not in PATTERNS:
            return
        fields = PATTERNS[m[3]].search(m[4])
        if not fields:
            return
        if m[3] != "vtd_dmar_fault":
            self.flush()
        self.stamp(m[1], m[2])
        getattr(self, m[3])(*fields.groups())


def convert(log, out, msi):
    print("# quipu-dma 1", file=out)
    converter = Converter(out, msi)
    for text in log:
        converter.line(text.rstrip("\n"))
    converter.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("log", nargs="?", help="QEMU's log (standard input)")
    parser.add_argument("--msi", action="store_true", help="interrupts as well")
    args = parser.parse_args()
    try:
        if args.log:
            with open(args.log, encoding="utf-8", errors="replace") as log:
                convert(log, sys.stdout, args.msi)
        else:
            convert(sys.stdin, sys.stdout, args.msi)
    except OSError as error:
        sys.exit(f"qemu-dma-trace.py: {error.filename or 'output'}: {error.strerror}")


if __name__ == "__main__":
    main()
