"""Runs tools: argv and a minimal environment -> captured text, with a time limit and no shell."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pipelink_rules
from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.toolkit.toolkit import Toolkit

TIMEOUT = 1800.0  # seconds; the largest CuTe kernels need four minutes
_QUOTED = 24  # lines of a tool's text in a message


@dataclass(frozen=True)
class ToolOutput:
    """The output of a finished tool."""

    argv: tuple[str, ...]
    code: int  # exit status; negative = ended by a signal; 127 = could not be started
    text: str  # stdout, then stderr
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether the tool ended in time and returned 0."""
        return self.code == 0 and not self.timed_out


def run_tool(
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str | Path | None = None,
    timeout: float = 600.0,
) -> ToolOutput:
    """Run one tool; after `timeout` seconds its whole process group is killed."""
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


def run(argv: Sequence[str], toolkit: Toolkit, cwd: str | Path | None = None) -> ToolOutput:
    """Run a tool of the toolkit; PL1204 if it crashes or does not start, PL1205 on a time-out."""
    output = run_tool(argv, toolkit.environment(os.environ), cwd=cwd, timeout=TIMEOUT)
    check_alive(output)
    return output


def check_alive(output: ToolOutput) -> None:
    """Raise PL1204 if a tool crashed or did not start, PL1205 if it timed out."""
    tool = Path(output.argv[0]).name
    if output.timed_out:
        raise error(
            "PL1205",
            f"{tool} did not finish within {TIMEOUT:,.0f} s",
            notes=(command_note(output),),
            subject=tool,
        )
    if output.code < 0 or output.code in (126, 127):
        ended = f"signal {-output.code}" if output.code < 0 else "not executable"
        raise error(
            "PL1204",
            f"{tool} crashed ({ended})" if output.code < 0 else f"{tool} did not start ({ended})",
            found=quote(output.text),
            notes=(command_note(output),),
            suggestions=("run `pipelink doctor`",),
            subject=tool,
        )


def command_note(output: ToolOutput) -> str:
    """Return the command in a form that can be rerun."""
    return "command: " + " ".join(output.argv)


def quote(text: str, limit: int = _QUOTED) -> str:
    """Return the first lines of a tool's text."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    cut = [f"... {len(lines) - limit} more lines"] if len(lines) > limit else []
    return "\n".join(lines[:limit] + cut)


def child_argv(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module of PipeLink in a process of this interpreter."""
    return [sys.executable, "-m", module, *arguments]


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the tools' environment plus the path from which a child imports PipeLink."""
    package = str(Path(pipelink_rules.__file__).parent.parent)
    # The child needs the same site-packages as this process, for any cause of their presence.
    entries = [package, *(entry for entry in sys.path if entry and os.path.isdir(entry))]
    return {**environment, "PYTHONPATH": os.pathsep.join(dict.fromkeys(entries))}


@contextmanager
def work_folder(beside: Path) -> Iterator[Path]:
    """Yield a private folder next to the results, which is always removed at the end."""
    beside.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=beside, prefix=".work_"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
