"""Run tests against a mutant of a module, in a process of its own.

The process is forked, so that pytest and its plugins are imported once.  The mutant takes the place
of the module before anything imports it.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

KILLED, SURVIVED = "killed", "survived"
SECONDS = 60  # a mutant that runs longer hangs: killed
_PASSED, _NOT_RUN = 0, (2, 3, 4, 5)  # exit codes of pytest
_OPTIONS = ("-x", "-q", "-n", "0", "-p", "no:cacheprovider")


class _Loader(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, module: str, path: Path, tree: ast.Module):
        self.module, self.path, self.tree = module, path, tree

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


def run(module: str, path: Path, tests: Sequence[str], tree: ast.Module) -> str:
    """Return whether a test fails (or hangs) with this module; ValueError if no test could run."""
    import hypothesis
    import pytest
    import z3  # type: ignore[import-untyped]

    assert hypothesis and z3 and module not in sys.modules, f"{module} is imported already"
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 3
        try:
            signal.alarm(SECONDS)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1), os.dup2(null, 2)
            sys.meta_path.insert(0, _Loader(module, path, tree))
            status = int(pytest.main([*_OPTIONS, *tests]))
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        return KILLED
    status = os.waitstatus_to_exitcode(ended)
    if status == _PASSED:
        return SURVIVED
    if status in _NOT_RUN[1:]:
        raise ValueError(f"pytest ended with {status}: no test ran")
    return KILLED  # a failing test, or a module that no longer imports
