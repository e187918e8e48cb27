"""Hand-edited sidecars, swapped objects and foreign cubins are refused where they are used."""

from __future__ import annotations

import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import fuzz_seeds as seeds
import pytest
from link_fixtures import toolkit_of

from pipelink_rules.actions.component import unpack_prebuilt
from pipelink_rules.actions.prebuilt import finished_files
from pipelink_rules.audit.audit_component import ComponentAudit
from pipelink_rules.contract.sidecar import dump_sidecar, load_sidecar
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import to_json, write_json
from pipelink_rules.launch import load
from pipelink_rules.model.variant import BuildRecord, Variant


def refused(action: object, *arguments: object) -> tuple[str, ...]:
    with pytest.raises(PipelinkError) as caught:
        action(*arguments)  # type: ignore[operator]
    assert all(item.labels for item in caught.value.diagnostics)
    return tuple(item.code for item in caught.value.diagnostics)


def unpack(sidecar: str, out: str) -> None:
    unpack_prebuilt(sidecar, out, "sm_90a", (), toolkit_of(), False)


@pytest.fixture(autouse=True)
def unedited(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the objects do is another question: tests/live/objects/test_finished_live.py."""
    component = "pipelink_rules.actions.component"
    monkeypatch.setattr(f"{component}.code_of_object", lambda *a: "")
    monkeypatch.setattr(f"{component}._check_code", lambda *a: ComponentAudit((), ()))


@pytest.fixture
def sidecar(tmp_path: Path) -> Path:
    """A finished object with its shadow and sidecar, as a build leaves them."""
    return finished(tmp_path / "given", seeds.built_variants()[0])


def finished(folder: Path, variant: Variant, **changes: object) -> Path:
    folder.mkdir()
    place = folder / f"{variant.contract.component}.contract.yaml"
    files = [Path(name) for name in finished_files(str(place))[1:]]
    for file in files:
        file.write_bytes(file.suffix.encode() * 100)
    objects = tuple((file.name, sha256(file.read_bytes()).hexdigest()) for file in files)
    build = replace(BuildRecord("13.5.37", "f" * 64), objects=objects)
    place.write_text(dump_sidecar(replace(variant, **changes), build))  # type: ignore[arg-type]
    return place


def test_what_was_not_touched_is_taken(sidecar: Path, tmp_path: Path) -> None:
    unpack(str(sidecar), str(tmp_path / "out"))
    assert len(list((tmp_path / "out").iterdir())) == 3


@pytest.mark.parametrize("half", ["interface", "build"])
def test_an_edited_half_of_a_sidecar(sidecar: Path, tmp_path: Path, half: str) -> None:
    head, mark, rest = sidecar.read_text().partition(f"\n{half}:")
    edits = {"interface": ("component: ", "component: x"), "build": ("13.5.37", "13.5.38")}
    assert edits[half][0] in rest
    sidecar.write_text(head + mark + rest.replace(*edits[half], 1))
    assert refused(load_sidecar, sidecar) == ("PL0021",)
    assert refused(unpack, str(sidecar), str(tmp_path / "out")) == ("PL0021",)
    assert not (tmp_path / "out").exists()


def test_swapped_objects(sidecar: Path, tmp_path: Path) -> None:
    other = finished(tmp_path / "other", seeds.built_variants()[1])
    for suffix in (".fatbin", ".shadow.ptx"):
        mine = next(sidecar.parent.glob(f"*{suffix}"))
        kept = mine.read_bytes()
        theirs = next(other.parent.glob(f"*{suffix}"))
        theirs.write_bytes(b"another object")
        shutil.copy(theirs, mine)
        assert refused(unpack, str(sidecar), str(tmp_path / "out")) == ("PL0904",)
        mine.unlink()
        assert refused(unpack, str(sidecar), str(tmp_path / "out")) == ("PL0904",)
        mine.write_bytes(kept)
    assert not (tmp_path / "out").exists()


def test_sidecar_with_another_digest(tmp_path: Path) -> None:
    """Both halves were written anew: the digest of the variant gives it away."""
    variant = seeds.built_variants()[0]
    place = finished(tmp_path / "given", variant, digest="0" * 12)
    assert refused(unpack, str(place), str(tmp_path / "out")) == ("PL0904",)


@pytest.mark.parametrize("name", ["../../outside", "/tmp/x", "a/b", "..", "a\\b", "x.y", ""])
def test_a_component_that_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    variant = seeds.built_variants()[0]
    contract = replace(variant.contract, component=name)
    place = tmp_path / "x.contract.yaml"
    place.write_text(dump_sidecar(replace(variant, contract=contract), seeds.record(variant)))
    assert refused(load_sidecar, place) == ("PL0020",)
    assert refused(unpack, str(place), str(tmp_path / "out")) == ("PL0020",)
    place.write_text(dump_sidecar(replace(variant, digest=f"../{name}"), seeds.record(variant)))
    assert refused(load_sidecar, place) == ("PL0020",)
    assert [item.name for item in tmp_path.iterdir()] == ["x.contract.yaml"]


def test_a_cubin_that_is_not_the_one_of_the_manifest(tmp_path: Path) -> None:
    manifest = seeds.manifest(tmp_path)
    file = write_json(tmp_path / "x.manifest.json", manifest)
    assert load(file).manifest == manifest
    image = tmp_path / manifest.cubin
    data = image.read_bytes()
    for broken in (data[:-1], data + b"\0", bytes([data[0] ^ 1]) + data[1:], b""):
        image.write_bytes(broken)
        assert refused(load, file) == ("PL1400",)
    image.write_bytes(data)
    file.write_text(to_json(replace(manifest, cubin_sha256="0" * 64)))
    assert refused(load, file) == ("PL1400",)
