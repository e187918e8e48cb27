"""Events of the warps of a launch, as the runtimes `trace` and `record` write them."""

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pipelink_rules.model.linked_kernel import Script, Site

EVENT_BYTES = 16
# By the numbers of components/runtime/operation.cuh.
OPERATIONS = (
    "acquire",
    "wait",
    "sync",
    "arrive",
    "expect",
    "copy",  # by a tensor map
    "copy",  # of consecutive bytes
    "commit",
    "release",
    "store",  # by a tensor map
    "store",  # of consecutive bytes
    "store wait",
    "fence",
    "signal",
    "wait_until",
)


class Event(NamedTuple):
    """One operation of one warp."""

    verb: str
    site: int
    stage: int
    value: int
    begin: int  # SM clock, low 32 bits; 0 in a recording
    end: int

    @property
    def cycles(self) -> int:
        """Its duration; the clock may have wrapped once."""
        return (self.end - self.begin) & 0xFFFFFFFF


@dataclass(frozen=True)
class WarpRow:
    """The events of one warp."""

    cta: int
    warp: int
    sm: int
    start_clock: int  # of the SM, at its first operation
    start_ns: int  # of the GPU's timer then, low 32 bits
    operations: int  # all of them; more than there are events where there was no room
    events: str  # 16 bytes each, base64

    def decoded(self) -> tuple[Event, ...]:
        """The events, in order."""
        return tuple(decode_events(base64.b64decode(self.events)))


@dataclass(frozen=True)
class Recording:
    """The events of one launch; `<name>.trace.json` or `<name>.record.json` is its file."""

    FORMATS: ClassVar[tuple[str, ...]] = ("recording",)

    megakernel: str
    target: str
    runtime: str  # "trace" or "record"
    device: str
    grid: int
    threads: int
    clock_khz: int  # of the SMs; 0 = unknown
    symbols: tuple[tuple[str, int], ...]
    sites: tuple[Site, ...]
    script: Script
    rows: tuple[WarpRow, ...]
    problem: str = ""  # how the launch failed, where it did

    def role_of(self, warp: int) -> str:
        """The program role that runs on a warp; empty for a warp without one."""
        for role in self.script.roles:
            if role.first_warp <= warp < role.first_warp + role.warps:
                return role.name
        return ""


def decode_events(data: bytes) -> Iterator[Event]:
    """The events of a row of the buffer, up to the first that was not written."""
    for what, value, begin, end in struct.iter_unpack("<4I", data):
        if not what:
            return
        number = (what & 0xFF) - 1
        verb = OPERATIONS[number] if number < len(OPERATIONS) else f"operation {number}"
        yield Event(verb, what >> 16, what >> 8 & 0xFF, value, begin, end)
