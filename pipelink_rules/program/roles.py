"""Role sets of a megakernel: roles, register connections -> program roles.

A program role is a set of warps.  Registers that are passed by reference (FUSED) put the roles of
both ends on the same warps, called in the order of their data.  If their warps are independent
(`split`), a set may run on fewer warps than its components declare; its entries are then called
several times per work tile.
"""

import contextlib
import graphlib
import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink
from pipelink_rules.diagnostics.wording import list_of, plural, similar_name_help
from pipelink_rules.model.contract import Contract, Port, Role, round_registers
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
    """Return (all nodes, producers first; those in or after a cycle).  Ties are sorted by name."""
    names = set(nodes)
    sorter = graphlib.TopologicalSorter[Node](dict.fromkeys(names, ()))
    for first, second in edges:
        if first in names and second in names:
            sorter.add(second, first)
    with contextlib.suppress(graphlib.CycleError):  # what the cycle does not block is sorted still
        sorter.prepare()
    ready: list[Node] = []
    found: list[Node] = []
    while sorter.is_active():
        for node in sorter.get_ready():
            heapq.heappush(ready, node)
        found.append(heapq.heappop(ready))
        sorter.done(found[-1])
    stuck = sorted(names - set(found))
    return found + stuck, stuck


@dataclass
class RoleSet:
    """Roles that run on the same warps."""

    members: list[Member]  # in call order
    declared: int  # warps of every member
    warps: int  # warps it runs on

    @property
    def calls(self) -> int:
        """Return the calls of each entry per work tile."""
        return self.declared // self.warps


class RoleGraph:
    """The roles of all instances but the tile scheduler, and their connections."""

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
        """Return the roles at both ends."""
        (a, out), (b, into) = connection.producer, connection.consumer
        return (a, self.contracts[a].port(out).role), (b, self.contracts[b].port(into).role)

    def edges(self) -> list[tuple[Member, Member]]:
        """Return producer and consumer of every connection within a work tile."""
        return [
            self.ends(connection)
            for connection in self.connections
            if connection.transfer not in ACROSS_ITEMS
        ]

    def ports(self, member: Member) -> list[Port]:
        """Return the ports of one role."""
        return [port for port in self.contracts[member[0]].ports if port.role == member[1]]

    def label(self, member: Member) -> str:
        """Return `mma`, or `attn.softmax` if the instance has several roles."""
        single = sum(instance == member[0] for instance, _ in self.of) == 1
        return member[0] if single else ".".join(member)

    def groups(self) -> list[RoleSet]:
        """Return the sets of roles that share warps (PL0070, PL0074)."""
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
        warps = {member: constant_value(self.of[member].warps) for member in (a, b)}
        counts = f"{warps[a]} and {warps[b]}"
        if warps[a] == warps[b]:
            return True
        consumer = ".".join(connection.consumer)
        self.findings.add(
            "PL0074",
            f"`{connection.name}` passes registers between roles of {counts} warps",
            connection.span,
            *(
                (self.of[member].where("warps"), f"`{'.'.join(member)}` has {count} warps")
                for member, count in warps.items()
            ),
            expected="the same number of warps on both ends",
            found=f"{counts} warps",
            suggestions=(
                "declare the same number of warps in both roles",
                f'or move the consumer to separate warps: transfers={{"{consumer}": "handover"}}',
            ),
            subject=connection.name,
        )
        return False

    def _cycle(self, stuck: list[Member]) -> None:
        inside = [item for item in self.connections if set(self.ends(item)) <= set(stuck)]
        names = list_of(self.label(member) for member in stuck)
        self.findings.add(
            "PL0070",
            f"{names} form a cycle of register connections",
            *((item.span, item.name) for item in inside),
            chain=tuple(item.name for item in inside),
            suggestions=("remove one of these connections",),
            subject=names,
        )


def assign_warps(spec: MegakernelSpec, roles: RoleGraph, groups: list[RoleSet]) -> None:
    """Set `warps` of every role set (PL0071, PL0072).

    These are the declared warps, or one warpgroup for the consumer of a handover, or the request of
    the declaration.
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
            reason = f"it shares its warps with `{first}`, for which {requested} are requested"
        if reason:
            role = roles.of[member]
            roles.findings.add(
                "PL0072",
                f"`{key}` cannot run on {warps} warps: {reason}",
                spec.where("warps", key),
                (role.where("warps"), f"{group.declared} warps, split: {role.split}"),
                suggestions=(f"remove `{key}` from `warps`",),
                subject=key,
            )
        else:
            group.warps = warps
    _check_handovers(spec, roles, group_of)


def refusal(roles: RoleGraph, group: RoleSet, warps: int) -> str:
    """Return why the role set cannot run on this number of warps, or ""."""
    if warps == group.declared:
        return ""
    if warps < 1 or group.declared % warps:
        return f"{group.declared} is not a multiple of {warps}"
    for member in group.members:
        role, name, ports = roles.of[member], ".".join(member), roles.ports(member)
        if role.split == "role":
            return f"`{name}` is declared `split: role`"
        whole = role.split == "warpgroup" or any(port.space == "registers" for port in ports)
        if whole and warps % WARPGROUP:
            return f"`{name}` requires whole warpgroups"
        rings = ("ring", "tensor_memory")
        ring = next((port for port in ports if port.space in rings), None)
        if ring is not None:
            calls = group.declared // warps
            verb = "consumes" if ring.direction == "in" else "produces"
            items = f"items of `{ring.name}`"
            return f"called {plural(calls, 'time')}, `{name}` {verb} too many {items}"
        for barrier in roles.contracts[member[0]].named_barriers:
            if member[1] in barrier.roles:
                return f"`{name}` waits for all its warps at `{barrier.name}`"
    return ""


def _named(spec: MegakernelSpec, roles: RoleGraph, key: str) -> Member | None:
    """Return the role that a key of `warps` names; report PL0072 if it names none or several."""
    instance, _, role = key.partition(".")
    members = [member for member in roles.of if member[0] == instance]
    found = [member for member in members if not role or member[1] == role]
    if len(found) == 1:
        return found[0]
    names = [".".join(member) for member in members]
    suggestions: tuple[str, ...]
    if found:
        problem, suggestions = f"has {len(found)} roles", (f"use one of {', '.join(names)}",)
    elif members:
        problem, suggestions = f"has no role `{role}`", similar_name_help(key, names)
    else:
        problem = "has no warps: a tile scheduler runs inside every other role"
        suggestions = (f"remove `{key}` from `warps`",)
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
    """Check that a handover leaves its role set, which runs on all its warps (PL0071)."""
    for connection in roles.connections:
        if connection.transfer != HANDOVER:
            continue
        a, b = roles.ends(connection)
        group, label = group_of[a], roles.label(a)
        reason, fix = "", f"remove `{'.'.join(connection.consumer)}` from `transfers`"
        if group is group_of[b]:
            reason = "other connections put both roles on the same warps"
        elif group.calls > 1:
            reason = f"`{label}` runs on {group.warps} of its {group.declared} warps"
            fix = f'request all of them: warps={{"{label}": {group.declared}}}'
        if reason:
            roles.findings.add(
                "PL0071",
                f"transfer `handover` is not available for `{connection.name}`: {reason}",
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
    """Return the program roles, producers first (PL0070, PL0071, PL0072, PL0074)."""
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
    members = [roles.of[member] for member in group.members]
    whole = any(role.converged == "warpgroup" or role.uses_mma for role in members)
    by_lane = any(  # a warp accesses the rows, or the lanes, of its rank in the warpgroup
        port.space == "registers" or (port.space == "tensor_memory" and _moves(role, port))
        for member, role in zip(group.members, members, strict=True)
        for port in roles.ports(member)
    )
    return ProgramRole(
        name="+".join(roles.label(member) for member in group.members),
        members=tuple(group.members),
        warps=group.warps,
        calls=group.calls,
        warpgroup=whole or (by_lane and group.warps % WARPGROUP == 0),
        minimum=minimum,
        want=max(minimum, want),
        entry=entry,
    )


def _moves(role: Role, port: Port) -> bool:
    """Return whether an operation moves data through registers (tcgen05.ld, tcgen05.st)."""
    verbs = ("read", "write")
    return any(op.verb in verbs and op.target == port.name for op in operations(role.body))


def _waiting(roles: RoleGraph, group: RoleSet) -> list[int]:
    """Return the registers per member that hold fragments of others while its entry runs.

    Such a fragment is written before and read after it.  It has f32 accumulators of 64 rows per
    warpgroup: half a register per column.
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
    """Return (minimum, want, entry): measured if there is a measurement, else declared."""
    declared = roles.of[member].registers
    minimum, want, entry = map(constant_value, (declared.minimum, declared.want, declared.entry))
    measured = dict(variants[member[0]].measured).get(member[1])
    if measured is not None:
        minimum, entry = measured.registers, round_registers(measured.entry)
    return round_registers(minimum), round_registers(want), min(entry, REGISTERS_LARGEST)
