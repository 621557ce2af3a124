#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qemu-dma-trace.py [LOG] > TRACE: the trace log of QEMU's intel-iommu as a DMA trace for `quipu replay`.

The log is that of the "log" trace backend (qemu-system-x86_64 -device intel-iommu -trace 'vtd_*' -D LOG), with or without
time stamps. Used are vtd_dmar_translate (an access, and the page it met), vtd_dmar_fault (an access that failed, with its
direction), vtd_inv_desc (descriptors), vtd_ir_remap_msi_req (interrupts). Pages are mapped when they are first met, and
anew when they moved. QEMU does not say which device sent an interrupt (requester 0), nor how long an access was or, unless
it failed, whether it read: that comes from pci_nvme_map_addr (length) and e1000e_rx_desc_buff_write (a write, with its
length) of the same log where the address fits; else it is a read of 64 bytes. Interrupts are left out by default, for the
interrupt table is not in the log: --msi brings them in.
"""
import argparse
import re
import sys

STAMP = re.compile(r"^(?:\d+@(\d+)\.(\d+):)?(\w+) (.*)$")
PATTERNS = {
    "vtd_dmar_translate": re.compile(
        r"dev ([0-9a-f]+):([0-9a-f]+)\.([0-9a-f]+) iova 0x([0-9a-f]+) -> gpa 0x([0-9a-f]+) mask 0x([0-9a-f]+)"),
    "vtd_dmar_fault": re.compile(r"sid 0x([0-9a-f]+) fault (\d+) addr 0x([0-9a-f]+) write (\d)"),
    "vtd_inv_desc": re.compile(r"high 0x([0-9a-f]+) low 0x([0-9a-f]+)"),
    "vtd_ir_remap_msi_req": re.compile(r"addr 0x([0-9a-f]+) data 0x([0-9a-f]+)"),
    "pci_nvme_map_addr": re.compile(r"addr 0x([0-9a-f]+) len (\d+)"),
    "e1000e_rx_desc_buff_write": re.compile(r"addr:? 0x([0-9a-f]+), offset:? (\d+),.* length:? (\d+)"),
}
PAGE = 4096


class Converter:
    def __init__(self, out, msi):
        self.out = out
        self.msi = msi
        self.pages = {}  # (requester, page): host page
        self.known = {}  # address: (operation, length) that a device event told before the access
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

    def map(self, rid, iova, gpa):
        page, host = iova & -PAGE, gpa & -PAGE
        if self.pages.get((rid, page)) == host:
            return
        if (rid, page) in self.pages:
            self.emit(f"unmap {{t}} {rid:#x}:- {page:#x} {PAGE:#x}")
        self.emit(f"map {{t}} {rid:#x}:- {page:#x} {host:#x} {PAGE:#x} rw")
        self.pages[rid, page] = host

    def vtd_dmar_translate(self, bus, dev, fn, iova, gpa, _mask):
        rid = int(bus, 16) << 8 | int(dev, 16) << 3 | int(fn, 16)
        iova, gpa = int(iova, 16), int(gpa, 16)
        # Only the page is translated; the offset is that of the access.
        self.map(rid, iova, gpa)
        op, length = self.known.pop(iova, ("R", 64))
        self.emit(f"dma {{t}} {rid:#x} - U {op} {iova:#x} {length}")

    def vtd_dmar_fault(self, sid, _fault, addr, write):
        op = "W" if write == "1" else "R"
        self.emit(f"dma {{t}} {int(sid, 16):#x} - U {op} {int(addr, 16):#x} 64")

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
        if fields:
            self.stamp(m[1], m[2])
            getattr(self, m[3])(*fields.groups())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("log", nargs="?", help="QEMU's log (standard input)")
    parser.add_argument("--msi", action="store_true", help="interrupts as well")
    args = parser.parse_args()
    print("# quipu-dma 1")
    with open(args.log, encoding="utf-8", errors="replace") if args.log else sys.stdin as f:
        converter = Converter(sys.stdout, args.msi)
        for text in f:
            converter.line(text.rstrip("\n"))


if __name__ == "__main__":
    main()
