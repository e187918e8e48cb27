"""What happened to one input?  Accepted, refused with findings, or one of the faults."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from pipelink_rules.diagnostics.catalogue import catalogue
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.render import render_json, render_text

SECONDS = 2.5  # of processor time for one input: far above what any takes, on a slow machine too
MEGABYTES = 200  # more than before


class TooSlow(BaseException):
    """The reader took longer than it may."""


@dataclass
class Verdict:
    """accepted, refused, or a fault with its reason."""

    outcome: str  # "accepted", "refused", "fault"
    reason: str = ""
    codes: tuple[str, ...] = ()


@dataclass
class _Watch:
    allowed: tuple[str, ...] = ()
    active: bool = False
    written: list[str] = field(default_factory=list)


_watch = _Watch()


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watch.active or event not in ("open", "os.mkdir", "os.rename", "os.symlink"):
        return
    if event == "open":
        path, mode, flags = arguments
        writes = any(sign in str(mode or "") for sign in "wax+") or (
            isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if not writes or isinstance(path, int):
            return
    else:
        path = arguments[1] if event in ("os.rename", "os.symlink") else arguments[0]
    place = os.path.realpath(os.fsdecode(path))
    if place != os.devnull and not place.startswith(_watch.allowed):
        _watch.written.append(place)


sys.addaudithook(_hook)


@contextmanager
def writes_only_below(*folders: str) -> Iterator[list[str]]:
    """The list of what is written anywhere else."""
    _watch.allowed = tuple(os.path.realpath(folder) + os.sep for folder in folders)
    _watch.written = []
    _watch.active = True
    try:
        yield _watch.written
    finally:
        _watch.active = False


def _late(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def verdict_of(read: Callable[[], object], folder: str, positions: bool = True) -> Verdict:
    """Runs a reader; `folder` is where it may write.

    positions: whether each finding has to name a place.
    """
    before = signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        with writes_only_below(folder, tempfile.gettempdir()) as written:
            try:
                read()
                verdict = Verdict("accepted")
            except PipelinkError as problem:
                verdict = _refused(problem, positions)
        if written:
            return Verdict("fault", f"wrote {written[0]}")
        return verdict
    except TooSlow:
        return Verdict("fault", f"took more than {SECONDS} s in {_where(sys.exc_info()[2])}")
    except Exception as problem:
        place = _where(problem.__traceback__)
        return Verdict("fault", f"{type(problem).__name__} at {place}: {str(problem)[:120]}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _refused(problem: PipelinkError, positions: bool) -> Verdict:
    codes = tuple(sorted({item.code for item in problem.diagnostics}))
    for item in problem.diagnostics:
        if item.code not in catalogue():
            return Verdict("fault", f"unknown code {item.code}")
        if item.code.startswith("PL99"):
            cause = problem.__cause__
            place = _where(cause.__traceback__) if cause else "?"
            return Verdict("fault", f"{item.message} at {place}: {item.found[:120]}")
        if "\n" in item.message or len(item.message) > 1000:
            return Verdict("fault", f"{item.code}: not one line: {item.message[:80]!r}")
        if positions and not (item.labels and item.labels[0].span.file):
            return Verdict("fault", f"{item.code} names no place: {item.message[:80]}")
    if not problem.diagnostics:
        return Verdict("fault", "no finding")
    render_text(problem.diagnostics).encode()
    render_json(problem.diagnostics).encode()
    return Verdict("refused", codes=codes)


def _where(trace: Any) -> str:
    frames = [f for f in traceback.extract_tb(trace) if "pipelink_rules" in f.filename]
    frame = frames[-1] if frames else (traceback.extract_tb(trace) or [None])[-1]
    if frame is None:
        return "?"
    return f"{frame.filename.rpartition('pipelink_rules/')[2]}:{frame.lineno} {frame.name}"


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
