"""Compiles the shipped components and their edited copies: two units for the whole corpus."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from corpus import ARGUMENTS, SOURCES, Row, apply_all, contract_of, source_of

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.header import emit_header
from pipelink_rules.contract.load import load_contract
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.command_lines import Unit, listing_argv
from pipelink_rules.toolkit.ptx import Module, read_ptx
from pipelink_rules.toolkit.toolkit import Toolkit

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All but the test of the rows runs the real compiler."""
    for item in items:
        if HERE in item.path.parents and item.path.name != "test_rows.py":
            item.add_marker(pytest.mark.live)


@pytest.fixture(scope="session")
def unedited(repository: Path) -> dict[str, Variant]:
    """The components without an edit."""
    return {
        name: bind(load_contract(str(contract_of(name, repository))), arguments)
        for name, arguments in ARGUMENTS.items()
    }


@pytest.fixture(scope="session")
def edited(
    unedited: dict[str, Variant], repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Row], Variant]:
    """The variant of a row: with the edited contract, and a digest for an edited source."""
    folder = tmp_path_factory.mktemp("contracts")

    def variant(row: Row) -> Variant:
        bound = unedited[row.component]
        digest = f"{SOURCES.index(row):012x}" if row.source else bound.digest
        if row.contract:
            path = folder / f"{bound.contract.component}.contract.yaml"
            text = apply_all(row.contract, contract_of(row.component, repository))
            path.write_text(text, encoding="utf-8")
            bound = bind(load_contract(str(path)), ARGUMENTS[row.component])
        return replace(bound, digest=digest)

    return variant


@pytest.fixture(scope="session")
def modules(
    unedited: dict[str, Variant],
    toolkit: Toolkit,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Module]:
    """Component -> PTX of its source, without and with every edit."""
    folder = tmp_path_factory.mktemp("mismatches")

    def compiled(number: int) -> Module:
        names = [name for place, name in enumerate(ARGUMENTS) if place % 2 == number]
        unit = folder / f"unit{number}.cu"
        unit.write_text("\n".join(_units(names, unedited, repository, folder)))
        out = folder / f"unit{number}.ptx"
        includes = (str(folder), str(repository / "components/include"), str(HERE / "raw"))
        source = Unit(str(unit), "sm_90a", includes, strict=False)
        listing = listing_argv(toolkit, source, str(out), show_inline=False)
        argv = [word for word in listing if word not in ("-Xcicc", "-O0")]  # optimized
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[:4000]
        return read_ptx(out.read_text())

    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(compiled, (0, 1)))
    return {name: halves[place % 2] for place, name in enumerate(ARGUMENTS)}


def _units(
    names: list[str], unedited: dict[str, Variant], repository: Path, folder: Path
) -> list[str]:
    """Every version of every component, one after the other."""
    units = []
    for name in names:
        bound, source = unedited[name], source_of(name, repository)
        stem = bound.contract.component
        versions = [(bound, apply_all((), source))]
        for number, row in enumerate(SOURCES):
            if row.component == name:
                version = replace(bound, digest=f"{number:012x}")
                versions.append((version, apply_all(row.source, source)))
        for variant, text in versions:
            header = f"{variant.name}.contract.cuh"
            (folder / header).write_text(emit_header(variant), encoding="utf-8")
            units.append(f"#undef PL_CONTRACT_CURRENT_{stem}")
            units.append(text.replace(f'"{stem}.contract.cuh"', f'"{header}"'))
    return units
