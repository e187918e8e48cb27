"""Finished objects without a source: what they do is read from the object itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from builds import Project

from pipelink_rules.contract.sidecar import dump_sidecar, load_sidecar
from pipelink_rules.files.atomic import sha256

SCALE = (  # its declaration
    'env.KernelComponent(name="scale", srcs=["scale.cu"], hdrs=["scale.cuh"], deps=[":tables"])'
)


def delivered(built: Project, change: Callable[[dict[str, Any]], None]) -> None:
    """The object of `scale` without its source, its code changed, with a sidecar that says so."""
    (scale,) = (built / "build/sm_90a/variants").glob("scale_*")
    (built / "delivered").mkdir()
    for suffix in ("fatbin", "contract.yaml", "shadow.ptx"):
        (scale / f"scale.{suffix}").rename(built / f"delivered/scale.{suffix}")
    for name in ("scale.cu", "scale.cuh", "scale.contract.yaml"):
        (built / "kernels" / name).unlink()
    fatbin, sidecar = (built / f"delivered/scale.{x}" for x in ("fatbin", "contract.yaml"))
    data = json.loads(fatbin.read_text().removeprefix("FAKEBIN"))
    change(data)
    fatbin.write_text("FAKEBIN" + json.dumps(data, sort_keys=True))
    variant, build = load_sidecar(sidecar)
    objects = tuple((name, sha256(built / "delivered" / name)) for name, _ in build.objects)
    sidecar.write_text(dump_sidecar(variant, replace(build, objects=objects)))
    built.edit(
        "kernels/SConscript",
        SCALE,
        'env.PrebuiltComponent(name="scale", dir="../delivered")',
    )


@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        ("PL0935", "ret;", "mbarrier.arrive.shared.b64 _, [%r1];\nret;"),
        ("PL0934", "call.uni pl_ring_release", "call.uni pl_ring_commit"),
        ("PL0907", "ret;", "bar.sync 0;\nret;"),
        ("PL0906", "pl_scale_", "pl_skale_"),
        ("PL0904", ".func", "{ .func"),
    ],
)
def test_a_delivered_object_that_breaks_its_contract(
    built: Project, code: str, old: str, new: str
) -> None:
    """All digests are right, and the shadow beside it is honest: its own code is read."""

    def change(data: dict[str, Any]) -> None:
        assert old in data["ptx"]
        data["ptx"] = data["ptx"].replace(old, new)

    delivered(built, change)
    run = built.run()
    assert run.status == 2 and f"error[{code}]" in run.text


def test_prebuilt_object_with_inconclusive_audit(built: Project) -> None:
    def change(data: dict[str, Any]) -> None:
        data["ptx"] = data["ptx"].replace("ret;", "@%p9 st.u32 [%rd9], 0;\nret;")

    delivered(built, change)
    run = built.run("megakernels/scaled", "strict=1")
    assert run.status == 2 and "error[PL0932]" in run.text
    run = built.run("megakernels/scaled")
    assert run.status == 2 and "warning[PL0932]" in run.text and "error[PL0932]" in run.text
    record = next((built / "build/sm_90a/variants").glob("scale_*/scale.object.json"))
    assert "PL0932" in record.read_text()
