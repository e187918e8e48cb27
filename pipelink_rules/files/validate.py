"""What a file must hold beyond its types: every name leads somewhere, every number is possible.

A stage may be rerun from an edited file.  The nouns in it refer to each other by name,
and the stages rely on that.  Noun -> the places in its file that contradict the rest.
"""

import base64
import binascii
from collections.abc import Callable, Collection, Iterator
from typing import Any

from pipelink_rules.files.validate_contract import (
    ARRIVALS,
    LAUNCH_NAMES,
    REGISTERS,
    SHARED_BYTES,
    STAGES,
    WARPS,
    Fault,
    alignment,
    between,
    expression_over,
    known,
    one_of,
    shown,
    swizzle_span,
    unique,
    variant_faults,
)
from pipelink_rules.model.contract import DTYPES, Port, Role
from pipelink_rules.model.linked_kernel import Manifest, Script, ScriptLoop, ScriptOp
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import CLUSTER_MOST, Channel, MegakernelSpec, Program
from pipelink_rules.model.recording import EVENT_BYTES, Recording
from pipelink_rules.model.source_span import JsonPath
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Variant


def faults_in(noun: object) -> Iterator[Fault]:
    """Every place of a noun that contradicts the rest of it; nothing for nouns without names."""
    check = _CHECKS.get(type(noun))
    return check(noun) if check is not None else iter(())


# Megakernels ------------------------------------------------------------------------------------


def _spec(spec: MegakernelSpec, at: JsonPath = ()) -> Iterator[Fault]:
    yield from _launch(spec, at)
    for section in ("stages", "warps"):
        for number, (_, value) in enumerate(getattr(spec, section)):
            yield from between((*at, section, number, 1), value, 1, STAGES)


def _launch(noun: MegakernelSpec | Program, at: JsonPath) -> Iterator[Fault]:
    yield from between((*at, "occupancy"), noun.occupancy, 1, WARPS)
    for axis, extent in enumerate(noun.cluster):
        yield from between((*at, "cluster", axis), extent, 1, CLUSTER_MOST)


def _program(program: Program) -> Iterator[Fault]:
    yield from _launch(program, ())
    yield from one_of(("target",), program.target, TARGETS)
    yield from unique(("instances",), [item.name for item in program.instances], "instance")
    for number, instance in enumerate(program.instances):
        here: JsonPath = ("instances", number, "variant")
        yield from variant_faults(instance.variant, here)
        for index, symbol in enumerate(instance.variant.contract.symbols):
            at = (*here, "contract", "symbols", index, "name")
            yield from known(at, symbol.name, program.symbols, "size")
    contracts = {item.name: item.variant.contract for item in program.instances}
    ports = {
        (name, port.name): port for name, contract in contracts.items() for port in contract.ports
    }
    roles = {
        (name, role.name): role for name, contract in contracts.items() for role in contract.roles
    }
    yield from known(("scheduler",), program.scheduler, roles, "role")
    scheduler = roles.get(program.scheduler)
    work = contracts[program.scheduler[0]].work if scheduler else None
    if scheduler and (work is None or work.tiles is None or not scheduler.scheduler):
        yield ("scheduler",), f"{shown(program.scheduler)} is not a tile scheduler"
    for number, item in enumerate(program.connections):
        here = ("connections", number)
        yield from _end((*here, "producer"), item.producer, ports, "out")
        yield from _end((*here, "consumer"), item.consumer, ports, "in")
        yield from one_of((*here, "transfer"), item.transfer, _TRANSFERS)
    joined = [(item.producer, item.consumer) for item in program.connections]
    yield from unique(("connections",), joined, "connection")
    yield from unique(("channels",), [item.name for item in program.channels], "ring")
    for number, channel in enumerate(program.channels):
        yield from _channel(channel, ports, joined, ("channels", number))
    ends = program.channel_ends()
    for end, port in ports.items():
        if port.space in ("ring", "tensor_memory") and end not in ends:
            yield ("channels",), f"no ring joins {shown(end)}"
    for section in ("tensors", "scalars"):
        entries = getattr(program, section)
        yield from unique((section,), [name for name, _ in entries], "keyword")
        for number, (_, ends) in enumerate(entries):
            if not ends:
                yield (section, number, 1), "it serves no port"
            for index, end in enumerate(ends):
                yield from known((section, number, 1, index), end, ports, "port")
    yield from _program_roles(program, roles)


_TRANSFERS = ("ring", "multicast", "fused", "tensor_memory", "handover", "scratch", "counter")
_KINDS = {"ring": "ring", "tensor_memory": "tensor_memory", "handover": "registers"}


def _end(
    at: JsonPath, end: tuple[str, str], ports: dict[tuple[str, str], Port], direction: str
) -> Iterator[Fault]:
    yield from known(at, end, ports, "port")
    if end in ports and ports[end].direction != direction:
        yield at, f"{shown(end)} is an {ports[end].direction} port"


def _channel(
    channel: Channel,
    ports: dict[tuple[str, str], Port],
    joined: Collection[tuple[tuple[str, str], tuple[str, str]]],
    at: JsonPath,
) -> Iterator[Fault]:
    yield from one_of((*at, "kind"), channel.kind, _KINDS)
    yield from known((*at, "producer"), channel.producer, ports, "port")
    if channel.producer in ports and ports[channel.producer].space != _KINDS.get(channel.kind):
        yield (*at, "kind"), f"{shown(channel.producer)} cannot feed a {channel.kind}"
    if not channel.consumers:
        yield (*at, "consumers"), "it has no consumer"
    for number, end in enumerate(channel.consumers):
        if (channel.producer, end) not in joined:
            here = (*at, "consumers", number)
            yield here, f"{shown(end)} is not connected to {shown(channel.producer)}"
    yield from unique((*at, "consumers"), channel.consumers, "consumer")
    yield from between((*at, "stage_bytes"), channel.stage_bytes, 0, SHARED_BYTES)
    yield from alignment((*at, "align"), channel.align)
    yield from between((*at, "minimum"), channel.minimum, 1, channel.maximum)
    yield from between((*at, "maximum"), channel.maximum, 1, STAGES)
    yield from between((*at, "full_arrivals"), channel.full_arrivals, 0, ARRIVALS)
    yield from between((*at, "empty_arrivals"), channel.empty_arrivals, 0, ARRIVALS)
    yield from between((*at, "columns"), channel.columns, 0, 512)
    port = ports.get(channel.producer)
    members = {member.name for member in port.members} if port else set()
    for number, (name, offset) in enumerate(channel.member_offsets):
        here = (*at, "member_offsets", number)
        yield from known((*here, 0), name, members, "tile")
        yield from between((*here, 1), offset, 0, max(channel.stage_bytes - 1, 0))
    if channel.kind == "ring":
        placed = {name for name, _ in channel.member_offsets}
        for name in sorted(members - placed):
            yield (*at, "member_offsets"), f"tile {shown(name)} has no offset"
    for number, item in enumerate(channel.multicast):
        here = (*at, "multicast", number)
        yield from known((*here, "member"), item.member, members, "tile")
        tensor = (channel.producer[0], item.tensor)
        yield from known((*here, "tensor"), tensor, ports, "port")
        for index, axis in enumerate(item.axes):
            yield from one_of((*here, "axes", index), axis, ("x", "y"))


def _program_roles(program: Program, roles: dict[tuple[str, str], Role]) -> Iterator[Fault]:
    yield from unique(("roles",), [role.name for role in program.roles], "role")
    members = [member for role in program.roles for member in role.members]
    yield from unique(("roles",), members, "role")
    for number, role in enumerate(program.roles):
        here = ("roles", number)
        if not role.members:
            yield (*here, "members"), "no role runs on these warps"
        for index, member in enumerate(role.members):
            yield from known((*here, "members", index), member, roles, "role")
            if member in roles and roles[member].scheduler:
                yield (*here, "members", index), f"{shown(member)} is a tile scheduler"
        yield from between((*here, "warps"), role.warps, 1, WARPS)
        yield from between((*here, "calls"), role.calls, 1, WARPS)
        for name in ("minimum", "want", "entry"):
            yield from between((*here, name), getattr(role, name), 0, REGISTERS)
    for end, contract_role in roles.items():
        if not contract_role.scheduler and end not in members:
            yield ("roles",), f"no warps run {shown(end)}"


def _placement(placement: Placement) -> Iterator[Fault]:
    """Names alone; `place.problem.read_placement` holds the numbers against a program."""
    for section in ("stages", "offsets", "barriers", "named", "warps", "columns"):
        entries: tuple[tuple[str, int], ...] = getattr(placement, section)
        yield from unique((section,), [name for name, _ in entries], "entry")


# What was linked and launched -------------------------------------------------------------------


def _manifest(manifest: Manifest) -> Iterator[Fault]:
    words = [item.name for item in manifest.tensors] + [name for name, _ in manifest.scalars]
    for number, word in enumerate(words):
        at = ("tensors", number) if number < len(manifest.tensors) else ("scalars",)
        if not word.isidentifier() or word == "stream" or words.count(word) > 1:
            yield at, f"{shown(word)} cannot be a keyword of the call"
    sizes = {name for name, *_ in manifest.symbols}
    yield from _arguments(manifest, sizes)
    yield from _entry(manifest, {*words, *sizes})
    for number, (text, _) in enumerate(manifest.requires):
        yield from expression_over(("requires", number, 0), text, sizes)
    yield from expression_over(("grid",), manifest.grid, sizes | LAUNCH_NAMES)
    sites = [site.number for site in manifest.sites]
    yield from unique(("sites",), sites, "site")
    if manifest.script:
        yield from _script(manifest.script, sites, sizes, ("script",))


def _arguments(manifest: Manifest, sizes: Collection[str]) -> Iterator[Fault]:
    for number, item in enumerate(manifest.tensors):
        here = ("tensors", number)
        yield from one_of((*here, "direction"), item.direction, ("in", "out", "inout"))
        yield from one_of((*here, "dtype"), item.dtype, DTYPES)
        yield from between((*here, "align"), item.align, 1, 2**31)
        for index, text in enumerate(item.shape):
            yield from expression_over((*here, "shape", index), text, sizes)
    for number, (_, dtype) in enumerate(manifest.scalars):
        yield from one_of(("scalars", number, 1), dtype, ("f32", "i32", "u32"))
    for number, (name, low, high, multiple) in enumerate(manifest.symbols):
        if not 0 <= low <= high or multiple < 1:
            why = f"{shown(name)} has no value: {low} to {high}, a multiple of {multiple}"
            yield ("symbols", number), why
    for number, piece in enumerate(manifest.workspace):
        here = ("workspace", number)
        yield from one_of((*here, "kind"), piece.kind, ("scratch", "counters"))
        yield from one_of((*here, "dtype"), piece.dtype, DTYPES)
        yield from expression_over((*here, "count"), piece.count, sizes)


def _entry(manifest: Manifest, names: Collection[str]) -> Iterator[Fault]:
    declared = {*names, *(piece.name for piece in manifest.workspace)}
    for number, parameter in enumerate(manifest.parameters):
        here = ("parameters", number)
        yield from one_of((*here, "kind"), parameter.kind, _PARAMETERS)
        yield from known((*here, "name"), parameter.name, declared, "keyword, size or workspace")
        if parameter.kind == "tensor_map":
            yield from one_of((*here, "dtype"), parameter.dtype, DTYPES)
            yield from swizzle_span((*here, "swizzle"), parameter.swizzle)
            for index, side in enumerate(parameter.box):
                yield from between((*here, "box", index), side, 1, 2**31)
    yield from between(("threads",), manifest.threads, 1, 1024)
    yield from between(("shared_bytes",), manifest.shared_bytes, 0, SHARED_BYTES)
    yield from between(("occupancy",), manifest.occupancy, 1, WARPS)
    for axis, extent in enumerate(manifest.cluster):
        yield from between(("cluster", axis), extent, 1, CLUSTER_MOST)


_PARAMETERS = ("tensor_map", "pointer", "scratch", "counters", "i32", "u32", "f32")


def _script(
    script: Script, sites: Collection[int], sizes: Collection[str], at: JsonPath
) -> Iterator[Fault]:
    names = {*sizes, *(name for name, _ in script.fields), *script.varying}
    yield from expression_over((*at, "items"), script.items, sizes)
    yield from between((*at, "cluster"), script.cluster, 1, CLUSTER_MOST)
    for number, (_, text) in enumerate(script.fields):
        yield from expression_over((*at, "fields", number, 1), text, names)
    yield from unique((*at, "roles"), [role.name for role in script.roles], "role")
    for number, role in enumerate(script.roles):
        here = (*at, "roles", number)
        yield from between((*here, "warps"), role.warps, 1, WARPS)
        yield from between((*here, "first_warp"), role.first_warp, 0, WARPS)
        for section in ("prologue", "body", "epilogue"):
            steps = getattr(role, section)
            yield from _script_steps(steps, sites, names, (*here, section))


def _script_steps(
    steps: tuple[ScriptOp | ScriptLoop, ...],
    sites: Collection[int],
    names: Collection[str],
    at: JsonPath,
) -> Iterator[Fault]:
    for number, step in enumerate(steps):
        here = (*at, number)
        if isinstance(step, ScriptLoop):
            yield from expression_over((*here, "count"), step.count, names)
            if not step.body:
                yield (*here, "body"), "a loop over nothing"
            yield from _script_steps(step.body, sites, names, (*here, "body"))
            continue
        if step.site:
            yield from known((*here, "site"), step.site, sites, "site")
        if step.value:
            yield from expression_over((*here, "value"), step.value, names)
        yield from between((*here, "lag"), step.lag, 0, STAGES)


def _recording(recording: Recording) -> Iterator[Fault]:
    sites = [site.number for site in recording.sites]
    yield from unique(("sites",), sites, "site")
    for number, site in enumerate(recording.sites):
        yield from between(("sites", number, "stages"), site.stages, 0, STAGES)
    sizes = [name for name, _ in recording.symbols]
    yield from _script(recording.script, sites, sizes, ("script",))
    yield from between(("grid",), recording.grid, 1, 2**31)
    yield from between(("threads",), recording.threads, WARPS, 1024)
    yield from between(("clock_khz",), recording.clock_khz, 0, 2**31)
    for number, row in enumerate(recording.rows):
        here = ("rows", number)
        yield from between((*here, "cta"), row.cta, 0, recording.grid - 1)
        yield from between((*here, "warp"), row.warp, 0, WARPS - 1)
        try:
            size = len(base64.b64decode(row.events, validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if not size or size % EVENT_BYTES:
            yield (*here, "events"), f"not base64 of {EVENT_BYTES} bytes an event"
        if row.operations < size // EVENT_BYTES:
            yield (*here, "operations"), f"{row.operations}, but there are more events"


_CHECKS: dict[type, Callable[[Any], Iterator[Fault]]] = {
    Variant: variant_faults,
    MegakernelSpec: _spec,
    Program: _program,
    Placement: _placement,
    Manifest: _manifest,
    Recording: _recording,
}
