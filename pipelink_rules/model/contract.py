"""Nouns of a contract: parameters, ports, roles, buffers, work and the numerical contract."""

from dataclasses import dataclass

from pipelink_rules.model.operation import Operation as Operation
from pipelink_rules.model.operation import Repeat as Repeat
from pipelink_rules.model.source_span import Expr, Span

# dtype name -> (bytes, C++ type).  The only dtypes that ports, buffers and parameters may name.
DTYPES: dict[str, tuple[int, str]] = {
    "bf16": (2, "__nv_bfloat16"),
    "f16": (2, "__half"),
    "f32": (4, "float"),
    "i32": (4, "int32_t"),
    "u32": (4, "uint32_t"),
    "u8": (1, "uint8_t"),
}


PLACE_NAMES = ("trip", "warp")  # of `at`: turns of the innermost repeat, warp of the role
RINGS = ("ring", "tensor_memory")  # spaces of ports that have stages, cursors and mbarriers


@dataclass(frozen=True)
class Param:
    """A compile-time parameter."""

    name: str
    type: str  # "int" or "dtype"
    choices: tuple[int | str, ...] = ()  # `in:`; empty = any
    minimum: int | None = None
    maximum: int | None = None
    multiple_of: int | None = None
    default: int | str | None = None
    span: Span | None = None


@dataclass(frozen=True)
class Symbol:
    """A launch-time integer, inferred from tensor shapes by the launcher."""

    name: str
    minimum: int = 0
    maximum: int = 2**31 - 1
    multiple_of: int = 1
    span: Span | None = None


@dataclass(frozen=True)
class Layout:
    """A coordinate -> byte map: sum(coordinate * stride) * sizeof(dtype), then the swizzle.

    `strides` are in elements, one entry per mode of the shape; a mode may be nested: a tuple of
    (extent, stride) pairs, innermost first (CuTe's shape:stride).  Empty = row-major, contiguous.
    """

    strides: tuple[Expr | tuple[tuple[Expr, Expr], ...], ...] = ()
    swizzle: int = 0  # span in bytes: 0, 32, 64 or 128 (address bits 4..6 ^= bits 7..9)
    span: Span | None = None
    swizzle_by: Expr | None = None  # the span, where it depends on parameters: `bind` evaluates it


@dataclass(frozen=True)
class Member:
    """One tile of a ring item (or the one tile of another port)."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    layout: Layout = Layout()
    span: Span | None = None


@dataclass(frozen=True)
class TileAccess:
    """A global tensor reached through a tensor map: the box of one copy."""

    box: tuple[Expr, ...]  # in elements, same order as the shape (slowest first)
    swizzle: int = 0
    along: tuple[str, ...] | None = None  # work fields that coordinates depend on; None = any
    span: Span | None = None
    swizzle_by: Expr | None = None


@dataclass(frozen=True)
class Stages:
    """The range of stages from which placement chooses."""

    minimum: int = 1
    maximum: int = 8
    span: Span | None = None


@dataclass(frozen=True)
class Port:
    """A typed endpoint of a role, where data enters or leaves.

    space: "ring" (shared-memory ring), "tensor_memory" (a ring whose stages are columns of tensor
    memory), "registers" (a fragment), "global" (a tensor of the caller, or scratch memory of the
    launcher), "scalar" (a number of the caller), "counter" (an array of counters in global memory:
    out = signals, in = waits).
    """

    name: str
    space: str
    direction: str  # "in" or "out"
    role: str
    members: tuple[Member, ...]  # ring: the tiles of one item; others: exactly one (scalar: none)
    rate: Expr = Expr("1")  # items per work tile
    # ring and tensor_memory (arrivals, stages, rate: both)
    proxy: str = "generic"  # how the role accesses the stage: "generic" or "async"
    arrivals: Expr = Expr("1")  # per item, on the full barrier (out) or the empty barrier (in)
    tx_bytes: Expr | None = None  # ring out, proxy async: expected bytes per item
    written: Expr | None = None  # ring out, generic: bytes written per item; None = all
    stages: Stages = Stages()
    # registers
    fragment: str = ""  # "wgmma_m64": the accumulator fragment of wgmma m64nNk16, one per warpgroup
    in_place: str = ""  # out port: the in port whose registers it keeps
    pending: int = 0  # wgmma groups still in flight when the next role gets it
    # global
    tile: TileAccess | None = None
    align: int = 16  # bytes, of the base pointer
    scratch: bool = False  # memory of the launcher, connected like a ring; not a tensor
    init: str = ""  # scratch out: its contents when a launch starts, "none" or "zero"
    # counter; `arrivals` of an out port: by how much one `signal` of the whole role counts up
    count: Expr | None = None  # out: counters in the array, over symbols
    scope: str = ""  # the threads that it synchronizes: "cta", "cluster", "gpu" or "sys"
    # ring, global
    raw: bool = False  # the component issues its own copies and barrier operations
    # global: coordinates of each copy or store, one per mode, over fields, symbols, `trip` (turns
    # of the innermost repeat) and `warp` (of the role); () = not declared
    at: tuple[Expr, ...] = ()
    # scalar
    type: str = ""
    span: Span | None = None
    spans: tuple[tuple[str, Span], ...] = ()  # clause name -> place, for diagnostics

    def where(self, clause: str) -> Span | None:
        """Return the span of a clause, or of the port where the clause is not written."""
        return dict(self.spans).get(clause, self.span)


def round_registers(count: int) -> int:
    """Round up to a multiple of 8, the granularity of registers (PTX ISA, setmaxnreg)."""
    return -(-count // 8) * 8


@dataclass(frozen=True)
class Registers:
    """Registers per thread that a role requires and can use.

    Expressions over parameters; literals once bound (minimum and want rounded up to 8).
    """

    minimum: Expr  # smallest setmaxnreg value without spills
    want: Expr  # more registers do not make it faster
    entry: Expr  # smallest register count at kernel entry that compiles (wgmma: N/2 + 26)
    span: Span | None = None
    probed: bool = False  # no minimum is written: an estimate until the register probe has run


@dataclass(frozen=True)
class Role:
    """A set of warps running one entry."""

    name: str
    warps: Expr
    converged: str = "warp"  # threads that call the runtime together: thread, warp, warpgroup, role
    split: str = "role"  # the unit that is independent: "role", "warpgroup" or "warp"; a split role
    #                      can run on fewer warps, with one call of its entry for each part
    registers: Registers = Registers(Expr("24"), Expr("24"), Expr("24"))
    scheduler: bool = False  # computes the work tile; runs inside every other role
    # Before the first and after the last work tile a role performs runtime operations only.
    prologue: tuple[Operation | Repeat, ...] = ()
    body: tuple[Operation | Repeat, ...] = ()  # per work tile
    epilogue: tuple[Operation | Repeat, ...] = ()
    uses_mma: bool = False
    span: Span | None = None
    spans: tuple[tuple[str, Span], ...] = ()

    def where(self, clause: str) -> Span | None:
        """Return the span of a clause, or of the role where the clause is not written."""
        return dict(self.spans).get(clause, self.span)


@dataclass(frozen=True)
class Buffer:
    """Private on-chip (shared) memory of a role."""

    name: str
    role: str
    bytes: Expr  # of all stages together
    align: int = 16
    stages: int = 1  # used in turn: every `write` of the role advances to the next stage
    span: Span | None = None


@dataclass(frozen=True)
class NamedBarrier:
    """A hardware named barrier under a logical name; placement assigns its id."""

    name: str
    roles: tuple[str, ...]
    count: Expr  # threads, a multiple of 32
    span: Span | None = None


@dataclass(frozen=True)
class WorkField:
    """An integer of the work tile."""

    name: str
    value: Expr | None = None  # over symbols; None = varies between work tiles
    minimum: Expr = Expr("0")
    maximum: Expr | None = None
    # The work tiles with equal values of the field `index_within` have 0, 1, ..., index_count - 1
    # here, in increasing order of their numbers.
    index_within: str = ""
    index_count: Expr | None = None  # over parameters
    along: tuple[str, ...] = ()  # scheduler: axes ("x", "y") of a cluster along which it varies
    default: Expr | None = None  # its value where the tile scheduler has no such field
    multiple_of: Expr | None = None  # every value is a multiple of it
    span: Span | None = None


@dataclass(frozen=True)
class Work:
    """The work tile that every role of the component processes, or that the scheduler computes."""

    kind: str  # e.g. "gemm_tile"; equal in all components of a megakernel
    direction: str  # "in", or "out" for a tile scheduler
    tile: tuple[Expr, ...]  # extents, equal in all components, e.g. [TM, TN, TK]
    fields: tuple[WorkField, ...]
    tiles: Expr | None = None  # scheduler: number of work tiles in the grid, over symbols
    cluster: tuple[Expr, ...] = ()  # scheduler: CTAs along x and y of a cluster; () = one CTA
    where: tuple[Expr, ...] = ()  # conditions on fields and symbols that every work tile meets
    span: Span | None = None


@dataclass(frozen=True)
class Numeric:
    """The numerical contract."""

    accumulate: str = ""
    rounds_to: str = ""
    deterministic: bool = True
    nan: str = "propagate"
    flags: tuple[tuple[str, bool], ...] = ()  # required code-generation flags: ftz, prec-div, ...
    span: Span | None = None


@dataclass(frozen=True)
class Contract:
    """The contract of one component; `file` is its YAML."""

    component: str
    version: str
    summary: str
    archs: tuple[str, ...]
    params: tuple[Param, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    where: tuple[Expr, ...] = ()
    work: Work | None = None
    roles: tuple[Role, ...] = ()
    ports: tuple[Port, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    named_barriers: tuple[NamedBarrier, ...] = ()
    numeric: Numeric = Numeric()
    requires: tuple[Expr, ...] = ()  # host preconditions over symbols
    coresident: str = ""  # "grid": it waits for other CTAs, so all of them must be resident
    file: str = ""
    span: Span | None = None

    def role(self, name: str) -> Role:
        """Return the role of that name; raise KeyError where there is none."""
        return {role.name: role for role in self.roles}[name]

    def port(self, name: str) -> Port:
        """Return the port of that name; raise KeyError where there is none."""
        return {port.name: port for port in self.ports}[name]
