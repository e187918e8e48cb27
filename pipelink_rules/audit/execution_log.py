"""Execution log of a lane: its observable events in order, and the accesses between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True)
class Event:
    """One operation, with the verbs of the contract."""

    verb: str
    target: str = ""
    item: int | None = None  # of a ring, modulo twice its stages; index of a counter
    count: int | None = None  # await: groups left; expect, copy, store: bytes
    source: str = ""  # copy: the tensor read; store: the tensor written
    # copy: the tile written; mma: the tiles read, if not all; await store: "full" where all of a
    # store is awaited
    member: str = ""

    def __str__(self) -> str:
        text = f"{self.verb} {self.target}".rstrip()
        if self.verb == "copy":
            text = f"copy {self.source} -> {self.target}.{self.member}"
        elif self.verb == "store":
            text = f"store {self.target} -> {self.source}"
        elif self.source and self.verb == "mma":
            text = f"mma {self.target} -> {self.source}"
        elif self.member and self.verb == "mma":
            text = f"mma {self.target}.{self.member}"
        elif self.source and self.verb == "commit":
            text = f"commit mma -> {self.target}"
        if self.verb == "await":
            return f"{text} {self.count} {self.member}".rstrip()
        if self.verb in ("signal", "wait_until"):
            threshold = f" {self.count}" if self.count is not None else ""
            return f"{self.verb} {self.target}[{self.item}]{threshold}"
        extra = [f"item {self.item}"] if self.item is not None else []
        extra += [f"{self.count} bytes"] if self.count is not None else []
        return f"{text} ({', '.join(extra)})" if extra else text


@dataclass(frozen=True)
class Access:
    """A generic access to a port's data or to shared memory."""

    kind: str  # read, write, update (an atomic, which a contract declares as `write`)
    target: str
    stage: int = -1  # of a ring

    @property
    def performed(self) -> set[tuple[str, str]]:
        """The (operation, target) of a body that the access performs."""
        kinds = ("read", "write") if self.kind == "update" else (self.kind,)
        return {(kind, self.target) for kind in kinds}

    def __str__(self) -> str:
        return f"{self.kind} {self.target}" + (f" (stage {self.stage})" if self.stage >= 0 else "")


class Copied(NamedTuple):
    """A copy by a tensor map: from which port, and its coordinates; None = they depend on data."""

    source: str
    x: int | None
    y: int | None


@dataclass
class ExecutionLog:
    """Events, and the accesses before each (the last set: after all of them)."""

    events: list[Event] = field(default_factory=list)
    accesses: list[set[Access]] = field(default_factory=lambda: [set()])
    # (events before, buffer, addresses)
    writes: list[tuple[int, str, tuple[int, ...]]] = field(default_factory=list)
    arrivals: dict[int, int] = field(default_factory=dict)  # position of a raw event -> arrivals
    copies: list[Copied] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        """Append an event; consecutive copies of one tile are merged."""
        last = self.events[-1] if self.events else None
        if event.verb == "copy" and last and last.verb == "copy" and _same(last, event):
            total = None if None in (last.count, event.count) else last.count + event.count  # type: ignore[operator]
            self.events[-1] = Event(
                "copy", event.target, event.item, total, event.source, event.member
            )
            return
        self.events.append(event)
        self.accesses.append(set())

    def arrive(self, event: Event, number: int) -> None:
        """Append an arrival; consecutive equal ones are one event with a count."""
        if not self.events or self.events[-1] != event or event.verb == "expect":
            self.emit(event)
            self.arrivals[len(self.events) - 1] = 0
        self.arrivals[len(self.events) - 1] += number

    def access(self, access: Access) -> None:
        """Append an access since the last event."""
        self.accesses[-1].add(access)

    def write(self, buffer: str, addresses: Iterable[int]) -> None:
        """Append a write to a buffer, at the address of each thread."""
        self.writes.append((len(self.events), buffer, tuple(addresses)))

    def extend(self, other: ExecutionLog) -> None:
        """Append another log."""
        before = len(self.events)
        self.writes += [(before + number, name, address) for number, name, address in other.writes]
        self.arrivals |= {before + event: number for event, number in other.arrivals.items()}
        self.accesses[-1] |= other.accesses[0]
        self.copies += other.copies
        self.events += other.events
        self.accesses += other.accesses[1:]


def _same(a: Event, b: Event) -> bool:
    return (a.target, a.item, a.source, a.member) == (b.target, b.item, b.source, b.member)
