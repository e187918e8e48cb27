"""What was kept is what comes back, or nothing."""

from __future__ import annotations

from pathlib import Path

from pipelink_rules.actions.build_key import key_of, lookup, store
from pipelink_rules.actions.requests import RequestedInstance, RequestedMegakernel, RequestedVariant

NOUN = RequestedMegakernel(
    "m",
    ("sm_90a",),
    "release",
    "t",
    (
        RequestedInstance(
            "op",
            "//:op",
            RequestedVariant("op", "0" * 12, (("D", 1), ("T", "bf16")), ("ftz=true",), "t", "c"),
            (("sm_90a", "delivered/op.contract.yaml"),),
        ),
    ),
)


def test_the_same_texts_bring_the_noun_back(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    store(path, key_of(["a", b"b"]), NOUN)
    assert lookup(path, key_of(["a", b"b"]), RequestedMegakernel) == NOUN


def test_another_text_brings_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    store(path, key_of(["a", "b"]), NOUN)
    assert lookup(path, key_of(["ab"]), RequestedMegakernel) is None
    assert lookup(tmp_path / "none.json", key_of(["a", "b"]), RequestedMegakernel) is None


def test_a_damaged_file_brings_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    key = key_of(["a"])
    store(path, key, NOUN)
    text = path.read_text()
    for damaged in (text[:-5], text.replace("bf16", "f16"), "", "{}"):
        path.write_text(damaged)
        assert lookup(path, key, RequestedMegakernel) is None
