#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The places and changes of the decoders (src/engine/qemu/decode.h) against binutils' objdump, of every instruction of
real programs. The judge is the text of the disassembly; nothing of the decoder is in it.

    places.py ISA PROGRAM...

What a decoder says must be exactly what the disassembly says; what it leaves unsaid is right, but a share of what the
disassembly knows must be said. An instruction set is a row of SETS, its parser a function of the text of an instruction
(and of its address and size) that returns what that means: Says, or None when the parser does not know. What the decoder
says of an instruction that the parser does not know is a failure: the parser is to learn it. TAP on standard output.
Environment: PLACES, the program that prints (places.c); PLACES_SHOW=N shows so many of what is left unsaid."""
import collections
import dataclasses
import os
import re
import subprocess
import sys

UNKNOWN, NOTHING = 0, 255


@dataclasses.dataclass(frozen=True)
class Says:
    """@place: (base register, bytes, offset) of the only access, or None. @writes: the general registers. @grows: by how
    much one of them does, (register, constant), or None."""
    place: tuple = None
    writes: frozenset = frozenset()
    grows: tuple = None


# ---- x86-64 ----

X86_WORDS = ["rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split(),
             "eax ecx edx ebx esp ebp esi edi r8d r9d r10d r11d r12d r13d r14d r15d".split(),
             "ax cx dx bx sp bp si di r8w r9w r10w r11w r12w r13w r14w r15w".split(),
             "al cl dl bl spl bpl sil dil r8b r9b r10b r11b r12b r13b r14b r15b".split(), "ah ch dh bh".split()]
X86_REGISTERS = {name: number for words in X86_WORDS for number, name in enumerate(words)}
X86_WIDE = {name: number for number, name in enumerate(X86_WORDS[0])}
X86_SIZES = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16}
X86_MEMORY = re.compile(r"(?:(\w+) PTR )?(?:(\w\w):)?\[(.*)\]$")
X86_ADDRESS = re.compile(r"(\w+)(?:\+riz\*\d)?([+-]0x[0-9a-f]+)?$")
RSP, RAX, RCX, RDX = 4, 0, 1, 2


def words(text):
    return frozenset(text.split())


X86_CONDITIONS = "o no b ae e ne be a s ns p np l ge le g".split()
# What the first operand is: read only; written only; both. The others are always read only.
X86_READ = words("cmp test bt ucomiss ucomisd comiss comisd fld fild fadd fmul fcom fcomp fsub fsubr fdiv fdivr fiadd fimul "
                 "ficom ficomp fisub fisubr fidiv fidivr fldcw")
X86_WRITTEN = words("mov movabs movzx movsx movsxd lea movnti movss movsd movaps movups movapd movupd movdqa movdqu movd movq "
                    "movlps movhps movlpd movhpd movntps movntpd movntdq movddup movsldup movshdup lddqu movhlps movlhps "
                    "cvtsi2ss cvtsi2sd cvttss2si cvttsd2si cvtss2si cvtsd2si popcnt tzcnt lzcnt bsf bsr movmskps movmskpd "
                    "pmovmskb pextrw cvtss2sd cvtsd2ss cvtps2pd cvtpd2ps cvtdq2ps cvtps2dq cvttps2dq cvtdq2pd cvtpd2dq "
                    "cvttpd2dq sqrtss sqrtsd sqrtps sqrtpd rsqrtss rsqrtps rcpss rcpps pshufd pshufhw pshuflw fst fstp fist "
                    "fistp fisttp fnstcw fnstsw " + " ".join("set" + c for c in X86_CONDITIONS))
X86_BOTH = words("add or adc sbb and sub xor inc dec neg not shl shr sar rol ror rcl rcr sal shld shrd bts btr btc imul bswap "
                 "xadd xchg cmpxchg pinsrw " + " ".join("cmov" + c for c in X86_CONDITIONS))
X86_VECTOR = re.compile(r"(add|sub|mul|div|min|max|cmp\w*|sqrt)(ss|sd|ps|pd)$|(andn?|x?or|unpckl|unpckh|shuf|hadd|hsub|addsub)"
                        r"p[sd]$|p(add|sub|mul|andn?|x?or|cmp(eq|gt)|min|max|avg|sad|sll|srl|sra|unpck|ack|madd|shuf|align|sign|abs|hadd|hsub|mov"
                        r"[sz]x|insr|clmul)\w*$|round[ps][sd]$|cvtt?p[sd]2pi$|cvtpi2p[sd]$")
X86_NOTHING = re.compile(r"nop\w*$|endbr64$|pause$|j\w+$|c[lm][cd]$|st[cd]$|sahf$|f?wait$|prefetch\w*$|emms$|f\w+$")
X86_FIXED = {"cbw": RAX, "cwde": RAX, "cdqe": RAX, "cwd": RDX, "cdq": RDX, "cqo": RDX, "lahf": RAX, "xlat": RAX}
X86_PREFIXES = re.compile(r"^(?:(?:cs|ds|es|ss|fs|gs|data16|notrack|bnd|lock|addr32|xacquire|xrelease|rex(?:\.\w+)?|"
                          r"repn?z(?! \w*(?:ins|outs|movs|cmps|stos|lods|scas)\b)) )*")


def x86_operands(text):
    return [part.strip() for part in text.split(",")] if text else []


def x86_place(operand):
    """(base, bytes, offset) when it is memory at a register and a constant."""
    m = X86_MEMORY.match(operand)
    at = X86_ADDRESS.match(m[3]) if m else None
    if not at or m[2] or m[1] not in X86_SIZES or at[1] not in X86_WIDE:
        return None
    return X86_WIDE[at[1]], X86_SIZES[m[1]], int(at[2] or "0", 16)


def x86_stack(name, operand):
    register = X86_REGISTERS.get(operand)
    if name == "push":
        if operand in X86_REGISTERS and operand not in X86_WIDE:
            return None
        return Says(None if "[" in operand else (RSP, 8, -8), frozenset({RSP}), (RSP, -8))
    if register is None:
        return None
    return Says((RSP, 8, 0), frozenset({RSP, register}), None if register == RSP else (RSP, 8))


def x86_grows(name, operands):
    register = X86_WIDE.get(operands[0])
    if register is None:
        return None
    if name in ("inc", "dec"):
        return register, 1 if name == "inc" else -1
    by = re.match(r"-?0x[0-9a-f]+$", operands[-1]) if name in ("add", "sub") else None
    if by:
        value = int(by[0], 16)
        value = value - (1 << 64) if value >> 63 else value
        return register, value if name == "add" else -value
    at = X86_ADDRESS.match(operands[1][1:-1]) if name == "lea" else None
    return (register, int(at[2] or "0", 16)) if at and X86_WIDE.get(at[1]) == register else None


def x86_multiplies(name, operands):
    """The forms with one operand: rax, and rdx but for bytes."""
    operand = operands[0]
    small = operand in X86_WORDS[3] + X86_WORDS[4] or operand.startswith("BYTE")
    return Says(x86_place(operand), frozenset({RAX} if small else {RAX, RDX}))


def x86_general(name, operands):
    first = operands[0]
    reads, writes = name not in X86_WRITTEN, name not in X86_READ
    memory = [operand for operand in operands if "[" in operand]
    if name == "lddqu":  # its size is not written
        memory = ["XMMWORD PTR " + operand for operand in memory]
    changed = {X86_REGISTERS[first]} if writes and first in X86_REGISTERS else set()
    if name in ("xchg", "xadd") and operands[1] in X86_REGISTERS:
        changed.add(X86_REGISTERS[operands[1]])
    if name == "cmpxchg":
        changed.add(RAX)
    single = memory and name not in ("lea", "nop") and not (memory[0] == first and reads and writes)
    if name == "bt" and operands[1] in X86_REGISTERS:
        single = False
    return Says(x86_place(memory[0]) if single else None, frozenset(changed), x86_grows(name, operands) if changed else None)


def x86_64(text, _pc, _size):
    text = re.sub(r"\s*(#|<).*", "", X86_PREFIXES.sub("", text))
    words_ = text.split(None, 1)
    name, operands = words_[0], x86_operands(words_[1] if len(words_) > 1 else "")
    name = "mov" if name == "movabs" else name
    if text.split() == ["xchg", "ax,ax"]:  # a nop of two bytes
        return Says()
    if name in ("push", "pop"):
        return x86_stack(name, operands[0])
    if name in ("mul", "div", "idiv", "imul") and len(operands) == 1:
        return x86_multiplies(name, operands)
    if name in X86_FIXED:
        return Says(None, frozenset({X86_FIXED[name]}))
    if operands and (name in X86_READ or name in X86_WRITTEN or name in X86_BOTH or X86_VECTOR.match(name)):
        return x86_general(name, operands)
    return Says() if X86_NOTHING.match(name) else None


# ---- POWER ----

POWER_BYTES = {"lbz": 1, "lhz": 2, "lha": 2, "lwz": 4, "lwa": 4, "ld": 8, "lfs": 4, "lfd": 8, "stb": 1, "sth": 2, "stw": 4,
               "std": 8, "stfs": 4, "stfd": 8}
POWER_MEMORY = re.compile(r"(-?\d+)\((r?\d+)\)$")
POWER_FIRST = words("add addc adde addme addze addex addi addic addis addpcis lnia li lis subf subfc subfe subfme subfze subfic "
                    "neg mr and or xor nand nor not eqv andc orc andi andis ori oris xori xoris extsb extsh extsw cntlzw cntlzd "
                    "cnttzw cnttzd popcntb popcntw popcntd prtyw prtyd cmpb bpermd sld srd srad sradi slw srw sraw srawi "
                    "extswsli sldi srdi slwi srwi clrldi clrrdi clrlwi clrrwi rotldi rotlwi rotld rotlw clrlsldi clrlslwi "
                    "extldi extrdi extlwi extrwi insrdi inslwi insrwi rldic rldicl rldicr rldcl rldcr rldimi rlwinm rlwimi rlwnm "
                    "mulli mullw mulld mulhw mulhd mulhwu mulhdu divw divd divwu divdu divwe divde divweu divdeu modsw modsd "
                    "moduw modud maddhd maddhdu maddld setb darn iseleq isellt iselgt isel mflr mfctr mfcr mfocrf mfspr mfxer "
                    "mftb mftbu mfvrsave mfdscr mfppr mftar lbzx lhzx lhax lwzx lwax ldx lhbrx lwbrx ldbrx lbarx lharx lwarx "
                    "ldarx")
POWER_NONE = words("nop xnop sync lwsync hwsync ptesync isync eieio trap tw td twi tdi dcbt dcbtst dcbtct dcbtstct dcbst dcbf "
                   "dcbfl dcbz icbi icbt mtlr mtctr mtcrf mtocrf mtcr mtspr mtxer mtvrsave mtdscr mtppr mtppr32 mttar mcrf "
                   "mcrxrx mcrfs mtfsf mtfsfi mtfsb0 mtfsb1 crand cror crxor crnand crnor creqv crandc crorc crclr crset crnot "
                   "crmove cmpw cmpd cmpwi cmpdi cmplw cmpld cmplwi cmpldi cmprb cmpeqb stbx sthx stwx stdx sthbrx stwbrx "
                   "stdbrx stbcx sthcx stwcx stdcx stmw stq stqcx stswi stswx")
POWER_BRANCH = re.compile(r"b(|l|a|la|c|dn?z[tf]?|eq|ne|lt|gt|le|ge|so|ns)(lr|ctr|tar)?l?a?[+-]?$")
POWER_OTHER_FILES = re.compile(r"(v|x[sxv]|f|lv|stv|lx|stx|lf|stf|mt(f|v)|mf(f|v))\w+$")


def power_register(name):
    m = re.match(r"r(\d+)$", name)
    return int(m[1]) if m else None


def power_access(name, operands):
    """D and DS forms."""
    update = name[-1] == "u"
    number, base = POWER_MEMORY.match(operands[1]).groups()
    base, offset = power_register(base), int(number)
    written = {power_register(operands[0])} if name[0] == "l" and name[1] != "f" else set()
    if base is None:
        return None if update else Says(None, frozenset(written))
    place = base, POWER_BYTES[name.rstrip("u")], offset
    if not update:
        return Says(place, frozenset(written))
    return None if base in written else Says(place, frozenset(written | {base}), (base, offset))


def power_indexed_update(name, operands):
    written = {power_register(operands[1])}
    if name[0] == "l" and name[1] != "f":
        written.add(power_register(operands[0]))
    return Says(None, frozenset(written))


def power_grows(name, operands):
    if name not in ("addi", "addic", "addis") or operands[0] != operands[1]:
        return None
    return power_register(operands[0]), int(operands[2], 0) * (0x10000 if name == "addis" else 1)


def ppc64le(text, _pc, _size):
    text = re.sub(r"\s*(#|<).*", "", text)
    words_ = text.split(None, 1)
    name, operands = words_[0].rstrip("."), words_[1].strip().split(",") if len(words_) > 1 else []
    if name.rstrip("u") in POWER_BYTES and POWER_MEMORY.match(operands[1]):
        return power_access(name, operands)
    if name[-2:] == "ux" and name[:-2] in POWER_BYTES:
        return power_indexed_update(name, operands)
    if name in POWER_FIRST or name[:-1] in POWER_FIRST and name[-1] == "o":
        return Says(None, frozenset({power_register(operands[0])}), power_grows(name, operands))
    if name in POWER_NONE or POWER_BRANCH.match(name):
        return Says()
    if POWER_OTHER_FILES.match(name):
        first = power_register(operands[0])
        return Says(None, frozenset() if first is None else frozenset({first}))
    return None


# ---- SPARC ----

SPARC_BYTES = {"ldub": 1, "ldsb": 1, "lduh": 2, "ldsh": 2, "ld": 4, "lduw": 4, "ldsw": 4, "ldx": 8, "ldd": 8, "stb": 1, "sth": 2,
               "st": 4, "stw": 4, "stx": 8, "std": 8, "clrb": 1, "clrh": 2, "clr": 4, "clrx": 8}
SPARC_LAST = words("add addc sub subc and andn or orn xor xnor mulx umul smul udivx sdivx udiv sdiv sll srl sra sllx srlx srax "
                   "mulscc taddcc tsubcc taddcctv tsubcctv mov clr clruw signx sethi rd neg not popc bset bclr btog inc dec "
                   "cas casx casl casxl swap ldstub lduba ldsba lduha ldsha lda lduwa ldswa ldxa casa casxa swapa ldstuba jmpl "
                   "edge8 edge8l edge16 edge16l edge32 edge32l array8 array16 array32 alignaddr alignaddrl")
SPARC_NONE = words("nop cmp tst btst wr membar stbar flush prefetch prefetcha ret retl jmp sta stba stha stwa stxa stda")
SPARC_BRANCH = re.compile(r"f?b(a|n|e|ne|z|nz|g|le|ge|l|gu|leu|cc|cs|geu|lu|pos|neg|vc|vs|u|ug|ul|lg|ue|uge|ule|o)?$|"
                          r"br(z|nz|lez|lz|gz|gez)$")
SPARC_ADDRESS = re.compile(r"\[ (%\w+)(?: \+ (-?(?:0x)?[0-9a-f]+))? \]$")
SPARC_CALL = 15


def sparc_register(name):
    m = re.match(r"%([goli])([0-7])$", name)
    named = {"%sp": 14, "%fp": 30}
    return named.get(name) if not m else "goli".index(m[1]) * 8 + int(m[2])


def sparc_place(name, operand):
    m = SPARC_ADDRESS.match(operand)
    base = sparc_register(m[1]) if m else None
    return (base, SPARC_BYTES[name], int(m[2] or "0", 0)) if base else None


def sparc_access(name, operands):
    load = name[:2] == "ld"
    data = sparc_register(operands[-1 if load else 0])
    if operands[-1 if load else 0].endswith("fsr") or (data is not None and name in ("ldd", "std")):
        written = {data, data + 1} if load and data is not None else set()
        return Says(None, frozenset(written - {0}))
    written = {data} if load and data else set()
    return Says(sparc_place(name, operands[0 if load else -1]), frozenset(written))


def sparc_grows(name, operands):
    """inc and dec are additions of a constant to their register; what add and sub have is to be named twice."""
    name, register = name.removesuffix("cc"), sparc_register(operands[-1])
    if name in ("inc", "dec"):
        by = int(operands[0], 0) if len(operands) > 1 else 1
        return register, by if name == "inc" else -by
    if name not in ("add", "sub") or operands[0] != operands[2] or not re.match(r"-?(0x)?[0-9a-f]+$", operands[1]):
        return None
    by = int(operands[1], 0)
    return register, by if name == "add" else -by


def sparc64(text, _pc, _size):
    text = re.sub(r"\s*(!|<).*", "", text)
    words_ = text.split(None, 1)
    name, operands = words_[0].split(",")[0], [o.strip() for o in words_[1].split(",")] if len(words_) > 1 else []
    if name in SPARC_BYTES and "[" in "".join(operands):
        return sparc_access(name, operands)
    if name == "call":
        return Says(None, frozenset({SPARC_CALL}))
    if name in SPARC_LAST or name.removesuffix("cc") in SPARC_LAST:
        register = sparc_register(operands[-1])
        if register is None:
            return None
        return Says(None, frozenset({register} - {0}), sparc_grows(name, operands))
    if name in SPARC_NONE or SPARC_BRANCH.match(name) or name[0] == "f":
        return Says() if name != "flushw" else None
    return Says() if name in ("ldda", "lda") and operands[-1].startswith("%f") else None


# ---- all of them ----

@dataclasses.dataclass(frozen=True)
class Set:
    objdump: tuple  # the command
    reversed: bool  # a group of digits is a number, whose bytes lie the other way round
    parse: object
    least: float  # share of the places, and of the changes, that the disassembly knows, that must be said


SETS = {
    "x86_64": Set(("objdump", "-M", "intel"), False, x86_64, 0.95),
    "ppc64le": Set(("powerpc64le-linux-gnu-objdump", "-M", "power10"), False, ppc64le, 0.95),
    "sparc64": Set(("sparc64-linux-gnu-objdump",), False, sparc64, 0.95),
}
Insn = collections.namedtuple("Insn", "pc code text")
NO_INSTRUCTION = re.compile(r"\(bad\)|^\.long|^illtrap")


def in_memory_order(isa, code):
    groups = code.split()
    if SETS[isa].reversed:
        groups = ["".join(reversed(re.findall("..", group))) for group in groups]
    return "".join(groups)


def instructions(isa, program):
    text = subprocess.run([*SETS[isa].objdump, "-d", "--insn-width=16", program], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    for line in text.splitlines():
        part = line.split("\t", 2)
        if len(part) == 3 and part[0].endswith(":") and not NO_INSTRUCTION.search(part[2]):
            yield Insn(int(part[0][:-1], 16), in_memory_order(isa, part[1]), part[2].strip())


def decoded(isa, insns):
    lines = "".join(f"{i.pc:x} {i.code}\n" for i in insns)
    out = subprocess.run([os.environ["PLACES"], isa], input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [tuple(map(int, line.split())) for line in out.splitlines()]


class Tally:
    def __init__(self):
        self.compared = self.other_length = 0
        self.places = [0, 0]  # said, known to the disassembly
        self.changes = [0, 0]
        self.wrong, self.unsaid = [], collections.Counter()

    def place(self, insn, said, says, times):
        base, log2, offset = said
        known = says and says.place
        self.places[1] += times * bool(known)
        if base:
            self.places[0] += times
            if known != (base - 1, 1 << log2, offset):
                self.wrong.append(f"{insn.pc:x} {insn.code} {insn.text}: place {said}, wanted {known}")
        elif known:
            self.unsaid["place of " + insn.text.split()[0]] += times

    def change(self, insn, said, says, times):
        reg, by_known, by, also = said
        self.changes[1] += times * (says is not None)
        if reg == UNKNOWN:
            if says:
                self.unsaid["change of " + insn.text.split()[0]] += times
            return
        self.changes[0] += times
        written = frozenset() if reg == NOTHING else frozenset({reg - 1} | ({also - 1} if also else set()))
        grows = (reg - 1, by) if by_known else None
        if not says or written != says.writes or grows not in (None, says.grows):
            self.wrong.append(f"{insn.pc:x} {insn.code} {insn.text}: change {said}, wanted {says}")

    def add(self, insn, line, says, times):
        size, base, log2, offset, reg, by_known, by, also = line[:8]
        if size * 2 != len(insn.code):  # the disassembler takes two for one: x86's fwait and what follows
            self.other_length += times
            return
        self.compared += times
        self.place(insn, (base, log2, offset), says, times)
        self.change(insn, (reg, by_known, by, also), says, times)


def share(part):
    return part[0] / part[1] if part[1] else 0.0


def main():
    isa, programs = sys.argv[1], sys.argv[2:]
    tally, times, first = Tally(), collections.Counter(), {}
    for program in programs:
        for insn in instructions(isa, program):  # most are there more than once
            key = insn.code, insn.text
            times[key] += 1
            first.setdefault(key, insn)
    for (key, insn), line in zip(first.items(), decoded(isa, first.values()), strict=True):
        tally.add(insn, line, SETS[isa].parse(insn.text, insn.pc, len(insn.code) // 2), times[key])
    figures = (f"{tally.compared} instructions, {tally.places[0]} of {tally.places[1]} places, "
               f"{tally.changes[0]} of {tally.changes[1]} changes")
    least = SETS[isa].least
    checks = [(f"what {isa}'s decoder says is what objdump says: {figures}", not tally.wrong, "\n".join(tally.wrong[:20])),
              ("and it says most of what objdump knows", share(tally.places) >= least and share(tally.changes) >= least,
               figures),
              ("almost all instructions were compared", tally.compared > 1000 and tally.other_length <= tally.compared / 1000,
               tally.other_length)]
    for number, (name, ok, note) in enumerate(checks, 1):
        print(f"{'ok' if ok else 'not ok'} {number} - {name}")
        if not ok:
            print("\n".join("# " + line for line in str(note).splitlines()))
    for what, count in tally.unsaid.most_common(int(os.environ.get("PLACES_SHOW", "0"))):
        print(f"# left unsaid {count}: {what}")
    print(f"1..{len(checks)}")
    sys.exit(not all(ok for _, ok, _ in checks))


if __name__ == "__main__":
    main()
