"""Register probe: a role, linked alone and assembled with several register limits -> `Measured`.

The role, the device runtime and a generated kernel are linked to PTX once; ptxas assembles that
text with `.maxnreg R`.  The smallest R without a spill is the smallest setmaxnreg value; the
smallest R that assembles is the floor at kernel entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.compile.register_probe_source import kernel_name
from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.model.contract import Role
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Measured, Variant
from pipelink_rules.toolkit import ptxas_log
from pipelink_rules.toolkit.command_lines import nvlink_argv, ptxas_argv
from pipelink_rules.toolkit.compiler_errors import Subject
from pipelink_rules.toolkit.process import command_note, quote, run
from pipelink_rules.toolkit.ptx import closing_brace
from pipelink_rules.toolkit.toolkit import Toolkit

Assemble = Callable[[list[int]], "list[Attempt]"]  # register counts, ascending -> their runs
STEP = 8  # setmaxnreg accepts multiples of 8
WORKERS = 2


def link_probe(
    objects: Iterable[str | Path], arch: str, toolkit: Toolkit, folder: Path, subject: Subject
) -> str:
    """Return the PTX of the linked probe kernels."""
    out = folder / "probe.ptx"
    argv = nvlink_argv(toolkit, arch, [str(path) for path in objects], str(out), ptx=True)
    output = run(argv, toolkit)
    if output.ok:
        return out.read_text(encoding="utf-8")
    missing = sorted(set(re.findall(r"[Uu]ndefined reference to '([^']+)'", output.text)))
    code, message, expected = "PL1209", f"the register probe of {subject.name} does not link", ""
    if missing:
        code, message = "PL0913", f"{subject.name} calls undefined {list_of(missing)}"
        expected = "operations of <pipelink/runtime.cuh>, or functions of the component"
    raise error(
        code,
        message,
        (subject.contract.span if subject.contract else None, "this contract"),
        expected=expected,
        found=quote(output.text),
        notes=(command_note(output),),
        subject=subject.name,
    )


def probe_role(
    variant: Variant, role: Role, ptx: str, arch: str, toolkit: Toolkit, folder: Path
) -> Measured:
    """Return the needs of a role; raise if it spills with all registers or wgmma is serialized."""
    kernel = only_kernel(ptx, kernel_name(role.name))
    assemble = _Assembler(variant, role, kernel, arch, toolkit, folder)
    limit = TARGETS[arch].setmaxnreg_maximum if arch in TARGETS else 240
    lowest = TARGETS[arch].setmaxnreg_minimum if arch in TARGETS else STEP * 3
    declared = min(max(role.registers.minimum.literal or lowest, lowest), limit)
    with ThreadPoolExecutor(WORKERS) as pool:
        registers = smallest(lambda many: list(pool.map(assemble, many)), lowest, limit, declared)
    best = assemble(registers or limit)
    found = best.log.function(kernel_name(role.name)) or ptxas_log.FunctionLog("")
    assemble.check_best(best, found, registers)
    entry = lowest
    if "wgmma." in ptx:  # the only instructions that set a floor
        floor = assemble(lowest)
        entry = lowest if floor.assembled else floor.log.register_floor or registers
    return Measured(registers or limit, entry, found.stack_bytes, found.shared_bytes)


def smallest(attempt: Assemble, lowest: int, limit: int, guess: int) -> int:
    """Return the smallest multiple of 8 from which on nothing spills; 0 if the limit spills.

    The guess (the contract's minimum) and the next lower count are tried first: they suffice if
    the contract is exact.  ptxas may spill with more registers what fits into fewer, so a few
    counts above the result must fit as well, up to the count it uses without a limit.
    `attempt` receives several counts in one call.
    """
    tried = dict(zip(sorted({guess, limit}), attempt(sorted({guess, limit})), strict=True))
    if not tried[limit].fits:
        return 0
    free = min(limit, max(lowest, -(-tried[limit].used // STEP) * STEP))
    if guess >= free:  # the same code as with the limit
        best = _below(attempt, lowest, free)
    elif tried[guess].fits:
        best = _below(attempt, lowest, guess)
    else:
        best = _between(attempt, guess, free)
    while True:
        above = {best + distance for distance in (8, 16, 32, 64) if best + distance < free}
        failed = [count for count, fits in _fits(attempt, above).items() if not fits]
        if not failed:
            return best
        best = _between(attempt, max(failed), free)


def _fits(attempt: Assemble, counts: Iterable[int]) -> dict[int, bool]:
    """Return whether each count fits, in ascending order."""
    ordered = sorted(set(counts))
    return {count: result.fits for count, result in zip(ordered, attempt(ordered), strict=True)}


def _below(attempt: Assemble, lowest: int, high: int) -> int:
    """Return the smallest count that fits, given that `high` does; near counts are tried first."""
    for distance in (STEP, STEP, 4 * STEP):
        count = max(lowest, high - distance)
        if count == high:
            return high
        if not _fits(attempt, {count})[count]:
            return _between(attempt, count, high)
        high = count
    return _between(attempt, lowest - STEP, high)


def _between(attempt: Assemble, low: int, high: int) -> int:
    """Return the smallest count that fits above `low`, which does not, up to `high`, which does."""
    while high - low > STEP:
        third = max(STEP, (high - low) // 3 // STEP * STEP)
        for count, fits in _fits(attempt, {low + third, min(low + 2 * third, high - STEP)}).items():
            if fits:
                high = count
                break
            low = count
    return high


@dataclass(frozen=True)
class Attempt:
    """One run of ptxas."""

    assembled: bool
    fits: bool  # assembled without stack or spills
    used: int  # registers
    log: ptxas_log.AssemblerLog


class _Assembler:
    """Runs ptxas on one probe kernel; each register count once."""

    def __init__(
        self, variant: Variant, role: Role, ptx: str, arch: str, toolkit: Toolkit, folder: Path
    ):
        self._variant, self._role, self._ptx = variant, role, ptx
        self._arch, self._toolkit, self._folder = arch, toolkit, folder
        self.runs: dict[int, Attempt] = {}

    def __call__(self, registers: int) -> Attempt:
        if registers in self.runs:
            return self.runs[registers]
        stem = self._folder / f"{self._role.name}_{registers}"
        source = stem.with_suffix(".ptx")
        source.write_text(with_registers(self._ptx, registers), encoding="utf-8")
        argv = ptxas_argv(self._toolkit, self._arch, str(source), str(stem.with_suffix(".cubin")))
        output = run(argv, self._toolkit)
        log = ptxas_log.read_assembler_log(output.text)
        if not output.ok and ptxas_log.TOO_FEW_REGISTERS not in dict(log.coded):
            component = self._variant.contract.component
            raise error(
                "PL0905",
                f"ptxas rejects component `{component}`",
                self._location("body"),
                expected="inline assembly that ptxas accepts",
                found=quote(output.text),
                notes=(command_note(output),),
                subject=component,
            )
        numbers = log.function(kernel_name(self._role.name)) or ptxas_log.FunctionLog("")
        fits = output.ok and not numbers.stack_bytes and not numbers.spill_stores
        self.runs[registers] = Attempt(output.ok, fits, numbers.registers, log)
        return self.runs[registers]

    def check_best(self, best: Attempt, found: ptxas_log.FunctionLog, registers: int) -> None:
        """Raise the errors that no register limit can prevent."""
        component, role = self._variant.contract.component, self._role.name
        name, subject = f"role `{role}` of `{component}`", f"{component}.{role}"
        serialized = [text for code, text in best.log.coded if code in ptxas_log.WGMMA_SERIALIZED]
        if serialized:
            raise error(
                "PL0926",
                f"ptxas serializes wgmma in {name}",
                self._location("body"),
                expected="wgmma groups in flight while the role continues",
                found="; ".join(serialized),
                suggestions=(
                    "do not read, move or pass accumulators by value between wgmma_fence() and"
                    " wgmma_wait()",
                ),
                subject=subject,
            )
        if registers:
            return
        if found.stack_bytes and not found.spill_stores:
            raise error(
                "PL0902",
                f"{name} uses {found.stack_bytes:,} bytes of local memory",
                self._location("registers"),
                expected="all data in registers",
                found=f"{found.stack_bytes:,} bytes of stack, no spills",
                suggestions=(
                    "index arrays with constants only: unroll the loop that indexes them",
                    "or, for relocations (`at.ring[i]`), select them at compile time",
                ),
                subject=subject,
            )
        raise error(
            "PL0910",
            f"{name} needs more registers than a thread can have",
            self._location("registers"),
            expected=f"no spills with {max(self.runs)} registers",
            found=f"{found.spill_stores:,} bytes of spill stores",
            suggestions=("reduce the work of a thread: use smaller tiles, or more warps",),
            subject=subject,
        )

    def _location(self, clause: str) -> tuple[Span | None, str]:
        return self._role.where(clause), f"role `{self._role.name}`"


_KERNEL = re.compile(r"^\.visible \.entry (\w+)", re.M)


def only_kernel(ptx: str, name: str) -> str:
    """Return the text without the other kernels."""
    parts, position = [], 0
    for found in _KERNEL.finditer(ptx):
        if found[1] == name:
            continue
        parts.append(ptx[position : found.start()])
        position = closing_brace(ptx, ptx.index("{", found.end())) + 1
    return "".join([*parts, ptx[position:]])


def with_registers(ptx: str, registers: int) -> str:
    """Return the text with a register limit on its kernel."""
    return re.sub(r"^(\.maxntid [^\n]*)$", rf"\1\n.maxnreg {registers}", ptx, count=1, flags=re.M)
