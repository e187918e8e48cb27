"""Which warps does the megakernel have?  Groups of roles -> program roles with their registers."""

from __future__ import annotations

from collections.abc import Mapping

from pipelink_rules.model.contract import Operation, Repeat, round_registers
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import FUSED, Connection, MegakernelSpec, ProgramRole
from pipelink_rules.model.variant import Variant
from pipelink_rules.program.assign_warps import WARPGROUP, assign_warps
from pipelink_rules.program.findings import Findings
from pipelink_rules.program.link_constants import constant_value
from pipelink_rules.program.role_sets import Member, RoleGraph, RoleSet
from pipelink_rules.program.topological_order import topological_order

REGISTERS_LARGEST = 255  # per thread


def program_roles(
    spec: MegakernelSpec,
    variants: Mapping[str, Variant],
    connections: list[Connection],
    findings: Findings,
) -> list[ProgramRole]:
    """The program roles, producers first (PL0070, PL0071, PL0072, PL0074)."""
    contracts = {name: variant.contract for name, variant in variants.items()}
    roles = RoleGraph(contracts, connections, findings)
    groups = roles.groups()
    assign_warps(spec, roles, groups)
    first_of = {member: group.members[0] for group in groups for member in group.members}
    edges = [(first_of[a], first_of[b]) for a, b in roles.edges() if first_of[a] != first_of[b]]
    order, _ = topological_order(first_of.values(), edges)
    by_first = {group.members[0]: group for group in groups}
    return [_program_role(roles, variants, by_first[first]) for first in order]


def _program_role(roles: RoleGraph, variants: Mapping[str, Variant], group: RoleSet) -> ProgramRole:
    waiting = _waiting(roles, group)
    needs = [_registers(roles, variants, member) for member in group.members]
    minimum = max(need[0] + held for need, held in zip(needs, waiting, strict=True))
    want, entry = max(need[1] for need in needs), max(need[2] for need in needs)
    whole = any(
        roles.of[member].converged == "warpgroup" or roles.of[member].uses_mma
        for member in group.members
    )
    fragment = any(
        port.space == "registers" for member in group.members for port in roles.ports(member)
    )
    tensor = any(  # a warp reaches the lanes of its place in the warpgroup
        port.space == "tensor_memory" and _moves(roles.of[member].body, port.name)
        for member in group.members
        for port in roles.ports(member)
    )
    return ProgramRole(
        name="+".join(roles.label(member) for member in group.members),
        members=tuple(group.members),
        warps=group.warps,
        calls=group.calls,
        warpgroup=whole or ((fragment or tensor) and group.warps % WARPGROUP == 0),
        minimum=minimum,
        want=max(minimum, want),
        entry=entry,
    )


def _moves(body: tuple[Operation | Repeat, ...], port: str) -> bool:
    """Whether some operation moves the port's data through registers (tcgen05.ld, tcgen05.st)."""
    return any(op.verb in ("read", "write") and op.target == port for op in operations(body))


def _waiting(roles: RoleGraph, group: RoleSet) -> list[int]:
    """Registers per member that hold fragments of others while its entry runs.

    A fragment made before and taken after it, f32 accumulators of 64 rows per warpgroup: half a
    register per column.
    """
    at = {member: position for position, member in enumerate(group.members)}
    held = [0] * len(group.members)
    for connection in roles.connections:
        a, b = roles.ends(connection)
        if connection.transfer != FUSED or a not in at or b not in at:
            continue
        shape = roles.contracts[a[0]].port(connection.producer[1]).members[0].shape
        columns = constant_value(shape[-1])
        for position in range(at[a] + 1, at[b]):
            held[position] += columns // 2
    return held


def _registers(
    roles: RoleGraph, variants: Mapping[str, Variant], member: Member
) -> tuple[int, int, int]:
    """(minimum, want, entry): measured where there is a measurement, else promised."""
    promised = roles.of[member].registers
    minimum = constant_value(promised.minimum)
    want = constant_value(promised.want)
    entry = constant_value(promised.entry)
    measured = dict(variants[member[0]].measured).get(member[1])
    if measured is not None:
        minimum, entry = measured.registers, round_registers(measured.entry)
    return round_registers(minimum), round_registers(want), min(entry, REGISTERS_LARGEST)
