"""Which roles share their warps?  Roles, register connections -> groups.

A role is one set of warps running one entry.  Registers that pass by reference (FUSED) put both
ends on the same warps, members in the order in which data flows through them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelink_rules.model.contract import Contract, Port, Role
from pipelink_rules.model.program import ACROSS_ITEMS, FUSED, Connection
from pipelink_rules.program.findings import Findings
from pipelink_rules.program.link_constants import constant_value
from pipelink_rules.program.topological_order import topological_order

Member = tuple[str, str]  # (instance, role)


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
        findings: Findings,
    ):
        self.contracts, self.connections, self.findings = contracts, connections, findings
        self.of: dict[Member, Role] = {
            (name, role.name): role
            for name, contract in sorted(contracts.items())
            for role in contract.roles
            if not role.schedule
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
            helps=(
                "let both declare the same number",
                f'or move the consumer to warps of its own: transfers={{"{consumer}": "handover"}}',
            ),
            subject=connection.name,
        )
        return False

    def _cycle(self, stuck: list[Member]) -> None:
        inside = [item for item in self.connections if set(self.ends(item)) <= set(stuck)]
        names = ", ".join(f"`{self.label(member)}`" for member in stuck)
        self.findings.add(
            "PL0070",
            f"no order of {names} has every value before its use",
            *((item.span, item.name) for item in inside),
            trace=tuple(item.name for item in inside),
            helps=("remove one of these connections",),
            subject=names,
        )
