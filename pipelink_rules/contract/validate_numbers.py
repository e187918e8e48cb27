"""Validation of the numbers of a bound contract: Contract, bound Contract -> diagnostics.

These limits hold in every program: a role has a warp, a thread has 255 registers, a box has 256
elements a side.  Limits that depend on connected components or on a target are in check and place.
"""

from collections.abc import Mapping

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.expression.evaluate import Value
from pipelink_rules.model.contract import DTYPES, Contract, Member, Operation, Port, Repeat
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.source_span import Expr, Span

WARPS_CTA = 32
REGISTERS_THREAD = 255  # PTX ISA, maxnreg
SETMAXNREG = (24, 256)  # PTX ISA, setmaxnreg
RANGE_NOTE = "setmaxnreg takes 24 to 256 registers in steps of 8"
BARRIER_THREADS = 1024
ARRIVALS = 2**20 - 1  # PTX ISA, mbarrier: range of the pending count
TX_BYTES = 2**20 - 1  # PTX ISA, mbarrier: range of tx-count
BOX_SIDE = 256  # CUDA driver API, cuTensorMapEncodeTiled
EXTENT = 2**31 - 1
TENSOR_LANES = 128
MOST_TIMES = 256  # work tiles of one value of a work field that a tile scheduler may number
CLUSTER = 8  # CTAs of a portable cluster (CUDA programming guide, thread block clusters)


class _Bounds:
    def __init__(self, contract: Contract, values: Mapping[str, Value], place: Span | None):
        self.component, self.values, self.place = contract.component, values, place
        self.found: list[Diagnostic] = []

    def number(
        self, expr: Expr | None, clause: str, least: int, most: int, step: int = 1, why: str = ""
    ) -> int | None:
        """Return the literal, None where it is not known yet; report one out of range."""
        value = expr.literal if expr is not None else None
        if expr is None or value is None:
            return None
        if not least <= value <= most or value % step:
            multiple = f", a multiple of {step}" if step > 1 else ""
            self.add(expr.span, clause, f"{least} to {most}{multiple}", str(value), why)
        return value

    def add(self, span: Span | None, clause: str, expected: str, found: str, why: str = "") -> None:
        """Report a clause whose value is impossible."""
        numbers = ", ".join(f"{name}={value}" for name, value in sorted(self.values.items()))
        labels = [Label(span, f"with {numbers}" if numbers else "")] if span else []
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


def check_bound(
    contract: Contract, bound: Contract, values: Mapping[str, Value], place: Span | None
) -> None:
    """Raise PL0029 for every number that no program could use."""
    bounds = _Bounds(contract, values, place)
    for role in bound.roles:
        if role.scheduler:
            continue
        name = f"role `{role.name}`"
        warps = bounds.number(role.warps, f"`warps` of {name}", 1, WARPS_CTA)
        if warps and warps % 4 and (role.converged == "warpgroup" or role.split == "warpgroup"):
            bounds.add(
                role.warps.span,
                f"`warps` of {name}",
                "whole warpgroups: a multiple of 4",
                str(warps),
            )
        registers = role.registers
        for clause, expr in (("min", registers.minimum), ("want", registers.want)):
            bounds.number(expr, f"`registers.{clause}` of {name}", *SETMAXNREG, 8, RANGE_NOTE)
        bounds.number(
            registers.entry,
            f"`registers.entry` of {name}",
            1,
            REGISTERS_THREAD,
            why=f"a thread has at most {REGISTERS_THREAD} registers",
        )
        for body in (role.prologue, role.body, role.epilogue):
            _repeats(bounds, name, body)
    for port in bound.ports:
        _port(bounds, port)
    for buffer in bound.buffers:
        size = bounds.number(buffer.bytes, f"`bytes` of buffer `{buffer.name}`", 1, 2**20)
        if size and size % buffer.stages:
            bounds.add(
                buffer.bytes.span,
                f"`bytes` of buffer `{buffer.name}`",
                f"a multiple of its {buffer.stages} stages",
                str(size),
            )
    for barrier in bound.named_barriers:
        bounds.number(
            barrier.count,
            f"`count` of named barrier `{barrier.name}`",
            32,
            BARRIER_THREADS,
            32,
            "bar.sync counts threads in whole warps",
        )
    for field in bound.work.fields if bound.work else ():
        bounds.number(
            field.index_count,
            f"`index_within.of` of work field `{field.name}`",
            1,
            MOST_TIMES,
            why="every one of these work tiles is analyzed separately",
        )
    for extent in bound.work.tile if bound.work else ():
        bounds.number(extent, "`tile` of `work`", 1, EXTENT)
    for extent in bound.work.cluster if bound.work else ():
        bounds.number(extent, "`cluster` of `work`", 1, CLUSTER, why="a portable cluster")
    if bounds.found:
        raise PipelinkError(bounds.found)


def _repeats(bounds: _Bounds, name: str, body: tuple[Operation | Repeat, ...]) -> None:
    for repeat in repeats(body):
        bounds.number(repeat.count, f"`repeat` of {name}", 0, EXTENT)


def _port(bounds: _Bounds, port: Port) -> None:
    name = f"port `{port.name}`"
    bounds.number(port.arrivals, f"`arrivals` of {name}", 1, ARRIVALS)
    bounds.number(port.rate, f"`rate` of {name}", 1, EXTENT)
    bounds.number(
        port.tx_bytes,
        f"`tx_bytes` of {name}",
        1,
        TX_BYTES,
        why="an mbarrier counts at most 2^20 - 1 bytes",
    )
    for member in port.members:
        _member(bounds, port, member)
    if port.tile is not None and port.members:
        for extent in port.tile.box:
            bounds.number(
                extent,
                f"`box` of {name}",
                1,
                BOX_SIDE,
                why="a tensor map box has at most 256 elements a side",
            )
        _row(
            bounds,
            port.tile.box,
            port.members[0].dtype,
            port.tile.swizzle,
            f"`box` of {name}",
            port.tile.span,
        )
    if port.fragment == "wgmma_m64":
        _fragment(bounds, port, name)
    if port.space == "tensor_memory":
        _tensor_memory(bounds, port, name)


def _fragment(bounds: _Bounds, port: Port, name: str) -> None:
    """PTX ISA, wgmma.mma_async: shapes and accumulator types."""
    tile = port.members[0]
    rows, columns = tile.shape
    bounds.number(
        rows, f"rows of {name}", 64, EXTENT, 64, "a wgmma fragment has 64 rows a warpgroup"
    )
    bounds.number(columns, f"columns of {name}", 8, 256, 8, "wgmma m64nN takes N = 8, 16, ... 256")
    if tile.dtype != "f32":
        span = port.where("dtype")
        bounds.add(span, f"`dtype` of {name}", "f32, the accumulator of wgmma", tile.dtype)


def _tensor_memory(bounds: _Bounds, port: Port, name: str) -> None:
    """PTX ISA, tcgen05.mma, cta_group::1, M = 128: the accumulator is 128 lanes of N columns."""
    tile = port.members[0]
    lanes, columns = tile.shape
    bounds.number(lanes, f"lanes of {name}", TENSOR_LANES, TENSOR_LANES, 1, "tensor memory: 128")
    why = "tcgen05.mma with 128 lanes takes N = 16, 32, ... 256"
    bounds.number(columns, f"columns of {name}", 16, 256, 16, why)
    if tile.dtype != "f32":
        bounds.add(port.where("dtype"), f"`dtype` of {name}", "f32, one column each", tile.dtype)


def _member(bounds: _Bounds, port: Port, member: Member) -> None:
    what = f"tile `{member.name}` of port `{port.name}`" if member.name else f"port `{port.name}`"
    for extent in member.shape:
        bounds.number(extent, f"`shape` of {what}", 1, EXTENT)
    if member.layout.swizzle and not member.layout.strides:
        _row(
            bounds,
            member.shape,
            member.dtype,
            member.layout.swizzle,
            f"`shape` of {what}",
            member.layout.span,
        )


def _row(
    bounds: _Bounds,
    shape: tuple[Expr, ...],
    dtype: str,
    swizzle: int,
    clause: str,
    span: Span | None,
) -> None:
    """The innermost extent of a swizzled tile fills the swizzle span (cuTensorMapEncodeTiled)."""
    inner = shape[-1].literal if shape else None
    if swizzle and inner is not None and dtype in DTYPES and inner * DTYPES[dtype][0] > swizzle:
        bounds.add(
            span,
            clause,
            f"rows of at most {swizzle} bytes, the swizzle span",
            f"rows of {inner * DTYPES[dtype][0]} bytes",
        )
