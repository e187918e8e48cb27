"""Pictures of the link map: the pipeline, shared memory, warps and registers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipelink_rules.model.contract import Port
from pipelink_rules.model.linked_kernel import Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import ACROSS_ITEMS, FUSED, Connection, Program, ProgramRole
from pipelink_rules.model.target import KIB, TARGETS
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.report.html import LETTER, element, label, picture, rectangle, text
from pipelink_rules.report.map_rows import tile_texts
from pipelink_rules.report.memory_map import MemoryRange, pieces_of

BOX = 160.0  # width of an instance
NARROW, WIDE = 34.0, 146.0  # between instances: of one role, and where a ring is named
ROW, HEAD = 17.0, 44.0  # height of a port, and of the title above the ports
PAD, TITLE = 14.0, 26.0  # around the boxes of a lane, and its title
WIDTH = 1200.0
LEFT = 70.0  # where addresses begin
BAR = 62.0  # height of a phase
TALL = 130.0  # height of 256 registers
REGISTERS = 256


@dataclass(frozen=True)
class _Box:
    """An instance as it is drawn."""

    x: float
    y: float
    ports: tuple[Port, ...]

    @property
    def height(self) -> float:
        return HEAD + ROW * len(self.ports) + 6

    def at(self, port: str) -> float:
        """Return the height of a port."""
        return self.y + HEAD + ROW * [item.name for item in self.ports].index(port) + 4


class _Drawing:
    def __init__(self, program: Program, placement: Placement, colors: Mapping[str, int]):
        self.program, self.placement, self.colors = program, placement, colors
        self.boxes: dict[str, _Box] = {}
        self.lanes: list[tuple[ProgramRole | None, float, float]] = []  # role, y, height
        column, y = _columns(program), 0.0
        left = _lefts(program, column)
        roles = sorted(program.roles, key=lambda role: placement.first_warp(role.name))
        lanes: list[tuple[ProgramRole | None, list[str]]] = [
            (role, list(dict.fromkeys(name for name, _ in role.members))) for role in roles
        ]
        placed = {name for _, names in lanes for name in names}
        rest = [item.name for item in program.instances if item.name not in placed]
        if rest:
            lanes.insert(0, (None, rest))
        for role, names in lanes:
            tops: dict[int, float] = {}  # column -> where the next box begins
            for number, name in enumerate(names):
                at = column[name] if role else number
                top = tops.get(at, y + TITLE + PAD)
                if name not in self.boxes:
                    ports = program.instance(name).variant.contract.ports
                    self.boxes[name] = _Box(left[at], top, ports)
                tops[at] = top + self.boxes[name].height + PAD
            height = max(tops.values()) - y
            self.lanes.append((role, y, height))
            y += height + 14
        self.height = y - 10
        self.width = max(box.x for box in self.boxes.values()) + BOX + PAD

    def parts(self) -> Iterator[str]:
        for _, y, height in self.lanes:
            yield rectangle(0.5, y + 0.5, self.width - 1, height, "", class_="lane", rx=9)
        for name, box in self.boxes.items():
            yield from self._box(name, box)
        for connection in self.program.connections:
            if connection.transfer not in ACROSS_ITEMS:
                yield from self._connection(connection)
        for role, y, _ in self.lanes:
            title = "called by every role: which work tile is next"
            if role:
                start = self.placement.first_warp(role.name)
                registers = self.placement.registers(role.name)
                warps = f"s {start} to {start + role.warps - 1}" if role.warps > 1 else f" {start}"
                title = f"{role.name}: warp{warps}, {registers} registers per thread"
                color = self.colors.get(role.name, 7)
                yield rectangle(PAD, y + 13, 10, 10, "", class_=f"f{color}", rx=3)
            yield label(PAD + (16 if role else 0), y + 22, title, class_="strong halo")

    def _box(self, name: str, box: _Box) -> Iterator[str]:
        instance = self.program.instance(name)
        yield rectangle(box.x, box.y, BOX, box.height, "", class_="card", rx=7)
        yield label(box.x + 11, box.y + 18, name, BOX - 20, class_="strong")
        component = instance.variant.contract.component
        yield label(box.x + 11, box.y + 33, component, BOX - 20, class_="soft")
        for port in box.ports:
            y = box.at(port.name)
            comes = port.direction == "in"
            side = box.x + (0 if comes else BOX)
            yield element("circle", cx=side, cy=y - 4, r=3.5, class_="port")
            x = box.x + (11 if comes else BOX - 11)
            said = _port_text(self.program, name, port)
            yield label(x, y, said, BOX - 20, class_=None if comes else "end")

    def _connection(self, item: Connection) -> Iterator[str]:
        source, sink = self.boxes[item.producer[0]], self.boxes[item.consumer[0]]
        x0, y0 = source.x + BOX, source.at(item.producer[1]) - 4
        x1, y1 = sink.x, sink.at(item.consumer[1]) - 4
        color, said = 7, ""
        if channel := self.program.channel_ends().get(item.consumer):
            color = self.colors.get(channel.name, 7)
            stages = self.placement.stage_count(channel.name)
            said = f"{item.transfer}, {stages} x {channel.stage_bytes // KIB} KiB"
        width = len(said) * LETTER + 12 if said else 0.0
        straight = x0 + (width + 8 if said else 0)  # the name of a ring lies on its first part
        bend = max(18.0, abs(x1 - straight) / 2)
        path = (
            f"M{x0:.1f} {y0:.1f} H{straight:.1f} C{straight + bend:.1f} {y0:.1f} "
            f"{x1 - bend:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        )
        tip = element("title", text(item.name))
        dashed = " dashed" if item.transfer == FUSED else ""
        yield element("path", tip, d=path, class_=f"edge s{color}{dashed}")
        if said:
            pill = f"pill s{color}"
            yield rectangle(x0 + 6, y0 - 9, width, 18, item.name, class_=pill, rx=9)
            yield label(x0 + 6 + width / 2, y0 + 4, said, class_="middle")


def pipeline_picture(program: Program, placement: Placement, colors: Mapping[str, int]) -> str:
    """Return one lane per program role, in the order of its warps; data goes from left to right."""
    drawing = _Drawing(program, placement, colors)
    title = "instances, ports and transfers"
    return picture(drawing.width, drawing.height, title, *drawing.parts())


def _columns(program: Program) -> dict[str, int]:
    """Return how many connections lie before an instance, at most."""
    feeds: dict[str, list[str]] = {item.name: [] for item in program.instances}
    for connection in program.connections:
        if connection.transfer not in ACROSS_ITEMS:
            feeds[connection.consumer[0]].append(connection.producer[0])
    found: dict[str, int] = {}

    def column(name: str, seen: tuple[str, ...] = ()) -> int:
        if name not in found:
            before = [column(other, (*seen, name)) for other in feeds[name] if other not in seen]
            found[name] = max((number + 1 for number in before), default=0)
        return found[name]

    for name in sorted(feeds):
        column(name)
    return found


def _lefts(program: Program, column: Mapping[str, int]) -> list[float]:
    """Return the left edge of each column; wide gaps where the names of rings need room."""
    last = max((*column.values(), len(program.instances)), default=0)
    wide = {column[item.producer[0]] + 1 for item in program.connections if item.transfer != FUSED}
    found = [PAD]
    for number in range(1, last + 1):
        found.append(found[-1] + BOX + (WIDE if number in wide else NARROW))
    return found


def _port_text(program: Program, instance: str, port: Port) -> str:
    """Return `A: bf16 [M, K] from a`, as short as it can be."""
    tiles = tile_texts(port)
    alike = len(tiles) > 1 and len(set(tiles)) == 1
    if port.space == "counter":
        return f"{port.name}: {'signals' if port.direction == 'out' else 'waits'}"
    if port.scratch:
        tiles[0] = f"scratch {tiles[0]}"
    carries = port.type or (f"{len(tiles)} x {tiles[0]}" if alike else " + ".join(tiles))
    bound = [
        keyword
        for keyword, places in (*program.tensors, *program.scalars)
        if (instance, port.name) in places
    ]
    if not bound:
        return f"{port.name}: {carries}"
    return f"{bound[0]} → {port.name}" if port.direction == "in" else f"{port.name} → {bound[0]}"


def memory_picture(program: Program, placement: Placement, colors: Mapping[str, int]) -> str:
    """Addresses from left to right, one bar per phase; stages are cut by lines."""
    phases = placement_problem(program).lifetimes
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
            if piece.lifetimes >> bit & 1:
                parts += _piece(placement, piece, y, scale, colors.get(piece.name, 7))
    bottom = 8 + len(phases) * (BAR + 12)
    step = 32 * KIB if limit > 120 * KIB else 16 * KIB
    for at in range(0, limit + 1, step):
        x = LEFT + at * scale
        parts.append(element("line", x1=x, x2=x, y1=bottom - 8, y2=bottom - 3, class_="rule"))
        address = f"{at // KIB} KiB" if at else "0"
        parts.append(label(x, bottom + 9, address, class_="soft middle"))
    return picture(WIDTH, bottom + 24, "shared memory of one CTA over its phases", *parts)


def _piece(
    placement: Placement, piece: MemoryRange, y: float, scale: float, color: int
) -> Iterator[str]:
    x, width = LEFT + piece.start * scale, max((piece.end - piece.start) * scale, 1.5)
    tip = f"{piece.name}: {piece.start:,} to {piece.end:,}, {piece.what}"
    yield rectangle(x, y, width, BAR, tip, class_=f"f{color}", rx=min(3.0, width / 2))
    stages = dict(placement.stages).get(piece.name, 1)
    for stage in range(1, stages):
        at = x + width * stage / stages
        yield element("line", x1=at, x2=at, y1=y, y2=y + BAR, class_="cut")
    if width < 34:
        return
    yield label(x + 7, y + 19, piece.name, width - 10, class_="on")
    count = (piece.end - piece.start) // stages
    size = f"{count // KIB} KiB" if count % KIB == 0 and count else f"{count} B"
    note = f"{stages} x {size}" if piece.name in dict(placement.stages) else size
    yield label(x + 7, y + 36, note, width - 10, class_="on")


def warps_picture(
    program: Program, placement: Placement, audit: Audit | None, colors: Mapping[str, int]
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
        color = f"f{colors.get(role.name, 7)}" if role else "free"
        parts.append(rectangle(x, base - height, width, height, tip, class_=color, rx=2))
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
