"""Are the warps of a role converged as its operations ask?"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.registry import Check
from pipelink_rules.check.wording import labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Operation, Role
from pipelink_rules.model.operation import operations

# No warp is asked to be whole for these.
_OF_A_THREAD = ("read", "write")
# from small to large: what converges together is not split
_SIZES = ("thread", "warp", "warpgroup", "role")


def check_convergence(resolved: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0707: wgmma runs in converged warpgroups, runtime operations in converged warps."""
    for instance in resolved.program.instances:
        for role in instance.variant.contract.roles:
            if role.schedule:
                continue
            ops = list(operations((*role.prologue, *role.body, *role.epilogue)))
            groups = [op for op in ops if op.wgmma]
            calls = [op for op in ops if op.verb not in _OF_A_THREAD]
            if groups and role.converged not in ("warpgroup", "role"):
                yield _apart(instance.name, role, groups[0], "warpgroup", "wgmma")
            elif calls and role.converged == "thread":
                yield _apart(instance.name, role, calls[0], "warp", "the runtime")
            elif _SIZES.index(role.split) < _SIZES.index(role.converged):
                yield _torn(instance.name, role)


def _apart(instance: str, role: Role, op: Operation, need: str, who: str) -> Diagnostic:
    return Diagnostic(
        "PL0707",
        f"role `{instance}.{role.name}` converges per {role.converged}, {who} needs a {need}",
        labels(
            (role.where("converged"), f"converged: {role.converged}"),
            (op.span, f"called by a whole, converged {need}"),
        ),
        expected=f"converged: {need}",
        found=f"converged: {role.converged}",
        at_run_time="threads that take part alone hang, or act in the place of others",
        helps=(f"call it with all threads of the {need} and set `converged: {need}`",),
        subject=f"{instance}.{role.name}",
    )


def _torn(instance: str, role: Role) -> Diagnostic:
    return Diagnostic(
        "PL0707",
        f"role `{instance}.{role.name}` may be split per {role.split}, but converges per "
        f"{role.converged}",
        labels(
            (role.where("split"), f"split: {role.split}"),
            (role.where("converged"), f"converged: {role.converged}"),
        ),
        expected=f"split: {role.converged}, or `converged: {role.split}`",
        found=f"split: {role.split}",
        at_run_time="a part of the threads would wait for the rest, which runs elsewhere or later",
        helps=(f"set `split: {role.converged}`",),
        subject=f"{instance}.{role.name}",
    )


RULES = (Check(("PL0707",), check_convergence),)
