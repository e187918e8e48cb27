"""Blobs of the cache: sound ones, damaged ones, and too many."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.scons.cache import digest_of, pack, prune


@given(st.binary(max_size=200))
def test_a_blob_says_the_digest_of_its_content(data: bytes) -> None:
    assert digest_of(pack(data)) == hashlib.sha256(data).hexdigest()


@given(st.binary(min_size=1, max_size=60), st.data())
def test_every_truncation_and_every_flipped_byte_is_found(data: bytes, draw: st.DataObject) -> None:
    blob = pack(data)
    cut = draw.draw(st.integers(0, len(blob) - 1))
    assert digest_of(blob[:cut]) == ""
    flipped = bytearray(blob)
    flipped[cut] ^= 1 << draw.draw(st.integers(0, 7))
    assert digest_of(bytes(flipped)) == ""


def test_the_blobs_used_longest_ago_go_first(tmp_path: Path) -> None:
    (tmp_path / "AB").mkdir()
    for age, name in enumerate(["newest", "middle", "oldest"]):
        path = tmp_path / "AB" / name
        path.write_bytes(b"x" * 100)
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert prune(tmp_path, limit=250) == 1
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["middle", "newest"]
    assert prune(tmp_path, limit=250) == 0
