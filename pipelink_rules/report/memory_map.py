"""The shared memory of a placement: ranges, lifetimes, gaps and overlays."""

from dataclasses import dataclass

from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import HANDOVER, Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.problem import placement_problem

Rows = tuple[tuple[str, ...], list[tuple[object, ...]]]  # heading, rows


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
    channels = {channel.name: channel for channel in program.channels}
    found = []
    for item in problem.items:
        start, size, what = offsets[item.name], item.bytes, "buffer"
        if item.channel:
            channel, count = channels[item.channel], stages[item.channel]
            kind = "hand-over" if channel.kind == HANDOVER else "ring"
            size, what = count * item.bytes, f"{kind}, {count} x {item.bytes}"
            if channel.member_offsets:
                inner = ", ".join(f"{name} +{at}" for name, at in channel.member_offsets)
                what += f" ({inner})"
        end = start + size
        found.append(MemoryRange(item.name, start, end, item.align, item.lifetimes, what))
    if "barriers" in offsets:
        count = sum(each * stages[name] for name, each in problem.mbarriers_per_stage)
        start = offsets["barriers"]
        end = start + 8 * (problem.mbarriers_fixed + count)
        everywhere = (1 << len(problem.lifetimes)) - 1
        what = f"{count} mbarriers" + ", the address of tensor memory" * bool(problem.tensor)
        found.append(MemoryRange("barriers", start, end, 16, everywhere, what))
    return sorted(found, key=lambda piece: (piece.start, piece.end, piece.name))


def overlays(pieces: list[MemoryRange]) -> dict[str, list[str]]:
    """Return allocation -> the allocations that share bytes with it in other lifetimes."""
    found: dict[str, list[str]] = {}
    for piece in pieces:
        for other in pieces:
            if other is not piece and other.start < piece.end and piece.start < other.end:
                found.setdefault(piece.name, []).append(other.name)
    return found


def memory_rows(program: Program, placement: Placement) -> Rows:
    """Return every allocation, and the gaps between them."""
    pieces = pieces_of(program, placement)
    shared, phases = overlays(pieces), placement_problem(program).lifetimes
    rows: list[tuple[object, ...]] = []
    top = 0
    for piece in pieces:
        start, end = piece.start, piece.end
        if start > top:
            rows.append((top, start, start - top, "-", "-", "(free)", "", ""))
        top = max(top, end)
        alive = "+".join(name for bit, name in enumerate(phases) if piece.lifetimes >> bit & 1)
        over = ", ".join(shared.get(piece.name, ()))
        where = (start, end, end - start, piece.align)
        rows.append((*where, alive, piece.name, piece.what, over and f"over {over}"))
    return ("start", "end", "bytes", "align", "phase", "item", "what", "overlay"), rows


def phase_rows(program: Program, placement: Placement) -> Rows:
    """Return how near each phase is to its bound, in bytes.

    `bound` is a lower bound of what any placement with these stages takes; `slack` is what the
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
    return ("phase", "bound", "taken", "slack", "limit"), rows


def with_commas(table: Rows) -> Rows:
    """Return a table whose numbers are written with separators of thousands."""
    heading, rows = table
    return heading, [
        tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) for row in rows
    ]
