"""A small program made by hand: load -> ring -> mma -> registers handed over -> store."""

from __future__ import annotations

import dataclasses

from pipelink_rules.model.contract import (
    Buffer,
    Contract,
    Member,
    NamedBarrier,
    Numeric,
    Port,
    Role,
    Symbol,
    TileAccess,
    Work,
)
from pipelink_rules.model.linked_kernel import Audit, BarrierSite
from pipelink_rules.model.placement import Placement, Warpgroup
from pipelink_rules.model.program import (
    HANDOVER,
    RING,
    Channel,
    Connection,
    Instance,
    MegakernelSpec,
    Program,
    ProgramRole,
)
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.model.variant import Measured, Variant


def exprs(*texts: object) -> tuple[Expr, ...]:
    return tuple(Expr(str(text)) for text in texts)


def member(name: str, *shape: object, dtype: str = "bf16") -> Member:
    return Member(name, dtype, exprs(*shape))


def box(*extents: int) -> TileAccess:
    return TileAccess(exprs(*extents), 128)


def _instance(name: str, contract: Contract, digest: str) -> Instance:
    measured = tuple((role.name, Measured(80, 56, 0, 0)) for role in contract.roles)
    if name == "tiles":
        measured = ()
    variant = Variant(contract, (("TM", 128),), (), digest, measured)
    return Instance(name, f"//components/{name}:{contract.component}", variant)


TILES = Contract(
    "tiles", "1", "", ("sm_90a",),
    symbols=(Symbol("M", 1), Symbol("N", 1)),
    work=Work("tile", "out", exprs(128), (), Expr("ceildiv(M, 128) * ceildiv(N, 64)")),
    roles=(Role("next", Expr("0"), scheduler=True),),
)  # fmt: skip
LOAD = Contract(
    "loader", "1", "", ("sm_90a",),
    symbols=(Symbol("M", 1), Symbol("K", 16, 65536, 8)),
    roles=(Role("load", Expr("1")),),
    ports=(
        Port("A", "global", "in", "load", (member("A", "M", "K"),), tile=box(128, 64)),
        Port("B", "global", "in", "load", (member("B", "M", "K"),), tile=box(64, 64)),
        Port("raw", "global", "in", "load", (member("raw", "M", "K"),), align=128),
        Port("ab", "ring", "out", "load", (member("A", 128, 64), member("B", 64, 64))),
    ),
    requires=(Expr("K <= 4096", Span("loader.contract.yaml", 9, 5)), Expr("1")),
)  # fmt: skip
MMA = Contract(
    "mma", "1", "", ("sm_90a",),
    symbols=(Symbol("K", 1, 2**31 - 1, 12),),
    roles=(Role("mma", Expr("4")),),
    ports=(
        Port("ab", "ring", "in", "mma", (member("A", 128, 64),)),
        Port("acc", "registers", "out", "mma", (member("acc", 64, 64, dtype="f32"),)),
    ),
)  # fmt: skip
STORE = Contract(
    "store", "1", "", ("sm_90a",),
    symbols=(Symbol("M", 1), Symbol("N", 1)),
    roles=(Role("store", Expr("4")),),
    ports=(
        Port("acc", "registers", "in", "store", (member("acc", 64, 64, dtype="f32"),)),
        Port("C", "global", "out", "store", (member("C", "M", "N"),), tile=box(16, 64)),
        Port("alpha", "scalar", "in", "store", (), type="f32"),
    ),
    buffers=(Buffer("staging", "store", Expr("8192"), 1024),),
    named_barriers=(NamedBarrier("turn", ("store",), Expr("128")),),
    numeric=Numeric(deterministic=False),
)  # fmt: skip

PROGRAM = Program(
    name="sample",
    target="sm_90a",
    instances=(
        _instance("load", LOAD, "aaaaaaaaaaaa"),
        _instance("mma", MMA, "bbbbbbbbbbbb"),
        _instance("store", STORE, "cccccccccccc"),
        _instance("tiles", TILES, "dddddddddddd"),
    ),
    connections=(
        Connection(("load", "ab"), ("mma", "ab"), RING),
        Connection(("mma", "acc"), ("store", "acc"), HANDOVER),
    ),
    channels=(
        Channel("load.ab", RING, ("load", "ab"), (("mma", "ab"),), 24576, 1024, 2, 8, 1, 4,
                member_offsets=(("A", 0), ("B", 16384))),
        Channel("mma.acc>store.acc", HANDOVER, ("mma", "acc"), (("store", "acc"),), 16384, 16, 1, 2,
                4, 4),
    ),
    roles=(
        ProgramRole("load", (("load", "load"),), 1, 1, False, 40, 40, 24),
        ProgramRole("mma", (("mma", "mma"),), 4, 1, True, 96, 240, 58),
        ProgramRole("store", (("store", "store"),), 4, 2, True, 64, 240, 24),
    ),
    scheduler=("tiles", "next"),
    tensors=(
        ("a", (("load", "A"), ("load", "B"), ("load", "raw"))),
        ("out", (("store", "C"),)),
    ),
    scalars=(("alpha", (("store", "alpha"),)),),
    symbols=("K", "M", "N"),
    occupancy=1,
    cluster=(1, 1, 1),
    runtime="watchdog",
    spec=MegakernelSpec("sample", (), summary="A sample."),
)  # fmt: skip

PLACEMENT = Placement(
    name="sample",
    target="sm_90a",
    stages=(("load.ab", 3), ("mma.acc>store.acc", 2)),
    offsets=(
        ("barriers", 115712),
        ("load.ab", 0),
        ("mma.acc>store.acc", 82944),
        ("store.staging", 73728),
    ),
    barriers=(("load.ab", 115712), ("mma.acc>store.acc", 115760)),
    shared_bytes=115792,
    bound_bytes=114768,
    named=(("store.turn", 1),),
    warps=(("load", 0), ("mma", 4), ("store", 8)),
    threads=384,
    entry_registers=168,
    setmaxnreg=True,
    warpgroups=(
        Warpgroup(0, ("load",), 40),
        Warpgroup(1, ("mma",), 232),
        Warpgroup(2, ("store",), 232),
    ),
    occupancy=1,
    proved=True,
    solver="z3 0.0",
    notes=("a note",),
)

AUDIT = Audit(
    entry="sample",
    registers=168,
    stack_bytes=0,
    spill_stores=0,
    spill_loads=0,
    static_shared_bytes=0,
    instructions=1234,
    calls=("__internal_divide",),
    setmaxnreg=(40, 232, 232),
    barrier_ids=((0, 1), (1, 2)),
    barrier_sites=(BarrierSite(0, "sync", 0, 1), BarrierSite(1, "sync", 256, 2)),
    region_registers=(("load", 30), ("mma", 120), ("store", 90)),
    text_sha256="ab" * 32,
    warnings=("a warning", "a note"),
)


def other_placement() -> Placement:
    """The same with one stage less and other registers for the loader."""
    groups = (Warpgroup(0, ("load",), 24), *PLACEMENT.warpgroups[1:])
    return dataclasses.replace(
        PLACEMENT, stages=(("load.ab", 2), ("mma.acc>store.acc", 2)), warpgroups=groups
    )
