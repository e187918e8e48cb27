"""Sidecars: what is written is read back, and nothing else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from sample_contract import SAMPLE

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import load_contract, parse_contract
from pipelink_rules.contract.sidecar import (
    canonical_yaml,
    dump_interface,
    dump_sidecar,
    interface_of,
    load_sidecar,
    without_spans,
)
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.variant import BuildRecord, Measured, Variant, WeakSymbol

VARIANT = bind(parse_contract(SAMPLE, "s.contract.yaml"), {"D": 256})
BUILD = BuildRecord(
    toolkit="13.5.37",
    fingerprint="ab" * 32,
    command=(
        "nvcc",
        "-rdc=true",
        '-DNAME="a b"',
        "--",
        "yes",
        "1.0",
        "0x10",
        "~",
        "- x",
        "é\x85\t",
    ),
    objects=(("scale_rows.fatbin", "12" * 32),),
    probe=(("compute", Measured(41, 24, 0, 0)),),
    weak=(WeakSymbol("_Z3absi", "func", "cd" * 32),),
    codegen=(("ftz", "false"), ("fmad", "true")),
    extra=(("empty", ""), ("colon: #", "[x]")),
)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "s.contract.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def code_of(path: Path) -> str:
    with pytest.raises(PipelinkError) as caught:
        load_sidecar(path)
    (found,) = caught.value.diagnostics
    return found.code


def test_round_trip(tmp_path: Path) -> None:
    measured = replace(VARIANT, measured=(("compute", Measured(41, 154, 0, 0)),))
    text = dump_sidecar(measured, BUILD)
    variant, build = load_sidecar(written(tmp_path, text))
    assert build == BUILD
    assert without_spans(variant) == interface_of(measured)
    assert dict(variant.measured)["compute"] == Measured(48, 160, 0, 0)
    assert variant.contract.span is not None and variant.contract.file == variant.contract.span.file
    assert dump_sidecar(variant, build) == text


def test_sidecar_is_yaml_for_everybody(tmp_path: Path) -> None:
    data = yaml.safe_load(dump_sidecar(VARIANT, BUILD))
    assert sorted(data) == ["build", "digests", "format", "interface"]
    assert data["build"]["command"] == list(BUILD.command)
    assert data["interface"]["contract"]["component"] == "scale_rows"


SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"))
DATA = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text("ab_ :#", min_size=1), inner)
        ),
        max_leaves=12,
    ),
    min_size=1,
    max_size=4,
)


@given(DATA)
@example({"a": [{"b": {"c": 1}, "d": 2}], "y": ["no", "1.0", "~", "- x", "0x1", "é\x85\t", ""]})
@example({"a": [[["x", {"b": 1, "c": [[]]}]], [{}], [{"k": None}]]})
def test_canonical_text_means_its_data(data: dict[str, object]) -> None:
    assert yaml.safe_load(canonical_yaml(data)) == data


def test_changed_halves_are_noticed(tmp_path: Path) -> None:
    text = dump_sidecar(VARIANT, BUILD)
    for old, new in (('"40"', '"48"'), ("13.5.37", "13.5.38"), ("space: ring", "space: global")):
        assert old in text
        assert code_of(written(tmp_path, text.replace(old, new, 1))) == "PL0021"


def test_comments_and_order_are_no_change(tmp_path: Path) -> None:
    text = dump_sidecar(VARIANT, BUILD)
    head, tail = text.split("\ninterface:", 1)
    interface, build = tail.split("\nbuild:", 1)
    moved = f"# a note\n{head}\nbuild:{build}interface:{interface}\n"
    assert load_sidecar(written(tmp_path, moved)) == load_sidecar(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PL0020"),
        ("[]", "PL0020"),
        ("format: pipelink/sidecar/2", "PL0020"),
        ("format: pipelink/sidecar/2\ndigests: {}\n", "PL0021"),
        ("sidecar: 1\n", "PL0022"),
        ("format: pipelink/sidecar/1\n", "PL0022"),
        ("sidecar: [", "PL0020"),
        ("a: &a [1]\nb: *a\n", "PL0020"),
        ("[" * 5000, "PL0020"),
        (
            "format: pipelink/sidecar/2\ndigests: {}\nbuild: 2001-01-01\ninterface: !!set {a}\n",
            "PL0021",
        ),
        ("sidecar: !!python/object/apply:os.getcwd []\n", "PL0020"),
        (SAMPLE, "PL0020"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, code: str) -> None:
    assert code_of(written(tmp_path, text)) == code


def test_missing_and_binary_files_are_refused(tmp_path: Path) -> None:
    assert code_of(tmp_path / "missing.contract.yaml") == "PL0020"
    path = tmp_path / "b.contract.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert code_of(path) == "PL0020"


def test_interface_does_not_change_with_unused_clauses(tmp_path: Path) -> None:
    path = tmp_path / "s.contract.yaml"
    texts = {
        SAMPLE,
        SAMPLE.replace("Multiply", "Scale"),
        "# a comment\n\n" + SAMPLE,
        SAMPLE.replace("warps: ROWS", "warps:    ROWS   # one a row"),
    }
    seen = set()
    for text in texts:
        path.write_text(text)
        seen.add(dump_interface(bind(load_contract(path), {"D": 256})))
    assert len(seen) == 1
    one = replace(VARIANT, measured=(("compute", Measured(41, 24, 0, 0)),))
    two = replace(VARIANT, measured=(("compute", Measured(46, 23, 0, 0)),))
    assert dump_interface(one) == dump_interface(two) != dump_interface(VARIANT)


def test_interface_is_read_by_the_codec(tmp_path: Path) -> None:
    path = tmp_path / "s.interface.json"
    path.write_text(dump_interface(VARIANT))
    assert read_json(path, Variant) == interface_of(VARIANT)
