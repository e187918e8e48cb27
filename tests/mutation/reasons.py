"""Why is an accepted mutant no wrong program?  Each class has a predicate that is evaluated.

A mutant that every stage accepts must fall into one class of `reasons.yaml`; the predicates here
decide, from the two programs, and nothing is taken on trust where it can be computed.  A mutant of
no class is a survivor: a hole in the checker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from counting import counters_run_well
from mutants import Mutant
from running import protocols, runs_well, shape_of
from verdicts import Verdict, bare

from pipelink_rules.actions.build_key import strip_locations
from pipelink_rules.model.contract import Role
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.place.verify import verify


def blank(program: Program) -> Program:
    """Without places, prose, digests and the ranges of parameters."""
    instances = tuple(
        dataclasses.replace(item, variant=bare(item.variant)) for item in program.instances
    )
    return strip_locations(
        dataclasses.replace(program, instances=instances, spec=MegakernelSpec("", ()))
    )


def differences(one: Any, two: Any, path: str = "") -> Iterator[str]:
    """Paths of the fields that differ: `port.members.dtype`, without names and numbers."""
    if type(one) is not type(two):
        yield path
    elif dataclasses.is_dataclass(one):
        kind = type(one).__name__
        if kind == "Expr":
            if one.text != two.text:
                yield path
            return
        for item in dataclasses.fields(one):
            yield from differences(
                getattr(one, item.name), getattr(two, item.name), f"{kind}.{item.name}"
            )
    elif isinstance(one, tuple):
        if len(one) != len(two):
            yield path
        else:
            for first, second in zip(one, two, strict=True):
                yield from differences(first, second, path)
    elif one != two:
        yield path


def roles_of(program: Program) -> Iterator[Role]:
    """All roles of all instances."""
    for instance in program.instances:
        yield from instance.variant.contract.roles


class Case:
    """A mutant that was accepted, beside the program it was made of."""

    def __init__(self, original: Verdict, mutant: Verdict, change: Mutant, schedule: str):
        assert original.program is not None and mutant.program is not None
        self.change, self.schedule = change, schedule
        self.before, self.after = original.program, mutant.program
        self.placement = mutant.placement
        same = self.before is self.after
        self.differ = set() if same else set(differences(blank(self.before), blank(self.after)))

    def only(self, *parts: str) -> bool:
        """Whether nothing differs but these fields."""
        return all(any(item == part for part in parts) for item in self.differ)

    @property
    def placed(self) -> bool:
        """The independent verifier accepts the placement."""
        assert self.placement is not None
        return not verify(placement_problem(self.after), self.placement)

    @property
    def same_protocol(self) -> bool:
        """Every small case does the same operations in the same order."""
        least = [{c.name: c.minimum for c in p.channels} for p in (self.before, self.after)]
        if set(least[0]) != set(least[1]):
            return False
        common = {name: max(count, least[1][name]) for name, count in least[0].items()}
        one, two = (protocols(p, common) for p in (self.before, self.after))
        return [*map(shape_of, one)] == [*map(shape_of, two)]

    @property
    def fences(self) -> tuple[int, int]:
        """Fences in the contracts, before and after."""
        one, two = (
            sum(op.verb == "fence" for role in roles_of(program) for op in operations(role.body))
            for program in (self.before, self.after)
        )
        return one, two

    @property
    def right_protocol(self) -> bool:
        """The executor finds nothing wrong with what the mutant does."""
        found = protocols(self.after)
        well = bool(found) and all(map(runs_well, found)) and self.fences[1] >= self.fences[0]
        return well and counters_run_well(self.after)


_RESOURCES = (
    "Registers.minimum",
    "Registers.want",
    "Registers.entry",
    "ProgramRole.minimum",
    "ProgramRole.want",
    "ProgramRole.entry",
    "Stages.minimum",
    "Stages.maximum",
    "Channel.minimum",
    "Channel.maximum",
    "Buffer.bytes",
    "Buffer.align",
    "Role.split",
    "Role.converged",
    "Port.in_place",
    "Program.occupancy",
    "Program.cluster",
    "ProgramRole.warpgroup",
)
_TYPES = ("Member.dtype", "Port.type", "Numeric.rounds_to", "Variant.arguments")
_SIZES = ("Channel.stage_bytes", "Channel.member_offsets", "Buffer.bytes", "Port.tx_bytes")
_CALLER = (
    "Symbol.minimum",
    "Symbol.maximum",
    "Symbol.multiple_of",
    "Contract.requires",
    "Program.tensors",
    "Program.scalars",
)
_TENSOR = (
    "Member.shape",
    "TileAccess.box",
    "TileAccess.swizzle",
    "TileAccess.along",
    "Port.tile",
    "Program.symbols",
)
_WORK = (
    "WorkField.value",
    "WorkField.minimum",
    "WorkField.maximum",
    "Work.fields",
    "Work.items",
    "Work.tile",
)


def _same_program(case: Case) -> bool:
    return case.before is case.after or not case.differ


def _numeric(case: Case) -> bool:
    return all(item.startswith("Numeric.") for item in case.differ)


def _caller(case: Case) -> bool:
    return case.only(*_CALLER) and case.same_protocol


def _tensor(case: Case) -> bool:
    return case.only(*_TENSOR, *_CALLER) and case.same_protocol


def _work(case: Case) -> bool:
    same_scheduler = case.change.component == case.schedule
    return case.only(*_WORK, *_CALLER, *(("Variant.arguments",) if same_scheduler else ())) and (
        case.right_protocol
    )


def _resources(case: Case) -> bool:
    return case.only(*_RESOURCES) and case.same_protocol and case.placed


def _types(case: Case) -> bool:
    return (
        any(item in case.differ for item in _TYPES[:2])
        and case.only(*_TYPES, *_SIZES)
        and case.right_protocol
        and case.placed
    )


def _protocol(case: Case) -> bool:
    return bool(case.change.component) and case.right_protocol and case.placed


def _kernel(case: Case) -> bool:
    return not case.change.component and case.right_protocol and case.placed


CLASSES: dict[str, Callable[[Case], bool]] = {
    "same-program": _same_program,
    "numerical-contract": _numeric,
    "arguments-of-the-caller": _caller,
    "tensor-of-the-caller": _tensor,
    "values-of-the-scheduler": _work,
    "resources": _resources,
    "types-of-both-endpoints": _types,
    "another-correct-protocol": _protocol,
    "another-correct-kernel": _kernel,
}


def reason_of(case: Case) -> str:
    """The first class whose predicate holds; "" = a survivor."""
    return next((name for name, holds in CLASSES.items() if holds(case)), "")
