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
class OrderProblem(Problem):
    """An access that may be incomplete when another one, `distance` items later, starts."""

    first: Action
    second: Action
    distance: int

    @property
    def origins(self) -> tuple[Origin, ...]:
        return self.first.origin, self.second.origin


@dataclass(frozen=True)
class ItemNotAcquired(UseProblem):
    """PL0209: an item is used before it is acquired or waited for."""

    rank = 0


@dataclass(frozen=True)
class UnequalRates(Problem):
    """PL1002: a consumer consumes more or fewer items per period than are produced."""

    rank = 1
    producer: Origin
    consumer: Origin
    made: int
    taken: int

    @property
    def origins(self) -> tuple[Origin, ...]:
        return self.producer, self.consumer


@dataclass(frozen=True)
class WrongArrivals(CountProblem):
    """PL0201: a phase gets more or fewer arrivals than its barrier counts."""

    rank = 2
    item: int
    items: int  # per period


@dataclass(frozen=True)
class WrongBytes(UseProblem):
    """PL0202: expected and copied bytes of a phase differ."""

    rank = 10
    expected: int
    copied: int
    item: int


@dataclass(frozen=True)
class WrongThreads(CountProblem):
    """PL0302: the count of a named barrier is not the number of threads that arrive."""

    rank = 20
    found: int
    expected: int


@dataclass(frozen=True)
class UnequalBarrierUse(UseProblem):
    """PL0302: the roles of a named barrier use it unequally often per period."""

    rank = 21
    found: int
    expected: int


@dataclass(frozen=True)
class MixedGenerations(Problem):
    """PL0303: `second` can arrive for the next generation before `first` has for this one."""

    rank = 22
    first: Action
    second: Action

    @property
    def origins(self) -> tuple[Origin, ...]:
        return self.first.origin, self.second.origin


@dataclass(frozen=True)
class Deadlock(Problem):
    """PL0401: a cycle of waits."""

    rank = 30
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
    """PL0401: the last wait of a role is for arrivals that no role performs."""

    rank = 31
    found: int
    expected: int


@dataclass(frozen=True)
class MmaStillReads(OrderProblem):
    """PL0504: a wgmma group or tcgen05.mma may still read what is overwritten."""

    rank = 40


@dataclass(frozen=True)
class AccumulatorsInFlight(UseProblem):
    """PL0504: accumulators are used while wgmma groups may still write them."""

    rank = 40
    pending: int


@dataclass(frozen=True)
class MmaNotAwaited(UseProblem):
    """PL0504: a role exits with wgmma groups pending."""

    rank = 40
    pending: int


@dataclass(frozen=True)
class StoreStillReads(OrderProblem):
    """PL0505: a bulk store may still read what is overwritten."""

    rank = 41


@dataclass(frozen=True)
class StoreNotAwaited(UseProblem):
    """PL0505: a role exits with bulk stores pending."""

    rank = 41
    pending: int


@dataclass(frozen=True)
class TensorMemoryOverlap(OrderProblem):
    """PL0509: an access of tensor memory may be incomplete when another one starts."""

    rank = 41


@dataclass(frozen=True)
class TensorLoadInFlight(UseProblem):
    """PL0509: registers are used that tcgen05.ld may still fill."""

    rank = 41
    pending: int


@dataclass(frozen=True)
class TensorAccessNotAwaited(UseProblem):
    """PL0509: a role exits while its tcgen05.ld or .st may be incomplete."""

    rank = 41
    pending: int


@dataclass(frozen=True)
class UnwrittenRead(UseProblem):
    """PL0503: data is read that no operation writes."""

    rank = 42


@dataclass(frozen=True)
class PhaseAliasing(UseProblem):
    """PL0203: a wait or an arrival can be about another phase of its barrier."""

    rank = 43
    lapped: bool = False  # the next phase may complete before the wait sees its own


@dataclass(frozen=True)
class ReversedOrder(OrderProblem):
    """PL0503: two accesses of one stage are always in the reverse order."""

    rank = 44


@dataclass(frozen=True)
class NoOrder(OrderProblem):
    """PL0501: two accesses of one stage are not ordered."""

    rank = 45


@dataclass(frozen=True)
class NoProxyFence(OrderProblem):
    """PL0502: an asynchronous access follows a generic one without a proxy fence."""

    rank = 46


@dataclass(frozen=True)
class NoTensorFence(OrderProblem):
    """PL0509: accesses of tensor memory are ordered by barriers, but without tcgen05.fence."""

    rank = 46
    after: bool  # the fence::after_thread_sync is missing, else the fence::before_thread_sync
