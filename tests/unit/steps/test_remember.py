"""What was kept is what comes back, or nothing."""

from __future__ import annotations

from pathlib import Path

from pipelink_rules.steps.asked import Asked, AskedInstance, AskedVariant
from pipelink_rules.steps.remember import keep, key_of, recall

NOUN = Asked(
    "m",
    ("sm_90a",),
    "release",
    "t",
    (
        AskedInstance(
            "op",
            "//:op",
            AskedVariant("op", "0" * 12, (("D", 1), ("T", "bf16")), ("ftz=true",), "t", "c"),
            (("sm_90a", "delivered/op.contract.yaml"),),
        ),
    ),
)


def test_the_same_texts_bring_the_noun_back(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    keep(path, key_of(["a", b"b"]), NOUN)
    assert recall(path, key_of(["a", b"b"]), Asked) == NOUN


def test_another_text_brings_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    keep(path, key_of(["a", "b"]), NOUN)
    assert recall(path, key_of(["ab"]), Asked) is None
    assert recall(tmp_path / "none.json", key_of(["a", "b"]), Asked) is None


def test_a_damaged_file_brings_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    key = key_of(["a"])
    keep(path, key, NOUN)
    text = path.read_text()
    for damaged in (text[:-5], text.replace("bf16", "f16"), "", "{}"):
        path.write_text(damaged)
        assert recall(path, key, Asked) is None
