"""What a file must hold beyond its types: every name leads somewhere, every number is possible.

A stage may be rerun from an edited file.  The nouns in it refer to each other by name, and the
stages rely on that.  Noun -> faults: the places in its file that contradict the rest.
"""

import base64
import binascii
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.expression.parse import DivisionByZero, ExpressionError
from pipelink_rules.model import contract as contracts
from pipelink_rules.model import linked_kernel as linked
from pipelink_rules.model import program as programs
from pipelink_rules.model.contract import DTYPES, Contract, Port
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.operation import SOURCES, VERBS, Operation, target_kinds
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Channel, MegakernelSpec, Program
from pipelink_rules.model.recording import EVENT_BYTES, Recording, WarpRow
from pipelink_rules.model.source_span import Expr, JsonPath
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Measured, Variant

Fault = tuple[JsonPath, str]  # where in the file, and why it cannot be
Condition = Callable[[JsonPath, Any], Iterator[Fault]]
End = tuple[str, str]  # (instance, port) or (instance, role)

LAUNCH_NAMES = frozenset({"sms", "occupancy", "clusters"})
WARPS = 32  # of a CTA
STAGES = 64
_FIXED_TARGETS = {
    "await": ("mma", "store", "tensor load", "tensor store"),
    "fence": ("async", "tensor before", "tensor after", "global"),
}
_CHANNELS = {"ring": "ring", "tensor_memory": "tensor_memory", "handover": "registers"}


def faults_in(noun: object) -> Iterator[Fault]:
    """Every place of a noun that contradicts the rest of it."""
    yield from _each_by_itself(noun)
    check = _CHECKS.get(type(noun))
    if check is not None:
        yield from check(noun)


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


def alignment(at: JsonPath, align: int) -> Iterator[Fault]:
    """The number is a power of two."""
    if not 1 <= align <= 2**20 or align & (align - 1):
        yield at, f"{align} is not an alignment: a power of two"


def swizzle_span(at: JsonPath, swizzle: int) -> Iterator[Fault]:
    """The number is a span that the hardware swizzles."""
    if swizzle not in (0, 32, 64, 128):
        yield at, f"a swizzle spans 0, 32, 64 or 128 bytes, not {swizzle}"


def expression_over(at: JsonPath, text: str, names: Collection[str]) -> Iterator[Fault]:
    """The text is an expression over these names; its value does not matter."""
    try:
        value_of(text, dict.fromkeys(names, 1))
    except DivisionByZero:
        pass  # for these values
    except ExpressionError as problem:
        yield at, f"`{text[:60]}`: {problem}"


def shown(name: Any) -> str:
    """A name, or an (instance, port) pair, in backquotes."""
    text = ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
    return f"`{text[:80]}`"


def _range(low: int, high: int) -> Condition:
    return partial(between, low=low, high=high)


def _word(*words: str) -> Condition:
    return partial(one_of, values=words)


_SIZE = _range(1, 2**31)
_WARPS = _range(1, WARPS)
_STAGES = _range(0, STAGES)
_CLUSTER = _range(1, programs.CLUSTER_MOST)
_SHARED_BYTES = _range(0, 2**20)  # more than any SM has
_ARRIVALS = _range(0, 2**20)  # of an mbarrier
_REGISTERS = _range(0, 256)  # of a thread
_DTYPE = _word(*DTYPES)

# Fields whose value, or each value in their list, is limited by itself.
_VALUES: dict[type, dict[str, Condition]] = {
    MegakernelSpec: {"occupancy": _WARPS, "cluster": _CLUSTER},
    Program: {"occupancy": _WARPS, "cluster": _CLUSTER, "target": _word(*TARGETS)},
    programs.Connection: {"transfer": _word(*programs.TRANSFERS)},
    Channel: {
        "kind": _word(*_CHANNELS),
        "stage_bytes": _SHARED_BYTES,
        "align": alignment,
        "maximum": _range(1, STAGES),
        "full_arrivals empty_arrivals": _ARRIVALS,
        "columns": _range(0, 512),
    },
    programs.Multicast: {"axes": _word("x", "y")},
    programs.ProgramRole: {"warps calls": _WARPS, "minimum want entry": _REGISTERS},
    Measured: {"registers entry": _REGISTERS},
    contracts.Symbol: {"multiple_of": _SIZE},
    contracts.Role: {
        "converged": _word("thread", "warp", "warpgroup", "role"),
        "split": _word("warp", "warpgroup", "role"),
    },
    Operation: {"verb": _word(*VERBS), "count lag": _STAGES},
    Port: {
        "space": _word("ring", "tensor_memory", "registers", "global", "scalar", "counter"),
        "direction": _word("in", "out"),
        "proxy": _word("generic", "async"),
        "align": alignment,
        "pending": _STAGES,
    },
    contracts.Stages: {"maximum": _range(1, STAGES)},
    contracts.Member: {"dtype": _DTYPE},
    contracts.Layout: {"swizzle": swizzle_span},
    contracts.TileAccess: {"swizzle": swizzle_span},
    contracts.Buffer: {"stages": _range(1, STAGES), "align": alignment},
    Manifest: {
        "threads": _range(1, 1024),
        "shared_bytes": _SHARED_BYTES,
        "occupancy": _WARPS,
        "cluster": _CLUSTER,
    },
    linked.TensorArgument: {
        "direction": _word("in", "out", "inout"),
        "dtype": _DTYPE,
        "align": _SIZE,
    },
    linked.Workspace: {"kind": _word("scratch", "counters"), "dtype": _DTYPE},
    linked.KernelParameter: {
        "kind": _word("tensor_map", "pointer", "scratch", "counters", "i32", "u32", "f32"),
        "swizzle": swizzle_span,
        "box": _SIZE,
    },
    linked.Script: {"cluster": _CLUSTER},
    linked.RoleScript: {"warps": _WARPS, "first_warp": _range(0, WARPS)},
    linked.ScriptOp: {"lag": _STAGES},
    linked.Site: {"stages": _STAGES},
    Recording: {"grid": _SIZE, "threads": _range(WARPS, 1024), "clock_khz": _range(0, 2**31)},
    WarpRow: {"warp": _range(0, WARPS - 1)},
}

_NAME, _FIRST, _NUMBER = attrgetter("name"), itemgetter(0), attrgetter("number")
# Lists in which no name occurs twice: (field, what the names are, the name of an entry).
_UNIQUE: dict[type, tuple[tuple[str, str, Callable[[Any], Any]], ...]] = {
    Program: (
        ("instances", "instance", _NAME),
        ("connections", "connection", attrgetter("producer", "consumer")),
        ("channels", "ring", _NAME),
        ("tensors", "keyword", _FIRST),
        ("scalars", "keyword", _FIRST),
        ("roles", "role", _NAME),
    ),
    Channel: (("consumers", "consumer", tuple),),
    Contract: tuple(
        (section, section[:-1].replace("_", " "), _NAME)
        for section in ("params", "symbols", "roles", "ports", "buffers", "named_barriers")
    ),
    contracts.Work: (("fields", "field", _NAME),),
    Port: (("members", "tile", _NAME),),
    Placement: tuple(
        (section, "entry", _FIRST)
        for section in ("stages", "offsets", "barriers", "named", "warps", "columns")
    ),
    Manifest: (("sites", "site", _NUMBER),),
    Recording: (("sites", "site", _NUMBER),),
    linked.Script: (("roles", "role", _NAME),),
}


def _nouns(noun: Any, at: JsonPath = ()) -> Iterator[tuple[JsonPath, Any]]:
    """The noun and all nouns below it, each with its place; not what a program was made of."""
    if isinstance(noun, tuple):
        for number, item in enumerate(noun):
            yield from _nouns(item, (*at, number))
    elif dataclasses.is_dataclass(noun):
        yield at, noun
        for field in dataclasses.fields(noun):
            if field.name not in ("span", "spans", "spec"):
                yield from _nouns(getattr(noun, field.name), (*at, field.name))


def _each_by_itself(top: Any) -> Iterator[Fault]:
    for at, noun in _nouns(top):
        for section, what, name_of in _UNIQUE.get(type(noun), ()):
            yield from unique((*at, section), map(name_of, getattr(noun, section)), what)
        for names, condition in _VALUES.get(type(noun), {}).items():
            for name in names.split():
                value, here = getattr(noun, name), (*at, name)
                if isinstance(value, tuple):
                    for number, item in enumerate(value):
                        yield from condition((*here, number), item)
                else:
                    yield from condition(here, value)
        if isinstance(noun, (Channel, contracts.Stages)):
            yield from between((*at, "minimum"), noun.minimum, 1, noun.maximum)
        elif isinstance(noun, contracts.Symbol):
            yield from between((*at, "minimum"), noun.minimum, 0, noun.maximum)


# Megakernels ------------------------------------------------------------------------------------


def _spec(spec: MegakernelSpec) -> Iterator[Fault]:
    for section in ("stages", "warps"):
        for number, (_, value) in enumerate(getattr(spec, section)):
            yield from between((section, number, 1), value, 1, STAGES)


def _program(program: Program) -> Iterator[Fault]:
    for number, instance in enumerate(program.instances):
        here: JsonPath = ("instances", number, "variant")
        yield from _variant(instance.variant, here)
        for index, symbol in enumerate(instance.variant.contract.symbols):
            at = (*here, "contract", "symbols", index, "name")
            yield from known(at, symbol.name, program.symbols, "size")
    bound = {item.name: item.variant.contract for item in program.instances}
    ports = {(name, port.name): port for name, contract in bound.items() for port in contract.ports}
    roles = {(name, role.name): role for name, contract in bound.items() for role in contract.roles}
    yield from known(("scheduler",), program.scheduler, roles, "role")
    scheduler = roles.get(program.scheduler)
    work = bound[program.scheduler[0]].work if scheduler else None
    if scheduler and (work is None or work.tiles is None or not scheduler.scheduler):
        yield ("scheduler",), f"{shown(program.scheduler)} is not a tile scheduler"
    yield from _connections(program, ports)
    yield from _program_roles(program, roles)


def _connections(program: Program, ports: dict[End, Port]) -> Iterator[Fault]:
    for number, item in enumerate(program.connections):
        for side, direction in (("producer", "out"), ("consumer", "in")):
            here, end = ("connections", number, side), getattr(item, side)
            yield from known(here, end, ports, "port")
            if end in ports and ports[end].direction != direction:
                yield here, f"{shown(end)} is an {ports[end].direction} port"
    joined = [(item.producer, item.consumer) for item in program.connections]
    for number, channel in enumerate(program.channels):
        yield from _channel(channel, ports, joined, ("channels", number))
    ends = program.channel_ends()
    for end, port in ports.items():
        if port.space in ("ring", "tensor_memory") and end not in ends:
            yield ("channels",), f"no ring joins {shown(end)}"
    for section in ("tensors", "scalars"):
        for number, (_, served) in enumerate(getattr(program, section)):
            if not served:
                yield (section, number, 1), "it serves no port"
            for index, end in enumerate(served):
                yield from known((section, number, 1, index), end, ports, "port")


def _channel(
    channel: Channel, ports: dict[End, Port], joined: Collection[tuple[End, End]], at: JsonPath
) -> Iterator[Fault]:
    producer, port = channel.producer, ports.get(channel.producer)
    yield from known((*at, "producer"), producer, ports, "port")
    if port and port.space != _CHANNELS.get(channel.kind):
        yield (*at, "kind"), f"{shown(producer)} cannot feed a {channel.kind}"
    if not channel.consumers:
        yield (*at, "consumers"), "it has no consumer"
    for number, end in enumerate(channel.consumers):
        if (producer, end) not in joined:
            yield (*at, "consumers", number), f"{shown(end)} is not connected to {shown(producer)}"
    members = {member.name for member in port.members} if port else set()
    for number, (name, offset) in enumerate(channel.member_offsets):
        here = (*at, "member_offsets", number)
        yield from known((*here, 0), name, members, "tile")
        yield from between((*here, 1), offset, 0, max(channel.stage_bytes - 1, 0))
    if channel.kind == "ring":
        for name in sorted(members - {name for name, _ in channel.member_offsets}):
            yield (*at, "member_offsets"), f"tile {shown(name)} has no offset"
    for number, item in enumerate(channel.multicast):
        here = (*at, "multicast", number)
        yield from known((*here, "member"), item.member, members, "tile")
        yield from known((*here, "tensor"), (producer[0], item.tensor), ports, "port")


def _program_roles(program: Program, roles: dict[End, contracts.Role]) -> Iterator[Fault]:
    members = [member for role in program.roles for member in role.members]
    yield from unique(("roles",), members, "role")
    for number, role in enumerate(program.roles):
        here = ("roles", number, "members")
        if not role.members:
            yield here, "no role runs on these warps"
        for index, member in enumerate(role.members):
            yield from known((*here, index), member, roles, "role")
            if member in roles and roles[member].scheduler:
                yield (*here, index), f"{shown(member)} is a tile scheduler"
    for end, contract_role in roles.items():
        if not contract_role.scheduler and end not in members:
            yield ("roles",), f"no warps run {shown(end)}"


# Contracts --------------------------------------------------------------------------------------


def _variant(variant: Variant, at: JsonPath = ()) -> Iterator[Fault]:
    contract = variant.contract
    work_fields = contract.work.fields if contract.work else ()
    fields = {field.name for field in work_fields}
    roles = {role.name for role in contract.roles}
    names = fields | {noun.name for nouns in (contract.symbols, contract.params) for noun in nouns}
    for here, noun in _nouns(contract, (*at, "contract")):
        if isinstance(noun, Expr):
            yield from expression_over(
                (*here, "text"), noun.text, names | LAUNCH_NAMES | set(contracts.PLACE_NAMES)
            )
            yield from between((*here, "text"), noun.literal, -(2**31), 2**31 - 1)
        elif isinstance(noun, contracts.WorkField):
            yield from known((*here, "index_within"), noun.index_within, {"", *fields}, "field")
        elif isinstance(noun, (Port, contracts.Buffer)):
            yield from known((*here, "role"), noun.role, roles, "role")
            if isinstance(noun, Port):
                yield from _port(contract, noun, fields, here)
        elif isinstance(noun, contracts.NamedBarrier):
            for index, role in enumerate(noun.roles):
                yield from known((*here, "roles", index), role, roles, "role")
        elif isinstance(noun, Operation):
            yield from _operation(contract, noun, fields, here)
    for number, (role, _) in enumerate(variant.measured):
        yield from known((*at, "measured", number, 0), role, roles, "role")


def _port(contract: Contract, port: Port, fields: Collection[str], at: JsonPath) -> Iterator[Fault]:
    if port.in_place:
        names = [item.name for item in contract.ports if item.space == port.space]
        yield from known((*at, "in_place"), port.in_place, names, "port")
    least, most = {"ring": (1, STAGES), "scalar": (0, 0), "counter": (0, 0)}.get(port.space, (1, 1))
    if not least <= len(port.members) <= most:
        yield (*at, "members"), f"a {port.space} port cannot have {len(port.members)} tiles"
    for number, member in enumerate(port.members):
        strides = member.layout.strides
        if strides and len(strides) != len(member.shape):
            where = (*at, "members", number, "layout", "strides")
            yield where, f"{len(strides)} for {len(member.shape)} extents"
    if port.space == "scalar":
        yield from one_of((*at, "type"), port.type, DTYPES)
    if port.tile:
        for number, field in enumerate(port.tile.along or ()):
            yield from known((*at, "tile", "along", number), field, fields, "field")
        rank = len(port.members[0].shape) if port.members else 0
        if len(port.tile.box) != rank:
            yield (*at, "tile", "box"), f"{len(port.tile.box)} extents for a tensor of {rank}"


def _operation(
    contract: Contract, op: Operation, fields: Collection[str], at: JsonPath
) -> Iterator[Fault]:
    ports = {port.name: port for port in contract.ports}
    kinds = {
        **{name: f"{port.space} {port.direction}" for name, port in ports.items()},
        **{buffer.name: "buffer" for buffer in contract.buffers},
        **{barrier.name: "named barrier" for barrier in contract.named_barriers},
    }
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


# What was linked and launched -------------------------------------------------------------------


def _manifest(manifest: Manifest) -> Iterator[Fault]:
    words = [item.name for item in manifest.tensors] + [name for name, _ in manifest.scalars]
    for number, word in enumerate(words):
        at = ("tensors", number) if number < len(manifest.tensors) else ("scalars",)
        if not word.isidentifier() or word == "stream" or words.count(word) > 1:
            yield at, f"{shown(word)} cannot be a keyword of the call"
    sizes = {name for name, *_ in manifest.symbols}
    yield from _arguments(manifest, sizes)
    declared = {*words, *sizes, *(piece.name for piece in manifest.workspace)}
    for number, parameter in enumerate(manifest.parameters):
        here = ("parameters", number)
        yield from known((*here, "name"), parameter.name, declared, "keyword, size or workspace")
        if parameter.kind == "tensor_map":
            yield from one_of((*here, "dtype"), parameter.dtype, DTYPES)
    for number, (text, _) in enumerate(manifest.requires):
        yield from expression_over(("requires", number, 0), text, sizes)
    yield from expression_over(("grid",), manifest.grid, sizes | LAUNCH_NAMES)
    if manifest.script is not None:
        yield from _script(manifest.script, manifest.sites, sizes)


def _arguments(manifest: Manifest, sizes: Collection[str]) -> Iterator[Fault]:
    for number, item in enumerate(manifest.tensors):
        for index, text in enumerate(item.shape):
            yield from expression_over(("tensors", number, "shape", index), text, sizes)
    for number, (_, dtype) in enumerate(manifest.scalars):
        yield from one_of(("scalars", number, 1), dtype, ("f32", "i32", "u32"))
    for number, (name, low, high, multiple) in enumerate(manifest.symbols):
        if not 0 <= low <= high or multiple < 1:
            why = f"{shown(name)} has no value: {low} to {high}, a multiple of {multiple}"
            yield ("symbols", number), why
    for number, piece in enumerate(manifest.workspace):
        yield from expression_over(("workspace", number, "count"), piece.count, sizes)


def _script(
    script: linked.Script, sites: Iterable[linked.Site], sizes: Collection[str]
) -> Iterator[Fault]:
    numbers = {0, *(site.number for site in sites)}  # 0 = no site
    names = {*sizes, *(name for name, _ in script.fields), *script.varying}
    yield from expression_over(("script", "items"), script.items, sizes)
    for number, (_, text) in enumerate(script.fields):
        yield from expression_over(("script", "fields", number, 1), text, names)
    for here, step in _nouns(script.roles, ("script", "roles")):
        if isinstance(step, linked.ScriptLoop):
            yield from expression_over((*here, "count"), step.count, names)
            if not step.body:
                yield (*here, "body"), "a loop over nothing"
        elif isinstance(step, linked.ScriptOp):
            yield from known((*here, "site"), step.site, numbers, "site")
            if step.value:
                yield from expression_over((*here, "value"), step.value, names)


def _recording(recording: Recording) -> Iterator[Fault]:
    yield from _script(recording.script, recording.sites, [name for name, _ in recording.symbols])
    for number, row in enumerate(recording.rows):
        here = ("rows", number)
        yield from between((*here, "cta"), row.cta, 0, recording.grid - 1)
        try:
            size = len(base64.b64decode(row.events, validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if not size or size % EVENT_BYTES:
            yield (*here, "events"), f"not base64 of {EVENT_BYTES} bytes an event"
        if row.operations < size // EVENT_BYTES:
            yield (*here, "operations"), f"{row.operations}, but there are more events"


_CHECKS: dict[type, Callable[[Any], Iterator[Fault]]] = {
    Variant: _variant,
    MegakernelSpec: _spec,
    Program: _program,
    Manifest: _manifest,
    Recording: _recording,
}
