"""Contracts from files: the shipped ones, and how files are named in messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_contract import SAMPLE

from pipelink_rules.contract.load import load_contract
from pipelink_rules.diagnostics.diagnostic import PipelinkError


def test_every_shipped_contract_loads(repository: Path) -> None:
    found = sorted((repository / "components").rglob("*.contract.yaml"))
    assert found
    for path in found:
        contract = load_contract(path)
        assert path.name == f"{contract.component}.contract.yaml"


def test_files_are_named_as_the_user_would(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "parts" / "s.contract.yaml"
    path.parent.mkdir()
    path.write_text(SAMPLE)
    monkeypatch.chdir(tmp_path)
    assert load_contract(path).file == "parts/s.contract.yaml"
    monkeypatch.chdir(path.parent)
    assert load_contract("../parts/s.contract.yaml").file == "s.contract.yaml"
    monkeypatch.chdir("/")
    assert load_contract(path).file == str(path)[1:]


def test_a_folder_is_not_a_contract(tmp_path: Path) -> None:
    with pytest.raises(PipelinkError) as caught:
        load_contract(tmp_path)
    assert caught.value.diagnostics[0].code == "PL0001"


def test_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "s.contract.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SAMPLE.replace("\n", "\r\n").encode())
    contract = load_contract(path)
    span = contract.port("x").where("arrivals")
    assert span is not None and SAMPLE.split("\n")[span.line - 1].endswith("arrivals: ROWS")
