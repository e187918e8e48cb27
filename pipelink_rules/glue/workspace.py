"""Which global memory does a program need from the launcher?  Program -> scratch and counters."""

from __future__ import annotations

from pipelink_rules.model.contract import Port
from pipelink_rules.model.linked_kernel import KernelParameter, Workspace
from pipelink_rules.model.program import COUNTER, SCRATCH, Program
from pipelink_rules.model.source_span import Expr

End = tuple[str, str]  # instance, port
KINDS = {SCRATCH: "scratch", COUNTER: "counters"}  # transfer -> kind


def workspaces(program: Program) -> tuple[Workspace, ...]:
    """One per port that writes scratch or signals, in the order of the connections."""
    return tuple(_of(program, end, ends[0]) for end, ends in _ends(program).items())


def workspace_parameters(program: Program) -> list[KernelParameter]:
    """The parameter of each, with all ports that it serves."""
    found = []
    for item, (end, ends) in zip(workspaces(program), _ends(program).items(), strict=True):
        names = tuple(".".join(one) for one in (end, *ends[1]))
        found.append(KernelParameter(item.kind, item.name, item.dtype, port=names[0], ports=names))
    return found


def counters_behind(program: Program, end: End) -> Port:
    """The port that signals at the counters of a port."""
    for giver, (kind, takers) in _ends(program).items():
        if kind == COUNTER and end in (giver, *takers):
            return _port(program, giver)
    raise KeyError(end)


def _ends(program: Program) -> dict[End, tuple[str, list[End]]]:
    found: dict[End, tuple[str, list[End]]] = {}
    for item in program.connections:
        if item.transfer in KINDS:
            found.setdefault(item.producer, (item.transfer, []))[1].append(item.consumer)
    return found


def _of(program: Program, end: End, transfer: str) -> Workspace:
    port, name = _port(program, end), ".".join(end)
    if transfer == COUNTER:
        return Workspace(name, KINDS[transfer], "u32", (port.count or Expr("1")).text, True)
    member = port.members[0]
    count = " * ".join(f"({extent.text})" for extent in member.shape)
    return Workspace(name, KINDS[transfer], member.dtype, count, port.init == "zero")


def _port(program: Program, end: End) -> Port:
    return program.instance(end[0]).variant.contract.port(end[1])
