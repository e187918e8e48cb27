"""What does an SM look like under this placement?  Shared memory, warps and registers, drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipelink_rules.model.linked_kernel import Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import KIB, TARGETS
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.report.html import element, label, picture, rectangle
from pipelink_rules.report.memory_map import MemoryRange, pieces_of

WIDTH = 1200.0
LEFT = 70.0  # where addresses begin
BAR = 62.0  # height of a phase
TALL = 130.0  # height of 256 registers
REGISTERS = 256


def memory_picture(program: Program, placement: Placement, colours: Mapping[str, int]) -> str:
    """Addresses from left to right, one bar per phase; stages are cut by lines."""
    phases = placement_problem(program).phases
    limit = TARGETS[program.target].shared_limit(placement.occupancy)
    pieces = pieces_of(program, placement)
    room = WIDTH - LEFT - 30
    scale = room / max(limit, placement.shared_bytes, 1)
    parts = []
    for bit, phase in enumerate(phases):
        y = 8 + bit * (BAR + 12)
        parts.append(label(0, y + BAR / 2 + 4, phase, LEFT - 8, class_="strong"))
        free = f"{limit - placement.shared_bytes:,} bytes free of {limit:,}"
        parts.append(rectangle(LEFT, y, room, BAR, free, class_="free", rx=4))
        for piece in pieces:
            if piece.phases >> bit & 1:
                parts += _piece(program, placement, piece, y, scale, colours)
    bottom = 8 + len(phases) * (BAR + 12)
    parts += _addresses(limit, bottom, scale)
    height = bottom + 24
    return picture(WIDTH, height, "shared memory of one CTA over its phases", *parts)


def _piece(
    program: Program,
    placement: Placement,
    piece: MemoryRange,
    y: float,
    scale: float,
    colours: Mapping[str, int],
) -> Iterator[str]:
    x, width = LEFT + piece.start * scale, max((piece.end - piece.start) * scale, 1.5)
    tip = f"{piece.name}: {piece.start:,} to {piece.end:,}, {piece.what}"
    colour = colours.get(piece.name, 7)
    yield rectangle(x, y, width, BAR, tip, class_=f"f{colour}", rx=min(3.0, width / 2))
    stages = dict(placement.stages).get(piece.name, 1)
    for stage in range(1, stages):
        at = x + width * stage / stages
        yield element("line", x1=at, x2=at, y1=y, y2=y + BAR, class_="cut")
    if width < 34:
        return
    yield label(x + 7, y + 19, piece.name, width - 10, class_="on")
    size = (piece.end - piece.start) // stages
    note = f"{stages} x {_size(size)}" if piece.name in dict(placement.stages) else _size(size)
    yield label(x + 7, y + 36, note, width - 10, class_="on")


def _size(count: int) -> str:
    return f"{count // KIB} KiB" if count % KIB == 0 and count else f"{count} B"


def _addresses(limit: int, y: float, scale: float) -> Iterator[str]:
    step = 32 * KIB if limit > 120 * KIB else 16 * KIB
    for at in range(0, limit + 1, step):
        x = LEFT + at * scale
        yield element("line", x1=x, x2=x, y1=y - 8, y2=y - 3, class_="rule")
        yield label(x, y + 9, f"{at // KIB} KiB" if at else "0", class_="soft middle")


def warps_picture(
    program: Program, placement: Placement, audit: Audit | None, colours: Mapping[str, int]
) -> str:
    """Warpgroups from left to right; the height is registers per thread, the mark what is used."""
    warps = placement.threads // 32
    groups = -(-warps // 4)
    each = min(230.0, (WIDTH - LEFT - 30) / max(groups, 1))
    first = dict(placement.warps)
    used = dict(audit.region_registers) if audit else {}
    given = {group.index: group.registers for group in placement.warpgroups}
    base = 20 + TALL
    parts = []
    for at in (0, 64, 128, 192, 256):
        y = base - at * TALL / REGISTERS
        parts.append(element("line", x1=LEFT - 6, x2=WIDTH - 10, y1=y, y2=y, class_="rule"))
        parts.append(label(LEFT - 10, y + 4, str(at), class_="soft end"))
    for warp in range(warps):
        role = next((r for r in program.roles if 0 <= warp - first[r.name] < r.warps), None)
        x = LEFT + warp // 4 * each + warp % 4 * (each - 14) / 4
        width = (each - 14) / 4 - 2
        registers = given.get(warp // 4, placement.entry_registers)
        height = registers * TALL / REGISTERS
        tip = f"warp {warp}: {role.name if role else 'idle'}, {registers} registers per thread"
        colour = f"f{colours.get(role.name, 7)}" if role else "free"
        parts.append(rectangle(x, base - height, width, height, tip, class_=colour, rx=2))
        if role and used.get(role.name):
            y = base - used[role.name] * TALL / REGISTERS
            parts.append(element("line", x1=x, x2=x + width, y1=y, y2=y, class_="mark"))
        parts.append(label(x + width / 2, base + 13, str(warp), class_="soft middle"))
    for index in range(groups):
        registers = given.get(index, placement.entry_registers)
        share = min(4, warps - 4 * index) / 4  # of a warpgroup that is not full
        x = LEFT + index * each + (each - 14) * share / 2
        top = base - registers * TALL / REGISTERS
        parts.append(label(x, top - 5, f"{registers} registers", class_="middle"))
        names = [
            role.name
            for role in program.roles
            if first[role.name] < 4 * index + 4 and 4 * index < first[role.name] + role.warps
        ]
        shown = ", ".join(sorted(names, key=first.__getitem__)) or "idle"
        parts.append(label(x, base + 30, shown, each - 8, class_="strong middle"))
    return picture(WIDTH, base + 40, "warps and their registers per thread", *parts)
