"""Which operations does the contract give a warp?  Script, symbols, stages -> one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pipelink_rules.expression.evaluate import names_in, value_of
from pipelink_rules.expression.parse import ExpressionError
from pipelink_rules.model.linked_kernel import Site
from pipelink_rules.model.operation_script import RoleScript, Script, ScriptLoop, ScriptOp
from pipelink_rules.model.recording import Event


class Expected(NamedTuple):
    """One operation; None = anything."""

    verb: str
    site: int
    stage: int | None
    value: int | None
    op: ScriptOp
    item: int  # which work item of the CTA, from 0; -1 outside of one


def known_values(script: Script, symbols: Mapping[str, int]) -> dict[str, int]:
    """The symbols, and the work fields that are the same for every item."""
    known = dict(symbols)
    for name, text in script.fields:
        try:
            known[name] = value_of(text, symbols)
        except ExpressionError:
            continue
    return known


def items_of(script: Script, symbols: Mapping[str, int], cta: int, grid: int) -> int:
    """How many work items a CTA takes."""
    size = script.cluster
    return len(range(cta // size, value_of(script.items, symbols), grid // size))


class Run(NamedTuple):
    """What a warp did, for counts that only the run knows."""

    varying: frozenset[str] = frozenset()  # work fields that differ from item to item
    events: Sequence[Event] = ()


NOTHING_SEEN = Run()


def expected_of(
    role: RoleScript,
    items: int,
    known: Mapping[str, int],
    sites: Mapping[int, Site],
    run: Run = NOTHING_SEEN,
) -> list[Expected]:
    """The operations of every warp of a role; ExpressionError where a count is not known.

    run: a loop over a field that varies goes round as long as the warp began it anew.
    """
    return list(_Walk(known, sites, run).role(role, items))


class _Walk:
    def __init__(self, known: Mapping[str, int], sites: Mapping[int, Site], run: Run):
        self.known, self.sites, self.run = known, sites, run
        self.done = 0  # operations so far
        self.next: dict[int, int] = {}  # site -> items acquired or waited for, ever
        self.here: dict[int, int] = {}  # the same, in this work item

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
        """As often as the run begins the loop's first operation."""
        first: ScriptOp | ScriptLoop = loop
        while isinstance(first, ScriptLoop):
            first = first.body[0]
        begun = -1
        while begun < self.done < len(self.run.events):
            event, begun = self.run.events[self.done], self.done
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
                return  # this work item has no such item
            at = self.next[op.site] - 1 - op.lag
        if op.verb not in ("expect", "copy"):
            value = at // site.stages & 1
        yield Expected(op.verb, op.site, at % site.stages, value, op, item)
