"""Run one case in one process: a kernel that hangs or traps ends only its process.

The parent imports what children need and never touches the GPU; a child is a fork of it, so that
nothing is imported again.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from typing import Any

_FORK = multiprocessing.get_context("fork")


def in_child(
    work: Callable[..., dict[str, Any]], *arguments: Any, seconds: float
) -> dict[str, Any]:
    """Return the result of `work`; {"problem": reason} if it raises, dies or takes too long."""
    ours, theirs = _FORK.Pipe(duplex=False)
    child = _FORK.Process(target=_run, args=(theirs, work, arguments), daemon=True)
    child.start()
    theirs.close()
    try:
        if ours.poll(seconds):
            answer: dict[str, Any] = ours.recv()
        else:
            answer = {"problem": f"no answer in {seconds:g} s", "late": True}
    except EOFError:
        child.join(5)
        answer = {"problem": f"the process ended with {child.exitcode}"}
    finally:
        if child.is_alive():
            child.join(0.5)
        if child.is_alive():
            child.kill()
            child.join(10)
        ours.close()
    return answer


def _run(pipe: Any, work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> None:
    try:
        answer = work(*arguments)
    except BaseException as problem:  # every exception is an answer
        answer = {"problem": f"{type(problem).__name__}: {problem}"}
    pipe.send(answer)
    pipe.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a lost context must not be destroyed
