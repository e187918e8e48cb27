"""Run build actions under SCons: diagnostics without tracebacks, no partial outputs."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import SCons.Errors
import SCons.Node.FS

from pipelink_rules.diagnostics.diagnostic import DiagnosticSink, PipelinkError
from pipelink_rules.diagnostics.internal_error import reporting_internal_errors
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.files.atomic import sha256
from pipelink_rules.model.source_span import Span

HEARTBEAT = 10.0  # seconds between progress lines of a long action


@dataclass(frozen=True)
class Action:
    """The action of one node.  `run` receives the paths of all files the node depends on."""

    mnemonic: str  # first word of the progress line: CudaCompile, Place, ...
    subject: str
    run: Callable[[tuple[str, ...]], None] = field(compare=False)
    memory: int = 0  # bytes it may need


def describe_action(target: list[Any], source: list[Any], env: Any) -> str:
    """Return the progress line."""
    action: Action = env["PIPELINK"].actions[str(target[0])]
    return f"{action.mnemonic:<12} {action.subject}"


def run_action(target: list[Any], source: list[Any], env: Any) -> None:
    """Run the action of a node; on failure delete its targets and print its diagnostics."""
    session = env["PIPELINK"]
    _warm()
    action: Action = session.actions[str(target[0])]
    names = [str(node) for node in target]
    # Computed before the action: SCons caches the signature, so that a file that is edited
    # meanwhile is not recorded with contents that the action never read.
    before = {
        str(node): node.get_csig()
        for node in target[0].all_children()
        if isinstance(node, SCons.Node.FS.File)
    }
    session.journal.begin(names)
    try:
        with session.budget.reserve(action.memory), _progress(action):
            stages = [name for name in before if name.endswith(".json")]
            with reporting_internal_errors(f"scons: {action.mnemonic}", *stages):
                action.run(tuple(before))
        require_unchanged(before)
        missing = [name for name in names if not os.path.exists(name)]
        if missing:
            raise RuntimeError(f"{action.mnemonic} did not write {missing[0]}")
    except PipelinkError as problem:
        _remove(names)
        session.report(problem.diagnostics)
        count = plural(len(problem.diagnostics), "error")
        text = f"{action.mnemonic} of {action.subject}: {count}"
        raise SCons.Errors.BuildError(target[0], text, status=2, exitstatus=2) from None
    except BaseException:
        _remove(names)
        raise


@cache
def _warm() -> None:
    """Import the stages that most builds reach while the compiler runs."""

    def read() -> None:
        import pipelink_rules.glue.emit
        import pipelink_rules.link.audit_kernel
        import pipelink_rules.link.link
        import pipelink_rules.place.place
        import pipelink_rules.report.summary_table  # noqa: F401

    threading.Thread(target=read).start()


def _remove(names: list[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(name)


@contextmanager
def _progress(action: Action) -> Iterator[None]:
    """Print a line every few seconds, so that a long action does not look like a hang."""
    start, done = time.monotonic(), threading.Event()

    def report() -> None:
        while not done.wait(HEARTBEAT):
            line = f"{action.mnemonic:<12} {action.subject}: {time.monotonic() - start:.0f} s"
            print(line, file=sys.stderr, flush=True)

    threading.Thread(target=report, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def require_unchanged(before: Mapping[str, str]) -> None:
    """Raise PL1304 for every file whose sha256 changed."""
    sink = DiagnosticSink()
    for name, digest in before.items():
        if not os.path.isfile(name) or sha256(name) != digest:
            sink.add(
                "PL1304",
                f"{name} changed while an action read it",
                Span(name),
                expected="the contents from before the action",
                found="different contents after the action",
                suggestions=("run scons again",),
                subject=name,
            )
    sink.raise_if_any()
