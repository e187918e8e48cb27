"""Mutants of a correct contract: contract as plain data -> mutants.

Every clause is changed in every way its kind knows: numbers one up and one down, words for the
other words of their set, operations left out, doubled, exchanged with their neighbor, moved out of
their loop.  A mutant is data again: it is written as YAML and read as any contract is.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Path = tuple[str | int, ...]

WORDS = {
    "converged": ("thread", "warp", "warpgroup", "role"),
    "split": ("role", "warpgroup", "warp"),
    "proxy": ("generic", "async"),
    "direction": ("in", "out"),
    "space": ("ring", "tensor_memory", "registers", "global", "scalar"),
    "swizzle": (0, 32, 64, 128),
    "dtype": ("bf16", "f16", "f32"),
    "type": ("f32", "i32", "u32"),
    "accumulate": ("f32", "f16"),
    "rounds_to": ("bf16", "f16", "f32"),
    "deterministic": (True, False),
    "nan": ("propagate", "ignore"),
    "schedule": (True, False),
    "pending": (0, 1),
    "along": ("x", "y"),
    "scope": ("cta", "cluster", "gpu"),
    "init": ("none", "zero"),
    "scratch": (True, False),
    "raw": (True, False),
}
STEPS = {"align": ("half", "double"), "registers": (-8, -1, 1, 8), "count": (-32, -1, 1, 32)}
TEXTS = ("contract", "component", "version", "summary")  # say nothing of the component's work
AUDITED = ("at", "written")  # of the code alone, which tests/contract_mismatch edits
# last or outer key -> the class of clause it belongs to
KINDS = {
    "params": "parameter",
    "symbols": "symbol",
    "where": "condition",
    "requires": "condition",
    "arch": "arch",
    "coresident": "coresident",
    "numeric": "numeric",
}
INDEXED = re.compile(r"(\w+ (?:\w+ -> )?\w+)\[(.*)\](.*)")
OPERATION = re.compile(r"(release \w+ lag|await \w+) (\d+)(.*)")
# operations of tensor memory -> those that look alike
TENSOR_FORMS = tuple(
    (re.compile(form), other)
    for form, other in (
        (r"commit mma -> (\w+)", r"commit \1"),
        (r"commit mma -> (\w+)", r"release \1"),
        (r"commit (?!mma)(\w+)", r"commit mma -> \1"),
        (r"release (\w+)(?: lag \d+)?", r"commit mma -> \1"),
        (r"mma (\w+) -> (\w+)", r"mma \1"),
        (r"fence tensor before", "fence tensor after"),
        (r"fence tensor after", "fence tensor before"),
        (r"fence tensor \w+", "fence async"),
        (r"await tensor load", "await tensor store"),
        (r"await tensor store", "await tensor load"),
    )
)
OTHER_VERB = {
    "signal": "wait_until",
    "wait_until": "signal",
    "sync": "arrive",
    "arrive": "sync",
    "expect": "commit",
    "commit": "expect",
    "read": "write",
    "write": "read",
    "acquire": "commit",
    "wait": "read",
    "mma": "read",
    "store": "read",
}


ORDERING = ("fence", "await", "sync", "arrive", "signal", "wait_until")


class Mutant(NamedTuple):
    """One change: `path` gets `value` (`DROP`: is left out), told as `before` and `after`."""

    component: str  # label, or "" for the declaration
    kind: str
    path: Path
    value: Any
    before: str
    after: str

    @property
    def clause(self) -> str:
        """`roles.mma.body.0.body.1`."""
        return ".".join(map(str, self.path))


DROP = object()


def applied(data: dict[str, Any], mutant: Mutant) -> dict[str, Any]:
    """A copy of the data with the change made."""
    changed = copy.deepcopy(data)
    inner: Any = changed
    for key in mutant.path[:-1]:
        inner = inner[key]
    if mutant.value is DROP:
        del inner[mutant.path[-1]]
    else:
        inner[mutant.path[-1]] = copy.deepcopy(mutant.value)
    return changed


def mutants_of(label: str, data: dict[str, Any]) -> Iterator[Mutant]:
    """All mutants of a contract, in the order of its clauses."""
    for path, value in _walk(data, ()):
        if not path or path[0] in TEXTS or set(path) & set(AUDITED):
            continue
        kind = kind_of(path)
        if path[-1] in ("body", "prologue", "epilogue") and isinstance(value, list):
            for what, body, before, after in _bodies(value):
                yield Mutant(label, what, path, body, before, after)
            continue
        whole = len(path) > 1 and path[-1] not in ("roles",)
        if isinstance(path[-1], str) and (whole or kind == "coresident"):
            yield Mutant(label, kind, path, DROP, _short(value), "left out")
        if isinstance(value, list) and value:
            for place, item in enumerate(value):
                rest = [*value[:place], *value[place + 1 :]]
                yield Mutant(label, kind, path, rest, _short(value), f"without {item}")
            if len(value) > 1:
                yield Mutant(label, kind, path, value[::-1], _short(value), "in reverse order")
        for other in _others(path, value):
            yield Mutant(label, kind, path, other, str(value), str(other))


def kind_of(path: Path) -> str:
    """The class of a clause: its own name, without indices."""
    if path[0] in KINDS:
        return KINDS[str(path[0])]
    names = [str(key) for key in path if isinstance(key, str)]
    if path[0] == "work":
        return "trip" if "fields" in names or names[-1] == "items" else "work tile"
    if path[0] == "named_barriers":
        return "participants"
    for word in ("registers", "stages", "box", "shape"):
        if word in names[1:]:
            return word
    if path[0] == "roles" and "repeat" in names:
        return "trip"
    return names[-1] if len(names) > 2 else names[0]


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if path and path[-1] in ("body", "prologue", "epilogue"):
        yield path, value
        for place, item in enumerate(value):
            if isinstance(item, dict):
                yield (*path, place, "repeat"), item["repeat"]
                yield from _walk(item["body"], (*path, place, "body"))
        return
    if path:
        yield path, value
    pairs = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield from _walk(inner, (*path, key))


def _others(path: Path, value: Any) -> Iterator[Any]:
    name = next((str(key) for key in reversed(path) if isinstance(key, str)), "")
    words = WORDS.get(name)
    if words is not None and path[0] != "params":
        yield from (word for word in words if word != value)
        return
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (step for step in _numbers(path, value) if step >= 0)
    elif isinstance(value, str) and _is_expression(path, name):
        for step in STEPS.get("registers" if "registers" in path else name, (-1, 1)):
            yield f"({value}) {'+' if step > 0 else '-'} {abs(step)}"
        if name in ("repeat", "rate", "arrivals", "tx_bytes", "bytes", "warps"):
            yield f"2 * ({value})"


def _numbers(path: Path, value: int) -> Iterator[int]:
    if "align" in path:
        yield from (value // 2, value * 2)
        return
    key = "registers" if "registers" in path else str(path[-1])
    yield from (value + step for step in STEPS.get(key, (-1, 1)))


def _is_expression(path: Path, name: str) -> bool:
    return (
        name in ("repeat", "warps", "rate", "arrivals", "tx_bytes", "bytes", "count", "items")
        or name in ("value", "min", "max", "want", "entry", "shape", "box", "tile", "cluster")
        or name == "times"
    ) and path[0] != "params"


def _bodies(body: list[Any]) -> Iterator[tuple[str, list[Any], str, str]]:
    """(kind, mutated list, before, after)."""
    for place, item in enumerate(body):
        head, tail = body[:place], body[place + 1 :]
        name = _short(item)
        verb = str(item).split()[0] if isinstance(item, str) else "repeat"
        kind = f"without {verb}" if verb in ORDERING else "without op"
        yield kind, [*head, *tail], name, "left out"
        yield "doubled op", [*head, item, item, *tail], name, "twice"
        if tail:
            text = f"{name}; {_short(tail[0])}"
            yield "order", [*head, tail[0], item, *tail[1:]], text, "exchanged"
        if isinstance(item, dict):
            inner = item["body"]
            yield "loop", [*head, *inner, *tail], name, "once"
            yield (
                "loop",
                [*head, inner[0], {**item, "body": inner[1:]}, *tail],
                name,
                "first before",
            )
            yield (
                "loop",
                [*head, {**item, "body": inner[:-1]}, inner[-1], *tail],
                name,
                "last after",
            )
            continue
        found = OPERATION.fullmatch(item)
        if found:
            for step in (-1, 1):
                number = int(found[2]) + step
                if number >= 0:
                    other = f"{found[1]} {number}{found[3]}"
                    what = "lag" if verb == "release" else "depth"
                    yield what, [*head, other, *tail], name, other
        for form, other in TENSOR_FORMS:
            if changed := form.fullmatch(item):
                yield (
                    "tensor form",
                    [*head, changed.expand(other), *tail],
                    name,
                    changed.expand(other),
                )
        if indexed := INDEXED.fullmatch(item):
            for what, other in _indices(*indexed.groups()):
                yield what, [*head, other, *tail], name, other
        if verb in OTHER_VERB:
            other = item.replace(verb, OTHER_VERB[verb], 1).split(" -> ")[0]
            yield "verb", [*head, other, *tail], name, other


def _indices(operation: str, index: str, threshold: str) -> Iterator[tuple[str, str]]:
    """Other counters, pieces and thresholds."""
    parts = [part.strip() for part in index.split(",")]
    if len(parts) > 1:
        yield "piece", f"{operation}[{parts[0]}]{threshold}"
        yield "piece", f"{operation}[{parts[0]}, 0]{threshold}"
        yield "piece", f"{operation}[{parts[0]}, {parts[1]} // 2]{threshold}"
        yield "piece", f"{operation}[{parts[1]}, {parts[0]}]{threshold}"
    for other in ("m", "part", "k_blocks"):
        yield "counter", f"{operation}[{', '.join([other, *parts[1:]])}]{threshold}"
    if threshold:
        yield "threshold", f"{operation}[{index}]{threshold} - 1"
        yield "threshold", f"{operation}[{index}]{threshold} + 1"
        yield "threshold", f"{operation}[{index}] 0"


def _short(value: Any) -> str:
    if isinstance(value, dict) and "repeat" in value:
        return f"repeat {value['repeat']}"
    text = str(value)
    return text if len(text) < 60 else text[:57] + "..."
