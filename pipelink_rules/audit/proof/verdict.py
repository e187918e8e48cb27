"""The outcome of a proof: proved, a difference with a counterexample, or why not proved."""

from dataclasses import dataclass, field

from pipelink_rules.model.contract import Operation
from pipelink_rules.solver.queries import Model
from pipelink_rules.solver.terms import Term


class UnprovedError(Exception):
    """The proof does not go through; the text is the reason."""


class EndlessError(UnprovedError):
    """A loop that nothing known ends: it polls memory, or counts by what is read there."""


class DeadPathError(Exception):
    """A path whose conditions contradict each other."""


@dataclass(frozen=True)
class TileCase:
    """Work tiles that break a guarantee: sizes, and of each number and place in the cluster."""

    sizes: dict[str, int]
    tiles: tuple[tuple[int, tuple[int, ...]], ...]


class RefutedError(Exception):
    """Code and contract differ.

    model: values of the inputs for which they do.  abstract: seen only under a guessed relation of
    a loop, so the values may belong to no run.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        op: Operation | None = None,
        target: str = "",
        expected: str = "",
        found: str = "",
        model: Model | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.op, self.target = code, message, op, target
        self.expected, self.found, self.model = expected, found, model
        self.abstract = False
        self.unproved = ""  # the reason why it is no error, but the role is not proved
        self.elsewhere: Term | None = None  # whether another item of the ring is reached
        self.values: tuple[tuple[str, int], ...] = ()  # of the inputs, in the counterexample
        self.case: TileCase | None = None  # of a tile scheduler


@dataclass(frozen=True)
class Proof:
    """What was proved of one role, for the audit's report."""

    relations: tuple[str, ...] = ()  # of its loops
    accesses: int = 0  # memory accesses that were shown to be inside
    operations: int = 0
    questions: int = 0  # that went to the solver
    seconds: float = field(default=0.0, compare=False)
