"""Contracts and declarations for the tests of `collect`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.source_span import Span
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration


def contracts_of(root: Path, folder: Path, package: str = "") -> dict[str, Contract]:
    """Label -> contract of all contracts below a folder."""
    found = {}
    for path in sorted(folder.rglob("*.contract.yaml")):
        file = path.relative_to(root).as_posix()
        contract = parse_contract(path.read_text(), file)
        found[f"//{package or Path(file).parent}:{contract.component}"] = contract
    return found


@pytest.fixture(scope="session")
def parts(repository: Path) -> dict[str, Contract]:
    """`//parts:tiles`, `load`, `mma`, `bias`, `store`: small contracts that only tests use."""
    folder = repository / "tests" / "golden_stages" / "declare_components"
    return contracts_of(repository, folder, "parts")


@pytest.fixture(scope="session")
def components(repository: Path) -> dict[str, Contract]:
    """The contracts that the repository ships."""
    return contracts_of(repository, repository / "components")


@pytest.fixture
def linear() -> dict[str, Any]:
    """The clauses of a declaration: load -> mma -> bias -> store, the tile given once."""
    return {
        "name": "linear",
        "instances": {
            "tiles": ("//parts:tiles", {}),
            "load": ("//parts:load", {"TM": 128, "TN": 128}),
            "mma": ("//parts:mma", {}),
            "bias": ("//parts:bias", {}),
            "store": ("//parts:store", {}),
        },
        "connect": {"mma.ab": "load.ab", "bias.acc": "mma.acc", "store.acc": "bias.out"},
        "tensors": {"a": "load.A", "b": "load.B", "bias": "bias.vector", "out": "store.C"},
        "scalars": {"scale": "bias.scale"},
        "span": Span("SConscript", 1, 1),
    }


@pytest.fixture
def program(parts: dict[str, Contract]) -> Callable[..., Program]:
    """Clauses -> program for sm_90a."""

    def build(clauses: dict[str, Any], extra: dict[str, Contract] | None = None) -> Program:
        spec = parse_declaration(**clauses)
        return resolve(spec, bind_instances(spec, {**parts, **(extra or {})}), "sm_90a")

    return build


@pytest.fixture
def refused(program: Callable[..., Program]) -> Callable[..., tuple[Diagnostic, ...]]:
    """Clauses -> the findings that stop them."""

    def build(clauses: dict[str, Any], extra: dict[str, Contract] | None = None) -> Any:
        with pytest.raises(PipelinkError) as caught:
            program(clauses, extra)
        return caught.value.diagnostics

    return build


@pytest.fixture(scope="session")
def declarations(repository: Path) -> dict[str, MegakernelSpec]:
    """Name -> declaration of every megakernel that the repository ships."""
    found: dict[str, MegakernelSpec] = {}

    class Environment:
        def Megakernel(self, **clauses: Any) -> None:
            file = sys._getframe(1).f_code.co_filename
            span = Span(file, sys._getframe(1).f_lineno, 1)
            spec = parse_declaration(**clauses, span=span, text=(repository / file).read_text())
            found[spec.name] = spec

    for path in sorted((repository / "megakernels").glob("*/SConscript")):
        file = path.relative_to(repository).as_posix()
        scope = {"env": Environment(), "Import": lambda *names: None}
        exec(compile(path.read_text(), file, "exec"), scope)
    return found
