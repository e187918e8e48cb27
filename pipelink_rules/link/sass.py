"""Machine code of a kernel: nvdisasm's text -> instructions, calls, barriers, role code ranges."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.model.linked_kernel import BarrierSite
from pipelink_rules.toolkit.process import run_tool
from pipelink_rules.toolkit.toolkit import Toolkit

_SECTION = re.compile(r"^[ \t]*\.section\s+\.text\.([^,\s]+),", re.M)
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(@!?\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;?\s*$")
_LABEL = re.compile(r"^\s*(\.L_\w+|[\w$.]+):\s*$")
_TARGET = re.compile(r"`\(([^)]+)\)")
_REGISTER = re.compile(r"(?<![\w.])R(\d{1,4})((?:\.\w+)*)")
_VALUE = re.compile(r"0x([0-9a-f]+)")
_WIDE_OPCODES = {"HGMMA": 1, "QGMMA": 1, "IGMMA": 1, "BGMMA": 1}
_CALLS = ("CALL", "CALLX", "JCAL")
_BARRIERS = ("BAR", "UBAR")
_KINDS = ((".ARV", "arrive"), (".RED", "reduce"))
_ENDS = ("EXIT", "RET", "BPT.TRAP")  # nothing follows them


@dataclass(frozen=True)
class Instruction:
    """One machine instruction."""

    address: int
    guard: str  # "@P0", "@!UP1" or ""
    opcode: str  # "BAR.SYNC.DEFER_BLOCKING"
    operands: str

    @property
    def base(self) -> str:
        """`BAR`."""
        return self.opcode.split(".", 1)[0]

    @property
    def target(self) -> str:
        """The label in its operands, or ""."""
        found = _TARGET.search(self.operands)
        return found[1] if found else ""

    @property
    def highest_register(self) -> int:
        """The highest general register in its operands; -1 = none."""
        width = self._width()
        highest = -1
        for position, found in enumerate(_REGISTER.finditer(self.operands)):
            span = width if position == 0 else 1
            if ".64" in found[2]:
                span = max(span, 2)
            highest = max(highest, int(found[1]) + span - 1)
        return highest

    def _width(self) -> int:
        """Return the registers of the first operand (the result, or the stored value)."""
        if self.base in _WIDE_OPCODES:
            shape = re.search(r"\.64x(\d{1,4})x", self.opcode)
            return int(shape[1]) // 2 if shape else 1
        if self.base in ("LDSM", "STSM"):
            return {".4": 4, ".2": 2}.get(self.opcode[-2:], 1)
        if ".128" in self.opcode:
            # A store's first register is its address, one or two registers wide.
            return 4 if self.base.startswith("LD") else 2
        return 2 if ".64" in self.opcode or ".WIDE" in self.opcode else 1


@dataclass(frozen=True)
class RoleCodeRange:
    """The code of a warpgroup from its setmaxnreg on."""

    registers: int  # the value of setmaxnreg; 0 = the code before any
    highest: int  # highest register in it, as a count: R39 -> 40


class KernelCode:
    """The instructions of one kernel."""

    def __init__(self, text: str):
        self.instructions, self._labels = _read(text)

    def __len__(self) -> int:
        """Return the number of instructions without the loop and the NOPs that pad the end."""
        end = len(self.instructions)
        while end and self.instructions[end - 1].base == "NOP":
            end -= 1
        if end and self.instructions[end - 1].base == "BRA":
            last = self.instructions[end - 1]
            if self._labels.get(last.target) == end - 1:
                end -= 1
        return end

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """Targets of calls that return, sorted; "(register)" for a computed target."""
        return self._called(ending=False)

    @cached_property
    def last_calls(self) -> tuple[str, ...]:
        """Targets of calls that never return: they end the kernel."""
        return self._called(ending=True)

    def _called(self, *, ending: bool) -> tuple[str, ...]:
        found = (item for item in self.instructions if item.base in _CALLS)
        targets = (item.target or "(register)" for item in found)
        return tuple(sorted({n.removeprefix("$") for n in targets if self._ends(n) == ending}))

    @cached_property
    def pipelined_calls(self) -> tuple[str, ...]:
        """Targets of calls on a path from a wgmma to the next wait for all groups, sorted."""
        items = self.instructions
        issues = [index for index, item in enumerate(items) if item.base in _WIDE_OPCODES]
        waits = {index for index, item in enumerate(items) if _waits_for_all(item)}
        reached: set[int] = set()
        for index in issues:
            if index not in reached:
                reached |= self._reach(index, waits | reached)
        targets = {items[index].target for index in reached if items[index].base in _CALLS}
        return tuple(sorted(name.removeprefix("$") or "(register)" for name in targets))

    def _ends(self, target: str) -> bool:
        """Return whether no return is reachable from a target."""
        start = self._labels.get(target)
        if start is None:
            return False
        reached = self._reach(start, set())
        return not any(self.instructions[index].base == "RET" for index in reached)

    @cached_property
    def setmaxnreg(self) -> tuple[int, ...]:
        """The values of USETMAXREG, sorted, one per site."""
        return tuple(sorted(value for _, value in self._setmaxnreg_sites()))

    def _setmaxnreg_sites(self) -> Iterator[tuple[int, int]]:
        for index, item in enumerate(self.instructions):
            if item.base == "USETMAXREG":
                values = _VALUE.findall(item.operands)
                yield index, int(values[-1], 16) if values else -1

    @cached_property
    def barriers(self) -> tuple[tuple[int, int], ...]:
        """(named barrier id, sites), sorted; id -1 = the id is in a register."""
        found: Counter[int] = Counter()
        for site in self.barrier_sites:
            found[site.id] += site.sites
        return tuple(sorted(found.items()))

    @cached_property
    def barrier_sites(self) -> tuple[BarrierSite, ...]:
        """Every BAR: barrier id, kind, number of threads, number of sites."""
        found: Counter[tuple[int, str, int]] = Counter()
        for item in self.instructions:
            if item.base in _BARRIERS:
                parts = [part.strip() for part in item.operands.split(",")]
                kind = next((kind for mark, kind in _KINDS if mark in item.opcode), "sync")
                threads = _number(parts[1]) if len(parts) > 1 else 0
                found[_number(parts[0]), kind, threads] += 1
        return tuple(BarrierSite(*key, sites) for key, sites in sorted(found.items()))

    @cached_property
    def regions(self) -> tuple[RoleCodeRange, ...]:
        """The code reachable from each setmaxnreg without passing another one."""
        sites = dict(self._setmaxnreg_sites())
        return tuple(
            self._range(value, index + 1, sites.keys() - {index}) for index, value in sites.items()
        )

    @cached_property
    def entry_region(self) -> RoleCodeRange:
        """The code reachable from the start without passing a setmaxnreg."""
        return self._range(0, 0, {index for index, _ in self._setmaxnreg_sites()})

    def _range(self, value: int, start: int, stops: set[int]) -> RoleCodeRange:
        reached = (self.instructions[index] for index in self._reach(start, stops))
        return RoleCodeRange(value, 1 + max((i.highest_register for i in reached), default=-1))

    def _reach(self, start: int, stops: set[int]) -> set[int]:
        reached: set[int] = set()
        todo = [start]
        while todo:
            index = todo.pop()
            if index in reached or index in stops or index >= len(self.instructions):
                continue
            reached.add(index)
            todo += self._successors(index)
        return reached

    def _successors(self, index: int) -> list[int]:
        item = self.instructions[index]
        target = self._labels.get(item.target)
        jump = [target] if target is not None else []
        if item.base in ("BRA", "JMP", "BRX", "JMX", "BRXU"):
            # A predicate is a guard of the instruction or one of its operands.
            bare = not item.guard and re.fullmatch(r"`\([^)]+\)", item.operands) is not None
            return jump if bare else [*jump, index + 1]
        if item.opcode.startswith(_ENDS) and not item.guard:
            return []
        return [*jump, index + 1]


def _number(operand: str) -> int:
    """Return the value of an immediate; -1 for a register."""
    value = re.fullmatch(r"0x([0-9a-f]+)", operand)
    return int(value[1], 16) if value else -1


def _waits_for_all(item: Instruction) -> bool:
    """Return whether no wgmma group is pending after it: `WARPGROUP.DEPBAR.LE gsb0, 0x0`."""
    return item.opcode.startswith("WARPGROUP.DEPBAR") and item.operands.endswith(" 0x0")


def disassemble(cubin: str | Path, kernel: str, toolkit: Toolkit) -> KernelCode:
    """Return the instructions of a kernel; PL1206 without nvdisasm, PL1204 if it fails."""
    if not toolkit.nvdisasm:
        raise error(
            "PL1206",
            "nvdisasm was not found, so the linked kernel cannot be audited",
            expected="nvdisasm beside nvcc or on PATH",
            suggestions=("python -m pip install 'pipelink[toolkit]'",),
            subject="nvdisasm",
        )
    # Without data flow analysis the labels are the same, in two thirds of the time.  Text, because
    # -json takes a third longer and does not contain the start of called functions.
    argv = [toolkit.nvdisasm, "-c", "-ndf", str(cubin)]
    output = run_tool(argv, toolkit.environment(os.environ), timeout=300)
    text = section_of(output.text, kernel)
    if not output.ok or not text:
        raise error(
            "PL1204",
            f"nvdisasm cannot read `{kernel}`",
            found=output.text[:400],
            subject="nvdisasm",
        )
    return KernelCode(text)


def section_of(text: str, kernel: str) -> str:
    """Return the listing of one kernel from that of a whole cubin."""
    starts = [(found[1], found.start()) for found in _SECTION.finditer(text)]
    for (name, start), (_, end) in pairwise([*starts, ("", len(text))]):
        if name == kernel:
            return text[start:end]
    return ""


def _read(text: str) -> tuple[tuple[Instruction, ...], dict[str, int]]:
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if found := _LINE.match(line):
            guard = (found[2] or "").strip()
            operands = re.sub(r"\s*;.*$", "", found[4])
            instructions.append(Instruction(int(found[1], 16), guard, found[3], operands))
        elif found := _LABEL.match(line):
            labels[found[1]] = len(instructions)
    return tuple(instructions), labels
