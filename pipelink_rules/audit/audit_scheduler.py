"""Comparison of a tile scheduler's code with the fields that its contract guarantees.

The check of counters relies on these guarantees (`index_within`, `max`), that of protocols on the
ranges and values of fields.  For several tensor sizes every work tile is computed, in order, and
its fields are compared with the guarantees.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from pipelink_rules.audit.compare import Difference
from pipelink_rules.audit.execution_log import ExecutionLog
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.lanes import Cell, uniform
from pipelink_rules.audit.machine_state import PORTS, REGION, InconclusiveError, Names, State
from pipelink_rules.contract.parse_params import AXES
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Contract, Role, WorkField
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

SIZES = (1, 200, 2, 640, 129, 1000, 64, 257)  # of the tensors, each rounded to a legal size
MOST_CASES = 8
MOST_TILES = 400  # of one case: larger ones are not interpreted
_RESULT = 5 << REGION  # where the entry writes the work tile
_SIGN = 1 << 31

TileFields = dict[str, int]
CtaPosition = tuple[int, ...]  # of a CTA in its cluster; () where a scheduler serves none


def scheduler_difference(module: Module, variant: Variant, role: Role) -> Difference | None:
    """Return the first tile that violates a guarantee; InconclusiveError for an unknown field."""
    contract, entry = variant.contract, _Entry(module, variant, role)
    for sizes in _cases(contract):
        run = _SchedulerCase(contract, sizes)
        for number in range(_count(contract, sizes)):
            difference = _difference(entry, run, number, numbered=True)
            if difference is not None:
                return difference
        difference = run.counted()
        if difference is not None:
            return difference
    return None


def tiles_difference(
    module: Module,
    variant: Variant,
    role: Role,
    sizes: dict[str, int],
    tiles: Sequence[tuple[int, CtaPosition]],
) -> Difference | None:
    """Return the difference that some work tiles, in order, show: the counterexample of a proof."""
    entry, run = _Entry(module, variant, role), _SchedulerCase(variant.contract, sizes)
    for number, _ in tiles:
        difference = _difference(entry, run, number, numbered=False)
        if difference is not None:
            return difference
    found = [entry.tile(sizes, number, position) for number, position in tiles]
    return run.in_order([number for number, _ in tiles], found) if len(tiles) > 1 else None


class _Entry:
    """The code of a scheduler."""

    def __init__(self, module: Module, variant: Variant, role: Role):
        self.contract, self._module = variant.contract, module
        self._symbol = variant.symbol(role.name)
        self._names = Names(variant.contract, {}, {}, {})
        self._machine = Interpreter(module, self._names, State({}, (), {}))

    def tile(self, sizes: dict[str, int], number: int, position: CtaPosition) -> TileFields:
        """Return the fields of a work tile."""
        arguments = [*position, *sizes.values()]
        memory: dict[int, Cell] = {
            (PORTS >> 2) + word: value for word, value in enumerate(arguments)
        }
        codes = self._machine.codes
        machine = Interpreter(self._module, self._names, State(memory, (), {}), codes=codes)
        machine.run(self._symbol, [PORTS, number, _RESULT])
        self._machine = machine
        return _fields_of(self.contract, machine.state.memory)

    def other_effect(self) -> Difference | None:
        """Return a difference where the last run did more than compute fields."""
        return _only_computes(self._machine.state.log)


def _difference(
    entry: _Entry, run: "_SchedulerCase", number: int, *, numbered: bool
) -> Difference | None:
    """Return the first guarantee that a work tile breaks in one of the CTAs of its cluster.

    numbered: all work tiles before it have been computed, so its index in its group is known.
    """
    tiles: dict[CtaPosition, TileFields] = {}
    for position in _cta_positions(entry.contract):
        tiles[position] = entry.tile(run.sizes, number, position)
        difference = (
            entry.other_effect()
            or run.check(number, tiles[position], numbered=numbered)
            or run.alike(number, tiles, position)
        )
        if difference is not None:
            return difference
    return None


def _only_computes(log: ExecutionLog) -> Difference | None:
    """Return a difference for any operation or access: no body declares those of a scheduler."""
    for event in log.events:
        what, wanted = f"performs `{event.verb} {event.target}`", "nothing but computing fields"
        return Difference("PL0934", what, None, "", wanted, str(event))
    for access in sorted(log.accesses[0], key=str):
        what, wanted = f"performs a {access.kind} of {access.target}", "writes of its work tile"
        return Difference("PL0930", what, None, "", wanted, str(access))
    return None


def _cta_positions(contract: Contract) -> list[CtaPosition]:
    """Return the CTAs of a cluster that work on one tile, in the order of the generated header."""
    if contract.work is None or not contract.work.cluster:
        return [()]
    x, y = (evaluate(extent, {}) for extent in contract.work.cluster)
    return [*product(range(x), range(y))]


def _fields_of(contract: Contract, memory: dict[int, Cell]) -> TileFields:
    found = {}
    for position, field in enumerate(contract.work.fields if contract.work else ()):
        value = uniform(memory.get((_RESULT >> 2) + position))
        if value is None:
            raise InconclusiveError(f"a field `{field.name}` that depends on data")
        found[field.name] = value - 2 * _SIGN if value & _SIGN else value
    return found


def _cases(contract: Contract) -> Iterator[dict[str, int]]:
    seen = []
    for case in range(MOST_CASES):
        sizes = {}
        for position, symbol in enumerate(contract.symbols):
            wanted = max(symbol.minimum, SIZES[case * (position + 1) % len(SIZES)])
            rounded = -(-wanted // symbol.multiple_of) * symbol.multiple_of
            sizes[symbol.name] = min(rounded, symbol.maximum)
        if sizes not in seen and _count(contract, sizes) <= MOST_TILES:
            seen.append(sizes)
            yield sizes


def _count(contract: Contract, sizes: dict[str, int]) -> int:
    work = contract.work
    return evaluate(work.tiles, sizes) if work and work.tiles else 0


class _SchedulerCase:
    """The work tiles of one case, in order."""

    def __init__(self, contract: Contract, sizes: dict[str, int]):
        self.fields = contract.work.fields if contract.work else ()
        self.conditions = contract.work.where if contract.work else ()
        self.sizes = sizes
        self.before: dict[tuple[str, int], int] = {}  # numbering field, group -> tiles
        self.limits = {
            field.name: [
                None if limit is None else evaluate(limit, sizes)
                for limit in (field.value, field.minimum, field.maximum)
            ]
            for field in self.fields
        }

    def check(self, number: int, tile: TileFields, *, numbered: bool = True) -> Difference | None:
        """Return the first violated guarantee of a tile: value, range, or index in its group."""
        for field in self.fields:
            actual = tile[field.name]
            value, least, most = self.limits[field.name]
            wanted = ""
            if value is not None and actual != value:
                wanted = f"value {field.value} = {value}"
            elif least is not None and actual < least:
                wanted = f"at least {field.minimum} = {least}"
            elif most is not None and actual > most:
                wanted = f"at most {field.maximum} = {most}"
            elif field.multiple_of is not None and actual % evaluate(field.multiple_of, {}):
                wanted = f"a multiple of {field.multiple_of}"
            elif field.index_within and numbered:
                group = (field.name, tile[field.index_within])
                before = self.before.get(group, 0)
                self.before[group] = before + 1
                if actual != before:
                    wanted = f"{before}, the tiles before it with {field.index_within}={group[1]}"
            if wanted:
                return self._violation(field, wanted, f"{actual} in work tile {number}")
        for condition in self.conditions:
            if not evaluate(condition, {**self.sizes, **tile}):
                used = names(condition)
                field = next(field for field in self.fields if field.name in used)
                values = ", ".join(f"{name}={tile[name]}" for name in sorted(used & set(tile)))
                return self._violation(field, condition.text, f"{values} in work tile {number}")
        return None

    def alike(
        self, number: int, tiles: dict[CtaPosition, TileFields], position: CtaPosition
    ) -> Difference | None:
        """Return a field that varies along a cluster axis which it does not declare."""
        for field in self.fields:
            for at, axis in enumerate(AXES[: len(position)]):
                first = tiles[(*position[:at], 0, *position[at + 1 :])]
                actual, wanted = tiles[position][field.name], first[field.name]
                if axis not in field.along and actual != wanted:
                    where = ", ".join(
                        f"{n}={value}" for n, value in zip(AXES, position, strict=True)
                    )
                    wanted_text = f"{wanted}, the same for all CTAs along {axis}"
                    found = f"{actual} in work tile {number} at {where}"
                    return self._violation(field, wanted_text, found)
        return None

    def in_order(self, numbers: list[int], tiles: list[TileFields]) -> Difference | None:
        """Return a field that does not number two work tiles of a group in their order."""
        for field in self.fields:
            group, (one, other) = field.index_within, (tiles[0], tiles[1])
            if not group or one[group] != other[group] or one[field.name] < other[field.name]:
                continue
            wanted = f"more than {one[field.name]}, that of work tile {numbers[0]} with the same "
            wanted += f"{group}={one[group]}"
            return self._violation(field, wanted, f"{other[field.name]} in work tile {numbers[1]}")
        return None

    def counted(self) -> Difference | None:
        """Return the first group whose number of tiles differs from the declared one."""
        times = {field.name: field for field in self.fields if field.index_count is not None}
        for (name, group), found in sorted(self.before.items()):
            wanted = evaluate(times[name].index_count or "0", {})
            if found != wanted:
                wanted_text = f"{plural(wanted, 'tile')} with {times[name].index_within}={group}"
                return self._violation(times[name], wanted_text, str(found))
        return None

    def _violation(self, field: WorkField, wanted: str, found: str) -> Difference:
        case = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        message = f"violates the guarantee of work field `{field.name}`"
        found += f" with {case}" if case else ""
        return Difference("PL0937", message, None, field.name, wanted, found)
