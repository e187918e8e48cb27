"""Which warps does the megakernel have?  Roles, register connections -> program roles.

A role is one set of warps running one entry.  Registers that pass by reference (FUSED) put both
ends on the same warps, members in the order in which data flows through them.  A set may run on
fewer warps than its components declare where their warps are independent (`split`); the entries are
then called several times per work item.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelink_rules.diagnostics.sink import DiagnosticSink
from pipelink_rules.diagnostics.wording import list_of, similar_name_help
from pipelink_rules.model.contract import Contract, Operation, Port, Repeat, Role, round_registers
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import (
    ACROSS_ITEMS,
    FUSED,
    HANDOVER,
    Connection,
    MegakernelSpec,
    ProgramRole,
)
from pipelink_rules.model.variant import Variant
from pipelink_rules.program.link_constants import constant_value

Node = tuple[str, str]
Member = tuple[str, str]  # (instance, role)
WARPGROUP = 4  # warps
REGISTERS_LARGEST = 255  # per thread


def topological_order(
    nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]]
) -> tuple[list[Node], list[Node]]:
    """(all nodes, producers first; those of them in or behind a cycle).  Ties go by name."""
    names = sorted(set(nodes))
    after: dict[Node, set[Node]] = {node: set() for node in names}
    for first, second in edges:
        if first in after and second in after:
            after[first].add(second)
    waits = {node: sum(node in targets for targets in after.values()) for node in names}
    ready = [node for node in names if not waits[node]]
    found: list[Node] = []
    while ready:
        node = heapq.heappop(ready)
        found.append(node)
        for target in after[node]:
            waits[target] -= 1
            if not waits[target]:
                heapq.heappush(ready, target)
    stuck = [node for node in names if node not in set(found)]
    return found + stuck, stuck


@dataclass
class RoleSet:
    """Roles that run on the same warps."""

    members: list[Member]  # in call order
    declared: int  # warps of every member
    warps: int  # warps it runs on

    @property
    def calls(self) -> int:
        """How often each entry runs per work item."""
        return self.declared // self.warps


class RoleGraph:
    """The roles of all instances, the schedule's left out, and what joins them."""

    def __init__(
        self,
        contracts: Mapping[str, Contract],
        connections: list[Connection],
        findings: DiagnosticSink,
    ):
        self.contracts, self.connections, self.findings = contracts, connections, findings
        self.of: dict[Member, Role] = {
            (name, role.name): role
            for name, contract in sorted(contracts.items())
            for role in contract.roles
            if not role.scheduler
        }

    def ends(self, connection: Connection) -> tuple[Member, Member]:
        """The roles at both ends."""
        (a, out), (b, into) = connection.producer, connection.consumer
        return (a, self.contracts[a].port(out).role), (b, self.contracts[b].port(into).role)

    def edges(self) -> list[tuple[Member, Member]]:
        """Producer and consumer of every connection that joins them in one work item."""
        return [
            self.ends(connection)
            for connection in self.connections
            if connection.transfer not in ACROSS_ITEMS
        ]

    def ports(self, member: Member) -> list[Port]:
        """The ports of one role."""
        return [port for port in self.contracts[member[0]].ports if port.role == member[1]]

    def label(self, member: Member) -> str:
        """`mma`, or `attn.softmax` where the instance has several roles."""
        single = sum(instance == member[0] for instance, _ in self.of) == 1
        return member[0] if single else ".".join(member)

    def groups(self) -> list[RoleSet]:
        """The roles by the warps they share (PL0070, PL0074)."""
        of: dict[Member, list[Member]] = {member: [member] for member in self.of}
        for connection in self.connections:
            if connection.transfer != FUSED:
                continue
            a, b = self.ends(connection)
            if self._same_warps(connection, a, b) and of[a] is not of[b]:
                of[a] += of[b]
                for member in of[b]:
                    of[member] = of[a]
        found = []
        for members in {id(group): group for group in of.values()}.values():
            order, stuck = topological_order(members, self.edges())
            if stuck:
                self._cycle(stuck)
            declared = constant_value(self.of[order[0]].warps)
            found.append(RoleSet(order, declared, declared))
        return found

    def _same_warps(self, connection: Connection, a: Member, b: Member) -> bool:
        warps = [constant_value(self.of[member].warps) for member in (a, b)]
        if warps[0] == warps[1]:
            return True
        places = [
            (self.of[member].where("warps"), f"`{'.'.join(member)}` has {count} warps")
            for member, count in zip((a, b), warps, strict=True)
        ]
        consumer = ".".join(connection.consumer)
        self.findings.add(
            "PL0074",
            f"`{connection.name}` cannot share warps: {warps[0]} and {warps[1]}",
            connection.span,
            *places,
            expected="the same number of warps in all roles that registers join",
            found=f"{warps[0]} and {warps[1]}",
            suggestions=(
                "let both declare the same number",
                f'or move the consumer to warps of its own: transfers={{"{consumer}": "handover"}}',
            ),
            subject=connection.name,
        )
        return False

    def _cycle(self, stuck: list[Member]) -> None:
        inside = [item for item in self.connections if set(self.ends(item)) <= set(stuck)]
        names = list_of(self.label(member) for member in stuck)
        self.findings.add(
            "PL0070",
            f"no order of {names} has every value before its use",
            *((item.span, item.name) for item in inside),
            chain=tuple(item.name for item in inside),
            suggestions=("remove one of these connections",),
            subject=names,
        )


def assign_warps(spec: MegakernelSpec, roles: RoleGraph, groups: list[RoleSet]) -> None:
    """Sets `warps` of every group (PL0071, PL0072).

    Declared warps; one warpgroup for a group fed by a hand-over; what the declaration requests.
    """
    group_of = {member: group for group in groups for member in group.members}
    for connection in roles.connections:
        if connection.transfer == HANDOVER:
            group = group_of[roles.ends(connection)[1]]
            if group.declared > WARPGROUP and not refusal(roles, group, WARPGROUP):
                group.warps = WARPGROUP
    chosen: dict[int, tuple[str, int]] = {}
    for key, warps in spec.warps:
        member = _named(spec, roles, key)
        if member is None:
            continue
        group = group_of[member]
        first, requested = chosen.setdefault(id(group), (key, warps))
        reason = refusal(roles, group, warps)
        if requested != warps:
            reason = f"it shares its warps with `{first}`, which asks for {requested}"
        if reason:
            _refuse(spec, roles, key, warps, member, reason)
        else:
            group.warps = warps
    _check_handovers(spec, roles, group_of)


def refusal(roles: RoleGraph, group: RoleSet, warps: int) -> str:
    """Why the group cannot run on so many warps; "" where it can."""
    if warps == group.declared:
        return ""
    if warps < 1 or group.declared % warps:
        return f"{group.declared} is no multiple of {warps}"
    for member in group.members:
        role, name, ports = roles.of[member], ".".join(member), roles.ports(member)
        if role.split == "role":
            return f"the warps of `{name}` work together"
        whole = role.split == "warpgroup" or any(port.space == "registers" for port in ports)
        if whole and warps % WARPGROUP:
            return f"`{name}` works in whole warpgroups"
        rings = ("ring", "tensor_memory")
        ring = next((port for port in ports if port.space in rings), None)
        if ring is not None:
            calls = group.declared // warps
            return f"called {calls} times, `{name}` would take too many items of `{ring.name}`"
        for barrier in roles.contracts[member[0]].named_barriers:
            if member[1] in barrier.roles:
                return f"`{name}` waits at `{barrier.name}` for all its warps"
    return ""


def _refuse(
    spec: MegakernelSpec, roles: RoleGraph, key: str, warps: int, member: Member, reason: str
) -> None:
    role = roles.of[member]
    roles.findings.add(
        "PL0072",
        f"`{key}` cannot run on {warps} warps: {reason}",
        spec.where("warps", key),
        (role.where("warps"), f"{constant_value(role.warps)} warps, split: {role.split}"),
        suggestions=("leave the request out",),
        subject=key,
    )


def _named(spec: MegakernelSpec, roles: RoleGraph, key: str) -> Member | None:
    """The role that a key of `warps` names; PL0072 where it names none or several."""
    instance, _, role = key.partition(".")
    members = [member for member in roles.of if member[0] == instance]
    found = [member for member in members if not role or member[1] == role]
    if len(found) == 1:
        return found[0]
    names = [".".join(member) for member in members]
    suggestions: tuple[str, ...]
    if found:
        problem, suggestions = f"has {len(found)} roles", (f"write one of {', '.join(names)}",)
    elif members:
        problem, suggestions = f"has no role `{role}`", similar_name_help(key, names)
    else:
        problem = "has no warps: a schedule runs inside every other role"
        suggestions = ("remove the entry",)
    roles.findings.add(
        "PL0072",
        f"`{instance}` {problem}",
        spec.where("warps", key),
        suggestions=suggestions,
        subject=key,
    )
    return None


def _check_handovers(
    spec: MegakernelSpec, roles: RoleGraph, group_of: dict[Member, RoleSet]
) -> None:
    """A hand-over leaves its group, and gives all shares of a work item at once (PL0071)."""
    for connection in roles.connections:
        if connection.transfer != HANDOVER:
            continue
        a, b = roles.ends(connection)
        group, label = group_of[a], roles.label(a)
        reason, fix = "", "leave the request out"
        if group is group_of[b]:
            reason = "other connections put both roles on the same warps"
        elif group.calls > 1:
            reason = f"`{label}` runs on {group.warps} of its {group.declared} warps"
            fix = f'give it all of them: warps={{"{label}": {group.declared}}}'
        if reason:
            roles.findings.add(
                "PL0071",
                f"`{connection.name}` cannot be handed over: {reason}",
                spec.where("transfers", ".".join(connection.consumer)),
                connection.span,
                suggestions=(fix,),
                subject=connection.name,
            )


def program_roles(
    spec: MegakernelSpec,
    variants: Mapping[str, Variant],
    connections: list[Connection],
    findings: DiagnosticSink,
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
