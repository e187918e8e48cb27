"""Are the named barriers of a linked kernel those that were placed, and used as the contracts say?

The contracts' bodies are what the code of each component does (the audit of the object sees to
that), so they say which sites there must be.  Copies of a site are the compiler's: an unrolled loop
has several, and a site that it found to be the same twice is there once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.linked_kernel import Audit, BarrierSite
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program

_KINDS = ("sync", "arrive")


def compare_barriers(
    found: Audit, program: Program, placement: Placement, labels: tuple[Label, ...]
) -> Iterator[Diagnostic]:
    """PL0925 for ids that nobody gave, PL0938 for sites that are not what the contracts say."""
    yield from _given(found, placement, labels)
    ids = {number: name for name, number in placement.named}
    promised = operations(program)
    sites: dict[int, list[BarrierSite]] = defaultdict(list)
    for site in found.barrier_sites:
        sites[site.id].append(site)
    for number, name in sorted(ids.items()):
        wanted, threads = promised.get(name, Counter()), _threads(program, name)
        for wrong in _wrong(sites[number], wanted, threads):
            yield Diagnostic(
                "PL0938",
                f"`{found.entry}` does not use named barrier {number} (`{name}`) as the contracts "
                "say",
                labels,
                expected=_expected(wanted, threads),
                found=wrong,
                at_run_time="the barrier counts other threads than come to it",
                helps=("build the component again; report the case where it stays",),
                subject=f"{found.entry}.{name}",
            )
            break


def operations(program: Program) -> Mapping[str, Counter[str]]:
    """ "instance.barrier" -> how often the contracts' bodies sync and arrive there."""
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
    return "1 site" if number == 1 else f"{number or 'no'} sites"


def _expected(wanted: Counter[str], threads: int) -> str:
    uses = " and ".join(f"{kind} (in the contracts {wanted[kind]} x)" for kind in sorted(wanted))
    return f"{uses or 'no use'}, {threads} threads"


def _given(found: Audit, placement: Placement, labels: tuple[Label, ...]) -> Iterator[Diagnostic]:
    given = {0: "the whole CTA", **{number: name for name, number in placement.named}}
    strange = Counter({number: sites for number, sites in found.barrier_ids if number not in given})
    if strange:
        names = ", ".join("an id in a register" if n < 0 else str(n) for n in sorted(strange))
        yield Diagnostic(
            "PL0925",
            f"`{found.entry}` uses named barriers that it was not given: {names}",
            labels,
            expected=", ".join(f"{number} ({name})" for number, name in sorted(given.items())),
            found=", ".join(f"{'?' if n < 0 else n} x{c}" for n, c in sorted(strange.items())),
            at_run_time="two parts that meet at one barrier hang or pass too early",
            helps=("declare it under named_barriers: and use the id from the relocations",),
            subject=found.entry,
        )
