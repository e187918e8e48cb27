"""Loops and live registers of a function's code."""

import re
from functools import cached_property

from pipelink_rules.audit.control_flow import FunctionCode, is_merged
from pipelink_rules.audit.decode_ptx import registers_of
from pipelink_rules.audit.proof.verdict import UnprovedError
from pipelink_rules.toolkit.ptx import Statement

_REGISTER = re.compile(r"%\w+|\bp\b|\b__local_depot\d+|\b[A-Za-z_]\w*\b")
_NO_RESULT = ("st", "bra", "call", "red", "stmatrix", "wgmma")


class LoopGraph:
    """The control flow of a function; positions are those of its instructions, `end` follows."""

    def __init__(self, code: FunctionCode) -> None:
        self.code = code
        self.end = len(code.instructions)
        self.following = [code.successors(position) for position in range(self.end)]

    @cached_property
    def loops(self) -> dict[int, frozenset[int]]:
        """Head of each loop -> its positions; UnprovedError where a loop has two entries."""
        reachable, back = self._walk()
        before: dict[int, list[int]] = {}
        for position in reachable:
            for target in self.following[position]:
                before.setdefault(target, []).append(position)
        bodies: dict[int, set[int]] = {}
        for source, head in back:
            body = bodies.setdefault(head, {head})
            todo = [source]
            while todo:
                position = todo.pop()
                if position not in body:
                    body.add(position)
                    todo += before.get(position, ())
        for head, body in bodies.items():
            for position in body - {head}:
                if any(source not in body for source in before.get(position, ())):
                    raise UnprovedError("a loop with two entries")
        return {head: frozenset(body) for head, body in bodies.items()}

    def _walk(self) -> tuple[set[int], list[tuple[int, int]]]:
        """Return the reachable positions and the edges back to one on the way."""
        on_the_way, done, back = {0}, set(), []
        stack = [(0, iter(self.following[0] if self.end else ()))]
        while stack:
            position, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                on_the_way.discard(position)
                done.add(position)
                stack.pop()
            elif target in on_the_way:
                back.append((position, target))
            elif target < self.end and target not in done:
                on_the_way.add(target)
                stack.append((target, iter(self.following[target])))
        return done, back

    @cached_property
    def exits(self) -> dict[int, frozenset[int]]:
        """Head of each loop -> positions inside with a way out."""
        return {
            head: frozenset(p for p in body if any(t not in body for t in self.following[p]))
            for head, body in self.loops.items()
        }

    def outside(self, head: int) -> frozenset[int]:
        """Return the positions outside of a loop that may follow it."""
        body = self.loops[head]
        return frozenset(t for p in self.exits[head] for t in self.following[p] if t not in body)

    @cached_property
    def live(self) -> list[frozenset[str]]:
        """Registers whose values are used at a position or after it."""
        uses, kills = (
            zip(*map(_uses, self.code.instructions), strict=True) if self.end else ((), ())
        )
        live: list[frozenset[str]] = [frozenset()] * (self.end + 1)
        changed = True
        while changed:
            changed = False
            for position in range(self.end - 1, -1, -1):
                after = frozenset().union(*(live[t] for t in self.following[position]))
                found = uses[position] | (after - kills[position])
                if found != live[position]:
                    live[position], changed = found, True
        return live


def _uses(statement: Statement) -> tuple[frozenset[str], frozenset[str]]:
    """Return the registers that an instruction reads, and those that it always writes."""
    arguments = statement.arguments()
    if not arguments or statement.base in _NO_RESULT or is_merged(statement):
        return frozenset(_REGISTER.findall(f"{statement.operands} {statement.guard}")), frozenset()
    results = frozenset(registers_of(arguments[0]))
    read = frozenset(_REGISTER.findall(" ".join((*arguments[1:], statement.guard))))
    if statement.guard:
        return read | results, frozenset()
    return read, results
