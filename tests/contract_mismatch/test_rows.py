"""Every row of the corpus fits today's sources and contracts; no row is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import (
    ARGUMENTS,
    GAPS,
    HARMLESS,
    MISMATCHES,
    ROWS,
    STILL_PROVED,
    Row,
    apply_all,
    contract_of,
    source_of,
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_row_fits_its_component(row: Row, repository: Path) -> None:
    """An edit that no longer applies would test nothing."""
    assert row.source or row.contract
    apply_all(row.source, source_of(row.component, repository))
    apply_all(row.contract, contract_of(row.component, repository))


def test_no_row_is_lost() -> None:
    """Raise these numbers with new rows; a gap that is closed may move to the corpus."""
    assert len(MISMATCHES) >= 340
    assert len(HARMLESS) >= 28
    assert len(STILL_PROVED) >= 28
    assert len(MISMATCHES) + len(GAPS) >= 340 + 28
    assert sum(not row.caught for row in GAPS) <= 7
    assert len({row.label for row in ROWS}) == len(ROWS)


def test_every_shipped_component_has_rows_or_arguments(repository: Path) -> None:
    folder = repository / "components"
    names = {
        str(path.relative_to(folder)).removesuffix(".contract.yaml")
        for path in folder.rglob("*.contract.yaml")
    }
    assert names == {name for name in ARGUMENTS if not name.startswith("raw/")}
