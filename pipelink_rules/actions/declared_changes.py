"""Changes of a declaration or a contract that help a program to be placed, each checked here.

`place` knows numbers only.  What a changed number means for the program (a deadlock with fewer
stages, a role that cannot run on fewer warps) is decided by resolving and checking the program
with the change made.
"""

from collections.abc import Iterator
from dataclasses import replace

from pipelink_rules.check.check import check, check_stages
from pipelink_rules.diagnostics.allow import apply_allowances
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.placement import (
    Placement,
    PlacementProblem,
    RoleRequest,
    StageVariable,
)
from pipelink_rules.model.program import HANDOVER, Channel, MegakernelSpec, Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.advice import Change
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.resolve import resolve


class DeclaredChanges:
    """The changes of one program; implements `place.advice.Changes`."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._channels = {channel.name: channel for channel in program.channels}

    def refused(self, problem: PlacementProblem, placement: Placement | None) -> str:
        """Return the codes of errors with the stage counts and occupancy of a changed problem."""
        counts = {stage.name: (stage.minimum, stage.maximum) for stage in problem.stages}
        channels = tuple(
            replace(item, minimum=counts[item.name][0], maximum=counts[item.name][1])
            for item in self.program.channels
        )
        changed = replace(self.program, channels=channels, occupancy=problem.occupancy)
        return _errors(changed, placement)

    def lower(self, stage: StageVariable, count: int) -> str:
        """Return where a minimum stage count is lowered: in declaration, contract or both."""
        channel, fewer = self._channels[stage.name], plural(count, "stage")
        end = ".".join(channel.producer)
        requested = end in dict(self.program.spec.stages)
        declared = self._declared_minimum(channel)
        parts = [f"set `{end}` to {count} in `stages`"] if requested else []
        if count < declared:
            port = self.program.port(channel.producer)
            span = port.where("stages")
            where = f" ({span.file}:{span.line})" if span else ""
            text = f"lower the minimum of `{stage.name}` from {declared} to {fewer}"
            parts.append(f"{text} in its contract{where}")
        return " and ".join(parts)

    def _declared_minimum(self, channel: Channel) -> int:
        if channel.kind == HANDOVER:
            return 1
        return self.program.port(channel.producer).stages.minimum

    def fewer_warps(self, role: RoleRequest, count: int) -> Change | None:
        """Return the change to fewer warps of a role, None if the program refuses it."""
        members = next(item.members for item in self.program.roles if item.name == role.name)
        for instance, name in members:
            alone = len([m for m in self._members() if m[0] == instance]) == 1
            key = instance if alone else f"{instance}.{name}"
            spec = self.program.spec
            warps = tuple({**dict(spec.warps), key: count}.items())
            found = self._with(replace(spec, warps=warps))
            if found:
                return Change(f'set `warps={{"{key}": {count}}}`', placement_problem(found))
        return None

    def _members(self) -> list[tuple[str, str]]:
        return [member for role in self.program.roles for member in role.members]

    def others(self) -> Iterator[Change]:
        """Yield requests of the declaration without which the program passes its checks."""
        spec = self.program.spec
        for key, kind in spec.transfers:
            rest = tuple(request for request in spec.transfers if request != (key, kind))
            yield from self._without(key, "transfers", replace(spec, transfers=rest))
        for key, count in spec.stages:
            stages = tuple(request for request in spec.stages if request != (key, count))
            yield from self._without(key, "stages", replace(spec, stages=stages))
        for key, count in spec.warps:
            warps = tuple(request for request in spec.warps if request != (key, count))
            yield from self._without(key, "warps", replace(spec, warps=warps))

    def _without(self, key: str, section: str, spec: MegakernelSpec) -> Iterator[Change]:
        found = self._with(spec)
        if found:
            yield Change(f"remove `{key}` from `{section}`", placement_problem(found))

    def _with(self, spec: MegakernelSpec) -> Program | None:
        """Return the program of a changed declaration, None if it has errors."""
        variants = {item.name: item.variant for item in self.program.instances}
        try:
            changed = resolve(spec, variants, self.program.target)
        except PipelinkError:
            return None
        return None if _errors(changed, None) else changed


def _errors(program: Program, placement: Placement | None) -> str:
    """Return the codes of errors of a program, and of the stage counts of its placement."""
    target = TARGETS[program.target]
    found = check(program, target)
    if placement:
        found = (*found, *check_stages(program, target, dict(placement.stages)))
    left = apply_allowances(found, program.spec)
    return ", ".join(sorted({item.code for item in left if item.severity == "error"}))
