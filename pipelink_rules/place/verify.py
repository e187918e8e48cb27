"""Verification of a placement against its problem, independent of z3 and of the solver's encoding.

Overlaps are found for each lifetime by sorting its allocations by offset and comparing neighbors,
which is linear in the number of (allocation, lifetime) pairs except for the sort.
"""

from collections.abc import Iterator

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.model.placement import (
    BARRIER_TABLE,
    Placement,
    PlacementProblem,
    entry_registers,
)
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS

MBARRIER_BYTES = 8
TABLE_ALIGN = 16
FIXED = "fixed"
Live = dict[int, list[tuple[int, int, str]]]  # lifetime -> (start, end, name) of what it holds


def verify(problem: PlacementProblem, placement: Placement) -> list[str]:
    """Return every fault; an empty list means that the placement solves the problem.

    Only what hardware and contracts require is checked, never optimality: stage counts in range;
    allocations aligned, inside the limit and disjoint; the mbarrier table, barrier ids, warps,
    entry registers and setmaxnreg values.
    """
    if problem.target not in TARGETS:
        return [f"unknown target {problem.target}"]
    required = (problem.name, problem.target, problem.occupancy)
    placed = (placement.name, placement.target, placement.occupancy)
    if required != placed:
        return [f"the placement is for {placed}, the problem is {required}"]
    faults = [*_stages(problem, placement)]
    if not faults:  # sizes depend on them
        faults += _shared(problem, placement)
    return [
        *faults,
        *_named(problem, placement),
        *_warps(problem, placement),
        *_registers(problem, placement),
        *_tensor_memory(problem, placement),
    ]


def demand(problem: PlacementProblem, placement: Placement, file: str = "") -> None:
    """Raise PL0107 if a placement that was read from a file does not solve its problem."""
    faults = verify(problem, placement)
    if faults:
        raise error(
            "PL0107",
            f"the placement of `{placement.name}` does not solve its problem",
            Span(file) if file else problem.span,
            expected="a placement without faults",
            found=faults[0],
            notes=tuple(faults[1:]),
            suggestions=(f"delete the file and run `scons megakernels/{placement.name}`",),
            subject=placement.name,
        )


def _same_names(
    what: str, required: list[str], numbers: tuple[tuple[str, int], ...]
) -> Iterator[str]:
    placed = [name for name, _ in numbers]
    for name in sorted(set(required) - set(placed)):
        yield f"{what} {name}: not placed"
    for name in sorted(set(placed) - set(required)):
        yield f"{what} {name}: placed but not part of the problem"
    for name in sorted({name for name in placed if placed.count(name) > 1}):
        yield f"{what} {name}: placed twice"


def _stages(problem: PlacementProblem, placement: Placement) -> Iterator[str]:
    yield from _same_names("channel", [s.name for s in problem.stages], placement.stages)
    counts = dict(placement.stages)
    for stage in problem.stages:
        count = counts.get(stage.name, stage.minimum)
        if not stage.minimum <= count <= stage.maximum:
            yield f"channel {stage.name}: {count} stages, allowed {stage.minimum}..{stage.maximum}"


def _shared(problem: PlacementProblem, placement: Placement) -> Iterator[str]:
    counts, offsets = dict(placement.stages), dict(placement.offsets)
    everywhere = (1 << max(1, len(problem.lifetimes))) - 1
    boxes = [
        (i.name, i.bytes * (counts[i.channel] if i.channel else 1), i.align, i.lifetimes)
        for i in problem.items
    ]
    barriers = problem.mbarriers_fixed
    barriers += sum(count * counts[name] for name, count in problem.mbarriers_per_stage)
    if barriers:
        boxes.append((BARRIER_TABLE, MBARRIER_BYTES * barriers, TABLE_ALIGN, everywhere))
    yield from _same_names("allocation", [name for name, *_ in boxes], placement.offsets)
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    if placement.shared_bytes > limit:
        yield f"shared memory: {placement.shared_bytes:,} bytes, limit {limit:,}"
    live: Live = {}
    for name, size, align, lifetimes in boxes:
        start = offsets.get(name)
        if start is None:
            continue
        if start < 0 or start % align:
            yield f"allocation {name}: offset {start} is not a multiple of {align}"
        if start + size > placement.shared_bytes:
            yield f"allocation {name}: ends at {start + size}, past {placement.shared_bytes}"
        _add_live(live, lifetimes, start, start + size, name)
    yield from _overlaps(live)
    bound = max((sum(hi - lo for lo, hi, _ in row) for row in live.values()), default=0)
    if bound != placement.bound_bytes:
        yield f"lower bound: {placement.bound_bytes} bytes, but {bound} in the fullest lifetime"
    yield from _table(problem, placement, MBARRIER_BYTES * barriers)


def _add_live(live: Live, lifetimes: int, start: int, end: int, name: str) -> None:
    for index in range(lifetimes.bit_length()):
        if lifetimes >> index & 1:
            live.setdefault(index, []).append((start, end, name))


def _overlaps(live: Live) -> Iterator[str]:
    for index, row in sorted(live.items()):
        row.sort()
        top, owner = row[0][0], ""
        for low, high, name in row:
            if low < top:
                yield f"lifetime {index}: {name} overlaps {owner}"
            if high > top:
                top, owner = high, name


def _table(problem: PlacementProblem, placement: Placement, size: int) -> Iterator[str]:
    """Yield where the parts of the mbarrier table do not tile it."""
    counts = dict(placement.stages)
    sizes = {name: MBARRIER_BYTES * n * counts[name] for name, n in problem.mbarriers_per_stage}
    if problem.mbarriers_fixed:
        sizes[FIXED] = MBARRIER_BYTES * problem.mbarriers_fixed
    yield from _same_names("mbarriers of", list(sizes), placement.barriers)
    start = dict(placement.offsets).get(BARRIER_TABLE, 0)
    end = start + size
    for low, size, name in sorted((low, sizes.get(n, 0), n) for n, low in placement.barriers):
        if low != start:
            yield f"mbarriers of {name}: at {low}, expected at {start}"
        start = low + size
    if start != end and placement.barriers:
        yield f"mbarrier table: ends at {end}, its last part at {start}"


def _tensor_memory(problem: PlacementProblem, placement: Placement) -> Iterator[str]:
    """Yield overlaps in tensor memory and invalid sizes: a power of two, at least 32 columns."""
    counts, first = dict(placement.stages), dict(placement.columns)
    yield from _same_names("tensor memory of", [n.name for n in problem.tensor], placement.columns)
    size = placement.tensor_columns
    if (size or problem.tensor) and (size < 32 or size & size - 1):
        yield f"tensor memory: {size} columns cannot be allocated"
    if size * problem.occupancy > TARGETS[problem.target].tmem_columns:
        yield f"tensor memory: {size} columns x {problem.occupancy} CTAs exceed the SM"
    live: Live = {}
    for need in problem.tensor:
        start = first.get(need.name, 0)
        end = start + need.columns * (counts.get(need.channel, 1) if need.channel else 1)
        if not 0 <= start < end <= size:
            yield f"tensor memory of {need.name}: columns {start}..{end - 1} of {size}"
        _add_live(live, need.lifetimes, start, end, need.name)
    yield from _overlaps(live)


def _named(problem: PlacementProblem, placement: Placement) -> Iterator[str]:
    yield from _same_names("named barrier", [b.name for b in problem.barriers], placement.named)
    ids = dict(placement.named)
    owners: dict[tuple[int, int], str] = {}
    for need in sorted(problem.barriers, key=lambda need: need.name):
        number = ids.get(need.name)
        if number is None:
            continue
        if not 0 <= number < TARGETS[problem.target].named_barriers:
            yield f"named barrier {need.name}: id {number} does not exist"
        if number in problem.reserved_barriers:
            yield f"named barrier {need.name}: id {number} is reserved"
        for index in range(need.lifetimes.bit_length()):
            if need.lifetimes >> index & 1:
                other = owners.setdefault((index, number), need.name)
                if other != need.name:
                    yield f"lifetime {index}: id {number} belongs to {other} and {need.name}"


def _warps(problem: PlacementProblem, placement: Placement) -> Iterator[str]:
    yield from _same_names("role", [r.name for r in problem.roles], placement.warps)
    target, total = TARGETS[problem.target], placement.threads // 32
    whole, unit = ("warpgroups", 128) if placement.setmaxnreg else ("warps", 32)
    if placement.threads % unit:
        yield f"{placement.threads} threads: not a whole number of {whole}"
    if total > target.warps_cta or total * problem.occupancy > target.warps_sm:
        yield f"{total} warps x {problem.occupancy} CTAs exceed the SM"
        return  # too many to check one by one
    starts = dict(placement.warps)
    taken: dict[int, str] = {}
    for role in sorted(problem.roles, key=lambda role: role.name):
        if role.name not in starts:
            continue
        start = starts[role.name]
        if start < 0 or start + role.warps > total:
            yield f"role {role.name}: warps {start}..{start + role.warps - 1} of {total}"
            continue
        if role.warpgroup and (start % 4 or role.warps % 4):
            last = start + role.warps - 1
            yield f"role {role.name}: warps {start}..{last} are not whole warpgroups"
        for warp in range(start, start + role.warps):
            other = taken.setdefault(warp, role.name)
            if other != role.name:
                yield f"warp {warp}: belongs to {other} and {role.name}"


def _registers(problem: PlacementProblem, placement: Placement) -> Iterator[str]:
    target, total = TARGETS[problem.target], placement.threads // 32
    entry = entry_registers(target, max(1, total), problem.occupancy)
    if placement.entry_registers != entry:
        yield f"entry registers: {placement.entry_registers}, but the launch provides {entry}"
    if placement.setmaxnreg and not target.setmaxnreg:
        yield f"{target.name} has no setmaxnreg"
    starts = dict(placement.warps)
    registers = {group.index: group.registers for group in placement.warpgroups}
    if len(registers) != -(-total // 4) or sorted(registers) != list(range(len(registers))):
        yield f"warpgroups {sorted(registers)} of {total} warps"
        return
    for role in problem.roles:
        if role.entry > entry:
            yield f"role {role.name}: needs {role.entry} entry registers, the launch has {entry}"
    for group in placement.warpgroups:
        first = 4 * group.index
        inside = [
            role
            for role in problem.roles
            if role.name in starts and first - role.warps < starts[role.name] < first + 4
        ]
        if sorted(group.roles) != sorted(role.name for role in inside):
            yield f"warpgroup {group.index}: lists {', '.join(group.roles) or 'no role'}"
        for role in inside:
            if role.minimum > group.registers:
                yield (
                    f"role {role.name}: needs {role.minimum} registers, "
                    f"warpgroup {group.index} has {group.registers}"
                )
            if registers.get(starts[role.name] // 4) != group.registers:
                yield f"role {role.name}: its warpgroups have different register counts"
    yield from _moved(problem, placement, entry)


def _moved(problem: PlacementProblem, placement: Placement, entry: int) -> Iterator[str]:
    target = TARGETS[problem.target]
    if not placement.setmaxnreg:
        for group in placement.warpgroups:
            if group.registers != entry:
                yield f"warpgroup {group.index}: {group.registers} registers without setmaxnreg"
        return
    for group in placement.warpgroups:
        low, high = target.setmaxnreg_minimum, target.setmaxnreg_maximum
        if group.registers % 8 or not low <= group.registers <= high:
            yield f"warpgroup {group.index}: {group.registers} is not a setmaxnreg value"
    used = sum(group.registers for group in placement.warpgroups)
    if used > entry * len(placement.warpgroups):
        yield f"registers: {used} x 128 assigned, {entry} x {placement.threads} available"
