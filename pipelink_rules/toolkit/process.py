"""How is a tool run?  Minimal environment, captured text, a time limit, no shell."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ToolOutput:
    """What a finished tool said."""

    argv: tuple[str, ...]
    code: int  # exit status; negative = ended by a signal; 127 = could not be started
    text: str  # stdout, then stderr
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """The tool ran to its end and returned 0."""
        return self.code == 0 and not self.timed_out


def run_tool(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str | Path | None = None,
    timeout: float = 600.0,
) -> ToolOutput:
    """Runs one tool to its end.  `timeout` in seconds; its whole process group ends with it."""
    command = tuple(str(part) for part in argv)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,  # nvcc starts cicc and ptxas: a time-out must reach them too
        )
    except OSError as problem:
        return ToolOutput(command, 127, f"{command[0]}: {problem.strerror or problem}")
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end_group(process)
        out, err = process.communicate()
        return ToolOutput(command, process.returncode, _text(out, err), timed_out=True)
    except BaseException:
        _end_group(process)
        process.wait()
        raise
    return ToolOutput(command, process.returncode, _text(out, err))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(out: bytes, err: bytes) -> str:
    parts = [part.decode("utf-8", "replace").rstrip() for part in (out, err)]
    return "\n".join(part for part in parts if part)
