"""Do the coordinates of copies depend on other fields than the contract says?

Where CTAs of a cluster need the same tile, each copies a slice for all of them: what `along` leaves
out may differ from CTA to CTA.  So a role is run twice, with one field changed that is not among
them, and the coordinates of its copies are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.audit.compare import Difference
from pipelink_rules.audit.execution_log import Copied
from pipelink_rules.audit.input_cases import InputCase, counted, varied
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.machine_state import PORTS, RELOCATIONS, WORK
from pipelink_rules.model.contract import Operation, Port, Role
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

_BASES = 2  # work items that a field is changed in: the last ones, which do the most
Item = dict[str, int]


def coordinates_vary(
    module: Module, variant: Variant, role: Role, scenario: InputCase, first: Interpreter
) -> Difference | None:
    """The first copy whose coordinates change with a field that `along` leaves out."""
    contract = variant.contract
    ports = [
        port
        for port in contract.ports
        if port.role == role.name and port.tile is not None and port.tile.along is not None
    ]
    # What decides how often something is done is the same in all CTAs that share data (PL0804).
    fields = [
        field
        for field in (contract.work.fields if contract.work else ())
        if field.name not in counted(role.body)
    ]
    if not any(field.name not in _along(port) for port in ports for field in fields):
        return None
    for base in scenario.items[-_BASES:]:
        before = _copies(module, variant, role, scenario, first, base)
        for port in ports:
            if any(None in copied[1:] for copied in before if copied.source == port.name):
                return _told(port, "coordinates that depend on data", base)
        for field in fields:
            for value in varied(field, base[field.name]):
                after = _copies(module, variant, role, scenario, first, {**base, field.name: value})
                for port in ports:
                    if field.name in _along(port):
                        continue
                    moved = next(_moved(before, after, port.name), None)
                    if moved is not None:
                        one, two = moved
                        said = f"{one} with {field.name}={base[field.name]}"
                        return _told(port, f"{said}, {two} with {field.name}={value}", base)
    return None


def _along(port: Port) -> tuple[str, ...]:
    return (port.tile.along if port.tile else None) or ()


def _copies(
    module: Module,
    variant: Variant,
    role: Role,
    scenario: InputCase,
    first: Interpreter,
    item: Item,
) -> list[Copied]:
    machine = Interpreter(module, scenario.names, scenario.state(), codes=first.codes)
    scenario.give(machine.state, item)
    machine.run(variant.symbol(role.name), [RELOCATIONS, PORTS, WORK, 0])
    machine.finish()
    return machine.state.trace.copies


def _moved(
    before: list[Copied], after: list[Copied], source: str
) -> Iterator[tuple[tuple[object, object], tuple[object, object]]]:
    """Coordinates of one copy of a tensor that differ; there may be more copies of one run."""
    mine = [[c for c in copies if c.source == source] for copies in (before, after)]
    for one, two in zip(*mine, strict=False):
        if one != two:
            yield (one.x, one.y), (two.x, two.y)


def _told(port: Port, found: str, item: Item) -> Difference:
    along = ", ".join(_along(port)) or "no field"
    place = port.tile.span if port.tile else port.span
    op = Operation("copy", port.name, source=port.name, span=place)
    numbers = ", ".join(f"{name}={value}" for name, value in item.items())
    return Difference(
        "PL0807",
        f"copies `{port.name}` from elsewhere when another field changes",
        op,
        port.name,
        f"coordinates that change along {along} only",
        f"{found} (in a work item of {numbers})",
    )
