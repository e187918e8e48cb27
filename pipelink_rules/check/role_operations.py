"""Checks of the operations of a role against its warps, ports and buffers.

The protocol is analyzed from the operations that contracts list, so an access that is missing
there is not ordered with any other.  Every declared port and buffer needs an operation.
"""

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.model.contract import Buffer, Operation, Port, Role
from pipelink_rules.model.operation import operations

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


CHECKS = (check_convergence, check_declared_accesses)
