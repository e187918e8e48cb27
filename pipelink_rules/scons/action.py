"""How does a step run as a SCons action?  Findings without tracebacks, nothing half-written."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import SCons.Errors
import SCons.Node.FS

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.files.atomic import sha256
from pipelink_rules.files.bad_input import reporting_bad_input
from pipelink_rules.model.source_span import Span

HEARTBEAT = 10.0  # seconds between signs of life of a long step


@dataclass(frozen=True)
class Action:
    """What one node does.  `run` gets the paths of all files the node depends on."""

    mnemonic: str  # first word of the progress line: CudaCompile, Place, ...
    subject: str
    run: Callable[[tuple[str, ...]], None] = field(compare=False)
    memory: int = 0  # bytes it may need


def describe_action(target: list[Any], source: list[Any], env: Any) -> str:
    """The progress line."""
    action: Action = env["PIPELINK"].actions[str(target[0])]
    return f"{action.mnemonic:<12} {action.subject}"


def run_action(target: list[Any], source: list[Any], env: Any) -> None:
    """Runs the step of a node.  On failure its targets are gone and its findings are on stderr."""
    session = env["PIPELINK"]
    _warm()
    action: Action = session.actions[str(target[0])]
    names = [str(node) for node in target]
    inputs = {
        str(node): node for node in target[0].all_children() if isinstance(node, SCons.Node.FS.File)
    }
    # Asked before the step: the build system keeps the answer, so that a file that is edited
    # meanwhile is not remembered with contents the step never saw.
    before = {name: node.get_csig() for name, node in inputs.items()}
    session.journal.begin(names)
    try:
        with session.budget.reserve(action.memory), _signs_of_life(action):
            stages = [name for name in inputs if name.endswith(".json")]
            with reporting_bad_input(*stages) if stages else nullcontext():
                action.run(tuple(inputs))
        require_unchanged(before)
        missing = [name for name in names if not os.path.exists(name)]
        if missing:
            raise RuntimeError(f"{action.mnemonic} did not write {missing[0]}")
    except PipelinkError as problem:
        _remove(names)
        session.report(problem.diagnostics)
        raise SCons.Errors.BuildError(
            node=target[0],
            errstr=_summary(action, len(problem.diagnostics)),
            status=2,
            exitstatus=2,
        ) from None
    except BaseException:
        _remove(names)
        raise


@cache
def _warm() -> None:
    """Something runs: the stages that most steps lead to are read while the compiler works."""

    def read() -> None:
        import pipelink_rules.glue.emit
        import pipelink_rules.link.audit_kernel
        import pipelink_rules.link.link
        import pipelink_rules.place.place
        import pipelink_rules.report.summary_table  # noqa: F401

    threading.Thread(target=read).start()


def _summary(action: Action, findings: int) -> str:
    return f"{action.mnemonic} of {action.subject}: {plural(findings, 'error')}"


def _remove(names: list[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(name)


@contextmanager
def _signs_of_life(action: Action) -> Iterator[None]:
    """A line every few seconds, so that a long step is not taken for a hang."""
    start, done = time.monotonic(), threading.Event()

    def report() -> None:
        while not done.wait(HEARTBEAT):
            seconds = time.monotonic() - start
            print(
                f"{action.mnemonic:<12} {action.subject}: {seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


def require_unchanged(before: Mapping[str, str]) -> None:
    """Raises PL1304 for every file that no longer has the sha256 it had."""
    changed = [
        name
        for name, digest in before.items()
        if not os.path.isfile(name) or sha256(name) != digest
    ]
    if changed:
        raise PipelinkError(
            Diagnostic(
                "PL1304",
                f"{name} changed while an action read it",
                (Label(Span(name)),),
                expected="the contents from before the action",
                found="different contents after the action",
                suggestions=("run scons again",),
                subject=name,
            )
            for name in changed
        )
