"""Defects of a protocol as data, one class each; messages_*.py turn them into diagnostics."""

from dataclasses import dataclass
from typing import ClassVar

from pipelink_rules.check.protocol.model import Action, Origin

Edge = tuple[int, int, int]  # earlier node, later node, distance


@dataclass(frozen=True)
class Problem:
    """One defect of a composition.

    Problems whose ranks share the tens digit are consequences of each other: of these, a connection
    reports only the one with the lowest rank.
    """

    code: ClassVar[str]
    rank: ClassVar[int]
    target: str  # barrier, memory, named barrier or channel

    @property
    def origins(self) -> tuple[Origin | None, ...]:
        """The clauses that are involved."""
        return ()

    @property
    def key(self) -> tuple[object, ...]:
        """What distinguishes it from other defects of the program."""
        return type(self), self.target, *self.origins


@dataclass(frozen=True)
class UseProblem(Problem):
    """A defect of one action."""

    action: Action

    @property
    def origins(self) -> tuple[Origin, ...]:
        return (self.action.origin,)


@dataclass(frozen=True)
class CountProblem(Problem):
    """A barrier with a wrong count; `action` is one of its arrivals, if it has any."""

    action: Action | None

    @property
    def origins(self) -> tuple[Origin | None, ...]:
        return (self.action.origin if self.action else None,)


@dataclass(frozen=True)
class PendingProblem(UseProblem):
    """An action while async groups are pending that must be complete."""

    pending: int


@dataclass(frozen=True)
class PairProblem(Problem):
    """A defect of two actions."""

    first: Action
    second: Action

    @property
    def origins(self) -> tuple[Origin, ...]:
        return self.first.origin, self.second.origin


@dataclass(frozen=True)
class OrderProblem(PairProblem):
    """An access that may be incomplete when another one, `distance` items later, starts."""

    distance: int


class ItemNotAcquired(UseProblem):
    """An item is used before it is acquired or waited for."""

    code, rank = "PL0209", 0


@dataclass(frozen=True)
class UnequalRates(Problem):
    """A consumer consumes more or fewer items per period than are produced."""

    code, rank = "PL1002", 1
    producer: Origin
    consumer: Origin
    made: int
    taken: int

    @property
    def origins(self) -> tuple[Origin, ...]:
        return self.producer, self.consumer


@dataclass(frozen=True)
class WrongArrivals(CountProblem):
    """A phase gets more or fewer arrivals than its barrier counts."""

    code, rank = "PL0201", 2
    item: int
    items: int  # per period


@dataclass(frozen=True)
class WrongBytes(UseProblem):
    """Expected and copied bytes of a phase differ."""

    code, rank = "PL0202", 10
    expected: int
    copied: int
    item: int


@dataclass(frozen=True)
class WrongThreads(CountProblem):
    """The count of a named barrier is not the number of threads that arrive."""

    code, rank = "PL0302", 20
    found: int
    expected: int


@dataclass(frozen=True)
class UnequalBarrierUse(UseProblem):
    """The roles of a named barrier use it unequally often per period."""

    code, rank = "PL0302", 21
    found: int
    expected: int


class MixedGenerations(PairProblem):
    """`second` can arrive for the next generation before `first` has for this one."""

    code, rank = "PL0303", 22


@dataclass(frozen=True)
class Deadlock(Problem):
    """A cycle of waits."""

    code, rank = "PL0401", 30
    targets: tuple[str, ...]  # all barriers on the cycle
    cycle: tuple[Edge, ...]  # of the event graph

    @property
    def distance(self) -> int:
        """Periods that the cycle spans."""
        return sum(distance for _, _, distance in self.cycle)

    @property
    def key(self) -> tuple[object, ...]:
        return type(self), self.targets


@dataclass(frozen=True)
class StarvedWait(UseProblem):
    """The last wait of a role is for arrivals that no role performs."""

    code, rank = "PL0401", 31
    found: int
    expected: int


class MmaStillReads(OrderProblem):
    """A wgmma group or tcgen05.mma may still read what is overwritten."""

    code, rank = "PL0504", 40


class AccumulatorsInFlight(PendingProblem):
    """Accumulators are used while wgmma groups may still write them."""

    code, rank = "PL0504", 40


class MmaNotAwaited(PendingProblem):
    """A role exits with wgmma groups pending."""

    code, rank = "PL0504", 40


class StoreStillReads(OrderProblem):
    """A bulk store may still read what is overwritten."""

    code, rank = "PL0505", 41


class StoreNotAwaited(PendingProblem):
    """A role exits with bulk stores pending."""

    code, rank = "PL0505", 41


class TensorMemoryOverlap(OrderProblem):
    """An access of tensor memory may be incomplete when another one starts."""

    code, rank = "PL0509", 41


class TensorLoadInFlight(PendingProblem):
    """Registers are used that tcgen05.ld may still fill."""

    code, rank = "PL0509", 41


class TensorAccessNotAwaited(PendingProblem):
    """A role exits while its tcgen05.ld or .st may be incomplete."""

    code, rank = "PL0509", 41


class UnwrittenRead(UseProblem):
    """Data is read that no operation writes."""

    code, rank = "PL0503", 42


@dataclass(frozen=True)
class PhaseAliasing(UseProblem):
    """A wait or an arrival can be about another phase of its barrier."""

    code, rank = "PL0203", 43
    lapped: bool = False  # the next phase may complete before the wait sees its own


class ReversedOrder(OrderProblem):
    """Two accesses of one stage are always in the reverse order."""

    code, rank = "PL0503", 44


class NoOrder(OrderProblem):
    """Two accesses of one stage are not ordered."""

    code, rank = "PL0501", 45


class NoProxyFence(OrderProblem):
    """An asynchronous access follows a generic one without a proxy fence."""

    code, rank = "PL0502", 46


@dataclass(frozen=True)
class NoTensorFence(OrderProblem):
    """Accesses of tensor memory are ordered by barriers, but without tcgen05.fence."""

    code, rank = "PL0509", 46
    after: bool  # the fence::after_thread_sync is missing, else the fence::before_thread_sync
