"""Is the linked kernel the one that was planned?  The cubin is read back and compared.

The contracts' bodies are what the code of each component does (the audit of the object sees to
that), so they say which sites of named barriers there must be.  Copies of a site are the
compiler's: an unrolled loop has several, and a site that it found to be the same twice is there
once.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pipelink_rules.diagnostics.allow import apply_allowances
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.diagnostics.wording import list_of, plural
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.link.elf import Elf
from pipelink_rules.link.linker_log import LinkLog
from pipelink_rules.link.sass import KernelCode, disassemble
from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit, BarrierSite
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.toolkit.ptxas_log import SETMAXNREG_IGNORED, WGMMA_SERIALISED
from pipelink_rules.toolkit.toolkit import Toolkit
from pipelink_rules.toolkit.weak_symbols import demangle

# What may be called in a finished kernel: the compiler's slow paths for division and square root,
# and what never comes back, such as the report of an instrumented runtime.
_SLOW_PATH = re.compile(r"__internal_\d+_")
_LAST = " (ends the kernel)"

_KINDS = ("sync", "arrive")


def audit(
    cubin: str | Path, program: Program, placement: Placement, log: LinkLog, toolkit: Toolkit
) -> Audit:
    """Return what was found in the cubin; raises PL0920..PL0929, PL0938 where it is not what was planned.

    Differences that the declaration allows are in `forced`.
    """
    found, findings = inspect(cubin, program, placement, log, toolkit)
    findings = apply_allowances(findings, program.spec)
    if any(item.severity == "error" for item in findings):
        raise PipelinkError(findings)
    return replace(
        found, forced=tuple(AllowedDiagnostics(x.code, x.message, x.allowed) for x in findings)
    )


def inspect(
    cubin: str | Path, program: Program, placement: Placement, log: LinkLog, toolkit: Toolkit
) -> tuple[Audit, tuple[Diagnostic, ...]]:
    """Return what was found, and every difference from the plan."""
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
    )
    return found, tuple(compare(found, program, placement, log))


def planned_setmaxnreg(placement: Placement) -> tuple[int, ...]:
    """Return the values the glue emits: one for each run of neighbouring warpgroups that are alike."""
    if not placement.setmaxnreg:
        return ()
    groups = {group.index: group for group in placement.warpgroups}
    values: list[int] = []
    for index, group in groups.items():
        before = groups.get(index - 1)
        alike = before and (before.roles, before.registers) == (group.roles, group.registers)
        if group.roles and not alike and group.registers != placement.entry_registers:
            values.append(group.registers)
    return tuple(sorted(values))


def region_registers(code: KernelCode, placement: Placement) -> Iterator[tuple[str, int]]:
    """Yield (program role, highest register it uses, as a count), in the order of the warps.

    Roles whose warpgroups have the same setmaxnreg value share what is found for that value.
    """
    by_value: dict[int, int] = {}
    for region in code.regions:
        by_value[region.registers] = max(by_value.get(region.registers, 0), region.highest)
    for role, _ in sorted(placement.warps, key=lambda item: item[1]):
        value = placement.registers(role)
        yield role, by_value.get(value, code.entry_region.highest)


def compare(
    found: Audit, program: Program, placement: Placement, log: LinkLog
) -> Iterator[Diagnostic]:
    """Yield every difference between what was found and what was planned."""
    span = program.spec.where("name")
    labels = (Label(span, "this megakernel"),) if span else ()
    yield from _setmaxnreg(found, placement, log, labels)
    yield from _registers(found, placement, labels)
    yield from _memory(found, program, labels)
    yield from _calls(found, program, labels)
    yield from compare_barriers(found, program, placement, labels)
    yield from _pipelined(found, labels)
    serialised = _remarks(log, WGMMA_SERIALISED)
    if serialised:
        yield Diagnostic(
            "PL0926",
            f"the assembler serialises wgmma in `{found.entry}`",
            labels,
            expected="wgmma groups in flight while the role goes on",
            found="; ".join(serialised),
            at_run_time="correct, at a fraction of the speed",
            suggestions=(
                "let no accumulator be read or moved between issue and wait",
                "leave more registers to the role that multiplies",
            ),
            subject=found.entry,
        )


def _remarks(log: LinkLog, codes: frozenset[str]) -> list[str]:
    return [f"({name}) {text}" for name, text in log.assembler.coded if name in codes]


def _setmaxnreg(
    found: Audit, placement: Placement, log: LinkLog, labels: tuple[Label, ...]
) -> Iterator[Diagnostic]:
    planned = planned_setmaxnreg(placement)
    dropped = _remarks(log, SETMAXNREG_IGNORED)
    if found.setmaxnreg == planned and not dropped:
        return
    yield Diagnostic(
        "PL0920",
        f"`{found.entry}` does not move registers between its warpgroups as planned",
        labels,
        expected=f"setmaxnreg {', '.join(map(str, planned)) or 'nowhere'}",
        found=f"setmaxnreg {', '.join(map(str, found.setmaxnreg)) or 'nowhere'}",
        at_run_time="the kernel is slower, or a warpgroup waits for registers for ever",
        notes=tuple(dropped),
        suggestions=("no component may use setmaxnreg, and no part may be left out of the link",),
        subject=found.entry,
    )


def _registers(
    found: Audit, placement: Placement, labels: tuple[Label, ...]
) -> Iterator[Diagnostic]:
    warpgroups = placement.threads // 128
    if placement.setmaxnreg:
        requested = sum(group.registers for group in placement.warpgroups)
        pool = found.registers * warpgroups
        wrong = found.registers > placement.entry_registers or requested > pool
    else:
        wrong = found.registers > placement.entry_registers
    if wrong:
        yield Diagnostic(
            "PL0927",
            f"`{found.entry}` starts with {found.registers} registers, planned were"
            f" {placement.entry_registers}",
            labels,
            expected=f"{placement.entry_registers} registers a thread at entry",
            found=f"{found.registers}",
            notes=_pool(found, placement),
            at_run_time="the shares of the warpgroups do not add up to what the CTA has",
            suggestions=("no -maxrregcount for the assembler: the launch bounds decide",),
            subject=found.entry,
        )
    for role, highest in found.region_registers:
        budget = placement.registers(role)
        if highest > budget:
            yield Diagnostic(
                "PL0923",
                f"role `{role}` uses {highest} registers and has {budget}",
                labels,
                expected=f"at most {budget}",
                found=f"R{highest - 1}",
                at_run_time="undefined: registers beyond the share belong to others",
                subject=role,
            )


def _pool(found: Audit, placement: Placement) -> tuple[str, ...]:
    """Return what the warpgroups ask for, where it is more than there is."""
    requested = sum(group.registers for group in placement.warpgroups)
    there = found.registers * (placement.threads // 128)
    if not placement.setmaxnreg or requested <= there:
        return ()
    return (f"the warpgroups ask setmaxnreg for {requested} registers a thread, {there} are there",)


def _memory(found: Audit, program: Program, labels: tuple[Label, ...]) -> Iterator[Diagnostic]:
    reports = any(name.endswith(_LAST) for name in found.calls)
    spills = found.spill_stores + found.spill_loads
    # The stack of a report that ends the kernel costs the kernel nothing while it runs.
    if spills or (found.stack_bytes and not reports):
        crowded = ", ".join(f"{role} ({count})" for role, count in found.region_registers)
        yield Diagnostic(
            "PL0921",
            f"`{found.entry}` has {found.stack_bytes} bytes of stack"
            + (f" and spills {found.spill_stores} bytes" if spills else ""),
            labels,
            expected="no stack and no spills",
            found=f"{found.stack_bytes} bytes of stack, {found.spill_stores} bytes of spill stores,"
            f" {found.spill_loads} of loads",
            at_run_time="correct, but slower than any of the parts",
            notes=(f"registers used: {crowded}",) if crowded else (),
            suggestions=("raise registers: {min} of the role that runs out, or use smaller tiles",)
            if spills
            else (
                "index fragments and relocations with constants: one that is chosen at run time "
                "lies in local memory",
            ),
            subject=found.entry,
        )
    if found.static_shared_bytes:
        yield Diagnostic(
            "PL0924",
            f"`{found.entry}` has {found.static_shared_bytes} bytes of static shared memory",
            labels,
            expected="0 bytes: all shared memory is placed",
            found=f"{found.static_shared_bytes} bytes",
            at_run_time="the placed addresses are off by that much",
            suggestions=("no __shared__ variables in components",),
            subject=found.entry,
        )


def _calls(found: Audit, program: Program, labels: tuple[Label, ...]) -> Iterator[Diagnostic]:
    left = [
        name for name in found.calls if not _SLOW_PATH.search(name) and not name.endswith(_LAST)
    ]
    if left:
        bare = {name: name.removeprefix(f"{found.entry}$") for name in left}
        spelled = demangle(list(bare.values()))
        names = list_of(spelled[bare[name]] for name in left)
        yield Diagnostic(
            "PL0922",
            f"`{found.entry}` still calls {names}",
            labels,
            expected="every component function inlined",
            found=names,
            at_run_time="each call saves registers to the stack and waits for wgmma",
            suggestions=("remove __noinline__ and recursion from the component",),
            subject=found.entry,
        )


def _pipelined(found: Audit, labels: tuple[Label, ...]) -> Iterator[Diagnostic]:
    """Yield slow paths of the compiler may be called, but not between issue and wait of wgmma."""
    if found.pipelined_calls:
        names = ", ".join(
            f"`{name.removeprefix(found.entry + '$')}`" for name in found.pipelined_calls
        )
        yield Diagnostic(
            "PL0929",
            f"`{found.entry}` calls a function while wgmma groups are pending",
            labels,
            expected="no call between wgmma and the wait for its groups",
            found=names,
            at_run_time="the call saves registers that the tensor cores still write",
            suggestions=(
                "divide or take roots before the first wgmma or after the wait for all groups",
                "divide by constants, or multiply by a reciprocal",
            ),
            subject=found.entry,
        )


def compare_barriers(
    found: Audit, program: Program, placement: Placement, labels: tuple[Label, ...]
) -> Iterator[Diagnostic]:
    """Yield PL0925 for ids that nobody gave, PL0938 for sites that are not what the contracts say."""
    yield from _unplaced_barriers(found, placement, labels)
    ids = {number: name for name, number in placement.named}
    declared = operations(program)
    sites: dict[int, list[BarrierSite]] = defaultdict(list)
    for site in found.barrier_sites:
        sites[site.id].append(site)
    for number, name in sorted(ids.items()):
        wanted, threads = declared.get(name, Counter()), _threads(program, name)
        for wrong in _wrong(sites[number], wanted, threads):
            yield Diagnostic(
                "PL0938",
                f"`{found.entry}` does not use named barrier {number} (`{name}`) as the contracts "
                "say",
                labels,
                expected=_expected(wanted, threads),
                found=wrong,
                at_run_time="the barrier counts other threads than come to it",
                suggestions=("build the component again; report the case where it stays",),
                subject=f"{found.entry}.{name}",
            )
            break


def operations(program: Program) -> Mapping[str, Counter[str]]:
    """Return "instance.barrier" -> how often the contracts' bodies sync and arrive there."""
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


def _wrong(sites: list[BarrierSite], wanted: Counter[str], threads: int) -> Iterator[str]:
    kinds = Counter[str]()
    for site in sites:
        kinds[site.kind] += site.sites
        if site.threads != threads:
            count = {-1: "a number in a register", 0: "all threads"}.get(site.threads)
            yield f"{site.kind} of {count or f'{site.threads} threads'} at {_sites(site.sites)}"
    for kind in sorted({*kinds, *wanted}):
        if bool(kinds[kind]) != bool(wanted[kind]):
            yield f"{kind} at {_sites(kinds[kind])}"


def _sites(number: int) -> str:
    return plural(number, "site") if number else "no sites"


def _expected(wanted: Counter[str], threads: int) -> str:
    uses = " and ".join(f"{kind} (in the contracts {wanted[kind]} x)" for kind in sorted(wanted))
    return f"{uses or 'no use'}, {threads} threads"


def _unplaced_barriers(
    found: Audit, placement: Placement, labels: tuple[Label, ...]
) -> Iterator[Diagnostic]:
    placed = {0: "the whole CTA", **{number: name for name, number in placement.named}}
    strange = Counter(
        {number: sites for number, sites in found.barrier_ids if number not in placed}
    )
    if strange:
        names = ", ".join("an id in a register" if n < 0 else str(n) for n in sorted(strange))
        yield Diagnostic(
            "PL0925",
            f"`{found.entry}` uses named barriers that it was not given: {names}",
            labels,
            expected=", ".join(f"{number} ({name})" for number, name in sorted(placed.items())),
            found=", ".join(f"{'?' if n < 0 else n} x{c}" for n, c in sorted(strange.items())),
            at_run_time="two parts that meet at one barrier hang or pass too early",
            suggestions=("declare it under named_barriers: and use the id from the relocations",),
            subject=found.entry,
        )
