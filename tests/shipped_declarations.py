"""The megakernels of this repository as their SConscripts declare them, without SCons."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from pipelink_rules.contract.load import load_contract
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration

REPOSITORY = Path(__file__).resolve().parent.parent


class _Recorder:
    """Replaces `env` in an SConscript and records its calls."""

    def __init__(self) -> None:
        self.megakernels: dict[str, dict[str, Any]] = {}
        self.built_by_name: dict[str, dict[str, Any]] = {}

    def Megakernel(self, *, default: bool = True, **declaration: Any) -> None:
        found = self.megakernels if default else self.built_by_name
        found[declaration["name"]] = declaration


@cache
def contracts() -> dict[str, Contract]:
    """Return label -> contract, for every component of the repository."""
    found = {}
    for path in sorted((REPOSITORY / "components").glob("*/*.contract.yaml")):
        package = path.parent.relative_to(REPOSITORY).as_posix()
        found[f"//{package}:{path.name.split('.')[0]}"] = load_contract(path)
    return found


def megakernels() -> dict[str, dict[str, Any]]:
    """Return name -> keywords of `env.Megakernel`, for those that are built by default."""
    return _declared().megakernels


def built_by_name() -> dict[str, dict[str, Any]]:
    """Return name -> keywords of the others, families of one program with other tiles."""
    return _declared().built_by_name


@cache
def _declared() -> _Recorder:
    recorder = _Recorder()
    for path in sorted((REPOSITORY / "megakernels").glob("*/SConscript")):
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
        exec(code, {"Import": lambda *names: None, "env": recorder})
    return recorder


@cache
def program_of(name: str, arch: str = "sm_90a") -> Program:
    """Return the program of a megakernel."""
    spec = parse_declaration(**{**megakernels(), **built_by_name()}[name])
    return resolve(spec, bind_instances(spec, contracts(), {}), arch)


@cache
def placement_of(name: str, arch: str = "sm_90a") -> Placement:
    """Return the placement of a megakernel."""
    return place(placement_problem(program_of(name, arch)))


def pairs() -> list[tuple[str, str]]:
    """Return every (megakernel, arch) that the repository builds."""
    return [(name, arch) for name, made in megakernels().items() for arch in made["archs"]]
