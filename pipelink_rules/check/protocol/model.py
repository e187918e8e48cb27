"""Model of a protocol: the actions of all roles on barriers and memories, in program order.

A composition is a program reduced to its protocol for given stage counts and work tiles.  Every
process (a role, or a representative part of one) repeats its `period` forever; period t shifts the
items of an object that moves P items per period by P * t.  Item i of an object with S stages lives
in stage i mod S; an mbarrier completes it in phase i div S.

    producer   WAIT empty i-S   ARRIVE full i   COPY ring i
    consumer   WAIT full i      MMA ring i      AWAIT mma 1   ARRIVE empty i-1

Items below 0 do not exist: waiting for one returns immediately, as on a fresh mbarrier (PTX ISA,
mbarrier.test_wait: the phase before the first counts as complete).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pipelink_rules.model.operation import Operation
from pipelink_rules.model.source_span import Span

# In the names of objects of the other CTAs of a cluster.  All CTAs do the same, so what happens to
# the objects of the first one happens to all, and only those are analyzed.
ELSEWHERE = "@"


class Kind(StrEnum):
    """What an action does.  The comments say what its target is."""

    # a barrier
    WAIT = "wait"  # until phase `item` is complete
    ARRIVE = "arrive"  # `amount` arrivals on phase `item`; expects `bytes`
    # a memory
    COPY = "copy"  # asynchronous write of `item`; completes `bytes` on `barrier`
    READ = "read"  # generic proxy
    WRITE = "write"
    MMA = "mma"  # one committed wgmma group reads `item` (asynchronous proxy)
    STORE = "store"  # one committed bulk store group reads it (asynchronous proxy)
    TENSOR_MMA = "tensor mma"  # tcgen05.mma reads `item` of a ring (asynchronous proxy)
    # a memory in tensor memory; all are asynchronous (PTX ISA, tcgen05 consistency model)
    ACCUMULATE = "accumulate"  # the same tcgen05.mma adds to `item`
    TENSOR_LOAD = "tensor load"  # tcgen05.ld
    TENSOR_STORE = "tensor store"  # tcgen05.st
    # a barrier
    TENSOR_COMMIT = "tensor commit"  # `amount` arrivals on phase `item` after the mma before it
    # MMA, STORE, TENSOR_LOAD or TENSOR_STORE
    AWAIT = "await"  # until at most `amount` groups of that kind are pending
    # nothing
    FENCE = "fence"  # between the generic and the asynchronous proxy
    BEFORE = "before"  # tcgen05.fence::before_thread_sync
    AFTER = "after"  # tcgen05.fence::after_thread_sync
    # a named barrier
    SIGNAL = "signal"  # `amount` threads arrive at generation `item`
    MEET = "meet"  # wait for it
    # a register port
    TOUCH = "touch"  # its accumulators are used while at most `amount` wgmma groups are pending


SOME = 1 << 30  # `amount` of a touch of registers that need not be those of pending groups
WRITES = (Kind.COPY, Kind.WRITE, Kind.ACCUMULATE, Kind.TENSOR_STORE)
READS = (Kind.READ, Kind.MMA, Kind.STORE, Kind.TENSOR_MMA, Kind.TENSOR_LOAD)
WAITS = (Kind.WAIT, Kind.MEET)
ARRIVALS = (Kind.ARRIVE, Kind.TENSOR_COMMIT)
ASYNC_PROXY = (Kind.COPY, Kind.MMA, Kind.STORE, Kind.TENSOR_MMA)
IN_TENSOR_MEMORY = (Kind.ACCUMULATE, Kind.TENSOR_LOAD, Kind.TENSOR_STORE)

Position = tuple[int, int]  # process, actions since its period 0 began

UNKNOWN = -1  # bytes of a copy whose size depends on the work tile


class Origin(NamedTuple):
    """The clause of a contract that an action comes from."""

    instance: str = ""
    role: str = ""
    text: str = ""  # "release ab lag 1"
    span: Span | None = None
    name: str = ""  # port, buffer or named barrier of the component
    operation: Operation | None = None  # None: what the glue does at a handover

    @property
    def clause(self) -> str:
        """Return "`release ab lag 1` of `mma.mma`"."""
        return f"`{self.text}` of `{self.owner}`"

    @property
    def verb(self) -> str:
        """Return the verb of the operation, if it is one."""
        return self.operation.verb if self.operation else ""

    @property
    def end(self) -> tuple[str, str]:
        """Return (instance, port)."""
        return self.instance, self.name

    @property
    def owner(self) -> str:
        """Return instance and role: `mma.mma`."""
        return f"{self.instance}.{self.role}"


class Action(NamedTuple):
    """One action of a process; the members of Kind define the meaning of the fields."""

    kind: str
    target: str = ""
    item: int = 0
    amount: int = 1
    bytes: int = 0
    barrier: str = ""
    origin: Origin = Origin()


def positions_of(actions: Iterable[Action], kind: str) -> list[int]:
    """Return the positions of the actions of a kind."""
    return [position for position, action in enumerate(actions) if action.kind == kind]


class Process(NamedTuple):
    """Warps that act as one: a role, one of its warpgroups, or one of two representatives."""

    name: str
    period: tuple[Action, ...]
    prologue: tuple[Action, ...] = ()
    epilogue: tuple[Action, ...] = ()


class Barrier(NamedTuple):
    """An array of mbarriers, one per stage."""

    stages: int
    arrivals: int  # that complete a phase
    items: int  # per period


class Memory(NamedTuple):
    """An array of equal slices of memory, used in rotation."""

    stages: int
    items: int  # per period


class Named(NamedTuple):
    """A hardware named barrier."""

    threads: int
    generations: int  # per period


@dataclass(frozen=True)
class Composition:
    """All processes and objects.  `finite`: the periods run once and items are absolute."""

    barriers: dict[str, Barrier]
    memories: dict[str, Memory]
    named: dict[str, Named]
    processes: tuple[Process, ...]
    finite: bool = False

    def actions(self) -> Iterator[Action]:
        """Yield the actions of the periods of all processes."""
        for process in self.processes:
            yield from process.period

    def per_period(self, action: Action) -> int:
        """Return the items (or generations) per period of the target of an action."""
        if action.kind == Kind.WAIT or action.kind in ARRIVALS:
            return self.barriers[action.target].items
        if action.kind in WRITES or action.kind in READS:
            return self.memories[action.target].items
        if action.kind in (Kind.SIGNAL, Kind.MEET):
            return self.named[action.target].generations
        return 0


def unroll(composition: Composition, periods: int) -> Composition:
    """Return the run of `periods` periods with prologue and epilogue; items become absolute."""
    processes = []
    for process in composition.processes:
        actions = list(process.prologue)
        steps = [composition.per_period(action) for action in process.period]
        for period in range(periods):
            actions += [
                action._replace(item=action.item + step * period) if step else action
                for action, step in zip(process.period, steps, strict=True)
            ]
        for action in process.epilogue:
            step = composition.per_period(action)
            actions.append(action._replace(item=action.item + step * (periods - 1)))
        processes.append(Process(process.name, tuple(actions)))
    return Composition(
        composition.barriers, composition.memories, composition.named, tuple(processes), True
    )
