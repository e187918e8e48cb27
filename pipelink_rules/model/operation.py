"""Operations of a role, in program order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipelink_rules.model.source_span import Expr, Span


@dataclass(frozen=True)
class Operation:
    """One protocol operation of a role, in program order.

    verb     target               meaning
    acquire  ring out             wait until the next stage is empty; it becomes the current item
    expect   ring out             arrive on the full barrier and expect tx_bytes
    copy     ring out (+ tensor)  bulk/tensor copy from global into the current item (async proxy)
    write    ring out / buffer / registers / global   generic stores
    commit   ring out             arrive on the full barrier
    wait     ring in              wait until the next item is full; it becomes the current item
    read     ring in / buffer / registers / global   generic loads
    mma      ring in              one committed wgmma group reads the current item (async proxy)
    await    mma N | store N      wait until at most N groups of that kind are pending
    mma      ring in -> tensor    tcgen05.mma of one thread reads it and adds to the tensor item
    commit   mma -> ring | tensor tcgen05.commit: arrive once all mma before it are complete
    await    tensor load | store  tcgen05.wait::ld, ::st after `read`, `write` of tensor memory
    fence    tensor before|after  tcgen05.fence::before_thread_sync, ::after_thread_sync
    release  ring in (lag)        arrive on the empty barrier of the item `lag` before the current
                                  one; nothing where this work tile has no such item
    store    ring in / buffer     one committed bulk store group reads it (async proxy)
    fence    async                fence.proxy.async
    sync     named barrier        arrive and wait
    arrive   named barrier        arrive only
    signal   counter out [field]  add one after all earlier operations of this warp (release)
    wait_until  counter in [field]  wait until the counter has `threshold` signals (acquire)

    Accesses to scratch memory name the slice that they use: `write S[tile, part]`, `read S[tile]`.
    """

    verb: str
    target: str = ""  # port, buffer, named barrier; kind of await; "async", "tensor after", ...
    count: int = 0  # await: groups that may stay pending
    lag: int = 0  # release
    member: str = ""  # copy: the member written
    source: str = ""  # copy, store: the tensor; mma: tensor memory; commit: "mma" for tcgen05
    full: bool = False  # await store: wait for global visibility, not only for the shared reads
    index: tuple[Expr, ...] = ()  # counter or slice of scratch: a work field, then an expression
    threshold: Expr | None = None  # wait_until: signals to wait for, over parameters and fields
    span: Span | None = None

    @property
    def wgmma(self) -> bool:
        """Whether it is a wgmma group (and not a tcgen05.mma)."""
        return self.verb == "mma" and not self.source

    @property
    def piece(self) -> str:
        """The index as it is written, `[tile, part]`; empty where the operation has none."""
        return f"[{', '.join(expr.text for expr in self.index)}]" if self.index else ""


RINGS_IN, RINGS_OUT = ("ring in", "tensor_memory in"), ("ring out", "tensor_memory out")
# verb -> (form, kinds of the target)
VERBS: dict[str, tuple[str, tuple[str, ...]]] = {
    "acquire": ("acquire RING", RINGS_OUT),
    "expect": ("expect RING", ("ring out",)),
    "copy": ("copy TENSOR -> RING.MEMBER", ("ring out",)),
    "write": ("write TARGET", (*RINGS_OUT, "buffer", "registers out", "global out")),
    "commit": ("commit RING, commit mma -> RING", RINGS_OUT),
    "wait": ("wait RING", RINGS_IN),
    "read": ("read SOURCE", (*RINGS_IN, "buffer", "registers in", "global in")),
    "mma": ("mma RING, mma RING -> TENSOR_MEMORY", ("ring in",)),
    "await": ("await mma N, await store N [full], await tensor load, await tensor store", ()),
    "release": ("release RING [lag N]", RINGS_IN),
    "store": ("store SOURCE -> TENSOR", ("ring in", "buffer")),
    "fence": ("fence async, fence tensor before, fence tensor after, fence global", ()),
    "sync": ("sync BARRIER", ("named barrier",)),
    "arrive": ("arrive BARRIER", ("named barrier",)),
    "signal": ("signal COUNTER[FIELD]", ("counter out",)),
    "wait_until": ("wait_until COUNTER[FIELD] SIGNALS", ("counter in",)),
}
# verb -> kind of the port behind `source`
SOURCES = {"copy": "global in", "store": "global out", "mma": "tensor_memory out"}


def target_kinds(op: Operation) -> tuple[str, ...]:
    """What its target may be: `ring in`, `buffer`, ...; () where it names nothing declared."""
    if op.verb == "commit" and op.source:
        return ("ring in", "tensor_memory out")
    return VERBS[op.verb][1] if op.verb in VERBS else ()


@dataclass(frozen=True)
class Repeat:
    """Operations repeated `count` times (an expression over work fields and parameters)."""

    count: Expr
    body: tuple[Operation | Repeat, ...]
    span: Span | None = None


def operations(body: Iterable[Operation | Repeat]) -> Iterator[Operation]:
    """Yield all operations in program order, those of repeats once."""
    for item in body:
        if isinstance(item, Repeat):
            yield from operations(item.body)
        else:
            yield item


def repeats(body: Iterable[Operation | Repeat]) -> Iterator[Repeat]:
    """Yield all repeats in program order, an outer one before its inner ones."""
    for item in body:
        if isinstance(item, Repeat):
            yield item
            yield from repeats(item.body)
