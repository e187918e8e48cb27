"""Compiles the shipped components and their lying copies: two units for the whole corpus."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from corpus import ARGUMENTS, SOURCES, Lie, contract_of, source_of

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.header import emit_header
from pipelink_rules.contract.load import load_contract
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.command_lines import Unit, shadow_argv
from pipelink_rules.toolkit.ptx import Module, read_ptx
from pipelink_rules.toolkit.toolkit import Toolkit

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs the real compiler."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.live)


def edited(text: str, lie: Lie) -> str:
    """The text with the lie in its place."""
    assert lie.old in text, f"{lie.label}: nothing to replace"
    return text.replace(lie.old, lie.new, 1)


@pytest.fixture(scope="session")
def honest(repository: Path) -> dict[str, Variant]:
    """The shipped components."""
    return {
        name: bind(load_contract(str(contract_of(name, repository))), arguments)
        for name, arguments in ARGUMENTS.items()
    }


@pytest.fixture(scope="session")
def lying(
    honest: dict[str, Variant], repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Lie], Variant]:
    """The variant of a lie: a contract of its own, or a source of its own under its own digest."""
    folder = tmp_path_factory.mktemp("contracts")

    def variant(lie: Lie) -> Variant:
        true = honest[lie.component]
        if lie.source:
            return replace(true, digest=f"{SOURCES.index(lie):012x}")
        path = folder / f"{true.contract.component}.contract.yaml"
        text = contract_of(lie.component, repository).read_text()
        path.write_text(edited(text, lie))
        bound = bind(load_contract(str(path)), ARGUMENTS[lie.component])
        return replace(bound, digest=true.digest)

    return variant


@pytest.fixture(scope="session")
def modules(
    honest: dict[str, Variant],
    toolkit: Toolkit,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Module]:
    """Component -> PTX of its honest and lying sources."""
    folder = tmp_path_factory.mktemp("lies")

    def compiled(number: int) -> Module:
        names = [name for place, name in enumerate(ARGUMENTS) if place % 2 == number]
        unit = folder / f"unit{number}.cu"
        unit.write_text("\n".join(_pieces(names, honest, repository, folder)))
        out = folder / f"unit{number}.ptx"
        includes = (str(folder), str(repository / "components/include"), str(HERE / "raw"))
        argv = shadow_argv(toolkit, Unit(str(unit), "sm_90a", includes, strict=False), str(out))
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[:4000]
        return read_ptx(out.read_text())

    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(compiled, (0, 1)))
    return {name: halves[place % 2] for place, name in enumerate(ARGUMENTS)}


def _pieces(
    names: list[str], honest: dict[str, Variant], repository: Path, folder: Path
) -> list[str]:
    """Every variant of every component, one after the other."""
    pieces = []
    for name in names:
        true, source = honest[name], source_of(name, repository).read_text()
        stem = true.contract.component
        versions = [(true, source)]
        for number, lie in enumerate(SOURCES):
            if lie.component == name:
                versions.append((replace(true, digest=f"{number:012x}"), edited(source, lie)))
        for variant, text in versions:
            header = f"{variant.name}.contract.cuh"
            (folder / header).write_text(emit_header(variant))
            pieces.append(f"#undef PL_CONTRACT_CURRENT_{stem}")
            pieces.append(text.replace(f'"{stem}.contract.cuh"', f'"{header}"'))
    return pieces
