"""Checks of the operations of a role against its warps, ports and buffers, and tensor memory.

The protocol is analyzed from the operations that contracts list, so an access that is missing
there is not ordered with any other.  Every declared port and buffer needs an operation.
"""

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import list_of, plural
from pipelink_rules.model.contract import Buffer, Operation, Port, Role
from pipelink_rules.model.operation import operations
from pipelink_rules.model.target import TARGETS

QUADRANTS = 4  # warp w of a warpgroup reaches lanes 32 * w to 32 * w + 31
# operations that single threads may perform
_OF_A_THREAD = ("read", "write")
# from small to large; a unit that converges together cannot be split
_SIZES = ("thread", "warp", "warpgroup", "role")
# (space, direction) -> the verbs that use such a port; copies and stores name it as their source.
# A ring without a writer is reported where it is read (PL0503).
_AS_SOURCE = {("global", "copy"), ("global", "store"), ("tensor_memory", "mma")}  # not as target
_VERBS = {
    ("ring", "in"): ("read", "mma", "store"),
    ("tensor_memory", "in"): ("read",),
    ("tensor_memory", "out"): ("mma", "write"),
    ("registers", "in"): ("read",),
    ("registers", "out"): ("write",),
    ("global", "in"): ("read", "copy"),
    ("global", "out"): ("write", "store"),
    ("counter", "in"): ("wait_until",),
    ("counter", "out"): ("signal",),
}


def check_convergence(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0707: wgmma runs in converged warpgroups, runtime operations in converged warps."""
    for instance, _, role in index.roles():
        if role.scheduler:
            continue
        groups = [op for op in _ops(role) if op.wgmma]
        calls = [op for op in _ops(role) if op.verb not in _OF_A_THREAD]
        if groups and role.converged not in ("warpgroup", "role"):
            yield _apart(instance, role, groups[0], "warpgroup", "wgmma")
        elif calls and role.converged == "thread":
            yield _apart(instance, role, calls[0], "warp", "the runtime")
        elif _SIZES.index(role.split) < _SIZES.index(role.converged):
            yield _torn(instance, role)


def _apart(instance: str, role: Role, op: Operation, need: str, user: str) -> Diagnostic:
    return report(
        "PL0707",
        f"role `{instance}.{role.name}` is declared `converged: {role.converged}`, but {user} "
        f"requires `{need}`",
        (role.where("converged"), f"converged: {role.converged}"),
        (op.span, f"performed by a converged {need}"),
        expected=f"converged: {need}",
        found=f"converged: {role.converged}",
        at_run_time="undefined behavior: a hang, or operations performed by the wrong threads",
        suggestions=(f"set `converged: {need}` and call it with all threads of the {need}",),
        subject=f"{instance}.{role.name}",
    )


def _torn(instance: str, role: Role) -> Diagnostic:
    return report(
        "PL0707",
        f"role `{instance}.{role.name}` is declared `split: {role.split}`, but "
        f"`converged: {role.converged}`",
        (role.where("split"), f"split: {role.split}"),
        (role.where("converged"), f"converged: {role.converged}"),
        expected=f"`split: {role.converged}` or `converged: {role.split}`",
        found=f"`split: {role.split}`",
        at_run_time="threads wait for others that run in another call: hang",
        suggestions=(f"set `split: {role.converged}`",),
        subject=f"{instance}.{role.name}",
    )


def check_declared_accesses(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0510: every port is used by an operation of its role, every buffer read."""
    for instance, contract in index.contracts.items():
        for port in contract.ports:
            role = contract.role(port.role)
            verbs = _VERBS.get((port.space, port.direction), ())
            if verbs and not port.raw and not role.scheduler and not _used(role, port, verbs):
                yield _unused(instance, role, "port", port, verbs)
        for buffer in contract.buffers:
            role = contract.role(buffer.role)
            done = {op.verb for op in _ops(role) if op.target == buffer.name}
            if "write" in done and not done & {"read", "store"}:
                yield _unused(instance, role, "buffer", buffer, ("read", "store"))


def _ops(role: Role) -> list[Operation]:
    return list(operations((*role.prologue, *role.body, *role.epilogue)))


def _used(role: Role, port: Port, verbs: tuple[str, ...]) -> bool:
    return any(
        op.verb in verbs
        and port.name == (op.source if (port.space, op.verb) in _AS_SOURCE else op.target)
        for op in _ops(role)
    )


def _unused(
    instance: str, role: Role, kind: str, item: Port | Buffer, verbs: tuple[str, ...]
) -> Diagnostic:
    name = item.name
    wanted = " or ".join(f"`{verb}`" for verb in verbs)
    return report(
        "PL0510",
        f"role `{instance}.{role.name}` declares no access to its {kind} `{name}`",
        (item.span, "declared here"),
        (role.where("body"), f"no {wanted} of `{name}`"),
        expected=f"{wanted} of `{name}` in the operations of role `{role.name}`",
        found="none",
        at_run_time="an undeclared access is not ordered with any other: data race",
        suggestions=(
            f"add {wanted} where the source accesses `{name}`",
            f"or remove {kind} `{name}` from the contract",
        ),
        subject=f"{instance}.{name}",
    )


def check_tensor_memory_available(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0810: the target has tensor memory."""
    if index.target.tmem_columns:
        return
    target = index.target.name
    have = [other.name for other in TARGETS.values() if other.tmem_columns]
    for instance, _, port in index.ports():
        if port.space != "tensor_memory":
            continue
        yield report(
            "PL0810",
            f"port `{instance}.{port.name}` requires tensor memory, which {target} does not have",
            (port.where("space"), "tensor memory"),
            (index.program.spec.where("archs", target), "requested here"),
            expected=f"a target with tensor memory: {', '.join(have)}",
            found=target,
            suggestions=(
                f"remove {target} from `archs`",
                "or use a component with accumulators in registers",
            ),
            subject=f"{instance}.{port.name}",
        )


def check_lane_coverage(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0702: roles that move data between tensor memory and registers have whole warpgroups."""
    for instance, role, op in _tensor_ops(index, ("read", "write")):
        warps = index.home(instance, role.name).warps
        if warps % QUADRANTS == 0:
            continue
        missed = range(warps % QUADRANTS, QUADRANTS)
        left = ", ".join(f"{32 * place} to {32 * place + 31}" for place in missed)
        yield report(
            "PL0702",
            f"role `{instance}.{role.name}` accesses tensor memory with {plural(warps, 'warp')}",
            (role.where("warps"), plural(warps, "warp")),
            (op.span, "a warp accesses the 32 lanes of its rank in the warpgroup"),
            expected="a multiple of 4 warps",
            found=plural(warps, "warp"),
            at_run_time=f"no warp accesses lanes {left} of some columns: rows are missing",
            suggestions=(
                f"set `warps: {-(-warps // QUADRANTS) * QUADRANTS}` in role `{role.name}`",
            ),
            subject=f"{instance}.{role.name}",
        )


def check_single_issuer(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0707: one thread issues tcgen05.mma, so its role is one warp."""
    for instance, role, op in _tensor_ops(index, ("mma",)):
        warps = index.home(instance, role.name).warps
        if warps == 1:
            continue
        yield report(
            "PL0707",
            f"role `{instance}.{role.name}` issues tcgen05.mma from {plural(warps, 'warp')}",
            (role.where("warps"), plural(warps, "warp")),
            (op.span, "issued by one thread of every warp"),
            expected="1 warp",
            found=plural(warps, "warp"),
            at_run_time=f"every product is added {warps} times: always wrong results",
            suggestions=(f"set `warps: 1` in role `{role.name}`",),
            subject=f"{instance}.{role.name}",
        )


def _tensor_ops(
    index: ProgramIndex, verbs: tuple[str, ...]
) -> Iterator[tuple[str, Role, Operation]]:
    """Yield (instance, role, operation): the first of each role that uses tensor memory."""
    for instance, contract, role in index.roles():
        tensor = {port.name for port in contract.ports if port.space == "tensor_memory"}
        for op in operations(role.body):
            if op.verb in verbs and (op.source if op.verb == "mma" else op.target) in tensor:
                yield instance, role, op
                break


def check_commit_scope(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0811: a stage filled by a multicast is released to all CTAs that fill it."""
    for instance, role, op in index.operations("commit"):
        end = (instance, op.target)
        channel = index.protocol.channels.get(end)
        if not op.source or not channel or not channel.multicast or end not in channel.consumers:
            continue
        connection = index.connection(channel, end)
        members = list_of(item.member for item in channel.multicast)
        yield report(
            "PL0811",
            f"`{connection.name}` is a multicast, but `commit mma -> {op.target}` of "
            f"`{instance}.{role.name}` releases it only to its own CTA",
            (op.span, "arrives only in this CTA"),
            (connection.span, f"the CTAs of a cluster load {members} for each other"),
            expected="a ring that only its own CTA fills",
            found=f"a multicast of {members}",
            at_run_time="the other CTAs hang waiting for an empty stage",
            suggestions=(f'disable the multicast: transfers={{"{qualified_name(end)}": "ring"}}',),
            subject=connection.name,
        )


CHECKS = (
    check_convergence,
    check_declared_accesses,
    check_commit_scope,
    check_tensor_memory_available,
    check_lane_coverage,
    check_single_issuer,
)
