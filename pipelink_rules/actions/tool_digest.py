"""Which version of the rules made a file?  Every node of a build depends on the answer.

A build system does not see the Python that runs inside a step, so each stage has a version: a
digest over the sources it is made of.  An edit to the placement rebuilds placements and what
follows, and no object.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import pipelink_rules

_NOUNS = ("__init__.py", "model", "files", "expression", "contract", "actions")

# stage -> the parts of the package whose edit may change what the stage writes.
STAGES: dict[str, tuple[str, ...]] = {
    "spec": (*_NOUNS, "program"),
    "check": (*_NOUNS, "program", "check"),
    "header": _NOUNS,
    "compile": (*_NOUNS, "toolkit", "compile", "audit"),
    "collect": (*_NOUNS, "program"),
    "place": (*_NOUNS, "program", "place", "solver"),
    "glue": (*_NOUNS, "program", "glue"),
    "object": (*_NOUNS, "toolkit", "compile", "audit"),
    "link": (*_NOUNS, "program", "toolkit", "compile", "glue", "link"),
    "describe": (*_NOUNS, "program", "check", "solver", "place", "glue", "report"),
    "twin": (*_NOUNS, "program", "toolkit", "compile", "glue", "link"),
}

SALT = ""  # a project may add what its own rules do; part of every version


@cache
def tool_version(stage: str) -> str:
    """`<package version>+<digest of the stage's sources>`; equal in every place it is installed."""
    root = Path(pipelink_rules.__file__).parent
    digest = hashlib.sha256(SALT.encode())
    for part in STAGES[stage]:
        digest.update(_digest(root, part).encode())
    return f"{pipelink_rules.__version__}+{digest.hexdigest()[:16]}"


@cache
def _digest(root: Path, part: str) -> str:
    path = root / part
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
