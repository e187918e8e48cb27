"""Instructions of a PTX function and the join of each branch: `Function` -> `FunctionCode`."""

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from pipelink_rules.audit.decode_ptx import registers_of
from pipelink_rules.audit.opcode_table import is_register_only
from pipelink_rules.toolkit.ptx import Function, Statement

_DATA = re.compile(r"[\w.]+\s+%f[d\d]")  # floating-point registers are never known
_FLOAT_ACCESS = re.compile(
    r"(?:(ld\.f32)\s+%f\d+,\s*|(st\.f32)\s+)\[(%rd\d+)(?:\+(-?\d+))?\](?:\s*,\s*%f\d+)?"
)
_QUIET = ("{", "}", ".reg", ".pragma", ".loc", ".local", ".param", ".shared")


@dataclass(frozen=True)
class FunctionCode:
    """A function's instructions; labels are positions."""

    function: Function
    instructions: tuple[Statement, ...]
    labels: dict[str, int]

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        head = self.function.header.partition(self.function.name)[2]
        return tuple(
            part.split()[-1].split("[")[0]
            for part in head.strip().strip("()").split(",")
            if part.strip()
        )

    def successors(self, position: int) -> tuple[int, ...]:
        """Return the positions that may follow; the length of the code is its end."""
        statement, end = self.instructions[position], len(self.instructions)
        following = min(position + 1, end)
        if statement.base == "bra":
            target = self.labels.get(statement.operands.strip(), end)
            return (target, following) if statement.guard else (target,)
        if statement.base in ("ret", "exit", "trap"):
            return (end, following) if statement.guard else (end,)
        return (following,)

    @cached_property
    def jumps(self) -> tuple[tuple[int, int], ...]:
        """(position, target) of every branch."""
        return tuple(
            (position, self.successors(position)[0])
            for position, statement in enumerate(self.instructions)
            if statement.base == "bra"
        )

    @cached_property
    def joins(self) -> dict[int, int]:
        """The join of each branch, its immediate post-dominator."""
        end = len(self.instructions)
        nodes = self._leaders()
        following = {node: self._exits(node, nodes) for node in nodes}
        following[end] = ()
        everything = frozenset(following)
        after = dict.fromkeys(following, everything)
        after[end] = frozenset((end,))
        changed = True
        while changed:
            changed = False
            for node in sorted(nodes, reverse=True):
                sets = [after[item] for item in following[node]]
                new = frozenset((node,)) | (frozenset.intersection(*sets) if sets else frozenset())
                if new != after[node]:
                    after[node], changed = new, True
        return {
            self._last(node, nodes): max(
                after[node] - {node}, key=lambda item: len(after[item]), default=end
            )
            for node in nodes
        }

    def _leaders(self) -> list[int]:
        found = {0, *self.labels.values()}
        for position, statement in enumerate(self.instructions):
            if statement.base in ("bra", "ret", "exit", "trap"):
                found.add(position + 1)
        return sorted(item for item in found if item < len(self.instructions))

    def _last(self, node: int, nodes: list[int]) -> int:
        position = nodes.index(node)
        return (nodes[position + 1] if position + 1 < len(nodes) else len(self.instructions)) - 1

    def _exits(self, node: int, nodes: list[int]) -> tuple[int, ...]:
        return self.successors(self._last(node, nodes))

    def written(self, first: int, last: int) -> set[str]:
        """Return registers that instructions of a range write (or may write)."""
        found: set[str] = set()
        for statement in self.instructions[first : last + 1]:
            found |= written_registers(statement)
        return found

    @cached_property
    def writers(self) -> dict[str, list[Statement]]:
        """Register -> the instructions that write it."""
        found: dict[str, list[Statement]] = {}
        for statement in self.instructions:
            for name in written_registers(statement):
                found.setdefault(name, []).append(statement)
        return found


def written_registers(statement: Statement) -> set[str]:
    """Return the registers that an instruction writes, or may write."""
    arguments = statement.arguments()
    if not arguments or statement.base in ("st", "bra", "call", "red") or is_merged(statement):
        return set()
    return set(registers_of(arguments[0]))


@lru_cache(maxsize=32)
def function_code(function: Function) -> FunctionCode:
    """Return the function's instructions in order."""
    instructions: list[Statement] = []
    labels: dict[str, int] = {}
    for statement in _scoped(function.statements):
        if statement.opcode == "label":
            labels[statement.text.rstrip(": ")] = len(instructions)
        elif not statement.opcode.startswith(_QUIET) and not _is_data(statement):
            behind_a_label = len(instructions) in labels.values()
            merged = None if behind_a_label else _merged(instructions[-1:], statement)
            instructions[len(instructions) - (merged is not None) :] = [merged or statement]
    return FunctionCode(function, tuple(instructions), labels)


def _is_data(statement: Statement) -> bool:
    """Return whether a statement only computes a floating-point number: nothing to interpret."""
    return _DATA.match(statement.text) is not None and is_register_only(statement.opcode)


def _scoped(statements: tuple[Statement, ...]) -> list[Statement]:
    """Give labels unique names: those of inline assembly are visible in their braces only."""
    paths: list[tuple[int, ...]] = []
    path: tuple[int, ...] = ()
    opened = 0
    declared: set[tuple[tuple[int, ...], str]] = set()
    for statement in statements:
        if statement.opcode == "{":
            opened += 1
            path = (*path, opened)
        elif statement.opcode == "}":
            path = path[:-1]
        elif statement.opcode == "label":
            declared.add((path, statement.operands))
        paths.append(path)
    if not any(scope for scope, _ in declared):
        return list(statements)

    def named(name: str, path: tuple[int, ...]) -> str:
        inner = [path[:depth] for depth in range(len(path), 0, -1)]
        scope = next((scope for scope in inner if (scope, name) in declared), ())
        return "@".join([name, *map(str, scope[-1:])])

    found = []
    for statement, path in zip(statements, paths, strict=True):
        if statement.opcode == "label":
            name = named(statement.operands, path)
            statement = Statement(f"{name}:", "", "label", name)
        elif statement.base == "bra":
            statement = replace(statement, operands=named(statement.operands.strip(), path))
        found.append(statement)
    return found


def is_merged(statement: Statement) -> bool:
    """Return whether a statement stands for adjacent data accesses: its operands are no registers
    but a base and offsets, and what it loads is not tracked."""
    return statement.opcode.endswith(".many")


def _merged(before: list[Statement], statement: Statement) -> Statement | None:
    """Return adjacent data accesses by one base register as one instruction: `[%rd1+0, 4, 8]`."""
    found = _FLOAT_ACCESS.fullmatch(statement.text)
    if not found or not before:
        return None
    opcode, base = found[1] or found[2], found[3]
    offset, last = found[4] or "0", before[0]
    if last.opcode == f"{opcode}.many" and last.operands.startswith(f"{base} "):
        operands = f"{last.operands} {offset}"
        return Statement(last.text, "", last.opcode, operands)
    first = _FLOAT_ACCESS.fullmatch(last.text)
    if not first or (first[1] or first[2], first[3]) != (opcode, base) or last.guard:
        return None
    operands = f"{base} {first[4] or '0'} {offset}"
    return Statement(last.text, "", f"{opcode}.many", operands)
