"""Which wrong declarations can be made of a right one?  Keywords of `env.Megakernel` -> mutants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutants import DROP, Mutant


def mutants_of_declaration(declaration: dict[str, Any]) -> Iterator[Mutant]:
    """All mutants of connections, bindings, transfers, parameters and numbers."""
    yield from _connections(declaration)
    for section in ("tensors", "scalars"):
        yield from _bindings(section, declaration.get(section, {}))
    yield from _instances(declaration["instances"])
    connect = declaration["connect"]
    requested = declaration.get("transfers", {})
    for consumer, producer in connect.items():
        for kind in ("handover", "fused", "ring", "multicast"):
            if requested.get(consumer) != kind:
                yield _set("transfers", {**requested, consumer: kind}, f"{consumer} {kind}")
        for count in (0, 1, 2, 3, 9):
            yield _set("stages", {producer: count}, f"{producer} {count}")
    for name in requested:
        yield _set(
            "transfers", {k: v for k, v in requested.items() if k != name}, f"{name} left out"
        )
    for name in declaration["instances"]:
        for count in (1, 2, 3, 4, 8, 16):
            yield _set("warps", {name: count}, f"{name} {count}")
    for count in (0, 2, 3, 4):
        yield _set("occupancy", count, str(count))
    for shape in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1), (0, 1, 1)):
        if shape != declaration.get("cluster", (1, 1, 1)):
            yield _set("cluster", shape, str(shape))
    yield _set("archs", ["sm_100a"], "sm_100a")
    yield _set("archs", ["sm_80"], "sm_80")
    yield _set("runtime", "fast", "fast")


def _set(section: str, value: Any, after: str) -> Mutant:
    return Mutant("", section, (section,), value, "as declared", after)


def _connections(declaration: dict[str, Any]) -> Iterator[Mutant]:
    connect: dict[str, str] = declaration["connect"]
    ends = [*connect, *connect.values()]
    others = [
        end
        for section in ("tensors", "scalars")
        for given in declaration.get(section, {}).values()
        for end in ([given] if isinstance(given, str) else given)
    ]
    for consumer, producer in connect.items():
        yield Mutant("", "connect", ("connect", consumer), DROP, producer, "left out")
        for other in dict.fromkeys((*ends, *others)):
            if other != producer:
                yield Mutant("", "connect", ("connect", consumer), other, producer, other)
    pairs = list(connect.items())
    for place, (first, given) in enumerate(pairs):
        for second, taken in pairs[place + 1 :]:
            both = {**connect, first: taken, second: given}
            yield _set("connect", both, f"{first} and {second} exchanged")


def _bindings(section: str, given: dict[str, Any]) -> Iterator[Mutant]:
    ends = [end for item in given.values() for end in ([item] if isinstance(item, str) else item)]
    for keyword, value in given.items():
        yield Mutant("", section, (section, keyword), DROP, str(value), "left out")
        for end in ends:
            instances = [value] if isinstance(value, str) else value
            if end not in instances:
                yield Mutant("", section, (section, keyword), end, str(value), end)
                both = [*instances, end]
                yield Mutant("", section, (section, keyword), both, str(value), str(both))
                rest = {
                    k: [e for e in ([v] if isinstance(v, str) else v) if e != end]
                    for k, v in given.items()
                }
                joined = {k: v for k, v in {**rest, keyword: both}.items() if v}
                yield _set(section, joined, f"{keyword} = {both}, from its own keyword")
    pairs = list(given.items())
    for place, (first, one) in enumerate(pairs):
        for second, two in pairs[place + 1 :]:
            yield _set(section, {**given, first: two, second: one}, f"{first} for {second}")


def _instances(instances: dict[str, Any]) -> Iterator[Mutant]:
    labels = {label for label, _ in instances.values()}
    for name, (label, arguments) in instances.items():
        yield Mutant("", "instances", ("instances", name), DROP, label, "left out")
        for other in sorted(labels - {label}):
            value = (other, arguments)
            yield Mutant("", "instances", ("instances", name), value, label, other)
        for key, given in arguments.items():
            values: list[Any] = ["f16", "f32", "bf16"]
            if isinstance(given, int):
                values = [given - 1, given + 1, given // 2, given * 2]
            for other in values:
                if other != given:
                    value = (label, {**arguments, key: other})
                    yield Mutant(
                        "", "argument", ("instances", name), value, f"{key} {given}", str(other)
                    )
            rest = {k: v for k, v in arguments.items() if k != key}
            value = (label, rest)
            yield Mutant("", "argument", ("instances", name), value, f"{key} {given}", "left out")
