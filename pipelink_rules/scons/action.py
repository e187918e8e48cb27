"""How does a step run as a SCons action?  Findings without tracebacks, nothing half-written."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import SCons.Errors
import SCons.Node.FS

from pipelink_rules.actions.inputs import require_unchanged
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.bad_input import reporting_bad_input

HEARTBEAT = 10.0  # seconds between signs of life of a long step


@dataclass(frozen=True)
class Action:
    """What one node does.  `run` gets the paths of all files the node depends on."""

    mnemonic: str  # first word of the progress line: CudaCompile, Place, ...
    subject: str
    run: Callable[[tuple[str, ...]], None] = field(compare=False)
    memory: int = 0  # bytes it may need


def describe_step(target: list[Any], source: list[Any], env: Any) -> str:
    """The progress line."""
    step: Action = env["PIPELINK"].steps[str(target[0])]
    return f"{step.mnemonic:<12} {step.subject}"


def run_step(target: list[Any], source: list[Any], env: Any) -> None:
    """Runs the step of a node.  On failure its targets are gone and its findings are on stderr."""
    session = env["PIPELINK"]
    _warm()
    step: Action = session.steps[str(target[0])]
    names = [str(node) for node in target]
    inputs = {
        str(node): node for node in target[0].all_children() if isinstance(node, SCons.Node.FS.File)
    }
    # Asked before the step: the build system keeps the answer, so that a file that is edited
    # meanwhile is not remembered with contents the step never saw.
    before = {name: node.get_csig() for name, node in inputs.items()}
    session.journal.begin(names)
    try:
        with session.budget.reserve(step.memory), _signs_of_life(step):
            stages = [name for name in inputs if name.endswith(".json")]
            with reporting_bad_input(*stages) if stages else nullcontext():
                step.run(tuple(inputs))
        require_unchanged(before)
        missing = [name for name in names if not os.path.exists(name)]
        if missing:
            raise RuntimeError(f"{step.mnemonic} did not write {missing[0]}")
    except PipelinkError as problem:
        _remove(names)
        session.report(problem.diagnostics)
        raise SCons.Errors.BuildError(
            node=target[0], errstr=_summary(step, len(problem.diagnostics)), status=2, exitstatus=2
        ) from None
    except BaseException:
        _remove(names)
        raise


@cache
def _warm() -> None:
    """Something runs: the stages that most steps lead to are read while the compiler works."""

    def read() -> None:
        for name in ("place.place", "glue.emit", "link.audit", "link.link", "report.table"):
            import_module(f"pipelink_rules.{name}")

    threading.Thread(target=read).start()


def _summary(step: Action, findings: int) -> str:
    plural = "error" if findings == 1 else "errors"
    return f"{step.mnemonic} of {step.subject}: {findings} {plural}"


def _remove(names: list[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(name)


@contextmanager
def _signs_of_life(step: Action) -> Iterator[None]:
    """A line every few seconds, so that a long step is not taken for a hang."""
    start, done = time.monotonic(), threading.Event()

    def tell() -> None:
        while not done.wait(HEARTBEAT):
            seconds = time.monotonic() - start
            print(
                f"{step.mnemonic:<12} {step.subject}: {seconds:.0f} s", file=sys.stderr, flush=True
            )

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
