"""The linked kernel: measurements of the cubin, operations of its roles, launcher metadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pipelink_rules.model.variant import RoleVerdict


@dataclass(frozen=True)
class ScriptOp:
    """One operation of the device runtime that a contract (or a transfer) requires."""

    verb: str  # "acquire", "wait", "copy", "release", "store wait", ...: model.recording.OPERATIONS
    site: int = 0  # of the manifest; 0 = an operation without a ring or named barrier
    value: str = ""  # its argument, an expression over symbols and fields; "" = any
    lag: int = 0  # release: items before the current one
    by_item: bool = False  # the cursor advances per work tile (a handover), not per operation
    text: str = ""  # "mma.mma: release ab lag 1 (file:line:column)"


@dataclass(frozen=True)
class ScriptLoop:
    """Operations repeated `count` times, an expression over symbols and fields."""

    count: str
    body: tuple[ScriptOp | ScriptLoop, ...]


@dataclass(frozen=True)
class RoleScript:
    """A set of warps of the megakernel and the operations of each of them."""

    name: str
    first_warp: int
    warps: int
    prologue: tuple[ScriptOp | ScriptLoop, ...] = ()
    body: tuple[ScriptOp | ScriptLoop, ...] = ()  # per work tile
    epilogue: tuple[ScriptOp | ScriptLoop, ...] = ()
    raw: tuple[str, ...] = ()  # ports whose operations do not pass the runtime: "load.ab"


@dataclass(frozen=True)
class Script:
    """A launch of a megakernel: CTA c processes the work tiles c, c + grid, c + 2 grid, ...

    In clusters all CTAs of cluster c process them, with the number of clusters for `grid`.
    """

    items: str  # number of work tiles, an expression over symbols
    fields: tuple[tuple[str, str], ...]  # work fields that are equal in all work tiles -> value
    roles: tuple[RoleScript, ...]
    cluster: int = 1  # CTAs
    varying: tuple[str, ...] = ()  # work fields that differ between work tiles


@dataclass(frozen=True)
class AllowedDiagnostics:
    """A finding that the declaration allows: the link was made in spite of it."""

    code: str
    message: str
    reason: str  # as written in allow=
    counterexample: tuple[str, ...] = field(default=(), compare=False)  # a shortest run into it


@dataclass(frozen=True)
class BarrierSite:
    """Equal uses of a named barrier in the machine code."""

    id: int  # -1 = in a register
    kind: str  # "sync", "arrive" or "reduce"
    threads: int  # 0 = all threads of the CTA, -1 = a number in a register
    sites: int


@dataclass(frozen=True)
class Audit:
    """Measurements of the linked cubin."""

    FORMATS: ClassVar[tuple[str, ...]] = ("audit",)

    entry: str
    registers: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    static_shared_bytes: int
    instructions: int
    calls: tuple[str, ...]  # targets of CALL, e.g. compiler slow paths
    setmaxnreg: tuple[int, ...]  # sorted multiset of USETMAXREG values
    barrier_ids: tuple[tuple[int, int], ...]  # (named barrier id, sites); -1 = id in a register
    region_registers: tuple[tuple[str, int], ...]  # program role -> highest register used
    text_sha256: str  # machine code of the entry, encodings included
    warnings: tuple[str, ...] = ()  # log lines with meaning (C7504, C7510, ...)
    pipelined_calls: tuple[str, ...] = ()  # targets of CALL while wgmma groups may be pending
    allowed: tuple[AllowedDiagnostics, ...] = ()  # differences from the plan that it may have
    barrier_sites: tuple[BarrierSite, ...] = ()  # sorted by id, kind and threads
    verdicts: tuple[RoleVerdict, ...] = ()  # of the audits of the objects


@dataclass(frozen=True)
class KernelParameter:
    """One parameter of the entry, in order.

    kind: "tensor_map" (128 bytes, 64-byte aligned), "pointer", "i32" (a symbol), "f32", "u32";
    "scratch" or "counters": the address of a piece of the workspace.
    """

    kind: str
    name: str  # launcher keyword, symbol, or piece of the workspace
    dtype: str = ""
    box: tuple[int, ...] = ()  # tensor_map: elements, slowest first
    swizzle: int = 0
    port: str = ""  # "instance.port", for messages
    ports: tuple[str, ...] = ()  # every "instance.port" that this parameter serves


@dataclass(frozen=True)
class TensorArgument:
    """A launcher keyword that takes an array."""

    name: str
    dtype: str
    shape: tuple[str, ...]  # expressions over symbols, slowest first
    direction: str  # "in", "out", or "inout" where one port reads and another writes it
    align: int  # bytes of the base pointer
    contiguous: bool = True


@dataclass(frozen=True)
class Workspace:
    """Global memory that the launcher owns: scratch memory, or an array of counters."""

    name: str  # "instance.port" of the end that gives it
    kind: str  # "scratch" or "counters"
    dtype: str
    count: str  # elements, an expression over symbols
    cleared: bool  # zero when a launch begins


@dataclass(frozen=True)
class Site:
    """An operation at which a role may wait; the watchdog reports its `number`."""

    number: int  # from 1
    instance: str
    role: str
    port: str  # port or named barrier of the component
    channel: str = ""  # ring or counters behind the port; empty for a named barrier
    stages: int = 0
    full_arrivals: int = 0  # arrivals that complete a full barrier of the channel
    empty_arrivals: int = 0  # arrivals that complete an empty barrier; threads of a named barrier


@dataclass(frozen=True)
class Manifest:
    """Everything `launch` needs; `<name>.manifest.json` is its file."""

    FORMATS: ClassVar[tuple[str, ...]] = ("manifest",)

    name: str
    target: str
    entry: str
    cubin: str  # file name, beside the manifest
    cubin_sha256: str
    threads: int
    shared_bytes: int
    occupancy: int
    cluster: tuple[int, int, int]
    grid: str  # expression over symbols, `sms` and `occupancy`: CTAs to launch
    parameters: tuple[KernelParameter, ...]
    tensors: tuple[TensorArgument, ...]
    scalars: tuple[tuple[str, str], ...]  # keyword -> dtype
    symbols: tuple[tuple[str, int, int, int], ...]  # (name, minimum, maximum, multiple_of)
    requires: tuple[tuple[str, str], ...]  # (precondition, who asks: "instance (file:line)")
    runs_on: tuple[int, int]
    runtime: str
    deterministic: bool
    sites: tuple[Site, ...] = ()  # instrumented runtimes: places that their reports name
    script: Script | None = None  # runtimes "trace" and "record": what the roles should do
    summary: str = ""
    allowed: tuple[AllowedDiagnostics, ...] = ()  # findings that this kernel was linked in spite of
    workspace: tuple[Workspace, ...] = ()
    coresident: bool = False  # CTAs wait for each other: all must be resident simultaneously
    report: tuple[tuple[str, str], ...] = field(default_factory=tuple)  # for tables: key -> value
    verdicts: tuple[RoleVerdict, ...] = ()  # what the audits say of each role


@dataclass(frozen=True)
class TwinBuild:
    """One way to make the kernel, as a result."""

    instructions: int
    registers: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int
    text_sha256: str


@dataclass(frozen=True)
class TwinReport:
    """`<name>.twin.json`: the linked kernel beside its twins."""

    FORMATS: ClassVar[tuple[str, ...]] = ("twin",)

    entry: str
    linked: TwinBuild
    lto: TwinBuild
    native: TwinBuild
    lto_identical: bool  # machine code, encodings included
    native_identical: bool
    lto_difference: str = ""  # the first one, in words
    native_difference: str = ""
