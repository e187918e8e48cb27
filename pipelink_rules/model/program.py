"""A megakernel: as declared (MegakernelSpec) and as resolved (Program)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from pipelink_rules.model.contract import Port
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant

# keyword -> ((instance, port), ...)
Bindings = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
CLUSTER_MOST = 16  # CTAs of a cluster on any GPU
SHARES_MOST = 256  # of a hand-over, one a warpgroup; no SM holds a tenth of it
CLUSTER_BUILD = "_cluster"  # ends the names of runtimes for kernels whose CTAs form clusters
RUNTIMES = ("release", "watchdog", "trace", "jitter", "record")  # builds of the device runtime


def runtime_build(runtime: str, cluster: tuple[int, int, int]) -> str:
    """The object of a runtime that kernels of such a cluster are linked with."""
    return runtime + (CLUSTER_BUILD if cluster != (1, 1, 1) else "")


@dataclass(frozen=True)
class InstanceSpec:
    """One line of `instances=`: a component with (some of) its parameters."""

    name: str
    label: str  # "//package:component"
    arguments: tuple[tuple[str, int | str], ...] = ()
    span: Span | None = None


@dataclass(frozen=True)
class ConnectionSpec:
    """One entry of `connect=`: an in port and the out port that writes it."""

    consumer: str  # "instance.port"
    producer: str
    span: Span | None = None


@dataclass(frozen=True)
class MegakernelSpec:
    """A megakernel as declared in an SConscript; `<name>.spec.json` is its file."""

    FORMATS: ClassVar[tuple[str, ...]] = ("spec",)

    name: str
    instances: tuple[InstanceSpec, ...]
    connect: tuple[ConnectionSpec, ...] = ()
    tensors: tuple[tuple[str, tuple[str, ...]], ...] = ()  # launcher keyword -> global ports
    scalars: tuple[tuple[str, tuple[str, ...]], ...] = ()  # launcher keyword -> scalar ports
    transfers: tuple[tuple[str, str], ...] = ()  # consumer port -> requested transfer kind
    stages: tuple[tuple[str, int], ...] = ()  # "instance.port" of a ring producer -> fixed stages
    warps: tuple[tuple[str, int], ...] = ()  # role name ("instance" or "instance.role") -> warps
    archs: tuple[str, ...] = ("sm_90a",)
    occupancy: int = 1  # CTAs per SM
    cluster: tuple[int, int, int] = (1, 1, 1)
    runtime: str = "release"  # which build of the device runtime is linked
    summary: str = ""
    allow: tuple[tuple[str, str], ...] = ()  # code of a finding -> why it does not stop this link
    span: Span | None = None
    spans: tuple[tuple[str, Span], ...] = ()  # "tensors/a" -> place, for diagnostics

    def where(self, *clause: str) -> Span | None:
        """The place of `section/key/...`, else of its closest written parent, else of the call."""
        spans = dict(self.spans)
        for depth in range(len(clause), 0, -1):
            if "/".join(clause[:depth]) in spans:
                return spans["/".join(clause[:depth])]
        return self.span


@dataclass(frozen=True)
class Instance:
    """A variant in a megakernel."""

    name: str
    label: str
    variant: Variant
    span: Span | None = None


# Transfer kinds.
RING = "ring"  # shared ring -> shared ring: same memory, full/empty mbarriers, nothing generated
MULTICAST = "multicast"  # a ring with members of which every CTA of a group loads a slice for all
FUSED = "fused"  # registers -> registers in the same warps: passed by reference
TENSOR_MEMORY = "tensor_memory"  # tensor memory -> tensor memory: same columns, mbarriers as a ring
HANDOVER = "handover"  # registers -> registers of other warps, through a generated shared ring
SCRATCH = "scratch"  # scratch -> scratch: the same global memory, owned by the launcher
COUNTER = "counter"  # signals -> waits: the same counters in global memory
TRANSFERS = (RING, MULTICAST, FUSED, TENSOR_MEMORY, HANDOVER, SCRATCH, COUNTER)
ACROSS_ITEMS = (SCRATCH, COUNTER)  # they connect work tiles, not the roles of one work tile


@dataclass(frozen=True)
class Connection:
    """Two ports joined, and the transfer chosen for them."""

    producer: tuple[str, str]  # (instance, port)
    consumer: tuple[str, str]
    transfer: str
    span: Span | None = None

    @property
    def name(self) -> str:
        """`load.ab -> mma.ab`, as in messages and maps."""
        return f"{'.'.join(self.producer)} -> {'.'.join(self.consumer)}"


@dataclass(frozen=True)
class Multicast:
    """A member of a ring's item that `size` CTAs of the cluster need alike.

    The CTAs of a group are `stride` ranks apart; each copies `rows` rows of the member (`bytes`
    bytes) and the hardware writes them to the same place in every CTA of the group.
    """

    member: str
    tensor: str  # global port of the producer that it is copied from
    axes: tuple[str, ...]  # of the cluster, that the group lies along
    size: int
    stride: int
    rows: int
    bytes: int

    def __post_init__(self) -> None:
        if not (1 < self.size <= CLUSTER_MOST and 1 <= self.stride <= CLUSTER_MOST):
            raise ValueError(f"a group of {self.size} CTAs, {self.stride} apart")
        if self.rows < 1 or self.bytes % self.rows:
            raise ValueError(f"{self.rows} rows of {self.bytes} bytes")

    def group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks of the CTAs that receive the copies of the CTA of this rank."""
        return tuple(sorted(self.onwards(rank)))

    def onwards(self, rank: int) -> tuple[int, ...]:
        """Return the same ranks in cyclic order, starting with this CTA."""
        mine = rank // self.stride % self.size
        places = ((mine + number) % self.size for number in range(self.size))
        return tuple(rank + (place - mine) * self.stride for place in places)


@dataclass(frozen=True)
class Channel:
    """A ring of the program: one producer port, its consumers, its barriers.

    Channels of kind RING come from a producer's ring port.  Channels of kind HANDOVER are inserted
    by the linker: `shares` parallel rings with one stage count, each with separate full and empty
    mbarriers.  A stage holds the accumulators of one work tile, those of warpgroup w at byte
    w * stage_bytes / shares.  Channels of kind TENSOR_MEMORY have no bytes of shared memory besides
    their mbarriers; a stage is `columns` columns of tensor memory.
    """

    name: str  # "load.ab", or "mma.acc>bias.acc" for a hand-over
    kind: str  # RING, TENSOR_MEMORY or HANDOVER
    producer: tuple[str, str]
    consumers: tuple[tuple[str, str], ...]
    stage_bytes: int
    align: int
    minimum: int  # stages
    maximum: int
    full_arrivals: int  # mbarrier count of full[stage]
    empty_arrivals: int  # mbarrier count of empty[stage]: of all CTAs that copies reach
    shares: int = 1  # HANDOVER: warpgroup fragments in a stage
    member_offsets: tuple[tuple[str, int], ...] = ()  # byte offset of each member in a stage
    columns: int = 0  # TENSOR_MEMORY: of a stage, 32 bits each
    multicast: tuple[Multicast, ...] = ()  # RING: members that CTAs of the cluster share
    span: Span | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.shares <= SHARES_MOST:
            raise ValueError(f"{self.shares} shares of a hand-over")

    def reach(self, rank: int) -> tuple[int, ...]:
        """The CTAs whose stages the copies of this CTA write: those that release to it."""
        return tuple(sorted({rank, *(cta for item in self.multicast for cta in item.group(rank))}))


@dataclass(frozen=True)
class ProgramRole:
    """A set of warps of the megakernel and the entries it calls, in order, per work tile."""

    name: str
    members: tuple[tuple[str, str], ...]  # (instance, role), in call order
    warps: int  # warps it runs on
    calls: int  # calls of each entry per work tile (declared warps / warps)
    warpgroup: bool  # must start at a warpgroup (wgmma, setmaxnreg of its own)
    minimum: int  # registers: largest minimum of its members, with fragments that wait meanwhile
    want: int
    entry: int  # entry-register floor


@dataclass(frozen=True)
class Program:
    """A megakernel with every contract resolved for one target: what check and place read."""

    FORMATS: ClassVar[tuple[str, ...]] = ("program", "plan")

    name: str
    target: str
    instances: tuple[Instance, ...]  # sorted by name
    connections: tuple[Connection, ...]
    channels: tuple[Channel, ...]
    roles: tuple[ProgramRole, ...]
    scheduler: tuple[str, str]  # (instance, role) that computes the work tile
    tensors: Bindings
    scalars: Bindings
    symbols: tuple[str, ...]  # launch-time integers, unified by name, sorted
    occupancy: int
    cluster: tuple[int, int, int]
    runtime: str
    spec: MegakernelSpec

    def __post_init__(self) -> None:
        size = math.prod(self.cluster)
        if min(self.cluster) < 1 or size > CLUSTER_MOST:
            raise ValueError(f"a cluster of {size} CTAs")

    def port(self, end: tuple[str, str]) -> Port:
        """The port of an end (instance, port); KeyError where there is none."""
        return self.instance(end[0]).variant.contract.port(end[1])

    def instance(self, name: str) -> Instance:
        """The instance of that name; KeyError where there is none."""
        return {item.name: item for item in self.instances}[name]

    def channel_ends(self) -> dict[tuple[str, str], Channel]:
        """(instance, port) -> the channel it is an end of, for every producer and consumer."""
        return {
            end: channel
            for channel in self.channels
            for end in (channel.producer, *channel.consumers)
        }
