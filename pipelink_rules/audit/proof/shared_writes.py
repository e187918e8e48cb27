"""Writes to shared memory between two operations: no two threads write one byte, and a buffer that
is used in turn is not written again while it is read.
"""

from dataclasses import dataclass

from pipelink_rules.audit.proof.inputs import BufferInput
from pipelink_rules.audit.proof.prover import Prover, Write
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.solver import terms
from pipelink_rules.solver.queries import SAT, UNKNOWN
from pipelink_rules.solver.terms import Term


def refuse_races(prover: Prover) -> None:
    """Refute two threads that write the same bytes between two operations."""
    groups: dict[tuple[str, tuple[int, int]], dict[object, list[Write]]] = {}
    for write in prover.writes:
        parts = terms.split_sum(write.offset)[0]
        site = (parts, write.size, tuple(map(terms.key, write.path)))
        groups.setdefault((write.target, write.after), {}).setdefault(site, []).append(write)
    for (target, _), sites in groups.items():
        rows = list(sites.values())
        for number, one in enumerate(rows):
            for other in rows[number:]:
                _race(prover, target, one, other)


def _race(prover: Prover, target: str, one: list[Write], other: list[Write]) -> None:
    """Two sites whose writes differ in constants only: one question for all of their pairs."""
    inputs = prover.inputs
    lane, warp = terms.variable("lane'", 5), terms.variable("warp'", inputs.warp.size())
    renamed = [(inputs.lane, lane), (inputs.warp, warp)]
    names = set().union(*(terms.variables(c) for w in (one[0], other[0]) for c in w.path))
    renamed += [
        (terms.variable(name, 1), terms.variable(f"{name}'", 1))
        for name in sorted(names)
        if name.startswith("data!")
    ]
    starts = [terms.split_sum(site[0].offset)[1] for site in (one, other)]
    here = one[0].offset - starts[0]
    there = terms.substituted(other[0].offset - starts[1], *renamed)
    sizes = one[0].size, other[0].size
    shifts = {
        terms.split_sum(b.offset)[1] - terms.split_sum(a.offset)[1] for a in one for b in other
    }
    overlaps = [
        terms.less(here - there - shift + (sizes[0] - 1), terms.bits(sum(sizes) - 1, 32))
        for shift in sorted(shifts)
    ]
    apart = terms.either(inputs.lane != lane, inputs.warp != warp)
    exists = terms.less(terms.bits(warp, 32), terms.bits(inputs.warps, 32))
    path = [terms.substituted(condition, *renamed) for condition in other[0].path]
    both = terms.both(terms.either(*overlaps), apart, exists, *path)
    verdict, model = prover.queries.check(one[0].path, both)
    if verdict == UNKNOWN:
        raise UnprovedError(f"writes to `{target}` of which the solver cannot say that they differ")
    if verdict == SAT:
        error = RefutedError(
            "PL0930",
            f"has two threads write the same bytes of `{target}`",
            target=target,
            expected="bytes of its own for each thread, between two operations",
            found="two threads at one address",
            model=model,
        )
        raise error


# -- buffers that are used in turn ----------------------------------------------------------------
@dataclass(frozen=True)
class Visit:
    """The writes to a buffer between two operations, in one of several work tiles."""

    tile: int
    writes: tuple[Write, ...]


def refuse_same_stage(prover: Prover, ends: list[WarpState]) -> None:
    """Refute a buffer of several stages of which one is written twice within their number."""
    for name, given in prover.inputs.buffers.items():
        if given.buffer.stages < 2:
            continue
        visits = _visits(prover, name)
        if not visits:
            continue
        following = 0 if _drained(prover) else -(-(given.buffer.stages - 1) // len(visits))
        row = [Visit(tile, writes) for tile in range(following + 1) for writes in visits]
        for number, one in enumerate(row[: len(visits)]):
            for other in row[number + 1 : number + given.buffer.stages]:
                _turn(prover, given, ends, one, other)


def _drained(prover: Prover) -> bool:
    """Return whether the body awaits all of its stores: then every stage is free again."""
    return any(
        node.op is not None
        and (node.op.verb, node.op.target, node.op.count) == ("await", "store", 0)
        for node in prover.body.nodes
    )


def _visits(prover: Prover, name: str) -> list[tuple[Write, ...]]:
    found: list[list[Write]] = []
    for write in prover.writes:
        if write.target != name:
            continue
        known = found and found[-1][0].after == write.after
        if known and not any(terms.same(write.offset, one.offset) for one in found[-1]):
            found[-1].append(write)
        else:
            found.append([write])
    return [tuple(visit) for visit in found]


def _turn(
    prover: Prover, given: BufferInput, ends: list[WarpState], one: Visit, other: Visit
) -> None:
    renamed = _later(prover, ends[-1], other.tile) if other.tile else []
    hits: list[Term] = []
    for a in one.writes:
        for b in other.writes:
            there = terms.substituted(b.offset, *renamed)
            path = [terms.substituted(condition, *renamed) for condition in b.path]
            near = a.offset - there + (a.size - 1)
            hits.append(
                terms.both(terms.less(near, terms.bits(a.size + b.size - 1, 32)), *a.path, *path)
            )
    verdict, model = prover.queries.check((), terms.either(*hits))
    name = given.buffer.name
    if verdict == UNKNOWN:
        raise UnprovedError(f"stages of `{name}` of which the solver cannot say that they differ")
    if verdict == SAT:
        error = RefutedError(
            "PL0916",
            f"writes one stage of `{name}` twice in turn",
            target=name,
            expected=f"the {given.buffer.stages} stages in turn",
            found="bytes that the write before used",
            model=model,
        )
        raise error


def _later(prover: Prover, end: WarpState, tiles: int) -> list[tuple[Term, Term]]:
    """Return the cursors some work tiles later, in terms of those now."""
    pairs = []
    for name, ring in prover.inputs.rings.items():
        stage, phase = ring.start
        for _ in range(tiles):
            step = [(ring.start[0], terms.bits(stage, 32)), (ring.start[1], terms.bits(phase, 32))]
            stage, phase = (
                terms.substituted(terms.bits(value, 32), *step)
                for value in end.body.rings[name].next
            )
        pairs += [(ring.start[0], terms.bits(stage, 32)), (ring.start[1], terms.bits(phase, 32))]
    return pairs
