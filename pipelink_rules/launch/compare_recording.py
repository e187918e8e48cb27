"""Comparison of a recorded launch with its contracts: Recording -> report."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import NamedTuple

from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.expression.evaluate import names_in, value_of
from pipelink_rules.expression.parse import ExpressionError
from pipelink_rules.model.linked_kernel import RoleScript, Script, ScriptLoop, ScriptOp, Site
from pipelink_rules.model.recording import Event, Recording, WarpRow


class Expected(NamedTuple):
    """One operation; None = anything."""

    verb: str
    site: int
    stage: int | None
    value: int | None
    op: ScriptOp
    item: int  # which work tile of the CTA, from 0; -1 outside of one


def known_values(script: Script, symbols: Mapping[str, int]) -> dict[str, int]:
    """Return the symbols, and the work fields that are the same for every item."""
    known = dict(symbols)
    for name, text in script.fields:
        with suppress(ExpressionError):
            known[name] = value_of(text, symbols)
    return known


def items_of(script: Script, symbols: Mapping[str, int], cta: int, grid: int) -> int:
    """Return the number of work tiles of a CTA."""
    size = script.cluster
    return len(range(cta // size, value_of(script.items, symbols), grid // size))


class Run(NamedTuple):
    """Operations of a warp, for counts that only the run determines."""

    varying: frozenset[str] = frozenset()  # work fields that differ from item to item
    events: Sequence[Event] = ()


NOTHING_SEEN = Run()


def expected_of(
    role: RoleScript,
    items: int,
    known: Mapping[str, int],
    sites: Mapping[int, Site],
    run: Run = NOTHING_SEEN,
    most: int | None = None,
) -> list[Expected]:
    """Return the operations of every warp of a role; ExpressionError where a count is not known.

    run: a loop over a field that varies goes round as long as the warp began it anew.
    most: no more than the first so many.
    """
    return list(islice(_Walk(known, sites, run).role(role, items), most))


class _Walk:
    def __init__(self, known: Mapping[str, int], sites: Mapping[int, Site], run: Run):
        self.known, self.sites, self.run = known, sites, run
        self.done = 0  # operations so far
        self.next: dict[int, int] = {}  # site -> items acquired or waited for, ever
        self.here: dict[int, int] = {}  # the same, in this work tile

    def role(self, role: RoleScript, items: int) -> Iterator[Expected]:
        yield from self._steps(role.prologue, -1)
        for item in range(items):
            self.here = {}
            yield from self._steps(role.body, item)
        yield from self._steps(role.epilogue, -1)

    def _steps(self, steps: tuple[ScriptOp | ScriptLoop, ...], item: int) -> Iterator[Expected]:
        for step in steps:
            if not isinstance(step, ScriptLoop):
                for one in self._one(step, item):
                    self.done += 1
                    yield one
            elif names_in(step.count) & self.run.varying:
                yield from self._seen(step, item)
            else:
                for _ in range(value_of(step.count, self.known)):
                    yield from self._steps(step.body, item)

    def _seen(self, loop: ScriptLoop, item: int) -> Iterator[Expected]:
        """Yield the iterations that the run started of a loop."""
        first: ScriptOp | ScriptLoop = loop
        while isinstance(first, ScriptLoop):
            first = first.body[0]
        start = -1
        while start < self.done < len(self.run.events):
            event, start = self.run.events[self.done], self.done
            if (event.verb, event.site) != (first.verb, first.site):
                return
            yield from self._steps(loop.body, item)

    def _one(self, op: ScriptOp, item: int) -> Iterator[Expected]:
        site = self.sites.get(op.site)
        value = value_of(op.value, self.known) if op.value else None
        if site is None or not site.stages:  # no ring
            yield Expected(op.verb, op.site, None, value, op, item)
            return
        if op.by_item:
            at = item
        else:
            if op.verb in ("acquire", "wait"):
                self.next[op.site] = self.next.get(op.site, 0) + 1
                self.here[op.site] = self.here.get(op.site, 0) + 1
            if op.lag >= self.here.get(op.site, 0):
                return  # this work tile has no such item
            at = self.next[op.site] - 1 - op.lag
        if op.verb not in ("expect", "copy"):
            value = at // site.stages & 1
        yield Expected(op.verb, op.site, at % site.stages, value, op, item)


NOTHING = "nothing"


class Difference(NamedTuple):
    """A difference between warps of a role and their contract; equal ones are counted."""

    role: str
    position: int  # operations that agree before it
    item: int  # work tile of the CTA, from 0; -1 outside of one
    expected: str
    found: str
    last: str  # the operation before


@dataclass
class RoleResult:
    """One role: the number of operations, and the differences."""

    role: str
    warps: int
    operations: int
    differences: dict[Difference, list[tuple[int, int]]]  # -> (CTA, warp) of each
    skipped: str = ""  # why nothing was compared

    def counts(self, failed: bool) -> tuple[int, int]:
        """Warps that a failed launch stopped on their way, and warps that did something else."""
        stuck = differ = 0
        for difference, places in self.differences.items():
            if failed and difference.found == NOTHING:
                stuck += len(places)
            else:
                differ += len(places)
        return stuck, differ


def compare(recording: Recording) -> tuple[RoleResult, ...]:
    """Return every role of the recording against its script."""
    sites = {site.number: site for site in recording.sites}
    symbols = dict(recording.symbols)
    known = known_values(recording.script, symbols)
    varying = frozenset(recording.script.varying)
    found = []
    for role in recording.script.roles:
        rows = [row for row in recording.rows if recording.role_of(row.warp) == role.name]
        result = RoleResult(role.name, len(rows), sum(row.operations for row in rows), {})
        found.append(result)
        if role.raw:
            ports = list_of(role.raw, "and")
            result.skipped = f"{ports} served by raw instructions"
            continue
        wanted: dict[int, list[Expected]] = {}
        most = 1 + max((row.operations for row in rows), default=0)
        for row in rows:
            try:
                items = items_of(recording.script, symbols, row.cta, recording.grid)
                run = Run(varying, row.decoded() if varying else ())
                if items not in wanted or varying:
                    wanted[items] = expected_of(role, items, known, sites, run, most)
            except ExpressionError as problem:
                result.skipped = f"the contract's counts are not known here: {problem}"
                break
            difference = _difference(role.name, row, wanted[items], sites)
            if difference is not None:
                result.differences.setdefault(difference, []).append((row.cta, row.warp))
    return tuple(found)


def _difference(
    role: str, row: WarpRow, wanted: Sequence[Expected], sites: dict[int, Site]
) -> Difference | None:
    events = row.decoded()
    for position, (event, want) in enumerate(zip_longest(events, wanted)):
        if event and want and _same(event, want):
            continue
        if not (event and want) and len(events) < row.operations:
            return None  # there was no room for the rest
        item, expected = (want.item, _said(want, sites)) if want else (-1, "its end")
        if want and want.op.text:
            expected += f" [{want.op.text}]"
        found = _said(event, sites) if event else NOTHING
        last = _said(events[position - 1], sites) if position else "its start"
        return Difference(role, position, item, expected, found, last)
    return None


def _same(event: Event, want: Expected) -> bool:
    same = (event.verb, event.site) == (want.verb, want.site)
    return same and want.stage in (None, event.stage) and want.value in (None, event.value)


_VALUES = {  # what the value of an operation is
    **dict.fromkeys(("acquire", "wait", "commit", "release"), "phase {}"),
    "expect": "{} bytes",
    "copy": "offset {}",
    "store wait": "{} pending",
    **dict.fromkeys(("sync", "arrive"), "{} threads"),
}


def _said(op: Event | Expected, sites: dict[int, Site]) -> str:
    site = sites.get(op.site)
    words = [f"`{op.verb} {site.port}`" if site else f"`{op.verb}`"]
    if op.site and not site:
        words[0] += " at ?"
    if site and site.stages and op.stage is not None:
        words.append(f"stage {op.stage}")
    if op.value is not None and op.verb in _VALUES:
        words.append(_VALUES[op.verb].format(op.value))
    return ", ".join(words)


def agrees(results: Sequence[RoleResult]) -> bool:
    """True where every role was compared and none differs."""
    return not any(result.differences or result.skipped for result in results)


def report(recording: Recording, results: Sequence[RoleResult]) -> str:
    """Return the comparison as text: a line for every role, then the differences."""
    sizes = ", ".join(f"{name} = {value}" for name, value in recording.symbols)
    lines = [
        f"{recording.megakernel} for {recording.target}, {sizes}: {recording.grid} CTAs on "
        f"{recording.device}"
    ]
    if recording.problem:
        lines += ["", "The launch failed:"]
        lines += [f"  {line}" for line in recording.problem.split("\n")]
    lines.append("")
    width = max((len(result.role) for result in results), default=0)
    for result in results:
        verdict = f"not compared: {result.skipped}" if result.skipped else "as in the contract"
        stuck, differ = result.counts(bool(recording.problem))
        if differ:
            verdict = f"{differ} warps differ from the contract"
        elif stuck:
            verdict = f"as in the contract until {stuck} warps stand still"
        work = f"{result.warps:6} warps  {result.operations:9} operations"
        lines.append(f"{result.role:<{width}}  {work}  {verdict}")
    for result in results:
        lines += _details(result, bool(recording.problem))
    return "\n".join(lines) + "\n"


def _details(result: RoleResult, stuck: bool) -> Iterator[str]:
    for difference, places in result.differences.items():
        cta, warp = places[0]
        others = f" and {len(places) - 1} others" if len(places) > 1 else ""
        where = f", work tile {difference.item}" if difference.item >= 0 else ""
        who = f"{result.role}, warp {warp} of CTA {cta}{others}"
        yield ""
        if stuck and difference.found == NOTHING:
            count = f"{difference.position} operations"
            yield f"{who}: stands in {difference.last}, after {count}{where}"
            yield f"  next      {difference.expected}"
            continue
        yield f"{who}: operation {difference.position}{where}"
        yield f"  after     {difference.last}"
        yield f"  expected  {difference.expected}"
        yield f"  found     {difference.found}"
