"""Validation of a bound contract, and the conditions that all validators are made of.

Every function yields the places that violate a condition.  Noun -> faults.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.expression.parse import DivisionByZero, ExpressionError
from pipelink_rules.model.contract import DTYPES, Contract, Operation, Port, Repeat, Role
from pipelink_rules.model.operation import SOURCES, VERBS, target_kinds
from pipelink_rules.model.source_span import Expr, JsonPath
from pipelink_rules.model.variant import Variant

Fault = tuple[JsonPath, str]  # where in the file, and why it cannot be

SPACES = ("ring", "tensor_memory", "registers", "global", "scalar", "counter")
LAUNCH_NAMES = frozenset({"sms", "occupancy", "clusters"})
WARPS = 32  # of a CTA
REGISTERS = 256  # of a thread
ARRIVALS = 2**20  # of an mbarrier
SHARED_BYTES = 2**20  # more than any SM has
STAGES = 64
LARGEST_ALIGN = 2**20
_FIXED_TARGETS = {
    "await": ("mma", "store", "tensor load", "tensor store"),
    "fence": ("async", "tensor before", "tensor after", "global"),
}


# Conditions -------------------------------------------------------------------------------------


def unique(at: JsonPath, names: Iterable[Any], what: str) -> Iterator[Fault]:
    """No name occurs twice."""
    seen: set[Any] = set()
    for number, name in enumerate(names):
        if name in seen:
            yield (*at, number), f"duplicate {what} {shown(name)}"
        seen.add(name)


def known(at: JsonPath, name: Any, names: Collection[Any], what: str) -> Iterator[Fault]:
    """The name is declared."""
    if name not in names:
        yield at, f"unknown {what} {shown(name)}"


def one_of(at: JsonPath, value: str, values: Collection[str]) -> Iterator[Fault]:
    """The word is one of a fixed set."""
    if value not in values:
        yield at, f"{shown(value)} is not one of {', '.join(filter(None, values))}"


def between(at: JsonPath, value: int | None, low: int, high: int) -> Iterator[Fault]:
    """The number, where there is one, is in range."""
    if value is not None and not low <= value <= high:
        yield at, f"{value} is not between {low} and {high}"


def shown(name: Any) -> str:
    """A name, or an (instance, port) pair, in backquotes."""
    text = ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return f"`{text[:80]}`"


def expression_over(at: JsonPath, text: str, names: Collection[str]) -> Iterator[Fault]:
    """The text is an expression over these names; its value does not matter."""
    try:
        value_of(text, dict.fromkeys(names, 1))
    except DivisionByZero:
        pass  # for these values
    except ExpressionError as problem:
        yield at, f"`{text[:60]}`: {problem}"


def _expressions(noun: Any, at: JsonPath, names: Collection[str]) -> Iterator[Fault]:
    """All expressions below a noun of the contract language."""
    if isinstance(noun, Expr):
        yield from expression_over((*at, "text"), noun.text, names)
        if noun.literal is not None:
            yield from between((*at, "text"), noun.literal, -(2**31), 2**31 - 1)
    elif isinstance(noun, tuple):
        for number, item in enumerate(noun):
            yield from _expressions(item, (*at, number), names)
    elif dataclasses.is_dataclass(noun):
        for field in dataclasses.fields(noun):
            if field.name not in ("span", "spans"):
                yield from _expressions(getattr(noun, field.name), (*at, field.name), names)


# Contracts --------------------------------------------------------------------------------------


def variant_faults(variant: Variant, at: JsonPath = ()) -> Iterator[Fault]:
    """The contract is consistent, and measured roles are its roles."""
    contract = variant.contract
    yield from _contract(contract, (*at, "contract"))
    roles = {role.name for role in contract.roles}
    for number, (role, measured) in enumerate(variant.measured):
        here = (*at, "measured", number)
        yield from known((*here, 0), role, roles, "role")
        yield from between((*here, 1, "registers"), measured.registers, 0, REGISTERS)
        yield from between((*here, 1, "entry"), measured.entry, 0, REGISTERS)


def _contract(contract: Contract, at: JsonPath) -> Iterator[Fault]:
    fields = {field.name for field in contract.work.fields} if contract.work else set()
    symbols = {symbol.name for symbol in contract.symbols}
    params = {param.name for param in contract.params}
    for section in ("params", "symbols", "roles", "ports", "buffers", "named_barriers"):
        names = [item.name for item in getattr(contract, section)]
        yield from unique((*at, section), names, section[:-1].replace("_", " "))
    yield from _expressions(contract, at, {*fields, *symbols, *params, *LAUNCH_NAMES})
    for number, symbol in enumerate(contract.symbols):
        here = (*at, "symbols", number)
        yield from between((*here, "minimum"), symbol.minimum, 0, symbol.maximum)
        yield from between((*here, "multiple_of"), symbol.multiple_of, 1, 2**31)
    if contract.work:
        here = (*at, "work", "fields")
        yield from unique(here, [field.name for field in contract.work.fields], "field")
        for number, field in enumerate(contract.work.fields):
            of = field.index_within
            yield from known((*here, number, "index_within"), of, {"", *fields}, "field")
    roles = {role.name: role for role in contract.roles}
    for number, port in enumerate(contract.ports):
        yield from _port(contract, port, roles, fields, (*at, "ports", number))
    for number, buffer in enumerate(contract.buffers):
        here = (*at, "buffers", number)
        yield from known((*here, "role"), buffer.role, roles, "role")
        yield from between((*here, "stages"), buffer.stages, 1, STAGES)
        yield from alignment((*here, "align"), buffer.align)
    for number, barrier in enumerate(contract.named_barriers):
        for index, role in enumerate(barrier.roles):
            here = (*at, "named_barriers", number, "roles", index)
            yield from known(here, role, roles, "role")
    for number, role_ in enumerate(contract.roles):
        yield from _role(contract, role_, fields, (*at, "roles", number))


def alignment(at: JsonPath, align: int) -> Iterator[Fault]:
    """The number is a power of two."""
    if not 1 <= align <= LARGEST_ALIGN or align & (align - 1):
        yield at, f"{align} is not an alignment: a power of two"


def _port(
    contract: Contract, port: Port, roles: Collection[str], fields: Collection[str], at: JsonPath
) -> Iterator[Fault]:
    yield from one_of((*at, "space"), port.space, SPACES)
    yield from one_of((*at, "direction"), port.direction, ("in", "out"))
    yield from one_of((*at, "proxy"), port.proxy, ("generic", "async"))
    yield from known((*at, "role"), port.role, roles, "role")
    yield from alignment((*at, "align"), port.align)
    yield from between((*at, "pending"), port.pending, 0, STAGES)
    yield from between((*at, "stages", "minimum"), port.stages.minimum, 1, port.stages.maximum)
    yield from between((*at, "stages", "maximum"), port.stages.maximum, 1, STAGES)
    if port.in_place:
        names = [item.name for item in contract.ports if item.space == port.space]
        yield from known((*at, "in_place"), port.in_place, names, "port")
    least, most = {"ring": (1, STAGES), "scalar": (0, 0), "counter": (0, 0)}.get(port.space, (1, 1))
    if not least <= len(port.members) <= most:
        yield (*at, "members"), f"a {port.space} port cannot have {len(port.members)} tiles"
    yield from unique((*at, "members"), [member.name for member in port.members], "tile")
    for number, member in enumerate(port.members):
        here = (*at, "members", number)
        yield from one_of((*here, "dtype"), member.dtype, DTYPES)
        yield from swizzle_span((*here, "layout", "swizzle"), member.layout.swizzle)
        strides = member.layout.strides
        if strides and len(strides) != len(member.shape):
            yield (*here, "layout", "strides"), f"{len(strides)} for {len(member.shape)} extents"
    if port.space == "scalar":
        yield from one_of((*at, "type"), port.type, DTYPES)
    if port.tile:
        here = (*at, "tile")
        yield from swizzle_span((*here, "swizzle"), port.tile.swizzle)
        for number, field in enumerate(port.tile.along or ()):
            yield from known((*here, "along", number), field, fields, "field")
        rank = len(port.members[0].shape) if port.members else 0
        if len(port.tile.box) != rank:
            yield (*here, "box"), f"{len(port.tile.box)} extents for a tensor of {rank}"


def swizzle_span(at: JsonPath, swizzle: int) -> Iterator[Fault]:
    """The number is a span that the hardware swizzles."""
    if swizzle not in (0, 32, 64, 128):
        yield at, f"a swizzle spans 0, 32, 64 or 128 bytes, not {swizzle}"


def _role(contract: Contract, role: Role, fields: Collection[str], at: JsonPath) -> Iterator[Fault]:
    yield from one_of((*at, "converged"), role.converged, ("thread", "warp", "warpgroup", "role"))
    yield from one_of((*at, "split"), role.split, ("warp", "warpgroup", "role"))
    for section in ("prologue", "body", "epilogue"):
        yield from _operations(contract, getattr(role, section), fields, (*at, section))


def _operations(
    contract: Contract,
    body: tuple[Operation | Repeat, ...],
    fields: Collection[str],
    at: JsonPath,
) -> Iterator[Fault]:
    for number, item in enumerate(body):
        here = (*at, number)
        if isinstance(item, Repeat):
            yield from _operations(contract, item.body, fields, (*here, "body"))
        else:
            yield from _operation(contract, item, fields, here)


def _operation(
    contract: Contract, op: Operation, fields: Collection[str], at: JsonPath
) -> Iterator[Fault]:
    ports = {port.name: port for port in contract.ports}
    kinds = {
        **{name: f"{port.space} {port.direction}" for name, port in ports.items()},
        **{buffer.name: "buffer" for buffer in contract.buffers},
        **{barrier.name: "named barrier" for barrier in contract.named_barriers},
    }
    yield from one_of((*at, "verb"), op.verb, VERBS)
    yield from between((*at, "count"), op.count, 0, STAGES)
    yield from between((*at, "lag"), op.lag, 0, STAGES)
    if op.verb in _FIXED_TARGETS:
        yield from one_of((*at, "target"), op.target, _FIXED_TARGETS[op.verb])
    accepted = target_kinds(op)
    if accepted and kinds.get(op.target) not in accepted:
        yield (*at, "target"), f"{shown(op.target)} is not a {list_of(accepted, 'or')}"
    source = SOURCES.get(op.verb) if op.source or op.verb != "mma" else None
    if source and kinds.get(op.source) != source:
        yield (*at, "source"), f"{shown(op.source)} is not a {source}"
    if op.verb == "copy" and op.target in ports:
        members = [member.name for member in ports[op.target].members]
        yield from known((*at, "member"), op.member, members, "tile")
    if op.verb == "wait_until" and op.threshold is None:
        yield (*at, "threshold"), "`wait_until` needs a number of signals"
    indexed = ports.get(op.source if op.verb in ("copy", "store") else op.target)
    if indexed and (indexed.space == "counter" or indexed.scratch) and not op.index:
        yield (*at, "index"), f"{shown(indexed.name)} needs an index"
    if op.index:
        yield from known((*at, "index", 0, "text"), op.index[0].text, fields, "field")
