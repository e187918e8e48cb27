"""Which columns of tensor memory does each need take, and do they fit?

One allocation serves the whole CTA: a power of two of columns, at least 32, and those of all CTAs
on the SM together at most what it has (PTX ISA, tcgen05.alloc).  A need has all 128 lanes of its
columns, so that columns are all there is to place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.placement import PlacementProblem
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.allocation_sizes import Rectangle, minimum_stages
from pipelink_rules.place.greedy import first_fit
from pipelink_rules.place.lower_bounds import bound
from pipelink_rules.place.wording import SHOWN, labels, phase_name

LEAST_ALLOCATION = 32  # columns; PTX ISA, tcgen05.alloc: powers of two from 32 up


def column_limit(problem: PlacementProblem, occupancy: int | None = None) -> int:
    """The largest allocation of one CTA when `occupancy` of them share the SM."""
    share = TARGETS[problem.target].tmem_columns // (occupancy or problem.occupancy)
    power = 1 << max(share, 1).bit_length() - 1
    return power if power >= LEAST_ALLOCATION else 0


def allocation(height: int) -> int:
    """Columns to allocate for a layout of this height; 0 for none."""
    return max(LEAST_ALLOCATION, 1 << (height - 1).bit_length()) if height else 0


def column_rectangles(
    problem: PlacementProblem, stages: Mapping[str, int]
) -> tuple[Rectangle, ...]:
    """Every need at the given stage counts, by name; `bytes` are columns."""
    found = [
        Rectangle(n.name, n.columns * (stages[n.channel] if n.channel else 1), 1, n.phases)
        for n in problem.tensor
    ]
    return tuple(sorted(found, key=lambda rectangle: rectangle.name))


def columns_admit(problem: PlacementProblem, stages: Mapping[str, int], occupancy: int) -> bool:
    """Do the columns alive in every phase fit?  Necessary for a layout."""
    most, _ = bound(column_rectangles(problem, stages))
    return most <= column_limit(problem, occupancy)


def suggest_columns(problem: PlacementProblem, stages: Mapping[str, int]) -> dict[str, int]:
    """First columns of a greedy layout, fitting or not."""
    return first_fit(column_rectangles(problem, stages))[0]


def columns_exceeded(
    problem: PlacementProblem, helps: Callable[[], tuple[str, ...]]
) -> Iterator[Diagnostic]:
    """PL0801 where the columns alive in one phase exceed the largest allocation."""
    needs = column_rectangles(problem, minimum_stages(problem))
    most, phase = bound(needs)
    limit = column_limit(problem)
    if most <= limit:
        return
    holders = sorted(
        (need for need in needs if need.phases >> phase & 1),
        key=lambda need: (-need.bytes, need.name),
    )
    yield _refusal(problem, holders, most, phase_name(problem, phase), helps())


def columns_fragmented(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    """PL0801 where every phase fits alone, but no layout serves all of them."""
    needs = column_rectangles(problem, minimum_stages(problem))
    most, phase = bound(needs)
    return _refusal(problem, list(needs), most, phase_name(problem, phase), ())


def _refusal(
    problem: PlacementProblem,
    holders: list[Rectangle],
    most: int,
    where: str,
    helps: tuple[str, ...],
) -> Diagnostic:
    """PL0801: who holds what of the tensor memory that does not suffice."""
    spans = {need.name: need.span for need in problem.tensor}
    limit, target = column_limit(problem), TARGETS[problem.target]
    share = f", {problem.occupancy} CTAs per SM" if problem.occupancy > 1 else ""
    return Diagnostic(
        "PL0801",
        f"`{problem.name}` needs {most} columns of tensor memory in {where}",
        labels(
            (problem.span, ""),
            *((spans[h.name], f"`{h.name}` holds {h.bytes} columns") for h in holders[:SHOWN]),
        ),
        expected=f"an allocation of at most {limit} columns "
        f"({target.name}: {target.tmem_columns} per SM{share}; powers of two from 32 up)",
        found=f"{most} columns, {most - limit} too many, every channel at its minimum of stages"
        if most > limit
        else f"{most} columns alive at once, but no layout of all phases",
        notes=tuple(_holder(problem, holder) for holder in holders[:SHOWN]),
        helps=helps or ("use a smaller tile: its accumulator has fewer columns",),
        subject="tensor memory",
    )


def _holder(problem: PlacementProblem, need: Rectangle) -> str:
    source = next(item for item in problem.tensor if item.name == need.name)
    times = f" = {need.bytes // source.columns} x {source.columns}" if source.channel else ""
    return f"{need.name}: {need.bytes} columns{times}"
