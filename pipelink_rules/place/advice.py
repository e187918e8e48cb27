"""Help for a problem without a placement: a change is made, checked and placed before it is shown.

A change that only its own resource needs may leave other errors; the text then says so.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.placement import Placement, PlacementProblem, RoleRequest, StageVariable
from pipelink_rules.place import warps
from pipelink_rules.place.solve import solve
from pipelink_rules.place.verify import verify

MOST = 3  # changes that are listed
REMAIN = " (this error only: others remain)"


@dataclass(frozen=True)
class Change:
    """What to do, and the whole problem after it."""

    text: str
    problem: PlacementProblem


class Changes(Protocol):
    """What a caller that knows more than numbers says about changes of a problem."""

    def refused(self, problem: PlacementProblem, placement: Placement | None) -> str:
        """Return the codes of errors that the changed stage counts cause, "" without any."""

    def lower(self, stage: StageVariable, count: int) -> str:
        """Return how to lower a minimum stage count to `count`."""

    def fewer_warps(self, role: RoleRequest, count: int) -> Change | None:
        """Return the change to `count` warps of a role, None if that is refused."""

    def others(self) -> Iterator[Change]:
        """Yield changes of what the problem was made from, those that change least first."""


@dataclass(frozen=True)
class Numbers:
    """A problem from numbers alone: nothing else can refuse a change."""

    problem: PlacementProblem

    def refused(self, problem: PlacementProblem, placement: Placement | None) -> str:
        """Return no code."""
        return ""

    def lower(self, stage: StageVariable, count: int) -> str:
        """Return the change of the minimum in words."""
        fewer = plural(count, "stage")
        return f"lower the minimum of `{stage.name}` from {stage.minimum} to {fewer}"

    def fewer_warps(self, role: RoleRequest, count: int) -> Change | None:
        """Return the change in words; whether the role can run so is up to its contract."""
        text = (
            f"run `{role.name}` on {plural(count, 'warp')} instead of {role.warps}, "
            "if its contract divides the work so"
        )
        return Change(text, with_role(self.problem, replace(role, warps=count)))

    def others(self) -> Iterator[Change]:
        """Yield nothing."""
        yield from ()


def with_role(problem: PlacementProblem, role: RoleRequest) -> PlacementProblem:
    """Return the problem with another request of the role of that name."""
    roles = tuple(role if other.name == role.name else other for other in problem.roles)
    return replace(problem, roles=roles)


@dataclass
class Advisor:
    """Tries changes of one problem; what failed is kept, to be named where nothing helps."""

    problem: PlacementProblem
    rlimit: int
    changes: Changes
    _others: tuple[str, ...] | None = None
    _placed: dict[PlacementProblem, Placement | None] = field(default_factory=dict)

    def placed(self, problem: PlacementProblem) -> Placement | None:
        """Return a placement that passes its verification, if the budget is enough to find one.

        Several questions about a change need it, so each problem is solved once.
        """
        if problem not in self._placed:
            found = solve(problem, None, self.rlimit) if warps.shapes(problem) else None
            if not isinstance(found, Placement) or verify(problem, found):
                found = None
            self._placed[problem] = found
        return self._placed[problem]

    def refused(self, change: Change) -> str:
        """Return the codes of errors that come with a change, "" if it is accepted."""
        return self.changes.refused(change.problem, self.placed(change.problem))

    def shown(self, change: Change) -> str:
        """Return the text of an accepted change, and whether other errors remain after it."""
        return change.text if self.placed(change.problem) else change.text + REMAIN

    def others(self) -> tuple[str, ...]:
        """Return changes of the declaration after which everything is checked and placed."""
        if self._others is None:
            found = (c.text for c in self.changes.others() if self.placed(c.problem))
            self._others = tuple(text for text, _ in zip(found, range(MOST), strict=False))
        return self._others

    def helps(
        self, accepted: Iterable[str], tried: Iterable[str], otherwise: str
    ) -> tuple[str, ...]:
        """Return the changes to list, or that none fits, what was tried, and what is left to do."""
        listed = tuple(dict.fromkeys((*self.others(), *accepted)))[:MOST]
        if listed:
            return listed
        failed = "; ".join(dict.fromkeys(tried))
        return (f"no single change fits: {failed}", otherwise) if failed else (otherwise,)
