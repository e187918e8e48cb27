"""The operations that a launch should record: Program -> operations of the contracts, by site.

The launcher compares them with the events of runtime `record` without reading a contract.  A role
can wait at a site.  Watchdog and recording identify sites by number, and the manifest lists them.
"""

import itertools
import math
from collections.abc import Iterator

from pipelink_rules.contract.item_layout import item_layout
from pipelink_rules.contract.parse_operations import format_operation
from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import Contract, Operation, Port, Repeat
from pipelink_rules.model.linked_kernel import RoleScript, Script, ScriptLoop, ScriptOp, Site
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import COUNTER, HANDOVER, Program, ProgramRole


def watchdog_sites(program: Program, placement: Placement | None = None) -> tuple[Site, ...]:
    """Return every endpoint of a channel or counter and every named barrier, numbered from 1.

    Instances by name, their ports in contract order, then their named barriers per role.  Without
    a placement the stages are 0 (numbers do not depend on it).
    """
    return tuple(_sites(program, placement))


def _sites(program: Program, placement: Placement | None) -> Iterator[Site]:
    stages = dict(placement.stages) if placement else {}
    ends = program.channel_ends()
    numbers = itertools.count(1)
    counters = {
        end: ".".join(item.producer)
        for item in program.connections
        if item.transfer == COUNTER
        for end in (item.producer, item.consumer)
    }
    for instance in sorted(program.instances, key=lambda item: item.name):
        contract = instance.variant.contract
        for port in contract.ports:
            end, where = (instance.name, port.name), (instance.name, port.role, port.name)
            if channel := ends.get(end):
                arrivals = (channel.full_arrivals, channel.empty_arrivals)
                count = stages.get(channel.name, 0)
                yield Site(next(numbers), *where, channel.name, count, *arrivals)
            elif end in counters:
                yield Site(next(numbers), *where, counters[end])
        for barrier in contract.named_barriers:
            threads = barrier.count.literal or 0
            for role in barrier.roles:
                where = (instance.name, role, barrier.name)
                yield Site(next(numbers), *where, empty_arrivals=threads)


def site_numbers(program: Program) -> dict[tuple[str, str, str], int]:
    """Return (instance, role, port or named barrier) -> site number, for the glue."""
    return {(site.instance, site.role, site.port): site.number for site in watchdog_sites(program)}


_RING = {"acquire", "expect", "copy", "commit", "wait", "release"}
_Steps = tuple[ScriptOp | ScriptLoop, ...]


def script_of(program: Program, warps: dict[str, int]) -> Script:
    """Return the operations of every role; `warps` maps a role to its first warp."""
    instance, _ = program.scheduler
    work = program.instance(instance).variant.contract.work
    offered = work.fields if work else ()
    fields = tuple((field.name, field.value.text) for field in offered if field.value is not None)
    items = work.tiles.text if work and work.tiles else "1"
    writer = _Writer(program, {*program.symbols, *(name for name, _ in fields)})
    roles = tuple(writer.role(r, warps[r.name]) for r in program.roles)
    varying = tuple(field.name for field in offered if field.value is None)
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
            declared = self._contract(instance).role(name)
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
            for port in self._contract(instance).ports
            if port.role == name and port.raw
        )
        return RoleScript(role.name, first, role.warps, prologue, body, epilogue, raw)

    def _contract(self, instance: str) -> Contract:
        return self.program.instance(instance).variant.contract

    def _steps(self, instance: str, role: str, ops: tuple[Operation | Repeat, ...]) -> _Steps:
        return tuple(self._each(instance, role, ops))

    def _each(
        self, instance: str, role: str, ops: tuple[Operation | Repeat, ...]
    ) -> Iterator[ScriptOp | ScriptLoop]:
        contract = self._contract(instance)
        for op in ops:
            if isinstance(op, Repeat):
                yield ScriptLoop(op.count.text, self._steps(instance, role, op.body))
                continue
            text = f"{instance}.{role}: {format_operation(op)}{f' ({op.span})' if op.span else ''}"
            if op.verb in _RING:
                port, site = contract.port(op.target), self.sites[instance, role, op.target]
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
        verbs = ("wait", "release") if direction == "in" else ("acquire", "commit")
        found: list[ScriptOp] = []
        for port in self._contract(instance).ports:
            channel = self.ends.get((instance, port.name))
            if (port.role, port.direction) != (role, direction) or channel is None:
                continue
            if channel.kind == HANDOVER:
                site = self.sites[instance, role, port.name]
                text = f"{channel.name}: "
                found += (ScriptOp(v, site, by_item=True, text=text + v) for v in verbs)
        return tuple(found)
