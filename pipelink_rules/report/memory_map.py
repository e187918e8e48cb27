"""The shared memory of a placement: ranges, lifetimes, gaps and overlays."""

from dataclasses import dataclass

from pipelink_rules.model.placement import Placement, PlacementProblem
from pipelink_rules.model.program import HANDOVER, Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.problem import placement_problem


@dataclass(frozen=True)
class MemoryRange:
    """A placed allocation of shared memory."""

    name: str
    start: int
    end: int
    align: int
    lifetimes: int  # bit mask
    what: str


def pieces_of(program: Program, placement: Placement) -> list[MemoryRange]:
    """Return every allocation by offset; the mbarrier table is live in all lifetimes."""
    problem = placement_problem(program)
    stages, offsets = dict(placement.stages), dict(placement.offsets)
    kinds = {channel.name: channel for channel in program.channels}
    found = []
    for item in problem.items:
        count = stages[item.channel] if item.channel else 1
        what = "buffer"
        if item.channel:
            channel = kinds[item.channel]
            kind = "hand-over" if channel.kind == HANDOVER else "ring"
            what = f"{kind}, {count} x {item.bytes}"
            if channel.member_offsets:
                inner = ", ".join(f"{name} +{at}" for name, at in channel.member_offsets)
                what += f" ({inner})"
        start = offsets[item.name]
        found.append(
            MemoryRange(
                item.name, start, start + count * item.bytes, item.align, item.lifetimes, what
            )
        )
    if "barriers" in offsets:
        found.append(_barrier_table(problem, placement, stages, offsets["barriers"]))
    return sorted(found, key=lambda piece: (piece.start, piece.end, piece.name))


def _barrier_table(
    problem: PlacementProblem, placement: Placement, stages: dict[str, int], start: int
) -> MemoryRange:
    count = problem.mbarriers_fixed
    count += sum(each * stages[name] for name, each in problem.mbarriers_per_stage)
    everywhere = (1 << len(problem.lifetimes)) - 1
    what = f"{count - problem.mbarriers_fixed} mbarriers"
    what += ", the address of tensor memory" if problem.tensor else ""
    return MemoryRange("barriers", start, start + 8 * count, 16, everywhere, what)


def overlays(pieces: list[MemoryRange]) -> dict[str, list[str]]:
    """Return allocation -> the allocations that share bytes with it in other lifetimes."""
    found: dict[str, list[str]] = {}
    for piece in pieces:
        for other in pieces:
            if other is not piece and other.start < piece.end and piece.start < other.end:
                found.setdefault(piece.name, []).append(other.name)
    return found


def memory_rows(program: Program, placement: Placement) -> list[tuple[object, ...]]:
    """Rows (start, end, bytes, align, phases, item, what, over) with the gaps between them."""
    pieces = pieces_of(program, placement)
    rows: list[tuple[object, ...]] = []
    shared = overlays(pieces)
    phases = placement_problem(program).lifetimes
    top = 0
    for piece in pieces:
        if piece.start > top:
            rows.append((top, piece.start, piece.start - top, "-", "-", "(free)", "", ""))
        top = max(top, piece.end)
        alive = [name for bit, name in enumerate(phases) if piece.lifetimes >> bit & 1]
        over = ", ".join(shared.get(piece.name, ()))
        rows.append(
            (
                piece.start,
                piece.end,
                piece.end - piece.start,
                piece.align,
                "+".join(alive),
                piece.name,
                piece.what,
                over and f"over {over}",
            )
        )
    return rows


def phase_rows(program: Program, placement: Placement) -> list[tuple[object, ...]]:
    """Return rows (phase, live bytes, taken, slack, limit): how near each phase is to its bound.

    `live` is a lower bound of what any placement with these stages takes; `slack` is what the
    phase leaves free below the limit of the target at this occupancy.
    """
    limit = TARGETS[program.target].shared_limit(placement.occupancy)
    pieces = pieces_of(program, placement)
    rows: list[tuple[object, ...]] = []
    for bit, name in enumerate(placement_problem(program).lifetimes):
        alive = [piece for piece in pieces if piece.lifetimes >> bit & 1]
        live = sum(piece.end - piece.start for piece in alive)
        top = max((piece.end for piece in alive), default=0)
        rows.append((name, live, top, limit - top, limit))
    return rows
