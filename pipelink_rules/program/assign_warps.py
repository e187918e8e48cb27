"""How many warps does every group of roles get?  Declared, requested, or one warpgroup.

A group may run on fewer warps than its components declare where their warps are independent
(`split`); the entries are then called several times per work item.
"""

from __future__ import annotations

from pipelink_rules.diagnostics.suggest import similar_name_help
from pipelink_rules.model.program import HANDOVER, MegakernelSpec
from pipelink_rules.program.link_constants import constant_value
from pipelink_rules.program.role_sets import Member, RoleGraph, RoleSet

WARPGROUP = 4  # warps


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
        first, asked = chosen.setdefault(id(group), (key, warps))
        reason = refusal(roles, group, warps)
        if asked != warps:
            reason = f"it shares its warps with `{first}`, which asks for {asked}"
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
        helps=("leave the request out",),
        subject=key,
    )


def _named(spec: MegakernelSpec, roles: RoleGraph, key: str) -> Member | None:
    """The role that a key of `warps` names; PL0072 where it names none or several."""
    instance, _, role = key.partition(".")
    own = [member for member in roles.of if member[0] == instance]
    found = [member for member in own if not role or member[1] == role]
    if len(found) == 1:
        return found[0]
    names = [".".join(member) for member in own]
    helps: tuple[str, ...]
    if found:
        problem, helps = f"has {len(found)} roles", (f"write one of {', '.join(names)}",)
    elif own:
        problem, helps = f"has no role `{role}`", similar_name_help(key, names)
    else:
        problem = "has no warps: a schedule runs inside every other role"
        helps = ("remove the entry",)
    roles.findings.add(
        "PL0072",
        f"`{instance}` {problem}",
        spec.where("warps", key),
        helps=helps,
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
                helps=(fix,),
                subject=connection.name,
            )
