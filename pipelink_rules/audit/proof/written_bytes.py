"""Every byte of an item or store is written: counted, because the writes are apart and inside.

Threads that write between two operations never write one byte twice (shared_writes.py), nor does
one thread (here), and all bytes are inside of what is declared.  So all of them are written if and
only if their number is right, which is a sum over threads and not a question about each byte.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

from pipelink_rules.audit.proof.expressions import term_of
from pipelink_rules.audit.proof.prover import Prover, Store, Write
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.contract.item_layout import member_bytes
from pipelink_rules.model.contract import Operation
from pipelink_rules.solver import terms
from pipelink_rules.solver.queries import SAT, UNKNOWN, Path
from pipelink_rules.solver.terms import Term

_LANES = 32


def require_written(prover: Prover) -> None:
    """Refute a committed item or a stored buffer of which a byte may not have been written."""
    for node in prover.body.nodes:
        if node.op is not None and node.op.verb == "commit" and not node.op.source:
            _item(prover, node.op)
    for store in prover.stores:
        _stored(prover, store)


def _item(prover: Prover, commit: Operation) -> None:
    port = prover.inputs.rings[commit.target].port
    writes = [write for write in prover.writes if write.target == port.name]
    if port.space != "ring" or not writes:
        return
    if len(port.members) > 1 or port.members[0].layout.strides:
        raise UnprovedError(f"an item of `{port.name}` with several tiles, or with gaps")
    wanted = member_bytes(port.members[0])
    if port.written is not None:
        wanted = term_of(port.written, prover.inputs.env)
    if len({write.after for write in writes}) > 1:
        raise UnprovedError(f"an item of `{port.name}` that is written in several steps")
    error = RefutedError(
        "PL0931",
        f"commits an item of `{port.name}` of which it has not written every byte",
        op=commit,
        target=port.name,
        expected=f"{wanted:,} bytes" if isinstance(wanted, int) else str(port.written),
        found="fewer or more bytes",
    )
    if not isinstance(wanted, int):
        for write in writes:
            end = terms.bits(write.offset, 64) + write.size
            prover.oblige_on(write.path, terms.at_most(end, terms.bits(wanted, 64)), error)
    threads = [(warp, lane) for warp in range(prover.inputs.warps) for lane in range(_LANES)]
    if port.written is None:  # nothing says that the rest is not left out on purpose
        error.unproved = f"an item of `{port.name}` of which not every byte is written"
    _count(prover, writes, threads, (), wanted, error)


def _stored(prover: Prover, store: Store) -> None:
    """The bytes of a store from a buffer, which its warp has written since the last operation."""
    earlier = [
        write
        for write in prover.writes
        if write.target == store.target and write.after[1] < store.operations
    ]
    if not earlier:
        raise UnprovedError(f"a store of `{store.target}` without a write before it")
    last = max(write.after[1] for write in earlier)
    writes = [write for write in earlier if write.after[1] == last]
    error = RefutedError(
        "PL0931",
        f"stores bytes of `{store.target}` that it has not written",
        op=store.op,
        target=store.target,
        expected=f"{store.size:,} bytes of its own warp's writes",
        found="fewer bytes, or other ones",
    )
    for write in writes:
        begin = write.offset - store.offset
        inside = terms.at_most(begin, terms.bits(store.size - write.size, 32))
        prover.oblige_on((*store.path, *write.path), inside, error)
    lanes = [(None, lane) for lane in range(_LANES)]
    _count(prover, writes, lanes, store.path, store.size, error)


def _count(
    prover: Prover,
    writes: Sequence[Write],
    threads: Sequence[tuple[int | None, int]],
    path: Path,
    wanted: Term,
    error: RefutedError,
) -> None:
    _apart(prover, writes, error)
    sizes: dict[tuple[object, ...], list[Write]] = {}
    for write in writes:
        sizes.setdefault(tuple(map(terms.key, write.path)), []).append(write)
    total: Term = terms.bits(0, 32)
    for alike in sizes.values():
        number = sum(write.size for write in alike)
        total = total + _active(prover, alike[0].path, threads) * number
    goal = total == terms.bits(terms.bits(wanted, 64), 32)
    prover.oblige_on(path, goal, error)


def _active(prover: Prover, path: Path, threads: Iterable[tuple[int | None, int]]) -> Term:
    """Return how many of the threads are on a path."""
    names = frozenset().union(*map(terms.variables, path))
    if any(name.startswith("data!") for name in names):
        raise UnprovedError("bytes that are written under a condition on data")
    inputs = prover.inputs
    counts = Counter(
        (warp if "warp" in names else None, lane if "lane" in names else None)
        for warp, lane in threads
    )
    total: Term = terms.bits(0, 32)
    for (one, other), number in counts.items():
        pairs = []
        if one is not None:
            pairs.append((inputs.warp, terms.bits(one, inputs.warp.size())))
        if other is not None:
            pairs.append((inputs.lane, terms.bits(other, 5)))
        condition = terms.both(*(terms.substituted(part, *pairs) for part in path))
        total = total + terms.bits(condition, 32) * number
    return total


def _apart(prover: Prover, writes: Sequence[Write], error: RefutedError) -> None:
    """Refute a thread that writes one byte twice."""
    sites: dict[object, list[Write]] = {}
    for write in writes:
        sites.setdefault(terms.split_sum(write.offset)[0], []).append(write)
    rows = list(sites.values())
    for alike in rows:
        spans = sorted((terms.split_sum(write.offset)[1], write.size) for write in alike)
        for (start, size), (following, _) in itertools.pairwise(spans):
            if following < start + size:
                raise UnprovedError(f"bytes of `{writes[0].target}` that a thread writes twice")
    for number, one in enumerate(rows):
        for other in rows[number + 1 :]:
            _differ(prover, one, other, error)


def _differ(
    prover: Prover, one: Sequence[Write], other: Sequence[Write], error: RefutedError
) -> None:
    hits = [
        terms.both(
            terms.less(a.offset - b.offset + (b.size - 1), terms.bits(a.size + b.size - 1, 32)),
            *a.path,
            *b.path,
        )
        for a in one
        for b in other
    ]
    verdict, model = prover.queries.check((), terms.either(*hits))
    if verdict == UNKNOWN:
        raise UnprovedError("writes of one thread of which the solver cannot say that they differ")
    if verdict == SAT:
        error.model = model
        raise error
