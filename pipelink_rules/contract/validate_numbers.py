"""Validation of the numbers of a bound contract: Contract, bound Contract -> diagnostics.

These limits hold in every program: a role has a warp, a thread has 255 registers, a box has 256
elements a side.  Limits that depend on connected components or on a target are in check and place.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pipelink_rules.contract.parse_ports import SWIZZLES
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.expression.evaluate import Value
from pipelink_rules.model.contract import (
    DTYPES,
    Contract,
    Layout,
    Member,
    Port,
    Role,
    TileAccess,
)
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.source_span import Expr, Span


class Limit(NamedTuple):
    """A range, both ends included, in steps; `why` is a note of its diagnostics."""

    least: int
    most: int
    step: int = 1
    why: str = ""


EXTENT = Limit(1, 2**31 - 1)
REPEATS = Limit(0, 2**31 - 1)
WARPS = Limit(1, 32)  # of a CTA
SETMAXNREG = Limit(24, 256, 8, "setmaxnreg takes 24 to 256 registers in steps of 8")  # PTX ISA
ENTRY = Limit(1, 255, why="a thread has at most 255 registers")  # PTX ISA, maxnreg
BUFFER_BYTES = Limit(1, 2**20)
THREADS = Limit(32, 1024, 32, "bar.sync counts threads in whole warps")
ARRIVALS = Limit(1, 2**20 - 1)  # PTX ISA, mbarrier: range of the pending count
# PTX ISA, mbarrier: range of tx-count
TX_BYTES = Limit(1, 2**20 - 1, why="an mbarrier counts at most 2^20 - 1 bytes")
# CUDA driver API, cuTensorMapEncodeTiled
BOX = Limit(1, 256, why="a tensor map box has at most 256 elements a side")
MOST_TIMES = 256  # work tiles of one value of a work field that a tile scheduler may number
INDEX_COUNT = Limit(1, MOST_TIMES, why="every one of these work tiles is analyzed separately")
CLUSTER = Limit(1, 8, why="a portable cluster")  # CUDA programming guide, thread block clusters
# PTX ISA, wgmma.mma_async: shapes of accumulators
FRAGMENT_ROWS = Limit(64, 2**31 - 1, 64, "a wgmma fragment has 64 rows a warpgroup")
FRAGMENT_COLUMNS = Limit(8, 256, 8, "wgmma m64nN takes N = 8, 16, ... 256")
# PTX ISA, tcgen05.mma, cta_group::1, M = 128: the accumulator is 128 lanes of N columns
LANES = Limit(128, 128, why="tensor memory: 128")
COLUMNS = Limit(16, 256, 16, "tcgen05.mma with 128 lanes takes N = 16, 32, ... 256")


class _Bounds:
    def __init__(self, contract: Contract, values: Mapping[str, Value], place: Span | None):
        self.component, self.place = contract.component, place
        self.numbers = ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
        self.found: list[Diagnostic] = []

    def number(self, expr: Expr | None, clause: str, limit: Limit) -> int:
        """Return the literal, 0 where it is not known yet; report one out of range."""
        value = expr.literal if expr is not None else None
        if expr is None or value is None:
            return 0
        least, most, step, why = limit
        if not least <= value <= most or value % step:
            multiple = f", a multiple of {step}" if step > 1 else ""
            self.add(expr.span, clause, f"{least} to {most}{multiple}", str(value), why)
        return value

    def add(self, span: Span | None, clause: str, expected: str, found: str, why: str = "") -> None:
        """Report a clause whose value is impossible."""
        labels = [Label(span, f"with {self.numbers}" if self.numbers else "")] if span else []
        if span and any(item.found == found and item.labels[0].span == span for item in self.found):
            return  # the same expression, used by another clause
        labels += [Label(self.place, "given here")] if self.place else []
        self.found.append(
            Diagnostic(
                "PL0029",
                f"{clause} of `{self.component}` evaluates to {found}",
                tuple(labels),
                expected=expected,
                found=found,
                notes=(why,) if why else (),
                subject=f"{self.component}: {clause}",
            )
        )

    def multiple(self, expr: Expr, clause: str, value: int, step: int, expected: str) -> None:
        """Report a number that is not a multiple."""
        if value % step:
            self.add(expr.span, clause, expected, str(value))


def check_bound(
    contract: Contract, bound: Contract, values: Mapping[str, Value], place: Span | None
) -> None:
    """Raise PL0029 for every number that no program could use."""
    bounds = _Bounds(contract, values, place)
    for role in bound.roles:
        if not role.scheduler:
            _role(bounds, role, f"role `{role.name}`")
    for port in bound.ports:
        _port(bounds, port, f"port `{port.name}`")
    for buffer in bound.buffers:
        clause = f"`bytes` of buffer `{buffer.name}`"
        size = bounds.number(buffer.bytes, clause, BUFFER_BYTES)
        stages = f"a multiple of its {buffer.stages} stages"
        bounds.multiple(buffer.bytes, clause, size, buffer.stages, stages)
    for barrier in bound.named_barriers:
        bounds.number(barrier.count, f"`count` of named barrier `{barrier.name}`", THREADS)
    if bound.work:
        for field in bound.work.fields:
            clause = f"`index_within.of` of work field `{field.name}`"
            bounds.number(field.index_count, clause, INDEX_COUNT)
        for extent in bound.work.tile:
            bounds.number(extent, "`tile` of `work`", EXTENT)
        for extent in bound.work.cluster:
            bounds.number(extent, "`cluster` of `work`", CLUSTER)
    if bounds.found:
        raise PipelinkError(bounds.found)


def _role(bounds: _Bounds, role: Role, name: str) -> None:
    warps = bounds.number(role.warps, f"`warps` of {name}", WARPS)
    if "warpgroup" in (role.converged, role.split):
        whole = "whole warpgroups: a multiple of 4"
        bounds.multiple(role.warps, f"`warps` of {name}", warps, 4, whole)
    bounds.number(role.registers.minimum, f"`registers.min` of {name}", SETMAXNREG)
    bounds.number(role.registers.want, f"`registers.want` of {name}", SETMAXNREG)
    bounds.number(role.registers.entry, f"`registers.entry` of {name}", ENTRY)
    for repeat in repeats((*role.prologue, *role.body, *role.epilogue)):
        bounds.number(repeat.count, f"`repeat` of {name}", REPEATS)


def _port(bounds: _Bounds, port: Port, name: str) -> None:
    bounds.number(port.arrivals, f"`arrivals` of {name}", ARRIVALS)
    bounds.number(port.rate, f"`rate` of {name}", EXTENT)
    bounds.number(port.tx_bytes, f"`tx_bytes` of {name}", TX_BYTES)
    for member in port.members:
        what = f"`shape` of tile `{member.name}` of {name}" if member.name else f"`shape` of {name}"
        for extent in member.shape:
            bounds.number(extent, what, EXTENT)
        _swizzle(bounds, member.layout, f"`swizzle` of {name}")
        if not member.layout.strides:
            _row(bounds, member, member.shape, member.layout.swizzle, what, member.layout.span)
    if port.tile is not None and port.members:
        for extent in port.tile.box:
            bounds.number(extent, f"`box` of {name}", BOX)
        _swizzle(bounds, port.tile, f"`swizzle` of {name}")
        swizzle, span = port.tile.swizzle, port.tile.span
        _row(bounds, port.members[0], port.tile.box, swizzle, f"`box` of {name}", span)
    if port.fragment == "wgmma_m64":
        rows, columns = port.members[0].shape
        bounds.number(rows, f"rows of {name}", FRAGMENT_ROWS)
        bounds.number(columns, f"columns of {name}", FRAGMENT_COLUMNS)
        _is_f32(bounds, port, "f32, the accumulator of wgmma")
    if port.space == "tensor_memory":
        lanes, columns = port.members[0].shape
        bounds.number(lanes, f"lanes of {name}", LANES)
        bounds.number(columns, f"columns of {name}", COLUMNS)
        _is_f32(bounds, port, "f32, one column each")


def _is_f32(bounds: _Bounds, port: Port, expected: str) -> None:
    dtype = port.members[0].dtype
    if dtype != "f32":
        bounds.add(port.where("dtype"), f"`dtype` of port `{port.name}`", expected, dtype)


def _swizzle(bounds: _Bounds, noun: Layout | TileAccess, clause: str) -> None:
    """An expression that `bind` did not accept as a span."""
    if noun.swizzle_by is not None and noun.swizzle_by.literal is not None:
        spans = "one of " + ", ".join(map(str, SWIZZLES))
        bounds.add(noun.swizzle_by.span, clause, spans, noun.swizzle_by.text)


def _row(
    bounds: _Bounds,
    tile: Member,
    shape: tuple[Expr, ...],
    swizzle: int,
    clause: str,
    span: Span | None,
) -> None:
    """The innermost extent of a swizzled tile fits the swizzle span (cuTensorMapEncodeTiled)."""
    inner = shape[-1].literal if shape else None
    if swizzle and inner is not None and tile.dtype in DTYPES:
        size = inner * DTYPES[tile.dtype][0]
        if size > swizzle:
            expected = f"rows of at most {swizzle} bytes, the swizzle span"
            bounds.add(span, clause, expected, f"rows of {size} bytes")
