"""Does a role say what it does with its ports and buffers?

An access that the contract leaves out is ordered by nobody: the protocol is judged by what the
operations say.  So whatever a component declares, one of its operations uses.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.registry import Check
from pipelink_rules.check.wording import labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Operation, Port, Role
from pipelink_rules.model.operation import operations
from pipelink_rules.model.source_span import Span

# (space, direction) -> the verbs that use such a port; copies and stores name it as their source.
# A ring that nobody writes is told where it is read (PL0503).
_AS_SOURCE = {("global", "copy"), ("global", "store"), ("tensor_memory", "mma")}  # not as target
_VERBS = {
    ("ring", "in"): ("read", "mma", "store"),
    ("tensor_memory", "in"): ("read",),
    ("tensor_memory", "out"): ("mma", "write"),
    ("registers", "in"): ("read",),
    ("registers", "out"): ("write",),
    ("global", "in"): ("read", "copy"),
    ("global", "out"): ("write", "store"),
    ("counter", "in"): ("until",),
    ("counter", "out"): ("signal",),
}


def check_declared_accesses(resolved: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0510: every port is used by an operation of its role, every buffer read."""
    for instance in resolved.program.instances:
        contract = instance.variant.contract
        for port in contract.ports:
            role = contract.role(port.role)
            verbs = _VERBS.get((port.space, port.direction), ())
            if verbs and not port.raw and not role.schedule and not _used(role, port, verbs):
                yield _unused(instance.name, role, "port", port.name, port.span, verbs)
        for buffer in contract.buffers:
            role = contract.role(buffer.role)
            done = {op.verb for op in _ops(role) if op.target == buffer.name}
            if "write" in done and not done & {"read", "store"}:
                verbs = ("read", "store")
                yield _unused(instance.name, role, "buffer", buffer.name, buffer.span, verbs)


def _ops(role: Role) -> list[Operation]:
    return list(operations((*role.prologue, *role.body, *role.epilogue)))


def _used(role: Role, port: Port, verbs: tuple[str, ...]) -> bool:
    return any(
        op.verb in verbs
        and port.name == (op.source if (port.space, op.verb) in _AS_SOURCE else op.target)
        for op in _ops(role)
    )


def _unused(
    instance: str, role: Role, kind: str, name: str, span: Span | None, verbs: tuple[str, ...]
) -> Diagnostic:
    wanted = " or ".join(f"`{verb}`" for verb in verbs)
    return Diagnostic(
        "PL0510",
        f"role `{instance}.{role.name}` never does {wanted} with {kind} `{name}`",
        labels((span, "declared here"), (role.where("body"), f"no {wanted} of it")),
        expected=f"{wanted} of `{name}` in the operations of role `{role.name}`",
        found="no such operation",
        at_run_time="an access that is not declared is in no order with any other",
        helps=(
            f"add the operation where the source does it, or leave the {kind} out of the contract",
        ),
        subject=f"{instance}.{name}",
    )


RULES = (Check(("PL0510",), check_declared_accesses),)
