"""A found problem with the look-ups of its program: what the messages of a protocol share."""

from dataclasses import dataclass
from typing import Unpack

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found, P
from pipelink_rules.check.protocol.model import READS, Kind, Origin
from pipelink_rules.check.protocol.protocol_problems import OrderProblem
from pipelink_rules.diagnostics.diagnostic import Clauses, Diagnostic, Location, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.contract import NamedBarrier, Role
from pipelink_rules.model.program import HANDOVER, TENSOR_MEMORY, Channel
from pipelink_rules.model.source_span import Span

_DOES: dict[str, str] = {
    Kind.COPY: "is copied",
    Kind.WRITE: "is written",
    Kind.READ: "is read",
    Kind.MMA: "is read by wgmma",
    Kind.STORE: "is read by a bulk store",
    Kind.TENSOR_MMA: "is read by tcgen05.mma",
    Kind.ACCUMULATE: "is accumulated into",
    Kind.TENSOR_LOAD: "is loaded",
    Kind.TENSOR_STORE: "is stored to",
}


@dataclass(frozen=True)
class Case(Found[P]):
    """A problem, where it was found, and the program that it is in."""

    index: ProgramIndex

    @property
    def channel(self) -> Channel | None:
        """Return the channel whose barrier or memory is the target of the problem."""
        return self.index.protocol.channel_of.get(self.problem.target)

    @property
    def ring(self) -> Channel:
        """Return the channel of a problem whose target is always one of a channel."""
        return self.index.protocol.channel_of[self.problem.target]

    @property
    def subject(self) -> str:
        """Return the connection of a barrier or memory, else the buffer or named barrier."""
        origins = [origin for origin in self.problem.origins if origin]
        if self.channel is not None:
            return self.index.connection(self.channel, *(origin.end for origin in origins)).name
        return qualified_name(origins[0].end) if origins else self.problem.target

    def notes(self, *targets: str) -> tuple[str, ...]:
        """Return the stages and work tiles of the case; nothing if there is only one case."""
        parts = []
        for target in targets:
            channel = self.index.protocol.channel_of.get(target)
            if channel is not None and channel.minimum != channel.maximum:
                part = f"{plural(self.stages[channel.name], 'stage')} in `{channel.name}`"
                if part not in parts:
                    parts.append(part)
        loops = self.index.protocol.loops
        fields = [
            ", ".join(f"{name}={value}" for name, value in work.items() if name in loops)
            for work in self.work
        ]
        if any(fields):
            parts.append(", then ".join(fields))
        return ("found with " + ", ".join(parts),) if parts else ()

    def memory(self, origin: Origin) -> str:
        """Describe the target: `ring ab`, `buffer staging`, `the handover of acc`."""
        if self.channel is None:
            return f"buffer `{origin.name}`"
        kinds = {HANDOVER: "the handover of", TENSOR_MEMORY: "tensor memory"}
        return f"{kinds.get(self.channel.kind, 'ring')} `{qualified_name(self.channel.producer)}`"

    def role(self, origin: Origin) -> Role:
        """Return the role that a clause belongs to."""
        return self.index.contracts[origin.instance].role(origin.role)

    def named_barrier(self, origin: Origin) -> NamedBarrier:
        """Return the named barrier that a clause is about."""
        barriers = self.index.contracts[origin.instance].named_barriers
        return next(barrier for barrier in barriers if barrier.name == origin.name)

    def report(self, message: str, *locations: Location, **clauses: Unpack[Clauses]) -> Diagnostic:
        """Return the diagnostic; by default with `notes()` and the subject of the problem."""
        clauses.setdefault("notes", self.notes())
        clauses.setdefault("subject", self.subject)
        return report(self.problem.code, message, *locations, **clauses)


def pair(
    case: Case[OrderProblem],
    message: str,
    says: tuple[str, str] = ("must complete: the item {} here", "before {} {} here"),
    **clauses: Unpack[Clauses],
) -> Diagnostic:
    """Return the diagnostic of an access that must complete before another one starts."""
    problem = case.problem
    first, second = problem.first, problem.second
    if not problem.distance:
        later = "the same item"
    elif case.channel is not None:
        later = f"the item that reuses the stage, {plural(problem.distance, 'item')} later,"
    else:
        later = "the next use of the stage"
    clauses["notes"] = (*clauses.get("notes", ()), *case.notes(problem.target))
    clauses["expected"] = f"{first.origin.clause} before {second.origin.clause}"
    return case.report(
        message,
        (first.origin.span, says[0].format(_DOES[first.kind])),
        (second.origin.span, says[1].format(later, _DOES[second.kind])),
        **clauses,
    )


def damage(problem: OrderProblem) -> str:
    """Return the symptom of two accesses that are not ordered."""
    first, second = problem.first.origin, problem.second.origin
    if not problem.distance:
        return f"`{second.instance}` reads data of an earlier item: intermittent wrong results"
    use = "reads" if problem.first.kind in READS else "writes"
    return (
        f"`{second.text}` overwrites the stage while `{first.text}` {use} it: "
        "intermittent wrong results"
    )


def file_of(span: Span | None) -> str:
    """Return ` in <file>`, or ""."""
    return f" in {span.file}" if span else ""
