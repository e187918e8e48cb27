"""Audit of a linked kernel: cubin, program and placement -> PL0920 to PL0929, PL0932, PL0938.

The audit of each object compares its code with the body of its contract, so the bodies determine
the expected sites of named barriers.  The compiler may change their number: it duplicates a site
of an unrolled loop and merges equal sites.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from pipelink_rules.diagnostics.allow import apply_allowances
from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic, PipelinkError, report
from pipelink_rules.diagnostics.wording import list_of, plural
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.glue.emit import runs_of
from pipelink_rules.link.elf import Elf
from pipelink_rules.link.linker_log import LinkLog
from pipelink_rules.link.sass import KernelCode, disassemble
from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit, BarrierSite
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.model.variant import INCONCLUSIVE
from pipelink_rules.toolkit.ptxas_log import SETMAXNREG_IGNORED, WGMMA_SERIALIZED
from pipelink_rules.toolkit.toolkit import Toolkit
from pipelink_rules.toolkit.weak_symbols import demangle

# Allowed calls in a linked kernel: the compiler's slow paths for division and square root, and
# functions that never return, such as the report of an instrumented runtime.
_SLOW_PATH = re.compile(r"__internal_\d+_")
_LAST = " (ends the kernel)"

_KINDS = ("sync", "arrive")
_COUNTS = {-1: "a count in a register", 0: "all threads"}


def audit(
    cubin: str | Path, program: Program, placement: Placement, log: LinkLog, toolkit: Toolkit
) -> Audit:
    """Return the audit of the cubin; raise PL0920..PL0929, PL0932, PL0938 where it differs.


    Differences that the declaration allows are in `allowed`.
    """
    found, differences = inspect(cubin, program, placement, log, toolkit)
    differences = apply_allowances(differences, program.spec)
    if any(item.severity == "error" for item in differences):
        raise PipelinkError(differences)
    allowed = (AllowedDiagnostics(x.code, x.message, x.allowed) for x in differences)
    return replace(found, allowed=tuple(allowed))


def inspect(
    cubin: str | Path, program: Program, placement: Placement, log: LinkLog, toolkit: Toolkit
) -> tuple[Audit, tuple[Diagnostic, ...]]:
    """Return the audit of the cubin and every difference from the plan."""
    elf = Elf(Path(cubin).read_bytes())
    code = disassemble(cubin, program.name, toolkit)
    numbers = log.function(program.name)
    found = Audit(
        entry=program.name,
        registers=elf.registers(program.name) or numbers.registers,
        stack_bytes=max(elf.stack_bytes(program.name), numbers.stack_bytes),
        spill_stores=numbers.spill_stores,
        spill_loads=numbers.spill_loads,
        static_shared_bytes=max(elf.static_shared(program.name), numbers.shared_bytes),
        instructions=len(code),
        calls=(*code.calls, *(name + _LAST for name in code.last_calls)),
        setmaxnreg=code.setmaxnreg,
        barrier_ids=code.barriers,
        barrier_sites=code.barrier_sites,
        region_registers=tuple(region_registers(code, placement)),
        text_sha256=hashlib.sha256(elf.code(program.name)).hexdigest(),
        pipelined_calls=tuple(name for name in code.pipelined_calls if name in code.calls),
        warnings=tuple(f"{name}: {text}" for name, text in log.assembler.coded),
        verdicts=log.verdicts,
    )
    return found, tuple(compare(found, program, placement, log))


def planned_setmaxnreg(placement: Placement) -> tuple[int, ...]:
    """Return the values that the glue emits: one for each run of equal adjacent warpgroups."""
    if not placement.setmaxnreg:
        return ()
    values = (run[0].registers for run in runs_of(placement.warpgroups))
    return tuple(sorted(value for value in values if value != placement.entry_registers))


def region_registers(code: KernelCode, placement: Placement) -> Iterator[tuple[str, int]]:
    """Yield (program role, number of registers it uses), in the order of the warps.

    Roles whose warpgroups have the same setmaxnreg value share the number of that value.
    """
    for role, _ in sorted(placement.warps, key=lambda item: item[1]):
        value = placement.registers(role)
        used = (region.highest for region in code.regions if region.registers == value)
        yield role, max(used, default=code.entry_region.highest)


def compare(
    found: Audit, program: Program, placement: Placement, log: LinkLog
) -> Iterator[Diagnostic]:
    """Yield every difference between the plan and the linked kernel."""
    return _Comparison(found, program, placement, log).differences()


@dataclass(frozen=True)
class _Comparison:
    found: Audit
    program: Program
    placement: Placement
    log: LinkLog

    def differences(self) -> Iterator[Diagnostic]:
        yield from self._setmaxnreg()
        yield from self._registers()
        yield from self._memory()
        yield from self._calls()
        yield from self._pipelined_calls()
        yield from self._unplaced_barriers()
        yield from self._barrier_sites()
        yield from self._inconclusive()
        if serialized := self._remarks(WGMMA_SERIALIZED):
            yield self._difference(
                "PL0926",
                f"ptxas serializes wgmma in `{self.found.entry}`",
                expected="wgmma groups in flight while the role continues",
                found="; ".join(serialized),
                at_run_time="correct results, at a fraction of the speed",
                suggestions=(
                    "do not read or move accumulators between issue and wait",
                    "or leave more registers to the role that issues wgmma",
                ),
            )

    def _inconclusive(self) -> Iterator[Diagnostic]:
        for one in self.found.verdicts:
            if one.verdict == INCONCLUSIVE:
                yield self._difference(
                    "PL0932",
                    f"`{self.found.entry}` links role `{one.role}` of `{one.component}`, whose "
                    "audit is inconclusive",
                    subject=f"{self.found.entry}: {one.component}.{one.role}",
                    expected="a role that is proved or tested",
                    found=one.reason,
                    at_run_time="unknown: nothing says that the code performs its contract",
                    suggestions=(
                        "change the role until its audit is conclusive",
                        'or add allow={"PL0932": "..."} with the reason to the megakernel',
                    ),
                )

    def _difference(
        self, code: str, message: str, subject: str = "", **details: Unpack[Details]
    ) -> Diagnostic:
        where = (self.program.spec.where("name"), "this megakernel")
        return report(code, message, where, subject=subject or self.found.entry, **details)

    def _remarks(self, codes: frozenset[str]) -> list[str]:
        return [f"({name}) {text}" for name, text in self.log.assembler.coded if name in codes]

    def _setmaxnreg(self) -> Iterator[Diagnostic]:
        planned, actual = planned_setmaxnreg(self.placement), self.found.setmaxnreg
        dropped = self._remarks(SETMAXNREG_IGNORED)
        if actual != planned or dropped:
            yield self._difference(
                "PL0920",
                f"`{self.found.entry}` does not move registers between warpgroups as planned",
                expected=f"setmaxnreg {', '.join(map(str, planned)) or 'nowhere'}",
                found=f"setmaxnreg {', '.join(map(str, actual)) or 'nowhere'}",
                at_run_time="the kernel is slower, or a warpgroup hangs waiting for registers",
                notes=tuple(dropped),
                suggestions=("remove setmaxnreg from components, and link every object",),
            )

    def _registers(self) -> Iterator[Diagnostic]:
        entry, actual = self.placement.entry_registers, self.found.registers
        requested = sum(group.registers for group in self.placement.warpgroups)
        available = actual * (self.placement.threads // 128)
        exceeded = self.placement.setmaxnreg and requested > available
        if actual > entry or exceeded:
            note = f"setmaxnreg requests {requested} registers per thread summed over warpgroups; "
            note += f"{available} are available"
            yield self._difference(
                "PL0927",
                f"`{self.found.entry}` starts with {actual} registers; {entry} were planned",
                expected=f"{entry} registers per thread at entry",
                found=f"{actual} registers per thread",
                notes=(note,) if exceeded else (),
                at_run_time="the register budgets of the warpgroups exceed those of the CTA",
                suggestions=("remove -maxrregcount: the launch bounds decide",),
            )
        for role, highest in self.found.region_registers:
            budget = self.placement.registers(role)
            if highest > budget:
                yield self._difference(
                    "PL0923",
                    f"role `{role}` uses {highest} registers of its budget of {budget}",
                    role,
                    expected=f"at most {budget} registers",
                    found=f"{highest} registers: R{highest - 1}",
                    at_run_time="undefined: registers beyond the budget belong to other warpgroups",
                )

    def _memory(self) -> Iterator[Diagnostic]:
        found = self.found
        reports = any(name.endswith(_LAST) for name in found.calls)
        spills = found.spill_stores + found.spill_loads
        # The stack of a report that ends the kernel costs nothing while the kernel runs.
        if spills or (found.stack_bytes and not reports):
            used = ", ".join(f"{role} ({count})" for role, count in found.region_registers)
            stack = f"{found.stack_bytes:,} bytes of stack"
            stores = f"{found.spill_stores:,} bytes of spill stores"
            message = f"`{found.entry}` has {stack}"
            suggestion = "index fragments and relocations with constants: one that is selected at "
            suggestion += "run time is placed in local memory"
            if spills:
                message += f" and spills {found.spill_stores:,} bytes"
                suggestion = (
                    "raise `registers: {min}` of the role that spills, or use smaller tiles"
                )
            yield self._difference(
                "PL0921",
                message,
                expected="no stack and no spills",
                found=f"{stack}, {stores}, {found.spill_loads:,} bytes of spill loads",
                at_run_time="correct results, but slower than any of the components",
                notes=(f"registers used: {used}",) if used else (),
                suggestions=(suggestion,),
            )
        if found.static_shared_bytes:
            static = f"{found.static_shared_bytes:,} bytes of static shared memory"
            yield self._difference(
                "PL0924",
                f"`{found.entry}` has {static}",
                expected="0 bytes of static shared memory",
                found=static,
                at_run_time="every placed address is off by this size",
                suggestions=("remove __shared__ variables from components",),
            )

    def _calls(self) -> Iterator[Diagnostic]:
        calls = (name for name in self.found.calls if not name.endswith(_LAST))
        left = [name for name in calls if not _SLOW_PATH.search(name)]
        if left:
            names = self._spelled(left)
            yield self._difference(
                "PL0922",
                f"`{self.found.entry}` still calls {names}",
                expected="every component function inlined",
                found=names,
                at_run_time="each call saves registers to the stack and waits for wgmma",
                suggestions=("remove __noinline__ and recursion from the component",),
            )

    def _pipelined_calls(self) -> Iterator[Diagnostic]:
        """Yield PL0929: the compiler's slow paths may not be called between issue and wait."""
        if self.found.pipelined_calls:
            yield self._difference(
                "PL0929",
                f"`{self.found.entry}` calls a function while wgmma groups are pending",
                expected="no call between wgmma and the wait for its groups",
                found=self._spelled(self.found.pipelined_calls),
                at_run_time="the call saves registers that the tensor cores still write",
                suggestions=(
                    "divide or take roots before the first wgmma or after the wait for all groups",
                    "or divide by constants, or multiply by a reciprocal",
                ),
            )

    def _spelled(self, names: Sequence[str]) -> str:
        bare = [name.removeprefix(f"{self.found.entry}$") for name in names]
        spelled = demangle(bare)
        return list_of(spelled[name] for name in bare)

    def _unplaced_barriers(self) -> Iterator[Diagnostic]:
        placed = {0: "the whole CTA", **{number: name for name, number in self.placement.named}}
        unplaced = sorted(item for item in self.found.barrier_ids if item[0] not in placed)
        if unplaced:
            names = ", ".join("an id in a register" if n < 0 else str(n) for n, _ in unplaced)
            sites = ", ".join(f"{'?' if n < 0 else n} x{c}" for n, c in unplaced)
            yield self._difference(
                "PL0925",
                f"`{self.found.entry}` uses unplaced named barriers: {names}",
                expected=", ".join(f"{number} ({name})" for number, name in sorted(placed.items())),
                found=sites,
                at_run_time="components that share a barrier hang or continue too early",
                suggestions=("declare it in `named_barriers` and use the id of its relocation",),
            )

    def _barrier_sites(self) -> Iterator[Diagnostic]:
        """Yield PL0938 for barriers whose sites differ from the operations of the contracts."""
        declared = _declared_sites(self.program)
        sites: dict[int, list[BarrierSite]] = defaultdict(list)
        for site in self.found.barrier_sites:
            sites[site.id].append(site)
        for number, name in sorted({number: name for name, number in self.placement.named}.items()):
            wanted, threads = declared.get(name, Counter()), _threads(self.program, name)
            difference = next(_site_differences(sites[number], wanted, threads), "")
            if difference:
                yield self._difference(
                    "PL0938",
                    f"`{self.found.entry}` does not use named barrier {number} (`{name}`) as its "
                    "contracts declare",
                    f"{self.found.entry}.{name}",
                    expected=_expected_sites(wanted, threads),
                    found=difference,
                    at_run_time="the barrier waits for a wrong number of threads",
                    suggestions=("rebuild the component; if the error remains, report it",),
                )


def _declared_sites(program: Program) -> Mapping[str, Counter[str]]:
    """Return "instance.barrier" -> how often the bodies of the contracts sync and arrive there."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for role in program.roles:
        for instance, name in role.members:
            declared = program.instance(instance).variant.contract.role(name)
            for op in _flat((*declared.prologue, *declared.body, *declared.epilogue)):
                if op.verb in _KINDS:
                    found[f"{instance}.{op.target}"][op.verb] += 1
    return found


def _flat(body: tuple[Operation | Repeat, ...]) -> Iterator[Operation]:
    for item in body:
        if isinstance(item, Operation):
            yield item
        elif item.count.literal != 0:
            yield from _flat(item.body)


def _threads(program: Program, name: str) -> int:
    instance, _, barrier = name.rpartition(".")
    barriers = program.instance(instance).variant.contract.named_barriers
    return next((evaluate(b.count, {}) for b in barriers if b.name == barrier), 0)


def _site_differences(
    sites: list[BarrierSite], wanted: Counter[str], threads: int
) -> Iterator[str]:
    kinds = Counter[str]()
    for site in sites:
        kinds[site.kind] += site.sites
        if site.threads != threads:
            count = _COUNTS.get(site.threads) or plural(site.threads, "thread")
            yield f"{site.kind} with {count} at {plural(site.sites, 'site')}"
    for kind in sorted({*kinds, *wanted}):
        if bool(kinds[kind]) != bool(wanted[kind]):
            yield f"{kind} at {plural(kinds[kind], 'site')}"


def _expected_sites(wanted: Counter[str], threads: int) -> str:
    kinds = sorted(wanted)
    uses = " and ".join(f"{k} ({plural(wanted[k], 'time')} in the contracts)" for k in kinds)
    return f"{uses or 'no use'}, {plural(threads, 'thread')}"
