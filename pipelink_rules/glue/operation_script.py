"""The operations that a launch should record: Program -> operations of the contracts, by site.

The launcher compares them with the events of runtime `record` without reading a contract.  A role
can wait at a site.  Watchdog and recording identify sites by number, and the manifest lists them.
"""

import math
from collections.abc import Iterator

from pipelink_rules.contract.item_layout import item_layout
from pipelink_rules.contract.parse_operations import format_operation
from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import Operation, Port, Repeat
from pipelink_rules.model.linked_kernel import RoleScript, Script, ScriptLoop, ScriptOp, Site
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import COUNTER, HANDOVER, Program, ProgramRole
from pipelink_rules.model.source_span import Span


def watchdog_sites(program: Program, placement: Placement | None = None) -> tuple[Site, ...]:
    """Return every endpoint of a channel or counter and every named barrier, numbered from 1.

    Instances by name, their ports in contract order, then their named barriers per role.  Without
    a placement the stages are 0 (numbers do not depend on it).
    """
    stages = dict(placement.stages) if placement else {}
    ends = program.channel_ends()
    found: list[Site] = []
    counters = {
        end: ".".join(item.producer)
        for item in program.connections
        if item.transfer == COUNTER
        for end in (item.producer, item.consumer)
    }
    for instance in sorted(program.instances, key=lambda item: item.name):
        contract = instance.variant.contract
        for port in contract.ports:
            channel = ends.get((instance.name, port.name))
            if channel is not None:
                found.append(
                    Site(
                        len(found) + 1,
                        instance.name,
                        port.role,
                        port.name,
                        channel.name,
                        stages.get(channel.name, 0),
                        channel.full_arrivals,
                        channel.empty_arrivals,
                    )
                )
            elif (instance.name, port.name) in counters:
                name = counters[instance.name, port.name]
                found.append(Site(len(found) + 1, instance.name, port.role, port.name, name))
        for barrier in contract.named_barriers:
            threads = barrier.count.literal or 0
            for role in barrier.roles:
                found.append(
                    Site(len(found) + 1, instance.name, role, barrier.name, empty_arrivals=threads)
                )
    return tuple(found)


def site_numbers(program: Program) -> dict[tuple[str, str, str], int]:
    """Return (instance, role, port or named barrier) -> site number, for the glue."""
    return {(site.instance, site.role, site.port): site.number for site in watchdog_sites(program)}


_RING = {"acquire", "expect", "copy", "commit", "wait", "release"}
_Steps = tuple[ScriptOp | ScriptLoop, ...]


def script_of(program: Program, warps: dict[str, int]) -> Script:
    """Return the operations of every role; `warps` maps a role to its first warp."""
    instance, _ = program.scheduler
    work = program.instance(instance).variant.contract.work
    fields = tuple(
        (field.name, field.value.text)
        for field in (work.fields if work else ())
        if field.value is not None
    )
    items = work.tiles.text if work and work.tiles else "1"
    known = {*program.symbols, *(name for name, _ in fields)}
    writer = _Writer(program, known)
    roles = tuple(writer.role(r, warps[r.name]) for r in program.roles)
    varying = tuple(field.name for field in (work.fields if work else ()) if field.value is None)
    return Script(items, fields, roles, math.prod(program.cluster), varying)


class _Writer:
    def __init__(self, program: Program, known: set[str]):
        self.program, self.known = program, known
        self.sites = site_numbers(program)
        self.ends = program.channel_ends()

    def role(self, role: ProgramRole, first: int) -> RoleScript:
        prologue: _Steps = ()
        body: _Steps = ()
        epilogue: _Steps = ()
        for instance, name in role.members:
            declared = self.program.instance(instance).variant.contract.role(name)
            prologue += self._steps(instance, name, declared.prologue)
            body += self._moved(instance, name, "in")
            body += self._steps(instance, name, declared.body)
            body += self._moved(instance, name, "out")
            epilogue += self._steps(instance, name, declared.epilogue)
        if role.calls > 1:
            body = (ScriptLoop(str(role.calls), body),)
        raw = tuple(
            f"{instance}.{port.name}"
            for instance, name in role.members
            for port in self.program.instance(instance).variant.contract.ports
            if port.role == name and port.raw
        )
        return RoleScript(role.name, first, role.warps, prologue, body, epilogue, raw)

    def _steps(self, instance: str, role: str, ops: tuple[Operation | Repeat, ...]) -> _Steps:
        return tuple(self._each(instance, role, ops))

    def _each(
        self, instance: str, role: str, ops: tuple[Operation | Repeat, ...]
    ) -> Iterator[ScriptOp | ScriptLoop]:
        contract = self.program.instance(instance).variant.contract
        for op in ops:
            if isinstance(op, Repeat):
                yield ScriptLoop(op.count.text, self._steps(instance, role, op.body))
                continue
            text = f"{instance}.{role}: {format_operation(op)}{_place(op.span)}"
            if op.verb in _RING:
                port = contract.port(op.target)
                site = self.sites[instance, role, op.target]
                verb = "release" if op.verb == "commit" and port.direction == "in" else op.verb
                yield ScriptOp(verb, site, self._value(op, port), op.lag, text=text)
            elif op.verb in ("sync", "arrive"):
                site = self.sites[instance, role, op.target]
                count = next(b.count for b in contract.named_barriers if b.name == op.target)
                yield ScriptOp(op.verb, site, count.text, text=text)
            elif op.verb in ("signal", "wait_until"):
                yield ScriptOp(op.verb, self.sites[instance, role, op.target], text=text)
            elif op.verb == "await" and op.target == "store":
                yield ScriptOp("store wait", value=str(op.count), text=text)
            elif op.verb in ("store", "fence"):
                yield ScriptOp(op.verb, text=text)

    def _value(self, op: Operation, port: Port) -> str:
        """Return the bytes of `expect` or the destination of `copy`."""
        if op.verb == "copy":
            offsets = dict(item_layout(port).offsets)
            return str(offsets[op.member]) if op.member in offsets else ""
        if op.verb == "expect" and port.tx_bytes is not None:
            return port.tx_bytes.text if names(port.tx_bytes) <= self.known else ""
        return ""

    def _moved(self, instance: str, role: str, direction: str) -> _Steps:
        """Return the operations that the glue performs for fragments handed over between roles."""
        found: list[ScriptOp] = []
        for port in self.program.instance(instance).variant.contract.ports:
            channel = self.ends.get((instance, port.name))
            if (port.role, port.direction) != (role, direction) or channel is None:
                continue
            if channel.kind == HANDOVER:
                site = self.sites[instance, role, port.name]
                verbs = ("wait", "release") if direction == "in" else ("acquire", "commit")
                found += [
                    ScriptOp(verb, site, by_item=True, text=f"{channel.name}: {verb}")
                    for verb in verbs
                ]
        return tuple(found)


def _place(span: Span | None) -> str:
    return f" ({span})" if span else ""
