"""Blobs of the cache: sound ones, damaged ones, and too many."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.scons.cache import pack, prune, unpack

FILES = st.dictionaries(
    st.text("abc/._", min_size=1, max_size=8), st.binary(max_size=60), min_size=1
)


@given(FILES)
def test_a_blob_holds_the_files_of_a_step(files: dict[str, bytes]) -> None:
    assert unpack(pack(files)) == files


@given(FILES, st.data())
def test_every_truncation_and_every_flipped_bit_is_found(
    files: dict[str, bytes], draw: st.DataObject
) -> None:
    blob = pack(files)
    cut = draw.draw(st.integers(0, len(blob) - 1))
    assert unpack(blob[:cut]) is None
    flipped = bytearray(blob)
    flipped[cut] ^= 1 << draw.draw(st.integers(0, 7))
    assert unpack(bytes(flipped)) is None


def test_the_blobs_used_longest_ago_go_first(tmp_path: Path) -> None:
    (tmp_path / "AB").mkdir()
    for age, name in enumerate(["newest", "middle", "oldest"]):
        path = tmp_path / "AB" / name
        path.write_bytes(b"x" * 100)
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert prune(tmp_path, limit=250) == 1
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "middle",
        "newest",
    ]
    assert prune(tmp_path, limit=250) == 0
