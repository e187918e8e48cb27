"""The manifest: parameters in the one order, strictest sizes, conditions with their askers."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import pytest
from samples import AUDIT, PLACEMENT, PROGRAM

from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.glue.operation_script import site_numbers, watchdog_sites
from pipelink_rules.glue.parameters import kernel_parameters, parameter_index
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.report.manifest import grid_expression, manifest_of


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    cubin = tmp_path / "sample.cubin"
    cubin.write_bytes(b"code")
    return manifest_of(PROGRAM, PLACEMENT, AUDIT, cubin)


def test_parameters() -> None:
    found = [
        (item.kind, item.name, item.box, item.swizzle, item.ports)
        for item in kernel_parameters(PROGRAM)
    ]
    assert found == [
        ("tensor_map", "a", (128, 64), 128, ("load.A",)),
        ("tensor_map", "a", (64, 64), 128, ("load.B",)),
        ("pointer", "a", (), 0, ("load.raw",)),
        ("tensor_map", "out", (16, 64), 128, ("store.C",)),
        ("f32", "alpha", (), 0, ("store.alpha",)),
        ("i32", "K", (), 0, ()),
        ("i32", "M", (), 0, ()),
        ("i32", "N", (), 0, ()),
    ]


def test_ports_with_one_box_share_a_tensor_map() -> None:
    places = (("load", "A"), ("store", "C"), ("load", "A"))
    program = dataclasses.replace(PROGRAM, tensors=(("x", places),))
    maps = [item.ports for item in kernel_parameters(program) if item.kind == "tensor_map"]
    assert maps == [("load.A", "load.A"), ("store.C",)]


def test_every_port_finds_its_parameter() -> None:
    index = parameter_index(PROGRAM)
    parameters = kernel_parameters(PROGRAM)
    assert set(index) == {
        place for _, places in (*PROGRAM.tensors, *PROGRAM.scalars) for place in places
    }
    for (instance, port), position in index.items():
        assert f"{instance}.{port}" in parameters[position].ports


def test_what_the_launcher_needs(manifest: Manifest) -> None:
    assert manifest.cubin == "sample.cubin"
    assert manifest.cubin_sha256 == hashlib.sha256(b"code").hexdigest()
    assert (manifest.threads, manifest.shared_bytes, manifest.runs_on) == (384, 115792, (9, 0))
    a, out = manifest.tensors
    assert (a.shape, a.direction, a.align) == (("M", "K"), "in", 128)
    assert (out.dtype, out.direction) == ("bf16", "out")
    assert manifest.scalars == (("alpha", "f32"),)
    assert not manifest.deterministic  # one component is not


def test_the_strictest_sizes(manifest: Manifest) -> None:
    assert manifest.symbols == (
        ("K", 16, 65536, 24),
        ("M", 1, 2**31 - 1, 1),
        ("N", 1, 2**31 - 1, 1),
    )


def test_preconditions_name_their_component(manifest: Manifest) -> None:
    assert manifest.requires == (("K <= 4096", "load (loader.contract.yaml:9:5)"),)


def test_an_array_read_and_written() -> None:
    program = dataclasses.replace(PROGRAM, tensors=(("x", (("load", "raw"), ("store", "C"))),))
    from pipelink_rules.report import manifest as module

    (tensor,) = module._tensors(program)
    assert tensor.direction == "inout"


@pytest.mark.parametrize(
    ("cluster", "m", "n", "grid"),
    [
        ((1, 1, 1), 128, 64, 1),
        ((1, 1, 1), 129, 65, 4),
        ((1, 1, 1), 10**6, 640, 132),
        ((2, 1, 1), 129, 129, 12),  # items count clusters
        ((2, 1, 1), 0, 64, 2),  # never less than a cluster
        ((2, 1, 1), 10**6, 640, 128),  # 64 of them run at a time
        ((2, 2, 1), 10**6, 640, 256),
    ],
)
def test_grid(cluster: tuple[int, int, int], m: int, n: int, grid: int) -> None:
    text = grid_expression(dataclasses.replace(PROGRAM, cluster=cluster))
    assert value_of(text, {"M": m, "N": n, "sms": 132, "clusters": 64, "occupancy": 1}) == grid


def test_sites_of_the_watchdog(manifest: Manifest) -> None:
    found = [(s.number, s.instance, s.role, s.port, s.channel, s.stages) for s in manifest.sites]
    assert found == [
        (1, "load", "load", "ab", "load.ab", 3),
        (2, "mma", "mma", "ab", "load.ab", 3),
        (3, "mma", "mma", "acc", "mma.acc>store.acc", 2),
        (4, "store", "store", "acc", "mma.acc>store.acc", 2),
        (5, "store", "store", "turn", "", 0),
    ]
    assert site_numbers(PROGRAM)["store", "store", "turn"] == 5
    assert [s.number for s in watchdog_sites(PROGRAM)] == [1, 2, 3, 4, 5]


def test_a_release_link_has_no_sites(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"")
    program = dataclasses.replace(PROGRAM, runtime="release")
    assert manifest_of(program, PLACEMENT, AUDIT, tmp_path / "c").sites == ()


def test_written_and_read_back(manifest: Manifest, tmp_path: Path) -> None:
    assert read_json(write_json(tmp_path / "m.json", manifest), Manifest) == manifest
