"""The joint placement of an SM: the problem as numbers, and its solution."""

from dataclasses import dataclass
from typing import ClassVar

from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import Target

BARRIER_TABLE = "barriers"  # the shared item that holds every mbarrier; the placement makes it


def entry_registers(target: Target, warps: int, occupancy: int = 1) -> int:
    """Registers per thread at kernel entry when `occupancy` CTAs of `warps` warps share an SM.

    What ptxas derives from the launch bounds: a scheduler owns a quarter of the register file and
    holds ceil(warps * occupancy / 4) warps; the share is rounded down to 8 (design: register
    rules; tests/live/test_register_rules.py sweeps it).
    """
    held = -(-warps * occupancy // 4)
    share = target.registers_sm // 4 // (32 * held)
    return min(target.registers_thread, share // 8 * 8)


@dataclass(frozen=True)
class SharedAllocation:
    """A rectangle of shared memory: bytes x lifetimes.

    Two allocations may share bytes only if their lifetimes do not overlap.
    """

    name: str  # "load.ab" (a channel) or "store.staging" (a buffer); never "barriers"
    bytes: int  # per stage where `channel` is set
    align: int
    lifetimes: int  # bit mask over PlacementProblem.lifetimes
    channel: str = ""  # the stage variable that multiplies `bytes`
    span: Span | None = None


@dataclass(frozen=True)
class TensorMemoryRequest:
    """Columns of tensor memory, all 128 lanes of them, that a channel needs per stage.

    Two requests may share columns only if their lifetimes do not overlap.
    """

    name: str
    columns: int  # per stage where `channel` is set
    lifetimes: int
    channel: str = ""  # the stage variable that multiplies `columns`
    span: Span | None = None


@dataclass(frozen=True)
class StageVariable:
    """The stage count of a channel; lower `priority` is maximized first."""

    name: str
    minimum: int
    maximum: int
    priority: int = 0
    span: Span | None = None


@dataclass(frozen=True)
class RoleRequest:
    """The warps and registers that a program role requires."""

    name: str
    warps: int
    warpgroup: bool
    minimum: int  # registers per thread without spills
    want: int
    entry: int  # smallest entry register count that compiles
    span: Span | None = None


@dataclass(frozen=True)
class BarrierRequest:
    """A named barrier that needs an id."""

    name: str  # "instance.barrier"
    lifetimes: int
    span: Span | None = None


@dataclass(frozen=True)
class PlacementProblem:
    """The input of placement for one megakernel and target."""

    FORMATS: ClassVar[tuple[str, ...]] = ("problem",)

    name: str
    target: str
    occupancy: int
    lifetimes: tuple[str, ...]
    items: tuple[SharedAllocation, ...]
    stages: tuple[StageVariable, ...]
    roles: tuple[RoleRequest, ...]
    barriers: tuple[BarrierRequest, ...]
    mbarriers_per_stage: tuple[tuple[str, int], ...]  # channel -> mbarriers per stage (2 * shares)
    mbarriers_fixed: int = 0
    reserved_barriers: tuple[int, ...] = (0,)
    tensor: tuple[TensorMemoryRequest, ...] = ()
    span: Span | None = None  # of the megakernel's declaration


@dataclass(frozen=True)
class Warpgroup:
    """Four warps and their registers."""

    index: int
    roles: tuple[str, ...]
    registers: int  # setmaxnreg value; equal to the entry registers where none is emitted


@dataclass(frozen=True)
class Placement:
    """The solution of a placement problem; `<name>.placement.json` is its file."""

    FORMATS: ClassVar[tuple[str, ...]] = ("placement",)

    name: str
    target: str
    stages: tuple[tuple[str, int], ...]  # channel -> stages
    offsets: tuple[tuple[str, int], ...]  # item -> byte offset from the 1 KiB aligned shared base
    # channel -> byte offset (same base) of its mbarriers, 8 bytes each: per share full[stages], and
    # then empty[stages]; "fixed" -> those of mbarriers_fixed.  All lie in the item "barriers".
    barriers: tuple[tuple[str, int], ...]
    shared_bytes: int  # dynamic shared memory of the launch
    bound_bytes: int  # max live bytes of a phase: proves the height where equal
    named: tuple[tuple[str, int], ...]  # named barrier -> id
    warps: tuple[tuple[str, int], ...]  # role -> first warp
    threads: int
    entry_registers: int
    setmaxnreg: bool
    warpgroups: tuple[Warpgroup, ...]
    occupancy: int
    proved: bool  # the stage counts are proved best
    solver: str  # "z3 5.4.1"
    notes: tuple[str, ...] = ()
    kept: bool = False  # taken over from the previous placement (stability)
    columns: tuple[tuple[str, int], ...] = ()  # tensor need -> first column of the allocation
    tensor_columns: int = 0  # allocated: a power of two from 32 up, 0 where there is no need

    def stage_count(self, channel: str) -> int:
        """Stages of a channel; KeyError where there is none."""
        return dict(self.stages)[channel]

    def offset(self, item: str) -> int:
        """Byte offset of a shared item; KeyError where there is none."""
        return dict(self.offsets)[item]

    def first_column(self, need: str) -> int:
        """First column of tensor memory of a need; KeyError where there is none."""
        return dict(self.columns)[need]

    def first_warp(self, role: str) -> int:
        """First warp of a role; KeyError where there is none."""
        return dict(self.warps)[role]

    def registers(self, role: str) -> int:
        """Registers per thread of a role; every warpgroup it touches has the same."""
        given = (group.registers for group in self.warpgroups if role in group.roles)
        return next(given, self.entry_registers)
