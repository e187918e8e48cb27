"""Rendering of a counterexample: a line per role, operation, item and stage."""

from collections import Counter
from typing import NamedTuple

from pipelink_rules.check.protocol.counterexample import Counterexample
from pipelink_rules.check.protocol.model import Action, Kind
from pipelink_rules.check.protocol.transition_system import (
    ORDER,
    PHASE,
    PROXY,
    Fault,
    RunState,
    RunStep,
    TransitionSystem,
)

MOST_LINES = 12
_WARPS = ("some warps", "other warps")


class _Row(NamedTuple):
    who: str
    texts: tuple[str, ...]
    where: tuple[int, int] | None  # item, stage
    last: int = 0  # item; rows of several items are one line


def lines(counterexample: Counterexample) -> tuple[str, ...]:
    """Return at most MOST_LINES lines, each of one process at one item."""
    return _Renderer(counterexample).lines()


class _Renderer:
    def __init__(self, counterexample: Counterexample):
        self.counterexample = counterexample
        self.system = TransitionSystem(counterexample.run)
        self.names = [self._name(index) for index in range(len(counterexample.run.processes))]

    def _name(self, index: int) -> str:
        """Return what distinguishes a process from others of the same role."""
        processes = self.counterexample.run.processes
        name, same = processes[index].name, [p.name for p in processes]
        name, _, cta = name.partition("@")
        group = name.partition(" warpgroup ")[2]
        parts = [f"warpgroup {group}"] if group else []
        parts += [f"CTA {cta}"] if cta else []
        if Counter(same)[same[index]] > 1:
            parts.append(_WARPS[same[:index].count(same[index]) % 2])
        return f" ({', '.join(parts)})" if parts else ""

    def lines(self) -> tuple[str, ...]:
        steps = self._gathered()
        fault = self.counterexample.fault
        rows = self._rows(steps[:-1] if fault else steps)
        reported = [self._line(row) for row in rows]
        if fault:
            reported.append(self._fault(steps, fault))
        reported += [self._waits(place) for place in self.counterexample.stuck]
        if len(reported) > MOST_LINES:
            rest = reported[len(reported) - MOST_LINES + 1 :]
            reported = [f"... {len(reported) - len(rest)} earlier lines omitted", *rest]
        numbers = [line if line.startswith("...") else "" for line in reported]
        width = len(str(len(reported)))
        return tuple(
            number or f"{place:{width}} {line}"
            for place, (number, line) in enumerate(zip(numbers, reported, strict=True), 1)
        )

    def _gathered(self) -> tuple[RunStep, ...]:
        """Return the same steps, reordered for few changes between processes."""
        steps = self.counterexample.steps
        body = list(steps[:-1] if self.counterexample.fault else steps)
        state, found = self.system.start(), []
        current = body[0].process if body else 0
        while body:
            order = sorted(body, key=lambda step: (not step.lands, step.process != current))
            for step in order:
                after = self._do(state, step)
                if after is not None:
                    break
            else:
                return steps
            body.remove(step)
            found.append(step)
            state, current = after, current if step.lands else step.process
        if self.counterexample.fault is None:
            return tuple(found)
        last = steps[-1]
        if state.positions[last.process] != last.position:
            return steps
        fault = self.system.act(state, last.process)[1]
        return (*found, last) if fault == self.counterexample.fault else steps

    def _do(self, state: RunState, step: RunStep) -> RunState | None:
        place = (step.process, step.position)
        if step.lands:
            return self.system.land(state, place) if place in state.flying else None
        if state.positions[step.process] != step.position:
            return None
        after, fault = self.system.act(state, step.process)
        return None if fault else after

    def _rows(self, steps: tuple[RunStep, ...]) -> list[_Row]:
        rows: list[_Row] = []
        for step in steps:
            action = self.system.at((step.process, step.position))
            if step.lands or action.kind in (Kind.TOUCH, Kind.MEET) or self._idle(step, action):
                continue
            who, where = self._who(step.process, action), self._where(action)
            row = _Row(who, (action.origin.text,), where, where[0] if where else 0)
            before = rows[-1] if rows else None
            if before and before.who == who and (where is None or before.where in (None, where)):
                where = where or before.where
                rows[-1] = _Row(who, (*before.texts, *row.texts), where, where[0] if where else 0)
            else:
                rows.append(row)
        return _repeated(rows)

    def _idle(self, step: RunStep, action: Action) -> bool:
        """Return whether it awaits groups of which none is pending."""
        groups = self.system.pending[step.process][step.position]
        awaited = [group for group in groups if self.system.at(group).kind == action.target]
        return action.kind == Kind.AWAIT and not awaited

    def _who(self, index: int, action: Action) -> str:
        return f"{action.origin.owner}{self.names[index]}"

    def _where(self, action: Action) -> tuple[int, int] | None:
        """Return the item that an action is about, and its stage."""
        if action.kind in (Kind.WAIT, Kind.ARRIVE):
            stages = self.counterexample.run.barriers[action.target].stages
            # A producer waits until the previous item of the stage is released.
            ahead = stages if action.kind == Kind.WAIT and action.target.endswith(".empty") else 0
            return action.item + ahead, action.item % stages
        if action.kind in (Kind.AWAIT, Kind.FENCE, Kind.SIGNAL, Kind.MEET, Kind.TOUCH):
            return None
        return action.item, action.item % self.counterexample.run.memories[action.target].stages

    def _line(self, row: _Row) -> str:
        text = f"{row.who}: {', '.join(dict.fromkeys(row.texts))}"
        if row.where is None:
            return text
        item, stage = row.where
        return f"{text}: " + (
            f"items {item} to {row.last}" if row.last != item else _at(item, stage)
        )

    def _waits(self, place: tuple[int, int]) -> str:
        action = self.system.at(place)
        where = self._where(action)
        item = f" for {_at(*where)}" if where else ""
        return f"{self._who(place[0], action)}: {action.origin.text} hangs{item}"

    def _fault(self, steps: tuple[RunStep, ...], fault: Fault) -> str:
        state = self.system.start()
        for step in steps[:-1]:
            if step.lands:
                state = self.system.land(state, (step.process, step.position))
            else:
                state = self.system.act(state, step.process)[0] or state
        action = self.system.at(fault.place)
        where = self._where(action)
        head = f"{self._who(fault.place[0], action)}: {action.origin.text}"
        head += f": {_at(*where)}" if where else ""
        return f"{head}; {self._explanation(state, action, fault)}"

    def _explanation(self, state: RunState, action: Action, fault: Fault) -> str:
        other = self.system.at(fault.others[0]) if fault.others else action
        of = f"`{other.origin.text}` of `{other.origin.owner}`"
        if fault.kind == PROXY:
            item = "" if other.item == action.item else f" of item {other.item}"
            if action.kind == Kind.COPY:
                return f"no fence: it can overtake {of}{item}"
            return f"no fence: it may not see {of}{item}"
        if fault.kind == PHASE:
            stages = self.counterexample.run.barriers[action.target].stages
            at = self.system.mbarriers[action.target, action.item % stages]
            counted = state.phases[at][0] * stages + action.item % stages
            if action.kind == Kind.ARRIVE:
                return f"counted for item {counted}, which is incomplete"
            return f"the barrier is at item {counted}, which has the same parity"
        if fault.kind != ORDER:
            threads = self.counterexample.run.named[action.target].threads
            here = state.rounds[self.system.named[action.target]] // threads
            return f"an arrival for phase {action.item} is counted for phase {here}"
        flying = [self.system.at(place) for place in fault.others if place in state.flying]
        if flying:
            return f"`{flying[0].origin.text}` is still writing item {flying[0].item} there"
        if action.kind in (Kind.COPY, Kind.WRITE) and other.kind not in (Kind.COPY, Kind.WRITE):
            return f"{of} is still reading item {other.item} there"
        holds = state.contents[self.system.slots[self.system.slot(fault.place)]][0]
        if action.kind in (Kind.COPY, Kind.WRITE):
            return f"overwrites item {holds}"
        return "reads uninitialized data" if holds < 0 else f"reads item {holds} instead"


def _at(item: int, stage: int) -> str:
    return f"item {item}, stage {stage}"


def _repeated(rows: list[_Row]) -> list[_Row]:
    """Merge rows of one process that perform the same operations on consecutive items."""
    found: list[_Row] = []
    for row in rows:
        before = found[-1] if found else None
        if (
            before
            and before.where
            and row.where
            and (before.who, before.texts) == (row.who, row.texts)
            and row.where[0] == before.last + 1
        ):
            found[-1] = before._replace(last=row.where[0])
        else:
            found.append(row)
    return found
